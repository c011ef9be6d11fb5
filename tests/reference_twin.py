"""Slow, obviously right Twin GPs: the printed formulas, with explicit inverses.

Everything is in kernel units: inputs A and outputs Z divided by their length scales.
Nothing here is imported from the package.
"""

import numpy as np
from scipy.optimize import minimize


def gaussian(a, B):
    """``exp(-|a - b|^2 / 2)`` of one row to many."""
    return np.exp(-0.5 * np.sum((B - a) ** 2, axis=1))


def gram(A):
    """Similarities of all pairs of rows."""
    return np.array([gaussian(a, A) for a in A])


class DenseTwin:
    """A Twin GP on given rows, one query at a time.

    Parameters
    ----------
    A : array of shape (size, n_features)
    Z : array of shape (size, n_outputs)
    input_noise, output_noise : float
    weights : array or None
        A row's noise is divided by its weight.
    self_noise : bool
        False is the printed form.
    """

    def __init__(self, A, Z, input_noise, output_noise, weights=None, self_noise=True):
        weights = np.ones(len(A)) if weights is None else weights
        self.A, self.Z, self.input_noise = A, Z, input_noise
        self.K_x = gram(A) + np.diag(input_noise / weights)
        self.K_y = gram(Z) + np.diag(output_noise / weights)
        self.inverse_x = np.linalg.inv(self.K_x)
        self.inverse_y = np.linalg.inv(self.K_y)
        self.own_x = 1.0 + input_noise * self_noise
        self.own_y = 1.0 + output_noise * self_noise

    def weights_of(self, a):
        """The query's u."""
        return self.inverse_x @ gaussian(a, self.A)

    def eta(self, a):
        return self.own_x - gaussian(a, self.A) @ self.weights_of(a)

    def mean(self, a):
        """What a GP says."""
        return self.weights_of(a) @ self.Z

    def objective(self, z, a):
        """``k(y, y) - 2 k^T u - eta log c``."""
        k = gaussian(z, self.Z)
        c = self.own_y - k @ self.inverse_y @ k
        return 1.0 - 2.0 * k @ self.weights_of(a) - self.eta(a) * np.log(c)

    def gradient(self, z, a):
        """The printed gradient, in kernel units."""
        k = gaussian(z, self.Z)
        v = self.inverse_y @ k
        w = k * (2 * self.eta(a) / (self.own_y - k @ v) * v - 2 * self.weights_of(a))
        return w @ self.Z - w.sum() * z

    def minimum(self, a, start):
        """What scipy finds from a start; its value."""
        found = minimize(
            self.objective,
            start,
            args=(a,),
            jac=self.gradient,
            method="L-BFGS-B",
            options={"gtol": 1e-9, "ftol": 1e-15, "maxiter": 500},
        )
        return found.fun


class DenseMixture(DenseTwin):
    """A Sharma-Mittal Twin GP; ``log c_xy - alpha log c_y`` is minimised."""

    def __init__(self, A, Z, input_noise, output_noise, alpha, **options):
        super().__init__(A, Z, input_noise, output_noise, **options)
        self.alpha = alpha
        self.inverse_mixed = np.linalg.inv((1 - alpha) * self.K_x + alpha * self.K_y)

    def objective(self, z, a):
        alpha, k_y = self.alpha, gaussian(z, self.Z)
        k = (1 - alpha) * gaussian(a, self.A) + alpha * k_y
        own = (1 - alpha) * self.own_x + alpha * self.own_y
        c_xy = own - k @ self.inverse_mixed @ k
        c_y = self.own_y - k_y @ self.inverse_y @ k_y
        return np.log(c_xy) - alpha * np.log(c_y)


def importance_weighted(K, k, weights, noise):
    """u and eta of the weighted kernel, as printed: with ``W^1/2`` on both sides."""
    root = np.diag(np.sqrt(weights))
    weighted = root @ K @ root + noise * np.eye(len(K))
    u = root @ np.linalg.inv(weighted) @ root @ k
    return u, 1.0 + noise - k @ u


def printed_inverse(K, d, noise):
    """The paper's formula for ``D (D K D + noise I)^-1 D``, which is wrong.

    It applies a lemma for matrices of rank one to ``noise I``.
    """
    inverse = np.linalg.inv(K + 1e-10 * np.eye(len(K)))
    scaled = inverse / np.outer(d, d)
    squared = (inverse @ inverse) / np.outer(d**2, d**2)
    wrong = scaled - noise * squared / (1.0 + noise * np.trace(scaled))
    return wrong * np.outer(d, d)
