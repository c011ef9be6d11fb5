"""Hyperparameters at a bound that indicates a problem.

Some bounds are right: a function without noise has the least noise, a column without
effect the longest length scale, a column of codes or a jump the shortest. Two bounds
are problems. With the most noise, inputs explain almost nothing of the outputs. The
shortest length scale of a column is too long if leave-one-out errors are smaller with a
shorter one.
"""

from typing import NamedTuple

import numpy as np

from .. import kernels
from .._left_out import leave_groups_out, solve_all
from .._linalg import add_to_diagonal

# Fewer rows end at a bound by chance.
LEAST_ROWS = 100
# Logs of hyperparameters this near to a bound are at it.
NEAR = 0.01
# Neighbourhoods in which a length scale so many times shorter is tried; squared errors
# must fall to this share.
N_SETS, SET_SIZE, SHORTER, MOST_LEFT = 4, 200, 3.0, 0.8
# Rows by which to see what is explained; squared errors beyond this share of the
# outputs' variance say next to nothing.
N_LOOKED_AT, NEXT_TO_ALL = 600, 0.95


class AtBounds(NamedTuple):
    """What ended at a bound."""

    unexplained: np.ndarray
    """Whether inputs explain next to nothing of each group of outputs, (n_groups,)."""

    fast: np.ndarray
    """Numbers of columns along which outputs vary too fast."""


def at_bounds(problem, winners, columns, groups) -> AtBounds:
    """What is at a bound among the candidates that won, one for each group of outputs.

    `columns` are the numbers of the problem's columns, `groups` those of the group of
    each output. Nothing is said of a kernel object, whose bounds are the user's.
    """
    unexplained, fast = np.zeros(len(winners), bool), set()
    if len(problem.X) < LEAST_ROWS or kernels.is_object(problem.kernel):
        return AtBounds(unexplained, columns[:0])
    low, high = problem.bounds()
    for g, one in enumerate(winners):
        if one.theta[-1] > high[-1] - NEAR:
            unexplained[g] = _explains_nothing(problem, one, groups == g)
        else:
            short = np.flatnonzero(one.theta[:-1] < low[:-1] + NEAR)
            fast |= {j for j in short if _is_too_long(problem, one, j)}
    return AtBounds(unexplained, columns[sorted(fast)])


def _explains_nothing(problem, candidate, outputs):
    """Whether rows left out are predicted hardly better than by the mean."""
    n = len(problem.X)
    rows = np.linspace(0, n - 1, min(N_LOOKED_AT, n)).astype(np.intp)
    errors = _squared_errors(problem, candidate.kernel, candidate.theta, rows)
    return (errors > NEXT_TO_ALL * problem.Y[rows].var(axis=0))[outputs].all()


def _is_too_long(problem, candidate, column):
    """Whether rows left out are predicted better with a shorter length scale."""
    shorter = candidate.theta.copy()
    shorter[column] -= np.log(SHORTER)
    n = len(problem.X)
    anchors = np.linspace(0, n - 1, N_SETS).astype(np.intp)
    sets = problem.nearest(problem.X[anchors], min(SET_SIZE, n), candidate.theta)
    errors = [
        sum(_squared_errors(problem, candidate.kernel, theta, rows) for rows in sets)
        for theta in (candidate.theta, shorter)
    ]
    return (errors[1] < MOST_LEFT * errors[0]).any()


def _squared_errors(problem, kernel, theta, rows):
    """Mean squares of some rows left out one by one, shape (n_outputs,)."""
    X, weights = problem.X[rows], problem.weights_of(rows)
    Y = problem.Y[rows] - np.average(problem.Y[rows], axis=0, weights=weights)
    K_xx = kernels.gram_lower(kernel, (X - X.mean(axis=0)) / np.exp(theta[:-1]))
    solved = solve_all(add_to_diagonal(K_xx, np.exp(theta[-1]) / weights), Y)
    errors, _ = leave_groups_out(*solved, Y, weights, None)
    return np.mean(errors**2, axis=0)
