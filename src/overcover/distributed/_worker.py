"""What one computer of a cluster does for a fit: files, stages, and machines.

Tasks take paths and numbers and return digests; a task may be repeated, or run twice.
A stage is one task or, if it is too large, several steps: each task sees a shard of
rows, or some clusters, and what passes between them are files of a draft (shards,
shard-000000 ..., loans-000000 ...). A step whose file is there does nothing. The
functions are those of a fit in memory, so the result is the same, bit by bit.
"""

import time
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, wraps
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import parallel_config
from sklearn.utils import check_random_state

from .._neighbors import block_rows
from .._parallel import run_tasks
from .._validation import TrainingData
from .._weights import in_typical_units
from ..cover import Cover, extend_clusters
from ..fitting import STAGES, Fit, Recipe
from ..partition import Partition, TwoLevelKMeans, resolve
from ..partition.shards import Shards
from ..store import (
    Draft,
    StoreError,
    as_floats,
    begin_npy,
    fingerprint_of,
    mapped_used,
    result_record,
)

# Clusters that a task covers, or a few more.
CLUSTERS_PER_TASK = 256
# Seconds until a file of another computer must be visible, and between checks.
PATIENCE, PAUSE = 30.0, 0.1


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
    with open(path, "wb") as file:
        begin_npy(file, shape, np.float64)
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

    def read(self, *part) -> Any:
        """A part of the draft, mapped; its name, and maybe its number."""
        wait_for(self.draft.file(*part))
        return self.draft.read(*part)

    @property
    def clusterer(self):
        """What makes the partition."""
        return resolve(self.recipe.partition, self.recipe.shape.n_subdomains, 1, None)

    @cached_property
    def rows(self):
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


def steps_of(job, stage, fit):
    """Functions, one after the other, each with the last arguments of its tasks."""
    clusterer, once = job.clusterer, [()]
    if stage == "partition" and isinstance(clusterer, TwoLevelKMeans):
        n_shards = clusterer.count_shards(*fit.data.X.shape)
        if n_shards > 1:
            shards = [(s,) for s in range(n_shards)]
            return [(divide, once), (cluster_shard, shards), (join_shards, once)]
    if stage == "cover":
        return [(lend, ranges_of(len(fit.partition.centers))), (join_loans, once)]
    return [(run_stage, [(stage,)])]


def ranges_of(n_clusters):
    """Clusters that are covered together: the first, and the one after the last."""
    # Blocks of distances begin where they do when all clusters are covered at once.
    block = block_rows(n_clusters)
    step = block * -(-CLUSTERS_PER_TASK // block)
    return [(i, min(i + step, n_clusters)) for i in range(0, n_clusters, step)]


def step(name):
    """Decorate a task that writes a part of the draft, by its number, if missing."""

    def decorate(make):
        @wraps(make)
        def task(job, *numbers) -> None:
            draft, part = opened(job).draft, (name, *numbers[:1])
            try:
                draft.read(*part)
            except StoreError:
                draft.write(make(opened(job), *numbers), *part)

        return task

    return decorate


@step("shards")
def divide(job):
    """Divide the rows into shards."""
    fit, clusterer = job.fit("tune"), job.clusterer
    own = clusterer.random_state
    rng = fit.rng if own is None else check_random_state(own)
    return result_record(tuple(clusterer.divide(fit.X_metric, rng)), fit)


@step("shard")
def cluster_shard(job, shard):
    """Cluster the rows of one shard."""
    return job.clusterer.fit_shard(job.rows, job.shards, shard)


@step("partition")
def join_shards(job):
    """The partition, from all shards."""
    parts = (job.read("shard", s) for s in range(len(job.shards.ends)))
    labels, centers, *_ = job.shards.join(parts)
    return job.read("shards") | {"value": Partition(labels, centers)}


@step("loans")
def lend(job, start, stop):
    """The members of some subdomains, which borrow from all clusters around."""
    shape, (clusters, centers) = job.recipe.shape, job.clusters
    options = shape.size, shape.overlap, shape.spread, np.arange(start, stop), 1
    return {"members": extend_clusters(job.rows, clusters, centers, *options)}


@step("cover")
def join_loans(job):
    """The cover, from all loans."""
    n_owned = np.array([len(rows) for rows in job.clusters[0]])
    loans = (job.read("loans", start) for start, _ in ranges_of(len(n_owned)))
    cover = Cover([rows for loan in loans for rows in loan["members"]], n_owned)
    # Random numbers stay as they were after the partition.
    return job.read("partition") | {"value": cover, "notes": []}


def fit_subdomains(job, ids) -> list[str]:
    """Fit some machines, unless they are there; returns the digests of their files."""
    tasks = ((opened(job).ready, k) for k in ids)
    return list(run_tasks(job.draft.keep_machine, tasks, n_jobs=1))


def forget() -> None:
    """Close the files of a fit, so that they can be deleted everywhere."""
    opened.cache_clear()
