"""The judge: local machines predict held-out rows, or all rows are left out in turn.

If a difference is clear on a third of these rows, the others are not used.
"""

from copy import copy

import numpy as np

from .. import kernels
from .._left_out import leave_groups_out, solve_all
from .._linalg import add_to_diagonal
from .._weights import are_judged
from ._search import limits_of
from ._sets import choose_spots, local_sets
from .prediction_loss import (
    LEAST_NOISE,
    HeldOut,
    Sums,
    measure,
    predict_held_out,
    standard_error,
)

# Spots that are judged, how many of them at first, rows held out and all rows at each.
N_SPOTS, N_FIRST, N_HELD, SET_SIZE = 96, 32, 12, 200
# Parts of a small table, for the standard error of a difference.
N_PARTS = 20
# Up to this many rows each is left out in turn.
FEW_ROWS = 1000
# A difference of so many standard errors is plain.
PLAIN = 4.0


class Judge:
    """Scores candidates by the prediction loss of rows they are not fitted to.

    Errors are cut at limits that the first candidate sets, so that a few corrupted
    outputs do not decide. Of two candidates, a row that either of them predicts within
    the limits is not corrupted: there the error of the other counts in full.
    """

    n_parts = 1
    """The rows are looked at in so many parts, one after the other."""

    outputs: slice | np.ndarray = slice(None)
    """The outputs over which the loss is averaged."""

    def __init__(self, problem, start):
        self.problem = problem
        self._held_out: dict[tuple, HeldOut | None] = {}
        self._measured: dict[int, tuple] = {}
        self.limits = limits_of(self.predict(start, 0).errors)

    rows: list[np.ndarray]
    """Numbers of the rows that are held out, in order; parts may have several."""

    def predict(self, candidate, part) -> HeldOut:
        """Errors and variances of one part of the rows."""
        raise NotImplementedError

    def of_outputs(self, outputs):
        """The same judge, for some of the outputs."""
        judge = copy(self)
        judge.outputs = outputs
        return judge

    def of_problem(self, problem, start):
        """A judge of the same rows, where rows to learn from weigh otherwise."""
        judge = copy(self)
        judge.problem, judge._held_out, judge._measured = problem, {}, {}
        judge.limits = limits_of(judge.predict(start, 0).errors, are_gross=True)
        return judge

    def held_out(self, candidate, part=0) -> HeldOut | None:
        """`predict`, kept; None if the kernel matrix cannot be factorised."""
        key = (candidate.kernel, candidate.theta.tobytes(), part)
        if key not in self._held_out:
            try:
                self._held_out[key] = self.predict(candidate, part)
            except np.linalg.LinAlgError:
                self._held_out[key] = None
        return self._held_out[key]

    def sums(self, candidate, part=0) -> Sums:
        """What the loss of a candidate averages, per set of one part of the rows."""
        return self._sums(self.held_out(candidate, part), self.limits)

    def all_sums(self, candidate) -> Sums:
        """`sums` of all parts together."""
        return _joined(self.sums(candidate, part) for part in range(self.n_parts))

    def _sums(self, held_out, limits):
        if held_out is None:
            return Sums.impossible(len(self.limits))
        return held_out.sums(limits)

    def score(self, candidate):
        """The loss on the first part of the rows; low is good."""
        return float(self.sums(candidate).losses()[self.outputs].mean())

    def gain(self, old, new):
        """How much lower the loss of a new candidate is, on as many rows as needed."""
        gain, error = self._compare(old, new, [0])
        if not np.isfinite(gain) or abs(gain) > PLAIN * error:
            return gain
        return self._compare(old, new, range(self.n_parts))[0]

    def is_as_good(self, old, new, most):
        """Whether a loss is higher by less than half its error, and than `most`."""
        gain, error = self._compare(old, new, range(self.n_parts))
        return -gain < min(0.5 * error, most)

    def is_plainly_better(self, old, new):
        """Whether a loss is lower by more than its standard error."""
        gain, error = self._compare(old, new, range(self.n_parts))
        return gain > error

    def best(self, candidates):
        """The best of some candidates; of equals the first."""
        best = candidates[0]
        for other in candidates[1:]:
            if self.gain(best, other) > 0:
                best = other
        return best

    def _compare(self, old, new, parts):
        """The gain of a candidate on some parts of the rows, and its standard error."""
        pairs = [[self.held_out(one, part) for one in (old, new)] for part in parts]
        return self._compare_held_out(pairs)

    def _compare_held_out(self, pairs):
        sums = []
        for pair in pairs:
            limits = self.limits
            if None not in pair:
                smaller = np.minimum(*(np.abs(one.errors) for one in pair))
                limits = np.where(smaller <= limits, np.inf, limits)
            sums.append([self._sums(one, limits) for one in pair])
        old, new = (_joined(side) for side in zip(*sums))
        losses = [one.losses()[self.outputs].mean() for one in (old, new)]
        if not np.isfinite(losses).all():
            return (np.inf if losses[1] < losses[0] else -np.inf), 0.0
        return losses[0] - losses[1], standard_error(old, new, self.outputs)


def _joined(parts) -> Sums:
    """Sums of several parts of the rows."""
    return Sums(*(np.concatenate(values) for values in zip(*parts)))


class Spots(Judge):
    """Held-out rows at some spots, predicted from the rows nearby.

    The same rows are held out for all metrics; the rows to learn from are those nearest
    in the metric that is judged.
    """

    n_parts = 2

    def __init__(self, problem, start, random_state):
        spots = choose_spots(problem, start.theta, N_SPOTS, N_HELD, random_state)
        n_first = min(N_FIRST, max(1, len(spots) // 2))
        self.parts, self.rows = (spots[:n_first], spots[n_first:]), spots
        super().__init__(problem, start)

    def predict(self, candidate, part):
        """Errors and variances at some of the spots."""
        kernel, theta = candidate[:2]
        # A common factor on all length scales does not change which rows are near.
        key = np.round(theta[:-1] - theta[:1], 6).tobytes()
        if part not in self._measured or self._measured[part][0] != key:
            scale = self.problem.metric(theta)
            sets = local_sets(self.problem, theta, self.parts[part], SET_SIZE)
            measured = [measure(one, scale) for one in sets]
            self._measured[part] = key, theta[0], measured
        _, start, measured = self._measured[part]
        factor, noise = np.exp(theta[0] - start), float(np.exp(theta[-1]))
        return predict_held_out(kernel, factor, noise, measured, self.problem.n_jobs)


class LeaveOut(Judge):
    """Every row of a small table, predicted without the rows of its unit."""

    def __init__(self, problem, start, random_state):
        self.X = problem.X[:]
        self.own_weights = problem.weights_of(np.arange(len(self.X)))
        self.rows = [np.flatnonzero(are_judged(self.own_weights))]
        super().__init__(problem, start)

    def predict(self, candidate, part=0):
        """Errors and variances of all rows that weigh enough to be judged by."""
        kernel, theta = candidate[:2]
        problem, weights = self.problem, self.problem.weights_of(np.arange(len(self.X)))
        noise = max(np.exp(theta[-1]), LEAST_NOISE)
        _, A = kernels.in_units(kernel, theta, self.X)
        Y = problem.Y - np.average(problem.Y, axis=0, weights=weights)
        K_xx = add_to_diagonal(kernels.gram_lower(kernel, A), noise / weights)
        errors, variances = leave_groups_out(
            *solve_all(K_xx, Y), Y, weights, problem.units
        )
        # As observations of their own weight, whatever they count in the fit.
        least = noise / self.own_weights
        variances = np.maximum(variances - noise / weights + least, least)
        judged = self.rows[0]
        parts = np.arange(len(judged)) * N_PARTS // len(judged)
        return HeldOut(errors[judged], variances[judged], parts)

    def check_halves(self, old, new, halves):
        """Whether length scales that one half of the rows find serve the other half.

        `new` is what all rows find, `halves` are from
        `LikelihoodSearch.descend_halves`. Returns the gain of the candidates of the
        halves over the old one, and their squared errors over variances, relative to
        those of `new`.
        """
        judged = self.rows[0]
        before, now = self.predict(old), self.predict(new)
        errors, variances = before.errors.copy(), before.variances.copy()
        for rows, candidate in halves:
            part, is_in = self.predict(candidate), np.isin(judged, rows)
            errors[is_in], variances[is_in] = part.errors[is_in], part.variances[is_in]
        after = HeldOut(errors, variances, before.sets)
        gain, _ = self._compare_held_out([(before, after)])
        sums = [one.sums(self.limits) for one in (after, now)]
        ratios = [one.ratios.sum(axis=0)[self.outputs].mean() for one in sums]
        return gain, float(ratios[0] / max(ratios[1], 1e-300))
