"""Nearest neighbours by brute force, in blocks: a few in order, or many unordered.

Distances are computed block by block, so a matrix of all of them never exists. Blocks
have a fixed size and each runs on one BLAS thread: results are equal bit by bit for
every ``n_jobs``. Ties go to the lower index.
"""

import numpy as np
from joblib import effective_n_jobs

from ._compiled import compiled
from ._linalg import WIDE
from ._parallel import run_tasks
from ._streams import center_of, rows_per_block, slices_of

# Distances held at once by each worker: 2 MB, so that a block stays in cache.
BLOCK_ELEMENTS = 2**18


def block_rows(n_columns: int) -> int:
    """Number of rows in a block of distances with `n_columns` columns."""
    return max(1, BLOCK_ELEMENTS // max(1, n_columns))


# Entries of a row that are compared with the last one kept, all at once.
CHUNK = 32
# Rows by which `nearest_rows` guesses how near the nearest are. Its blocks are by this
# factor smaller than those of other streams, so that distances stay in cache.
SAMPLE, PER_NUMBER = 1024, 8


@compiled
def _keep_nearest(row, ids, dist_sq, n_before):
    """The smallest entries of `row`, in order; of equal ones the lower index first.

    They join those of `n_before` entries that were seen before, and are numbered on
    from these.
    """
    n_kept, last, bound = n_before, len(ids) - 1, np.inf
    if n_kept > last:
        bound = dist_sq[last]
    for start in range(0, len(row), CHUNK):
        stop = min(start + CHUNK, len(row))
        # Most chunks hold nothing near; vector instructions tell.
        n_near = 0
        for k in range(start, stop):
            n_near += row[k] < bound
        if n_near == 0 and n_kept > last:
            continue
        for k in range(start, stop):
            if n_kept > last and row[k] >= bound:
                continue
            slot = min(n_kept, last)
            while slot > 0 and dist_sq[slot - 1] > row[k]:
                dist_sq[slot] = dist_sq[slot - 1]
                ids[slot] = ids[slot - 1]
                slot -= 1
            dist_sq[slot] = row[k]
            ids[slot] = n_before + k
            n_kept += 1
            if n_kept > last:
                bound = dist_sq[last]


@compiled
def _nearest_narrow(X, centers_t, ids, dist_sq):
    """From squared differences, which are exact for coincident points."""
    row = np.empty(centers_t.shape[1])
    for i in range(X.shape[0]):
        row[:] = 0.0
        for f in range(X.shape[1]):
            # The innermost loop runs over centres, for vector instructions.
            for k in range(len(row)):
                difference = X[i, f] - centers_t[f, k]
                row[k] += difference * difference
        _keep_nearest(row, ids[i], dist_sq[i], 0)


@compiled
def _nearest_wide(scores, ids, dist_sq, n_before):
    """From a matrix product: squared distances without the ||x||^2 of their row."""
    for i in range(len(scores)):
        _keep_nearest(scores[i], ids[i], dist_sq[i], n_before)


def nearest_centers(
    X: np.ndarray,
    centers: np.ndarray,
    n_nearest: int = 1,
    n_jobs: int | None = None,
    rows: np.ndarray | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """The nearest centres of each row and their squared distances, nearest first.

    Memory beyond the two results: ``BLOCK_ELEMENTS`` numbers per worker.

    The results have shape (n_rows, n_nearest), the indices are int32. `rows` are the
    rows of X to use; None is all.
    """
    n_rows = len(X) if rows is None else len(rows)
    ids = np.empty((n_rows, n_nearest), dtype=np.int32)
    dist_sq = np.empty((n_rows, n_nearest))
    is_wide = X.shape[1] >= WIDE
    # Around the mean of the centres, the products of the wide form do not cancel. The
    # narrow form needs no origin; without one, ties stay exact.
    origin = centers.mean(axis=0) if is_wide else np.zeros(X.shape[1])
    centers_t = np.ascontiguousarray((centers - origin).T)
    # The product ||c||^2 - 2 x.c ranks the centres of a row.
    norms_sq = np.einsum("fk,fk->k", centers_t, centers_t)
    lifted_t = np.vstack([-2.0 * centers_t, norms_sq])

    def work_on(batch: range) -> None:
        for start in batch:
            here = slice(start, start + step)
            block = X[here] if rows is None else X[rows[here]]
            if not is_wide:
                _nearest_narrow(block, centers_t, ids[here], dist_sq[here])
                continue
            block = block - origin
            lifted = np.column_stack([block, np.ones(len(block))])
            _nearest_wide(lifted @ lifted_t, ids[here], dist_sq[here], 0)
            dist_sq[here] += np.einsum("ij,ij->i", block, block)[:, None]
            np.maximum(dist_sq[here], 0.0, out=dist_sq[here])

    # Blocks depend on the shape only, never on `n_jobs`.
    step = block_rows(len(centers))
    starts = range(0, n_rows, step)
    n_workers = max(1, min(effective_n_jobs(n_jobs), len(starts)))
    batches = (starts[worker::n_workers] for worker in range(n_workers))
    for _ in run_tasks(work_on, zip(batches), n_workers):
        pass
    return ids, dist_sq


def nearest_rows(
    X, queries, n_neighbors, n_jobs=None, rows=None, scale=1.0, in_order=False
):
    """Rows nearest to each query, in one pass over rows that may be mapped.

    Queries are in the units of X; distances are those in ``X / scale``. `rows` are the
    rows of X to use, ascending; None is all. Returns positions in `rows`, ascending or,
    `in_order`, the nearest first, shape (n_queries, n_neighbors); ties go to the lower.
    Memory: per worker a block of rows and its distances, and ``n_neighbors`` numbers
    per query.
    """
    n_rows = len(X) if rows is None else len(rows)
    n_neighbors = min(n_neighbors, n_rows)
    B = queries / scale
    # Around the mean of the queries, products of near rows do not cancel.
    origin = B.mean(axis=0)
    lifted_q = np.column_stack([-2.0 * (B - origin), np.ones(len(B))])

    def scores_of(block):
        A = X[block] if rows is None else X[rows[block]]
        A = A / scale - origin
        lifted = np.column_stack([A, np.einsum("ij,ij->i", A, A)])
        # |a|^2 - 2 q.a: the |q|^2 of a query does not change the order of rows.
        return lifted_q @ lifted.T

    blocks = list(slices_of(n_rows, PER_NUMBER * max(len(B), X.shape[1])))

    def search(n_before, scores):
        ids = np.tile(np.arange(n_neighbors, dtype=np.int32), (len(B), 1))
        for block, more in zip(blocks, run_tasks(scores_of, zip(blocks), n_jobs)):
            _nearest_wide(more, ids, scores, n_before + block.start)
        return ids - n_before

    ids, bounds = None, _likely_bounds(scores_of, n_rows, n_neighbors, len(B))
    if bounds is not None:
        # As if rows of negative numbers had been seen before, all at the bound.
        ids = search(n_neighbors, np.repeat(bounds[:, None], n_neighbors, axis=1))
    if ids is None or (ids < 0).any():
        ids = search(0, np.empty((len(B), n_neighbors)))
    return ids if in_order else np.sort(ids, axis=1)


def _likely_bounds(scores_of, n_rows, n_neighbors, n_queries):
    """Scores that are most likely larger than those of the nearest rows, by a sample.

    Most rows are then passed over at once. None for few rows.
    """
    n_sampled = min(SAMPLE, rows_per_block(n_queries))
    expected = n_neighbors * n_sampled / n_rows
    rank = int(expected + 4.0 * np.sqrt(expected) + 4.0)
    if n_rows < 4 * n_sampled or 2 * rank > n_sampled:
        return None
    scores = scores_of(np.linspace(0, n_rows - 1, n_sampled).astype(np.intp))
    return np.partition(scores, rank, axis=1)[:, rank]


class BruteIndex:
    """Nearest rows by one matrix product for a block of queries."""

    def __init__(self, rows):
        self.origin = center_of(rows)
        centred = rows - self.origin
        norms_sq = np.einsum("ij,ij->i", centred, centred)
        self.lifted_t = np.vstack([-2.0 * centred.T, norms_sq])

    def nearest(self, queries, n_neighbors):
        """Rows nearest to each query, ascending, shape (n_queries, n_neighbors).

        Ties go to the lower index. Memory: ``n_queries * n_samples`` distances.
        """
        lifted = np.column_stack([queries - self.origin, np.ones(len(queries))])
        # |a|^2 - 2 q.a: the |q|^2 of a query does not change the order of its rows.
        return smallest_columns(lifted @ self.lifted_t, n_neighbors)


def smallest_columns(values, n_smallest):
    """Columns of the smallest values of each row, ascending; ties to the lower."""
    smallest = np.empty((len(values), n_smallest), dtype=np.intp)
    for row, columns in zip(values, smallest):
        last = np.partition(row, n_smallest - 1)[n_smallest - 1]
        is_small = row < last
        tied = np.flatnonzero(row == last)[: n_smallest - is_small.sum()]
        is_small[tied] = True
        columns[:] = np.flatnonzero(is_small)
    return smallest


def distance_flops(n_features):
    """Operations (see `dense_flops`) of one distance and of comparing it."""
    return 50.0 + 2.0 * n_features
