r"""Committees of Gaussian processes: all experts predict every query.

With :math:`\mu_i, s_i^2` the posterior mean and variance of expert i at a query,
:math:`s_0^2` the prior variance and weights :math:`\beta_i`,

.. math:: s^{-2} = \sum_i \beta_i s_i^{-2} + \gamma s_0^{-2}, \qquad
    \mu = s^2 \sum_i \beta_i s_i^{-2} \mu_i ,

- "poe" (product of experts): :math:`\beta_i = 1, \gamma = 0`; overconfident;
- "gpoe" (generalised): :math:`\beta_i = 1 / K, \gamma = 0`; the prior, far away;
- "bcm" (Bayesian committee machine): :math:`\beta_i = 1, \gamma = 1 - K`;
- "rbcm" (robust BCM): :math:`\beta_i = \tfrac12 (\log s_0^2 - \log s_i^2)`, the
  information of an expert about the query, :math:`\gamma = 1 - \sum_i \beta_i`;
- "grbcm" (generalised robust): an expert c on random rows, which all others share,
  replaces the prior. The first has :math:`\beta = 1`, the others :math:`\tfrac12 (\log
  s_c^2 - \log s_i^2)`. Consistent, at four times the cost.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from .._linalg import (
    inverse_factor,
    pack_lower,
    packed_column_norms_sq,
    solve_cholesky,
)
from .._parallel import run_tasks
from .._streams import center_of, without_far_cells
from .._weights import evidence_of
from ..partition import partition_rows
from ._shared import SharedKernelGP, factor_of

RULES = ("poe", "gpoe", "bcm", "rbcm", "grbcm")
# Lower limit of posterior variances, relative to the prior's: inverses must exist.
LEAST_SHARE = 1e-12


class Expert(NamedTuple):
    """A GP on some rows."""

    A: np.ndarray  # rows in units of the kernel, shape (size, n_features)
    alpha: np.ndarray  # shape (size, n_outputs)
    factor: np.ndarray  # packed ``L^-1``, shape (packed_size(size),)
    amplitude_sq: np.ndarray  # sum of squared whitened outputs, shape (n_outputs,)


@dataclass(eq=False, repr=False, kw_only=True)
class CommitteeGP(SharedKernelGP):
    """Experts on disjoint clusters, combined by a rule.

    A baseline for comparisons; docs/methods.md explains the rules. If you need a
    committee, choose "grbcm": the others are over- or underconfident.

    Parameters
    ----------
    machine : GP or None, default=None
        Its kernel and hyperparameters are those of all experts; None is ``GP()``.
    rule : {"rbcm", "poe", "gpoe", "bcm", "grbcm"}, default="rbcm"
    expert_size : int, default=500
        Rows that train one expert; twice as many for "grbcm".
    partition, n_jobs, random_state
        As in `overcover.OverlappingCoverRegressor`.

    Attributes
    ----------
    machine_ : GP
        With its tuned hyperparameters.
    experts_ : list
        For "grbcm" the expert on common rows comes first.
    amplitude_sq_ : ndarray of shape (n_outputs,)
        Variance of the signal, from the marginal likelihoods of all experts.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP
    >>> from overcover.baselines import CommitteeGP
    >>> X = np.random.default_rng(0).uniform(-3, 3, (600, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> model = CommitteeGP(GP(length_scale=2.0, noise=1e-4), expert_size=150).fit(X, y)
    >>> bool(abs(model.predict([[0.5, 0.5]])[0] - np.sin(0.5) * np.cos(0.5)) < 0.05)
    True
    """

    counts, choices = {"expert_size": 1}, {"rule": RULES}
    rule: str = "rbcm"
    expert_size: int = 500
    partition: Any = "kmeans"

    def _fit(self, X, Y, weight):
        rng, weights = self._tune(X, Y, weight, self.expert_size)
        self._center, noises = center_of(X), self._noise / weights
        sets = self._sets(X / self.machine_.length_scales(X), rng)

        def fit_expert(rows):
            kernel, A = self._in_units(X[rows], self._center)
            L, y = factor_of(kernel, A, noises[rows]), Y[rows] - self._Y_mean
            alpha = solve_cholesky(L, y)
            amplitude_sq = np.einsum("ij,ij->j", y, alpha)
            return Expert(A, alpha, pack_lower(inverse_factor(L)), amplitude_sq)

        self.experts_ = list(run_tasks(fit_expert, zip(sets), self.n_jobs))
        # All experts of "grbcm" have the common rows, so leave out the first.
        first = 1 if self.rule == "grbcm" else 0
        n_counted = sum(evidence_of(weights)[rows].sum() for rows in sets[first:])
        total = np.sum([e.amplitude_sq for e in self.experts_[first:]], axis=0)
        self.amplitude_sq_ = total / n_counted

    def _sets(self, X_metric, rng):
        """Rows of each expert; for "grbcm" the common rows first, and in all others."""
        n_experts = max(1, -(-len(X_metric) // self.expert_size))
        rows = without_far_cells(X_metric)
        parts = partition_rows(rows, n_experts, self.partition, self.n_jobs, rng)
        clusters = parts.clusters()
        if self.rule != "grbcm":
            return clusters
        n_common = min(self.expert_size, len(X_metric))
        common = np.sort(rng.permutation(len(X_metric))[:n_common])
        return [common, *(np.union1d(common, rows) for rows in clusters)]

    def _answers(self, X):
        kernel, B = self._in_units(X, self._center)

        def ask(expert):
            K_xq = kernels.cross(kernel, expert.A, B)
            explained = packed_column_norms_sq(expert.factor, K_xq)
            return K_xq.T @ expert.alpha, explained

        prior = kernels.diagonal(kernel, B)
        answers = run_tasks(ask, zip(self.experts_), self.n_jobs)
        means, explained = map(np.array, zip(*answers))
        variances = np.maximum(prior - explained, LEAST_SHARE * prior)
        mean, variance = combine(self.rule, means, variances, prior)
        return mean, np.maximum(variance, 0.0)[:, None]


def combine(rule, means, variances, prior):
    """Latent mean and variance from those of all experts, by one of the `RULES`."""
    base, base_mean = prior, 0.0
    if rule == "grbcm":
        base, base_mean = variances[0], means[0]
        means, variances = means[1:], variances[1:]
    if rule in ("rbcm", "grbcm"):
        beta = 0.5 * (np.log(base) - np.log(variances))
    else:
        beta = np.full(variances.shape, 1 / len(means) if rule == "gpoe" else 1.0)
    if rule == "grbcm":
        beta[0] = 1.0
    rest = 0.0 if rule in ("poe", "gpoe") else 1.0 - beta.sum(axis=0)
    precision = np.sum(beta / variances, axis=0) + rest / base
    weighted = np.sum((beta / variances)[..., None] * means, axis=0)
    weighted += np.asarray(rest / base)[..., None] * base_mean
    return weighted / precision[:, None], 1.0 / precision
