"""Balancing: assignments of rows to centres, with clusters of equal size.

Compiled loops use plain numbers: an array expression adds .1 s to the first fit.
"""

import heapq
from functools import partial

import numpy as np

from .._compiled import compiled
from .._neighbors import nearest_centers
from ._arrays import cluster_means, squared_offsets

# Candidate centres of a row that may move; when all are full, all centres are searched.
MOST_CANDIDATES = 8
# Nearest clusters with which a cluster exchanges rows.
MOST_NEIGHBORS = 64
GAVE = 2


def target_sizes(counts: np.ndarray) -> np.ndarray:
    """Sizes that differ by at most one; the fullest clusters get the larger ones."""
    size, n_larger = divmod(int(counts.sum()), len(counts))
    sizes = np.full(len(counts), size, dtype=np.int64)
    sizes[np.argsort(-counts, kind="stable")[:n_larger]] += 1
    return sizes


def assign_and_balance(X, centers, n_jobs=None, anew=False):
    """Assign rows to nearest centres; then the nearest rows fill small clusters.

    Or, `anew`, assign pairs of a row and a centre, smallest distance first, until full.
    """
    labels = nearest_centers(X, centers, 1, n_jobs)[0][:, 0].astype(np.intp)
    counts = np.bincount(labels, minlength=len(centers))
    sizes = target_sizes(counts)
    if anew:
        # All rows start in cluster 0, which has enough rows for all others.
        labels[:], room, surplus = 0, sizes, np.full(1, len(X))
        pool = np.arange(len(X))
    else:
        room, surplus = np.maximum(sizes - counts, 0), np.maximum(counts - sizes, 0)
        pool = np.flatnonzero(surplus[labels])
    if len(pool):
        open_ids = np.flatnonzero(room)
        known = X, centers[open_ids], min(len(open_ids), MOST_CANDIDATES), n_jobs
        nearest, dist_sq = nearest_centers(*known, rows=pool)
        candidates = open_ids.astype(np.int32)[nearest]
        cursor, to_move = np.zeros(len(pool), dtype=np.intp), int(room.sum())
        state = labels, room, surplus, candidates, dist_sq, cursor, to_move
        _fill_greedily(X, centers, pool, *state)
    return labels


fill_nearest_pairs = partial(assign_and_balance, anew=True)


@compiled
def _fill_greedily(
    X, centers, pool, labels, room, surplus, candidates, dist_sq, cursor, to_move
):
    """Move rows to centres with room, nearest first; ties go to lower numbers."""
    heap = [(dist_sq[p, 0], p) for p in range(len(pool))]
    heapq.heapify(heap)
    while to_move > 0:
        _, p = heapq.heappop(heap)
        i, c = pool[p], cursor[p]
        source, target = labels[i], candidates[p, c]
        if surplus[source] == 0:
            continue
        if room[target] > 0:
            labels[i] = target
            room[target] -= 1
            surplus[source] -= 1
            to_move -= 1
            continue
        while c < candidates.shape[1] and room[candidates[p, c]] == 0:
            c += 1
        if c == candidates.shape[1]:
            # All are full: the nearest of all centres with room is the only candidate.
            c -= 1
            dist_sq[p, c] = np.inf
            for k in range(len(centers)):
                if room[k] > 0:
                    d = 0.0
                    for f in range(X.shape[1]):
                        d += (X[i, f] - centers[k, f]) ** 2
                    if d < dist_sq[p, c]:
                        dist_sq[p, c], candidates[p, c] = d, k
        cursor[p] = c
        heapq.heappush(heap, (dist_sq[p, c], p))


def exchange(X, labels, n_clusters, max_sweeps, n_jobs=None):
    r"""Exchange rows between pairs of clusters while this lowers J; labels and sweeps.

    For clusters a and b with means :math:`\mu_a, \mu_b`, row x prefers b by

    .. math:: s(x) = (x - \tfrac{\mu_a + \mu_b}{2})^\top (\mu_b - \mu_a) .

    The row of a with the largest s is exchanged for the row of b with the smallest,
    while the former is larger; a larger cluster may also give a row. Pairs whose radii
    do not reach each other are skipped, as are all but ``MOST_NEIGHBORS`` of a cluster.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    # Row numbers and features by cluster: (K, size) and (K, n_features, size).
    rows = np.zeros((n_clusters, sizes.max()), dtype=np.intp)
    rows[np.arange(sizes.max()) < sizes[:, None]] = np.argsort(labels, kind="stable")
    blocks = np.empty((n_clusters, X.shape[1], sizes.max()))
    for k, members in enumerate(rows):
        blocks[k] = X[members].T
    centers = cluster_means(X, labels, n_clusters)
    radii_sq, sides = np.zeros(n_clusters), np.empty((2, rows.shape[1]))
    np.maximum.at(radii_sq, labels, squared_offsets(X, labels, centers))
    radii = np.sqrt(radii_sq)
    changed = np.full(n_clusters, -1)
    n_neighbors = min(n_clusters, MOST_NEIGHBORS + 1)
    for sweep in range(max_sweeps):
        near = nearest_centers(centers, centers, n_neighbors, n_jobs)[0].ravel()
        # Each pair of neighbouring clusters once.
        a = np.repeat(np.arange(n_clusters), n_neighbors)
        is_mutual = np.isin(near * n_clusters + a, a * n_clusters + near)
        is_first = (near > a) | ((near < a) & ~is_mutual)
        pairs = np.column_stack([a, near])[is_first]
        _sweep_pairs(blocks, rows, sizes, centers, radii, pairs, changed, sweep, sides)
        if not (changed == sweep).any():
            break
    labels = np.empty_like(labels)
    for k in range(n_clusters):
        labels[rows[k, : sizes[k]]] = k
    return labels, sweep + 1


@compiled
def _sweep_pairs(blocks, rows, sizes, centers, radii, pairs, changed, sweep, sides):
    """Visit every pair of neighbouring clusters that may have changed."""
    for pair in range(len(pairs)):
        a, b = pairs[pair, 0], pairs[pair, 1]
        if sizes[a] < sizes[b]:  # the larger cluster is a
            a, b = b, a
        # Neither has changed since the visit in the sweep before.
        if max(changed[a], changed[b]) < sweep - 1:
            continue
        reach = radii[a] + radii[b]
        if sizes[a] > sizes[b]:  # a may also give a row to b
            reach = 2 * max(radii[a], radii[b])
        dist_sq = 0.0
        for f in range(centers.shape[1]):
            dist_sq += (centers[a, f] - centers[b, f]) ** 2
        if dist_sq >= reach**2:
            continue
        for i in range(2):
            k = b if i else a
            _project(blocks[k], sizes[k], centers[a], centers[b], sides[i])
        moved = _exchange_pair(
            blocks[a], blocks[b], rows[a], rows[b], sizes[a], sizes[b], sides
        )
        if moved == 0:
            continue
        if moved == GAVE:
            sizes[a] -= 1
            sizes[b] += 1
        for i in range(2):
            k = b if i else a
            changed[k] = sweep
            radii[k] = _measure(blocks[k], sizes[k], centers[k], sides[0])


@compiled
def _measure(block, n, center, dist_sq):
    """Update the mean of a cluster of n rows; returns its radius."""
    for j in range(n):
        dist_sq[j] = 0.0
    for f in range(len(block)):
        total = 0.0
        for j in range(n):
            total += block[f, j]
        center[f] = total / n
        for j in range(n):
            dist_sq[j] += (block[f, j] - center[f]) ** 2
    farthest_sq = 0.0
    for j in range(n):
        farthest_sq = max(farthest_sq, dist_sq[j])
    return np.sqrt(farthest_sq)


@compiled
def _project(block, n, center_a, center_b, side):
    """The s of the n rows of a cluster."""
    offset = 0.0
    for f in range(len(block)):
        offset += (center_b[f] - center_a[f]) * (center_a[f] + center_b[f])
    for j in range(n):
        side[j] = -(offset / 2)
    for f in range(len(block)):
        direction = center_b[f] - center_a[f]
        for j in range(n):
            side[j] += block[f, j] * direction


@compiled
def _exchange_pair(block_a, block_b, rows_a, rows_b, n_a, n_b, sides):
    """Exchange the best movers of a and b; 0 if no row moved, `GAVE` if a gave one."""
    side_a, side_b = sides[0], sides[1]
    low_a, high_a, low_b, high_b = side_a[0], side_a[0], side_b[0], side_b[0]
    for i in range(n_a):
        low_a, high_a = min(low_a, side_a[i]), max(high_a, side_a[i])
    for j in range(n_b):
        low_b, high_b = min(low_b, side_b[j]), max(high_b, side_b[j])
    # A gain must exceed rounding, or two pairs could undo each other's exchange
    # forever.
    least = 1e-12 * max(high_b - low_b, high_a - low_a)
    moved = 0
    if high_a - low_b > least:
        moved = 1
        movers_a = [(-side_a[i], i) for i in range(n_a) if side_a[i] > low_b]
        movers_b = [(side_b[j], j) for j in range(n_b) if side_b[j] < high_a]
        heapq.heapify(movers_a)
        heapq.heapify(movers_b)
        for _ in range(min(len(movers_a), len(movers_b))):
            i, j = heapq.heappop(movers_a)[1], heapq.heappop(movers_b)[1]
            if side_a[i] - side_b[j] <= least:
                break
            side_a[i], side_b[j] = side_b[j], side_a[i]
            _swap(block_a, rows_a, i, block_b, rows_b, j)
    if n_a > n_b:
        best = 0
        for i in range(n_a):
            best = i if side_a[i] > side_a[best] else best
        if side_a[best] > least:
            moved = GAVE
            _swap(block_a, rows_a, best, block_b, rows_b, n_b)  # a spare slot
            _swap(block_a, rows_a, best, block_a, rows_a, n_a - 1)
    return moved


@compiled
def _swap(block_a, rows_a, i, block_b, rows_b, j):
    """Exchange row i of one cluster and row j of another."""
    rows_a[i], rows_b[j] = rows_b[j], rows_a[i]
    for f in range(len(block_a)):
        block_a[f, i], block_b[f, j] = block_b[f, j], block_a[f, i]
