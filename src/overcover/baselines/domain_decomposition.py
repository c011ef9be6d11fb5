r"""Domain decomposition: local kriging on a grid, with equal values on common borders.

The method of Park, Huang and Ding (2011); docs/methods.md derives it. With :math:`A = K
+ \nu I` of a cell's own rows, :math:`h = A^{-1} y`, :math:`e = y^\top h` and kernel
values :math:`k_b`, two cells i and j agree at a control point b on the value

.. math:: r = \frac{e_j \, k_{ib}^\top h_i + e_i \, k_{jb}^\top h_j}{e_i + e_j} .

Between its control points B, a cell extends the shift by a similarity :math:`\rho`:

.. math:: \mu(x) = k_x^\top h + \delta(x), \qquad
    \delta(x) = \rho(x, B) \, \rho(B, B)^{-1} (r_B - K_B^\top h), \qquad
    s^2(x) = k(x, x) - k_x^\top A^{-1} k_x + \delta(x)^2 / e .

It is the cell's posterior covariance, or the cosine between kernel values, which hardly
falls inside a cell. A cell without rows has no opinion: its neighbour decides r, and
the kernel is its similarity.
"""

from dataclasses import dataclass

import numpy as np

from .._linalg import cholesky, solve_cholesky
from ._cells import CellsGP, border_covariance

# Steps that refine the coefficients of a shift, whose matrix is nearly singular.
REFINEMENTS = 3


@dataclass(eq=False, repr=False, kw_only=True)
class DomainDecompositionGP(CellsGP):
    """Local kriging on a regular grid, with equal predictions on common borders.

    A baseline for comparisons, for one or two inputs; it refuses more. Its variances
    jump at borders; those of `PatchworkGP` do not. Memory: the factors,
    ``8 * N * cell_size`` bytes.

    Parameters
    ----------
    machine, cell_size, n_control, n_jobs, random_state
        As in `PatchworkGP`.
    extension : {"posterior", "cosine"}, default="posterior"
        How shifts at borders extend into a cell: by its posterior covariance, or by the
        cosine between kernel values, which few control points suit only.

    Attributes
    ----------
    machine_, cells_, n_cells_, control_points_, control_values_, amplitude_sq_
        As in `PatchworkGP`.

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

    choices = {"extension": ("posterior", "cosine")}
    extension: str = "posterior"

    def _tie(self, kernel, sides):
        self.control_values_ = agreed_values(self.cells_, sides, self.n_outputs_)
        self._coefficients = [self._coefficients_of(kernel, c) for c in self.cells_]

    def _coefficients_of(self, kernel, cell):
        """Coefficients of the shift of a cell, shape (n_control, n_outputs)."""
        shift = self.control_values_[cell.control] - cell.means
        if not len(shift):
            return shift
        rho = self._similarity(kernel, cell, cell.B, cell.K_xB, cell.half)
        L, _ = cholesky(rho, "A border's matrix")
        coefficients = solve_cholesky(L, shift)
        for _ in range(REFINEMENTS):
            coefficients += solve_cholesky(L, shift - rho @ coefficients)
        return coefficients

    def _similarity(self, kernel, cell, Q, K_xq, half):
        """Similarities of the control points and the queries Q of one cell."""
        if self.extension == "cosine" and len(cell.A):
            unit_B, unit_Q = (unit_columns(K, cell.noise) for K in (cell.K_xB, K_xq))
            return unit_B.T @ unit_Q
        return border_covariance(cell, kernel, Q, half)

    def _shift(self, j, kernel, Q, K_xq, half, mean, variance):
        cell = self.cells_[j]
        shift = self._similarity(kernel, cell, Q, K_xq, half).T @ self._coefficients[j]
        # Outputs that are zero in the whole cell are not shifted.
        energy = energy_of(cell)
        energy = np.where(energy > 0, energy, np.inf)
        return mean + shift, variance[:, None] + shift**2 / energy


def energy_of(cell):
    """``y^T A^-1 y`` of each output, shape (n_outputs,)."""
    return np.sum(cell.whitened**2, axis=0)


def agreed_values(cells, sides, n_outputs):
    """The values at all control points, shape (n_points, n_outputs)."""
    means = np.zeros((*sides.shape, n_outputs))
    for j, cell in enumerate(cells):
        side = np.argmax(sides[cell.control] == j, axis=1)
        means[cell.control, side] = cell.means
    # The weights 1 / e, times the energies of both cells.
    weights = np.array([energy_of(cell) for cell in cells])[sides[:, ::-1]]
    has_rows = np.array([len(cell.A) > 0 for cell in cells])[sides][..., None]
    # A cell without rows has no energy either, but must not count.
    no_weights = ~has_rows.all(axis=1, keepdims=True) | (weights == 0).all(
        axis=1, keepdims=True
    )
    weights = np.where(no_weights, has_rows, weights)
    total = weights.sum(axis=1)
    return np.sum(weights * means, axis=1) / np.where(total > 0, total, 1.0)


def unit_columns(K, noise):
    """Columns of kernel values as unit vectors; a row of w rows counts as w."""
    columns = K * np.sqrt(noise.min() / noise)[:, None]
    # Squares of tiny values would vanish, so that the largest value comes first.
    for norm in (np.inf, 2):
        length = np.linalg.norm(columns, norm, axis=0)
        columns = columns / np.where(length > 0, length, 1.0)
    return columns
