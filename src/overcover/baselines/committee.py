r"""Committees of Gaussian processes: all experts predict every query.

    X, Y -> metric -> partition -> a GP on each cluster -> all of them combined

Experts on disjoint clusters share their hyperparameters. With :math:`\mu_i, s_i^2` the
posterior mean and variance of expert i at a query, :math:`s_0^2` the prior variance and
weights :math:`\beta_i`,

.. math:: s^{-2} = \sum_i \beta_i s_i^{-2} + \gamma s_0^{-2}, \qquad
    \mu = s^2 \sum_i \beta_i s_i^{-2} \mu_i ,

- "poe" (product of experts): :math:`\beta_i = 1, \gamma = 0`; overconfident, more so
  with more experts, and also far from the data;
- "gpoe" (generalised): :math:`\beta_i = 1 / K, \gamma = 0`; the prior, far away;
- "bcm" (Bayesian committee machine): :math:`\beta_i = 1, \gamma = 1 - K`;
- "rbcm" (robust BCM): :math:`\beta_i = \tfrac12 (\log s_0^2 - \log s_i^2)`, the
  information of an expert about the query, :math:`\gamma = 1 - \sum_i \beta_i`. A
  single expert is then *not* the full GP, unless its :math:`\beta` is one by chance;
- "grbcm" (generalised robust): an expert c on random rows replaces the prior, and every
  other expert also trains on these rows. The first has :math:`\beta = 1`, the others
  :math:`\tfrac12 (\log s_c^2 - \log s_i^2)`. Consistent, at four times the cost.

A query needs all experts, :math:`O(N M)` for a standard deviation, whereas a cover uses
about two machines. Memory is :math:`O(N M / 2)`.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from .. import kernels
from .._linalg import (
    add_to_diagonal,
    cholesky,
    inverse_factor,
    pack_lower,
    packed_column_norms_sq,
    solve_cholesky,
)
from .._parallel import run_tasks
from .._streams import center_of, without_far_cells
from .._validation import (
    all_or_nothing,
    check_choice,
    check_count,
    check_training_data,
)
from .._weights import evidence_of
from ..machines import Prediction, Predictor, TakesMachine
from ..partition import partition_rows
from ._shared import row_noises, shared_gp

RULES = ("poe", "gpoe", "bcm", "rbcm", "grbcm")
# Queries in a chunk, whatever the number of experts.
CHUNK = 2048
# Lower limit of posterior variances, relative to the prior's: inverses must exist.
LEAST_SHARE = 1e-12


class Expert(NamedTuple):
    """A GP on some rows."""

    A: np.ndarray
    """Rows in units of the kernel, shape (size, n_features)."""

    alpha: np.ndarray
    """Shape (size, n_outputs)."""

    factor: np.ndarray
    """Packed ``L^-1``, shape (packed_size(size),)."""

    amplitude_sq: np.ndarray
    """Sum of squared whitened outputs, shape (n_outputs,)."""


class CommitteeGP(
    TakesMachine, Predictor, MultiOutputMixin, RegressorMixin, BaseEstimator
):
    """Experts on disjoint clusters, combined by a rule.

    A baseline for comparisons; `overcover.baselines.committee` explains the rules. If
    you need a committee, choose "grbcm": the others are over- or underconfident.

    Parameters
    ----------
    machine : GP or None, default=None
        Kernel and hyperparameters, shared by all experts; None is ``GP()``.
    rule : {"rbcm", "poe", "gpoe", "bcm", "grbcm"}, default="rbcm"
    expert_size : int, default=500
        Rows that train one expert; twice as many for "grbcm".
    partition : {"kmeans", "ab", "imda", "rpc", "two-level"} or clusterer, \
default="kmeans"
        Divides the rows among experts; see `overcover.partition.partition_rows`.
    n_jobs : int or None, default=None
        Threads that work on different experts. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Determines the samples of tuning, the partition, and the common rows of "grbcm".

    Attributes
    ----------
    machine_ : GP
        With its tuned hyperparameters.
    experts_ : list of Expert
        For "grbcm" the expert on common rows comes first.
    amplitude_sq_ : ndarray of shape (n_outputs,)
        Variance of the signal, from the marginal likelihoods of all experts.
    n_features_in_, n_outputs_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        If X was a data frame with string column names.

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

    def __init__(
        self,
        machine=None,
        *,
        rule="rbcm",
        expert_size=500,
        partition="kmeans",
        n_jobs=None,
        random_state=None,
    ):
        self.machine = machine
        self.rule = rule
        self.expert_size = expert_size
        self.partition = partition
        self.n_jobs = n_jobs
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X, y, sample_weight=None):
        """Tune the kernel, partition the rows, fit the experts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            As in `overcover.GP.fit`.

        Returns
        -------
        self
        """
        X, Y, weight, _ = check_training_data(self, X, y, sample_weight)
        check_choice("rule", self.rule, RULES)
        check_count("expert_size", self.expert_size, 1, "500 suits most data.")
        rng = check_random_state(self.random_state)
        machine = shared_gp(self.machine)
        machine.tune(X, Y, weight, min(self.expert_size, len(X)), rng, self.n_jobs)
        self._theta = machine.theta_[0]
        self._center = 0.0 if kernels.is_object(machine.used_kernel_) else center_of(X)
        self._Y_mean = np.average(Y, axis=0, weights=weight)
        noises = row_noises(np.exp(self._theta[-1]), len(X), weight)
        sets = self._sets(X / machine.length_scales(X), rng)

        def fit_expert(rows):
            kernel, A = kernels.in_units(
                machine.used_kernel_, self._theta, X[rows] - self._center
            )
            return make_expert(kernel, A, Y[rows] - self._Y_mean, noises[rows])

        self.experts_ = list(
            run_tasks(fit_expert, ((rows,) for rows in sets), self.n_jobs)
        )
        # All experts of "grbcm" have the common rows, so leave out the first.
        first = 1 if self.rule == "grbcm" else 0
        counts = np.ones(len(X)) if weight is None else evidence_of(weight)
        n_counted = sum(counts[rows].sum() for rows in sets[first:])
        total = np.sum([e.amplitude_sq for e in self.experts_[first:]], axis=0)
        self.amplitude_sq_ = total / n_counted
        self.machine_ = machine
        return self

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

    def _predict_rows(self, X, return_std):
        parts = [
            self._combined(X[i : i + CHUNK].astype(np.float64) - self._center)
            for i in range(0, len(X), CHUNK)
        ]
        mean = np.concatenate([mean for mean, _ in parts]) + self._Y_mean
        if not return_std:
            return Prediction(mean, None)
        latent = np.concatenate([variance for _, variance in parts])
        observed = np.maximum(latent, 0.0) + np.exp(self._theta[-1])
        return Prediction(mean, np.sqrt(np.outer(observed, self.amplitude_sq_)))

    def _combined(self, X):
        kernel, B = kernels.in_units(self.machine_.used_kernel_, self._theta, X)

        def ask(expert):
            K_xq = kernels.cross(kernel, expert.A, B)
            explained = packed_column_norms_sq(expert.factor, K_xq)
            return K_xq.T @ expert.alpha, explained

        prior = kernels.diagonal(kernel, B)
        answers = list(run_tasks(ask, ((e,) for e in self.experts_), self.n_jobs))
        means = np.array([mean for mean, _ in answers])
        variances = np.array([prior - explained for _, explained in answers])
        variances = np.maximum(variances, LEAST_SHARE * prior)
        return combine(self.rule, means, variances, prior)


def make_expert(kernel, A, Y, row_noise) -> Expert:
    """Fit one expert.

    Parameters
    ----------
    kernel : str or scikit-learn kernel
    A : ndarray of shape (size, n_features)
    Y : ndarray of shape (size, n_outputs)
        Centred.
    row_noise : ndarray of shape (size,)

    Returns
    -------
    Expert
    """
    L, _ = cholesky(add_to_diagonal(kernels.gram_lower(kernel, A), row_noise))
    alpha = solve_cholesky(L, Y)
    amplitude_sq = np.einsum("ij,ij->j", Y, alpha)
    return Expert(A, alpha, pack_lower(inverse_factor(L)), amplitude_sq)


def combine(rule, means, variances, prior):
    """Latent mean and variance from those of all experts.

    Parameters
    ----------
    rule : one of `RULES`
    means : ndarray of shape (n_experts, n_queries, n_outputs)
    variances : ndarray of shape (n_experts, n_queries)
    prior : ndarray of shape (n_queries,)

    Returns
    -------
    mean : ndarray of shape (n_queries, n_outputs)
    variance : ndarray of shape (n_queries,)

    Examples
    --------
    Two equal experts halve the variance of a product of experts:

    >>> means, variances = np.ones((2, 1, 1)), np.full((2, 1), 0.5)
    >>> combine("poe", means, variances, np.ones(1))[1].tolist()
    [0.25]
    """
    if rule == "grbcm":
        base, base_mean = variances[0], means[0]
        means, variances = means[1:], variances[1:]
        beta = 0.5 * (np.log(base) - np.log(variances))
        beta[0] = 1.0
    else:
        base, base_mean = prior, 0.0
        if rule == "rbcm":
            beta = 0.5 * (np.log(prior) - np.log(variances))
        else:
            beta = np.full(variances.shape, 1 / len(means) if rule == "gpoe" else 1.0)
    rest = 0.0 if rule in ("poe", "gpoe") else 1.0 - beta.sum(axis=0)
    precision = np.sum(beta / variances, axis=0) + rest / base
    weighted = np.sum((beta / variances)[..., None] * means, axis=0)
    weighted += np.asarray(rest / base)[..., None] * base_mean
    return weighted / precision[:, None], 1.0 / precision
