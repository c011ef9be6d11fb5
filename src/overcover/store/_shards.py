"""Partition and cover in tasks: each sees a block, a shard, or some clusters, of files.

    X, Y -> metric -> [partition] -> [cover] -> machines -> routing -> combination
    -> prediction

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

then `partition`, `cover` and `router`, the stages of every draft. A task that finds its
file whole does nothing. Nobody holds more rows than a sample, a block, a shard, or one
subdomain; row numbers and means of all clusters are held by the tasks that join them.
"""

import os
import time
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from .._neighbors import block_rows
from .._parallel import one_thread_per_worker
from .._streams import Rows, rows_per_block, without_far_cells
from ..cover import Cover, CoverShape, extend_clusters, lending_of
from ..partition import Partition, TwoLevelKMeans, resolve
from ..partition._shards import (
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
from ._codec import encode
from ._draft import fingerprint_in
from ._pack import SUFFIX, StoreError, identity_of, open_pack, write_pack
from ._subdomains import decode_pack

# Clusters that a task covers, or a few more.
CLUSTERS_PER_TASK = 256
# Seconds between looks, and until a file must be seen that another computer wrote.
PAUSE, PATIENCE = 0.1, 30.0


class Sharding(NamedTuple):
    """A partition in two levels, and the cover that is made of it."""

    folder: str
    """Of the draft, with the metric."""

    X: str
    """Path of the rows."""

    clusterer: TwoLevelKMeans
    n_shards: int
    n_samples: int
    block: int
    """Rows of a block."""

    shape: CoverShape

    def file(self, name, number=None):
        """Where a step keeps its work."""
        numbered = name if number is None else f"{name}-{number:06d}"
        return Path(self.folder) / f"{numbered}{SUFFIX}"


def sharding_of(model, X, y, path, folder) -> Sharding | None:
    """How a model's rows are to be sharded; None if they fit in one shard.

    Parameters
    ----------
    model : OverlappingCoverRegressor
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,) or (n_samples, n_outputs)
    path : str
        Of the file that X is mapped from.
    folder : path
        Of the draft.
    """
    if X.ndim != 2 or 0 in X.shape or len(y) != len(X):
        return None  # refused elsewhere
    n_outputs = y.shape[1] if y.ndim > 1 else 1
    shape = CoverShape.of(model, len(X), n_outputs)
    clusterer = resolve(model.partition, shape.n_subdomains, 1, None)
    if not isinstance(clusterer, TwoLevelKMeans):
        return None
    n_shards = clusterer.count_shards(*X.shape)
    if n_shards == 1:
        return None
    blocks = len(X), rows_per_block(X.shape[1])
    return Sharding(str(folder), path, clusterer, n_shards, *blocks, shape)


def block_numbers(job: Sharding) -> range:
    """Numbers of the blocks of rows."""
    return range(-(-job.n_samples // job.block))


def cluster_ranges(job: Sharding) -> list[tuple[int, int]]:
    """Clusters that are covered together: the first, and the one after the last."""
    n_clusters = job.clusterer.n_clusters
    # Blocks of distances begin where they do when all clusters are covered at once.
    block = block_rows(n_clusters)
    step = block * -(-CLUSTERS_PER_TASK // block)
    return [(i, min(i + step, n_clusters)) for i in range(0, n_clusters, step)]


# -- files ---------------------------------------------------------------------------


def _write(path, make):
    """Write what `make` gives, unless it is there."""
    try:
        open_pack(path, draft=_fingerprint(path.parent))
    except StoreError:  # not there, damaged, or of another fit
        made = encode(make(), path.stem)
        write_pack(path, *made, _fingerprint(path.parent))


def _read(path) -> Any:
    """What `_write` wrote, mapped; a file that has its name is whole."""
    until = time.monotonic() + PATIENCE
    while True:
        try:
            known = identity_of(os.stat(path))
            break
        except OSError as error:
            if time.monotonic() > until:
                raise StoreError(
                    f"{path} is not there: {error.strerror}. Every worker must see the "
                    "store under the same path, and nobody may discard the fit "
                    "meanwhile."
                ) from error
        time.sleep(PAUSE)
    return decode_pack(path, known=known, draft=_fingerprint(path.parent))[0]


# Read once per process: the name of a draft's folder is used once.
_fingerprint = lru_cache(maxsize=8)(fingerprint_in)
# Opened once per process: files of a draft never change.
_opened = lru_cache(maxsize=64)(_read)


@lru_cache(maxsize=1)
def _X(path):
    return np.load(path, mmap_mode="r")


@lru_cache(maxsize=1)
def _scaled(metric, path):
    machine, _ = _read(metric)["value"]
    return without_far_cells(Rows(_X(path), machine.length_scales(_X(path))))


def _rows(job) -> Rows:
    """All rows in the machine's metric."""
    return _scaled(job.file("metric"), job.X)


def _coarse(job) -> Coarse:
    return Coarse(*_opened(job.file("coarse"))["value"])


def _shares(job) -> Shares:
    return Shares(*_opened(job.file("shares")))


def forget() -> None:
    """Close all files."""
    for cache in (_opened, _X, _scaled, _fingerprint):
        cache.cache_clear()


# -- partition -----------------------------------------------------------------------


def split(job: Sharding) -> None:
    """Find the centres of the shards from a sample."""

    def make():
        # As in a fit, whose random numbers go on where the metric left them.
        rng = check_random_state(None)
        before = _read(job.file("metric"))["random_state"]
        if before is not None:
            rng = np.random.RandomState(0)
            rng.set_state(before)
        asked = job.clusterer.random_state
        seeding = rng if asked is None else check_random_state(asked)
        with one_thread_per_worker():
            coarse = split_sample(_rows(job), job.n_shards, seeding)
        after = None if before is None else rng.get_state()
        return {"value": tuple(coarse), "random_state": after}

    _write(job.file("coarse"), make)


def assign(job: Sharding, number: int) -> None:
    """Sort a block of rows by the nearest shard."""

    def make():
        X = _rows(job)
        start = number * job.block
        rows = X[start : start + job.block]
        with one_thread_per_worker():
            shards = nearest_shards(rows, _coarse(job))
        order = np.argsort(shards, kind="stable")
        counts = np.bincount(shards, minlength=job.n_shards)
        return {
            "numbers": start + order,
            "rows": rows[order],
            "ends": np.cumsum(counts),
        }

    _write(job.file("block", number), make)


def _group(block, shard):
    """A block's rows that are nearest to a shard: their numbers, and the rows."""
    ends = block["ends"]
    part = slice(ends[shard - 1] if shard else 0, ends[shard])
    return block["numbers"][part], block["rows"][part]


def share(job: Sharding) -> None:
    """Give every shard its clusters, from the numbers of its rows in all blocks."""

    def make():
        ends = sum(_read(job.file("block", b))["ends"] for b in block_numbers(job))
        counts = np.diff(ends, prepend=0)
        centers = _coarse(job).centers
        return tuple(share_clusters(counts, centers, job.clusterer.n_clusters))

    _write(job.file("shares"), make)


def list_movers(job: Sharding, number: int) -> None:
    """Of a block, the rows that may have to change their shard."""

    def make():
        block = _read(job.file("block", number))
        found = movers_of(lambda s: _group(block, s), _coarse(job), _shares(job))
        return tuple(found)

    _write(job.file("movers", number), make)


def move(job: Sharding) -> None:
    """Choose the rows that change their shard, from the lists of all blocks."""

    def make():
        shares, paths = (
            _shares(job),
            [job.file("movers", b) for b in block_numbers(job)],
        )
        movers = least_losses((Movers(*_read(path)) for path in paths), shares)
        rows, shards = settle(_rows(job), movers, _coarse(job), shares)
        return {"rows": rows, "shards": shards}

    _write(job.file("moved"), make)


def cluster_shard(job: Sharding, shard: int) -> None:
    """Gather the rows of one shard, and cluster them."""

    def make():
        shares, moved = _shares(job), _opened(job.file("moved"))
        n_clusters, seed = shares.n_clusters[shard], _coarse(job).seeds[shard]
        numbers, rows = _gather(job, shard, moved)
        if n_clusters == 0:
            return {"numbers": numbers, "rows": rows, "sizes": [], "centers": rows}
        found = job.clusterer.fit_shard(rows, n_clusters, seed)
        order = np.argsort(found.labels_, kind="stable")
        return {
            "numbers": numbers[order],
            "rows": rows[order],
            "sizes": np.bincount(found.labels_),
            "centers": found.cluster_centers_,
        }

    _write(job.file("shard", shard), make)


def _gather(job, shard, moved):
    """Numbers and rows of a shard, by ascending number."""
    groups = (_group(_read(job.file("block", b)), shard) for b in block_numbers(job))
    numbers, rows = map(np.concatenate, zip(*groups))
    stays = ~np.isin(numbers, moved["rows"])
    comes = moved["rows"][moved["shards"] == shard]
    numbers = np.concatenate([numbers[stays], comes])
    order = np.argsort(numbers)
    return numbers[order], np.concatenate([rows[stays], _rows(job)[comes]])[order]


def join_shards(job: Sharding) -> None:
    """The partition, from all shards."""
    shards = [_read(job.file("shard", s)) for s in range(job.n_shards)]
    sizes = np.concatenate([np.asarray(s["sizes"], dtype=np.intp) for s in shards])
    centers = np.concatenate([s["centers"] for s in shards])

    def make():
        labels = np.empty(job.n_samples, dtype=np.intp)
        owners, done = np.repeat(np.arange(len(sizes)), sizes), 0
        for shard in shards:
            numbers = shard["numbers"]
            labels[numbers] = owners[done : done + len(numbers)]
            done += len(numbers)
        found = Partition(labels, centers)
        return {"value": found, "random_state": _after(job)}

    _write(job.file("clusters"), lambda: {"centers": centers, "sizes": sizes})
    _write(job.file("partition"), make)
    for number in block_numbers(job):  # as many bytes as the rows
        for name in ("block", "movers"):
            job.file(name, number).unlink(missing_ok=True)


# -- cover ---------------------------------------------------------------------------


class _StoredClusters:
    """Rows by cluster, as `overcover.cover.Clusters`, from the files of shards."""

    def __init__(self, job, sizes):
        self.job, self.shares = job, _shares(job)
        self.firsts, self.ends = self.shares.first_clusters, np.cumsum(sizes)
        self.starts = np.cumsum(self.shares.sizes) - self.shares.sizes

    def part(self, k):
        """The shard's file of a cluster, and where in it the cluster is."""
        shard = int(np.searchsorted(self.firsts, k, side="right")) - 1
        first = (self.ends[k - 1] if k else 0) - self.starts[shard]
        last = self.ends[k] - self.starts[shard]
        return _opened(self.job.file("shard", shard)), slice(first, last)

    def numbers(self, k):
        found, part = self.part(k)
        return found["numbers"][part]

    def rows(self, k):
        found, part = self.part(k)
        return found["rows"][part]


def lend(job: Sharding, start: int, stop: int) -> None:
    """The members of some subdomains, which borrow from all shards around."""

    def make():
        known = _opened(job.file("clusters"))
        clusters = _StoredClusters(job, known["sizes"])
        sizes = job.shape.size, job.shape.overlap, job.shape.spread
        lending = lending_of(known["centers"], known["sizes"], *sizes)
        members = extend_clusters(clusters, lending, start, stop, 1)
        return {"members": members, "means": subdomain_means(_rows(job), members)}

    _write(job.file("loans", start), make)


def join_loans(job: Sharding) -> None:
    """The cover, from all loans."""

    def make():
        loans = [_read(job.file("loans", start)) for start, _ in cluster_ranges(job)]
        members = [rows for part in loans for rows in part["members"]]
        cover = Cover(members, _opened(job.file("clusters"))["sizes"])
        return {"value": cover, "random_state": _after(job)}

    _write(job.file("cover"), make)


def summarize(job: Sharding, name: str) -> None:
    """The router called `name`."""

    def make():
        loans = [_read(job.file("loans", start)) for start, _ in cluster_ranges(job)]
        means = np.concatenate([part["means"] for part in loans])
        labels, _ = _read(job.file("partition"))["value"]
        known = name, _rows(job), _read(job.file("cover"))["value"], labels
        with one_thread_per_worker():
            router = make_router(*known, n_jobs=1, means=means)
        return {"value": router, "random_state": _after(job)}

    _write(job.file("router"), make)


def _after(job):
    """Where the random numbers of the fit are after the partition."""
    return _read(job.file("coarse"))["random_state"]
