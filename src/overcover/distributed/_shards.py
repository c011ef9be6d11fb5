"""Partition, cover and router in tasks: each sees a shard of rows, or some clusters.

The same functions as in memory, so the same result, bit by bit, but what passes between
them are files of a draft: shards, shard-000000 ..., loans-000000 ..., then partition,
cover and router. A step whose file is there does nothing.
"""

from functools import wraps

import numpy as np
from sklearn.utils import check_random_state

from .._neighbors import block_rows
from .._parallel import one_thread_per_worker
from ..cover import Cover, extend_clusters
from ..partition import Partition, TwoLevelKMeans, resolve
from ..routing import make_router, subdomain_means
from ..store import result_record
from ._worker import numbered, opened, run_stage

# Clusters that a task covers, or a few more.
CLUSTERS_PER_TASK = 256


def steps_of(job, stage, fit):
    """Functions, one after the other, each with the last arguments of its tasks."""
    once: list[tuple] = [()]
    if stage == "partition" and (n_shards := count_shards(job, fit.data.X.shape)) > 1:
        shards = [(s,) for s in range(n_shards)]
        return [(divide, once), (cluster_shard, shards), (join_shards, once)]
    if stage == "cover":
        return [(lend, ranges_of(len(fit.partition.centers))), (join_loans, once)]
    # Without loans, another runner has made the cover.
    if stage == "router" and job.draft.holds(numbered("loans", 0)):
        return [(summarize, once)]
    return [(run_stage, [(stage,)])]


def count_shards(job, shape) -> int:
    """How many shards rows of this shape make; 1 if their partition has one level."""
    clusterer = _clusterer(job)
    is_sharded = isinstance(clusterer, TwoLevelKMeans)
    return clusterer.count_shards(*shape) if is_sharded else 1


def _clusterer(job):
    recipe = job.recipe
    return resolve(recipe.partition, recipe.shape.n_subdomains, 1, None)


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
            job, part = opened(job), numbered(name, *numbers[:1])
            if not job.draft.holds(part):
                job.draft.write(part, make(job, *numbers))

        return task

    return decorate


@step("shards")
def divide(job):
    """Divide the rows into shards."""
    fit, clusterer = job.fit("tune"), _clusterer(job)
    own = clusterer.random_state
    rng = fit.rng if own is None else check_random_state(own)
    return result_record(tuple(clusterer.divide(fit.X_metric, rng)), fit)


@step("shard")
def cluster_shard(job, shard):
    """Cluster the rows of one shard."""
    return _clusterer(job).fit_shard(job.rows, job.shards, shard)


@step("partition")
def join_shards(job):
    """The partition, from all shards."""
    shards = job.shards
    parts = (job.read("shard", s) for s in range(len(shards.ends)))
    labels, centers, *_ = shards.join(parts)
    return job.read("shards") | {"value": Partition(labels, centers)}


@step("loans")
def lend(job, start, stop):
    """The members of some subdomains, which borrow from all clusters around."""
    shape, which = job.recipe.shape, np.arange(start, stop)
    rows, (clusters, centers) = job.rows, job.clusters
    options = shape.size, shape.overlap, shape.spread, which, 1
    members = extend_clusters(rows, clusters, centers, *options)
    return {"members": members, "means": subdomain_means(rows, members)}


def _loans(job, name):
    """Members or means from all loans."""
    ranges = ranges_of(len(job.clusters[0]))
    return [item for start, _ in ranges for item in job.read("loans", start)[name]]


@step("cover")
def join_loans(job):
    """The cover, from all loans."""
    n_owned = np.array([len(rows) for rows in job.clusters[0]])
    cover = Cover(_loans(job, "members"), n_owned)
    # Random numbers stay as they were after the partition.
    return job.read("partition") | {"value": cover, "notes": []}


@step("router")
def summarize(job):
    """The router."""
    labels, _ = job.read("partition")["value"]
    cover = job.read("cover")
    parts = job.recipe.router, job.rows, cover["value"], labels
    with one_thread_per_worker():
        router = make_router(*parts, n_jobs=1, means=np.array(_loans(job, "means")))
    return cover | {"value": router}
