"""What one computer of a cluster does for a fit: files, stages, and machines.

Tasks take paths and numbers and return digests; a task may be repeated, or run twice.
"""

import os
import time
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config

from .._parallel import run_tasks
from .._streams import Rows
from .._validation import TrainingData
from .._weights import in_typical_units
from ..fitting import STAGES, Fit, Recipe
from ..partition.shards import Shards
from ..store import Draft, StoreError, as_floats, fingerprint_of, mapped_used

# Seconds until a file of another computer must be visible, and between checks.
PATIENCE, PAUSE = 30.0, 0.1


def sees(folder) -> bool:
    """Whether this computer can read and write a folder."""
    return os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def wait_for(path) -> None:
    """Wait until a file of another computer is visible: it may be a moment later."""
    until = time.monotonic() + PATIENCE
    while not Path(path).exists():
        if time.monotonic() > until:
            raise StoreError(
                f"{path} was written by a worker and is not visible here. Every worker "
                "must see the store under the same path, on a file system that all of "
                "them share, and no one may discard the fit meanwhile."
            )
        time.sleep(PAUSE)


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
    return str(source if as_floats(rows, target, (np.float64,)) is rows else target)


def begin_rows(path, shape) -> None:
    """Make a .npy file of float64 that `write_rows` fills."""
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 8 * int(np.prod(shape)))


def write_rows(rows, path, start) -> int:
    """Write successive rows into a file of `begin_rows`; returns how many."""
    values, whole = np.ascontiguousarray(rows, dtype="<f8"), map_rows(path)
    if values.shape[1:] != whole.shape[1:] or start + len(values) > len(whole):
        raise ValueError(
            f"A block of shape {values.shape} does not fit rows {start} and following "
            f"of an array of shape {whole.shape}: it has another shape when it is "
            "computed than it promises."
        )
    # Not through the map: there a full disk would end the process.
    with open(path, "r+b") as file:
        file.seek(whole.offset + start * whole.strides[0])
        file.write(values.data)
    return len(values)


class Inputs(NamedTuple):
    """Paths of the .npy files that a fit reads; float64, in C order."""

    X: str
    y: str
    sample_weight: str | None = None
    X_target: str | None = None
    rows: str | None = None  # which of the caller's rows these are; None for all
    groups: str | None = None  # numbers of the rows' groups, int64

    def mapped(self):
        """All of them as arrays, None for None."""
        return [None if path is None else map_rows(path) for path in self]


@dataclass(frozen=True)
class Job:
    """One fit, as tasks know it."""

    folder: str  # of the draft
    dtype: str
    inputs: Inputs
    recipe: Recipe = field(compare=False)
    keeps_factors: bool = True  # of machines, decided by the memory of the client

    @cached_property
    def draft(self) -> Draft:
        """Where results are."""
        return Draft(self.folder, self.dtype)

    def fit(self, *stages) -> Fit:
        """The fit with mapped rows, and the results of these stages."""
        X, y, weights, X_target, rows, groups = self.inputs.mapped()
        weights = None if weights is None else in_typical_units(weights)
        Y = self.recipe.target.forward(y.reshape(len(X), -1))
        data = TrainingData(X, Y, weights, rows)
        fit, draft = Fit(self.recipe, data, X_target, groups), self.draft
        for stage in stages:
            wait_for(draft.file(stage))
            draft.run(fit, stage)
        return fit

    def read(self, name, number=None) -> Any:
        """A part of the draft, mapped."""
        part = numbered(name, number)
        wait_for(self.draft.file(part))
        return self.draft.read(part)

    @cached_property
    def rows(self) -> Rows:
        """All rows in the machine's metric."""
        return self.fit("tune").X_metric

    @cached_property
    def shards(self) -> Shards:
        """The shard of every row."""
        return Shards(*self.read("shards")["value"])

    @cached_property
    def clusters(self):
        """Row numbers of all clusters, and their centres."""
        partition = self.read("partition")["value"]
        return partition.clusters(), partition.centers

    @cached_property
    def ready(self) -> Fit:
        """The fit as its machines begin."""
        fit = self.fit("tune", "cover")
        fit.keeps_factors = self.keeps_factors
        return fit


@lru_cache(maxsize=1)
def opened(job) -> Job:
    """The first of equal jobs in this process, with the files that it has opened."""
    return job


def numbered(name, number=None):
    """The name of a part of a draft."""
    return name if number is None else f"{name}-{number:06d}"


def prepare(model, inputs, folder, dtype, notes) -> tuple[str, Inputs]:
    """The fingerprint of a fit, and its inputs with equal rows merged into one."""
    X, y, weights, X_target, _, groups = inputs.mapped()
    options = weights, X_target, dtype, notes, groups
    fingerprint = fingerprint_of(model, X, y, *options)
    if X.ndim != 2 or not len(X) == len(y) == len(X if weights is None else weights):
        return fingerprint, inputs  # which the fit refuses
    used, rows = mapped_used(X, y, weights, groups, folder)
    if rows is not None:
        names = ("X", "y", "sample_weight", "groups", "rows")
        arrays = zip(names, (*used, rows))
        files = {name: str(a.filename) for name, a in arrays if a is not None}
        inputs = inputs._replace(**files)
    return fingerprint, inputs


def run_stage(job, name) -> None:
    """Do one stage, unless its result is there."""
    stages = list(STAGES)
    # joblib's processes cannot be started by a worker, and are not wanted.
    with parallel_config("threading"):
        job.draft.run(job.fit(*stages[: stages.index(name)]), name)


def fit_subdomains(job, ids) -> list[str]:
    """Fit some machines, unless they are there; returns the digests of their files."""
    tasks = ((opened(job).ready, k) for k in ids)
    return list(run_tasks(job.draft.keep_machine, tasks, n_jobs=1))


def forget() -> None:
    """Close the files of a fit, so that they can be deleted everywhere."""
    opened.cache_clear()
