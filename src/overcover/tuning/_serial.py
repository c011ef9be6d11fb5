r"""Whether rows that follow each other depend on each other.

Rows of a recording are similar to those before and after them, in inputs and in errors.
Leave-one-out errors are then smaller than errors on rows of another time. Runs of b
left-out rows show this. If rows are independent given the function, the squared errors
over their predicted variances are the same for every b. Otherwise they grow with b, up
to the range of the dependence. A slow drift of a sensor adds little to them, but
consecutive errors then have the same sign.
"""

import numpy as np

from .. import kernels
from .._left_out import leave_groups_out, solve_all
from .._linalg import add_to_diagonal
from .prediction_loss import LEAST_NOISE

LENGTHS = (1, 4, 16, 64, 256)
N_SETS, SET_SIZE = 16, 256
# Rows in order are nearer to each other than this share of what random rows are.
NEAR = 0.75
# Squared errors over variances must grow by this factor to speak of dependence.
GROWTH = 1.15
# Rows are close up to so many places apart; they depend from this correlation of the
# errors of close rows on. (On simulated logs it is at most .04 where they do not.)
CLOSE, CORRELATED = 8, 0.08
# Of n rows, the correlation must exceed this over the root of n: less may be chance. Of
# fewer than so many rows, any may be.
CHANCE, ENOUGH_ROWS = 1.8, 300
# A length is long enough if a longer one adds less than this share.
ENOUGH = 0.05
# A column is sorted if so many more of its steps go up than down, or the other way; it
# matters if its length scale is shorter, in deviations.
SORTED, MATTERS = 0.95, 30.0
# Fewer rows than this per length say nothing.
LEAST_RUNS = 10
# Fewer rows may be in order by design.
FEWEST = 20
# Where the dependence goes on as far as can be seen, there are so many runs.
FEWEST_RUNS = 4


def run_length_of(problem, kernel, theta):
    """How many rows that follow each other depend on each other; 1 if none do."""
    n = len(problem.X)
    lengths = [length for length in LENGTHS if n >= LEAST_RUNS * length]
    if len(lengths) < 2 or not are_near_in_order(problem, theta):
        return 1
    if are_sorted(problem, theta):
        return 1
    ratios, correlation = growth_of_errors(problem, kernel, theta, lengths)
    grow = ratios.max() >= GROWTH
    least = max(CORRELATED, CHANCE / np.sqrt(n)) if n >= ENOUGH_ROWS else np.inf
    if not grow and correlation < least:
        return 1
    enough = np.flatnonzero(ratios >= (1.0 - ENOUGH) * ratios.max())[0]
    if grow and enough < len(lengths) - 1:
        return int(lengths[enough])
    return min(n // FEWEST_RUNS, LENGTHS[-1])


def are_near_in_order(problem, theta):
    """Whether rows are much nearer to the next one than to others."""
    n, scale = len(problem.X), problem.metric(theta)
    rows = np.linspace(0, n - 2, min(n - 1, 500)).astype(np.intp)
    here, after = problem.X[rows] / scale, problem.X[rows + 1] / scale
    elsewhere = problem.X[(rows + n // 2) % n] / scale
    steps = np.median(np.linalg.norm(after - here, axis=1))
    return bool(steps < NEAR * np.median(np.linalg.norm(elsewhere - here, axis=1)))


def are_sorted(problem, theta):
    """Whether the order is that of a column which matters.

    A place in the sequence is then an input like any other: what depends on it is part
    of the function.
    """
    n = len(problem.X)
    rows = np.linspace(0, n - 1, min(n, 500)).astype(np.intp)
    signs = np.sign(np.diff(problem.X[rows], axis=0)).mean(axis=0)
    matters = theta[:-1] < np.log(MATTERS)
    return bool((np.abs(signs[matters]) > SORTED).any())


def sorted_columns(problem, theta):
    """Columns that matter, among others, and by which all rows are in order; numbers.

    Rows that are yet to come may lie beyond all others then.
    """
    n, n_columns = problem.X.shape
    is_named = not kernels.is_object(problem.kernel)
    if n < FEWEST or n_columns < 2 or not (is_named and problem.free.any()):
        return np.empty(0, dtype=np.intp)
    rows = np.linspace(0, n - 2, min(n - 1, 500)).astype(np.intp)
    here = np.sign(problem.X[rows + 1] - problem.X[rows]).mean(axis=0)
    along = np.sign(np.diff(problem.X[rows], axis=0)).mean(axis=0)
    is_sorted = (np.abs(here) > SORTED) & (np.abs(along) > SORTED)
    return np.flatnonzero(is_sorted & (theta[:-1] < np.log(MATTERS)))


def growth_of_errors(problem, kernel, theta, lengths):
    """Mean squared error over variance for runs of each length, relative to one.

    And the correlation between errors of close rows that are left out one at a time.
    """
    n = len(problem.X)
    anchors = np.linspace(0, n - 1, N_SETS).astype(np.intp)
    scale = problem.metric(theta)
    near = problem.nearest(problem.X[anchors], min(SET_SIZE, n), theta)
    noise = max(np.exp(theta[-1]), LEAST_NOISE)
    means, correlations = [], []
    for rows in near:
        rows = np.sort(rows)
        X, weights = problem.X[rows], problem.weights_of(rows)
        A = (X - X.mean(axis=0)) / scale
        Y = problem.Y[rows] - np.average(problem.Y[rows], axis=0, weights=weights)
        K_xx = add_to_diagonal(kernels.gram_lower(kernel, A), noise / weights)
        solved, parts = solve_all(K_xx, Y), []
        for length in lengths:
            errors, variances = leave_groups_out(*solved, Y, weights, rows // length)
            z_sq = errors**2 / variances[:, None]
            parts.append(np.median(z_sq, axis=0) + 0.1 * z_sq.mean(axis=0))
            if length == 1:
                correlations.append(correlation_of_close(rows, errors, variances))
        means.append(parts)
    # By outputs: those whose errors do not depend must not hide those that do.
    totals = np.mean(means, axis=0)
    ratios = totals / np.maximum(totals[:1], 1e-300)
    return np.median(ratios, axis=1), np.median(np.mean(correlations, axis=0))


def correlation_of_close(rows, errors, variances):
    """Of the ranks of errors, between rows at most `CLOSE` apart; shape (n_outputs,).

    rows are ascending numbers; zeros where none are close.
    """
    z = np.argsort(np.argsort(errors / np.sqrt(variances)[:, None], axis=0), axis=0)
    z = (z - z.mean(axis=0)) / z.std(axis=0)
    total, n_pairs = np.zeros(z.shape[1]), 0
    for lag in range(1, CLOSE + 1):
        close = rows[lag:] - rows[:-lag] <= CLOSE
        total += np.sum((z[lag:] * z[:-lag])[close], axis=0)
        n_pairs += int(np.sum(close))
    return total / max(n_pairs, 1)
