"""Arrays, files and Dask collections, as files that every worker can map."""

import os
from pathlib import Path

import numpy as np

from .._numbers import ANY_NUMBER, numbers_of
from .._streams import blocks_of
from .._validation import check_groups
from ..store import write_npy
from ._cluster import RETRIES, call
from ._files import as_float64, begin_rows, map_rows, write_rows
from ._worker import Inputs


def shared_inputs(client, folder, X, y, sample_weight, X_target):
    """All arrays of a fit as files that every worker can map."""
    if np.isscalar(sample_weight) and not isinstance(sample_weight, str):
        raise ValueError(
            f"sample_weight={sample_weight!r} must be one weight per row, or None."
        )

    def put(data, file, name):
        return shared_rows(client, data, str(folder / f"{file}.npy"), name)

    weight, targets = sample_weight, X_target
    return Inputs(
        put(X, "rows", "X"),
        put(y, "outputs", "y"),
        None if weight is None else put(weight, "weights", "sample_weight"),
        None if targets is None else put(targets, "targets", "X_target"),
    )


def with_groups(inputs, folder, groups):
    """The inputs with a file of the groups' numbers, if there are groups."""
    if groups is None:
        return inputs
    if isinstance(groups, str | os.PathLike):
        groups = map_rows(groups)
    groups = groups.compute() if is_dask(groups) else groups
    numbers = check_groups(groups, map_rows(inputs.X))
    path = folder / "groups.npy"
    write_npy(path, numbers.shape, np.int64, blocks_of(numbers))
    return inputs._replace(groups=str(path))


def shared_rows(client, data, target, name):
    """The path of a float64 .npy file with these rows; `target`, if it is new."""
    if isinstance(data, str | os.PathLike):
        return call(client, as_float64, str(Path(data).absolute()), target)
    if is_dask(data):
        return _write_blocks(client, data, target)
    data = numbers_of(data, name, ANY_NUMBER)
    write_npy(target, data.shape, np.float64, blocks_of(data))
    return target


def _write_blocks(client, data, target):
    """Let the workers write the blocks of a Dask collection into one file."""
    from dask import delayed

    if hasattr(data, "rechunk") and data.ndim == 2:
        data = data.rechunk({1: -1})
    check_numbers(data)
    blocks = np.ravel(data.to_delayed())
    lengths = data.chunks[0] if hasattr(data, "chunks") else [np.nan]
    if np.isnan(lengths).any():
        count = delayed(len, pure=False)
        counted = client.compute([count(b) for b in blocks], retries=RETRIES)
        lengths = client.gather(counted)
    starts = np.cumsum([0, *lengths]).tolist()
    begin_rows(target, (starts[-1], *data.shape[1:]))
    write = delayed(write_rows, pure=False)
    written = [write(block, target, start) for block, start in zip(blocks, starts)]
    client.gather(client.compute(written, retries=RETRIES))
    return target


def check_numbers(data):
    """Refuse columns of words."""
    kinds = data.dtypes if hasattr(data, "dtypes") else data.dtype
    for name, kind in kinds.items() if hasattr(kinds, "items") else [("data", kinds)]:
        if getattr(kind, "kind", "O") not in "fiub":
            raise ValueError(
                f"Column {name!r} is of {kind}, not of numbers. Encode it, or leave it "
                "out."
            )


def names_of(X):
    """Names of the columns of a frame, None if it has none, or not all are words."""
    names = list(getattr(X, "columns", []))
    return names if names and all(isinstance(n, str) for n in names) else None


def is_dask(data):
    return type(data).__module__.split(".")[0].startswith("dask")
