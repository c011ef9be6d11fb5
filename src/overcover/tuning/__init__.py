r"""Hyperparameters "auto": held-out rows choose between several candidates.

    X, Y -> [tuning] -> partition -> cover -> machines -> routing -> combination
    -> prediction

No single method is best for all data. The marginal likelihood of a few random rows
ignores short distances. That of neighbourhoods makes the noise zero if rows nearly
repeat. One length scale per column is too many for wide inputs. So there are candidates

- *isotropic*: one length scale in units of the column deviations;
- *one column*: a shorter one along one column, if the others explain little;
- *plain*: one length scale, columns as they are;
- *columns*: from the better of these, one length scale per column;
- the other kernels, each with the best length scales so far times a common factor;
- *random rows*: one length scale per column by the likelihood of some random rows, if
  columns are many;
- *likelihood*: the best so far, moved up the marginal likelihood of neighbourhoods;
- *no noise*: the winner with less noise, if it has hardly any;

which descend the prediction loss (`prediction_loss`) at some spots, or, for small
tables, climb the likelihood of all rows. Each is judged by the error and log density of
local machines on held-out rows (`_judge`), in whole groups or runs of rows. A last
search multiplies the noise and the length scales of the best one by common factors.
Then outputs get other hyperparameters if these predict them better (`_outputs`).

The cost does not grow with the number of rows, except for finding neighbours.
"""

from typing import NamedTuple

import numpy as np

from .. import kernels
from .._parallel import one_thread_per_worker
from ._bounds import AtBounds, at_bounds
from ._judge import FEW_ROWS, Judge, LeaveOut, Spots
from ._outliers import all_held_out, has_outliers, is_better_screened, screen
from ._outputs import share_outputs
from ._problem import NOISE_BOUNDS as NOISE_BOUNDS
from ._problem import Candidate, Problem, standardize
from ._search import (
    LikelihoodSearch,
    PredictionSearch,
    Search,
    by_likelihood,
    with_least_noise,
)
from ._serial import run_length_of, sorted_columns
from ._starts import explains_little, shorter_alone, shorter_starts

# Neighbourhoods whose likelihood is climbed, and their rows.
N_LOCAL_SETS, LOCAL_SIZE = 3, 400
# From so many columns on, the likelihood of random rows is climbed too; their number.
MANY_COLUMNS, N_RANDOM_ROWS = 12, 600
# The kernel that the others are compared with.
FIRST_KERNEL = "matern32"
# Column deviations that differ by less than this factor are as good as equal.
ALIKE = 1.5
# Fewer runs of rows do not tell candidates apart.
LEAST_UNITS = 40
# Fewer rows do not tell kernels apart.
ROWS_FOR_KERNELS = 30
# Deviations beyond which a length scale says that its column does not matter.
IRRELEVANT = 30.0
# What a candidate must gain to be worth a step, and a round along columns another one.
LEAST_GAIN, ROUND_GAIN = 1e-3, 0.02
# Losses this close are as good as equal: about half a percent of the error.
TIE = 0.02
# Logs of factors on length scales and noise that the winner is moved by; and those of a
# candidate whose noise the search may have set too low to see what repeated rows do.
STEPS = tuple(
    (sign * shrink * lengths, sign * shrink * noise)
    for shrink in (1.0, 0.5)
    for lengths, noise in ((np.log(2.0), 0.0), (0.0, np.log(4.0)))
    for sign in (1, -1)
)
NOISE_STEPS = ((0.0, np.log(32.0)), (0.0, -np.log(8.0)))


def is_auto(value):
    """Whether tuning decides a hyperparameter."""
    return isinstance(value, str) and value == "auto"


class Tuned(NamedTuple):
    """The hyperparameters, and what else was tried."""

    kernels: list
    """The kernel of every group of outputs: a name or a scikit-learn kernel."""

    theta: np.ndarray
    """Log hyperparameters of every group of outputs, the noise last, shape (n_groups,
    n_hyperparameters)."""

    output_groups: np.ndarray
    """The group of every output, shape (n_outputs,)."""

    scores: dict[str, float]
    """Loss on held-out rows of every candidate, lower is better; empty if there was
    one."""

    run_length: int
    """Rows that follow each other and depend on each other; 1 if they do not."""

    n_learned: int
    """How many hyperparameters the rows determined."""

    inflation: float | None
    """By what factor variances are too small on rows that had no part in this; None if
    that was not measured."""

    is_robust: bool
    """Whether rows that others contradict are better made light."""

    at_bounds: AtBounds
    """Which hyperparameters ended at a bound, where that means trouble."""

    in_order: np.ndarray
    """Columns of many that matter, and by which all rows are in order; numbers."""


class Tools(NamedTuple):
    """What candidates are found and compared by."""

    problem: Problem
    search: Search
    judge: Judge
    names: tuple
    """Kernels to choose between."""

    random_state: np.random.RandomState


def tune(
    kernel,
    X,
    Y,
    weights,
    theta,
    random_state,
    n_jobs=None,
    groups=None,
    share="auto",
    robust="auto",
):
    """Kernels, length scales and noise for outputs Y (n_samples, n_outputs); `Tuned`.

    kernel "auto" chooses between the kernels that have a name, if anything else is to
    be found. theta holds log hyperparameters, the noise last, NaN where they are to be
    found; those of a kernel object are the start. Rows of a group are held out
    together. share is "auto", or True if all outputs must share their hyperparameters;
    robust is "auto" or whether rows that others contradict are made light.
    """
    first = FIRST_KERNEL if is_auto(kernel) else kernel
    problem, start, restore = standardize(first, X, Y, weights, theta, n_jobs, groups)
    output_groups = np.zeros(Y.shape[1], dtype=np.intp)
    has_choice = is_auto(kernel) and len(X) >= ROWS_FOR_KERNELS and problem.free.any()
    names = kernels.NAMES if has_choice else (first,)

    def finish(winners, scores, run_length=1, is_robust=robust is True):
        thetas = np.array([restore(one.theta) for one in winners])
        chosen, best = [one.kernel for one in winners], winners[0]
        n_learned = count_learned(problem, best.theta) + (len(names) > 1)
        parts = chosen, thetas, output_groups, scores, run_length, n_learned
        columns = np.flatnonzero(restore.used[:-1])
        numbers = output_groups[problem.outputs]
        bounds = at_bounds(problem, winners, columns, numbers)
        in_order = columns[sorted_columns(problem, best.theta)]
        return Tuned(*parts, best.inflation, is_robust, bounds, in_order)

    if problem.Y.shape[1] == 0 or len(X) < 2 or not problem.free.any():
        return finish([Candidate(first, start)], {})
    if kernels.is_object(kernel):
        rows = [np.sort(random_state.permutation(len(X))[:FEW_ROWS])]
        best = by_likelihood(problem, start, rows, 10, tied=True)
        return finish([Candidate(kernel, by_likelihood(problem, best, rows, 60))], {})

    # One thread for the whole of it: rounding depends on nothing else.
    with one_thread_per_worker():
        tools = make_tools(problem, start, names, random_state)
        best, scores = choose(tools, Candidate(first, start))
        run_length = 1 if groups is not None else run_length_of(problem, *best[:2])
        is_longer = run_length > np.bincount(problem.units).max()
        if is_longer and len(X) >= LEAST_UNITS * run_length:
            # Rows must be held out in longer runs than was thought.
            units = np.arange(len(X)) // run_length
            problem = problem._replace(units=units, has_units=True)
            tools = make_tools(problem, start, names, random_state)
            best, scores = choose(tools, Candidate(first, start))
        tools, best, is_robust = without_outliers(tools, best, robust)
        winners = [best]
        if share == "auto" and problem.Y.shape[1] > 1:
            winners, numbers = share_outputs(tools, best, choose)
            output_groups[problem.outputs] = numbers
    return finish(winners, scores, run_length, is_robust)


def make_tools(problem, start, names, random_state):
    """Search and judge for this many rows."""
    first, is_small = Candidate(problem.kernel, start), len(problem.X) <= FEW_ROWS
    judge = (LeaveOut if is_small else Spots)(problem, first, random_state)
    make_search = LikelihoodSearch if is_small else PredictionSearch
    search = make_search(problem, start, random_state)
    return Tools(problem, search, judge, names, random_state)


def choose(tools, start):
    """The best candidate, and the scores of all; parameters as in `search_all`."""
    candidates, winner = search_all(tools, start)
    problem, judge = tools.problem, tools.judge
    best = judge.best([c for c in candidates.values() if c.kernel == winner])
    without_noise = with_least_noise(tools, best)
    if without_noise is not best:
        candidates["no noise"] = best = without_noise
    if tools.search.is_local or problem.has_units:
        best = with_most_noise(problem, refine(problem, best, judge), judge)
        candidates["refined"] = best
    scores = {name: judge.score(one) for name, one in candidates.items()}
    return best, scores


def without_outliers(tools, best, robust):
    """Hyperparameters with contradicted rows made light, if that predicts better.

    Returns tools, the best candidate, and whether rows were made light.
    """
    judge, must_gain = tools.judge, robust == "auto"
    errors = all_held_out(judge, best) if must_gain else None
    if robust is False or (must_gain and not has_outliers(errors, tools.problem.Y)):
        return tools, best, False
    screened = with_screen(tools, best)
    candidates = [best, screened.search.descend(best)]
    if screened.problem.n_scales() > 1:
        candidates.append(screened.search.descend_columns(candidates[-1]))
    other = screened.judge.best(candidates)
    if must_gain and not is_better_screened(judge, best, screened.judge, other):
        return tools, best, False
    # By hyperparameters that the gross errors have not bent, more of them show.
    screened = with_screen(tools, other)
    if not tools.search.is_local:
        # Errors of rows made light would hide what makes the others smaller.
        judge = type(judge)(screened.problem, other, tools.random_state)
        screened = screened._replace(judge=judge)
    return screened, choose(screened, other)[0], True


def with_screen(tools, reference):
    """Tools for rows to learn from, those that contradict `reference` made light."""
    problem = screen(tools.problem, reference, tools.search.is_local)
    search = type(tools.search)(problem, reference.theta, tools.random_state)
    judge = tools.judge.of_problem(problem, reference)
    return tools._replace(problem=problem, search=search, judge=judge)


def count_learned(problem, theta):
    """Free hyperparameters, but for length scales of columns that do not matter.

    Length scales that are equal count as one.
    """
    if kernels.is_object(problem.kernel):
        return int(problem.free.sum())
    lengths = theta[:-1][problem.free[:-1]]
    matter = np.unique(lengths[lengths < np.log(IRRELEVANT)].round(6))
    return len(matter) + int(problem.free[-1])


def search_all(tools, start):
    """Candidates by name, in the order of the search, and the kernel of the winner.

    If the length scales of `start` differ, one common length scale is not tried.
    """
    problem, search, judge, names, random_state = tools
    first, candidates = start.kernel, {}

    def tied(start, max_iter=10):
        return refine(problem, search.descend(start, max_iter), judge, NOISE_STEPS)

    def best_columns(best, label):
        for name, columns in search_columns(tools, best):
            candidates[f"{label} {name}"] = best = columns
        return best

    candidates["isotropic"] = tied(judge.best(shorter_starts(problem, start)))
    if explains_little(judge, candidates["isotropic"]):
        alone = min([start, *shorter_alone(problem, start)], key=judge.score)
        if alone is not start:
            candidates["one column"] = tied(alone)
    lengths, plain = (x[:-1][problem.free[:-1]] for x in (start.theta, problem.plain))
    if len(plain) > 1 and np.ptp(lengths) == 0 and np.ptp(plain) > np.log(ALIKE):
        theta = np.where(problem.free, start.theta + problem.plain, start.theta)
        candidates["plain"] = tied(Candidate(first, theta))
    one_scale = judge.best(list(candidates.values()))
    best = best_columns(one_scale, "columns")
    if search.is_local and problem.n_scales() >= MANY_COLUMNS:
        # Neighbourhoods say little of columns among many.
        rows = random_state.permutation(len(problem.X))[:N_RANDOM_ROWS]
        theta = by_likelihood(problem, one_scale.theta, [np.sort(rows)], 30)
        columns = refine(problem, Candidate(first, theta), judge, NOISE_STEPS)
        candidates["random rows"] = columns
        best = judge.best([best, columns])
    for name in names:
        if name != first:
            candidates[name] = tied(best._replace(kernel=name), 8)
    best = smoothest(
        [best, *(candidates[name] for name in names if name != first)], judge
    )
    if best.kernel != first:
        best = best_columns(best, f"{best.kernel}, columns")
    if search.is_local:
        anchors = random_state.choice(len(problem.X), N_LOCAL_SETS, replace=False)
        size = min(LOCAL_SIZE, len(problem.X))
        sets = list(problem.nearest(problem.X[anchors], size, best.theta))
        local = problem._replace(kernel=best.kernel)
        theta = by_likelihood(local, best.theta, sets, 10)
        candidates["likelihood"] = Candidate(best.kernel, theta)
    return candidates, best.kernel


def search_columns(tools, best):
    """Length scales of every column: the rounds, by number, that beat all before them.

    Few rows are looked at, so the last round need not be the best.
    """
    problem, search, judge, *_ = tools
    last, better = best, []
    for k in range(search.n_rounds if problem.n_scales() > 1 else 0):
        columns = search.descend_columns(last)
        gain = judge.gain(best, columns)
        if gain > 0 and not search.is_local and problem.has_few_rows():
            halves = search.descend_halves(best)
            gain, inflation = judge.check_halves(best, columns, halves)
            columns = columns._replace(inflation=inflation)
        if gain > 0:
            best = columns
            better.append((k + 1, columns))
        # Neighbours in the new metric may show more than those in the old one.
        if k > 0 and gain < ROUND_GAIN:
            break
        last = columns
    return better


def smoothest(candidates, judge):
    """The best candidate, or the smoothest of those that are as good, within errors."""
    best = judge.best(candidates)
    order = kernels.NAMES.index  # the smoothest first
    for other in sorted(candidates, key=lambda one: order(one.kernel)):
        if other is best or judge.is_as_good(best, other, TIE):
            return other
    return best


def refine(problem, best, judge, steps=STEPS):
    """Move common length scale and noise by factors while held-out rows gain.

    `steps` are pairs of logs, of the factors on length scales and on the noise.
    """
    low, high = problem.bounds()
    for of_lengths, of_noise in steps:
        step = np.append(np.full(len(best.theta) - 1, of_lengths), of_noise)
        step = np.where(problem.free, step, 0.0)
        while True:
            moved = best._replace(theta=np.clip(best.theta + step, low, high))
            if not judge.gain(best, moved) > LEAST_GAIN:
                break
            best = moved
    return best


def with_most_noise(problem, best, judge):
    """The candidate with as much noise as held-out rows hardly tell from its own.

    Few rows have a near copy with another output, so that few rows held out show what
    too little noise does there: a prediction that is certain, and wrong.
    """
    _, high = problem.bounds()
    noisy = best
    while problem.free[-1] and noisy.theta[-1] < high[-1]:
        noise = min(noisy.theta[-1] + np.log(2.0), high[-1])
        moved = best._replace(theta=np.append(best.theta[:-1], noise))
        if not judge.gain(best, moved) > -TIE:
            break
        noisy = moved
    return noisy


def improve(kernel, X, Y, weights, theta, fixed, max_iter=10):
    """A few steps up the likelihood of one set of rows, from theta.

    `fixed` is NaN where theta may move. A column that is constant among these rows
    keeps its length scale.
    """
    problem, _, restore = standardize(kernel, X, Y, weights, fixed, None)
    if problem.Y.shape[1] == 0 or len(X) < 2:
        return theta
    start = restore.inverse(theta)
    moved = restore(by_likelihood(problem, start, [np.arange(len(X))], max_iter))
    return np.where(restore.used, moved, theta)
