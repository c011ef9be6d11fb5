r"""Shards: a coarse division of all rows, the first level of `TwoLevelKMeans`.

A sample of the rows gives a centre :math:`c_s` for each shard s. The shard gets
:math:`K_s` of the K clusters, in proportion to the number of rows nearest to
:math:`c_s`. It must then hold :math:`n_s` rows with

.. math:: K_s \lfloor N/K \rfloor \le n_s \le K_s (\lfloor N/K \rfloor + 1),
    \qquad \sum_s n_s = N,

so that equal sizes within every shard are equal sizes everywhere. To reach these
numbers, some rows move to other shards, along the edges of the shortest tree that joins
all centres; shards that share an edge are neighbours in space. Clusters are shared from
the root of the tree to its leaves, so the rows that cross an edge are about one cluster
at most. From shard s to shard t move the rows with the smallest loss

.. math:: \lVert x - c_t \rVert^2 - \lVert x - c_s \rVert^2.

These functions use a sample, a block or a shard of rows, never all rows, so they serve
both a loop on one computer and the tasks of `overcover.distributed`. Blocks depend on
the shape of X only, because the rounding of a distance may depend on its block.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from sklearn.utils.random import sample_without_replacement

from .._neighbors import nearest_centers
from ._arrays import clusters_of, standardize
from ._kmeans import EqualSizeKMeans
from ._seeds import proportional_shares

# Limits of "auto" on the rows of a shard, on their bytes in float64, and the least
# number of clusters per shard.
SHARD_ROWS, SHARD_BYTES, LEAST_CLUSTERS = 50_000, 2**28, 8
# Rows of the sample per shard.
SAMPLED_ROWS = 256


class Coarse(NamedTuple):
    """The centres of the shards."""

    centers: np.ndarray  # shape (n_shards, n_features), in standard units
    mean: np.ndarray  # mean of the sample, shape (n_features,)
    scale: float  # rows are ``(X - mean) / scale`` in standard units
    seeds: np.ndarray  # random seed of every shard, shape (n_shards,)

    def standard(self, rows):
        """Rows in standard units."""
        return (np.asarray(rows, dtype=np.float64) - self.mean) / self.scale


class Shares(NamedTuple):
    """The clusters and rows of every shard, and the moves that lead to them."""

    n_clusters: np.ndarray  # shape (n_shards,); zero for a shard that is dissolved
    sizes: np.ndarray  # number of rows, shape (n_shards,)
    moves: np.ndarray
    """Shape (n_moves, 3): source shard, target shard, number of rows. A shard receives
    rows before it passes rows on."""

    @property
    def first_clusters(self):
        """Index of every shard's first cluster."""
        return np.cumsum(self.n_clusters) - self.n_clusters

    @property
    def n_leaving(self):
        """Number of rows that leave every shard, shape (n_shards,)."""
        n_leaving = np.zeros(len(self.sizes), dtype=np.intp)
        np.add.at(n_leaving, self.moves[:, 0], self.moves[:, 2])
        return n_leaving


class Movers(NamedTuple):
    """Rows that may move."""

    rows: np.ndarray
    moves: np.ndarray  # index of the move of each row
    losses: np.ndarray


def count_shards(n_shards, n_samples, n_features, n_clusters):
    """The number of shards: `n_shards`, but at most one per cluster."""
    if n_shards != "auto":
        return min(n_shards, n_clusters)
    rows = max(1, min(SHARD_ROWS, SHARD_BYTES // (8 * n_features)))
    return max(1, min(-(-n_samples // rows), n_clusters // LEAST_CLUSTERS))


def split_sample(X, n_shards, rng, n_jobs=None) -> Coarse:
    """Centres of equal-size k-means of ``SAMPLED_ROWS * n_shards`` rows at most.

    Only the rows of the sample are read.
    """
    n_sampled = min(SAMPLED_ROWS * n_shards, len(X))
    sample = X[np.sort(sample_without_replacement(len(X), n_sampled, random_state=rng))]
    kmeans = EqualSizeKMeans(n_shards, n_jobs=n_jobs, random_state=rng).fit(sample)
    _, mean, scale = standardize(sample)
    seeds = rng.randint(np.iinfo(np.int32).max, size=n_shards)
    return Coarse((kmeans.cluster_centers_ - mean) / scale, mean, scale, seeds)


def nearest_shards(rows, coarse, n_jobs=None):
    """The shard whose centre is nearest to each row, shape (n_rows,)."""
    standard = coarse.standard(rows)
    return nearest_centers(standard, coarse.centers, 1, n_jobs)[0][:, 0]


def share_clusters(counts, centers, n_clusters) -> Shares:
    """Divide the clusters among the shards, and find the moves that fill them.

    `counts` are the numbers of rows nearest to each of the centres.
    """
    order, parents = spanning_tree(centers)
    branches = counts.copy()  # rows of a shard and of its subtree
    for s in order[:0:-1]:
        branches[parents[s]] += branches[s]
    size, n_larger = divmod(int(counts.sum()), n_clusters)
    # The clusters of a branch are divided between its shard and its sub-branches.
    clusters, larger = np.zeros_like(counts), np.zeros_like(counts)
    clusters[0], larger[0] = n_clusters, n_larger
    children = [np.flatnonzero(parents == s) for s in range(len(counts))]
    sizes = np.empty_like(counts)
    flows = np.zeros_like(counts)  # rows that must leave a branch
    for s in order:
        flows[s] = branches[s] - (clusters[s] * size + larger[s])
        # The shard itself comes last and takes the remainder.
        parts = np.concatenate([children[s], [s]])
        held = np.concatenate([branches[children[s]], counts[[s]]])
        portions = _divided(clusters[s], held, n_clusters, int(counts.sum()))
        larger[parts] = _larger_clusters(held, portions, size, larger[s])
        clusters[parts] = portions
        sizes[s] = clusters[s] * size + larger[s]
    up = [(s, parents[s], flows[s]) for s in order[:0:-1] if flows[s] > 0]
    down = [(parents[s], s, -flows[s]) for s in order[1:] if flows[s] < 0]
    moves = np.array(up + down, dtype=np.intp).reshape(-1, 3)
    return Shares(clusters, sizes, moves)


def spanning_tree(centers):
    """The shortest tree that joins all centres, with centre 0 as its root.

    Returns the centres in an order where each comes after its parent, and the parents
    of all, -1 for centre 0. Memory: O(n_centers); time: O(n_centers^2 n_features).
    """
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
    """`total` clusters in proportion to counts; the last takes the remainder.

    The others round to the nearest number, so that errors do not add up along the tree.
    """
    portions = (2 * counts * n_clusters + n_samples) // (2 * n_samples)
    portions[-1] = total - portions[:-1].sum()
    if 0 <= portions[-1] <= counts[-1]:
        return portions
    # The last has too few rows for the remainder.
    return proportional_shares(counts, total) if counts.any() else 0 * counts


def _larger_clusters(counts, portions, size, n_larger):
    """How many of the clusters have ``size + 1`` rows: first where there are rows."""
    larger = _filled(np.clip(counts - portions * size, 0, portions), n_larger)
    left = n_larger - int(larger.sum())
    return larger + _filled((portions - larger)[::-1], left)[::-1]


def _filled(capacities, total):
    """Fill capacities with `total`, one after the other."""
    before = np.cumsum(capacities) - capacities
    return np.clip(total - before, 0, capacities)


def movers_of(group, coarse, shares) -> Movers:
    """The rows of a block with the smallest losses, for every move.

    ``group(shard)`` returns the rows of the block that are nearest to the shard: their
    numbers, ascending, and the rows, shape (n_rows, n_features).
    """
    lists = [_no_movers()]
    for move, (source, target, _) in enumerate(shares.moves):
        numbers, rows = group(source)
        losses = _losses(coarse.standard(rows), coarse, source, target)
        lists.append(Movers(numbers, np.full(len(numbers), move), losses))
    return least_losses([Movers(*map(np.concatenate, zip(*lists)))], shares)


def _losses(standard, coarse, source, target):
    here, there = coarse.centers[source], coarse.centers[target]
    return np.sum((standard - there) ** 2 - (standard - here) ** 2, axis=1)


def _no_movers():
    return Movers(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


def least_losses(lists: Iterable[Movers], shares) -> Movers:
    """The rows with the smallest losses, for every move, from the lists of blocks.

    For each move, as many rows as leave its shard in all moves together, so that enough
    remain when other moves take some of them. Ties go to the lower row number. Memory:
    the result, and one list.
    """
    most = shares.n_leaving[shares.moves[:, 0]]
    kept = _no_movers()
    for movers in lists:
        both = Movers(*map(np.concatenate, zip(kept, movers)))
        order = np.lexsort((both.rows, both.losses, both.moves))
        moves = both.moves[order]
        place = np.arange(len(order)) - np.searchsorted(moves, moves)
        chosen = order[place < most[moves]]
        kept = Movers(*(field[chosen] for field in both))
    return kept


def settle(X, movers, coarse, shares):
    """Move rows, along one edge of the tree after the other.

    `movers` is the result of `least_losses` for all blocks; only their rows of X are
    read. Returns the rows that leave their nearest shard, ascending, and their new
    shards.
    """
    rows, first = np.unique(movers.rows, return_index=True)
    nearest = shares.moves[movers.moves[first], 0]
    standard = coarse.standard(X[rows])
    pools = clusters_of(nearest, len(coarse.centers))
    for source, target, count in shares.moves:
        # A row that came from another shard may move on.
        pool = np.sort(pools[source])
        losses = _losses(standard[pool], coarse, source, target)
        order = np.argsort(losses, kind="stable")
        pools[source] = pool[order[count:]]
        pools[target] = np.concatenate([pools[target], pool[order[:count]]])
    shards = np.empty_like(nearest)
    for shard, pool in enumerate(pools):
        shards[pool] = shard
    moved = shards != nearest
    return rows[moved], shards[moved]
