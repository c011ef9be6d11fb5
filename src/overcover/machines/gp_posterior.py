"""Correlations and gradients from the posterior of a Gaussian process.

Notation as in `overcover.machines.gp`. Between queries p and q the posterior covariance
on the kernel's scale is

.. math:: k(p, q) - k_p^\\top A^{-1} k_q ,

and the gradient of the mean is that of :math:`k_q^\\top \\alpha`.
"""

import numpy as np

from .. import kernels
from .._linalg import add_to_diagonal, packed_product, squared_distances
from .gp_state import LEAST_VARIANCE, substitute

# Steps of central differences, in deviations of a column: the best for float64.
STEP = np.finfo(float).eps ** (1 / 3)


def correlation_of(kernel, state, g, offsets, noise):
    """Posterior correlations of the outputs of group g, shape (n_queries, n_queries).

    Of new observations or, without `noise`, of the function, at queries minus the
    center of the state. In float64, whatever the type of the factor.
    """
    theta, factor = state.theta[g], state.factor[g]
    kernel, A = kernels.in_units(kernel, theta, state.X)
    _, B = kernels.in_units(kernel, theta, offsets)
    K_xq, own_noise = kernels.cross(kernel, A, B), np.exp(theta[-1])
    if factor.size and factor.dtype == np.float64:
        half = packed_product(factor, K_xq)
    else:
        half = substitute(kernel, A, own_noise / state.weights, K_xq)
    C = kernels.cross(kernel, B, B)
    C = 0.5 * (C + C.T) - half.T @ half
    if noise:
        add_to_diagonal(C, own_noise + kernels.white_noise(kernel, B))
    deviation = np.sqrt(np.maximum(np.diag(C), LEAST_VARIANCE))
    C /= deviation
    C /= deviation[:, None]
    np.fill_diagonal(C, 1.0)
    return C


def slopes_of(kernel, state, g, outputs, offsets):
    """Gradients of the mean, shape (n_queries, n_features, n_outputs of the group).

    A row at the query adds nothing: its kernel is flat there or, that of "matern12",
    has a peak, whose slopes on either side have the mean zero.
    """
    theta, alpha = state.theta[g], state.alpha[:, outputs]
    if kernels.is_object(kernel):
        return _differences(kernels.with_theta(kernel, theta), state.X, alpha, offsets)
    scales = np.exp(theta[:-1])
    A, B = state.X / scales, offsets / scales
    _, slopes = kernels.apply_with_slope(kernel, squared_distances(A, B))
    slopes *= 2.0
    gradient = np.empty((len(B), B.shape[1], alpha.shape[1]))
    for f, scale in enumerate(scales):
        # Differences, not a product of matrices: that would cancel for close rows.
        gradient[:, f] = (slopes * (B[:, f] - A[:, f, None])).T @ alpha / scale
    return gradient


def _differences(kernel, X, alpha, X_query):
    """`slopes_of` a kernel object, which does not tell its derivatives."""
    gradient = np.empty((*X_query.shape, alpha.shape[1]))
    spread = X.std(axis=0)
    for f in range(X.shape[1]):
        step = STEP * (spread[f] if spread[f] > 0 else 1.0)
        low, high = X_query.copy(), X_query.copy()
        low[:, f] -= step
        high[:, f] += step
        width = (high[:, f] - low[:, f])[:, None]
        gradient[:, f] = (kernel(high, X) - kernel(low, X)) @ alpha / width
    return gradient
