"""Where candidates come from: the prediction loss, and the marginal likelihood."""

from copy import copy

import numpy as np

from .. import kernels
from .._parallel import run_tasks
from .._weights import are_judged, evidence_of
from ._problem import (
    LEAST_NOISE,
    MOST_SCALES,
    Candidate,
    Problem,
    descend,
    descend_tied,
)
from ._sets import choose_spots, local_sets
from .likelihood import negative_log_likelihood
from .prediction_loss import measure, predict_held_out, prediction_loss, tied_loss

# Spots that are looked at while searching, fewer for only two hyperparameters; rows
# that are held out and all rows at each.
N_SPOTS, N_FEW_SPOTS, N_HELD, SET_SIZE = 64, 24, 12, 128
# Rows of a small table whose likelihood is climbed first.
FEW_LOOKED_AT = 400
# With more rows than this, the prior of hyperparameters fades.
A_HANDFUL = 40
# A noise less than so many times the least: there seems to be none.
NEAR_LEAST = 4.0
# Errors count up to so many times their median; to fewer where some are known as gross.
MOST_MEDIANS, FEW_MEDIANS = 12.0, 4.0


class Search:
    """Descents from one candidate to a better one.

    A subclass has `descend`, of a common factor on all length scales and the noise, and
    `descend_columns`, of length scales of every column and the noise.
    """

    outputs: np.ndarray | None = None
    """The outputs that count; None for all."""

    n_rounds = 1
    """Descents along columns that may pay, one after the other."""

    def __init__(self, problem: Problem):
        self.problem = problem

    def of_outputs(self, outputs):
        """The same search, for some of the outputs."""
        search = copy(self)
        search.outputs = outputs
        return search

    def of_problem(self, problem):
        """The same search, where other hyperparameters are allowed."""
        search = copy(self)
        search.problem = problem
        return search


class PredictionSearch(Search):
    """Descents of the prediction loss at some spots, chosen in the metric of theta.

    Sets are made anew in each descent, in the metric that it starts from. A common
    factor and the noise need fewer spots than a length scale for every column.
    """

    is_local = True
    """Whether it looks at neighbourhoods, not at all rows."""

    n_rounds = 3

    def __init__(self, problem: Problem, theta, random_state):
        super().__init__(problem)
        self.seed = random_state.randint(2**31)
        self._kept: tuple = (None, [])
        # Errors are cut alike in all descents, at what the first metric makes of them.
        scale, noise = problem.metric(theta), float(np.exp(theta[-1]))
        measured = [measure(local, scale) for local in self._sets(theta, N_SPOTS)]
        start = predict_held_out(problem.kernel, 1.0, noise, measured, problem.n_jobs)
        self.limits = limits_of(start.errors, problem.screen is not None)

    def descend(self, candidate, max_iter=10):
        """A better common factor on all length scales, and noise; a `Candidate`."""
        kernel, theta = candidate[:2]
        if not self.problem.free[:-1].any():
            return self._along_columns(candidate, max_iter)
        sets = self._sets(theta, N_FEW_SPOTS)
        scale = self.problem.metric(theta)
        measured = [measure(local, scale) for local in sets]
        options = kernel, measured, self._limits(), self.problem.n_jobs

        def loss(moved):
            return _safely(tied_loss, moved[0], moved[1], *options)

        theta = descend_tied(self.problem, theta, loss, max_iter)
        return candidate._replace(theta=theta)

    def descend_columns(self, candidate):
        """Better length scales of every column, and noise; a `Candidate`."""
        return self._along_columns(candidate, 12)

    def _along_columns(self, candidate, max_iter):
        kernel, theta = candidate[:2]
        is_wide = problem_is_wide(self.problem)
        sets = self._sets(theta, N_FEW_SPOTS if is_wide else N_SPOTS)
        options = kernel, sets, self._limits(), self.problem.n_jobs

        def loss(moved):
            return _safely(prediction_loss, moved, *options)

        directions = directions_along(self.problem, theta, loss)
        theta = descend(self.problem, theta, loss, directions, max_iter)
        return candidate._replace(theta=theta)

    def _limits(self):
        return self.limits if self.outputs is None else self.limits[self.outputs]

    def _sets(self, theta, n_spots):
        # A common factor on all length scales does not change which rows are near.
        key = n_spots, np.round(theta[:-1] - theta[:1], 6).tobytes()
        if self._kept[0] != key:
            # The same spots however often this metric comes back.
            random_state = np.random.RandomState(self.seed)
            spots = choose_spots(self.problem, theta, n_spots, N_HELD, random_state)
            self._kept = key, local_sets(self.problem, theta, spots, SET_SIZE)
        sets = self._kept[1]
        if self.outputs is None:
            return sets
        return [one.of_outputs(self.outputs) for one in sets]


class LikelihoodSearch(Search):
    """Climbs of the marginal likelihood of a small table; as `PredictionSearch`."""

    is_local = False

    def __init__(self, problem: Problem, theta, random_state):
        super().__init__(problem)
        self.rows = np.arange(len(problem.X))
        some = random_state.permutation(len(problem.X))[:FEW_LOOKED_AT]
        self.some = np.sort(some)

    def descend(self, candidate, max_iter=10):
        """A better common factor on all length scales, and noise; a `Candidate`."""
        return self._climb(candidate, self.some, max_iter, True)

    def descend_columns(self, candidate):
        """Length scales of every column, from all rows in the end; a `Candidate`."""
        candidate = self._climb(candidate, self.some, 30)
        return self._climb(candidate, self.rows, 25)

    def descend_halves(self, candidate):
        """Length scales of every column, by the one half of the units alone.

        Returns pairs: the rows of the other half, which had no part in it, and a
        candidate.
        """
        # Units by turns, in an order that does not depend on that of the rows, nor on
        # rows of hardly any weight.
        weights = self.problem.weights_of(self.rows)
        numbers = np.unique(self.problem.units, return_inverse=True)[1].ravel()
        places = self.problem.X[:] @ np.random.RandomState(0).normal(
            size=self.problem.X.shape[1]
        )
        counts = np.bincount(numbers, are_judged(weights))
        sums = np.bincount(numbers, are_judged(weights) * places)
        means = np.divide(
            sums, counts, out=np.full(len(sums), np.inf), where=counts > 0
        )
        is_first = (np.argsort(np.argsort(means, kind="stable")) % 2 == 0)[numbers]
        halves = np.flatnonzero(is_first), np.flatnonzero(~is_first)
        if min(map(len, halves)) < 2:
            return []
        return [
            (other, self._climb(candidate, half, 20))
            for half, other in zip(halves, halves[::-1])
        ]

    def _climb(self, candidate, rows, max_iter, tied=False):
        kernel, theta = candidate[:2]
        problem = self.problem._replace(kernel=kernel)
        if self.outputs is not None:
            problem = problem._replace(Y=problem.Y[:, self.outputs])
        theta = by_likelihood(problem, theta, [rows], max_iter, tied)
        return candidate._replace(theta=theta)


def with_least_noise(tools, best):
    """A candidate with less noise than others may have, if it has plainly lower errors.

    Others compete with more noise: without any, a few rows decide between them.
    """
    problem, search, judge, *_ = tools
    low, _ = problem.bounds()
    if not problem.free[-1] or best.theta[-1] > low[-1] + np.log(NEAR_LEAST):
        return best
    search = search.of_problem(problem._replace(least_noise=LEAST_NOISE))
    has_columns = problem.n_scales() > 1 and search.n_rounds > 0
    theta = np.append(best.theta[:-1], np.log(0.1) + low[-1])
    start = best._replace(theta=theta)
    moved = (search.descend_columns if has_columns else search.descend)(start)
    return moved if judge.is_plainly_better(best, moved) else best


def limits_of(errors, are_gross=False):
    """What errors are cut at, so that a few corrupted outputs do not decide.

    errors of shape (n, n_outputs), `are_gross` if some are known to be; shape
    (n_outputs,).
    """
    typical = np.median(np.abs(errors), axis=0)
    # Most errors may be nil, as of a count that is mostly zero.
    typical = np.maximum(typical, 0.1 * np.sqrt(np.mean(errors**2, axis=0)))
    return (FEW_MEDIANS if are_gross else MOST_MEDIANS) * typical


def by_prediction(problem: Problem, theta, random_state):
    """Minimise the prediction loss, isotropic first, then column by column; theta."""
    search = PredictionSearch(problem, theta, random_state)
    best = search.descend(Candidate(problem.kernel, theta))
    if 1 < problem.free[:-1].sum() <= MOST_SCALES:
        for _ in range(search.n_rounds):
            best = search.descend_columns(best)
    return best.theta


def by_likelihood(problem: Problem, theta, sets, max_iter, tied=False):
    """Climb the summed marginal likelihood of several sets of rows; returns theta.

    `tied` moves all length scales by one factor.
    """
    data = [_centred(problem, rows) for rows in sets]
    shares = np.array([len(X) for X, _, _ in data], float)
    shares /= shares.sum()

    def likelihood(moved, *parts):
        return _safely(negative_log_likelihood, moved, problem.kernel, *parts)

    # A prior for a handful of rows, which many hyperparameters explain.
    counts = [len(X) if w is None else evidence_of(w).sum() for X, _, w in data]
    n_numbers = sum(n * Y.shape[1] for n, (_, Y, _) in zip(counts, data))
    prior = min(1.0, A_HANDFUL / sum(counts)) / n_numbers

    def objective(moved):
        tasks = ((moved, *parts) for parts in data)
        results = list(run_tasks(likelihood, tasks, problem.n_jobs))
        value = sum(share * f for share, (f, _) in zip(shares, results))
        gradient = sum(share * g for share, (_, g) in zip(shares, results))
        penalty, slope = problem.log_prior(moved)
        return value + prior * penalty, gradient + prior * slope

    if tied or kernels.is_object(problem.kernel):
        own = np.zeros(len(theta) - 1, dtype=bool) if tied else None
        directions = problem.directions(own)
    else:
        directions = directions_along(problem, theta, objective)
    return descend(problem, theta, objective, directions, max_iter)


def problem_is_wide(problem):
    """Whether there are more columns than length scales that rows can determine."""
    return problem.n_scales() < problem.free[:-1].sum()


def directions_along(problem, theta, objective):
    """Directions along columns: each, or those that promise most, and all others.

    Which columns promise most, the gradient says: shorter length scales there would
    help. All other columns move by a common factor.
    """
    if not problem_is_wide(problem):
        return problem.directions()
    own = np.zeros(len(theta) - 1, dtype=bool)
    if problem.n_scales() > 0:
        _, gradient = objective(np.clip(theta, *problem.bounds()))
        slopes = np.where(problem.free, gradient, -np.inf)[:-1]
        # Columns that have a shorter scale than most keep it.
        is_short = theta[:-1] < np.median(theta[:-1]) - np.log(1.1)
        slopes = np.where(is_short & problem.free[:-1], np.inf, slopes)
        own[np.argsort(-slopes, kind="stable")[: problem.n_scales()]] = True
    return problem.directions(own)


def _safely(objective, theta, *args):
    """The objective, or a wall where the kernel matrix cannot be factorised."""
    try:
        return objective(theta, *args)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros(np.size(theta) if np.ndim(theta) else 2)


def _centred(problem, rows):
    """Rows for the likelihood: X, centred Y without flat columns, weights."""
    X, Y = problem.X[rows], problem.Y[rows]
    weights = None if problem.weights is None else problem.weights[rows]
    Y = Y - np.average(Y, axis=0, weights=weights)
    Y = Y[:, np.einsum("ij,ij->j", Y, Y) > 1e-12 * len(Y)]
    if Y.shape[1] == 0:
        # Flat here although not everywhere: nothing to learn from, nothing to break.
        Y = np.linspace(-1.0, 1.0, len(X))[:, None]
    return X, Y, weights
