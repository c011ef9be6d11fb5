r"""Partition: clusters of equal size, each the core of one local machine.

    X, Y -> metric -> [partition] -> cover -> machines -> routing -> combination
    -> prediction

With equal sizes, all local machines cost the same. A partition of the N rows into K
clusters approximately minimises

.. math:: J = \sum_k \sum_{i \in C_k} \lVert x_i - \mu_k \rVert^2
    \quad\text{subject to}\quad |C_k| \in \{\lfloor N/K \rfloor, \lceil N/K \rceil\},

with :math:`\mu_k` the mean of cluster :math:`C_k`. `EqualSizeKMeans` has the lowest J,
`RecursiveProjection` is the fastest, and `TwoLevelKMeans` is for more rows than fit in
memory.

Notation: the paper's K is ``n_clusters`` here, and ``n_subdomains_`` in later stages.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._neighbors import distance_flops
from .._records import finite, record, whole
from ._arrays import (
    N_COMPONENTS,
    cluster_means,
    clusters_of,
    principal_rows,
    standardize,
)
from ._kmeans import MANY_SEEDS, N_STARTS, EqualSizeKMeans
from ._projection import RecursiveProjection
from .shards import TwoLevelKMeans, count_shards

__all__ = ["EqualSizeKMeans", "Partition", "RecursiveProjection", "TwoLevelKMeans"]
__all__ += ["clusters_of", "partition_cost", "partition_rows"]

# Rows wider than this are partitioned in their principal components; those of at most
# this many columns only if the components hold this share of their variance.
MOST_COLUMNS, FEW_COLUMNS, ENOUGH = 1000, 100, 0.7
# More clusters than this need two levels: with one, the distances of all rows to all
# centres would take most of the time of a fit.
MANY_CLUSTERS = 2000


@record(centers=finite("K d"), labels=whole("N", 0, "K"))
class Partition(NamedTuple):
    """The cluster of each row."""

    labels: NDArray[np.intp]
    """Cluster of each row, shape (n_samples,), from 0 to n_clusters - 1."""

    centers: NDArray[np.float64]
    """Means of the clusters, shape (n_clusters, n_features)."""

    def clusters(self) -> list[NDArray[np.intp]]:
        """Rows of each cluster, in ascending order; see `clusters_of`."""
        return clusters_of(self.labels, len(self.centers))


def partition_rows(
    X: np.ndarray,
    n_clusters: int,
    method: Any = "kmeans",
    n_jobs: int | None = None,
    random_state: Any = None,
) -> Partition:
    """Partition rows by a named method, or by a clusterer.

    "kmeans", "ab" and "imda" are `EqualSizeKMeans` with balance "refined", "ab" and
    "imda"; "rpc" is `RecursiveProjection`, "two-level" is `TwoLevelKMeans`, and so is
    "kmeans" above ``MANY_CLUSTERS``. A clusterer is cloned; a foreign one may return
    clusters of unequal size. Memory: two copies of X in float64, or of its principal
    components if it has more than ``MOST_COLUMNS`` columns, or of a shard.

    >>> X = np.array([[0.0], [5.0], [1.0], [6.0]])
    >>> partition = partition_rows(X, 2, random_state=0)
    >>> sorted(rows.tolist() for rows in partition.clusters())
    [[0, 2], [1, 3]]
    """
    random_state = check_random_state(random_state)
    clusterer = resolve(method, n_clusters, n_jobs, random_state)
    if isinstance(clusterer, TwoLevelKMeans) and clusterer.count_shards(*X.shape) > 1:
        clusterer.fit_rows(X)
        return Partition(clusterer.labels_, clusterer.cluster_centers_)
    is_ours = isinstance(clusterer, EqualSizeKMeans | RecursiveProjection)
    if is_ours and X.shape[1] > FEW_COLUMNS:
        least = ENOUGH if X.shape[1] <= MOST_COLUMNS else 0.0
        Z = principal_rows(X, random_state, least)
        if Z is not None:
            labels = clusterer.fit_predict(Z)
            clusters = clusters_of(labels, n_clusters)
            centers = np.array([X[rows].mean(axis=0) for rows in clusters])
            return Partition(labels, centers)
    X = np.asarray(X)
    raw_labels = clusterer.fit_predict(X)
    if is_ours:
        return Partition(clusterer.labels_, clusterer.cluster_centers_)
    # Labels of a foreign clusterer may skip numbers, or mark noise by -1.
    distinct, labels = np.unique(raw_labels, return_inverse=True)
    rows, mean, scale = standardize(X)
    return Partition(labels, cluster_means(rows, labels, len(distinct)) * scale + mean)


def resolve(method, n_clusters, n_jobs, random_state):
    """The clusterer that `method` names, ready to fit."""
    is_many = n_clusters > MANY_CLUSTERS
    named = {
        "kmeans": TwoLevelKMeans() if is_many else EqualSizeKMeans(balance="refined"),
        "ab": EqualSizeKMeans(balance="ab"),
        "imda": EqualSizeKMeans(balance="imda"),
        "rpc": RecursiveProjection(),
        "two-level": TwoLevelKMeans(),
    }
    if not isinstance(method, str) and hasattr(method, "fit_predict"):
        clusterer = clone(method)
    elif isinstance(method, str) and method in named:
        clusterer = named[method]
    else:
        raise ValueError(
            f"partition={method!r} is not known. Choose one of "
            f"{', '.join(map(repr, named))}, or give a clusterer with fit_predict, "
            "such as EqualSizeKMeans()."
        )
    params = clusterer.get_params(deep=False)
    defaults = {"n_jobs": n_jobs, "random_state": random_state}
    changes = {k: v for k, v in defaults.items() if k in params and params[k] is None}
    if "n_clusters" in params:
        changes["n_clusters"] = n_clusters
    return clusterer.set_params(**changes)


class PartitionCost(NamedTuple):
    """What `partition_rows` takes by "kmeans"; operations as in `dense_flops`."""

    distances: float  # operations that threads share
    exchanges: float  # operations of one thread, to make sizes equal
    n_bytes: float


def partition_cost(
    n_samples, n_features, n_clusters, n_jobs=1, n_shards=None
) -> PartitionCost:
    """Operations and bytes of a partition, with `n_jobs` shards in memory together."""
    width = n_features if n_features <= MOST_COLUMNS else N_COMPONENTS
    if n_shards is None and n_clusters > MANY_CLUSTERS:
        n_shards = count_shards("auto", n_samples, width, n_clusters)
    n_shards = n_shards or 1
    # A row meets the centres of its shard 18 times, seeds 30 times from every start.
    n_met = n_clusters / n_shards
    n_distances = n_samples * (18 * n_met + 30 * N_STARTS * min(n_met, MANY_SEEDS))
    # It may move to the 64 nearest clusters.
    exchange = (3e6 + 3e4 * width) * min(1.0, n_clusters / 64)
    # X in float64 twice, and some numbers for every row.
    n_copied = n_samples * min(1.0, n_jobs / n_shards)
    n_bytes = 16.0 * n_copied * width + 200.0 * n_samples
    distances = n_distances * distance_flops(width)
    return PartitionCost(distances, n_samples * exchange, n_bytes)
