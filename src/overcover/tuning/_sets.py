"""Where local machines are tried: rows held out at some spots, and the rows nearby.

A *spot* is a random row and the rows nearest to it. Some of these are held out, one
unit at a time: a group that the user named, or a run of rows that follow each other,
which in recordings are neighbours in time (with one of them known the next is no
test). Shuffled rows lose nothing by it. What is learned from are the rows nearest to
those held out, in the metric that is tried, and the other rows held out; no other rows
of their units.
"""

import numpy as np

from .._weights import judged_first
from ._outliers import screened_weights
from .prediction_loss import LocalSet

# Rows at a spot are held out among so many.
N_AROUND = 64
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


def choose_spots(problem, theta, n_spots, n_held, random_state):
    """Rows held out at each of some spots, in the metric of theta; list of arrays."""
    n = len(problem.X)
    rows, n_judged = judged_first(np.arange(n), problem.weights)
    judged = np.sort(rows[:n_judged])
    most = int(min(MOST_DISTANCES / n, n / 2)) // n_held
    n_spots = max(4, min(n_spots, most))
    centers = judged[random_state.permutation(n_judged)[:n_spots]]
    around = min(N_AROUND, max(2, n_judged // 3))
    near = problem.nearest(problem.X[centers], around, theta, judged)
    n_held = max(1, min(n_held, around // 4))
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
    each `LocalSet` of the list, those held out among them.
    """
    held = np.concatenate(spots)
    n_listed = min(len(problem.X), size // 2)
    lists = problem.nearest(problem.X[held], n_listed, theta, in_order=True)
    ends = np.cumsum([len(spot) for spot in spots])[:-1]
    return [
        _local_set(problem, theta, spot, near, size)
        for spot, near in zip(spots, np.split(lists, ends))
    ]


def _local_set(problem, theta, spot, lists, size):
    units, n_learned = problem.units[spot], size - len(spot)
    # By rank, so that each row held out has its share, also where rows are rare.
    by_rank = lists.T.ravel()
    by_rank = by_rank[~np.isin(problem.units[by_rank], units)]
    rows, first = np.unique(by_rank, return_index=True)
    if len(rows) < size // 4:  # most of what is near belongs to the units held out
        others = np.flatnonzero(~np.isin(problem.units, units))
        if len(others) < 2:
            others = np.setdiff1d(np.arange(len(problem.X)), spot)
        center = problem.X[spot].mean(axis=0)[None]
        n_near = min(n_learned, len(others))
        rows = others[problem.nearest(center, n_near, theta, others)[0]]
    elif len(rows) > n_learned:
        rows = np.sort(rows[np.argsort(first)[:n_learned]])
    rows = np.append(rows, spot)
    X, Y, weights = problem.X[rows], problem.Y[rows], problem.weights_of(rows)
    weights_held = weights[-len(spot) :]
    if problem.screen is not None:
        weights = screened_weights(problem.screen, X, Y, weights)
    return LocalSet(X, Y, weights, units, weights_held)
