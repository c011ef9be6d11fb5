"""The judge: rows kept aside are predicted from their neighbours."""

import numpy as np

from .._neighbors import nearest_rows
from .._weights import judged_first
from ._problem import LEAST_LOOKED_AT
from ._search import anchor_sets, metric_of, nearest_to_anchors
from .prediction_loss import prediction_score

N_HELD_OUT, N_NEIGHBORS = 1000, 256
# Held-out rows times rows to search among: what a judge's neighbours may cost.
MOST_DISTANCES = 4e8


class Judge:
    """Scores hyperparameters by the prediction loss of rows kept aside.

    Every held-out row is predicted from its own nearest rows, so candidates with
    different metrics are compared on equal rows. Scores are remembered.

    Parameters
    ----------
    problem : Problem
    rows : ndarray of int
        All rows in random order; the first few are held out.

    Attributes
    ----------
    held_out, rest : ndarray of int
    """

    def __init__(self, problem, rows):
        rows, n_judged = judged_first(rows, problem.weights)
        most = min(problem.affordable(N_HELD_OUT), len(rows) // 4)
        n_held_out = int(np.clip(MOST_DISTANCES / len(rows), LEAST_LOOKED_AT, most))
        n_held_out = max(1, min(n_held_out, n_judged // 2))
        self.problem = problem
        self.held_out = np.sort(rows[:n_held_out])
        self.rest = np.sort(rows[n_held_out:])
        self._scores: dict[bytes, float] = {}
        self._neighbors: dict[bytes, np.ndarray] = {}

    def score(self, theta):
        """The prediction loss of the held-out rows; low is good."""
        key = theta.tobytes()
        if key not in self._scores:
            sets = anchor_sets(self.problem, self._nearest(theta))
            self._scores[key] = prediction_score(
                theta, self.problem.kernel, sets, self.problem.n_jobs
            )
        return self._scores[key]

    def _nearest(self, theta):
        # A common factor on all length scales does not change who is near.
        key = np.round(theta[:-1] - theta[:1], 9).tobytes()
        if key not in self._neighbors:
            rows = np.concatenate([self.held_out, self.rest])
            anchors = np.arange(len(self.held_out))
            near = nearest_to_anchors(self.problem, theta, rows, anchors, N_NEIGHBORS)
            self._neighbors = {key: near}
        return self._neighbors[key]

    def neighborhoods(self, theta, n_sets, size, random_state):
        """Random neighbourhoods in the metric of `theta`; a list of arrays of rows."""
        X, rest = self.problem.X, self.rest
        anchors = random_state.choice(len(rest), n_sets, replace=False)
        size, metric = min(size, len(rest)), metric_of(self.problem, theta)
        wanted = size, self.problem.n_jobs, rest, metric
        return list(rest[nearest_rows(X, X[rest[anchors]], *wanted)])
