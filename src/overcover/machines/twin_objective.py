r"""What a Twin GP minimises, for a batch of queries at once.

In kernel units :math:`z = (y - m) / \rho_Y`, with :math:`k = k_r(z)` the similarities
of a candidate output to the pivots (`overcover.machines.twin_output`),

.. math:: F(z) = -2 k^\top \tilde u - \eta \log c(z), \qquad
    c(z) = \kappa + \lambda_Y - k^\top C k + (b^\top k)^2 ,

:math:`\tilde u` and :math:`\eta` the query's, b zero unless the query is a training row
that is left out (then it takes back what the row had added to C). Since
:math:`\partial k_i / \partial z = -k_i (z - z_i)`,

.. math:: \nabla F = \sum_i w_i z_i - \Bigl(\sum_i w_i\Bigr) z, \qquad
    w = k \circ \frac{\partial F}{\partial k}, \qquad
    \frac{\partial F}{\partial k} = 2 \frac{\eta}{c} (C k - b\, b^\top k) - 2 \tilde u .

An evaluation is three matrix products over all queries still under way, one
exponential, and one pass that makes values and weights.
"""

import numpy as np

from .._compiled import compiled_loosely

# c is the variance of a new output, at least the noise; rounding must not make it zero.
LEAST_C = 1e-12


def lifted_rows(Z):
    """Rows with two more columns, such that products with `lifted_points` are
    ``-|z - z'|^2 / 2``; shape (r, n_outputs + 2)."""
    norms = -0.5 * np.einsum("ij,ij->i", Z, Z)
    return np.column_stack([Z, norms, np.ones(len(Z))])


def similarities(points, lifted):
    """Gaussian similarities of points to `lifted_rows`, shape (n_points, r)."""
    lifted_points = np.empty((len(points), lifted.shape[1]))
    lifted_points[:, :-2] = points
    lifted_points[:, -2] = 1.0
    lifted_points[:, -1] = -0.5 * np.einsum("ij,ij->i", points, points)
    K = lifted_points @ lifted.T
    np.minimum(K, 0.0, out=K)
    return np.exp(K, out=K)


class TwinObjective:
    """F and its gradient for the queries of one subdomain.

    `times_C` is C, or what multiplies rows with it. ``weigh(K, W, queries, *known,
    values, sums)`` fills in values, weights w in place of the first columns of ``W = K
    C``, and their sums.
    """

    def __init__(self, pivots, times_C, weigh, *known):
        self.pivots, self.lifted = pivots, lifted_rows(pivots)
        self.times_C = times_C if callable(times_C) else lambda K: K @ times_C
        self.weigh, self.known = weigh, known

    def __call__(self, points, queries):
        """Values and gradients at points, each a candidate of one of the queries."""
        K = similarities(points, self.lifted)
        W = self.times_C(K)
        values, sums = np.empty(len(points)), np.empty(len(points))
        self.weigh(K, W, queries, *self.known, values, sums)
        gradients = W[:, : K.shape[1]] @ self.pivots
        gradients -= sums[:, None] * points
        return values, gradients


@compiled_loosely
def weigh(K, W, queries, U, eta, own, taken, values, sums):
    """The module's formula. U of shape (n_queries, r) are the queries' weights on the
    pivots, `own` the similarity of an output to itself, `taken` the b of rows left out,
    of shape (n_queries, r), or (0, r) where none is."""
    n, r = K.shape
    for i in range(n):
        k, w, u = K[i], W[i], U[queries[i]]
        linear = quadratic = 0.0
        for j in range(r):
            linear += k[j] * u[j]
            quadratic += k[j] * w[j]
        back = 0.0
        if len(taken):
            b = taken[queries[i]]
            for j in range(r):
                back += b[j] * k[j]
            for j in range(r):
                w[j] -= back * b[j]
        c = max(own - quadratic + back * back, LEAST_C)
        e = eta[queries[i]]
        values[i] = -2.0 * linear - e * np.log(c)
        slope, total = 2.0 * e / c, 0.0
        for j in range(r):
            w[j] = k[j] * (slope * w[j] - 2.0 * u[j])
            total += w[j]
        sums[i] = total
