r"""The marginal likelihood of a GP and its gradient, lean in memory.

Amplitudes are not parameters: for output j the best one is known in closed form,
:math:`s_j^2 = y_j^\top A^{-1} y_j / n` with :math:`A = K + \nu \, \mathrm{diag}(1/w)`,
so only length scales and the relative noise :math:`\nu` are searched for. Per output,

.. math:: \log p_j = -\tfrac n2 \log s_j^2 - \tfrac12 \log|A| - \tfrac12 \sum_i (c_i -
    1) \log \nu + \text{const}, \qquad n = \textstyle\sum_i c_i .

A row of weight w has a w-th of the noise, and counts as :math:`c = \min(w, 1)`
observations: a row of little weight is little evidence about the noise, and a heavy row
does not count as many rows that agree.

Notation: ``theta`` is ``[log length scales..., log noise]``, or a scikit-learn kernel's
own ``theta`` with the log noise appended.
"""

import numpy as np

from .. import kernels
from .._linalg import (
    add_to_diagonal,
    cholesky,
    lower_inverse,
    solve_cholesky,
)
from .._weights import evidence_of


def negative_log_likelihood(theta, kernel, X, Y, weights=None):
    r"""Mean negative log likelihood per number observed, and its gradient by theta.

    The gradient is :math:`\tfrac12 \sum Q \circ \partial A` with :math:`Q = \sum_j
    \alpha_j \alpha_j^\top / s_j^2 - d_Y A^{-1}`, of which the lower triangle is enough;
    `kernels` has the sums that length scales need without a tensor of shape (n, n, d).
    Y of shape (n, n_outputs) is centred, and no column is constant.
    """
    n_outputs = Y.shape[1]
    noise = np.exp(theta[-1])
    row_noise = noise if weights is None else noise / weights
    counts = np.ones(len(X)) if weights is None else evidence_of(weights)
    n = counts.sum()

    K_xx, backpropagate = _kernel_and_gradient(theta[:-1], kernel, X)
    L, _ = cholesky(add_to_diagonal(K_xx, row_noise))
    alpha = solve_cholesky(L, Y)
    amplitude_sq = np.einsum("ij,ij->j", Y, alpha) / n

    value = 0.5 * n * np.log(amplitude_sq).sum()
    value += n_outputs * np.log(np.diag(L)).sum()
    Q = (alpha / amplitude_sq) @ alpha.T
    Q -= n_outputs * lower_inverse(L)
    slope_noise = 0.5 * np.sum(np.diag(Q) * row_noise)
    if weights is not None and noise > 0:  # without noise, weights make no difference
        missing = n - len(X)
        value += 0.5 * n_outputs * missing * theta[-1]
        slope_noise -= 0.5 * n_outputs * missing
    gradient = -np.append(backpropagate(Q), slope_noise)
    return value / (n * n_outputs), gradient / (n * n_outputs)


def _kernel_and_gradient(theta, kernel, X):
    """The kernel matrix, and a function from Q to half the sum of ``Q * dK``.

    Only the lower triangles of both matrices count.
    """
    if kernels.is_object(kernel):
        K_xx, K_gradient = kernel.clone_with_theta(theta)(X, eval_gradient=True)
        # Entries below the diagonal stand for those above it.
        halves = np.tril(np.ones(K_xx.shape)) - 0.5 * np.eye(len(X))
        return K_xx, lambda Q: np.einsum("ab,abt->t", Q * halves, K_gradient)

    A = X / np.exp(theta)
    K_xx, slopes = kernels.gram_with_slope_lower(kernel, A)
    return K_xx, lambda Q: -2.0 * kernels.weighted_differences(Q, slopes, A, A)
