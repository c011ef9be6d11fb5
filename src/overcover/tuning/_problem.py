"""The problem of tuning: data in standard units, and the free hyperparameters."""

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

from .. import kernels
from .._neighbors import nearest_rows
from .._streams import Rows, moments_of, typical_moments_of
from ._sets import units_of

LENGTH_BOUNDS = (0.05, 1000.0)
# Where columns are so few that rows are closer than that: so many times the distance
# of n rows spread evenly.
SPACINGS = 2.0
NOISE_BOUNDS = (1e-7, 10.0)
# The least noise of a function that seems to have none, once its kernel is known.
LEAST_NOISE = 1e-9
START_NOISE = 0.05
# Standard deviations of the logs of length scales and noise before rows are seen.
LENGTH_WIDTH, NOISE_WIDTH = 1.0, 2.0
# Cells farther from the mean than so many units come this near: similar to nothing at
# any length scale that is tried, but near enough for products not to lose digits. (Of
# n rows none is farther than sqrt(n) deviations, unless it does not count in these.)
FAR = 1e4
# A step that gains less of a loss is the last: nothing that is decided shows it.
LEAST_DESCENT = 1e-5
# Past this many columns one length scale each is neither affordable nor identified.
MOST_SCALES = 200
# Where there are more columns, so many may have a length scale of their own.
FEW_SCALES = 30
# Fewer rows do not determine a length scale for every column.
ROWS_PER_SCALE = 4
# With more rows than this, length scales hardly overfit.
SAFE_ROWS_PER_SCALE = 20


class Candidate(NamedTuple):
    """Hyperparameters that may win."""

    kernel: Any
    """A name or a scikit-learn kernel."""

    theta: np.ndarray
    """Log hyperparameters in standard units, the noise last."""

    inflation: float | None = None
    """By what factor its variances are too small for rows that had no part in finding
    it, if that was measured."""


class Problem(NamedTuple):
    """Data in standard units, and what may move."""

    kernel: Any
    """A name or a scikit-learn kernel."""

    X: Rows
    """In column deviations, shape (n_samples, n_features); made when looked at."""

    Y: np.ndarray
    """Outputs that vary, shape (n_samples, n_outputs)."""

    outputs: np.ndarray
    """Which ones these are, shape (n_outputs,)."""

    weights: np.ndarray | None
    free: np.ndarray
    """Which entries of theta may move, shape (n_hyperparameters,)."""

    n_jobs: int | None

    units: np.ndarray
    """Rows of a unit are held out together, shape (n_samples,); see `_sets`."""

    plain: np.ndarray
    """Log of how many standard units a plain one is, for length scales: columns as they
    are, relative to a typical one; shape (n_hyperparameters,), zero for the noise."""

    has_units: bool = False
    """Whether rows of a unit are known to depend on each other."""

    screen: Candidate | None = None
    """If given, rows that others contradict by it count for next to nothing."""

    least_noise: float = NOISE_BOUNDS[0]

    def log_prior(self, theta):
        """A weak prior, minus its log, and the gradient of that.

        It holds hyperparameters of a handful of rows, that many values explain, near to
        where searches start; a hundred rows outweigh it.
        """
        if kernels.is_object(self.kernel):
            return 0.0, np.zeros(len(theta))
        center = np.full(len(theta), 0.5 * np.log(max(1, len(theta) - 1)))
        center[-1] = np.log(START_NOISE)
        width = np.full(len(theta), LENGTH_WIDTH)
        width[-1] = NOISE_WIDTH
        z = np.where(self.free, (theta - center) / width, 0.0)
        return 0.5 * float(z @ z), z / width

    def metric(self, theta):
        """What to divide rows by before measuring distances."""
        return 1.0 if kernels.is_object(self.kernel) else np.exp(theta[:-1])

    def nearest(self, queries, n_rows, theta, among=None, in_order=False):
        """Nearest rows of each query in the metric of theta, (n_queries, n_rows).

        Numbers of rows, or places in `among`, if only these rows count; ascending or
        the nearest first.
        """
        options = self.n_jobs, among, self.metric(theta), in_order
        return nearest_rows(self.X, queries, n_rows, *options)

    def weights_of(self, rows):
        """Weights of some rows, shape (n_rows,)."""
        return np.ones(len(rows)) if self.weights is None else self.weights[rows]

    def bounds(self):
        """Lowest and highest theta; what the user fixed is allowed by definition."""
        if kernels.is_object(self.kernel):
            low, high = self.kernel.bounds.T.reshape(2, -1)
        else:
            n_scales = len(self.free) - 1
            spacing = np.sqrt(12.0) * len(self.X) ** (-1.0 / max(1, n_scales))
            least = min(LENGTH_BOUNDS[0], SPACINGS * spacing)
            low, high = (
                np.full(n_scales, np.log(b)) for b in (least, LENGTH_BOUNDS[1])
            )
        low = np.append(low, np.log(self.least_noise))
        high = np.append(high, np.log(NOISE_BOUNDS[1]))
        return np.where(self.free, low, -np.inf), np.where(self.free, high, np.inf)

    def directions(self, own=None):
        """Steps in which theta may move, shape (n_hyperparameters, n_directions).

        Length scales marked in `own` move alone, all others by one common factor; None
        for all alone.
        """
        steps = np.eye(len(self.free))[:, self.free]
        if own is None or kernels.is_object(self.kernel):
            return steps
        alone = np.append(own, True) & self.free
        common = (~alone & self.free).astype(float)[:, None]
        steps = np.eye(len(self.free))[:, alone]
        return np.hstack([common, steps]) if common.any() else steps

    def has_few_rows(self):
        """Whether rows are few for the length scales that they have to determine."""
        return len(self.X) < SAFE_ROWS_PER_SCALE * self.n_scales()

    def n_scales(self):
        """How many length scales of their own the rows can determine at most."""
        n_free = int(self.free[:-1].sum())
        most = min(MOST_SCALES, len(self.X) // ROWS_PER_SCALE)
        return n_free if n_free <= most else min(FEW_SCALES, most)


class Restore(NamedTuple):
    """Back from standard units, in which constant columns do not appear."""

    used: np.ndarray
    shift: np.ndarray
    fixed: np.ndarray
    """Log hyperparameters as the user gave them, NaN elsewhere."""

    def __call__(self, theta):
        """Log hyperparameters in the units of the data, to three decimals.

        More decimals are not identified, and would hang on rounding.
        """
        full = np.full(len(self.used), np.inf)
        full[self.used] = np.round(theta + self.shift, 3)
        return np.where(np.isnan(self.fixed), full, self.fixed)

    def inverse(self, theta):
        """From the units of the data to standard ones."""
        return theta[self.used] - self.shift


def standardize(kernel, X, Y, weights, theta, n_jobs, groups=None):
    """The problem in standard units, where to start, and the way back (`Restore`).

    theta has shape (n_hyperparameters,), NaN where it is to be found; the start lacks
    the constant columns. X may be mapped: it is not copied. Rows of a group are held
    out together.
    """
    _, deviation, flat = moments_of(Y)
    outputs = np.flatnonzero(~flat)
    Y = Y[:, outputs] / deviation[outputs]
    units = units_of(len(X), groups)
    if kernels.is_object(kernel):
        # Its hyperparameters are meant in the user's units.
        free = np.append(np.ones(len(theta) - 1, bool), np.isnan(theta[-1]))
        start = np.append(theta[:-1], np.log(START_NOISE) if free[-1] else theta[-1])
        fixed = np.where(free, np.nan, theta)
        restore = Restore(np.ones(len(theta), bool), np.zeros(len(theta)), fixed)
        plain = np.zeros(len(theta))
        rows = Rows(X)
        problem = Problem(kernel, rows, Y, outputs, weights, free, n_jobs, units, plain)
        return problem, start, restore
    mean, unit, constant = typical_moments_of(X)
    # A constant column is ignored, unless the user gave it a length scale.
    used = np.append(~constant | ~np.isnan(theta[:-1]), True)
    unit = np.where(constant, 1.0, unit)
    shift = np.append(np.log(unit), 0.0)[used]
    farthest = np.where(np.isnan(theta[:-1]), FAR, np.inf)
    rows = Rows(X, unit, mean, used[:-1], (-farthest, farthest))
    free = np.isnan(theta[used])
    typical = 0.5 * np.log(max(1, rows.shape[1]))
    start = np.append(np.full(rows.shape[1], typical), np.log(START_NOISE))
    start = np.where(free, start, theta[used] - shift)
    restore = Restore(used, shift, theta)
    typical_unit = _log_root_mean_square(shift[:-1])
    plain = np.append((typical_unit - shift)[:-1], 0.0)
    parts = kernel, rows, Y, outputs, weights, free, n_jobs, units, plain
    return Problem(*parts, has_units=groups is not None), start, restore


def _log_root_mean_square(logs):
    """The log of the root mean square of numbers whose logs these are."""
    if not len(logs):
        return 0.0
    return logs.max() + 0.5 * np.log(np.mean(np.exp(2.0 * (logs - logs.max()))))


def descend_tied(problem, theta, objective, max_iter):
    """Minimise over a common factor on the free length scales, and the noise.

    The objective maps (log factor, log noise) to value and gradient; returns theta.
    """
    low, high = problem.bounds()
    start = np.clip(theta, low, high)
    lengths, is_free = start[:-1], problem.free[:-1]
    # The typical column stays within bounds; far ones are cut at them.
    middle = np.median(lengths[is_free])
    reach = [np.median(bound[:-1][is_free]) - middle for bound in (low, high)]
    # A common factor would move what the user fixed.
    moves = np.array([is_free.all(), problem.free[-1]])
    if not moves.any():
        return start
    origin = np.array([0.0, start[-1]])
    bounds = np.array([reach, (low[-1], high[-1])])[moves]

    def along(steps):
        point = origin.copy()
        point[moves] = steps
        value, gradient = objective(point)
        return value, gradient[moves]

    origin[moves] = _minimum(along, origin[moves], bounds, max_iter)
    moved = np.where(is_free, lengths + origin[0], lengths)
    return np.clip(np.append(moved, origin[1]), low, high)


def descend(problem, theta, objective, directions, max_iter):
    """Minimise along directions, within bounds; returns theta.

    The objective maps theta to value and gradient.
    """
    if directions.shape[1] == 0:
        return theta
    low, high = problem.bounds()
    start = np.clip(theta, low, high)

    def along(steps):
        value, gradient = objective(np.clip(start + directions @ steps, low, high))
        return value, directions.T @ gradient

    moves = directions != 0
    # Only where something moves: noise=0 is -inf, its bounds too.
    room = [(np.min(low[m] - start[m]), np.max(high[m] - start[m])) for m in moves.T]
    steps = _minimum(along, np.zeros(directions.shape[1]), room, max_iter)
    return np.clip(start + directions @ steps, low, high)


def _minimum(objective, start, bounds, max_iter):
    """Where L-BFGS-B ends, for an objective with value and gradient."""
    limits = {"maxiter": max_iter, "ftol": LEAST_DESCENT}
    options = {"jac": True, "bounds": bounds, "method": "L-BFGS-B", "options": limits}
    return minimize(objective, start, **options).x
