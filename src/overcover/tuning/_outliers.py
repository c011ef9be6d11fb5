"""Rows whose outputs contradict all rows around them, such as those of a broken sensor.

A least-squares fit bends towards them, and with little noise it goes through them. If
some held-out errors are far larger than usual, tuning starts again with light weights
for contradicted rows. They stay light if held-out rows are then predicted better. The
gross errors count in full in this comparison, because the tail of a distribution must
not be taken for outliers. They do not count if hardly any errors lie between usual and
gross ones, so that they cannot be a tail. Gross errors that lie close together are no
outliers: there the outputs have more noise, or a jump.
"""

import numpy as np
from scipy.spatial import KDTree

from .. import kernels
from .._left_out import (
    LIGHT,
    contradicted_rows,
    usual_deviation,
    usual_size,
)
from .._linalg import add_to_diagonal, cholesky, inverse_factor
from .prediction_loss import HeldOut

# Held-out errors so many times the usual one call for a closer look, if they are this
# many and this share of the rows, or if one is this many deviations of the outputs. (At
# a jump of the function a row or two are contradicted.) Errors of fewer deviations are
# none of them.
SUSPECT, LEAST_COUNT, LEAST_SHARE, EXTREME = 6.0, 3, 0.003, 6.0
LEAST_ERROR = 1.5
# If gross errors are so many times as many as merely large ones, they are no tail; both
# in usual errors.
APART, LARGE, GROSS = 2.0, 4.0, 10.0
# Gross errors lie together if among so many nearest rows there are so many times as
# many as anywhere, and not by chance.
N_NEAR, CROWDED = 10, 2.0
# What the loss must gain, about four percent of the error.
LEAST_GAIN = 0.15


def screened_weights(candidate, X, Y, weights):
    """Weights of rows X in standard units, those of contradicted rows made light."""
    kernel, theta = candidate[:2]
    A = (X - X.mean(axis=0)) / np.exp(theta[:-1])
    K_xx = kernels.gram_lower(kernel, A)
    L, _ = cholesky(add_to_diagonal(K_xx, np.exp(theta[-1]) / weights))
    rows = contradicted_rows(inverse_factor(L), Y)
    weights = weights.copy()
    weights[rows] *= LIGHT
    return weights


def has_outliers(held_out, Y):
    """Whether errors of held-out rows are out of all proportion to the outputs Y."""
    worst = gross_sizes(held_out, Y)
    n_gross = np.sum(worst > LEAST_ERROR)
    return bool(
        n_gross >= max(LEAST_COUNT, LEAST_SHARE * len(worst)) or worst.max() > EXTREME
    )


def gross_sizes(held_out, Y):
    """Errors out of proportion, in usual deviations of Y; zero of the other rows."""
    z = held_out.errors / np.sqrt(held_out.variances)[:, None]
    # Each of many outputs is another chance of a large error.
    least = SUSPECT if z.shape[1] == 1 else GROSS
    is_gross = np.abs(z) > least * np.maximum(usual_size(z), 1e-300)
    sizes = np.where(is_gross, np.abs(held_out.errors) / usual_deviation(Y), 0.0)
    return sizes.max(axis=1)


def lie_together(X, is_gross):
    """Whether marked rows of X have more marked rows around them than others have."""
    n_near, share = min(N_NEAR, len(X) - 1), is_gross.mean()
    marked = np.flatnonzero(is_gross)
    if not len(marked) or n_near < 1:
        return False
    near = KDTree(X).query(X[marked], n_near + 1)[1]
    n_marked = np.sum(is_gross[near]) - len(marked)
    expected = n_near * share * len(marked)
    return bool(n_marked > CROWDED * expected + 3.0 * np.sqrt(2.0 * expected))


def screen(problem, best, is_local):
    """The problem with contradicted rows made light, judged by the best candidate."""
    if is_local:
        return problem._replace(screen=best)
    rows = np.arange(len(problem.X))
    weights = problem.weights_of(rows)
    return problem._replace(
        weights=screened_weights(best, problem.X[:], problem.Y, weights)
    )


def is_better_screened(judge, best, screened_judge, screened_best):
    """Whether held-out rows are predicted better, all errors counted in full.

    Both judges hold out the same rows.
    """
    before, after = (
        all_held_out(judge, best),
        all_held_out(screened_judge, screened_best),
    )
    limits = screened_judge.limits
    losses = [one.sums(limits).losses().mean() for one in (before, after)]
    if not losses[0] - losses[1] > LEAST_GAIN:
        return False
    # A row may be held out at several spots. Before, outliers spoiled the predictions
    # of rows around them.
    rows, first = np.unique(np.concatenate(judge.rows), return_index=True)
    is_gross = gross_sizes(after, judge.problem.Y)[first] > 0
    if lie_together(judge.problem.X[rows], is_gross):
        return False
    z = after.errors / np.sqrt(after.variances)[:, None]
    sizes = np.max(np.abs(z) / np.maximum(usual_size(z), 1e-300), axis=1)
    n_gross, n_large = np.sum(sizes > GROSS), np.sum((sizes > LARGE) & (sizes <= GROSS))
    if n_gross - 2.0 * np.sqrt(n_gross) > APART * n_large:
        return True  # no tail of a distribution, and not by chance
    squares = [(one.errors / limits) ** 2 for one in (before, after)]
    worse = (squares[1] - squares[0]).mean(axis=1)
    return bool(worse.mean() < 0)


def all_held_out(judge, candidate):
    """Errors and variances of all rows that a judge holds out, as one set."""
    parts = [judge.predict(candidate, part) for part in range(judge.n_parts)]
    errors, variances, _ = (np.concatenate(values) for values in zip(*parts))
    return HeldOut(errors, variances, np.zeros(len(errors), dtype=np.intp))
