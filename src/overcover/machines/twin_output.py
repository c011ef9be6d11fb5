r"""The output side of a Twin GP: what of :math:`K_Y` a query has to see.

A query's objective looks at a candidate output y only through

.. math:: k_Y(y)^\top u \quad\text{and}\quad
    c(y) = k_Y(y, y) + \lambda_Y - k_Y(y)^\top (K_Y + \lambda_Y W^{-1})^{-1} k_Y(y).

:math:`K_Y` is usually of low numerical rank. A pivoted Cholesky factorisation
:math:`K_Y \approx R^\top R` names r rows, the *pivots*, on which all similarities
hang: :math:`k_Y(y) \approx B k_r(y)` with :math:`k_r` the similarities to the pivots
alone and :math:`B^\top = R_1^{-1} R`, :math:`R_1` the triangle of the pivots. Then

.. math:: k_Y(y)^\top u = k_r(y)^\top (B^\top u), \qquad
    c(y) = k_Y(y, y) + \lambda_Y - k_r(y)^\top C k_r(y), \qquad
    C = R_1^{-1} \, G (G + \lambda_Y I)^{-1} R_1^{-\top}, \qquad G = R W R^\top,

so an evaluation costs :math:`O(r^2)` where the whole matrix costs :math:`O(M^2)`.

*Error bound.* With :math:`\tau` the largest diagonal entry of :math:`K_Y - R^\top R`
and :math:`\pi(y) = 1 - \lVert R_1^{-\top} k_r(y) \rVert^2 \le 1` the share of y that
the pivots do not see, Cauchy and Schwarz give :math:`|k_Y(y) - B k_r(y)|_i \le
\sqrt{\tau \pi(y)}` for every row i. Near the training outputs :math:`\pi` is itself of
the order of :math:`\tau`.

With every row a pivot nothing is approximated: the exact, dense path.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import blas, lapack

from .. import kernels
from .._linalg import (
    add_to_diagonal,
    cholesky,
    inverse_from_cholesky,
    solve_cholesky,
)

# Largest unseen similarity, relative to the noise, and at most: moves predictions by
# less than 0.1 % of the outputs' deviation on average (docs/numerics.md), if no output
# has a smaller variance in kernel units than NARROW.
UNSEEN_SHARE, MOST_UNSEEN, NARROW = 8e-3, 3e-4, 1 / 3
# Less than this cannot be told from rounding.
LEAST_UNSEEN = 1e-9
# An output of less variance in kernel units does not vary at all.
CONSTANT = 1e-24
# With more pivots than this share of the rows, the dense path is as quick.
MOST_PIVOTS = 0.9


class OutputSide(NamedTuple):
    """Everything about the outputs of one subdomain that its queries look at."""

    pivots: np.ndarray  # outputs of the pivots in kernel units, shape (r, n_outputs)
    C: Any  # shape (r, r), symmetric; or a function that multiplies rows with it
    # how similarities to the pivots become those to all rows, shape (size, r); of shape
    # (0, r) where every row is a pivot, in order
    B: np.ndarray
    unseen: float  # the error bound's tau; 0 in the dense path


def make_output_side(Z, noise, weights, rank, left=(), K_yy=None):
    r"""Summarise the outputs of a subdomain; what rows `left` take with them.

    With :math:`P = (K_Y + \lambda W^{-1})^{-1}`, leaving out row i lowers :math:`k^\top
    P k` by :math:`(b_i^\top k_r)^2`, :math:`b_i = B^\top P_{:, i} / \sqrt{P_{ii}}`, the
    rows of the second result. A number as the rank is the most pivots. K_yy, the kernel
    matrix of Z if it is there already, is overwritten.
    """
    K_yy = kernels.cross("rbf", Z, Z) if K_yy is None else K_yy
    left = np.asarray(left, dtype=np.intp)
    tolerance = _most_unseen(Z, noise)
    if rank != "full" and (rank != "auto" or tolerance > LEAST_UNSEEN):
        factor = pivoted_cholesky(K_yy, max(tolerance, LEAST_UNSEEN), rank)
        if len(factor.R) <= MOST_PIVOTS * len(Z) or rank != "auto":
            return _of_pivots(factor, Z, noise, weights, left)
    L, _ = cholesky(add_to_diagonal(K_yy, noise / weights), "The output kernel matrix")
    C = inverse_from_cholesky(L)
    taken = C[left] / np.sqrt(C[left, left])[:, None]
    return OutputSide(Z, C, np.empty((0, len(Z))), 0.0), taken


def _most_unseen(Z, noise):
    """Similarity that pivots may leave unseen without moving any output much."""
    # Outputs that vary by s < 1 in kernel units differ in similarity by s^2 only.
    variances = Z.var(axis=0)
    narrowest = np.min(variances, where=variances > CONSTANT, initial=NARROW)
    return min(UNSEEN_SHARE * noise, MOST_UNSEEN) * narrowest / NARROW


def solved_output_side(Z, noise, weights) -> OutputSide:
    """The exact output side for a single query: solves instead of an inverse."""
    K_yy = add_to_diagonal(kernels.gram_lower("rbf", Z), noise / weights)
    L, _ = cholesky(K_yy, "The output kernel matrix")
    nothing = np.empty((0, len(Z)))
    return OutputSide(Z, lambda K: solve_cholesky(L, K.T).T, nothing, 0.0)


class PivotedFactor(NamedTuple):
    """``K[order][:, order] ~ R^T R``: R of shape (r, n), the pivots first."""

    R: np.ndarray
    order: np.ndarray
    unseen: float  # largest diagonal entry of the remainder


def pivoted_cholesky(K, tolerance, most="auto") -> PivotedFactor:
    """Cholesky factorisation that takes the row least explained so far, until all are.

    K has a unit diagonal. It stops when no diagonal entry of the remainder is larger
    than the tolerance, and after `most` rows of R.
    """
    # All diagonal entries are equal: start with the most typical row, not the first.
    first = int(np.argmax(K.sum(axis=1)))
    swapped = np.arange(len(K))
    swapped[[0, first]] = first, 0
    K = K[np.ix_(swapped, swapped)]
    R, order, rank, _ = lapack.dpstrf(K.T, tol=tolerance, lower=0, overwrite_a=1)
    rank = max(1, int(rank)) if most == "auto" else max(1, min(int(rank), int(most)))
    R = np.triu(R[:rank])
    unseen = np.max(1.0 - np.einsum("ij,ij->j", R, R))
    return PivotedFactor(R, swapped[order - 1], float(max(0.0, unseen)))


def _of_pivots(factor, Z, noise, weights, left):
    """`make_output_side` from a pivoted factor."""
    R, order, unseen = factor
    n_pivots = len(R)
    R_1 = np.asfortranarray(R[:, :n_pivots])
    B = np.empty((len(Z), n_pivots))
    B[order[:n_pivots]] = np.eye(n_pivots)
    B[order[n_pivots:]] = lapack.dtrtrs(R_1, R[:, n_pivots:], lower=0)[0].T
    G = blas.dsyrk(1.0, R * np.sqrt(weights[order]), lower=1)
    L, _ = cholesky(add_to_diagonal(G, noise), "The output kernel matrix")
    # G (G + l)^-1 = I - l (G + l)^-1, sandwiched between R_1^-1 and R_1^-T.
    shrunk = inverse_from_cholesky(L)
    shrunk *= -noise
    add_to_diagonal(shrunk, 1.0)
    half, _ = lapack.dtrtrs(R_1, shrunk, lower=0)
    C, _ = lapack.dtrtrs(R_1, half.T, lower=0)
    # Columns of P by Woodbury: P_ii = (w / l) (1 - w h), h = R_i^T (G + l)^-1 R_i.
    R_left = R[:, np.argsort(order)[left]]
    solved = solve_cholesky(L, R_left)
    w = weights[left]
    leverages = np.einsum("ij,ij->j", R_left, solved)
    diagonal = np.maximum(1.0 - w * leverages, 1e-12) * w / noise
    seen_by_pivots, _ = lapack.dtrtrs(R_1, solved, lower=0)
    taken = (seen_by_pivots * (w / np.sqrt(diagonal))).T
    return OutputSide(Z[order[:n_pivots]], 0.5 * (C + C.T), B, unseen), taken
