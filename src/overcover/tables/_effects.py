r"""Effects of levels on outputs: what a column adds, given all the other columns.

The additive model :math:`y_i = \mu + \sum_c u_{c, l_c(i)} + \epsilon_i` has one effect
u for each level l of each column c, of variance :math:`\tau_c^2`. Effects are means of
what the other columns leave over, shrunk by how few rows a level has:

.. math:: \hat u_l = \frac{n_l \tau^2}{n_l \tau^2 + \sigma^2} \bar r_l ,

column after column, until effects settle. Numbers take part by bins of equal counts. So
a level is not blamed for what its rows have in common otherwise.
"""

from typing import NamedTuple

import numpy as np

# Bins of a column of numbers; parts of the rows for effects out of fold.
N_BINS, N_FOLDS = 16, 10
# Rounds over all columns at most; no more if no effect moves so far, in deviations.
N_ROUNDS, SETTLED = 30, 0.01


class Effects(NamedTuple):
    """What the levels of one column add to the outputs."""

    means: np.ndarray  # shape (n_levels, n_outputs); zero for a level without rows
    # Variance that a level without rows adds to what is left over, shape (n_outputs,).
    unknown: np.ndarray


def bins_of(values):
    """Levels of a column of numbers: bins of equal counts, the last for gaps.

    >>> bins_of(np.array([3.0, np.nan, 1.0, 2.0])).tolist()
    [2, 3, 0, 1]
    """
    levels = np.full(len(values), 0)
    present = ~np.isnan(values)
    edges = np.unique(np.quantile(values[present], np.linspace(0, 1, N_BINS + 1)[1:-1]))
    levels[present] = np.searchsorted(edges, values[present], side="left")
    levels = np.unique(levels, return_inverse=True)[1]
    levels[~present] = levels[present].max(initial=-1) + 1
    return levels


def effects_of(columns, Y, weights):
    """`Effects` on outputs of each column, a pair of its rows' levels and their number.

    Y has the shape (n_rows, n_outputs), levels and weights have (n_rows,).
    """
    rest = Y - np.average(Y, axis=0, weights=weights)
    none = np.zeros(Y.shape[1])
    effects = [Effects(np.zeros((n, len(none))), none) for _, n in columns]
    smallest = SETTLED * Y.std(axis=0)
    for _ in range(N_ROUNDS):
        before = [one.means for one in effects]
        for c, (levels, n_levels) in enumerate(columns):
            rest = rest + effects[c].means[levels]
            effects[c] = shrunken_means(levels, n_levels, rest, weights)
            rest = rest - effects[c].means[levels]
        moves = (np.abs(one.means - old) for one, old in zip(effects, before))
        if all(np.all(move <= smallest) for move in moves):
            break
    return effects


def shrunken_means(levels, n_levels, rest, weights) -> Effects:
    """Effects of one column on what other columns leave over, by analysis of variance.

    >>> rest = np.array([[1.0], [1.2], [-1.0], [-1.2]])
    >>> shrunken_means(np.array([0, 0, 1, 1]), 3, rest, np.ones(4)).means.round(2)
    array([[ 1.1],
           [-1.1],
           [ 0. ]])
    """
    count = np.bincount(levels, weights, n_levels)
    sums = [np.bincount(levels, weights * column, n_levels) for column in rest.T]
    means = np.stack(sums, axis=1) / np.where(count > 0, count, 1.0)[:, None]
    total, n_used = count.sum(), int(np.count_nonzero(count))
    between = count @ means**2
    within = np.maximum(weights @ rest**2 - between, 0.0)
    free = max(int(np.count_nonzero(weights)) - n_used, 0)
    even = total - np.sum(count**2) / total  # rows of a level, times levels but one
    if free == 0 or even <= 0:  # nothing tells effects from noise
        alone = (within + between) / total
        return Effects(np.zeros_like(means), alone * (n_used == 1))
    noise = within / free
    tau_sq = np.maximum((between - (n_used - 1) * noise) / even, 0.0)
    known = count[:, None] * tau_sq
    scale = known + noise
    means = means * np.divide(known, scale, out=np.zeros_like(scale), where=scale > 0)
    left = tau_sq * np.divide(noise, scale, out=np.ones_like(scale), where=scale > 0)
    error = np.sqrt(2.0 / max(n_used - 1, 1)) * (n_used * noise / total + tau_sq)
    unknown = tau_sq - np.average(left, axis=0, weights=count) + error
    return Effects(means, unknown)


def folds_of(n_rows, groups=None):
    """The fold of every row; rows of a group share theirs. Always the same."""
    units = np.arange(n_rows) if groups is None else np.asarray(groups)
    return np.random.default_rng(0).permutation(int(units.max()) + 1)[units] % N_FOLDS
