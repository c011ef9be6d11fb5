"""Which outputs share their hyperparameters.

If all outputs share the noise, one output without noise makes it minimal, and the
others then interpolate their noise. Outputs may also depend on different columns, or be
rougher. So there are a few candidates for every output: the hyperparameters for all
outputs together, the same with other noises, and those of a search for a few outputs
alone. The loss of the output on held-out rows chooses. A candidate costs one more
factorisation in every subdomain, so it must reduce the error by a given share, and by
more than the standard error of this gain. Errors of functions without noise have heavy
tails: a few rows make the loss, and its standard error large. So it is also enough that
typical errors are plainly smaller.
"""

import numpy as np

from ._judge import PLAIN
from ._problem import Candidate
from ._search import with_least_noise
from .prediction_loss import LEAST_SQUARE, standard_error

# Noises that are tried for every output, in powers of four around the shared one.
NOISE_POWERS = (-6, -4, -2, -1, 1, 2, 4, 6)
# Outputs that are searched for alone; more are searched for in so many clusters.
MOST_ALONE = 5
# Candidates in use at most.
MOST_SETS = 8
# What an output must gain to have a candidate that others do not share: about 2 % of
# its error, see the weights of the loss.
LEAST_GAIN = 0.08
# By so much must the mean log of its errors fall if the gain is less than its standard
# error: typical errors by a third.
TYPICAL_GAIN = 0.4


def share_outputs(tools, best, choose):
    """A few candidates, and the number of the one that each varying output has.

    `best` suits all outputs together; ``choose(tools, start)`` searches for the best
    candidate of the outputs that count for search and judge.
    """
    problem, judge = tools.problem, tools.judge
    options = [best, *_other_noises(problem, best)]
    has_columns = 1 < problem.n_scales() == problem.free[:-1].sum()
    for outputs in _clusters(problem):
        search, own_judge = tools.search.of_outputs(outputs), judge.of_outputs(outputs)
        start = own_judge.best(options)
        alone = (search.descend_columns if has_columns else search.descend)(start)
        own_tools = tools._replace(search=search, judge=own_judge)
        candidates = [with_least_noise(own_tools, alone)]
        if own_judge.gain(start, candidates[0]) > LEAST_GAIN:
            # These outputs are of another kind: worth a search from the beginning.
            candidates.append(choose(own_tools, alone)[0])
        alone = own_judge.best(candidates)
        options += [alone, *_other_noises(problem, alone, (-1, 1))]
    pairs = [(option, judge.all_sums(option)) for option in options]
    possible = [pair for pair in pairs if np.isfinite(pair[1].logs).all()]
    options, sums = map(list, zip(*possible))
    chosen = _choose(judge, options, sums)
    losses = np.array([sums[k].losses() for k in chosen])
    numbers = np.argmin(losses, axis=0)
    used, numbers = np.unique(numbers, return_inverse=True)
    return [options[chosen[k]] for k in used], numbers.ravel()


def _other_noises(problem, candidate, powers=NOISE_POWERS):
    if not problem.free[-1]:
        return []
    kernel, theta = candidate[:2]
    low, high = (bound[-1] for bound in problem.bounds())
    noises = np.unique(np.clip(theta[-1] + np.log(4.0) * np.array(powers), low, high))
    return [
        Candidate(kernel, np.append(theta[:-1], noise))
        for noise in noises
        if noise != theta[-1]
    ]


def _clusters(problem):
    """Outputs to search for together: each alone, or those that vary together."""
    n_outputs = problem.Y.shape[1]
    if not problem.free[:-1].any():
        return []
    if n_outputs <= MOST_ALONE:
        return [np.array([j]) for j in range(n_outputs)]
    from sklearn.cluster import AgglomerativeClustering

    sample = problem.Y[:: 1 + len(problem.Y) // 5000]
    apart = 1.0 - np.abs(np.corrcoef(sample.T))
    labels = AgglomerativeClustering(
        MOST_ALONE, metric="precomputed", linkage="average"
    ).fit_predict(np.clip(np.nan_to_num(apart, nan=1.0), 0.0, 1.0))
    return [np.flatnonzero(labels == k) for k in range(MOST_ALONE)]


def _choose(judge, options, sums):
    """Numbers of the sets to keep, the shared one first."""
    losses = np.array([one.losses() for one in sums])
    chosen = [0]
    while len(chosen) < MOST_SETS:
        now = losses[chosen]
        own = np.array(chosen)[np.argmin(now, axis=0)]
        gains = now.min(axis=0) - losses
        gains[gains < LEAST_GAIN] = 0.0
        for k, j in zip(*np.nonzero(gains)):
            if gains[k, j] < standard_error(sums[k], sums[own[j]], [j]):
                is_plain = _falls_plainly(judge, options[own[j]], options[k], j)
                gains[k, j] *= is_plain
        best = int(np.argmax(gains.sum(axis=1)))
        if not gains[best].any():
            break
        chosen.append(best)
    return chosen


def _falls_plainly(judge, old, new, output):
    """Whether typical errors of an output on held-out rows are plainly smaller."""
    falls = []
    for part in range(judge.n_parts):
        pair = [judge.held_out(one, part) for one in (old, new)]
        squares = [one.errors[:, output] ** 2 + LEAST_SQUARE for one in pair]
        logs = [0.5 * np.log(values) for values in squares]
        sets = pair[0].sets
        falls.append(np.bincount(sets, logs[0] - logs[1]) / np.bincount(sets))
    means = np.concatenate(falls)
    error = means.std() / np.sqrt(len(means))
    return means.mean() > max(TYPICAL_GAIN, PLAIN * error)
