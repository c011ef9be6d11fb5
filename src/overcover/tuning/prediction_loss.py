r"""How well rows nearby predict rows held out, as a function of the hyperparameters.

A *local set* has m rows, as a local machine has. Its last h rows are held out, one
group at a time, so that one factorisation answers for all of them. With A the kernel
matrix of the m rows (noise included), :math:`\alpha = A^{-1} Y` and B a group,
:math:`S = ([A^{-1}]_{BB})^{-1}` is the covariance of B given all other rows, and

.. math:: \epsilon_B = S \alpha_B, \qquad \eta_B = \mathrm{diag}(S)

are errors and variances of its rows, on the kernel's scale. As B is among the last
rows, the last h rows of the Cholesky factor suffice. Over all rows held out, and
averaged over outputs, the loss is c = 3 times the log of the root mean squared error
(RMSE) plus the negative log density with the amplitude that fits best,

.. math:: F = \tfrac c2 \log \overline{\epsilon^2} + \tfrac12
    \log \overline{\epsilon^2 / \eta} + \tfrac12 \overline{\log \eta} .

Unlike the marginal likelihood it does not reward a noise of zero where rows nearly
repeat, and unlike that of random rows it does not see the data thinned out. Errors are
cut at a limit per output, so that a few corrupted outputs do not decide.
"""

from typing import NamedTuple

import numpy as np

from .. import kernels
from .._linalg import (
    add_to_diagonal,
    cholesky,
    inverse_factor,
    solve_lower,
    solve_lower_transposed,
    squared_distances,
)
from .._parallel import run_tasks

# How much the error counts beside the log density: a user feels it first.
ERROR_SHARE = 3.0
# Stands for noise=0, so that rows which occur twice can be told apart.
LEAST_NOISE = 1e-10
# A perfect prediction must not send a logarithm to minus infinity.
LEAST_SQUARE = 1e-24


class LocalSet(NamedTuple):
    """Rows to learn from; the last of them are held out, one group at a time."""

    X: np.ndarray
    """Shape (m, n_features), in standard units."""

    Y: np.ndarray
    """Shape (m, n_outputs)."""

    weights: np.ndarray
    """Of rows to learn from, shape (m,)."""

    groups: np.ndarray
    """Of the last rows, which are held out, shape (h,)."""

    weights_held: np.ndarray
    """Of the last rows as observations to predict, shape (h,)."""

    def of_outputs(self, outputs):
        """The same rows with some of their outputs."""
        return self._replace(Y=self.Y[:, outputs])


class HeldOut(NamedTuple):
    """Errors and variances of rows held out, and the set each belongs to."""

    errors: np.ndarray
    """Shape (n, n_outputs)."""

    variances: np.ndarray
    """On the kernel's scale, shape (n,)."""

    sets: np.ndarray
    """Ascending numbers of the sets, shape (n,)."""

    def sums(self, limits):
        """Sums over every set of what the loss F averages; a `Sums`."""
        squares = np.minimum(np.abs(self.errors), limits) ** 2
        starts = np.flatnonzero(np.diff(self.sets, prepend=-1))
        per_row = (
            np.ones(len(squares)),
            squares,
            squares / self.variances[:, None],
            np.log(self.variances),
        )
        return Sums(*(np.add.reduceat(values, starts) for values in per_row))


class Sums(NamedTuple):
    """Sums over the rows of every set."""

    counts: np.ndarray
    """Rows, shape (n_sets,)."""

    squares: np.ndarray
    """Squared errors, shape (n_sets, n_outputs)."""

    ratios: np.ndarray
    """Squared errors over variances, shape (n_sets, n_outputs)."""

    logs: np.ndarray
    """Logs of variances, shape (n_sets,)."""

    @classmethod
    def impossible(cls, n_outputs):
        """Of hyperparameters whose kernel matrix cannot be factorised."""
        nothing = np.full((1, n_outputs), np.inf)
        return cls(np.ones(1), nothing, nothing, np.full(1, np.inf))

    def losses(self):
        """The loss F of every output, shape (n_outputs,)."""
        return _losses(*(part.sum(axis=0) for part in self))

    def without_each(self):
        """The loss of every output if one set is left out, (n_sets, n_outputs)."""
        return _losses(*(part.sum(axis=0) - part for part in self))


def _losses(counts, squares, ratios, logs):
    counts = np.asarray(counts)[..., None]
    error = np.log(squares / counts + LEAST_SQUARE)
    ratio = np.log(ratios / counts + LEAST_SQUARE)
    return 0.5 * (ERROR_SHARE * error + ratio + np.asarray(logs)[..., None] / counts)


def standard_error(first: Sums, second: Sums, outputs=slice(None)):
    """Of the difference of two mean losses, by leaving out one set at a time."""
    n_sets = len(first.counts)
    if n_sets < 3:
        return np.inf
    parts = first.without_each()[:, outputs] - second.without_each()[:, outputs]
    differences = parts.mean(axis=1)
    spread = np.sum((differences - differences.mean()) ** 2)
    return float(np.sqrt((n_sets - 1) / n_sets * spread))


class MeasuredSet(NamedTuple):
    """A `LocalSet` in a metric."""

    dist_sq: np.ndarray
    """Squared distances between its rows, shape (m, m)."""

    Y: np.ndarray
    weights: np.ndarray
    groups: np.ndarray
    weights_held: np.ndarray


def measure(local: LocalSet, scale) -> MeasuredSet:
    """The set with distances between rows divided by `scale`."""
    A = _in_units(scale, local)
    return MeasuredSet(squared_distances(A, A), *local[1:])


def predict_held_out(kernel, factor, noise, sets, n_jobs=None) -> HeldOut:
    """Errors and variances of the rows held out of every `MeasuredSet`.

    Length scales are multiplied with `factor`. Memory: one kernel matrix per worker.
    """

    def predict(local):
        K_xx = kernels.apply_lower(kernel, local.dist_sq, factor**-2)
        one = _leave_out(K_xx, noise, local)
        return one.errors, one.variances

    parts = list(run_tasks(predict, ((local,) for local in sets), n_jobs))
    numbers = np.repeat(np.arange(len(parts)), [len(eta) for _, eta in parts])
    errors, variances = (np.concatenate(part) for part in zip(*parts))
    return HeldOut(errors, variances, numbers)


def _in_units(scale, local):
    """Rows of a set around their mean, in length scales."""
    return (local.X - local.X.mean(axis=0)) / scale


class _LeftOut(NamedTuple):
    """What one set contributes, and what its gradient needs."""

    errors: np.ndarray
    variances: np.ndarray
    L: np.ndarray
    solved: np.ndarray
    """``L^-1 Y``"""
    L_held_inv: np.ndarray
    """Inverse of the last rows and columns of L."""
    together: np.ndarray
    """Whether rows held out are of one group, shape (h, h)."""
    S: np.ndarray
    """Covariances of groups given all other rows, shape (h, h)."""


def _leave_out(K_xx, noise, local) -> _LeftOut:
    """Only the lower triangle of `K_xx` is read; it is overwritten."""
    h, noise = len(local.groups), max(noise, LEAST_NOISE)
    weights = local.weights[:-h]
    mean = weights @ local.Y[:-h] / weights.sum()
    L, _ = cholesky(add_to_diagonal(K_xx, noise / local.weights))
    solved = solve_lower(L, local.Y - mean)
    L_held_inv = inverse_factor(L[-h:, -h:])
    together = local.groups[:, None] == local.groups
    S = np.linalg.inv((L_held_inv.T @ L_held_inv) * together)
    errors = S @ (L_held_inv.T @ solved[-h:])
    # As observations of their own weight, whatever they count as rows to learn from.
    least = noise / local.weights_held
    variances = np.diag(S) + (least - noise / local.weights[-h:])
    variances = np.maximum(variances, least)
    return _LeftOut(errors, variances, L, solved, L_held_inv, together, S)


def prediction_loss(theta, kernel, sets, limits=np.inf, n_jobs=None):
    """The loss F over all sets, and its gradient by theta, shape (n_features + 1,).

    Errors are cut at `limits`, of shape (n_outputs,) or a number. Memory: three kernel
    matrices of every `LocalSet`.
    """
    scale, noise = np.exp(theta[:-1]), np.exp(theta[-1])

    def forward(local):
        A = _in_units(scale, local)
        K_xx, slopes = kernels.apply_with_slope(kernel, squared_distances(A, A))
        return _leave_out(K_xx, noise, local), slopes, A

    def backward(local, one, slopes, A, by_error, by_eta):
        by_xx, by_noise = _backward(noise, local, one, by_error, by_eta)
        by_scale = kernels.weighted_differences(by_xx, slopes, A, A)
        return np.append(-2.0 * by_scale, by_noise)

    return _over_sets(forward, backward, sets, limits, n_jobs)


def tied_loss(log_factor, log_noise, kernel, sets, limits=np.inf, n_jobs=None):
    """The loss F of `MeasuredSet`, and its gradient by log factor and log noise.

    The factor is common to all length scales. Distances are measured once, so that it
    costs the same for any number of columns.
    """
    shrink, noise = np.exp(-2.0 * log_factor), np.exp(log_noise)

    def forward(local):
        K_xx, slopes = kernels.apply_with_slope(kernel, shrink * local.dist_sq)
        return _leave_out(K_xx, noise, local), slopes

    def backward(local, one, slopes, by_error, by_eta):
        by_xx, by_noise = _backward(noise, local, one, by_error, by_eta)
        by_factor = np.vdot(np.multiply(by_xx, slopes, out=slopes), local.dist_sq)
        return np.array([-2.0 * shrink * by_factor, by_noise])

    return _over_sets(forward, backward, sets, limits, n_jobs)


def _over_sets(forward, backward, sets, limits, n_jobs):
    """The loss of all sets, and the sum of what each contributes to the gradient."""
    passes = list(run_tasks(forward, ((local,) for local in sets), n_jobs))
    left_out = [one for one, *_ in passes]
    errors = np.concatenate([one.errors for one in left_out])
    eta = np.concatenate([one.variances for one in left_out])
    value, *slopes = _loss(errors, eta, limits)
    ends = np.cumsum([len(one.variances) for one in left_out])[:-1]
    by_set = zip(*(np.split(slope, ends) for slope in slopes))
    tasks = ((local, *one, *by) for local, one, by in zip(sets, passes, by_set))
    return value, sum(run_tasks(backward, tasks, n_jobs))


def _loss(errors, eta, limits):
    """F and its derivatives by errors and variances."""
    n, n_outputs = errors.shape
    cut = np.clip(errors, -limits, limits)
    mean_sq = np.mean(cut**2, axis=0) + LEAST_SQUARE
    mean_ratio = np.mean(cut**2 / eta[:, None], axis=0) + LEAST_SQUARE
    value = 0.5 * np.mean(ERROR_SHARE * np.log(mean_sq) + np.log(mean_ratio))
    value += 0.5 * np.mean(np.log(eta))
    by_error = ERROR_SHARE * cut / mean_sq + cut / (eta[:, None] * mean_ratio)
    by_error[cut != errors] = 0.0
    by_eta = 0.5 / eta - 0.5 * np.mean(cut**2 / mean_ratio, axis=1) / eta**2
    return value, by_error / (n * n_outputs), by_eta / n


def _backward(noise, local, one, by_error, by_eta):
    r"""Derivatives of the loss by the kernel matrix and by the log noise.

    With W the last columns of :math:`A^{-1}` and :math:`P = S^{-1}` blocks of it, the
    derivative by :math:`\alpha` is :math:`g = S g_\epsilon`, that by P is
    :math:`G = -g \epsilon^\top - S \, \mathrm{diag}(g_\eta) S` within groups, and that
    by A is :math:`-W (g \alpha^\top + G W^\top)`.
    """
    h, n_outputs = by_error.shape
    noise = max(noise, LEAST_NOISE)
    rows = np.zeros((len(one.L), h + n_outputs))
    rows[-h:, :h], rows[:, h:] = one.L_held_inv, one.solved
    solved = solve_lower_transposed(one.L, rows)
    W, alpha = solved[:, :h], solved[:, h:]
    by_alpha = one.S @ by_error
    by_P = (by_alpha @ one.errors.T) * one.together + (one.S * by_eta) @ one.S
    inner = by_alpha @ alpha.T - by_P @ W.T
    by_row = -np.einsum("ij,ji->i", W, inner) * noise / local.weights
    of_held = 1.0 / local.weights_held - 1.0 / local.weights[-h:]
    by_noise = by_row.sum() + noise * (by_eta @ of_held)
    return W @ -inner, by_noise
