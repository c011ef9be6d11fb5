"""Neighbourhoods on which Twin GPs are tried: what they see, what they must predict.

A set stands for a subdomain: rows near to each other to learn from, and rows held out
that lie among them. Rows are held out in runs of the order they came in, because frames
of a film or points of a track resemble their neighbours in time: with one of them known
the next is no test. Shuffled rows lose nothing by it. Where rows are few, each is left
out in turn instead.
"""

from copy import copy
from threading import Lock
from typing import Any

import numpy as np

from .. import kernels
from .._linalg import squared_distances
from .._neighbors import nearest_rows
from .._streams import Rows, slices_of
from ._sets import units_of

# Up to this many rows each is left out in turn.
FEW_ROWS = 300
N_SETS, SET_SIZE, N_HELD_OUT = 10, 600, 48
HELD_OUT_SHARE = 0.2
# Factorised sides kept per set, so that a grid makes each once: 20 MB.
MOST_KEPT = 8
# Rows on which alignments and median distances are measured.
N_MEASURED = 300


def make_sets(
    X, Y, weights, units, size, rng, n_jobs, groups=None, n_sets=None, run_length=None
):
    """What hyperparameters are tried on: a list of sets for every input metric.

    The rows held out are the same for all metrics; the rows to learn from are those
    nearest in ``X / unit``, as they will be in a cover. Rows of a group are held out
    together, without groups runs of rows. X may be mapped; it is not copied.
    """
    if len(X) <= FEW_ROWS:
        alone = [LeaveOneOut(*merge_duplicates(X, Y, weights))]
        return dict.fromkeys(units, alone)
    together = units_of(len(X)) if groups is None else groups
    if groups is None and run_length is not None:
        together = np.arange(len(X)) // run_length
    n_sets = N_SETS if n_sets is None else n_sets
    chosen = rng.permutation(together.max() + 1)
    chosen = chosen[: max(1, int(HELD_OUT_SHARE * len(chosen)))]
    is_held = np.isin(together, chosen)
    rest, held = np.flatnonzero(~is_held), np.flatnonzero(is_held)
    size = min(size, SET_SIZE, len(rest))
    n_queries = N_HELD_OUT
    if size == len(rest):  # every set would be the same
        n_sets, n_queries = 1, N_HELD_OUT * n_sets
    A, X = Rows(X, next(iter(units.values()))), Rows(X)
    queries = [random_cell(A, held, n_queries, rng) for _ in range(n_sets)]
    centers = np.array([X[rows].mean(axis=0) for rows in queries])
    sets = {}
    for name, unit in units.items():
        near = rest[nearest_rows(X, centers, size, n_jobs, rest, unit)]
        sets[name] = [
            LocalSet(
                *(X[i], Y[i], weights[i], X[j], Y[j], weights[j]),
                groups=None if groups is None else groups[i],
            )
            for i, j in zip(near, queries)
        ]
    return sets


def random_cell(A, rows, size, random_state):
    """Some of the rows that lie together: halved along random lines, a half at random.

    Every row is as likely to be in it as any other, also at the edge of the data, where
    the nearest rows of anything seldom are.
    """
    while len(rows) > size:
        i, j = random_state.choice(rows, 2, replace=False)
        line = A[i] - A[j]
        blocks = slices_of(len(rows), A.shape[1])
        along = np.concatenate([A[rows[block]] @ line for block in blocks])
        order = np.argsort(along, kind="stable")
        half = len(rows) // 2
        rows = rows[order[half:] if random_state.uniform() < 0.5 else order[:half]]
    return np.sort(rows)


def merge_duplicates(X, Y, weights):
    """Each distinct row once, with the sum of its weights, in an order of its own.

    Then w equal rows and one of weight w are the same thing from the start.
    """
    rows, which = np.unique(np.hstack([X, Y]), axis=0, return_inverse=True)
    X, Y = np.split(rows, [X.shape[1]], axis=1)
    return X, Y, np.bincount(which.ravel(), weights)


def median_distance(rows, unit):
    """Median distance between some rows in given units; 1 if most coincide."""
    A = rows[:: 1 + (len(rows) - 1) // N_MEASURED] / unit
    dist_sq = squared_distances(A - A.mean(axis=0), A - A.mean(axis=0))
    apart = dist_sq[np.triu_indices(len(A), 1)]
    median = np.sqrt(np.median(apart)) if len(apart) else 0.0
    if median > 0:
        return float(median)
    return float(np.sqrt(apart.mean())) if apart.any() else 1.0


class _Rows:
    """Rows to learn from, and how alike their two kernel matrices are."""

    def __init__(self, X, Y, weights):
        self.X, self.Y, self.weights = X, Y, weights
        self._made: dict[tuple, Any] = {}
        self._lock = Lock()

    def alignment(self, scales):
        """Centred alignment of the kernel matrices, between -1 and 1."""
        step = 1 + (len(self.X) - 1) // N_MEASURED

        def gram(name, values, scale):
            key = name, scale.tobytes()
            return self.kept(key, lambda: centered_gram(values[::step] / scale))

        K_xx = gram("K_xx", self.X, scales.inputs)
        return float(np.sum(K_xx * gram("K_yy", self.Y, scales.outputs)))

    def kept(self, key, make):
        """What was made before under the same key, or what `make()` gives."""
        result = self._made.get(key)
        if result is None:
            result = make()
            with self._lock:  # threads share a set
                while len(self._made) >= MOST_KEPT:
                    del self._made[next(iter(self._made))]
                self._made[key] = result
        return result


class LeaveOneOut(_Rows):
    """A few rows, each of them left out in turn."""

    def error(self, machine, metric):
        """Error of a machine with hyperparameters, by a metric."""
        search = machine.make_search()
        rows = search.rows(self.X, self.Y, self.weights)
        _, points, _ = search.leave_out(rows, np.arange(len(self.X)))
        return metric(self.Y, rows.back(points), self.weights)

    def excess(self, machine, coverage):
        """Nothing: rows left out are what intervals are made from."""
        return np.empty(0)


class LocalSet(_Rows):
    """A neighbourhood, and rows held out that lie in it."""

    def __init__(self, X, Y, weights, X_held, Y_held, weights_held, groups=None):
        super().__init__(X, Y, weights)
        self.groups = groups
        self.X_held, self.Y_held, self.weights_held = X_held, Y_held, weights_held
        self._distances: dict[tuple, np.ndarray] = {}

    def distances(self, side, unit):
        """Squared distances between "inputs", "outputs", or inputs and "queries"."""
        key = side, np.round(unit, 9).tobytes()
        if key not in self._distances:
            rows = (self.Y if side == "outputs" else self.X) / unit
            others = self.X_held / unit if side == "queries" else rows
            center = rows.mean(axis=0)
            dist_sq = squared_distances(rows - center, others - center)
            self._distances[key] = dist_sq.astype(np.float32)
        return self._distances[key]

    def error(self, machine, metric):
        search = machine.make_search()
        rows = search.measured_rows(self.Y, self.weights, self.distances)
        answer = search.answer_fresh(rows, self.X_held, self.kept)
        return metric(self.Y_held, answer.mean, self.weights_held)

    def excess(self, machine, coverage):
        """Errors of held-out rows over half their intervals, of outputs that vary."""
        machine = copy(machine)
        state = machine.fit_state(self.X, self.Y, self.weights, groups=self.groups)
        machine.calibrate([state], [self.groups])
        answer = machine.answer(state, self.X_held, variance=True)
        half = machine.errors_.half_width(coverage) * np.sqrt(answer.variance)
        varies = (half > 0).all(axis=0)
        return np.abs(self.Y_held - answer.mean)[:, varies] / half[:, varies]


def centered_gram(A):
    """Gaussian kernel matrix of rows in kernel units, centred, of norm one."""
    A = A - A.mean(axis=0)
    K = kernels.cross("rbf", A, A)
    K -= K.mean(axis=0)
    K -= K.mean(axis=1)[:, None]
    norm = np.linalg.norm(K)
    return K / norm if norm > 0 else K
