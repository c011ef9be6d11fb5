"""The judge: rows kept aside are predicted by local machines, or left out in turn."""

import numpy as np

from .. import kernels
from .._left_out import leave_groups_out, solve_all
from .._linalg import add_to_diagonal
from .._neighbors import nearest_rows
from .._weights import are_judged
from ._search import limits_of
from ._sets import choose_spots, local_sets
from .prediction_loss import LEAST_NOISE, HeldOut, Sums, measure, predict_held_out

# Spots that are judged, and rows to learn from at each.
N_SPOTS, SET_SIZE = 120, 256
# Parts of a small table, for the standard error of a difference.
N_PARTS = 20
# Up to this many rows each is left out in turn.
FEW_ROWS = 1000


def make_judge(problem, theta, random_state):
    """A judge of hyperparameters for this many rows."""
    kind = LeaveOut if len(problem.X) <= FEW_ROWS else Spots
    return kind(problem, theta, random_state)


class Judge:
    """Scores hyperparameters by the prediction loss of rows they are not fitted to.

    Errors are cut at limits that the first hyperparameters set, so that all are judged
    alike. What was judged is remembered.
    """

    def __init__(self, problem, theta):
        self.problem = problem
        self._sums: dict[tuple, Sums] = {}
        self.limits = limits_of(self._predict(problem.kernel, theta).errors)

    def _predict(self, kernel, theta) -> HeldOut:
        raise NotImplementedError

    def sums(self, theta, kernel=None) -> Sums:
        """What the loss of some hyperparameters averages, per part of the rows."""
        kernel = self.problem.kernel if kernel is None else kernel
        key = (kernel, theta.tobytes())
        if key not in self._sums:
            try:
                self._sums[key] = self._predict(kernel, theta).sums(self.limits)
            except np.linalg.LinAlgError:
                self._sums[key] = Sums(
                    np.ones(1), *(np.full((1, 1), np.inf),) * 2, np.full(1, np.inf)
                )
        return self._sums[key]

    def score(self, theta, kernel=None):
        """The loss; low is good."""
        return self.sums(theta, kernel).loss()


class Spots(Judge):
    """Held-out rows at some spots, predicted from the rows nearby.

    The same rows are held out for all metrics; the rows to learn from are those nearest
    in the metric that is judged.
    """

    def __init__(self, problem, theta, random_state):
        self._measured: tuple = (None, 0.0, [])
        self.spots = choose_spots(problem, theta, N_SPOTS, random_state)
        self.problem = problem
        super().__init__(problem, theta)

    def _predict(self, kernel, theta):
        # A common factor on all length scales does not change who is near.
        key = np.round(theta[:-1] - theta[:1], 6).tobytes()
        if self._measured[0] != key:
            scale = self.problem.metric(theta)
            sets = local_sets(self.problem, theta, self.spots, SET_SIZE)
            self._measured = key, theta[0], [measure(one, scale) for one in sets]
        _, start, measured = self._measured
        factor, noise = np.exp(theta[0] - start), np.exp(theta[-1])
        n_jobs = self.problem.n_jobs
        return predict_held_out(kernel, factor, float(noise), measured, n_jobs)

    def neighborhoods(self, theta, n_sets, size, random_state):
        """Random neighbourhoods in the metric of `theta`; a list of arrays of rows."""
        X = self.problem.X
        anchors = random_state.choice(len(X), n_sets, replace=False)
        scale, n_jobs = self.problem.metric(theta), self.problem.n_jobs
        return list(nearest_rows(X, X[anchors], min(size, len(X)), n_jobs, None, scale))


class LeaveOut(Judge):
    """Every row of a small table, predicted without the rows of its unit."""

    def __init__(self, problem, theta, random_state):
        self.X, self.weights = (
            problem.X[:],
            problem.weights_of(np.arange(len(problem.X))),
        )
        super().__init__(problem, theta)

    def _predict(self, kernel, theta):
        problem, weights = self.problem, self.weights
        noise = max(np.exp(theta[-1]), LEAST_NOISE)
        _, A = kernels.in_units(kernel, theta, self.X)
        Y = problem.Y - np.average(problem.Y, axis=0, weights=weights)
        K_xx = add_to_diagonal(kernels.gram_lower(kernel, A), noise / weights)
        errors, variances = leave_groups_out(
            *solve_all(K_xx, Y), Y, weights, problem.units
        )
        judged = np.flatnonzero(are_judged(weights))
        parts = np.arange(len(judged)) * N_PARTS // len(judged)
        return HeldOut(errors[judged], variances[judged], parts)

    def neighborhoods(self, theta, n_sets, size, random_state):
        """All rows, once."""
        return [np.arange(len(self.X))]
