"""Starting points of searches: also short length scales, which waves may need.

From a length scale much longer than a wave, a search by the gradient finds only noise.
"""

import numpy as np

# Factors by which the first length scales may be shorter, all of them or one alone.
SHORTER, SHORTER_ALONE = (1.0, 4.0, 16.0, 64.0), 16.0
# If so much of the variance of an output is not explained, columns are tried alone, the
# first so many.
UNEXPLAINED, MOST_ALONE = 0.5, 12


def shorter_starts(problem, start):
    """The start, and the same with all length scales shorter, within bounds."""
    steps = np.append(np.ones(len(start.theta) - 1), 0.0)
    return _moved(problem, start, [np.log(factor) * steps for factor in SHORTER])


def shorter_alone(problem, start):
    """The start with a shorter length scale along one column, of each of the first."""
    columns = np.eye(len(start.theta))[:-1][problem.free[:-1]]
    return _moved(problem, start, np.log(SHORTER_ALONE) * columns[:MOST_ALONE])


def _moved(problem, start, steps):
    """The start less each step, where that lies within bounds."""
    low, _ = problem.bounds()
    starts = (start.theta - np.where(problem.free, step, 0.0) for step in steps)
    return [start._replace(theta=theta) for theta in starts if np.all(theta >= low)]


def explains_little(judge, candidate):
    """Whether much of an output, in its standard units, is beyond a candidate."""
    sums = judge.sums(candidate)
    unexplained = sums.squares.sum(axis=0) / sums.counts.sum()
    has_choice = judge.problem.free[:-1].sum() > 1
    return bool(has_choice and (unexplained[judge.outputs] > UNEXPLAINED).any())
