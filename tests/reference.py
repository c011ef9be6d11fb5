"""Slow, obviously right versions of what the package computes.

Each follows the textbook or the method's definition, one pair or one row at a time,
with explicit inverses. Nothing here is imported from the package.
"""

from math import exp, sqrt

import numpy as np

KERNELS = {
    "rbf": lambda r: exp(-(r**2) / 2),
    "matern12": lambda r: exp(-r),
    "matern32": lambda r: (1 + sqrt(3) * r) * exp(-sqrt(3) * r),
    "matern52": lambda r: (1 + sqrt(5) * r + 5 * r**2 / 3) * exp(-sqrt(5) * r),
}


def kernel_matrix(name, A, B, length_scale):
    """Kernel values by a double loop over pairs of rows."""
    scales = np.broadcast_to(length_scale, A.shape[1])
    return np.array(
        [[KERNELS[name](sqrt(sum(((a - b) / scales) ** 2))) for b in B] for a in A]
    ).reshape(len(A), len(B))


class DenseGP:
    """The textbook Gaussian process of amplitude one, with explicit inverses.

    Parameters
    ----------
    name : str
    length_scale : float or array
    noise : float
    weights : array or None
        A row's noise is `noise` divided by its weight.
    """

    def __init__(self, name, length_scale, noise, weights=None):
        self.name, self.length_scale, self.noise = name, length_scale, noise
        self.weights = weights

    def fit(self, X, Y, mean=None):
        """`mean` is the prior mean; by default the (weighted) mean of Y."""
        weights = np.ones(len(X)) if self.weights is None else self.weights
        self.X, self.Y = X, Y
        if mean is None:
            mean = (weights @ Y) / weights.sum()
        self.mean = mean
        K_xx = kernel_matrix(self.name, X, X, self.length_scale)
        self.A_inv = np.linalg.inv(K_xx + np.diag(self.noise / weights))
        return self

    def predict(self, Xq):
        """Means, and variances of a new observation on the kernel's scale."""
        K_xq = kernel_matrix(self.name, self.X, Xq, self.length_scale)
        mean = self.mean + K_xq.T @ self.A_inv @ (self.Y - self.mean)
        explained = np.array([k @ self.A_inv @ k for k in K_xq.T])
        return mean, 1.0 + self.noise - explained


def leave_one_out(name, length_scale, noise, X, Y):
    """Errors and variances at each row of machines that never saw it."""
    errors, variances = [], []
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        gp = DenseGP(name, length_scale, noise)
        gp.fit(X[rest], Y[rest])
        mean, variance = gp.predict(X[[i]])
        errors.append(Y[i] - mean[0])
        variances.append(variance[0])
    return np.array(errors), np.array(variances)


def profile_log_likelihood(K_noisy, y):
    """Log density of y under N(0, s^2 K_noisy) at the best s^2."""
    n = len(y)
    best = y @ np.linalg.inv(K_noisy) @ y / n
    _, logdet = np.linalg.slogdet(best * K_noisy)
    return -0.5 * (n * np.log(2 * np.pi) + logdet + n)


def numerical_gradient(function, at, step=1e-5):
    """Central differences of a scalar function, one coordinate at a time."""
    gradient = np.empty(len(at))
    for i in range(len(at)):
        ahead, behind = at.copy(), at.copy()
        ahead[i] += step
        behind[i] -= step
        gradient[i] = (function(ahead) - function(behind)) / (2 * step)
    return gradient


def local_scale(weights, residuals_sq, average, prior_rows):
    """Weighted mean of squared residuals and `prior_rows` copies of their average."""
    scale = np.empty((weights.shape[1], residuals_sq.shape[1]))
    for q in range(weights.shape[1]):
        for j in range(residuals_sq.shape[1]):
            total, count = prior_rows * average[j], prior_rows
            for i in range(len(weights)):
                total += weights[i, q] * residuals_sq[i, j]
                count += weights[i, q]
            scale[q, j] = total / count
    return scale


def lend(distances, capacities, wanted):
    """The lending rule, one row at a time: how many rows each lender gives.

    Quotas go by inverse distance and are rounded down; one more each, nearest first,
    until the total is right. Who is asked for more than it has gives all, and the rest
    falls to the others, nearest first.
    """
    inverse = [1.0 / d for d in distances]
    quota = [int(wanted * w / sum(inverse)) for w in inverse]
    lender = 0
    while sum(quota) < wanted:
        quota[lender] += 1
        lender += 1
    given = [min(q, c) for q, c in zip(quota, capacities)]
    lender = 0
    while sum(given) < wanted:
        if given[lender] < capacities[lender]:
            given[lender] += 1
        else:
            lender += 1
    return given


def cover(X, labels, centers, size, n_lenders):
    """Subdomains by the literal rule: a list of (owned, set of borrowed rows)."""
    n_clusters = len(centers)
    rows_of = [np.flatnonzero(labels == k) for k in range(n_clusters)]
    subdomains = []
    for i in range(n_clusters):
        wanted = min(size, len(X)) - len(rows_of[i])
        others = sorted(
            (j for j in range(n_clusters) if j != i),
            key=lambda j: (np.sum((centers[j] - centers[i]) ** 2), j),
        )
        lenders = others[:n_lenders]
        while sum(len(rows_of[j]) for j in lenders) < wanted:
            lenders = others[: len(lenders) + 1]
        distances = [np.sqrt(np.sum((centers[j] - centers[i]) ** 2)) for j in lenders]
        given = lend(distances, [len(rows_of[j]) for j in lenders], wanted)
        borrowed = set()
        for j, count in zip(lenders, given):
            by_distance = sorted(
                rows_of[j], key=lambda row: (np.sum((X[row] - centers[i]) ** 2), row)
            )
            borrowed.update(int(row) for row in by_distance[:count])
        subdomains.append((rows_of[i], borrowed))
    return subdomains


def mixture(weights, means, variances):
    """Mean and variance of a mixture, from its first two moments."""
    mean = sum(a * m for a, m in zip(weights, means))
    second_moment = sum(a * (v + m**2) for a, m, v in zip(weights, means, variances))
    return mean, second_moment - mean**2


def nearest_by(distances, n_consulted):
    """Indices in order of distance, ties to the lower index."""
    return sorted(range(len(distances)), key=lambda k: (distances[k], k))[:n_consulted]
