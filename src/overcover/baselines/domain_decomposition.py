r"""Domain decomposition: local GPs on a grid that agree at points on common borders.

    X, Y -> metric -> cells of a regular grid -> a GP on each -> values at the borders
    -> prediction by the query's cell

The method of Park, Huang and Ding. A cell trains on its own rows only. On every border
between two cells lie *control points* :math:`B`, and both cells must agree on the
values :math:`r` there: with :math:`\mu_j, C_j` the posterior mean and covariance of
cell j at its control points,

.. math:: r = \arg\min_r \sum_j (r_j - \mu_j)^\top C_j^{-1} (r_j - \mu_j), \qquad
    \Sigma_r^{-1} = \sum_j P_j^\top C_j^{-1} P_j ,

and a query in cell j has the posterior of this cell, conditioned on these values: with
:math:`c = \operatorname{cov}_j(x, B_j)` and :math:`w = C_j^{-1} c`,

.. math:: \mu(x) = \mu_j(x) + w^\top (r_j - \mu_j), \qquad
    s^2(x) = s_j^2(x) - c^\top w + w^\top [\Sigma_r]_{jj} w .

Predictions of neighbouring cells are equal at the control points, and nearly equal
between them. The number of control points on a border grows with the power d - 1, and
the number of cells with the power d, so there may be one or two inputs only.
"""

from typing import NamedTuple

import numpy as np

from .. import kernels
from .._linalg import add_to_diagonal, cholesky, solve_cholesky, solve_lower
from .._parallel import run_tasks
from .._validation import check_count
from ..machines import Prediction
from ._shared import SharedKernelGP, count_rows

MOST_FEATURES = 2
# The covariance of all control points is a dense matrix.
MOST_CONTROL_POINTS = 5000
CHUNK = 2**14
LEAST_VARIANCE = 1e-12
# For control points that nearly determine each other.
CONTROL_JITTER = 1e-10


class Cell(NamedTuple):
    """A GP on the rows of one cell, and its posterior at its control points."""

    A: np.ndarray  # rows in units of the kernel, shape (size, n_features)
    L: np.ndarray  # Cholesky factor of the kernel matrix with noise, shape (size, size)
    whitened: np.ndarray  # ``L^-1 Y``, shape (size, n_outputs)
    control: np.ndarray  # indices of its control points, shape (n_control,)
    B: np.ndarray  # their positions, shape (n_control, n_features)
    half: np.ndarray  # ``L^-1 K_xB``, shape (size, n_control)
    means: np.ndarray  # posterior mean there, shape (n_control, n_outputs)
    L_control: np.ndarray  # Cholesky factor of the covariance there, (n_control,) * 2


class DomainDecompositionGP(SharedKernelGP):
    """Local GPs on a regular grid that agree at control points on their borders.

    A baseline for comparisons, for one or two inputs; it refuses more. See
    `overcover.baselines.domain_decomposition`. Memory: the factors, ``8 * N *
    cell_size`` bytes, and the square of the number of control points.

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
    n_features_in_, n_outputs_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP
    >>> from overcover.baselines import DomainDecompositionGP
    >>> X = np.random.default_rng(0).uniform(-3, 3, (600, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> machine = GP(length_scale=2.0, noise=1e-4)
    >>> model = DomainDecompositionGP(machine, cell_size=150).fit(X, y)
    >>> model.n_cells_
    (2, 2)
    >>> bool(abs(model.predict([[0.5, 0.5]])[0] - np.sin(0.5) * np.cos(0.5)) < 0.05)
    True
    """

    def __init__(
        self,
        machine=None,
        *,
        cell_size=500,
        n_control=5,
        n_jobs=None,
        random_state=None,
    ):
        self.machine = machine
        self.cell_size = cell_size
        self.n_control = n_control
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _fit(self, X, Y, weight):
        self._tune(X, Y, weight, self.cell_size)
        self._low, self._width = X.min(axis=0), np.ptp(X, axis=0)
        per_axis = max(1, round((len(X) / self.cell_size) ** (1 / X.shape[1])))
        self.n_cells_ = tuple(per_axis if w > 0 else 1 for w in self._width)
        self.control_points_, sides = self._control_points()
        noises = self._row_noises(len(X), weight)
        owner = self._cell_of(X)

        def fit_cell(j):
            rows = np.flatnonzero(owner == j)
            control = np.flatnonzero((sides == j).any(axis=1))
            kernel, A = self._in_units(X[rows], self._low)
            _, B = self._in_units(self.control_points_[control], self._low)
            centred = Y[rows] - self._Y_mean
            return make_cell(kernel, A, centred, noises[rows], control, B)

        tasks = ((j,) for j in range(int(np.prod(self.n_cells_))))
        self.cells_ = list(run_tasks(fit_cell, tasks, self.n_jobs))
        self.control_values_, self._spread = agree(
            self.cells_, len(self.control_points_), Y.shape[1]
        )
        total = np.sum([np.sum(c.whitened**2, axis=0) for c in self.cells_], axis=0)
        self._amplitude_sq = total / count_rows(len(X), weight)

    def _cell_of(self, X):
        """The cell of each row, or the nearest cell outside the grid; shape (n,)."""
        width = np.where(self._width > 0, self._width, 1.0)
        counts = np.array(self.n_cells_)
        place = np.floor((X - self._low) / width * counts)
        place = np.clip(place, 0, counts - 1).astype(np.intp)
        return np.ravel_multi_index(tuple(place.T), self.n_cells_)

    def _control_points(self):
        """Points, shape (n_points, n_features), and their cells, (n_points, 2)."""
        counts, d = np.array(self.n_cells_), len(self.n_cells_)
        along = (np.arange(self.n_control) + 0.5) / self.n_control if d > 1 else [0.5]
        points, sides = [], []
        for index in np.ndindex(*self.n_cells_):
            for axis in range(d):
                beyond = np.array(index)
                beyond[axis] += 1
                if beyond[axis] == counts[axis]:
                    continue
                pair = index, tuple(beyond)
                cells = [np.ravel_multi_index(p, self.n_cells_) for p in pair]
                for share in along:
                    place = np.array(index) + share
                    place[axis] = beyond[axis]
                    points.append(self._low + place / counts * self._width)
                    sides.append(cells)
        if len(points) > MOST_CONTROL_POINTS:
            raise ValueError(
                f"cell_size={self.cell_size} and n_control={self.n_control} make "
                f"{len(points)} control points, more than {MOST_CONTROL_POINTS}. "
                "Choose larger cells, or fewer points on each border."
            )
        both = np.array(sides, dtype=np.intp).reshape(-1, 2)
        return np.array(points).reshape(-1, d), both

    def _predict_rows(self, X, return_std, noise=True):
        mean = np.empty((len(X), self.n_outputs_))
        latent = np.empty(len(X))
        for start in range(0, len(X), CHUNK):
            block = X[start : start + CHUNK].astype(np.float64)
            owner = self._cell_of(block)
            for j in np.unique(owner):
                rows = np.flatnonzero(owner == j)
                posterior = self._answer(self.cells_[j], block[rows])
                mean[start + rows], latent[start + rows] = posterior
        if not return_std:
            return Prediction(mean + self._Y_mean, None)
        latent = np.maximum(latent, LEAST_VARIANCE)
        return self._predicted(mean, latent, self._amplitude_sq, noise)

    def _answer(self, cell, X):
        """Latent mean and variance of queries in one cell."""
        kernel, Q = self._in_units(X, self._low)
        half = solve_lower(cell.L, kernels.cross(kernel, cell.A, Q))
        mean = half.T @ cell.whitened
        variance = kernels.diagonal(kernel, Q) - np.einsum("ij,ij->j", half, half)
        if not len(cell.control):
            return mean, variance
        c = kernels.cross(kernel, cell.B, Q) - cell.half.T @ half
        w = solve_cholesky(cell.L_control, c)
        mean += w.T @ (self.control_values_[cell.control] - cell.means)
        spread = self._spread[np.ix_(cell.control, cell.control)]
        variance -= np.einsum("ij,ij->j", c, w)
        return mean, variance + np.einsum("ij,ij->j", w, spread @ w)

    def _check_options(self, n_features):
        check_count("cell_size", self.cell_size, 1, "500 suits most data.")
        check_count("n_control", self.n_control, 1, "5 suits most data.")
        if n_features > MOST_FEATURES:
            raise ValueError(
                f"X has {n_features} features, but this method allows at most "
                f"{MOST_FEATURES}: borders would need far too many control points. Use "
                "OverlappingCoverRegressor(), which has no borders."
            )


def make_cell(kernel, A, Y, row_noise, control, B) -> Cell:
    """Fit the GP of one cell, with centred Y; a cell without rows keeps its prior."""
    L = np.empty((0, 0))
    whitened, half = Y, np.empty((0, len(B)))
    if len(A):
        L, _ = cholesky(add_to_diagonal(kernels.gram_lower(kernel, A), row_noise))
        whitened = solve_lower(L, Y)
        half = solve_lower(L, kernels.cross(kernel, A, B)) if len(B) else half
        half = half.reshape(len(A), len(B))
    L_control = np.empty((0, 0))
    if len(B):
        C = kernels.gram(kernel, B) - half.T @ half
        L_control, _ = cholesky(add_to_diagonal(C, CONTROL_JITTER), "A border's matrix")
    return Cell(A, L, whitened, control, B, half, half.T @ whitened, L_control)


def agree(cells, n_points, n_outputs):
    """The most likely values at all control points, and their covariance."""
    weighted, precision = np.zeros((n_points, n_outputs)), np.zeros((n_points,) * 2)
    if not n_points:
        return weighted, precision
    for cell in cells:
        C_inv = solve_cholesky(cell.L_control, np.eye(len(cell.control)))
        precision[np.ix_(cell.control, cell.control)] += C_inv
        weighted[cell.control] += C_inv @ cell.means
    L, _ = cholesky(precision, "The borders' matrix")
    return solve_cholesky(L, weighted), solve_cholesky(L, np.eye(n_points))
