r"""Whether rows that follow each other depend on each other.

Rows of a recording are similar to those before and after them, in inputs and in errors.
Leave-one-out errors are then smaller than errors on rows of another time. Runs of b
left-out rows show this. If rows are independent given the function, the squared errors
over their predicted variances are the same for every b. Otherwise they grow with b, up
to the range of the dependence. A slow drift of a sensor adds little to them, but
slow waves along the sequence then explain what the inputs do not.
"""

import numpy as np
from scipy.special import chdtrc

from .. import kernels
from .._left_out import leave_groups_out, solve_all
from .._linalg import add_to_diagonal
from .prediction_loss import LEAST_NOISE

LENGTHS = (1, 4, 16, 64, 256)
N_SETS, SET_SIZE = 16, 256
# Rows in order are nearer to each other than this share of what random rows are.
NEAR = 0.75
# By so much must squared errors over variances grow to speak of dependence; and of n
# rows, by this over the root of n: less may be chance.
GROWTH, CHANCE = 0.15, 5.0
# Rows that are looked at for slow waves, spread evenly; how many waves; and how rarely
# chance may explain as much by them. (Very rarely: what a kernel does not suit, such as
# a step, leaves slow waves where inputs wander.)
N_SPREAD, N_WAVES, RARE = 600, 8, 1e-5
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
    if len(lengths) < 2 or are_sorted(problem, theta):
        return 1
    ratios = np.ones(1)
    if are_near_in_order(problem, theta):
        ratios = growth_of_errors(problem, kernel, theta, lengths)
    grow = ratios.max() >= 1.0 + max(GROWTH, CHANCE / np.sqrt(n))
    if not grow and not have_slow_waves(problem, kernel, theta):
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
    """Whether the order is that of an output, or of a column which matters.

    A place in the sequence is then an input like any other: what depends on it is part
    of the function.
    """
    n, steps = len(problem.X), np.diff(problem.Y, axis=0)
    if (np.all(steps >= 0, axis=0) | np.all(steps <= 0, axis=0)).any():
        return True
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
    """Mean squared error over variance for runs of each length, relative to one."""
    n = len(problem.X)
    anchors = np.linspace(0, n - 1, N_SETS).astype(np.intp)
    near = problem.nearest(problem.X[anchors], min(SET_SIZE, n), theta)
    means = []
    for rows in near:
        rows, parts = np.sort(rows), []
        *solved, Y, weights = solve_rows(problem, kernel, theta, rows)
        L_inv, alpha, alpha_one = solved
        for length in lengths:
            options = Y, weights, rows // length
            errors, variances = leave_groups_out(L_inv, alpha, alpha_one, *options)
            z_sq = errors**2 / variances[:, None]
            parts.append(np.median(z_sq, axis=0) + 0.1 * z_sq.mean(axis=0))
        means.append(parts)
    # By outputs: those whose errors do not depend must not hide those that do.
    totals = np.mean(means, axis=0)
    return np.median(totals / np.maximum(totals[:1], 1e-300), axis=1)


def solve_rows(problem, kernel, theta, rows, others=None):
    """`solve_all` of some rows, their centred outputs, and their weights.

    The columns of `others`, shape (n_rows, n_others), are solved for like outputs.
    """
    X, weights = problem.X[rows], problem.weights_of(rows)
    A = (X - X.mean(axis=0)) / problem.metric(theta)
    Y = problem.Y[rows] if others is None else np.hstack([problem.Y[rows], others])
    Y = Y - np.average(Y, axis=0, weights=weights)
    noise = max(np.exp(theta[-1]), LEAST_NOISE)
    K_xx = add_to_diagonal(kernels.gram_lower(kernel, A), noise / weights)
    return *solve_all(K_xx, Y), Y, weights


def have_slow_waves(problem, kernel, theta):
    r"""Whether slow waves along the sequence explain what the inputs leave.

    The waves W are cosines. With A the kernel matrix of n rows, noise included, and P
    its inverse but for the unknown mean, they explain
    :math:`y^\top P W (W^\top P W)^{-1} W^\top P y` of :math:`y^\top P y`. If errors are
    independent, n times this share has a chi-squared distribution with as many degrees
    of freedom as there are waves.
    """
    n = len(problem.X)
    rows = np.linspace(0, n - 1, min(n, N_SPREAD)).astype(np.intp)
    waves = np.cos(np.pi * np.outer((rows + 0.5) / n, np.arange(1, N_WAVES + 1)))
    _, alpha, alpha_one, B, _ = solve_rows(problem, kernel, theta, rows, waves)
    P_B = alpha - np.outer(alpha_one, alpha_one @ B) / alpha_one.sum()
    products, q = B.T @ P_B, problem.Y.shape[1]
    by_waves, between = products[q:, :q], products[q:, q:]
    explained = np.sum(by_waves * np.linalg.solve(between, by_waves), axis=0)
    share = explained / np.maximum(np.diag(products)[:q], 1e-300)
    # Of many outputs, one may be rare by chance.
    return chdtrc(N_WAVES, len(rows) * share.max()) * q < RARE
