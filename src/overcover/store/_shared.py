"""What one computer of a cluster does: all it needs, and all it makes, is in files.

    X, Y -> metric -> partition -> cover -> [machines] -> [routing -> combination]
    -> prediction

Tasks of `overcover.distributed` are calls of these functions. Their arguments are paths
and numbers of rows or subdomains, what they return are digests and counts; arrays are
mapped from files and written to files. Each may be called again, or twice at the same
time: files get their names when they are whole, and rows are written where they belong.
"""

import os
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from joblib import parallel_config

from .._parallel import run_tasks
from .._streams import blocks_of
from ..subdomains import LocalFits
from . import _shards
from ._draft import Draft, fingerprint_of
from ._model import load
from ._pack import SUFFIX, StoreError, identity_of
from ._rows import write_npy, write_used
from ._subdomains import decode_pack


class Inputs(NamedTuple):
    """Paths of the .npy files that a fit is given; float64, in C order."""

    X: str
    y: str
    sample_weight: str | None = None
    X_target: str | None = None
    rows: str | None = None
    """Which of the caller's rows these are; None for all."""

    def mapped(self):
        """All of them as arrays, None for None."""
        return [None if path is None else map_rows(path) for path in self]


class Job(NamedTuple):
    """Which machines to fit."""

    folder: str
    """Of the draft, with the stages before the machines."""

    inputs: Inputs
    dtype: str
    keep: bool
    """As in `overcover.subdomains.LocalFits`."""


class Source(NamedTuple):
    """Which model is asked."""

    path: str
    data: str
    """Its folder of data: another one if the store is overwritten."""

    n_consulted: int
    combine: str


def sees(folder) -> bool:
    """Whether this computer can read and write a folder."""
    return os.access(folder, os.R_OK | os.W_OK | os.X_OK)


# -- rows ----------------------------------------------------------------------------


def map_rows(path):
    """A .npy file as an array whose values are read when they are looked at."""
    try:
        return np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} cannot be mapped: {error}. Give the path of a .npy file of "
            "numbers that all workers can read."
        ) from error


def as_float64(source, target) -> str:
    """The path of the same rows as float64 in C order: `target`, if they are not."""
    rows = map_rows(source)
    if rows.dtype.kind not in "fiub":
        raise StoreError(f"{source} holds {rows.dtype}, not numbers.")
    if rows.dtype == np.float64 and rows.flags.c_contiguous:
        return str(source)
    write_npy(target, rows.shape, np.float64, blocks_of(rows))
    return str(target)


def begin_rows(path, shape) -> None:
    """Make a .npy file of float64 that `write_rows` fills."""
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 8 * int(np.prod(shape)))


def write_rows(rows, path, start) -> int:
    """Write successive rows into a file of `begin_rows`; returns how many."""
    values = np.ascontiguousarray(rows, dtype="<f8")
    with open(path, "r+b") as file:
        np.lib.format.read_magic(file)
        shape, _, _ = np.lib.format.read_array_header_1_0(file)
        if values.shape[1:] != shape[1:] or start + len(values) > shape[0]:
            raise ValueError(
                f"A block of shape {values.shape} does not fit rows {start} and "
                f"following of an array of shape {shape}: it has another shape when "
                "it is computed than it promises."
            )
        file.seek(8 * int(np.prod(shape[1:])) * start, os.SEEK_CUR)
        file.write(values.data)
    return len(values)


def used_inputs(inputs, folder) -> Inputs:
    """Inputs without rows that count for nothing, and equal rows as one."""
    X, y, weight, _, _ = inputs.mapped()
    if X.ndim != 2 or not len(X) == len(y) == len(X if weight is None else weight):
        return inputs  # which is refused with all that the fit refuses
    used = write_used(X, y, weight, folder)
    if used is None:
        return inputs
    return inputs._replace(**{name: str(path) for name, path in used.items()})


# -- fit -----------------------------------------------------------------------------


def fingerprint(model, inputs, dtype) -> str:
    """As of a fit on one computer with the same arrays."""
    X, y, weight, X_target, _ = inputs.mapped()
    return fingerprint_of(model, X, y, weight, X_target, dtype)


class _Outlined(Exception):
    """All stages that were wanted are done."""


class _Outline(Draft):
    """A draft without machines."""

    def states(self, local, n_jobs):
        raise _Outlined


class _Tuning(Draft):
    """A draft that ends where rows are partitioned."""

    def stage(self, name, rng, make, *args):
        if name != "metric":
            raise _Outlined
        return super().stage(name, rng, make, *args)


def outline(model, inputs, folder, dtype) -> None:
    """Do all stages before the machines, and leave them in a draft."""
    _fit_until(_Outline(folder, dtype), model, inputs)


def tune(model, inputs, folder, dtype) -> None:
    """Do the first stage alone: what comes next are the tasks of `_shards`."""
    _fit_until(_Tuning(folder, dtype), model, inputs)


def _fit_until(work, model, inputs):
    X, y, weight, X_target, work.rows = inputs.mapped()
    work.is_merged = True
    # joblib's processes cannot be started by a worker, and are not wanted.
    with parallel_config("threading"), suppress(_Outlined):
        model._fit(X, y, weight, X_target, work)


def fit_subdomains(job, ids) -> list[str]:
    """Fit some machines, unless they are there; returns the digests of their files."""
    stages = [Path(job.folder) / f"{name}{SUFFIX}" for name in ("metric", "cover")]
    try:
        found = tuple(identity_of(os.stat(path)) for path in stages)
    except OSError as error:
        raise StoreError(
            f"{error.filename} is not there: {error.strerror}. Every worker must see "
            "the store under the same path, and nobody may discard the fit meanwhile."
        ) from error
    draft = Draft(job.folder, job.dtype)
    local = _local_fits(job, draft.fingerprint, found)
    return list(run_tasks(draft.state, ((local, k) for k in ids), n_jobs=1))


@lru_cache(maxsize=1)
def _local_fits(job, fingerprint, identities) -> LocalFits:
    """What tasks of one fit share, opened once per process."""
    (machine, weight), cover = (
        decode_pack(Path(job.folder) / f"{name}{SUFFIX}", draft=fingerprint)[0]["value"]
        for name in ("metric", "cover")
    )
    X, y, _, _, rows = job.inputs.mapped()
    Y = y.reshape(len(X), -1)
    return LocalFits(machine, X, Y, weight, cover, job.keep, rows)


def forget() -> None:
    """Close the files of a fit, so that they can be deleted everywhere."""
    _local_fits.cache_clear()
    _shards.forget()


# -- predict -------------------------------------------------------------------------


@lru_cache(maxsize=4)
def opened(source):
    """The model of a source, with the files of the subdomains asked last."""
    model = load(source.path)
    if model.states_.subdomains.folder.name != source.data:
        raise StoreError(
            f"{source.path} was overwritten meanwhile, and holds another model. Load "
            "it again."
        )
    # Tasks run beside each other already.
    return model.set_params(
        n_consulted=source.n_consulted, combine=source.combine, n_jobs=1
    )


def answer(X, source, return_std):
    """Mean of some rows; with `return_std` mean and std, along a last axis of two."""
    found = opened(source).predict(X, return_std=return_std)
    return np.stack(found, axis=-1) if return_std else found


def answer_frame(X, source, return_std, like):
    """`answer` as a frame, or series, with the index of X and the names of `like`."""
    empty = len(X) == 0
    found = np.empty((0, 0)) if empty else answer(X, source, return_std)
    if like.ndim == 1:
        return type(like)(np.ravel(found), index=X.index, name=like.name)
    # Outputs before kinds: all means, then all standard deviations.
    columns = np.moveaxis(found, -1, 1) if return_std else found
    values = columns.reshape(len(X), len(like.columns))
    return type(like)(values, index=X.index, columns=like.columns)


def answer_range(source, queries, start, stop, folder, return_std) -> int:
    """Answer rows of a .npy file, into `mean.npy` and `std.npy` of a folder."""
    found = opened(source).predict(map_rows(queries)[start:stop], return_std=return_std)
    for name, values in zip(("mean", "std"), found if return_std else (found,)):
        write_rows(values, Path(folder) / f"{name}.npy", start)
    return stop - start
