r"""Hyperparameters "auto": several candidates, chosen between on rows held out.

    X, Y -> [tuning] -> partition -> cover -> machines -> routing -> combination
    -> prediction

No single recipe wins everywhere. The marginal likelihood of a few random rows sees
the data thinned out; that of neighbourhoods drives the noise to zero where rows nearly
repeat; one length scale per column is too many for wide inputs. So there are candidates

- *isotropic*: one length scale in units of the column deviations;
- *plain*: one length scale, columns as they are;
- *columns*: from the better of these, one length scale per column;
- the other kernels, each with the best length scales so far times a common factor;
- *likelihood*: the best so far, moved up the marginal likelihood of neighbourhoods;

found by descending the prediction loss (`prediction_loss`) at some spots, or, for small
tables, by climbing the likelihood of all rows. Each is judged by what counts: error and
log density of local machines on rows held out (`_judge`), in whole groups or runs of
rows. A last search moves the winner's noise and common length scale by factors. Then
outputs that are better off with hyperparameters of another kind get them (`_outputs`).

The cost does not grow with the number of rows, but for finding neighbours.
"""

from typing import NamedTuple

import numpy as np

from .. import kernels
from .._parallel import one_thread_per_worker
from ._judge import FEW_ROWS, make_judge
from ._outputs import share_outputs
from ._problem import MOST_SCALES, standardize
from ._problem import NOISE_BOUNDS as NOISE_BOUNDS
from ._search import LikelihoodSearch, PredictionSearch, by_likelihood
from ._serial import run_length_of
from .prediction_loss import standard_error

# Neighbourhoods whose likelihood is climbed, and their rows.
N_LOCAL_SETS, LOCAL_SIZE = 3, 400
# The kernel that the others are compared with.
FIRST_KERNEL = "matern32"
# Column deviations that differ by less than this factor are as good as equal.
ALIKE = 1.5
# Fewer rows do not tell kernels apart, nor find a length scale for every column.
ROWS_FOR_KERNELS, ROWS_PER_SCALE = 100, 4
# Deviations beyond which a length scale says that its column does not matter.
IRRELEVANT = 30.0
# What a candidate must gain to be worth a step.
LEAST_GAIN = 1e-3
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


class Tuned(NamedTuple):
    """The hyperparameters, and what else was tried."""

    kernel: object
    """A name or a scikit-learn kernel."""

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


class Candidate(NamedTuple):
    """Hyperparameters that may win."""

    kernel: str
    theta: np.ndarray


def tune(
    kernel, X, Y, weights, theta, random_state, n_jobs=None, groups=None, share="auto"
):
    """Find length scales and noise.

    Parameters
    ----------
    kernel : str or scikit-learn kernel
        "auto" chooses between the kernels that have a name, if anything else is to be
        found.
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    weights : ndarray of shape (n_samples,) or None
    theta : ndarray of shape (n_hyperparameters,)
        Log hyperparameters, the noise last; NaN where they are to be found. Those of
        a kernel object are where to start.
    random_state : RandomState
    n_jobs : int or None
    groups : ndarray of shape (n_samples,) or None
        Rows of a group are held out together.
    share : {"auto", True}
        Whether all outputs must share their hyperparameters.

    Returns
    -------
    Tuned
    """
    is_auto = isinstance(kernel, str) and kernel == "auto"
    first = FIRST_KERNEL if is_auto else kernel
    problem, start, restore = standardize(first, X, Y, weights, theta, n_jobs, groups)
    output_groups = np.zeros(Y.shape[1], dtype=np.intp)

    def finish(winner, thetas, scores, run_length=1):
        restored = np.array([restore(one) for one in thetas])
        n_learned = count_learned(problem, thetas[0])
        return Tuned(winner, restored, output_groups, scores, run_length, n_learned)

    if problem.Y.shape[1] == 0 or len(X) < 2 or not problem.free.any():
        return finish(first, [start], {})
    if kernels.is_object(kernel):
        rows = [np.sort(random_state.permutation(len(X))[:FEW_ROWS])]
        found = by_likelihood(problem, start, rows, 10, tied=True)
        return finish(kernel, [by_likelihood(problem, found, rows, 60)], {})

    # One thread for the whole of it: rounding depends on nothing else.
    with one_thread_per_worker():
        judge = make_judge(problem, start, random_state)
        kind = LikelihoodSearch if len(X) <= FEW_ROWS else PredictionSearch
        search = kind(problem, start, random_state)
        has_choice = is_auto and len(X) >= ROWS_FOR_KERNELS
        names = kernels.NAMES if has_choice else (first,)
        best, scores = choose(problem, start, search, judge, names, random_state)
        run_length = 1 if groups is not None else run_length_of(problem, *best)
        thetas = [best.theta]
        if share == "auto" and problem.Y.shape[1] > 1:
            kernel, theta = best
            thetas, numbers = share_outputs(problem, kernel, theta, search, judge)
            output_groups[problem.outputs] = numbers
    return finish(best.kernel, thetas, scores, run_length)


def choose(problem, start, search, judge, names, random_state):
    """The best candidate, and the scores of all; parameters as in `search_all`."""
    candidates, winner = search_all(problem, start, search, judge, names, random_state)
    scores = {name: judge.score(c.theta, c.kernel) for name, c in candidates.items()}
    best = _best({n: c for n, c in candidates.items() if c.kernel == winner}, judge)
    if search.is_local:
        best = with_most_noise(problem, refine(problem, best, judge), judge)
        scores["refined"] = judge.score(best.theta, best.kernel)
    return best, scores


def count_learned(problem, theta):
    """Free hyperparameters, but for length scales of columns that do not matter.

    Length scales that are equal count as one.
    """
    if kernels.is_object(problem.kernel):
        return int(problem.free.sum())
    lengths = theta[:-1][problem.free[:-1]]
    matter = np.unique(lengths[lengths < np.log(IRRELEVANT)].round(6))
    return len(matter) + int(problem.free[-1])


def search_all(problem, start, search, judge, names, random_state):
    """Candidates by name, in the order in which they are found.

    Parameters
    ----------
    problem : Problem
    start : ndarray of shape (n_hyperparameters,)
    search : PredictionSearch or LikelihoodSearch
    judge : Judge
    names : sequence of str
        Kernels to choose between.
    random_state : RandomState

    Returns
    -------
    candidates : dict from name to Candidate
    kernel : str
        That of the winner.
    """
    first, candidates = problem.kernel, {}

    def tied(start, kernel, max_iter=10):
        theta = search.descend(start, True, max_iter, kernel)
        return refine(problem, Candidate(kernel, theta), judge, NOISE_STEPS)

    candidates["isotropic"] = tied(start, first)
    n_free = int(problem.free[:-1].sum())
    plain = problem.plain[:-1][problem.free[:-1]]
    if n_free > 1 and np.ptp(plain) > np.log(ALIKE):
        theta = np.where(problem.free, start + problem.plain, start)
        candidates["plain"] = tied(theta, first)
    best = _best(candidates, judge)
    has_columns = 1 < n_free <= min(MOST_SCALES, len(problem.X) / ROWS_PER_SCALE)
    if has_columns:
        for k, theta in enumerate(search.descend_columns(best.theta, first)):
            candidates[f"columns {k + 1}"] = Candidate(first, theta)
        best = _best(candidates, judge)
    for name in names:
        if name != first:
            candidates[name] = tied(best.theta, name, 8)
    best = _smoothest(candidates, judge)
    if best.kernel != first and has_columns:
        rounds = search.descend_columns(best.theta, best.kernel)
        more = {
            f"{best.kernel}, columns {k + 1}": Candidate(best.kernel, theta)
            for k, theta in enumerate(rounds)
        }
        candidates |= more
        best = _best({"": best, **more}, judge)
    if search.is_local:
        sets = judge.neighborhoods(best.theta, N_LOCAL_SETS, LOCAL_SIZE, random_state)
        local = problem._replace(kernel=best.kernel)
        theta = by_likelihood(local, best.theta, sets, 10)
        candidates["likelihood"] = Candidate(best.kernel, theta)
    return candidates, best.kernel


def _best(candidates, judge):
    return min(candidates.values(), key=lambda c: judge.score(c.theta, c.kernel))


def _smoothest(candidates, judge):
    """The best candidate, or the smoothest of those that are as good, within errors."""
    best = _best(candidates, judge)
    sums = judge.sums(best.theta, best.kernel)
    for name in kernels.NAMES:  # the smoothest first
        if name == best.kernel:
            return best
        alike = {n: c for n, c in candidates.items() if c.kernel == name}
        if not alike:
            continue
        other = _best(alike, judge)
        other_sums = judge.sums(other.theta, other.kernel)
        if len(other_sums.counts) != len(sums.counts):
            continue  # could not be judged
        gap = other_sums.loss() - sums.loss()
        if gap < 0.5 * standard_error(other_sums, sums) and gap < 0.02:
            return other
    return best


def refine(problem, best, judge, steps=STEPS):
    """Move common length scale and noise by factors while held-out rows gain.

    Parameters
    ----------
    problem : Problem
    best : Candidate
    judge : Judge
    steps : sequence of tuples
        Logs of the factors on length scales and noise that are tried in turn.

    Returns
    -------
    Candidate
    """
    kernel, theta = best
    low, high = problem.bounds()
    for of_lengths, of_noise in steps:
        step = np.append(np.full(len(theta) - 1, of_lengths), of_noise)
        step = np.where(problem.free, step, 0.0)
        while True:
            moved = np.clip(theta + step, low, high)
            gain = judge.score(theta, kernel) - judge.score(moved, kernel)
            if not gain > LEAST_GAIN:
                break
            theta = moved
    return Candidate(kernel, theta)


def with_most_noise(problem, best, judge):
    """The candidate with as much noise as held-out rows hardly tell from its own.

    Few rows have a near copy with another output, so that few rows held out show what
    too little noise does there: a prediction that is certain, and wrong.
    """
    kernel, theta = best
    _, high = problem.bounds()
    limit = judge.score(theta, kernel) + TIE
    while problem.free[-1] and theta[-1] < high[-1]:
        moved = theta.copy()
        moved[-1] = min(theta[-1] + np.log(2.0), high[-1])
        if not judge.score(moved, kernel) < limit:
            break
        theta = moved
    return Candidate(kernel, theta)


def improve(kernel, X, Y, weights, theta, asked, max_iter=10):
    """A few steps up the likelihood of one set of rows.

    Parameters
    ----------
    kernel : str or scikit-learn kernel
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    weights : ndarray of shape (n_samples,) or None
    theta : ndarray of shape (n_hyperparameters,)
        Where to start.
    asked : ndarray of shape (n_hyperparameters,)
        NaN where it may move, as in `tune`.

    Returns
    -------
    ndarray of shape (n_hyperparameters,)
        A column that is constant among these rows keeps its length scale.
    """
    problem, _, restore = standardize(kernel, X, Y, weights, asked, None)
    if problem.Y.shape[1] == 0 or len(X) < 2:
        return theta
    start = restore.inverse(theta)
    moved = restore(by_likelihood(problem, start, [np.arange(len(X))], max_iter))
    return np.where(restore.used, moved, theta)
