r"""Hyperparameters of a sparse GP from its own marginal likelihood.

Notation as in `overcover.baselines.sparse_gp`; ``theta`` is ``[log length scales...,
log noise]``. Let :math:`C = Q + \Lambda`, and :math:`g = \mathrm{diag}(K - Q)`, the
part that the inducing points miss. With the best amplitude :math:`s_j^2 = y_j^\top
C^{-1} y_j / n`, the negative log likelihood of all outputs is, up to a constant,

.. math:: F = \tfrac n2 \sum_j \log s_j^2 + \tfrac{d_Y}{2} \log|C| + \tfrac{d_Y}{2}
    \sum_i (c_i - 1) \log(w_i \Lambda_{ii}), \qquad n = \textstyle\sum_i c_i ,

with :math:`c_i = \min(w_i, 1)` (see `overcover.tuning.likelihood`), where
:math:`w_i \Lambda_{ii}` is :math:`g_i + \nu` for fic and :math:`\nu` otherwise.
The variational bound of Titsias (2009), for dtc, sor and nystrom, adds
:math:`\tfrac{d_Y}{2 \nu} \sum_i w_i g_i`, a penalty for the missing part: :math:`F` is
then never below that of the full GP.

Its gradient needs no n x n matrix. With :math:`S = \partial F / \partial C = \tfrac12
(d_Y C^{-1} - R R^\top)`, :math:`R = C^{-1} Y / s`, :math:`h = \partial F / \partial g`
and :math:`T = K_{mm}^{-1} K_{mn}`,

.. math:: dF = 2 \langle (S - \mathrm{diag}\,h) T^\top, dK_{nm} \rangle - \langle T (S -
    \mathrm{diag}\,h) T^\top, dK_{mm} \rangle + \text{terms of the noise},

and by Woodbury :math:`C^{-1} V^\top = \Lambda^{-1} V^\top B^{-1}`, so all terms are
sums over chunks of V.
"""

import numpy as np

from .. import kernels
from .._linalg import (
    add_to_diagonal,
    inverse_from_cholesky,
    solve_lower,
    squared_distances,
)
from .._parallel import run_tasks
from .._weights import evidence_of
from ..tuning._problem import START_NOISE, descend, standardize
from ._sparse import fit_diagonal, make_inducing, squared_norms, summed

# Iterations with one common factor of all length scales, and iterations of each.
TIED_ITER, MAX_ITER = 15, 40


def climb_bound(method, machine, X, Y, weights, points, n_jobs):
    """Log hyperparameters that maximise the likelihood; fixed ones do not change."""
    fixed = machine.fixed_theta(X.shape[1])
    problem, _, restore = standardize(
        machine.used_kernel_, X, Y, weights, fixed, n_jobs
    )
    if not problem.free.any() or problem.Y.shape[1] == 0 or len(X) < 2:
        return machine.theta_[0]
    used, unit = restore.used[:-1], np.exp(restore.shift[:-1])
    X_unit = problem.X[:]
    Z = ((points - problem.X.shift)[:, used]) / unit
    Y = problem.Y - np.average(problem.Y, axis=0, weights=weights)
    rule = "fic" if method in ("fic", "pic") else "vfe"
    data = rule, problem.kernel, X_unit, Y, weights, Z

    def objective(theta):
        try:
            return negative_bound(theta, *data, n_jobs)
        except np.linalg.LinAlgError:
            return 1e10, np.zeros(len(theta))

    start = restore.inverse(machine.theta_[0])
    # A few inducing points need more noise than local machines. With too little, the
    # bound is in the thousands, and the first step from there would be arbitrary.
    wide = start.copy()
    wide[-1] = max(start[-1], np.log(START_NOISE)) if problem.free[-1] else start[-1]
    tied = problem.directions(np.zeros(len(start) - 1, dtype=bool))
    wide = descend(problem, wide, objective, tied, TIED_ITER)
    better = min(start, wide, key=lambda theta: objective(theta)[0])
    each = problem.directions()
    return restore(descend(problem, better, objective, each, MAX_ITER))


def negative_bound(theta, rule, kernel, X, Y, weights, Z, n_jobs=None):
    """F per output value and its gradient, by "fic" or "vfe"; Y is centred."""
    counts, n_outputs, noise = evidence_of(weights), Y.shape[1], np.exp(theta[-1])
    n = counts.sum()
    A, A_Z = X / np.exp(theta[:-1]), Z / np.exp(theta[:-1])
    inducing = make_inducing(kernel, A_Z, noise)
    method = "fic" if rule == "fic" else "dtc"
    state, energy = fit_diagonal(method, inducing, A, Y, weights, n_jobs)
    scale = np.sqrt(energy / n)
    # Inverses of m x m factors, for products with every chunk.
    B_inv = inverse_from_cholesky(state.L_B)
    L_inv = solve_lower(inducing.L, np.eye(len(Z)))
    right = state.alpha / scale

    def backpropagate(rows):
        """Terms of some rows: of F, of its slopes, and of ``V diag(h) V^T``."""
        dist_sq = squared_distances(A[rows], A_Z)
        K_nm, slopes = kernels.apply_with_slope(kernel, dist_sq)
        V, w = inducing.whiten(K_nm), weights[rows]
        missed = np.maximum(1.0 - squared_norms(V), 0.0)
        own = missed + noise if rule == "fic" else np.full(len(w), noise)
        lam = own / w
        R = (Y[rows] / scale - K_nm @ right) / lam[:, None]
        less = counts[rows] - 1.0
        value = np.sum(np.log(lam) + less * np.log(own))
        C_inv = (1.0 - squared_norms(solve_lower(state.L_B, V)) / lam) / lam
        by_own = (n_outputs * C_inv - squared_norms(R.T)) / w
        by_own = 0.5 * (by_own + n_outputs * less / own)
        if rule == "fic":
            by_missed, by_noise = by_own, by_own.sum()
        else:
            value += np.sum(w * missed) / noise
            by_missed = 0.5 * n_outputs * w / noise
            by_noise = by_own.sum() - np.sum(by_missed * missed) / noise
        W = (V.T * (0.5 * n_outputs / lam)[:, None]) @ B_inv
        W -= V.T * by_missed[:, None]
        W = W @ L_inv - 0.5 * R @ right.T
        by_scale = 2.0 * kernels.weighted_differences(W, slopes, A[rows], A_Z)
        return value, by_scale, by_noise, (V * by_missed) @ V.T

    parts = run_tasks(backpropagate, zip(inducing.chunks(len(A))), n_jobs)
    value, by_scale, by_noise, spread = summed(parts)
    inner = 0.5 * n_outputs * add_to_diagonal(-B_inv, 1.0) - spread
    W = L_inv.T @ inner @ L_inv - 0.5 * right @ right.T
    slopes = kernels.apply_with_slope(kernel, squared_distances(A_Z, A_Z))[1]
    by_scale = by_scale - kernels.weighted_differences(W, slopes, A_Z, A_Z)
    value = n_outputs * (np.log(np.diag(state.L_B)).sum() + 0.5 * value)
    value += 0.5 * n * np.log(energy / n).sum()
    gradient = np.append(-2.0 * by_scale, noise * by_noise)
    return value / (n * n_outputs), gradient / (n * n_outputs)
