r"""Groups of rows left out of a Gaussian process, in closed form.

With A the kernel matrix (noise included), :math:`\alpha = A^{-1} Y` and B the rows of a
group, :math:`S = ([A^{-1}]_{BB})^{-1}` is the covariance of what the other rows predict
for B, noise included, and :math:`S \alpha_B` their errors. Leaving out one row is a
group of one.
"""

import numpy as np

from ._linalg import cholesky, inverse_factor, solve_cholesky


def solve_all(A, Y) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `leave_groups_out` needs of a kernel matrix: ``L^-1, A^-1 Y, A^-1 1``.

    Parameters
    ----------
    A : ndarray of shape (n, n)
        With noise; only its lower triangle is read.
    Y : ndarray of shape (n, n_outputs)

    Returns
    -------
    L_inv : ndarray of shape (n, n)
    alpha : ndarray of shape (n, n_outputs)
    alpha_one : ndarray of shape (n,)
    """
    L, _ = cholesky(A)
    solved = solve_cholesky(L, np.column_stack([Y, np.ones(len(Y))]))
    return inverse_factor(L), solved[:, :-1].copy(), solved[:, -1]


def leave_groups_out(L_inv, alpha, alpha_one, Y, weights, groups):
    """Errors and variances of every row, predicted without the rows of its group.

    Memory: the columns of the largest group.

    Parameters
    ----------
    L_inv : ndarray of shape (n, n)
        Inverse of the lower Cholesky factor of A.
    alpha : ndarray of shape (n, n_outputs)
        ``A^-1 Y``.
    alpha_one : ndarray of shape (n,)
        ``A^-1 1``: the mean of the outputs is left out too.
    Y : ndarray of shape (n, n_outputs)
        Minus their mean, weighted.
    weights : ndarray of shape (n,)
    groups : ndarray of int of shape (n,) or None
        None leaves out every row alone.

    Returns
    -------
    errors : ndarray of shape (n, n_outputs)
    variances : ndarray of shape (n,)

    Examples
    --------
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
    moved = np.zeros((len(rest), Y.shape[1]))
    np.add.at(moved, numbers, weights[:, None] * Y)
    moved = np.divide(moved, rest[:, None], out=moved, where=rest[:, None] > 0)
    moved[rest <= 0] = 0.0
    left = alpha + alpha_one[:, None] * moved[numbers]
    errors, variances = left / precision[:, None], 1.0 / precision
    sizes = np.bincount(numbers)
    order = np.argsort(numbers, kind="stable")
    ends = np.cumsum(sizes)
    for group in np.flatnonzero(sizes > 1):
        rows = order[ends[group] - sizes[group] : ends[group]]
        if len(rows) == len(alpha):
            continue  # nothing is left to predict from: one at a time then
        columns = L_inv[:, rows]
        S = np.linalg.inv(columns.T @ columns)
        errors[rows], variances[rows] = S @ left[rows], np.diag(S)
    return errors, variances
