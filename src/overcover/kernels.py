r"""Kernels: similarity as a function of the squared distance.

A stationary kernel is a function :math:`\kappa(s)` of the squared scaled distance
:math:`s = \sum_f (x_f - x'_f)^2 / \rho_f^2`, with :math:`\kappa(0) = 1`. Named kernels
take inputs divided by the length scales. A scikit-learn kernel object takes inputs in
their own units and may have any diagonal.
"""

import numpy as np
from sklearn.gaussian_process.kernels import Kernel

from ._linalg import squared_distances

# Rows per block of a kernel matrix: 400 kB at n = 800.
BLOCK = 64
# Slopes beyond this are those of "matern12" within 1 / 20 of a length scale.
STEEP = 10.0
# The smoothest first.
NAMES = ("rbf", "matern52", "matern32", "matern12")


def is_object(kernel):
    """Whether `kernel` is a scikit-learn kernel object rather than a name."""
    return isinstance(kernel, Kernel)


def apply(name, dist_sq):
    """Kernel values from squared scaled distances, overwriting them.

    Examples
    --------
    >>> apply("rbf", np.array([0.0, 2.0])).round(4).tolist()
    [1.0, 0.3679]
    """
    if name == "rbf":
        dist_sq *= -0.5
        return np.exp(dist_sq, out=dist_sq)
    # Negative scaled distances, for the exponential.
    r = np.sqrt(dist_sq, out=dist_sq)
    r *= {"matern12": -1.0, "matern32": -np.sqrt(3.0), "matern52": -np.sqrt(5.0)}[name]
    if name == "matern12":
        return np.exp(r, out=r)
    if name == "matern32":
        polynomial = 1.0 - r
    else:
        polynomial = r * (1.0 / 3.0)
        polynomial -= 1.0
        polynomial *= r
        polynomial += 1.0
    np.exp(r, out=r)
    r *= polynomial
    return r


def apply_with_slope(name, dist_sq):
    r"""Kernel values :math:`\kappa(s)` and slopes; s is the squared distance.

    The slope of "matern12" at distance zero is infinite; it is returned as 0, since the
    derivatives of the distance vanish there.
    """
    if name == "rbf":
        values = np.exp(-0.5 * dist_sq)
        return values, -0.5 * values
    r = np.sqrt(dist_sq)
    if name == "matern12":
        values = np.exp(-r)
        slopes = np.divide(-0.5 * values, r, out=np.zeros_like(r), where=r > 0)
        return values, slopes
    if name == "matern32":
        r *= np.sqrt(3.0)
        decay = np.exp(-r)
        return (1.0 + r) * decay, -1.5 * decay
    r *= np.sqrt(5.0)
    decay = np.exp(-r)
    return (1.0 + r + r * r / 3.0) * decay, (-5.0 / 6.0) * (1.0 + r) * decay


def cross(kernel, A, B):
    """Kernel matrix between rows A (n, d) and B (m, d), shape (n, m)."""
    if is_object(kernel):
        return kernel(A, B)
    return apply(kernel, squared_distances(A, B))


def gram(kernel, A):
    """Kernel matrix of one set of rows with itself; 1 between equal rows."""
    if is_object(kernel):
        return kernel(A)
    K_xx = gram_lower(kernel, A)
    return np.tril(K_xx) + np.tril(K_xx, -1).T


def gram_lower(kernel, A):
    """`gram` on and below the diagonal, which is all that a factorisation reads.

    It takes half the work, in blocks of rows that stay in cache. Values above the
    diagonal are arbitrary.
    """
    if is_object(kernel):
        return kernel(A)
    K_xx = np.empty((len(A), len(A)))
    for top in range(0, len(A), BLOCK):
        bottom = min(top + BLOCK, len(A))
        dist_sq = squared_distances(A[top:bottom], A[:bottom])
        K_xx[top:bottom, :bottom] = apply(kernel, dist_sq)
    return K_xx


def gram_with_slope_lower(name, A):
    """`gram_lower` and the slopes that belong to it; slopes above are zero."""
    K_xx, slopes = np.zeros((2, len(A), len(A)))
    for top in range(0, len(A), BLOCK):
        bottom = min(top + BLOCK, len(A))
        dist_sq = squared_distances(A[top:bottom], A[:bottom])
        values, steep = apply_with_slope(name, dist_sq)
        K_xx[top:bottom, :bottom], slopes[top:bottom, :bottom] = values, steep
        slopes[top:bottom, top:bottom] = np.tril(slopes[top:bottom, top:bottom], -1)
    return K_xx, slopes


def apply_lower(name, dist_sq, factor):
    """Kernel values of ``factor * dist_sq`` (n, n) on and below the diagonal."""
    K_xx = np.zeros(dist_sq.shape)
    for top in range(0, len(K_xx), BLOCK):
        bottom = min(top + BLOCK, len(K_xx))
        K_xx[top:bottom, :bottom] = apply(name, dist_sq[top:bottom, :bottom] * factor)
    return K_xx


def weighted_differences(Q, slopes, A, B):
    r"""Sums :math:`\sum_{ab} W_{ab} (A_{af} - B_{bf})^2`, :math:`W = Q \circ \kappa'`.

    Shape (d,). Derivatives by length scales need it: if Q is the derivative by kernel
    values, :math:`\partial / \partial \log \rho_f` is -2 times this sum. A matrix
    product replaces a tensor of shape (n, m, d). It would cancel for close pairs with a
    steep slope (that of "matern12" has no bound), which are summed as differences
    instead. `slopes` are overwritten.
    """
    sums = take_steep(Q, slopes, A, B)
    W = np.multiply(Q, slopes, out=slopes)
    sums += W.sum(axis=1) @ (A * A) + W.sum(axis=0) @ (B * B)
    return sums - 2.0 * np.einsum("af,af->f", A, W @ B)


def take_steep(Q, slopes, A, B):
    """The part of `weighted_differences` from steep slopes, which it sets to zero."""
    if slopes.size == 0 or slopes.min() >= -STEEP:
        return np.zeros(A.shape[1])
    i, j = np.nonzero(slopes < -STEEP)
    weights = Q[i, j] * slopes[i, j]
    slopes[i, j] = 0.0
    return weights @ (A[i] - B[j]) ** 2


def diagonal(kernel, A):
    """``k(x, x)`` for every row."""
    return kernel.diag(A) if is_object(kernel) else np.ones(len(A))


def white_noise(kernel, A):
    """The part of ``k(x, x)`` that is noise of a white kernel object, (n_rows,)."""
    if not is_object(kernel):
        return np.zeros(len(A))
    tops = range(0, len(A), BLOCK)
    own = [np.diag(kernel(A[i : i + BLOCK], A[i : i + BLOCK])) for i in tops]
    return kernel.diag(A) - np.concatenate(own)


def with_theta(kernel, theta):
    """The kernel with log hyperparameters `theta`; a name stays as it is."""
    return kernel.clone_with_theta(theta[:-1]) if is_object(kernel) else kernel


def count_hyperparameters(kernel, n_features):
    """Hyperparameters of a kernel object; ValueError if it cannot compare such rows."""
    row = np.zeros((1, n_features))
    try:
        n_hyperparameters = len(kernel.theta)
        values = kernel.clone_with_theta(kernel.theta)(row, row), kernel.diag(row)
    except Exception as error:  # whatever scikit-learn says of what is no kernel
        raise ValueError(f"Its kernel makes no sense: {error!r}.") from error
    if [np.shape(value) for value in values] != [(1, 1), (1,)]:
        raise ValueError("Its kernel makes no sense.")
    return n_hyperparameters


def in_units(kernel, theta, X):
    """The kernel with log hyperparameters `theta`, noise last; rows in its units."""
    if is_object(kernel):
        return with_theta(kernel, theta), X
    return kernel, X / np.exp(theta[:-1])


def similarity(kernel, K, A, B):
    """Kernel values ``K = cross(kernel, A, B)`` scaled to [0, 1], as named ones are."""
    if not is_object(kernel):
        return K
    norm = np.sqrt(np.outer(diagonal(kernel, A), diagonal(kernel, B)))
    return np.clip(np.divide(K, norm, out=np.zeros_like(K), where=norm > 0), 0, 1)
