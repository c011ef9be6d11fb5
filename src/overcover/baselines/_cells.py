"""Cells of a regular grid, a GP on each, and control points on the common borders."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import kernels
from .._linalg import solve_lower
from .._parallel import run_tasks
from .._weights import evidence_of
from ._shared import SharedKernelGP, factor_of

MOST_FEATURES = 2
# Patchwork kriging has a dense covariance of all control points.
MOST_CONTROL_POINTS = 5000
LEAST_VARIANCE = 1e-12


class Grid(NamedTuple):
    """A box that is divided into equal cells."""

    low: np.ndarray  # its lower corner, shape (n_features,)
    width: np.ndarray  # its sides, shape (n_features,)
    n_cells: tuple[int, ...]  # cells along each axis

    def cell_of(self, X):
        """The cell of each row, or the nearest cell outside the grid; shape (n,)."""
        width = np.where(self.width > 0, self.width, 1.0)
        counts = np.array(self.n_cells)
        place = np.floor((X - self.low) / width * counts)
        place = np.clip(place, 0, counts - 1).astype(np.intp)
        return np.ravel_multi_index(tuple(place.T), self.n_cells)

    def control_points(self, n_control):
        """Points, shape (n_points, n_features), and their two cells, (n_points, 2)."""
        counts, d = np.array(self.n_cells), len(self.n_cells)
        along = (np.arange(n_control) + 0.5) / n_control if d > 1 else [0.5]
        points, sides = [], []
        for index in map(np.array, np.ndindex(*self.n_cells)):
            for axis in np.flatnonzero(index + 1 < counts):
                beyond = index + (np.arange(d) == axis)
                cells = [np.ravel_multi_index(i, self.n_cells) for i in (index, beyond)]
                for share in along:
                    place = index + share
                    place[axis] = beyond[axis]
                    points.append(self.low + place / counts * self.width)
                    sides.append(cells)
        both = np.array(sides, dtype=np.intp).reshape(-1, 2)
        return np.array(points).reshape(-1, d), both


def make_grid(X, cell_size):
    """Equal cells over the rows, `cell_size` of them in each on average."""
    low, width = X.min(axis=0), np.ptp(X, axis=0)
    per_axis = max(1, round((len(X) / cell_size) ** (1 / X.shape[1])))
    return Grid(low, width, tuple(per_axis if w > 0 else 1 for w in width))


class Cell(NamedTuple):
    """A GP on the rows of one cell, and its means at its control points."""

    A: np.ndarray  # rows in units of the kernel, shape (size, n_features)
    noise: np.ndarray  # of each row, shape (size,)
    L: np.ndarray  # Cholesky factor of the kernel matrix with noise, shape (size, size)
    whitened: np.ndarray  # ``L^-1 Y``, shape (size, n_outputs)
    control: np.ndarray  # indices of its control points, shape (n_control,)
    B: np.ndarray  # their positions, shape (n_control, n_features)
    K_xB: np.ndarray  # kernel values, shape (size, n_control)
    half: np.ndarray  # ``L^-1 K_xB``, shape (size, n_control)
    means: np.ndarray  # posterior mean there, shape (n_control, n_outputs)


def whiten(L, B):
    """``L^-1 B``; a cell may have no rows, or B no columns."""
    return solve_lower(L, B) if B.size else B


def border_covariance(cell, kernel, Q, half):
    """Posterior covariance of a cell's control points and queries, ``half`` theirs."""
    return kernels.cross(kernel, cell.B, Q) - cell.half.T @ half


@dataclass(eq=False, repr=False, kw_only=True)
class CellsGP(SharedKernelGP):
    """Base of methods that `_tie` cells at their borders, and `_shift` their answers.

    `_tie` takes the two cells of each control point; `_shift` changes the mean and the
    variance (before the amplitude, maybe by output) of queries in a cell with borders.
    """

    cell_size: int = 500
    n_control: int = 5

    counts = {"cell_size": 1, "n_control": 1}
    chunk = 2**14

    def _fit(self, X, Y, weight):
        _, weights = self._tune(X, Y, weight, self.cell_size)
        self._grid = make_grid(X, self.cell_size)
        self.n_cells_ = self._grid.n_cells
        self.control_points_, sides = self._grid.control_points(self.n_control)
        if len(self.control_points_) > MOST_CONTROL_POINTS:
            raise ValueError(
                f"cell_size={self.cell_size} and n_control={self.n_control} make "
                f"{len(self.control_points_)} control points, more than "
                f"{MOST_CONTROL_POINTS}. Choose larger cells, or fewer points on each "
                "border."
            )
        kernel, A = self._in_units(X, self._grid.low)
        _, B = self._in_units(self.control_points_, self._grid.low)
        noises, owner = self._noise / weights, self._grid.cell_of(X)
        Y = Y - self._Y_mean

        def fit_cell(j):
            """The GP of one cell; without rows it keeps its prior."""
            rows = np.flatnonzero(owner == j)
            control = np.flatnonzero((sides == j).any(axis=1))
            own = A[rows], noises[rows]
            L = factor_of(kernel, *own) if len(rows) else np.empty((0, 0))
            K_xB = kernels.cross(kernel, A[rows], B[control])
            half, whitened = whiten(L, K_xB), whiten(L, Y[rows])
            border = control, B[control], K_xB, half, half.T @ whitened
            return Cell(*own, L, whitened, *border)

        tasks = ((j,) for j in range(int(np.prod(self.n_cells_))))
        self.cells_ = list(run_tasks(fit_cell, tasks, self.n_jobs))
        self._tie(kernel, sides)
        total = np.sum([np.sum(c.whitened**2, axis=0) for c in self.cells_], axis=0)
        self.amplitude_sq_ = total / evidence_of(weights).sum()

    def _answers(self, X):
        owner = self._grid.cell_of(X)
        mean, latent = np.empty((2, len(X), self.n_outputs_))
        for j in np.unique(owner):
            rows = np.flatnonzero(owner == j)
            asked = self._in_units(X[rows], self._grid.low)
            mean[rows], variances = self._answer(j, *asked)
            latent[rows] = variances.reshape(len(rows), -1)
        return mean, np.maximum(latent, LEAST_VARIANCE)

    def _answer(self, j, kernel, Q):
        """Means and variances of queries in cell j, before the amplitude."""
        cell = self.cells_[j]
        K_xq = kernels.cross(kernel, cell.A, Q)
        half = whiten(cell.L, K_xq)
        variance = kernels.diagonal(kernel, Q) - np.einsum("ij,ij->j", half, half)
        mean = half.T @ cell.whitened
        if not len(cell.control):
            return mean, variance
        return self._shift(j, kernel, Q, K_xq, half, mean, variance)

    def _check_options(self, n_features):
        super()._check_options(n_features)
        if n_features > MOST_FEATURES:
            raise ValueError(
                f"X has {n_features} features, but this method allows at most "
                f"{MOST_FEATURES}: borders would need far too many control points. Use "
                "OverlappingCoverRegressor(), which has no borders."
            )
