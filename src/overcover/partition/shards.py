r"""Two-level k-means: `TwoLevelKMeans`, shards first and clusters within each.

A sample of the rows gives a centre :math:`c_s` for each shard s, which gets :math:`K_s`
of the K clusters. So that equal sizes within shards are equal everywhere, it must hold

.. math:: K_s \lfloor N/K \rfloor \le n_s \le K_s (\lfloor N/K \rfloor + 1)

rows. To reach these numbers, the rows with the least loss :math:`\lVert x - c_t
\rVert^2 - \lVert x - c_s \rVert^2` move along the edges of the shortest tree that joins
all centres, about one cluster an edge. Blocks of rows depend on the shape of X only.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.random import sample_without_replacement

from .._neighbors import nearest_centers
from .._numbers import ANY_NUMBER
from .._parallel import one_thread_per_worker, run_tasks
from .._streams import Rows, slices_of
from .._validation import check_count, check_rows
from ._arrays import standardize
from ._kmeans import EqualSizeKMeans, check_n_clusters, proportional_shares

# Limits of "auto" on the rows of a shard, on their bytes in float64, and the least
# number of clusters per shard.
SHARD_ROWS, SHARD_BYTES, LEAST_CLUSTERS = 50_000, 2**28, 8
# Rows of the sample per shard.
SAMPLED_ROWS = 256


class Shards(NamedTuple):
    """The rows of every shard, and what decides its clusters."""

    order: np.ndarray  # all row numbers, by shard, ascending within each
    ends: np.ndarray  # of every shard in `order`, shape (n_shards,)
    n_clusters: np.ndarray  # shape (n_shards,)
    seeds: np.ndarray  # random seed of every shard, shape (n_shards,)

    def rows(self, shard):
        """Row numbers of a shard."""
        return self.order[self.ends[shard - 1] if shard else 0 : self.ends[shard]]

    def join(self, parts):
        """Labels, centres, sum of J and most iterations, from those of the shards."""
        labels, centers = np.empty(len(self.order), dtype=np.intp), []
        n_clusters, inertia, most = 0, 0.0, 0
        for shard, part in enumerate(parts):
            labels[self.rows(shard)] = n_clusters + part[0]
            centers.append(part[1])
            n_clusters += len(part[1])
            inertia, most = inertia + part[2], max(most, part[3])
        return labels, np.concatenate(centers), inertia, most


def count_shards(n_shards, n_samples, n_features, n_clusters):
    """The number of shards: `n_shards`, but at most one per cluster."""
    if n_shards != "auto":
        return min(n_shards, n_clusters)
    rows = max(1, min(SHARD_ROWS, SHARD_BYTES // (8 * n_features)))
    return max(1, min(-(-n_samples // rows), n_clusters // LEAST_CLUSTERS))


def split_sample(X, n_shards, rng, n_jobs=None):
    """Rows in standard units, and there the centres of the shards, from a sample.

    The sample has ``SAMPLED_ROWS * n_shards`` rows at most.
    """
    n_sampled = min(SAMPLED_ROWS * n_shards, len(X))
    sample = X[np.sort(sample_without_replacement(len(X), n_sampled, random_state=rng))]
    kmeans = EqualSizeKMeans(n_shards, n_jobs=n_jobs, random_state=rng).fit(sample)
    _, mean, scale = standardize(sample)
    return Rows(X, scale, mean), (kmeans.cluster_centers_ - mean) / scale


def share_clusters(counts, centers, n_clusters):
    """Clusters and rows of every shard, by its rows `counts`; the moves to these rows.

    A move has a source, a target and a number of rows; a shard receives rows before it
    passes rows on. A shard without clusters is dissolved.
    """
    order, parents = spanning_tree(centers)
    branches = counts.copy()  # rows of a shard and of its subtree
    for s in order[:0:-1]:
        branches[parents[s]] += branches[s]
    size, n_larger = divmod(int(counts.sum()), n_clusters)
    # The clusters of a branch are divided between its shard and its sub-branches.
    clusters, larger = np.zeros_like(counts), np.zeros_like(counts)
    clusters[0], larger[0] = n_clusters, n_larger
    flows = np.zeros_like(counts)  # rows that must leave a branch
    for s in order:
        flows[s] = branches[s] - (clusters[s] * size + larger[s])
        # The shard itself comes last and takes the remainder.
        children = np.flatnonzero(parents == s)
        held = np.append(branches[children], counts[s])
        portions = _divided(clusters[s], held, n_clusters, int(counts.sum()))
        # Clusters with a row more: first where there are rows.
        more = _filled(np.clip(held - portions * size, 0, portions), larger[s])
        rest = _filled((portions - more)[::-1], larger[s] - more.sum())[::-1]
        parts = np.append(children, s)
        clusters[parts], larger[parts] = portions, more + rest
    up = [(s, parents[s], flows[s]) for s in order[:0:-1] if flows[s] > 0]
    down = [(parents[s], s, -flows[s]) for s in order[1:] if flows[s] < 0]
    moves = np.array(up + down, dtype=np.intp).reshape(-1, 3)
    return clusters, clusters * size + larger, moves


def spanning_tree(centers):
    """The shortest tree that joins all centres from centre 0: an order, and parents."""
    parents = np.full(len(centers), -1)
    nearest_sq, order = np.full(len(centers), np.inf), [0]
    for _ in range(1, len(centers)):
        last = order[-1]
        dist_sq = np.sum((centers - centers[last]) ** 2, axis=1)
        nearest_sq[last] = -np.inf  # marks centres in the tree
        nearer = dist_sq < nearest_sq
        parents[nearer], nearest_sq[nearer] = last, dist_sq[nearer]
        order.append(int(np.argmin(np.where(nearest_sq < 0, np.inf, nearest_sq))))
    return order, parents


def _divided(total, counts, n_clusters, n_samples):
    """`total` clusters in proportion to counts; the last takes the remainder."""
    portions = (2 * counts * n_clusters + n_samples) // (2 * n_samples)
    portions[-1] = total - portions[:-1].sum()
    if 0 <= portions[-1] <= counts[-1]:
        return portions
    # The last has too few rows for the remainder.
    return proportional_shares(counts, total) if counts.any() else 0 * counts


def _filled(capacities, total):
    """Fill capacities with `total`, one after the other."""
    before = np.cumsum(capacities) - capacities
    return np.clip(total - before, 0, capacities)


def assign_shards(rows, centers, n_clusters, n_jobs=None):
    """The shard of every row, and the clusters of every shard; in blocks of rows."""
    shards = np.empty(len(rows), dtype=np.int32)
    for block in slices_of(*rows.shape):
        shards[block] = nearest_centers(rows[block], centers, 1, n_jobs)[0][:, 0]
    counts = np.bincount(shards, minlength=len(centers))
    clusters, _, moves = share_clusters(counts, centers, n_clusters)
    move_rows(rows, centers, shards, moves)
    return shards, clusters


def move_rows(rows, centers, shards, moves) -> None:
    """Move the rows that lose least along each edge of the tree; ties to lower rows."""
    for source, target, count in moves:
        here = np.flatnonzero(shards == source)
        losses = np.empty(len(here))
        for block in slices_of(len(here), rows.shape[1]):
            standard = rows[here[block]]
            differences = (standard - centers[target]) ** 2
            differences -= (standard - centers[source]) ** 2
            losses[block] = differences.sum(axis=1)
        shards[here[np.argsort(losses, kind="stable")[:count]]] = target


@dataclass(eq=False, repr=False, kw_only=True)
class TwoLevelKMeans(EqualSizeKMeans):
    r"""Equal-size k-means for more rows than fit in memory: shards, then clusters.

    Choose it over `EqualSizeKMeans` if X is mapped from a file and too large for
    memory, or on a cluster of computers, where every shard is a task. Its J is at most
    a few per cent higher. Equal-size k-means of a sample gives the centres of shards.
    Every row goes to the shard with the nearest centre, except a few rows that move so
    that numbers come out even. Then equal-size k-means divides each shard into its
    clusters. The sizes of all clusters differ by at most one. With one shard, it is
    `EqualSizeKMeans`.

    Memory: per thread, two copies of a shard in float64 and 200 bytes for each of its
    rows. In addition, 20 bytes per row of X, and a sample of 256 rows per shard. X is
    read in blocks of 16 MB; it may be mapped and have any type of numbers.

    Parameters
    ----------
    n_clusters, balance, max_iter, n_jobs, random_state
        As in `EqualSizeKMeans`.
    n_shards : "auto" or int, default="auto"
        "auto" chooses shards of about 50,000 rows, or 256 MB if rows are wide, and at
        least 8 clusters. There is at most one shard per cluster.

    Attributes
    ----------
    labels_, cluster_centers_, inertia_, n_iter_
        As in `EqualSizeKMeans`. Clusters of one shard have consecutive numbers; the
        iterations are those of the shard that needed most.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover.partition import TwoLevelKMeans
    >>> X = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> model = TwoLevelKMeans(30, n_shards=4, random_state=0).fit(X)
    >>> sorted(set(np.bincount(model.labels_).tolist()))
    [33, 34]
    """

    n_shards: Any = "auto"

    def fit(self, X, y=None):
        """Partition the rows of X, which may be mapped from a file; y is ignored."""
        X = check_rows(self, X, reset=True, dtypes=ANY_NUMBER, order=None)
        if self.count_shards(*X.shape) == 1:
            return super().fit(X)
        return self.fit_rows(X)

    def fit_rows(self, X):
        """`fit` without input checks, for two shards or more; X may also be `Rows`."""
        shards = self.divide(X, check_random_state(self.random_state))
        tasks = ((X, shards, s) for s in range(len(shards.ends)))
        parts = run_tasks(self.fit_shard, tasks, self.n_jobs)
        self.labels_, self.cluster_centers_, *rest = shards.join(parts)
        self.inertia_, self.n_iter_ = rest
        return self

    def divide(self, X, rng) -> Shards:
        """The rows of all shards; X is read in blocks."""
        n_shards = self.count_shards(*X.shape)
        with one_thread_per_worker():
            rows, centers = split_sample(X, n_shards, rng, self.n_jobs)
            seeds = rng.randint(np.iinfo(np.int32).max, size=n_shards)
            known = rows, centers, self.n_clusters, self.n_jobs
            shards, n_clusters = assign_shards(*known)
        ends = np.cumsum(np.bincount(shards, minlength=n_shards))
        return Shards(np.argsort(shards, kind="stable"), ends, n_clusters, seeds)

    def count_shards(self, n_samples, n_features):
        """The number of shards for data of this shape; refuses wrong parameters."""
        check_n_clusters(self.n_clusters, n_samples)
        self._check_options()
        if not (isinstance(self.n_shards, str) and self.n_shards == "auto"):
            advice = "Or 'auto', for shards of about 50,000 rows."
            check_count("n_shards", self.n_shards, 1, advice)
        return count_shards(self.n_shards, n_samples, n_features, self.n_clusters)

    def fit_shard(self, X, shards, s):
        """Labels, centres, J and iterations of one shard's rows; on one thread."""
        rows = X[shards.rows(s)]
        if not len(rows):
            return np.empty(0, dtype=np.intp), rows, 0.0, 0
        kmeans = EqualSizeKMeans(
            int(shards.n_clusters[s]),
            balance="ab" if self.balance == "assign" else self.balance,
            max_iter=self.max_iter,
            n_jobs=1,
            random_state=int(shards.seeds[s]),
        ).fit(rows)
        fitted = kmeans.labels_, kmeans.cluster_centers_, kmeans.inertia_
        return *fitted, kmeans.n_iter_
