r"""Groups of rows left out of a Gaussian process, in closed form.

With A the kernel matrix (noise included), :math:`\alpha = A^{-1} Y` and B the rows of a
group, :math:`S = ([A^{-1}]_{BB})^{-1}` is the covariance of what the other rows predict
for B, noise included, and :math:`S \alpha_B` their errors. Leaving out one row is a
group of one.
"""

import numpy as np

from ._linalg import cholesky, inverse_factor, inverse_from_cholesky, solve_cholesky

# Columns of the inverse factor that are copied at once, for many small groups.
MOST_COLUMNS = 256
# Matrices of so many rows are inverted together: larger ones gain nothing by it.
MOST_AT_ONCE = 32


def solve_all(A, Y) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """``L^-1, A^-1 Y, A^-1 1``; only the lower triangle of A, with noise, is read."""
    return solve_all_by(cholesky(A)[0], Y)


def solve_all_by(L, Y) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """`solve_all` by the Cholesky factor of A, in whose place ``L^-1`` is made."""
    solved = solve_cholesky(L, np.column_stack([Y, np.ones(len(Y))]))
    return inverse_factor(L, overwrite=True), solved[:, :-1].copy(), solved[:, -1]


def leave_groups_out(L_inv, alpha, alpha_one, Y, weights, groups):
    """Errors and variances of every row, predicted without the rows of its group.

    The first three as from `solve_all`; with ``A^-1 1`` the mean of the outputs is left
    out too. Y of shape (n, n_outputs) minus its weighted mean. No groups leave out
    every row alone. Memory: the columns of the largest group, or `MOST_COLUMNS`.

    >>> eye, one, y = np.eye(3), np.ones(3), np.array([[1.0], [0.0], [-1.0]])
    >>> errors, variances = leave_groups_out(eye, y, one, y, one, None)
    >>> errors.ravel().tolist(), variances.tolist()
    ([1.5, 0.0, -1.5], [1.0, 1.0, 1.0])
    """
    precision = np.einsum("ij,ij->j", L_inv, L_inv)
    numbers = np.arange(len(alpha))
    if groups is not None:
        numbers = np.unique(groups, return_inverse=True)[1].ravel()
    # Without a group the mean of the outputs is lower by its share.
    rest = weights.sum() - np.bincount(numbers, weights)
    shift = np.zeros((len(rest), Y.shape[1]))
    np.add.at(shift, numbers, weights[:, None] * Y)
    shift = np.divide(shift, rest[:, None], out=shift, where=rest[:, None] > 0)
    shift[rest <= 0] = 0.0
    alpha_left = alpha + alpha_one[:, None] * shift[numbers]
    errors, variances = alpha_left / precision[:, None], 1.0 / precision
    sizes = np.bincount(numbers)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(sizes)
    for size in np.unique(sizes[sizes > 1]):
        if size == len(alpha):
            continue  # nothing is left to predict from: one at a time then
        alike = np.flatnonzero(sizes == size)
        # Many small groups at once, as few large ones fit in memory.
        step = max(1, MOST_COLUMNS // size)
        for some in (alike[i : i + step] for i in range(0, len(alike), step)):
            rows = order[(ends[some] - size)[:, None] + np.arange(size)]
            blocks = leave_blocks_out(L_inv, alpha, alpha_one, Y, weights, rows)
            errors[rows], variances[rows] = blocks
    return errors, variances


def leave_blocks_out(L_inv, alpha, alpha_one, Y, weights, rows):
    """Errors and variances of blocks of rows, each from all rows of no such block.

    Parameters as for `leave_groups_out`; rows of shape (n_blocks, size), not all. The
    results have shape (n_blocks, size, n_outputs) and (n_blocks, size).
    """
    rest = weights.sum() - weights[rows].sum(axis=1)[:, None]
    sums = np.einsum("bi,bij->bj", weights[rows], Y[rows])
    shift = np.divide(sums, rest, out=np.zeros_like(sums), where=rest > 0)
    S = _inverses(_precision_within(L_inv, rows))
    errors = S @ (alpha[rows] + alpha_one[rows][:, :, None] * shift[:, None])
    return errors, np.diagonal(S, axis1=1, axis2=2)


def _precision_within(L_inv, rows):
    """``[A^-1]_BB`` of every block of rows, shape (n_blocks, size, size)."""
    below = L_inv[rows.min() :]  # zeros above
    if len(rows) == 1:
        columns = np.take(below, rows[0], axis=1)
        return (columns.T @ columns)[None]
    columns = below.T[rows]
    return columns @ columns.transpose(0, 2, 1)


def _inverses(A):
    """Of positive definite matrices, shape (n, size, size), all at once if possible."""
    if A.shape[1] <= MOST_AT_ONCE:
        try:
            inverses = np.linalg.inv(np.linalg.cholesky(A))
            return inverses.transpose(0, 2, 1) @ inverses
        except np.linalg.LinAlgError:
            pass  # some need a jitter
    return np.array([inverse_from_cholesky(cholesky(one)[0]) for one in A])


def leave_block_out(L_inv, alpha, alpha_one, Y, weights, rows):
    """Errors (size, n_outputs) and variances (size,) of one block, given its rows."""
    blocks = leave_blocks_out(L_inv, alpha, alpha_one, Y, weights, rows[None])
    return blocks[0][0], blocks[1][0]


# A row is contradicted if its error is so many times the usual one, and so many usual
# deviations of the outputs: where noise is nil, or differs from place to place, some
# errors are large beside others, and still small.
CONTRADICTED, LEAST_ERROR = 6.0, 0.5
# No more than this share of rows are; if more seem to be, large errors are usual.
MOST_CONTRADICTED = 0.1
# What the weight of such a row is multiplied with: its noise is then large beside the
# signal even if that of the others is the least, 1e-9 of it.
LIGHT = 1e-12


def usual_size(z):
    """A robust standard deviation of every column; it is not nil if most values are."""
    median = 1.4826 * np.median(np.abs(z), axis=0)
    return np.maximum(median, 0.1 * np.sqrt(np.mean(z**2, axis=0)))


def usual_deviation(Y):
    """A robust standard deviation of every output; infinite if most are equal."""
    deviation = 1.4826 * np.median(np.abs(Y - np.median(Y, axis=0)), axis=0)
    return np.where(deviation > 0, deviation, np.inf)


def contradicted_rows(L_inv, Y):
    r"""Rows whose outputs all other rows contradict, the worst first; numbers.

    With :math:`P = A^{-1} - A^{-1} 1 1^\top A^{-1} / (1^\top A^{-1} 1)`, in which the
    mean is unknown, the error of a row left out is :math:`[P Y]_i / P_{ii}` and its
    variance :math:`1 / P_{ii}`. The row with the largest error over deviation is taken
    out of P, because it spoils the predictions of its neighbours, and so on until all
    errors are of a usual size.
    """
    P = L_inv.T @ L_inv
    sums = P.sum(axis=1)
    P -= np.outer(sums, sums / sums.sum())
    alpha, is_left = P @ Y, np.ones(len(Y), dtype=bool)
    least = LEAST_ERROR * usual_deviation(Y)
    rows: list[int] = []
    while len(rows) < MOST_CONTRADICTED * len(Y):
        precision = np.maximum(np.diag(P), 1e-300)
        z = alpha / np.sqrt(precision)[:, None]
        size = np.maximum(usual_size(z[is_left]), 1e-300)
        is_large = np.abs(alpha) > least * precision[:, None]
        worst = np.max(np.where(is_large, np.abs(z) / size, 0.0), axis=1) * is_left
        i = int(np.argmax(worst))
        if worst[i] <= CONTRADICTED:
            break
        column = P[:, i] / P[i, i]
        alpha = alpha - np.outer(column, alpha[i])
        P -= np.outer(column, P[i].copy())
        is_left[i] = False
        rows.append(i)
    return np.array(rows, dtype=np.intp)
