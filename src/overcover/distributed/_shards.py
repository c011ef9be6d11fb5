"""Partition and cover in tasks: each sees a block, a shard, or some clusters, of files.

    X, Y -> tune -> [partition] -> [cover] -> [router] -> machines

The same functions as in `TwoLevelKMeans.fit` and `cover_partition`, so the same result,
bit by bit, but what passes between them are files of a draft:

    coarse             centres of the shards, from a sample
    block-000000 ...   a block's rows in the machine's metric, sorted by nearest shard
    shares             how many clusters and rows every shard gets
    movers-000000 ...  rows of a block that may change their shard
    moved              those that do
    shard-000000 ...   a shard's rows, sorted by cluster, and the clusters' means
    clusters           means and sizes of all clusters
    loans-000000 ...   members of some subdomains, and their means

then `partition`, `cover` and `router`, as in every draft. A step whose file is there
does nothing. Memory: the rows of a sample, a block, a shard, or one subdomain; tasks
that join clusters hold row numbers and means of all.
"""

from dataclasses import dataclass, field
from functools import lru_cache, wraps
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._neighbors import block_rows
from .._parallel import one_thread_per_worker
from .._streams import Rows, rows_per_block
from ..cover import Cover, extend_clusters, lending_of
from ..partition import Partition, TwoLevelKMeans, resolve
from ..partition.shards import (
    Coarse,
    Movers,
    Shares,
    least_losses,
    movers_of,
    nearest_shards,
    settle,
    share_clusters,
    split_sample,
)
from ..routing import make_router, subdomain_means
from ..store import result_record
from . import _worker
from ._files import wait_for
from ._worker import Job, run_stage

# Clusters that a task covers, or a few more.
CLUSTERS_PER_TASK = 256
# What the steps of a stage begin with. A draft lacks it if another runner has done the
# stage before; then a worker does the stage as a whole.
FIRST_INPUTS = {"partition": "tune", "cover": "clusters", "router": "loans-000000"}


@dataclass(frozen=True)
class Sharding(Job):
    """A fit whose partition has two levels, and the cover that is made of it."""

    clusterer: TwoLevelKMeans = field(compare=False)
    n_shards: int
    n_samples: int
    block: int  # rows of a block

    @property
    def blocks(self):
        """Numbers of the blocks of rows."""
        return range(-(-self.n_samples // self.block))

    @property
    def ranges(self):
        """Clusters that are covered together: the first, and the one after the last."""
        n_clusters = self.clusterer.n_clusters
        # Blocks of distances begin where they do when all clusters are covered at once.
        block = block_rows(n_clusters)
        step = block * -(-CLUSTERS_PER_TASK // block)
        return [(i, min(i + step, n_clusters)) for i in range(0, n_clusters, step)]


def sharding_of(job, shape) -> Sharding | None:
    """How rows of this shape are to be sharded; None if they make one shard."""
    recipe = job.recipe
    clusterer = resolve(recipe.partition, recipe.shape.n_subdomains, 1, None)
    if not isinstance(clusterer, TwoLevelKMeans):
        return None
    n_shards = clusterer.count_shards(*shape)
    if n_shards == 1:
        return None
    counts = n_shards, shape[0], rows_per_block(shape[1])
    return Sharding(job.folder, job.dtype, job.inputs, recipe, clusterer, *counts)


def steps_of(job, stage, shape):
    """The steps of a stage: a function, a job, and the last arguments of its tasks.

    A step begins when all tasks of the one before are done.
    """
    sharding = sharding_of(job, shape)
    if not sharding or stage == "tune" or not job.draft.holds(FIRST_INPUTS[stage]):
        return [(run_stage, job, [(stage,)])]
    once, blocks = [()], [(b,) for b in sharding.blocks]
    steps = {
        "partition": [
            (split, once),
            (assign, blocks),
            (share, once),
            (list_movers, blocks),
            (move, once),
            (cluster_shard, [(s,) for s in range(sharding.n_shards)]),
            (list_clusters, once),
            (join_shards, once),
            (clear_blocks, once),
        ],
        "cover": [(lend, sharding.ranges), (join_loans, once)],
        "router": [(summarize, once)],
    }
    return [(task, sharding, numbers) for task, numbers in steps[stage]]


# -- files ---------------------------------------------------------------------------


def step(name):
    """Decorate what makes a part of the draft: a task that writes it if it is missing.

    The number of the part, if there are several, is the first argument after the job.
    """

    def decorate(make):
        @wraps(make)
        def task(job, *numbers) -> None:
            part = _numbered(name, *numbers[:1])
            if not job.draft.holds(part):
                job.draft.write(part, make(job, *numbers))

        return task

    return decorate


def _numbered(name, number=None):
    return name if number is None else f"{name}-{number:06d}"


def _read(job, name, number=None) -> Any:
    """A part of the draft, mapped."""
    part = _numbered(name, number)
    wait_for(job.draft.file(part))
    return job.draft.read(part, is_checked=False)  # whole when it got its name


# Of parts that many tasks look at; the name of a draft's folder is used once.
_read_once = lru_cache(maxsize=64)(_read)


@lru_cache(maxsize=1)
def _rows(job) -> Rows:
    """All rows in the machine's metric."""
    return job.fit("partition").X_metric


def _coarse(job) -> Coarse:
    return Coarse(*_read_once(job, "coarse")["value"])


def _shares(job) -> Shares:
    return Shares(*_read_once(job, "shares"))


def forget() -> None:
    """Close the files of a fit, so that they can be deleted everywhere."""
    _read_once.cache_clear()
    _rows.cache_clear()
    _worker.forget()


# -- partition -----------------------------------------------------------------------


@step("coarse")
def split(job):
    """Find the centres of the shards from a sample."""
    fit, own = job.fit("partition"), job.clusterer.random_state
    seeding = fit.rng if own is None else check_random_state(own)
    with one_thread_per_worker():
        coarse = split_sample(fit.X_metric, job.n_shards, seeding)
    return result_record(tuple(coarse), fit)


@step("block")
def assign(job, number):
    """Sort a block of rows by the nearest shard."""
    start = number * job.block
    rows = _rows(job)[start : start + job.block]
    with one_thread_per_worker():
        shards = nearest_shards(rows, _coarse(job))
    order = np.argsort(shards, kind="stable")
    ends = np.cumsum(np.bincount(shards, minlength=job.n_shards))
    return {"numbers": start + order, "rows": rows[order], "ends": ends}


def _group(block, shard):
    """A block's rows that are nearest to a shard: their numbers, and the rows."""
    ends = block["ends"]
    part = slice(ends[shard - 1] if shard else 0, ends[shard])
    return block["numbers"][part], block["rows"][part]


@step("shares")
def share(job):
    """Give every shard its clusters, from the numbers of its rows in all blocks."""
    ends = sum(_read(job, "block", b)["ends"] for b in job.blocks)
    counts, centers = np.diff(ends, prepend=0), _coarse(job).centers
    return tuple(share_clusters(counts, centers, job.clusterer.n_clusters))


@step("movers")
def list_movers(job, number):
    """Of a block, the rows that may have to change their shard."""
    block = _read(job, "block", number)
    return tuple(movers_of(lambda s: _group(block, s), _coarse(job), _shares(job)))


@step("moved")
def move(job):
    """Choose the rows that change their shard, from the lists of all blocks."""
    lists = (Movers(*_read(job, "movers", b)) for b in job.blocks)
    movers = least_losses(lists, _shares(job))
    rows, shards = settle(_rows(job), movers, _coarse(job), _shares(job))
    return {"rows": rows, "shards": shards}


@step("shard")
def cluster_shard(job, shard):
    """Gather the rows of one shard, and cluster them."""
    n_clusters, seed = _shares(job).n_clusters[shard], _coarse(job).seeds[shard]
    numbers, rows = _gather(job, shard, _read_once(job, "moved"))
    if n_clusters == 0:
        return {"numbers": numbers, "rows": rows, "sizes": [], "centers": rows}
    kmeans = job.clusterer.fit_shard(rows, n_clusters, seed)
    order = np.argsort(kmeans.labels_, kind="stable")
    return {
        "numbers": numbers[order],
        "rows": rows[order],
        "sizes": np.bincount(kmeans.labels_),
        "centers": kmeans.cluster_centers_,
    }


def _gather(job, shard, moved):
    """Numbers and rows of a shard, by ascending number."""
    groups = (_group(_read(job, "block", b), shard) for b in job.blocks)
    numbers, rows = map(np.concatenate, zip(*groups))
    stays = ~np.isin(numbers, moved["rows"])
    comes = moved["rows"][moved["shards"] == shard]
    numbers = np.concatenate([numbers[stays], comes])
    order = np.argsort(numbers)
    return numbers[order], np.concatenate([rows[stays], _rows(job)[comes]])[order]


@step("clusters")
def list_clusters(job):
    """Sizes and means of all clusters, from all shards."""
    shards = [_read(job, "shard", s) for s in range(job.n_shards)]
    sizes = [np.asarray(shard["sizes"], dtype=np.intp) for shard in shards]
    centers = np.concatenate([shard["centers"] for shard in shards])
    return {"centers": centers, "sizes": np.concatenate(sizes)}


@step("partition")
def join_shards(job):
    """The partition, from all shards."""
    clusters = _read_once(job, "clusters")
    owners = np.repeat(np.arange(len(clusters["sizes"])), clusters["sizes"])
    shards = [_read(job, "shard", s)["numbers"] for s in range(job.n_shards)]
    labels = np.empty(job.n_samples, dtype=np.intp)
    labels[np.concatenate(shards)] = owners
    return _result(job, Partition(labels, clusters["centers"]))


def clear_blocks(job) -> None:
    """Delete what only the partition needed: as many bytes as the rows."""
    for number in job.blocks:
        for name in ("block", "movers"):
            job.draft.file(_numbered(name, number)).unlink(missing_ok=True)


def _result(job, value):
    """The result of a stage, and where the random numbers of the fit are after it."""
    return _read(job, "coarse") | {"value": value}


# -- cover ---------------------------------------------------------------------------


class _StoredClusters:
    """Rows by cluster, as `overcover.cover.Clusters`, from the files of shards."""

    def __init__(self, job, sizes):
        self.job, self.shares = job, _shares(job)
        self.firsts, self.ends = self.shares.first_clusters, np.cumsum(sizes)
        self.starts = np.cumsum(self.shares.sizes) - self.shares.sizes

    def _part(self, k, name):
        """Numbers or rows of a cluster, from the file of its shard."""
        shard = int(np.searchsorted(self.firsts, k, side="right")) - 1
        first = (self.ends[k - 1] if k else 0) - self.starts[shard]
        last = self.ends[k] - self.starts[shard]
        return _read_once(self.job, "shard", shard)[name][first:last]

    def numbers(self, k):
        return self._part(k, "numbers")

    def rows(self, k):
        return self._part(k, "rows")


@step("loans")
def lend(job, start, stop):
    """The members of some subdomains, which borrow from all shards around."""
    clusters, shape = _read_once(job, "clusters"), job.recipe.shape
    sizes, options = clusters["sizes"], (shape.size, shape.overlap, shape.spread)
    lending = lending_of(clusters["centers"], sizes, *options)
    members = extend_clusters(_StoredClusters(job, sizes), lending, start, stop, 1)
    return {"members": members, "means": subdomain_means(_rows(job), members)}


@step("cover")
def join_loans(job):
    """The cover, from all loans."""
    loans = (_read(job, "loans", start)["members"] for start, _ in job.ranges)
    members = [rows for part in loans for rows in part]
    return _result(job, Cover(members, _read_once(job, "clusters")["sizes"]))


@step("router")
def summarize(job):
    """The router."""
    means = [_read(job, "loans", start)["means"] for start, _ in job.ranges]
    labels, _ = _read(job, "partition")["value"]
    parts = job.recipe.router, _rows(job), _read(job, "cover")["value"], labels
    with one_thread_per_worker():
        router = make_router(*parts, n_jobs=1, means=np.concatenate(means))
    return _result(job, router)
