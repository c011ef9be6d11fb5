r"""Local probabilistic regression: neighbours of a query, divided by their outputs.

The outputs of the n neighbours fall into k clusters, the *modes*, each with a GP of its
own mean and amplitude; k is the number up to ``n_modes`` with the largest

.. math:: \sum_{m=1}^{k} \Bigl( \log p_m + n_m \log \tfrac{n_m}{n} - d_Y \log n_m
    \Bigr),

with :math:`p_m` the marginal likelihood of the :math:`n_m` rows of a mode. The mode
with the largest :math:`\sum_{i \in m} w_i \, k(q, x_i)` answers. See docs/methods.md;
Urtasun and Darrell (2008) start a mode from each of the nearest rows instead.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from .. import kernels
from .._linalg import solve_lower
from .._weights import evidence_of
from ..machines import Answer
from ._shared import SharedKernelGP, factor_of, log_evidence
from .neighborhood import NearestRows

# A mode has at least so many rows, and this share of the neighbours.
LEAST_ROWS, LEAST_SHARE = 5, 0.05
# Rounds in which rows change clusters.
MOST_ROUNDS = 20
# Amplitudes and posterior variances are no smaller than these shares.
LEAST_AMPLITUDE, LEAST_VARIANCE = 1e-12, 1e-15


class Mode(NamedTuple):
    """The answer of one mode to one query, and how it explains its own rows."""

    answer: Answer
    log_likelihood: float
    closeness: float  # the sum of the similarities of its rows to the query


@dataclass(eq=False, repr=False)
class LocalProbabilisticRegression(NearestRows, SharedKernelGP):
    """A local GP for every query and every mode of its neighbours' outputs.

    A baseline for comparisons. Choose it over `NeighborhoodRegressor` where one input
    has several outputs; a `overcover.TwinGP` finds a mode too, for less in each query.
    `predict_interval` and `log_density` are those of the predicted mode alone.

    `fit` only tunes the kernel. A query costs :math:`O(M^3)` for M neighbours, once for
    every number of modes that is tried. Memory is twice that of the rows.

    Parameters
    ----------
    machine : GP or None, default=None
        Its kernel and hyperparameters are those of all modes; None is ``GP()``.
    n_neighbors : int, default=200
        M: rows that answer a query, nearest in the metric of the kernel; all rows if
        there are fewer.
    n_modes : int, default=3
        The most modes; 1 is `NeighborhoodRegressor`.
    n_jobs, random_state
        As in `overcover.OverlappingCoverRegressor`.

    Attributes
    ----------
    machine_ : GP
        With its tuned hyperparameters.
    length_scales_ : ndarray of shape (n_features_in_,)
        The metric: distances are those in ``X / length_scales_``.

    Notes
    -----
    Hyperparameters "auto" minimise the error of a mean over all modes, so that much
    looks like noise. Where modes are apart, give the noise within a mode.

    Examples
    --------
    The mean of two branches is zero, and neither of them:

    >>> import numpy as np
    >>> from overcover import GP
    >>> from overcover.baselines import LocalProbabilisticRegression
    >>> X = np.linspace(0, 1, 90)[:, None]
    >>> y = np.where(np.arange(90) % 3 == 0, -1.0, 1.0)
    >>> model = LocalProbabilisticRegression(GP(length_scale=0.5, noise=0.01), 60)
    >>> model.fit(X, y).predict([[0.5]]).round(2).tolist()
    [1.0]
    """

    counts = {"n_neighbors": 1, "n_modes": 1}
    n_neighbors: int = 200
    n_modes: int = field(default=3, kw_only=True)

    def _fit(self, X, Y, weights):
        _, weights = self._tune(X, Y, weights, self.n_neighbors)
        self._keep(X, Y, weights)
        self._output_scale = Y.std(axis=0)

    def _answer(self, query, X, Y, weights, variance):
        """That of the most probable mode of some neighbours."""
        kernel, rows = self._in_units(np.vstack([X, query]), query)
        A, q = rows[:-1], rows[-1:]
        counts = evidence_of(weights)
        # Rows of outputs that do not vary anywhere are all in one place.
        scale = np.where(self._output_scale > 0, self._output_scale, np.inf)
        least = max(LEAST_ROWS, int(np.ceil(LEAST_SHARE * len(Y))))
        best, best_score = [], -np.inf
        for k in range(1, self.n_modes + 1):
            labels = clusters_in(Y / scale, k) if k > 1 else np.zeros(len(Y), int)
            sizes = np.bincount(labels, minlength=k)
            if k > 1 and sizes.min() < least:
                continue
            chosen = [labels == m for m in range(k)]
            fixed = q, self._noise, self._output_scale
            modes = [
                answer_mode(kernel, A[i], Y[i], weights[i], *fixed) for i in chosen
            ]
            n = np.array([counts[i].sum() for i in chosen])
            price = n * np.log(n.sum() / n) + Y.shape[1] * np.log(np.maximum(n, 1.0))
            score = sum(mode.log_likelihood for mode in modes) - price.sum()
            if score > best_score:
                best, best_score = modes, score
        return max(best, key=lambda mode: mode.closeness).answer


def answer_mode(kernel, A, Y, weights, q, noise, output_scale) -> Mode:
    """Fit a GP to the rows of a mode, in units of the kernel, and answer one query."""
    mean = np.average(Y, axis=0, weights=weights)
    K_xq = kernels.cross(kernel, A, q)
    L = factor_of(kernel, A, noise / weights)
    z_y, z_q = np.split(solve_lower(L, np.hstack([Y - mean, K_xq])), [len(mean)], 1)
    amplitude_sq = np.einsum("ij,ij->j", z_y, z_y) / evidence_of(weights).sum()
    least = LEAST_AMPLITUDE * output_scale**2 + 1e-300
    log_noise = np.log(noise) if noise > 0 else -np.inf
    value = log_evidence(L, np.maximum(amplitude_sq, least), weights, log_noise)
    unexplained = float(kernels.diagonal(kernel, q)[0] - np.sum(z_q**2))
    closeness = float(weights @ kernels.similarity(kernel, K_xq, A, q)[:, 0])
    posterior = max(unexplained, LEAST_VARIANCE)
    variance = (amplitude_sq * (posterior + noise))[None]
    function = (amplitude_sq * posterior)[None]
    answer = Answer((mean + z_q[:, 0] @ z_y)[None], variance, None, function)
    return Mode(answer, value, closeness)


def clusters_in(Y, n_clusters):
    """Clusters of outputs by k-means from the farthest rows, the same every time."""
    # The row that is farthest from the mean, then the farthest from all so far.
    centers = Y.mean(axis=0)[None]
    for k in range(n_clusters):
        dist_sq = np.min(np.sum((Y[:, None] - centers) ** 2, axis=2), axis=1)
        far = Y[np.argmax(dist_sq)][None]
        centers = far if k == 0 else np.vstack([centers, far])
    labels = np.full(len(Y), -1)
    for _ in range(MOST_ROUNDS):
        nearest = np.argmin(np.sum((Y[:, None] - centers) ** 2, axis=2), axis=1)
        if np.array_equal(nearest, labels):
            break
        labels = nearest
        for k in np.unique(labels):
            centers[k] = Y[labels == k].mean(axis=0)
    return labels
