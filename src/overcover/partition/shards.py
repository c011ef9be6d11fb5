r"""Shards: a coarse split of all rows, made from a sample and looked at in blocks.

The first level of `TwoLevelKMeans`. Shard s has a centre :math:`c_s`, found from a
sample, and gets :math:`K_s` of the K clusters in proportion to the rows nearest to
:math:`c_s`. It must then hold :math:`n_s` rows with

.. math:: K_s \lfloor N/K \rfloor \le n_s \le K_s (\lfloor N/K \rfloor + 1),
    \qquad \sum_s n_s = N,

so that clusters of equal size within every shard are of equal size everywhere. Rows in
excess move along the shortest tree that joins all centres, whose neighbours are
neighbours in space. Shares are made from its root to its leaves, so each edge carries
about a cluster at most: of the shard s that gives, to t, the rows that lose least,

.. math:: \lVert x - c_t \rVert^2 - \lVert x - c_s \rVert^2.

Functions of this module see a sample, a block or a shard of rows, never all; so the
same ones serve a loop on one computer and the tasks of `overcover.distributed`. Blocks
depend on the shape of X alone: the rounding of a distance may depend on its block.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from sklearn.utils.random import sample_without_replacement

from .._neighbors import nearest_centers
from ._arrays import clusters_of, standardize
from ._kmeans import EqualSizeKMeans
from ._seeds import proportional_shares

SHARD_ROWS, SHARD_BYTES = 50_000, 2**28
"""Rows of a shard, and their bytes in float64, that "auto" aims at."""

LEAST_CLUSTERS = 8
"""Clusters of a shard that "auto" aims at: with fewer, shards could not share rows."""

SAMPLED_ROWS = 256
"""Rows of the sample for every shard."""


class Coarse(NamedTuple):
    """Where the shards lie."""

    centers: np.ndarray
    """Shape (n_shards, n_features), in standard units."""

    mean: np.ndarray
    """Of the sample, shape (n_features,)."""

    scale: float
    """Rows are ``(X - mean) / scale`` in standard units."""

    seeds: np.ndarray
    """For the random numbers of every shard, shape (n_shards,)."""

    def standard(self, rows):
        """Rows in standard units."""
        return (np.asarray(rows, dtype=np.float64) - self.mean) / self.scale


class Shares(NamedTuple):
    """What every shard is to hold, and which rows must move for it."""

    n_clusters: np.ndarray
    """Shape (n_shards,); none for a shard that is dissolved."""

    sizes: np.ndarray
    """Rows, shape (n_shards,)."""

    moves: np.ndarray
    """Shape (n_moves, 3): from a shard, to a shard, how many rows; in an order in which
    whoever gives has got what it is given."""

    @property
    def first_clusters(self):
        """Number of every shard's first cluster."""
        return np.cumsum(self.n_clusters) - self.n_clusters

    @property
    def given(self):
        """Rows that every shard gives away, shape (n_shards,)."""
        given = np.zeros(len(self.sizes), dtype=np.intp)
        np.add.at(given, self.moves[:, 0], self.moves[:, 2])
        return given


class Movers(NamedTuple):
    """Rows that may move."""

    rows: np.ndarray
    moves: np.ndarray
    """Which of the moves each would be part of."""

    losses: np.ndarray


def count_shards(n_shards, n_samples, n_features, n_clusters):
    """How many shards are made: what is asked for, at most one for every cluster.

    Examples
    --------
    >>> count_shards("auto", 10**6, 8, 12_500), count_shards("auto", 20_000, 8, 250)
    (20, 1)
    >>> count_shards(4, 100, 8, 3)
    3
    """
    if n_shards != "auto":
        return min(n_shards, n_clusters)
    rows = max(1, min(SHARD_ROWS, SHARD_BYTES // (8 * n_features)))
    return max(1, min(-(-n_samples // rows), n_clusters // LEAST_CLUSTERS))


def split_sample(X, n_shards, rng, n_jobs=None) -> Coarse:
    """Centres of equal-size k-means of ``SAMPLED_ROWS * n_shards`` rows at most.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Of which only the rows of the sample are read.
    n_shards : int
    rng : numpy RandomState
    n_jobs : int or None

    Returns
    -------
    Coarse
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
    """Give every shard its clusters, and the number of rows that fills them.

    Parameters
    ----------
    counts : ndarray of shape (n_shards,)
        Rows nearest to each centre.
    centers : ndarray of shape (n_shards, n_features)
    n_clusters : int, at most the sum of counts

    Returns
    -------
    Shares

    Examples
    --------
    Eleven rows are five clusters of two or three:

    >>> centers = np.array([[0.0], [1.0], [2.0]])
    >>> n_clusters, sizes, moves = share_clusters(np.array([6, 4, 1]), centers, 5)
    >>> n_clusters.tolist(), sizes.tolist(), moves.tolist()
    ([3, 2, 0], [6, 5, 0], [[2, 1, 1]])
    """
    order, parents = spanning_tree(centers)
    branches = counts.copy()  # rows of a shard and all behind it
    for s in order[:0:-1]:
        branches[parents[s]] += branches[s]
    size, n_larger = divmod(int(counts.sum()), n_clusters)
    # What a branch gets is divided between its shard and the branches behind it.
    clusters, larger = np.zeros_like(counts), np.zeros_like(counts)
    clusters[0], larger[0] = n_clusters, n_larger
    children = [np.flatnonzero(parents == s) for s in range(len(counts))]
    sizes = np.empty_like(counts)
    flows = np.zeros_like(counts)  # rows that must leave a branch
    for s in order:
        flows[s] = branches[s] - (clusters[s] * size + larger[s])
        # The shard itself comes last: what does not fit anywhere ends with it.
        parts = np.concatenate([children[s], [s]])
        held = np.concatenate([branches[children[s]], counts[[s]]])
        given = _divided(clusters[s], held, n_clusters, int(counts.sum()))
        larger[parts] = _larger_clusters(held, given, size, larger[s])
        clusters[parts] = given
        sizes[s] = clusters[s] * size + larger[s]
    up = [(s, parents[s], flows[s]) for s in order[:0:-1] if flows[s] > 0]
    down = [(parents[s], s, -flows[s]) for s in order[1:] if flows[s] < 0]
    moves = np.array(up + down, dtype=np.intp).reshape(-1, 3)
    return Shares(clusters, sizes, moves)


def spanning_tree(centers):
    """The shortest tree that joins all centres, from centre 0 on.

    Memory: O(n_centers); time: O(n_centers^2 n_features).

    Returns
    -------
    order : list of int
        Every centre after its parent.
    parents : ndarray of shape (n_centers,)
        -1 for centre 0.

    Examples
    --------
    >>> order, parents = spanning_tree(np.array([[0.0], [5.0], [2.0]]))
    >>> order, parents.tolist()
    ([0, 2, 1], [-1, 2, 0])
    """
    parents = np.full(len(centers), -1)
    nearest_sq, order = np.full(len(centers), np.inf), [0]
    for _ in range(1, len(centers)):
        last = order[-1]
        dist_sq = np.sum((centers - centers[last]) ** 2, axis=1)
        nearest_sq[last] = -np.inf  # is in the tree, so nothing is nearer
        nearer = dist_sq < nearest_sq
        parents[nearer], nearest_sq[nearer] = last, dist_sq[nearer]
        order.append(int(np.argmin(np.where(nearest_sq < 0, np.inf, nearest_sq))))
    return order, parents


def _divided(total, counts, n_clusters, n_samples):
    """`total` clusters in proportion to counts; the last takes what rounding leaves.

    To the nearest number, so that errors do not add up from the root to the leaves.
    """
    given = (2 * counts * n_clusters + n_samples) // (2 * n_samples)
    given[-1] = total - given[:-1].sum()
    if 0 <= given[-1] <= counts[-1]:
        return given
    # A shard of few rows cannot take it.
    return proportional_shares(counts, total) if counts.any() else 0 * counts


def _larger_clusters(counts, given, size, n_larger):
    """How many of the given clusters have ``size + 1`` rows: first where rows are."""
    larger = _filled(np.clip(counts - given * size, 0, given), n_larger)
    left = n_larger - int(larger.sum())
    return larger + _filled((given - larger)[::-1], left)[::-1]


def _filled(capacities, total):
    """As much of `total` in every capacity as it holds, the first ones first."""
    before = np.cumsum(capacities) - capacities
    return np.clip(total - before, 0, capacities)


def movers_of(group, coarse, shares) -> Movers:
    """Of a block, for every move the rows that lose least by it.

    Parameters
    ----------
    group : callable
        Given a shard, the block's rows that are nearest to it: their numbers,
        ascending, and the rows, shape (n_rows, n_features).
    coarse : Coarse
    shares : Shares

    Returns
    -------
    Movers
    """
    found = [_no_movers()]
    for move, (source, target, _) in enumerate(shares.moves):
        numbers, rows = group(source)
        losses = _losses(coarse.standard(rows), coarse, source, target)
        found.append(Movers(numbers, np.full(len(numbers), move), losses))
    return least_losses([Movers(*map(np.concatenate, zip(*found)))], shares)


def _losses(standard, coarse, source, target):
    here, there = coarse.centers[source], coarse.centers[target]
    return np.sum((standard - there) ** 2 - (standard - here) ** 2, axis=1)


def _no_movers():
    return Movers(np.empty(0, np.intp), np.empty(0, np.intp), np.empty(0))


def least_losses(lists: Iterable[Movers], shares) -> Movers:
    """From lists of blocks, for every move the rows that lose least by it.

    As many as their shard gives to all others together, so that enough are left when
    others have chosen. Equal losses go by row number. Memory: the result, and one list.

    Examples
    --------
    >>> some = Movers(np.array([3, 5, 7]), np.array([0, 0, 1]), np.array([2., 1., 4.]))
    >>> more = Movers(np.array([8, 9]), np.array([0, 1]), np.array([1.0, 3.0]))
    >>> shares = Shares(np.ones(3), np.ones(3), np.array([[0, 2, 2], [1, 2, 1]]))
    >>> least_losses([some, more], shares).rows.tolist()
    [5, 8, 9]
    """
    most = shares.given[shares.moves[:, 0]]
    kept = _no_movers()
    for found in lists:
        both = Movers(*map(np.concatenate, zip(kept, found)))
        order = np.lexsort((both.rows, both.losses, both.moves))
        moves = both.moves[order]
        place = np.arange(len(order)) - np.searchsorted(moves, moves)
        chosen = order[place < most[moves]]
        kept = Movers(*(field[chosen] for field in both))
    return kept


def settle(X, movers, coarse, shares):
    """Let rows move, along one edge of the tree after the other.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Of which only rows that may move are read.
    movers : Movers
        What `least_losses` found in all blocks.
    coarse : Coarse
    shares : Shares

    Returns
    -------
    rows : ndarray of int, ascending
        Rows that are not in the nearest shard.
    shards : ndarray of rows' shape
        Where they are instead.
    """
    rows, first = np.unique(movers.rows, return_index=True)
    nearest = shares.moves[movers.moves[first], 0]
    standard = coarse.standard(X[rows])
    pools = clusters_of(nearest, len(coarse.centers))
    for source, target, count in shares.moves:
        # A row that has come from elsewhere may go on.
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
