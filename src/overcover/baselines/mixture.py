r"""Mixture of GP experts: a classifier of the inputs gives the weights of experts.

With :math:`g_k(x)` the gate and :math:`p_k` the predictive density of expert k, a round
moves row i towards the expert that explains it best *without it*,

.. math:: r_{ik} \propto g_k(x_i) \, p_k(y_i \mid x_i, \text{the other rows of } k),

all of it ("hard") or in proportion ("soft", by weights), and fits experts and gate
again until :math:`\sum_i \log \sum_k g_k p_k` no longer grows. The gate is a logistic
regression: convex, smooth in the query, and right for the linear borders of the first
partition. The same density, of halves of the rows, chooses how sharp its borders are.
See docs/methods.md; Rasmussen and Ghahramani (2002) sample assignments instead.
"""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import logsumexp
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from .._linalg import packed_column_norms_sq
from .._parallel import one_thread_per_worker, run_tasks
from .._streams import without_far_cells
from .._weights import evidence_of
from ..partition import partition_rows
from ._shared import PartsGP, own_theta

# Inverse penalties of the logistic regression, from wide borders to narrow ones.
SHARPNESSES = (1.0, 100.0, 10000.0)
# An expert with a smaller share of a row, or of a query, has nothing to do with it.
LEAST_SHARE = 0.01
# An expert has at most so many times the rows that it starts with.
MOST_GROWTH = 2
# Variances are no smaller than this share of the outputs': an expert's may be equal.
LEAST_VARIANCE = 1e-12


class Gate:
    """Probabilities of the experts at rows Z, in units of the length scales."""

    def __init__(self, Z, shares, weights, sharpness):
        rows, experts = np.nonzero(shares)
        self.n_experts = shares.shape[1]
        self.classifier = LogisticRegression(C=sharpness, max_iter=300)
        if self.n_experts > 1:
            # Where experts are apart, borders could get narrower without end.
            with one_thread_per_worker(), warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                row_weights = shares[rows, experts] * weights[rows]
                self.classifier.fit(Z[rows], experts, row_weights)

    def shares(self, Z):
        """Shape (n_rows, n_experts); shares below `LEAST_SHARE` are zero."""
        if self.n_experts == 1:
            return np.ones((len(Z), 1))
        shares = np.zeros((len(Z), self.n_experts))
        with one_thread_per_worker():
            shares[:, self.classifier.classes_] = self.classifier.predict_proba(Z)
        # With many experts, the largest share may be small too.
        least = np.minimum(LEAST_SHARE, shares.max(axis=1, keepdims=True))
        shares = np.where(shares < least, 0.0, shares)
        return shares / shares.sum(axis=1, keepdims=True)


def held_out_shares(Z, shares, weights, sharpness):
    """Shares by a gate of the other half of the rows, for outputs decided experts."""
    result = np.zeros(shares.shape)
    for half in (slice(0, None, 2), slice(1, None, 2)):
        others = shares.copy()
        others[half] = 0.0
        if np.count_nonzero(others.any(axis=0)) < 2:  # too few rows for halves
            others = shares
        result[half] = Gate(Z, others, weights, sharpness).shares(Z[half])
    return result


class Round(NamedTuple):
    """Experts and gate after a round."""

    states: list
    gate: Gate
    shares: np.ndarray  # of rows in experts, shape (n_samples, n_experts)
    scores: np.ndarray  # log of gate times left-out density, same shape
    total: float  # the left-out density of all rows, which rounds are to increase


@dataclass(eq=False, repr=False, kw_only=True)
class MixtureGP(PartsGP):
    """GP experts with separate hyperparameters, and a gate between them.

    A baseline for comparisons. Choose it over `TreeGP` where the function changes its
    character across borders that are not parallel to the axes, and over `CommitteeGP`
    where one kernel does not suit all rows; a cover is more accurate where the function
    is smooth, because experts do not share rows.

    Training costs :math:`O(N M^2)` in every round, a query :math:`O(M^2)` for each
    expert whose probability is at least 1 %. Memory is O(N M + N K) for K experts.

    Parameters
    ----------
    machine : GP or None, default=None
        Its hyperparameters are where those of every expert start; what is a number is
        that of all experts. None is ``GP()``.
    expert_size : int, default=400
        Rows of one expert at the start; rounds may double it.
    assignment : {"hard", "soft"}, default="hard"
        Whether a row trains one expert, or several, with weights. "soft" is slower.
    n_rounds : int, default=5
        The most rounds of expectation-maximisation; 0 keeps the partition.
    partition, n_jobs, random_state
        As in `overcover.OverlappingCoverRegressor`.

    Attributes
    ----------
    machine_ : GP
        With the hyperparameters where experts start, and the calibration.
    states_ : list of GPState
        The experts; ``theta`` holds the log hyperparameters of each.
    shares_ : ndarray of shape (n_used, n_experts)
        Which experts a training row belongs to. Equal rows are one row.
    length_scales_ : ndarray of shape (n_features_in_,)
        The units of the gate.
    n_rounds_ : int
        Rounds that increased the left-out density.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP
    >>> from overcover.baselines import MixtureGP
    >>> X = np.linspace(-1, 1, 80)[:, None]
    >>> y = np.sin(3 * X[:, 0]) + 5 * (X[:, 0] > 0.2)
    >>> model = MixtureGP(GP("rbf", 0.5, 1e-4), expert_size=40, random_state=0)
    >>> model.fit(X, y).predict([[0.15], [0.25]]).round(1).tolist()
    [0.4, 5.7]
    """

    counts = {"expert_size": 1, "n_rounds": 0}
    choices = {"assignment": ("hard", "soft")}
    expert_size: int = 400
    assignment: str = "hard"
    n_rounds: int = 5
    partition: Any = "kmeans"

    def _fit(self, X, Y, weights):
        rng, all_weights = self._tune(X, Y, weights, self.expert_size)
        is_equal = weights is None and self.assignment == "hard"
        self.length_scales_ = self.machine_.length_scales(X)
        Z = without_far_cells(X / self.length_scales_)[:]
        n_experts = max(1, -(-len(X) // self.expert_size))
        parts = partition_rows(Z, n_experts, self.partition, self.n_jobs, rng)
        shares = np.eye(len(parts.centers))[parts.labels]
        data = X, Y, all_weights, is_equal, Z
        best, self.n_rounds_ = self._round(*data, shares), 0
        while self.n_rounds_ < self.n_rounds:
            moved = self._round(*data, self._assigned(best))
            if not moved.total > best.total:
                break
            best, self.n_rounds_ = moved, self.n_rounds_ + 1
        self.states_, self._gate, self.shares_ = best.states, best.gate, best.shares
        self.machine_.calibrate(self.states_)

    def _round(self, X, Y, weights, is_equal, Z, shares) -> Round:
        """Fit experts and gate to an assignment, and leave out every row."""
        rows_of = [np.flatnonzero(column) for column in shares.T]

        def part(k):
            rows = rows_of[k]
            own = None if is_equal else weights[rows] * shares[rows, k]
            return rows, own, own_theta(self.machine_, X[rows], Y[rows], own)

        experts = range(shares.shape[1])
        parts = list(run_tasks(part, zip(experts), self.n_jobs))
        self._fit_parts(X, Y, parts)
        gates = [Gate(Z, shares, weights, sharpness) for sharpness in SHARPNESSES]
        if len(experts) == 1:
            return Round(self.states_, gates[0], shares, np.zeros(shares.shape), 0.0)
        options = Z, shares, weights
        held_out = [held_out_shares(*options, sharpness) for sharpness in SHARPNESSES]
        is_asked = held_out[0] > 0
        least = LEAST_VARIANCE * Y.var(axis=0) + 1e-300

        def log_densities(k):
            others = np.flatnonzero(is_asked[:, k] & (shares[:, k] == 0))
            column, state = np.full(len(X), -np.inf), self.states_[k]
            column[rows_of[k]] = left_out_log_density(state, least)
            if len(others):
                answer = self.machine_.answer(state, X[others], variance=True)
                errors_sq = (Y[others] - answer.mean) ** 2
                column[others] = log_density(errors_sq, answer.variance, least)
            return column

        densities = np.array(list(run_tasks(log_densities, zip(experts), self.n_jobs)))
        rounds = []
        for gate, gate_shares in zip(gates, held_out):
            with np.errstate(divide="ignore"):
                scores = np.log(gate_shares) + densities.T
            total = float(evidence_of(weights) @ finite(logsumexp(scores, axis=1)))
            rounds.append(Round(self.states_, gate, shares, scores, total))
        return max(rounds, key=lambda one: one.total)

    def _assigned(self, last: Round):
        """Shares of the rows in experts, by what the last round says of them."""
        most, shares = MOST_GROWTH * self.expert_size, last.shares
        # A row that no expert explains stays.
        is_known = np.isfinite(last.scores.max(axis=1))
        if self.assignment == "hard":
            shares = moved_shares(last.scores, shares, is_known, most)
        else:
            scores = last.scores[is_known]
            shares = shares.copy()
            shares[is_known] = np.exp(scores - logsumexp(scores, axis=1)[:, None])
            shares = largest_shares(shares, most)
        return shares[:, shares.any(axis=0)]

    def _shares(self, X):
        return self._gate.shares(X / self.length_scales_)


def log_density(errors_sq, variances, least):
    """Log Gaussian density of rows, summed over outputs, up to a constant."""
    variances = np.maximum(variances, least)
    return -0.5 * np.sum(np.log(variances) + errors_sq / variances, axis=1)


def left_out_log_density(state, least):
    """The same of an expert's own rows, each predicted by the others."""
    precision = packed_column_norms_sq(state.factor[0], np.eye(len(state.X)))
    left_out, noise = 1.0 / precision, np.exp(state.theta[0, -1])
    variances = np.maximum(left_out + noise * (1.0 - 1.0 / state.weights), noise)
    counts = evidence_of(state.weights)
    scale = np.average(state.residuals_sq, axis=0, weights=counts)
    errors_sq = state.residuals_sq * left_out[:, None]
    return log_density(errors_sq, np.outer(variances, scale), least)


def finite(values):
    """Log densities, the least of them where one is minus infinity."""
    is_finite = np.isfinite(values)
    least = values[is_finite].min() if is_finite.any() else 0.0
    return np.where(is_finite, values, least)


def moved_shares(scores, shares, is_known, most):
    """Every row to its best expert, as long as there are fewer than `most` rows."""
    before = shares.argmax(axis=1)
    labels = np.where(is_known, scores.argmax(axis=1), before)
    each = np.arange(len(labels))
    gains = scores[each, labels] - scores[each, before]
    for k, size in enumerate(np.bincount(before, minlength=shares.shape[1])):
        coming = np.flatnonzero((labels == k) & (before != k))
        coming = coming[np.argsort(-gains[coming], kind="stable")]
        late = coming[max(0, most - size) :]
        labels[late] = before[late]
    return np.eye(shares.shape[1])[labels]


def largest_shares(shares, most):
    """The `most` largest shares of every expert that are worth it; rows sum to one."""
    rank = np.argsort(np.argsort(-shares, axis=0, kind="stable"), axis=0)
    is_best = shares == shares.max(axis=1, keepdims=True)
    kept = np.where((shares >= LEAST_SHARE) & (rank < most) | is_best, shares, 0.0)
    return kept / kept.sum(axis=1, keepdims=True)
