"""One subdomain of a Twin GP: what is precomputed, and what queries see of it.

Notation as in `overcover.machines.twin_gp`: A stands for the input kernel matrix with
noise, u and eta for what a query gets from it; the output side is in `twin_output`,
what is minimised in `twin_objective`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from .._linalg import (
    add_to_diagonal,
    cholesky,
    inverse_factor,
    pack_lower,
    packed_column_norms_sq,
    solve_cholesky,
)
from .._records import (
    PART,
    PART_OR_NONE,
    factor,
    not_negative,
    positive,
    record,
    whole,
)
from .._records import finite as finite_array
from .._weights import are_judged
from ..tuning.twin import Scales
from .base import check_distances
from .calibration import MOST_SQUARINGS
from .gaps import N_STEPS
from .twin_output import OutputSide

# Largest squared norm, in kernel units, of rows that a product compares.
FAR_SQ = 1e4
# A query's own variance is never taken to be smaller.
LEAST_VARIANCE = 1e-12


@record(
    A=finite_array("n d"),
    center=finite_array("d"),
    Z=finite_array("n q"),
    Y_mean=finite_array("q"),
    weights=positive("n"),
    input_scales=positive("d", np.inf),
    output_scales=positive("q", np.inf),
)
class TwinRows(NamedTuple):
    """The rows of a subdomain as the kernels want them."""

    A: np.ndarray  # inputs in kernel units, minus `center`, shape (size, n_features)
    center: np.ndarray  # mean input in kernel units, shape (n_features,)
    Z: np.ndarray  # outputs in kernel units, minus their mean, shape (size, n_outputs)
    Y_mean: np.ndarray
    weights: np.ndarray  # what the noise of each row is divided by, shape (size,)
    input_scales: np.ndarray
    output_scales: np.ndarray

    def input_gram(self):
        """Similarities between the rows' inputs, on and below the diagonal."""
        return kernels.gram_lower("rbf", self.A)

    def output_gram(self):
        """Similarities between the rows' outputs, shape (size, size)."""
        return kernels.cross("rbf", self.Z, self.Z)

    def similarities(self, X_query, dtype=np.float64):
        """Similarities of the rows to queries, shape (size, n_queries)."""
        # One product, not exact distances, where rounding the norms cannot matter.
        A, B = self.A, X_query / self.input_scales - self.center
        with np.errstate(over="ignore"):
            norms_A, norms_B = (np.einsum("ij,ij->i", rows, rows) for rows in (A, B))
        if not max(norms_A.max(), norms_B.max(initial=0.0)) < FAR_SQ:
            return kernels.cross("rbf", A, B)
        K = B.astype(dtype, copy=False) @ A.T.astype(dtype, copy=False)
        K -= (0.5 * norms_A).astype(dtype)
        K -= (0.5 * norms_B).astype(dtype)[:, None]
        np.minimum(K, 0.0, out=K)
        return np.exp(K, out=K).T

    def back(self, points):
        """Outputs in their own units from points in kernel units."""
        return self.Y_mean + points * finite(self.output_scales)


class MeasuredRows(TwinRows):
    """Rows of a trial: squared distances are there, and only their units change."""

    distances: Callable

    def input_gram(self):
        return self._kernel("inputs", self.input_scales)

    def output_gram(self):
        return self._kernel("outputs", self.output_scales)

    def similarities(self, X_query, dtype=np.float64):
        """Those to the rows held out, which are all the queries of a trial."""
        return self._kernel("queries", self.input_scales)

    def _kernel(self, side, scales):
        least = scales.min()
        dist_sq, factor = self.distances(side, scales / least), -0.5 / least**2
        K = np.multiply(dist_sq, factor, dtype=np.float64)
        return np.exp(K, out=K)


def finite(scales):
    """Length scales as factors back to units; a constant output stays where it is."""
    return np.where(np.isfinite(scales), scales, 0.0)


@record(
    pivots=finite_array("r q"),
    C=finite_array("r r"),
    factor=factor("P"),
    readout=finite_array("n r+q"),
)
class TwinCore(NamedTuple):
    """What queries look at; it can be computed again from the rows."""

    # Packed ``L^-1`` of the input kernel matrix with noise, shape (packed_size,)
    factor: np.ndarray
    # ``A^-1 [B, Z]``, shape (size, r + n_outputs): times the similarities of a query,
    # its weights on the pivots, and the answer of a GP
    readout: np.ndarray
    pivots: np.ndarray  # outputs of the pivots in kernel units, shape (r, n_outputs)
    C: np.ndarray  # shape (r, r); see `twin_output`


@record(
    rows=PART,
    # None where it is to be computed again from the rows.
    core=PART_OR_NONE,
    left=whole("l", 0, "n"),
    residuals_sq=not_negative("l q"),
    residuals_sq_mean=not_negative("q"),
    ratios=not_negative("L l q"),
    squarings=whole("L", -1, MOST_SQUARINGS),
    reach=positive("1", np.inf),
    sides=whole("l q", -1, 1),
)
class TwinState(NamedTuple):
    """One subdomain, ready to answer."""

    rows: TwinRows
    # `TwinCore`, or that of a relative; None where it is to be computed again
    core: Any
    left: np.ndarray  # rows left out for the standard deviation, shape (n_left,)
    residuals_sq: np.ndarray  # their squared errors over eta, shape (n_left, n_outputs)
    residuals_sq_mean: np.ndarray
    # `residuals_sq` over local scales, shape (n_localities, n_left, n_outputs)
    ratios: np.ndarray
    # powers of two of the similarity for these, shape (n_localities,)
    squarings: np.ndarray
    reach: np.ndarray  # see `overcover.machines.calibration`, shape (1,)
    # signs of the errors: 1 where the observation lies above the answer, 0 where that
    # is not known, shape (n_left, n_outputs)
    sides: np.ndarray

    def check(self):
        """Refuse rows that have no kernel matrix."""
        farthest = max(np.abs(part).max() for part in (self.rows.A, self.rows.Z))
        with np.errstate(over="ignore"):
            check_distances(farthest, 1.0 / self.rows.weights)

    @property
    def rows_left_out(self):
        """Places of the rows whose errors calibrate."""
        return self.left

    @property
    def judged(self):
        """Those of the rows left out that weigh enough to be calibrated by."""
        return are_judged(self.rows.weights[self.left])

    @property
    def output_moments(self):
        """Mean and variance of the subdomain's outputs."""
        deviations = self.rows.Z * finite(self.rows.output_scales)
        weights = self.rows.weights
        variance = np.average(deviations**2, axis=0, weights=weights)
        return self.rows.Y_mean.copy(), variance

    @property
    def excess(self):
        """Blocks of rows are not left out."""
        return np.zeros((2, N_STEPS, len(self.residuals_sq_mean)))

    @classmethod
    def older(cls, residuals_sq, **fields):
        """What older stores lack: variances far away, and signs of errors."""
        sides = np.zeros(residuals_sq.shape, dtype=np.int64)
        return {"reach": np.array([np.inf]), "sides": sides}


class Looks(NamedTuple):
    """What queries, or rows left out, get to see of a subdomain."""

    U: np.ndarray  # weights on the pivots, ``B^T u``, shape (n, r)
    # posterior input variance without noise, between 0 and 1, shape (n,)
    unexplained: np.ndarray
    means: np.ndarray  # the answer of a GP, in kernel units, shape (n, n_outputs)
    # output of the most similar row, in kernel units, shape (n, n_outputs)
    nearest: np.ndarray
    taken: np.ndarray  # see `TwinObjective`; of shape (0, r) for queries
    mixed: Any = None  # what a relative of the Twin GP sees besides


def factorize_inputs(rows: TwinRows, noise):
    """Cholesky factor of the input kernel matrix with noise, shape (size, size)."""
    K_xx = add_to_diagonal(rows.input_gram(), noise / rows.weights)
    return cholesky(K_xx, "The input kernel matrix")[0]


def core_on(rows: TwinRows, scales: Scales, outputs: OutputSide, taken, left):
    r"""The core of the rows, and `Looks` of some as if each had never been there.

    With :math:`a_i = [A^{-1}]_{ii}` all is in closed form: :math:`u = -A^{-1}_{:, i} /
    a_i` but for its own entry, which is zero, and :math:`\eta = 1 / a_i`.
    """
    Z, r = rows.Z, len(outputs.pivots)
    L = factorize_inputs(rows, scales.input_noise)
    B = outputs.B if len(outputs.B) else np.eye(len(Z))
    values = np.hstack([B, Z])
    readout, L_inv = solve_cholesky(L, values), inverse_factor(L)
    core = TwinCore(pack_lower(L_inv), readout, outputs.pivots, outputs.C)
    columns = L_inv[:, left]
    precision = np.einsum("ij,ij->j", columns, columns)
    unexplained = 1.0 / precision - scales.input_noise / rows.weights[left]
    products = values[left] - readout[left] / precision[:, None]
    nearest = nearest_of_left_out(rows.A, Z, left)
    unexplained = np.clip(unexplained, LEAST_VARIANCE, 1.0)
    return core, Looks(products[:, :r], unexplained, products[:, r:], nearest, taken)


def nearest_of_left_out(A, Z, left):
    """Output of the row most similar to each of those left out; their own if alone."""
    if not len(left):
        return Z[left]
    K = kernels.cross("rbf", A, A[left])
    K[left, np.arange(len(left))] = -1.0
    return Z[np.argmax(K, axis=0)]


def look(core: TwinCore, K_xq, Z) -> Looks:
    """Queries, from their similarities to the rows, shape (size, n_queries)."""
    products, r = K_xq.T @ core.readout, len(core.pivots)
    unexplained = unexplained_of(core.factor, K_xq)
    nearest = Z[np.argmax(K_xq.T, axis=1)]
    ends = products[:, r:], nearest, np.empty((0, r))
    return Looks(products[:, :r], unexplained, *ends)


def unexplained_of(factor, K_xq):
    """Posterior input variance without noise, shape (n_queries,)."""
    explained = packed_column_norms_sq(factor, K_xq)
    return np.clip(1.0 - explained, LEAST_VARIANCE, 1.0)


def look_fresh(K_xq, u, Z, outputs: OutputSide) -> Looks:
    """Queries, from their weights u on all rows: nothing has been precomputed."""
    unexplained = 1.0 - np.einsum("ij,ij->j", K_xq, u)
    U = u.T @ outputs.B if len(outputs.B) else np.ascontiguousarray(u.T)
    nearest, taken = Z[np.argmax(K_xq, axis=0)], np.empty((0, len(outputs.pivots)))
    unexplained = np.clip(unexplained, LEAST_VARIANCE, 1.0)
    return Looks(U, unexplained, u.T @ Z, nearest, taken)
