r"""How well neighbours predict a row, as a smooth function of the hyperparameters.

An *anchor* is a training row that is predicted from its m nearest other rows, at the
density a local machine really sees. With the anchor's row first in the kernel matrix
A of the m + 1 rows, :math:`b = A^{-1} e_1` and :math:`\alpha = A^{-1} y`, its error and
its variance on the kernel's scale are

.. math:: \epsilon = \alpha_1 / b_1, \qquad \eta = 1 / b_1 .

Over all anchors, and averaged over outputs, the loss is c = 3 times log RMSE plus the
negative log density with the amplitude that fits best,

.. math:: F = \tfrac c2 \log \overline{\epsilon^2} + \tfrac12
    \log \overline{\epsilon^2 / \eta} + \tfrac12 \overline{\log \eta} .

Unlike the marginal likelihood it does not reward a noise of zero where rows nearly
repeat, and unlike that of random rows it does not see the data thinned out.
"""

import numpy as np

from .. import kernels
from .._linalg import add_to_diagonal, cholesky, solve_lower, squared_distances
from .._parallel import run_tasks

# How much the error counts beside the log density: a user feels it first.
ERROR_SHARE = 3.0
# Stands for noise=0, so that rows which occur twice can be told apart.
LEAST_NOISE = 1e-10


def prediction_loss(theta, kernel, sets, n_jobs=None):
    """The loss F over all anchors, and its gradient.

    Memory: four times that of the kernel matrices of all sets.

    Parameters
    ----------
    theta : ndarray of shape (n_features + 1,)
        Log length scales, then the log noise.
    kernel : str
    sets : list of tuples (X, Y, weights)
        Of shapes (n_anchors, m + 1, n_features), (n_anchors, m + 1, n_outputs) and
        (n_anchors, m + 1); the anchor comes first.
    n_jobs : int or None

    Returns
    -------
    value : float
    gradient : ndarray of shape (n_features + 1,)
    """
    tasks = ((theta, kernel, *parts) for parts in sets)
    answered = list(run_tasks(_answer_anchors, tasks, n_jobs))
    errors = np.concatenate([part[0] for part in answered])
    eta = np.concatenate([part[1] for part in answered])
    value, by_error, by_eta = _loss(errors, eta)
    ends = np.cumsum([len(part[1]) for part in answered])[:-1]
    pieces = zip(answered, np.split(by_error, ends), np.split(by_eta, ends))
    tasks = ((*part, by_e, by_h) for part, by_e, by_h in pieces)
    return value, sum(run_tasks(_backpropagate, tasks, n_jobs))


def prediction_score(theta, kernel, sets, n_jobs=None):
    r"""The loss F alone, for larger sets; they may come from a generator.

    With the anchor *last*, all there is to know is in the last row of the Cholesky
    factor: :math:`\eta = L_{nn}^2` and :math:`\epsilon = L_{nn} (L^{-1} y)_n`.
    """

    def answer(X, Y, weights):
        parts = zip(X, Y, weights)
        return tuple(zip(*(_answer_last(theta, kernel, *part) for part in parts)))

    errors, eta = zip(*run_tasks(answer, sets, n_jobs))
    return float(_loss(np.concatenate(errors), np.concatenate(eta))[0])


def _answer_last(theta, kernel, X, Y, weights):
    """Error and variance of one anchor, given as the first row."""
    order = np.roll(np.arange(len(X)), -1)
    A = (X[order] - X[0]) / np.exp(theta[:-1])
    K_xx = kernels.gram_lower(kernel, A)
    L, _ = cholesky(add_to_diagonal(K_xx, np.exp(theta[-1]) / weights[order]))
    whitened = solve_lower(L, Y[order] - Y[1:].mean(axis=0))
    return L[-1, -1] * whitened[-1], L[-1, -1] ** 2


def _loss(errors, eta):
    """F and its derivatives by errors and variances."""
    n, n_outputs = errors.shape
    # A perfect prediction must not send a logarithm to minus infinity.
    mean_sq = np.mean(errors**2, axis=0) + 1e-24
    mean_ratio = np.mean(errors**2 / eta[:, None], axis=0) + 1e-24
    value = 0.5 * np.mean(ERROR_SHARE * np.log(mean_sq) + np.log(mean_ratio))
    value += 0.5 * np.mean(np.log(eta))
    by_error = ERROR_SHARE * errors / mean_sq + errors / (eta[:, None] * mean_ratio)
    by_eta = 0.5 / eta - 0.5 * np.mean(errors**2 / mean_ratio, axis=1) / eta**2
    return value, by_error / (n * n_outputs), by_eta / n


def _answer_anchors(theta, kernel, X, Y, weights):
    """Errors and variances of some anchors, and what their gradient needs."""
    n_anchors, n, _ = X.shape
    noise = np.maximum(np.exp(theta[-1]), LEAST_NOISE) / weights
    A = (X - X[:, :1]) / np.exp(theta[:-1])
    dist_sq = np.stack([squared_distances(rows, rows) for rows in A])
    K, slopes = kernels.apply_with_slope(kernel, dist_sq)
    diagonal = np.arange(n)
    K[:, diagonal, diagonal] += noise
    right = np.zeros((n_anchors, n, 1 + Y.shape[2]))
    right[:, 0, 0] = 1.0
    right[:, :, 1:] = Y - Y[:, 1:].mean(axis=1, keepdims=True)
    solved = np.linalg.solve(K, right)
    b, alpha = solved[:, :, 0], solved[:, :, 1:]
    # The Schur complement is at least the noise, whatever rounding makes of it.
    eta = 1.0 / np.clip(b[:, 0], 1e-12, 1.0 / noise[:, 0])
    return alpha[:, 0] * eta[:, None], eta, A, slopes, noise, b, alpha


def _backpropagate(errors, eta, A, slopes, noise, b, alpha, by_error, by_eta):
    r"""Gradient of the loss from its derivatives by errors and variances.

    :math:`dF = \sum Q \circ dA` with :math:`Q = b u^\top`; the sum over length scales
    avoids a tensor just as in `overcover.kernels.weighted_differences`.
    """
    own = np.sum(by_error * errors, axis=1) * eta + by_eta * eta**2
    u = own[:, None] * b - eta[:, None] * np.einsum("aio,ao->ai", alpha, by_error)
    Q = b[:, :, None] * u[:, None, :]
    by_scale = sum(kernels.take_steep(*one) for one in zip(Q, slopes, A, A))
    W = np.multiply(Q, slopes, out=slopes)
    sums = W.sum(axis=1) + W.sum(axis=2)
    by_scale += np.einsum("ai,aif->f", sums, A * A)
    by_scale -= 2.0 * np.einsum("aif,aif->f", A, W @ A)
    return np.append(-2.0 * by_scale, np.sum(b * u * noise))
