r"""Patchwork kriging: local GPs on a grid, conditioned to agree on common borders.

The method of Park and Apley (2018), see docs/methods.md. With :math:`\mu_j, C_j` the
posterior mean and covariance of cell j at its control points :math:`B_j`, which
:math:`P_j` picks, the common values r minimise :math:`\sum_j (r_j - \mu_j)^\top
C_j^{-1} (r_j - \mu_j)`, with :math:`\Sigma_r^{-1} = \sum_j P_j^\top C_j^{-1} P_j`. A
query in cell j has, with :math:`c = \operatorname{cov}_j(x, B_j)` and :math:`w =
C_j^{-1} c`,

.. math:: \mu(x) = \mu_j(x) + w^\top (r_j - \mu_j), \qquad
    s^2(x) = s_j^2(x) - c^\top w + w^\top [\Sigma_r]_{jj} w .
"""

import numpy as np

from .. import kernels
from .._linalg import add_to_diagonal, cholesky, solve_cholesky
from ._cells import CellsGP, border_covariance

# For control points that nearly determine each other.
CONTROL_JITTER = 1e-10


class PatchworkGP(CellsGP):
    """Local GPs on a regular grid that are conditioned to agree on their borders.

    A baseline for comparisons, for one or two inputs; it refuses more. Its variances
    are continuous too, which those of `DomainDecompositionGP` are not. Memory: the
    factors, ``8 * N * cell_size`` bytes, and the square of the control points' number.

    Parameters
    ----------
    machine : GP or None, default=None
        Kernel and hyperparameters, shared by all cells; None is ``GP()``.
    cell_size : int, default=500
        Mean number of rows per cell. Cells have equal volume, so their numbers of rows
        differ.
    n_control : int, default=5
        Control points on each border of two cells; one for a single input.
    n_jobs, random_state
        As in `overcover.OverlappingCoverRegressor`.

    Attributes
    ----------
    machine_ : GP
        With its tuned hyperparameters.
    cells_ : list of Cell
    n_cells_ : tuple of int
        Cells along each axis.
    control_points_ : ndarray of shape (n_control_points, n_features_in_)
    control_values_ : ndarray of shape (n_control_points, n_outputs_)
        Differences from the mean output.
    amplitude_sq_ : ndarray of shape (n_outputs_,)
        Variance of the signal, from the marginal likelihoods of all cells.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP
    >>> from overcover.baselines import PatchworkGP
    >>> X = np.random.default_rng(0).uniform(-3, 3, (600, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> model = PatchworkGP(GP(length_scale=2.0, noise=1e-4), cell_size=150).fit(X, y)
    >>> model.n_cells_
    (2, 2)
    >>> bool(abs(model.predict([[0.5, 0.5]])[0] - np.sin(0.5) * np.cos(0.5)) < 0.05)
    True
    """

    def _tie(self, kernel, sides):
        """The most likely values at all control points, and their covariance."""
        n_points, self._factors = len(sides), []
        weighted = np.zeros((n_points, self.n_outputs_))
        precision = np.zeros((n_points, n_points))
        for cell in self.cells_ if n_points else ():
            C = kernels.gram(kernel, cell.B) - cell.half.T @ cell.half
            add_to_diagonal(C, CONTROL_JITTER)
            self._factors.append(cholesky(C, "A border's matrix")[0])
            C_inv = solve_cholesky(self._factors[-1], np.eye(len(C)))
            precision[np.ix_(cell.control, cell.control)] += C_inv
            weighted[cell.control] += C_inv @ cell.means
        self.control_values_ = self._spread = weighted
        if n_points:
            L, _ = cholesky(precision, "The borders' matrix")
            self.control_values_ = solve_cholesky(L, weighted)
            self._spread = solve_cholesky(L, np.eye(n_points))

    def _shift(self, j, kernel, Q, K_xq, half, mean, variance):
        cell = self.cells_[j]
        c = border_covariance(cell, kernel, Q, half)
        w = solve_cholesky(self._factors[j], c)
        mean += w.T @ (self.control_values_[cell.control] - cell.means)
        spread = self._spread[np.ix_(cell.control, cell.control)]
        variance -= np.einsum("ij,ij->j", c, w)
        return mean, variance + np.einsum("ij,ij->j", w, spread @ w)
