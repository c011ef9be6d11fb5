"""Balancing: assignments of rows to centres, with clusters of equal size.

Greedy rules (`assign_and_balance`, `fill_nearest_pairs`) pick pairs of a row and a
centre by their distance. `exchange` then improves the result, two clusters at a time.
The loops are compiled; rows and centres are in standard units.
"""

import heapq

import numpy as np

from .._neighbors import compiled, insert_sorted, nearest_centers

MOST_CANDIDATES = 8
"""Candidate centres of a row that may move; when all are full, it gets a new list."""

MOST_NEIGHBORS = 64
"""Nearest clusters with which a cluster exchanges rows."""


def target_sizes(counts: np.ndarray) -> np.ndarray:
    """Sizes that differ by at most one; the fullest clusters get the larger ones.

    Examples
    --------
    >>> target_sizes(np.array([1, 7, 3])).tolist()
    [3, 4, 4]
    """
    size, n_larger = divmod(int(counts.sum()), len(counts))
    sizes = np.full(len(counts), size, dtype=np.int64)
    sizes[np.argsort(-counts, kind="stable")[:n_larger]] += 1
    return sizes


def assign_and_balance(X, centers, n_jobs=None):
    """Assign each row to its nearest centre, then fill small clusters from large ones.

    In each step, the row with the smallest distance moves, among all distances between
    a row of a cluster that is too large and the centre of one that is too small. A
    cluster that has reached its size takes no further part.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    centers : ndarray of shape (n_clusters, n_features)
    n_jobs : int or None

    Returns
    -------
    labels : ndarray of shape (n_samples,)

    Examples
    --------
    Three of the four rows are nearest to the first centre; the rightmost must leave:

    >>> X, centers = np.array([[0.0], [2.0], [1.0], [9.0]]), np.array([[0.0], [8.0]])
    >>> assign_and_balance(X, centers).tolist()
    [0, 1, 0, 1]
    """
    labels, counts = _nearest_labels(X, centers, n_jobs)
    sizes = target_sizes(counts)
    pool = np.flatnonzero((counts > sizes)[labels])
    room, surplus = np.maximum(sizes - counts, 0), np.maximum(counts - sizes, 0)
    _move_pool(X, centers, pool, labels, room, surplus, n_jobs)
    return labels


def fill_nearest_pairs(X, centers, n_jobs=None):
    """Assign pairs of a row and a centre, smallest distance first.

    Each row is assigned once, and a centre takes rows until its cluster has its size.
    Parameters and result as in `assign_and_balance`.

    Examples
    --------
    >>> X, centers = np.array([[0.0], [2.0], [1.0], [9.0]]), np.array([[0.0], [8.0]])
    >>> fill_nearest_pairs(X, centers).tolist()
    [0, 1, 0, 1]
    """
    _, counts = _nearest_labels(X, centers, n_jobs)
    labels, pool = np.zeros(len(X), dtype=np.intp), np.arange(len(X))
    room = target_sizes(counts)
    # All rows start in cluster 0, which has enough rows for all others.
    surplus = np.full(1, len(X))
    _move_pool(X, centers, pool, labels, room, surplus, n_jobs)
    return labels


def _nearest_labels(X, centers, n_jobs):
    labels = nearest_centers(X, centers, 1, n_jobs)[0][:, 0].astype(np.intp)
    return labels, np.bincount(labels, minlength=len(centers))


def _move_pool(X, centers, pool, labels, room, surplus, n_jobs):
    """Find candidate centres of the rows in the pool, then move rows greedily."""
    if len(pool) == 0:
        return
    open_ids = np.flatnonzero(room)
    n_candidates = min(len(open_ids), MOST_CANDIDATES)
    nearest, dist_sq = nearest_centers(
        X, centers[open_ids], n_candidates, n_jobs, rows=pool
    )
    candidates = open_ids.astype(np.int32)[nearest]
    _fill_greedily(X, centers, pool, labels, room, surplus, candidates, dist_sq)


@compiled
def _fill_greedily(X, centers, pool, labels, room, surplus, candidates, dist_sq):
    """Move rows to centres with room, smallest distance first, until no room is left.

    The heap holds a lower bound of each row's distance to a centre with room. A row
    whose target is full returns to the heap with its next candidate. Ties go to the
    lower row, then to the lower centre.
    """
    heap = [(dist_sq[p, 0], p) for p in range(len(pool))]
    heapq.heapify(heap)
    cursor = np.zeros(len(pool), dtype=np.int32)
    to_move = room.sum()
    while to_move > 0:
        _, p = heap[0]
        source, target = labels[pool[p]], candidates[p, cursor[p]]
        if surplus[source] == 0:
            heapq.heappop(heap)
        elif room[target] > 0:
            heapq.heappop(heap)
            labels[pool[p]] = target
            room[target] -= 1
            surplus[source] -= 1
            to_move -= 1
        else:
            cursor[p] = _next_open(
                X[pool[p]], centers, room, candidates[p], dist_sq[p], cursor[p]
            )
            heapq.heapreplace(heap, (dist_sq[p, cursor[p]], p))


@compiled
def _next_open(x, centers, room, candidates, dist_sq, cursor):
    """Position of the row's next candidate with room; makes a new list at the end."""
    while cursor < len(candidates) and candidates[cursor] >= 0:
        if room[candidates[cursor]] > 0:
            return cursor
        cursor += 1
    n_kept = 0
    for k in range(len(centers)):
        if room[k] > 0:
            d = 0.0
            for f in range(len(x)):
                d += (x[f] - centers[k, f]) ** 2
            n_kept = insert_sorted(candidates, dist_sq, n_kept, k, d)
    candidates[n_kept:] = -1
    return 0


def exchange(X, labels, n_clusters, max_sweeps, n_jobs=None):
    r"""Exchange rows between pairs of clusters while this lowers J.

    For clusters a and b with means :math:`\mu_a, \mu_b`, row x prefers b by

    .. math:: s(x) = (x - \tfrac{\mu_a + \mu_b}{2})^\top (\mu_b - \mu_a),

    half the difference of its squared distances. The row of a with the largest s is
    exchanged for the row of b with the smallest, while the former is larger. A larger
    cluster may also give one row to a smaller one. Then both means change. Every step
    lowers J, so the sweeps over all pairs end. No improving exchange is left then,
    unless `max_sweeps` ends them earlier.

    Pairs that are too far apart, :math:`\lVert\mu_a - \mu_b\rVert \ge R_a + R_b` with
    radii R, have nothing to exchange and are skipped. A cluster exchanges rows only
    with its ``MOST_NEIGHBORS`` nearest clusters. Memory: one copy of X.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
        Clusters whose sizes differ by at most one.
    n_clusters, max_sweeps : int
    n_jobs : int or None

    Returns
    -------
    labels : ndarray of shape (n_samples,)
    n_sweeps : int

    Examples
    --------
    >>> X = np.array([[0.0], [9.0], [1.0], [10.0]])
    >>> exchange(X, np.array([0, 0, 1, 1]), n_clusters=2, max_sweeps=9)[0].tolist()
    [0, 1, 0, 1]
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    rows, blocks = _group_rows(X, labels, sizes)
    centers, radii = np.empty((n_clusters, X.shape[1])), np.empty(n_clusters)
    for k in range(n_clusters):
        _measure(blocks, sizes, centers, radii, k)
    changed = np.full(n_clusters, -1)
    n_neighbors = min(n_clusters, MOST_NEIGHBORS + 1)
    for sweep in range(max_sweeps):
        neighbors, _ = nearest_centers(centers, centers, n_neighbors, n_jobs)
        _sweep_pairs(blocks, rows, sizes, centers, radii, neighbors, changed, sweep)
        if not (changed == sweep).any():
            break
    exchanged = np.empty_like(labels)
    for k in range(n_clusters):
        exchanged[rows[k, : sizes[k]]] = k
    return exchanged, sweep + 1


def _group_rows(X, labels, sizes):
    """Row numbers and features by cluster: (K, size) and (K, n_features, size).

    Rows are the last axis, for vector instructions in projections. The smaller clusters
    have one spare slot.
    """
    order = np.argsort(labels, kind="stable")
    rows = np.zeros((len(sizes), sizes.max()), dtype=np.intp)
    rows[np.arange(sizes.max()) < sizes[:, None]] = order
    blocks = np.empty((len(sizes), X.shape[1], sizes.max()))
    for k, members in enumerate(rows):
        blocks[k] = X[members].T
    return rows, blocks


@compiled
def _sweep_pairs(blocks, rows, sizes, centers, radii, neighbors, changed, sweep):
    """Visit every pair of neighbouring clusters that may have changed."""
    side_a, side_b = np.empty(rows.shape[1]), np.empty(rows.shape[1])
    for a in range(len(rows)):
        for b in neighbors[a]:
            if b == a or (b < a and a in neighbors[b]):
                continue
            # Neither has changed since the visit in the sweep before.
            if max(changed[a], changed[b]) < sweep - 1:
                continue
            reach = radii[a] + radii[b]
            if sizes[a] != sizes[b]:  # one may also give a row to the other
                reach = 2 * max(radii[a], radii[b])
            if np.sum((centers[a] - centers[b]) ** 2) >= reach**2:
                continue
            if _exchange_pair(blocks, rows, sizes, centers, a, b, side_a, side_b):
                changed[a] = changed[b] = sweep
                _measure(blocks, sizes, centers, radii, a)
                _measure(blocks, sizes, centers, radii, b)


@compiled
def _measure(blocks, sizes, centers, radii, k):
    """Update the mean and the radius of cluster k."""
    n = sizes[k]
    dist_sq = np.zeros(n)
    for f in range(blocks.shape[1]):
        centers[k, f] = blocks[k, f, :n].sum() / n
        for j in range(n):
            dist_sq[j] += (blocks[k, f, j] - centers[k, f]) ** 2
    radii[k] = np.sqrt(dist_sq.max())


@compiled
def _exchange_pair(blocks, rows, sizes, centers, a, b, side_a, side_b):
    """Exchange the best movers of a and b; True if any row moved."""
    direction = centers[b] - centers[a]
    offset = np.sum(direction * (centers[a] + centers[b])) / 2
    s_a, s_b = side_a[: sizes[a]], side_b[: sizes[b]]
    _project(blocks[a], direction, offset, s_a)
    _project(blocks[b], direction, offset, s_b)
    # A gain must exceed rounding, or two pairs could undo each other's exchange
    # forever.
    least = 1e-12 * max(s_b.max() - s_b.min(), s_a.max() - s_a.min())
    moved = False
    if s_a.max() - s_b.min() > least:
        moved = _swap_movers(blocks, rows, a, b, s_a, s_b, least)
    if sizes[a] > sizes[b] and s_a.max() > least:
        _give(blocks, rows, sizes, a, np.argmax(s_a), b)
        moved = True
    elif sizes[b] > sizes[a] and s_b.min() < -least:
        _give(blocks, rows, sizes, b, np.argmin(s_b), a)
        moved = True
    return moved


@compiled
def _project(block, direction, offset, side):
    side[:] = -offset
    for f in range(len(direction)):
        for j in range(len(side)):
            side[j] += block[f, j] * direction[f]


@compiled
def _swap_movers(blocks, rows, a, b, s_a, s_b, least):
    """Swap the rows of a with largest s for those of b with smallest, while J falls."""
    from_a, from_b = np.flatnonzero(s_a > s_b.min()), np.flatnonzero(s_b < s_a.max())
    from_a = from_a[np.argsort(-s_a[from_a], kind="mergesort")]
    from_b = from_b[np.argsort(s_b[from_b], kind="mergesort")]
    for i, j in zip(from_a, from_b):
        if s_a[i] - s_b[j] <= least:
            break
        s_a[i], s_b[j] = s_b[j], s_a[i]
        rows[a, i], rows[b, j] = rows[b, j], rows[a, i]
        for f in range(blocks.shape[1]):
            x = blocks[a, f, i]
            blocks[a, f, i] = blocks[b, f, j]
            blocks[b, f, j] = x
    return True


@compiled
def _give(blocks, rows, sizes, source, i, target):
    """Move one row to the spare slot of a smaller cluster."""
    last, free = sizes[source] - 1, sizes[target]
    rows[target, free] = rows[source, i]
    rows[source, i] = rows[source, last]
    for f in range(blocks.shape[1]):
        blocks[target, f, free] = blocks[source, f, i]
        blocks[source, f, i] = blocks[source, f, last]
    sizes[source] -= 1
    sizes[target] += 1
