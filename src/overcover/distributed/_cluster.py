"""The client's side: workers that see the files, tasks, rows as files they can map."""

import os
from pathlib import Path

import numpy as np

from .._numbers import ANY_NUMBER, numbers_of
from .._streams import blocks_of
from .._validation import check_groups
from ..store import StoreError, write_npy
from ._worker import Inputs, as_float64, begin_rows, map_rows, write_rows

# After errors such as those of a busy file system; Dask itself replaces lost workers.
RETRIES = 2
# Names that a store knows to delete.
FILES = {"X": "rows", "y": "outputs", "sample_weight": "weights", "X_target": "targets"}


def running(client):
    """The client, or the current one, if it can be used."""
    try:
        from distributed import Client
    except ImportError as error:
        raise ImportError(
            "Working on a cluster needs Dask: pip install 'overcover[dask]'."
        ) from error
    if client is None:
        try:
            client = Client.current()
        except ValueError as error:
            raise ValueError(
                "There is no Dask client. Start one, client = distributed.Client() for "
                "this computer alone, or give one as client=..."
            ) from error
    if not isinstance(client, Client) or client.asynchronous:
        raise TypeError(
            f"client={client!r} must be a distributed.Client that is not asynchronous, "
            "such as Client('tcp://scheduler:8786')."
        )
    if client.status in ("closing", "closed"):
        raise ValueError(
            f"client={client!r} is {client.status}. Start another; a fit goes on where "
            "it stopped."
        )
    return client


def check_shared(client, folder):
    """Refuse a folder that some worker cannot see."""
    wanted = str(folder), os.R_OK | os.W_OK | os.X_OK
    workers = client.run(os.access, *wanted)
    blind = sorted(worker for worker, can_see in workers.items() if not can_see)
    if blind:
        raise StoreError(
            f"{Path(folder).parent} cannot be read and written by {len(blind)} of "
            f"{len(workers)} workers ({', '.join(blind[:3])}). Choose a path on a file "
            "system that all of them share, under the same name."
        )


def submit(client, function, *args):
    """The future of a task."""
    # Not pure: the result of an earlier task with equal arguments must not be reused.
    return client.submit(function, *args, pure=False, retries=RETRIES)


def shared_inputs(client, folder, X, y, sample_weight, X_target, groups) -> Inputs:
    """All arrays of a fit as files that every worker can map."""
    if np.isscalar(sample_weight) and not isinstance(sample_weight, str):
        raise ValueError(
            f"sample_weight={sample_weight!r} must be one weight per row, or None."
        )

    arrays = {"X": X, "y": y, "sample_weight": sample_weight, "X_target": X_target}
    paths = {
        name: _shared(client, data, f"{folder}/{FILES[name]}.npy", name)
        for name, data in arrays.items()
        if data is not None or name in ("X", "y")
    }
    groups = map_rows(groups) if isinstance(groups, str | os.PathLike) else groups
    groups = groups.compute() if is_dask(groups) else groups
    numbers = check_groups(groups, map_rows(paths["X"]))
    if numbers is not None:
        paths["groups"] = f"{folder}/groups.npy"
        write_npy(paths["groups"], numbers.shape, np.int64, blocks_of(numbers))
    return Inputs(**paths)


def _shared(client, data, target, name):
    """The path of a float64 .npy file with these rows; `target`, if it is new."""
    if isinstance(data, str | os.PathLike):
        source = str(Path(data).absolute())
        return submit(client, as_float64, source, target).result()
    if is_dask(data):
        _write_blocks(client, data, target)
    else:
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
        counts = client.compute([count(block) for block in blocks], retries=RETRIES)
        lengths = client.gather(counts)
    starts = np.cumsum([0, *lengths]).tolist()
    begin_rows(target, (starts[-1], *data.shape[1:]))
    write = delayed(write_rows, pure=False)
    tasks = [write(block, target, start) for block, start in zip(blocks, starts)]
    client.gather(client.compute(tasks, retries=RETRIES))


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
    """Whether it is a Dask collection."""
    return type(data).__module__.split(".")[0].startswith("dask")
