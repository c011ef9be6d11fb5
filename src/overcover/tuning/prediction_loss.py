r"""How well rows nearby predict rows held out, as a function of the hyperparameters.

A *local set* has m rows to learn from and some rows held out among them, as a local
machine sees its queries. With A the kernel matrix of the m rows (noise included), a
held-out row of similarities k to them, output y and weight w has error and variance

.. math:: \epsilon = y - k^\top A^{-1} Y, \qquad
    \eta = 1 + \nu / w - k^\top A^{-1} k

on the kernel's scale. Over all rows held out, and averaged over outputs, the loss is
c = 3 times the log of the root mean squared error (RMSE) plus the negative log density
with the amplitude that fits best,

.. math:: F = \tfrac c2 \log \overline{\epsilon^2} + \tfrac12
    \log \overline{\epsilon^2 / \eta} + \tfrac12 \overline{\log \eta} .

Unlike the marginal likelihood it does not reward a noise of zero where rows nearly
repeat, and unlike that of random rows it does not see the data thinned out. Errors are
cut at a limit per output, so that a few corrupted outputs do not decide.
"""

from typing import NamedTuple

import numpy as np

from .. import kernels
from .._linalg import add_to_diagonal, cholesky, solve_cholesky, squared_distances
from .._parallel import run_tasks

# How much the error counts beside the log density: a user feels it first.
ERROR_SHARE = 3.0
# Stands for noise=0, so that rows which occur twice can be told apart.
LEAST_NOISE = 1e-10
# A perfect prediction must not send a logarithm to minus infinity.
LEAST_SQUARE = 1e-24


class LocalSet(NamedTuple):
    """Rows to learn from, and rows held out among them."""

    X: np.ndarray
    """Shape (m, n_features), in standard units."""

    Y: np.ndarray
    """Shape (m, n_outputs)."""

    weights: np.ndarray
    """Shape (m,)."""

    X_held: np.ndarray
    Y_held: np.ndarray
    weights_held: np.ndarray

    def of_outputs(self, outputs):
        """The same rows with some of their outputs."""
        return self._replace(Y=self.Y[:, outputs], Y_held=self.Y_held[:, outputs])


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
    """A local set in a metric: squared distances, and what is to be predicted."""

    dist_xx: np.ndarray
    """Between the rows to learn from, shape (m, m)."""

    dist_xq: np.ndarray
    """From them to the rows held out, shape (m, n_held)."""

    Y: np.ndarray
    weights: np.ndarray
    Y_held: np.ndarray
    weights_held: np.ndarray


def measure(local: LocalSet, scale) -> MeasuredSet:
    """The set with distances between rows divided by `scale`."""
    A, B = _in_units(scale, local)
    return MeasuredSet(
        squared_distances(A, A),
        squared_distances(A, B),
        local.Y,
        local.weights,
        local.Y_held,
        local.weights_held,
    )


def predict_held_out(kernel, factor, noise, sets, n_jobs=None) -> HeldOut:
    """Errors and variances of the rows held out of every `MeasuredSet`.

    Length scales are multiplied with `factor`. Memory: one kernel matrix per worker.
    """
    tasks = ((kernel, factor, noise, local) for local in sets)
    parts = list(run_tasks(_errors_of, tasks, n_jobs))
    numbers = np.repeat(np.arange(len(parts)), [len(eta) for _, eta in parts])
    errors, variances = (np.concatenate(part) for part in zip(*parts))
    return HeldOut(errors, variances, numbers)


def _errors_of(kernel, factor, noise, local):
    noise = max(noise, LEAST_NOISE)
    mean = local.weights @ local.Y / local.weights.sum()
    K_xx = kernels.apply(kernel, local.dist_xx / factor**2)
    K_xq = kernels.apply(kernel, local.dist_xq / factor**2)
    L, _ = cholesky(add_to_diagonal(K_xx, noise / local.weights))
    V = solve_cholesky(L, K_xq)
    errors = local.Y_held - mean - V.T @ (local.Y - mean)
    return errors, _variances(noise, local.weights_held, K_xq, V)


def _in_units(scale, local):
    """Rows of a set around their mean, in length scales."""
    center = local.X_held.mean(axis=0)
    return (local.X - center) / scale, (local.X_held - center) / scale


def _variances(noise, weights_held, K_xq, V):
    # At least the noise, whatever rounding makes of it.
    unexplained = np.maximum(1.0 - np.einsum("ij,ij->j", K_xq, V), 1e-12)
    return unexplained + noise / weights_held


def prediction_loss(theta, kernel, sets, limits=np.inf, n_jobs=None):
    """The loss F over all sets, and its gradient by theta, shape (n_features + 1,).

    Errors are cut at `limits`, of shape (n_outputs,) or a number. Memory: four kernel
    matrices of every `LocalSet`.
    """
    scale, noise = np.exp(theta[:-1]), np.exp(theta[-1])

    def forward(local):
        A, B = _in_units(scale, local)
        distances = squared_distances(A, A), squared_distances(A, B)
        return _forward(kernel, noise, local, *distances)

    def backward(local, one, by_error, by_eta):
        A, B = _in_units(scale, local)
        by_xx, by_xq, by_noise = _backward(noise, local, one, by_error, by_eta)
        by_scale = kernels.weighted_differences(by_xx, one.slopes_xx, A, A)
        by_scale += kernels.weighted_differences(by_xq, one.slopes_xq, A, B)
        return np.append(-2.0 * by_scale, by_noise)

    return _over_sets(forward, backward, sets, limits, n_jobs)


def tied_loss(log_factor, log_noise, kernel, sets, limits=np.inf, n_jobs=None):
    """The loss F of `MeasuredSet`, and its gradient by log factor and log noise.

    The factor is common to all length scales. Distances are measured once, so that it
    costs the same for any number of columns.
    """
    shrink, noise = np.exp(-2.0 * log_factor), np.exp(log_noise)

    def forward(local):
        distances = shrink * local.dist_xx, shrink * local.dist_xq
        return _forward(kernel, noise, local, *distances)

    def backward(local, one, by_error, by_eta):
        by_xx, by_xq, by_noise = _backward(noise, local, one, by_error, by_eta)
        by_factor = np.einsum("ij,ij,ij->", by_xx, one.slopes_xx, local.dist_xx)
        by_factor += np.einsum("ij,ij,ij->", by_xq, one.slopes_xq, local.dist_xq)
        return np.array([-2.0 * shrink * by_factor, by_noise])

    return _over_sets(forward, backward, sets, limits, n_jobs)


def _over_sets(forward, backward, sets, limits, n_jobs):
    """The loss of all sets, and the sum of what each contributes to the gradient."""
    passes = list(run_tasks(forward, ((local,) for local in sets), n_jobs))
    errors = np.concatenate([one.errors for one in passes])
    eta = np.concatenate([one.variances for one in passes])
    value, *slopes = _loss(errors, eta, limits)
    ends = np.cumsum([len(one.variances) for one in passes])[:-1]
    tasks = zip(sets, passes, *(np.split(slope, ends) for slope in slopes))
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


class _Pass(NamedTuple):
    """What one set contributes, and what its gradient needs."""

    errors: np.ndarray
    variances: np.ndarray
    slopes_xx: np.ndarray
    slopes_xq: np.ndarray
    V: np.ndarray
    alpha: np.ndarray


def _forward(kernel, noise, local, dist_xx, dist_xq) -> _Pass:
    noise = max(noise, LEAST_NOISE)
    mean = local.weights @ local.Y / local.weights.sum()
    K_xx, slopes_xx = kernels.apply_with_slope(kernel, dist_xx)
    K_xq, slopes_xq = kernels.apply_with_slope(kernel, dist_xq)
    L, _ = cholesky(add_to_diagonal(K_xx, noise / local.weights))
    solved = solve_cholesky(L, np.hstack([K_xq, local.Y - mean]))
    V, alpha = solved[:, : K_xq.shape[1]], solved[:, K_xq.shape[1] :]
    errors = local.Y_held - mean - K_xq.T @ alpha
    eta = _variances(noise, local.weights_held, K_xq, V)
    return _Pass(errors, eta, slopes_xx, slopes_xq, V, alpha)


def _backward(noise, local, forward, by_error, by_eta):
    r"""Derivatives of the loss by kernel values and log noise.

    With :math:`V = A^{-1} k` and :math:`\alpha = A^{-1} Y`: by the kernel matrix it is
    :math:`V (g_\epsilon \alpha^\top + g_\eta V^\top)`, by the similarities
    :math:`-\alpha g_\epsilon^\top - 2 V g_\eta`.
    """
    V, alpha = forward.V, forward.alpha
    V_eta = V * by_eta
    by_xx = V @ (by_error @ alpha.T) + V_eta @ V.T
    by_xq = -alpha @ by_error.T - 2.0 * V_eta
    by_noise = np.sum(np.diag(by_xx) * noise / local.weights)
    by_noise += np.sum(by_eta * noise / local.weights_held)
    return by_xx, by_xq, by_noise
