"""Where local machines are tried: rows held out at some spots, and the rows nearby.

A *spot* is a random row and the rows nearest to it. Some of these are held out, in
whole units: the groups that the user named, or runs of rows that follow each other,
which in recordings are neighbours in time (with one of them known the next is no
test). Shuffled rows lose nothing by it. What is learned from are the rows nearest to
those held out, in the metric that is tried; rows of a unit held out are not among them.
"""

import numpy as np

from .._linalg import squared_distances
from .._weights import judged_first
from ._outliers import screened_weights
from .prediction_loss import LocalSet

# Rows held out at a spot, and among how many of its nearest.
N_HELD_OUT, N_AROUND = 8, 64
# Rows that follow each other and are held out together.
RUN_LENGTH = 16
# Rows held out times rows to search among: what finding neighbours may cost.
MOST_DISTANCES = 4e8


def units_of(n_samples, groups=None):
    """The unit of every row: rows of a unit are held out together.

    Examples
    --------
    >>> units_of(4, ["b", "a", "b", "a"]).tolist()
    [1, 0, 1, 0]
    """
    if groups is not None:
        return np.unique(groups, return_inverse=True)[1].ravel()
    return np.arange(n_samples) // max(1, min(RUN_LENGTH, n_samples // 50))


def choose_spots(problem, theta, n_spots, random_state):
    """Rows held out at each of some spots, in the metric of theta; list of arrays."""
    n = len(problem.X)
    rows, n_judged = judged_first(np.arange(n), problem.weights)
    judged = np.sort(rows[:n_judged])
    n_spots = max(4, min(n_spots, int(MOST_DISTANCES / (n * N_HELD_OUT)), n // 16))
    centers = judged[random_state.permutation(n_judged)[:n_spots]]
    around = min(N_AROUND, max(2, n_judged // 3))
    near = problem.nearest(problem.X[centers], around, theta, judged)
    n_held = max(1, min(N_HELD_OUT, around // 4))
    return [_some_units(problem, judged[k], n_held, random_state) for k in near]


def _some_units(problem, rows, n_held, random_state):
    """Rows of a few units, at most `n_held` of them, never all."""
    units = problem.units[rows]
    order = random_state.permutation(np.unique(units))
    taken = np.concatenate([rows[units == unit] for unit in order])
    return np.sort(taken[: min(n_held, len(rows) - 1)])


def local_sets(problem, theta, spots, size):
    """What is learned from at each spot: the rows nearest to those held out.

    Near in the metric of theta; spots as from `choose_spots`. At most `size` rows for
    each `LocalSet` of the list.
    """
    held = np.concatenate(spots)
    n_listed = min(len(problem.X), size // 2 + N_HELD_OUT)
    lists = problem.nearest(problem.X[held], n_listed, theta)
    ends = np.cumsum([len(spot) for spot in spots])[:-1]
    return [
        _local_set(problem, theta, spot, np.unique(near), size)
        for spot, near in zip(spots, np.split(lists, ends))
    ]


def _local_set(problem, theta, spot, near, size):
    units = problem.units[spot]
    near = near[~np.isin(problem.units[near], units)]
    if len(near) < size // 4:  # most of what is near belongs to the units held out
        others = np.flatnonzero(~np.isin(problem.units, units))
        if len(others) < 2:
            others = np.setdiff1d(np.arange(len(problem.X)), spot)
        center = problem.X[spot].mean(axis=0)[None]
        n_near = min(size, len(others))
        near = others[problem.nearest(center, n_near, theta, others)[0]]
    X, X_held = problem.X[near], problem.X[spot]
    if len(near) > size:
        center, scale = X_held.mean(axis=0), problem.metric(theta)
        apart = squared_distances((X_held - center) / scale, (X - center) / scale)
        # By rank, so that each row held out has its share, also where rows are rare.
        ranks = np.argsort(np.argsort(apart, axis=1, kind="stable"), axis=1)
        places = np.sort(np.argsort(ranks.min(axis=0), kind="stable")[:size])
        near, X = near[places], X[places]
    Y, weights = problem.Y[near], problem.weights_of(near)
    if problem.screen is not None:
        weights = screened_weights(problem.screen, X, Y, weights)
    held = X_held, problem.Y[spot], problem.weights_of(spot)
    return LocalSet(X, Y, weights, *held)
