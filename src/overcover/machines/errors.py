"""How errors are distributed, in units of their predicted standard deviations.

A model answers with a mean and a standard deviation. What an interval or a density
needs besides is the distribution of ``error / std``. It is an object with two methods:

- `half_width(coverage, std)`, standard deviations on either side of the mean;
- `log_density(error, std)`.

`Gaussian` errors are assumed where nothing else is known. `Calibrated` errors follow
leave-one-out residuals: their quantiles give intervals their width, and a Student t
with their tail gives the log density, so that one gross outlier costs dozens, not
thousands.
"""

from typing import NamedTuple

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm
from scipy.stats import t as student

# Enough to read off any coverage up to 99.9 %.
LEVELS = np.concatenate([np.linspace(0.0, 0.99, 100), [0.995, 0.998, 0.999, 1.0]])
# Degrees of freedom tried; the last is Gaussian for all that can be told.
TAILS = (2.1, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 8.0, 10.0, 15.0, 25.0, 50.0, 1000.0)
# Intervals are at least this share of Gaussian ones. Where the function has no noise, a
# few residuals at the border of the rows make the variance, and quantiles of the others
# would leave no width at all to an interval away from the rows.
LEAST_WIDTH = 0.5
# Residuals with fewer degrees of freedom are mostly tiny, with a few that are large.
HEAVY = 10.0
# More residuals than this tell no more about their tail.
MOST_RATIOS = 5000
# Numbers worked on at a time.
BLOCK_VALUES = 2**17


class Gaussian:
    """Errors of which nothing but their standard deviation is known."""

    def half_width(self, coverage, std=None):
        """Standard deviations on either side of the mean that hold `coverage`.

        Shape (1,); other distributions need `std`, of shape (n, n_outputs).

        Examples
        --------
        >>> Gaussian().half_width(0.95).round(2).tolist()
        [1.96]
        """
        return np.array([norm.ppf(0.5 + 0.5 * coverage)])

    def log_density(self, error, std):
        """Log density of errors given predicted deviations, all (n, n_outputs)."""
        std = np.maximum(std, np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # sure and wrong: a density of zero
            return norm.logpdf(error, scale=std)


class Calibrated(NamedTuple):
    """Errors distributed as leave-one-out residuals are."""

    quantiles: np.ndarray
    """Of ``|error| / std`` at `LEVELS`, shape (n_levels, n_outputs)."""

    tail: np.ndarray
    """Degrees of freedom of a Student t, shape (n_outputs,)."""

    width: np.ndarray
    """Its scale, shape (n_outputs,)."""

    spread: np.ndarray
    """Standard deviation of the outputs, shape (n_outputs,)."""

    def half_width(self, coverage, std=None):
        """As `Gaussian.half_width`, for every output; shape (n_outputs,).

        No less than `LEAST_WIDTH` of those of a Gaussian. Residuals say how errors are
        distributed near the rows. The nearer a standard deviation is to that of the
        outputs, the less do most residuals being tiny mean that errors are.
        """
        columns = self.quantiles.T
        half = np.array([np.interp(coverage, LEVELS, column) for column in columns])
        gaussian = Gaussian().half_width(coverage)
        half = np.maximum(half, LEAST_WIDTH * gaussian)
        if std is None:
            return half
        lacking = (self.tail < HEAVY) & (half < gaussian)
        share = np.where(lacking, np.minimum(std / self.spread, 1.0) ** 2, 0.0)
        return half ** (1.0 - share) * gaussian**share

    def log_density(self, error, std):
        """As `Gaussian.log_density`, under the Student t of the residuals."""
        scale = np.maximum(std * self.width, np.finfo(float).tiny)
        return _student_log_density((error / scale) ** 2, self.tail) - np.log(scale)


def quantiles_of(z, n_learned=0):
    """Quantiles at `LEVELS` of what another residual will be, columns alone.

    The next residual is as likely to fall between any two of n as between any others,
    so that a share L of them lies below number L (n + 1); beyond the largest, quantiles
    go on as those of a Student t with n - 1 degrees of freedom, less the number of
    hyperparameters that the same rows determined. z of shape (n, n_outputs), not
    negative.
    """
    n = len(z)
    inside = np.quantile(z, LEVELS, axis=0, method="weibull")
    top, freedom = n / (n + 1), max(1, n - 1 - n_learned)
    levels = np.clip(LEVELS, top, max(top, 0.9999))
    beyond = student.ppf(0.5 + 0.5 * levels, freedom)
    return inside * (beyond / beyond[0])[:, None]


def fit_students(z_sq):
    """Degrees of freedom and scale of the Student t that fits residuals best.

    No more is claimed than n residuals can tell: the tail is at most n - 1.

    Examples
    --------
    >>> z = np.random.default_rng(0).standard_t(4, (4000, 1))
    >>> tail, width = fit_students(z**2)
    >>> tail.tolist(), width.round(1).tolist()
    ([4.0], [1.0])
    """
    sample = np.ascontiguousarray(z_sq[:: 1 + len(z_sq) // MOST_RATIOS].T)
    step = max(1, BLOCK_VALUES // (len(TAILS) * sample.shape[1]))
    blocks = [sample[i : i + step] for i in range(0, len(sample), step)]
    tail, width = np.hstack([_best_students(block) for block in blocks])
    return np.minimum(tail, max(1, len(z_sq) - 1)), width


def _best_students(z_sq):
    """Tails and widths, from squared residuals of shape (n_outputs, n)."""
    tails = np.array(TAILS)[:, None, None]
    scale_sq = np.mean(z_sq, axis=1, keepdims=True) + 1e-300
    for _ in range(20):  # expectation-maximisation, in closed form, of all tails
        weighted = z_sq * (tails + 1) / (tails + z_sq / scale_sq)
        scale_sq = np.mean(weighted, axis=2, keepdims=True) + 1e-300
    log_density = _student_log_density(z_sq / scale_sq, tails)
    loss = 0.5 * np.log(scale_sq[..., 0]) - np.mean(log_density, axis=2)
    best = np.argmin(loss, axis=0)
    return np.array(TAILS)[best], np.sqrt(scale_sq[best, np.arange(len(best)), 0])


def _student_log_density(z_sq, tail):
    constant = gammaln(0.5 * (tail + 1)) - gammaln(0.5 * tail)
    constant = constant - 0.5 * np.log(tail * np.pi)
    return constant - 0.5 * (tail + 1) * np.log1p(z_sq / tail)
