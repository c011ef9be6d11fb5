"""One subdomain of a GP: what is precomputed, and the arithmetic behind it.

Notation as in `overcover.machines.gp`. G stands for groups of outputs that share their
hyperparameters: one, or one for every output.
"""

from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from .._left_out import leave_groups_out, solve_all_by
from .._linalg import (
    add_to_diagonal,
    cholesky_in_place,
    inverse_factor,
    lower_column_norms_sq,
    pack_lower,
    packed_column_norms_sq,
    solve_lower,
)
from .._records import (
    factor,
    finite,
    not_negative,
    positive,
    record,
    unbounded,
    whole,
)
from .._weights import are_judged, evidence_of
from . import calibration, gaps
from .base import Answer, check_distances

LEAST_VARIANCE = 1e-15
# What rounding factors to float32 may change of a variance, where it is tried out.
MOST_ROUNDING, N_PROBES = 0.01, 10


def are_hyperparameters(theta):
    """Whether logarithms are of positive length scales and a finite noise."""
    with np.errstate(over="ignore"):
        is_finite = np.isfinite(np.exp(theta[:, -1])).all()
    return bool(is_finite and (theta[:, :-1] > -np.inf).all())


# Log hyperparameters, wherever they are stored.
THETA = unbounded("G h", rule=are_hyperparameters)


@record(
    X=finite("n d"),
    center=finite("d"),
    theta=THETA,
    weights=positive("n"),
    Y_mean=finite("q"),
    alpha=finite("n q"),
    residuals_sq=not_negative("n q"),
    residuals_sq_mean=not_negative("q"),
    ratios=not_negative("L o q"),
    squarings=whole("G L", -1, calibration.MOST_SQUARINGS),
    factor=factor("G P?"),
    Y_variance=not_negative("q"),
    amplitude_sq=finite("q"),
    left_out=positive("G 2", np.inf),
    sides=whole("o q", -1, 1),
    excess=finite(f"2 {gaps.N_STEPS} q"),
)
class GPState(NamedTuple):
    """One subdomain, ready to answer. G is 1, or n_outputs if each has its own."""

    X: np.ndarray
    """Rows minus `center`, shape (size, n_features)."""

    center: np.ndarray
    """Mean row, shape (n_features,); zeros for a scikit-learn kernel."""

    theta: np.ndarray
    """Log hyperparameters, the noise last, shape (G, n_hyperparameters)."""

    weights: np.ndarray
    """Of the rows, shape (size,): what their noise is divided by."""

    Y_mean: np.ndarray
    """Shape (n_outputs,)."""

    alpha: np.ndarray
    """``A^-1 (Y - Y_mean)``, shape (size, n_outputs)."""

    residuals_sq: np.ndarray
    """Squared leave-one-out residuals, kernel scale, shape (size, n_outputs)."""

    residuals_sq_mean: np.ndarray
    """Its mean over the rows, shape (n_outputs,)."""

    ratios: np.ndarray
    """`residuals_sq` of owned rows over their local scale, for each way to localise,
    shape (n_localities, n_owned, n_outputs)."""

    squarings: np.ndarray
    """Powers of two of the similarity for these, shape (G, n_localities)."""

    factor: np.ndarray
    """Packed ``L^-1``, shape (G, packed_size(size)); (G, 0) if to be made again.
    Of the type that it is, or would be, kept in."""

    Y_variance: np.ndarray
    """Variance of the outputs, shape (n_outputs,)."""

    amplitude_sq: np.ndarray
    """Variance of the prior by the marginal likelihood, for each unit of the kernel's
    scale, shape (n_outputs,)."""

    left_out: np.ndarray
    """Least variance at a row left out, kernel scale, and the `reach` of owned rows,
    see `overcover.machines.calibration`; shape (G, 2)."""

    sides: np.ndarray
    """Signs of the leave-one-out errors of owned rows: 1 where the observation lies
    above what the others predict; 0 where it is not known. (n_owned, n_outputs)."""
    excess: np.ndarray
    """What errors of blocks left out exceed those of rows left out by, see
    `overcover.machines.gaps`; shape (2, N_STEPS, n_outputs)."""

    @property
    def rows_left_out(self):
        """Places of the rows whose errors calibrate: those that are owned."""
        return np.arange(self.ratios.shape[1])

    @property
    def judged(self):
        """Those of the rows left out that weigh enough to be calibrated by."""
        return are_judged(self.weights[self.rows_left_out])

    @property
    def output_moments(self):
        """Mean and variance of the subdomain's outputs."""
        return self.Y_mean.copy(), self.Y_variance.copy()

    def check(self):
        """Refuse rows and scales that no kernel matrix can be made of."""
        farthest = np.abs(self.X).max()
        with np.errstate(over="ignore"):
            noise = np.exp(self.theta[:, -1].max()) / self.weights
            if self.theta.shape[1] == self.X.shape[1] + 1:
                scales = np.exp(self.theta[:, None, :-1])
                farthest = (np.abs(self.X).max(axis=0) / scales).max()
        check_distances(farthest, noise)

    @classmethod
    def older(cls, alpha, residuals_sq, theta, ratios, **fields):
        """What older stores lack: variances far away, signs of errors, and gaps."""
        # In version 1 the one squared over the other was the diagonal of A^-1.
        precision = np.zeros_like(alpha)
        np.divide(alpha**2, residuals_sq, out=precision, where=residuals_sq > 0)
        # One column for each group, or all columns for one.
        columns = [precision] if len(theta) == 1 else list(precision.T)
        largest = np.array([column.max() for column in columns])
        with np.errstate(divide="ignore"):
            left_out = np.column_stack([1.0 / largest, np.full(len(largest), np.inf)])
        unknown = np.zeros(alpha.shape[1])
        return {
            "Y_variance": unknown,
            "amplitude_sq": unknown,
            "left_out": left_out,
            "sides": np.zeros(ratios.shape[1:], dtype=np.int64),
            "excess": np.zeros((2, gaps.N_STEPS, alpha.shape[1])),
        }


class FittedGroup(NamedTuple):
    """Everything of one kernel matrix that does not depend on the query."""

    alpha: np.ndarray
    residuals_sq: np.ndarray
    ratios: np.ndarray
    squarings: np.ndarray
    L_inv: np.ndarray
    precision: np.ndarray
    """The diagonal of ``A^-1``, shape (size,)."""
    left_out: tuple[float, float]
    excess: np.ndarray
    sides: np.ndarray
    kernel: Any
    A: np.ndarray
    noise: float


def fit_group(kernel, A, Y, noise, weights, n_owned, groups=None) -> FittedGroup:
    """Factorise one kernel matrix and leave out each of its rows, or groups, in turn.

    Rows A as the kernel wants them, owned rows first; Y of shape (size, n_outputs)
    minus its weighted mean; groups of shape (size,), or None to leave out each row
    alone.
    """

    def noisy(K_xx):
        return add_to_diagonal(K_xx, noise / weights)

    def remake():
        return noisy(kernels.gram_lower(kernel, A))

    K_xx = kernels.gram_lower(kernel, A)
    own = K_xx[:n_owned, :n_owned]
    own[:] = np.tril(own) + np.tril(own, -1).T
    similarity = kernels.similarity(kernel, K_xx[:, :n_owned].copy(), A, A[:n_owned])
    blocks = list(gaps.blocks_of(similarity))
    # Left out means left out: a row has no part in its own scale, nor has its group.
    np.fill_diagonal(similarity, 0.0)
    if groups is not None:
        similarity[groups[:, None] == groups[:n_owned]] = 0.0
    solved = solve_all_by(cholesky_in_place(noisy(K_xx), remake), Y)
    L_inv, alpha, _ = solved
    errors, variances = leave_groups_out(*solved, Y, weights, groups)
    residuals_sq = errors**2 / variances[:, None]
    ratios, squarings = calibration.leave_one_out_ratios(similarity, residuals_sq)
    reach = calibration.reach_of(variances[:n_owned][are_judged(weights[:n_owned])])
    precision = np.einsum("ij,ij->j", L_inv, L_inv)
    least = 1.0 / precision.max()
    prior = kernels.diagonal(kernel, A)
    known = solved, Y, weights, residuals_sq, noise, reach, prior
    excess = gaps.excess_by_steps(blocks, *known)
    sides = calibration.sides_of(errors[:n_owned])
    factors = L_inv, precision, (least, reach)
    parts = alpha, residuals_sq, ratios, squarings, *factors, excess, sides
    return FittedGroup(*parts, kernel, A, noise)


def packed_factor(kernel, A, row_noise, dtype):
    """The packed ``L^-1`` of `fit_group`, made again where it was not kept."""
    L = factor_of(kernel, A, row_noise)
    return pack_lower(inverse_factor(L, overwrite=True), dtype)


def factor_of(kernel, A, row_noise):
    """The Cholesky factor L of a kernel matrix with noise."""

    def make():
        return add_to_diagonal(kernels.gram_lower(kernel, A), row_noise)

    return cholesky_in_place(make(), make)


def rounding_of_variance(group, rounded_factor):
    """The largest share by which float32 changes variances halfway between two rows.

    Of the least variance at a row left out, where a variance is less than that: see
    `unexplained_near`. Of the unexplained part, because errors in gaps go by that, or
    of what it is at the reach, where it is less. (A bound from the norms of ``L^-1``
    would have to assume that errors add up at random; on a regular grid they do not.)
    """
    kernel, A, noise = group.kernel, group.A, group.noise
    # Rows here and there, and those that the others explain best.
    probes = np.linspace(0, len(A) - 1, N_PROBES).astype(int)
    crowded = np.argsort(-group.precision, kind="stable")[:N_PROBES]
    probes = np.union1d(probes, crowded)
    near = kernels.cross(kernel, A, A[probes])
    near[probes, np.arange(len(probes))] = -np.inf
    B = 0.5 * (A[probes] + A[near.argmax(axis=0)])
    K_xq = kernels.cross(kernel, A, B)
    exact = lower_column_norms_sq(group.L_inv, K_xq)
    rounded = packed_column_norms_sq(rounded_factor, K_xq)
    unexplained = np.maximum(kernels.diagonal(kernel, B) - exact, LEAST_VARIANCE)
    least, reach = 1.0 / group.precision.max(), group.left_out[1]
    variances = np.maximum(unexplained + noise, least)
    variances = np.minimum(variances, np.maximum(unexplained, reach - noise))
    return np.max(np.abs(rounded - exact) / variances)


def answer_group(kernel, state, g, outputs, offsets, calibrated) -> Answer:
    """Answer for the outputs of group g, to queries minus the center of the state.

    Without a `Calibration` there is only the mean; the posterior variance is on the
    kernel's scale.
    """
    theta = state.theta[g]
    kernel, A = kernels.in_units(kernel, theta, state.X)
    _, B = kernels.in_units(kernel, theta, offsets)
    K_xq = kernels.cross(kernel, A, B)
    mean = K_xq.T @ state.alpha[:, outputs] + state.Y_mean[outputs]
    if calibrated is None:
        return Answer(mean, None, None)
    noise, factor = np.exp(theta[-1]), state.factor[g]
    row_noise = noise / state.weights
    if not factor.size:
        factor = packed_factor(kernel, A, row_noise, factor.dtype)
    least, reach = state.left_out[g]
    eta = posterior_of(kernel, A, B, K_xq, factor, noise, row_noise, least)
    scale = calibration.scales_at(
        kernels.similarity(kernel, K_xq, A, B),
        state.residuals_sq,
        state.residuals_sq_mean,
        state.squarings[g],
        calibrated,
        outputs,
    )
    scale *= calibrated.factor[outputs]
    prior = kernels.diagonal(kernel, B) + noise
    spread = calibrated.spread_around(state.Y_mean)[outputs]
    limit = np.maximum(np.outer(prior, state.amplitude_sq[outputs]), spread)
    variance = calibration.variances_at(eta, scale, reach, prior, limit)
    steps = gaps.steps_of(eta - noise, reach - noise, prior - noise)
    far = (steps > -gaps.RAMP).nonzero()[0]
    if len(far):
        growth = gaps.growth_at(steps[far], calibrated.growth[:, outputs])
        wide = np.minimum(growth * scale[far] * eta[far, None], limit[far])
        variance[far] = np.maximum(variance[far], wide)
    return Answer(mean, variance, eta, variance * signal_share(kernel, B, eta, noise))


def signal_share(kernel, B, eta, noise):
    """The part of posterior variances that is not noise, shape (n_queries, 1)."""
    signal = eta - noise - kernels.white_noise(kernel, B)
    return (np.maximum(signal, LEAST_VARIANCE) / eta)[:, None]


def posterior_of(kernel, A, B, K_xq, factor, noise, row_noise, least):
    """Posterior variance of a new observation on the kernel's scale, (n_queries,).

    Rows A and queries B as the kernel wants them, K_xq between them, a packed factor.
    `least` is the least variance at a row left out: less is computed in another way, if
    factors are float32.
    """
    unexplained = kernels.diagonal(kernel, B) - packed_column_norms_sq(factor, K_xq)
    if factor.dtype == np.float32:
        near = (unexplained < least - noise).nonzero()[0]
        if len(near):
            queries = B[near], K_xq[:, near], unexplained[near]
            unexplained[near] = unexplained_near(kernel, A, *queries, factor, row_noise)
    return np.maximum(unexplained, LEAST_VARIANCE) + noise


def unexplained_near(kernel, A, B, K_xq, unexplained, factor, row_noise):
    r"""What is unexplained of queries so near to a row that float32 leaves no digit.

    It is that of the difference to a row i, whose output is known. With
    :math:`\delta = k_q - A e_i`, small entry by entry,

    .. math:: k(q, q) - k_q^\top A^{-1} k_q = k(q, q) - 2 k(q, x_i) + k(x_i, x_i)
        + \nu_i - \lVert L^{-1} \delta \rVert^2 .

    The row is the one with the least sum before the norm: the nearest, unless its noise
    is large. Where that is no less than k(q, q), nothing would be gained.

    Parameters as in `posterior_of`; unexplained of shape (n_queries,), from `factor`.
    """
    each, own = np.arange(len(B)), kernels.diagonal(kernel, A)
    apart = (own + row_noise)[:, None] - 2.0 * K_xq
    i = np.argmin(apart, axis=0)
    apart = apart[i, each] + kernels.diagonal(kernel, B)
    delta = kernels.cross(kernel, A, A[i])
    delta[i, each] = own[i] + row_noise[i]  # of a white kernel too, that `cross` lacks
    np.subtract(K_xq, delta, out=delta)
    by_difference = apart - packed_column_norms_sq(factor, delta)
    return np.where(apart < kernels.diagonal(kernel, B), by_difference, unexplained)


def answer_once(kernel, theta, X, Y, weights, X_query) -> Answer:
    r"""Fit one group and answer at once: one Cholesky, one substitution, no inverse.

    With :math:`[z_y, z_q] = L^{-1} [Y, k_q]` (Y centred) the mean is :math:`z_q^\top
    z_y`, the posterior variance :math:`k(q, q) + \nu - z_q^\top z_q`, and the variance
    that times the amplitude of the marginal likelihood, :math:`z_y^\top z_y / n`.
    """
    noise = np.exp(theta[-1])
    # A kernel object may care where the origin is.
    center = 0.0 if kernels.is_object(kernel) else X.mean(axis=0)
    _, B = kernels.in_units(kernel, theta, X_query - center)
    kernel, A = kernels.in_units(kernel, theta, X - center)
    K_xq = kernels.cross(kernel, A, B)
    solved = substitute(kernel, A, noise / weights, np.hstack([Y, K_xq]))
    z_y, z_q = np.split(solved, [Y.shape[1]], axis=1)
    unexplained = kernels.diagonal(kernel, B) - np.einsum("ij,ij->j", z_q, z_q)
    posterior = np.maximum(unexplained, LEAST_VARIANCE) + noise
    amplitude_sq = np.einsum("ij,ij->j", z_y, z_y) / evidence_of(weights).sum()
    variance = np.outer(posterior, amplitude_sq)
    function = variance * signal_share(kernel, B, posterior, noise)
    return Answer(z_q.T @ z_y, variance, posterior, function)


def substitute(kernel, A, row_noise, right):
    """``L^-1 right`` for the Cholesky factor L of a kernel matrix with noise."""
    return solve_lower(factor_of(kernel, A, row_noise), right)
