"""Cells of a regular grid, a GP on each, and control points on the common borders."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .. import kernels
from .._linalg import add_to_diagonal, cholesky, solve_lower
from .._parallel import run_tasks
from .._validation import check_count
from ._shared import SharedKernelGP, count_rows, in_chunks

MOST_FEATURES = 2
# Patchwork kriging has a dense covariance of all control points.
MOST_CONTROL_POINTS = 5000
CHUNK = 2**14
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
        for index in np.ndindex(*self.n_cells):
            for axis in range(d):
                beyond = np.array(index)
                beyond[axis] += 1
                if beyond[axis] == counts[axis]:
                    continue
                pair = index, tuple(beyond)
                cells = [np.ravel_multi_index(p, self.n_cells) for p in pair]
                for share in along:
                    place = np.array(index) + share
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
    L: np.ndarray  # Cholesky factor of the kernel matrix with noise, shape (size, size)
    whitened: np.ndarray  # ``L^-1 Y``, shape (size, n_outputs)
    noise: np.ndarray  # of each row, shape (size,)
    control: np.ndarray  # indices of its control points, shape (n_control,)
    B: np.ndarray  # their positions, shape (n_control, n_features)
    K_xB: np.ndarray  # kernel values, shape (size, n_control)
    half: np.ndarray  # ``L^-1 K_xB``, shape (size, n_control)
    means: np.ndarray  # posterior mean there, shape (n_control, n_outputs)


def make_cell(kernel, A, Y, noise, control, B) -> Cell:
    """Fit the GP of one cell, with centred Y; a cell without rows keeps its prior."""
    L, whitened = np.empty((0, 0)), Y
    K_xB = half = np.empty((len(A), len(B)))
    if len(A):
        L, _ = cholesky(add_to_diagonal(kernels.gram_lower(kernel, A), noise))
        whitened = solve_lower(L, Y)
    if K_xB.size:
        K_xB = kernels.cross(kernel, A, B)
        half = solve_lower(L, K_xB)
    means = half.T @ whitened
    return Cell(A, L, whitened, noise, control, B, K_xB, half, means)


class Posterior(NamedTuple):
    """What a cell's own rows say about queries."""

    K_xq: np.ndarray  # kernel values, shape (size, n_queries)
    half: np.ndarray  # ``L^-1 K_xq``, same shape
    mean: np.ndarray  # shape (n_queries, n_outputs)
    variance: np.ndarray  # of the function, shape (n_queries,)


def ask(cell, kernel, Q) -> Posterior:
    """The posterior of a cell's GP, before the cells agree."""
    K_xq = kernels.cross(kernel, cell.A, Q) if len(cell.A) else np.empty((0, len(Q)))
    half = solve_lower(cell.L, K_xq) if len(cell.A) else K_xq
    variance = kernels.diagonal(kernel, Q) - np.einsum("ij,ij->j", half, half)
    return Posterior(K_xq, half, half.T @ cell.whitened, variance)


@dataclass(eq=False, repr=False, kw_only=True)
class CellsGP(SharedKernelGP):
    """Base of methods that `_tie` cells at borders after the fit, and `_answer`."""

    cell_size: int = 500
    n_control: int = 5

    def _tie(self, sides):
        """Make the cells agree; `sides` are the two cells of each control point."""
        raise NotImplementedError

    def _answer(self, j, kernel, Q):
        """Mean of queries in cell j; variance before the amplitude, maybe by output."""
        raise NotImplementedError

    def _fit(self, X, Y, weight):
        self._tune(X, Y, weight, self.cell_size)
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
        noises = self._row_noises(len(X), weight)
        owner = self._grid.cell_of(X)

        def fit_cell(j):
            rows = np.flatnonzero(owner == j)
            control = np.flatnonzero((sides == j).any(axis=1))
            kernel, A = self._in_units(X[rows], self._grid.low)
            _, B = self._in_units(self.control_points_[control], self._grid.low)
            centred = Y[rows] - self._Y_mean
            return make_cell(kernel, A, centred, noises[rows], control, B)

        tasks = ((j,) for j in range(int(np.prod(self.n_cells_))))
        self.cells_ = list(run_tasks(fit_cell, tasks, self.n_jobs))
        self._tie(sides)
        total = np.sum([np.sum(c.whitened**2, axis=0) for c in self.cells_], axis=0)
        self._amplitude_sq = total / count_rows(len(X), weight)

    def _predict_rows(self, X, return_std, noise=True):
        mean, latent = in_chunks(self._answers, X, CHUNK)
        latent = np.maximum(latent, LEAST_VARIANCE) if return_std else None
        return self._predicted(mean, latent, self._amplitude_sq, noise)

    def _answers(self, X):
        owner = self._grid.cell_of(X)
        mean, latent = np.empty((2, len(X), self.n_outputs_))
        for j in np.unique(owner):
            rows = np.flatnonzero(owner == j)
            kernel, Q = self._in_units(X[rows], self._grid.low)
            mean[rows], variances = self._answer(j, kernel, Q)
            latent[rows] = variances.reshape(len(rows), -1)
        return mean, latent

    def _check_options(self, n_features):
        check_count("cell_size", self.cell_size, 1, "500 suits most data.")
        check_count("n_control", self.n_control, 1, "5 suits most data.")
        if n_features > MOST_FEATURES:
            raise ValueError(
                f"X has {n_features} features, but this method allows at most "
                f"{MOST_FEATURES}: borders would need far too many control points. Use "
                "OverlappingCoverRegressor(), which has no borders."
            )
