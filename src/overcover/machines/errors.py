"""How errors are distributed, in units of their predicted standard deviations.

A model answers with a mean and a standard deviation. What an interval or a density
needs besides is the distribution of ``error / std``. It is an object with methods:

- `ends(coverage, std)`, standard deviations below and above the mean between which a
  central share of observations lies, as much missed below as above;
- `quantile(q, std)`, standard deviations above the mean;
- `log_density(error, std)`.

`Gaussian` errors are assumed where nothing else is known. `Calibrated` errors follow
leave-one-out residuals: their quantiles give intervals their width, and a Student t
with their tail gives the log density, so that one gross outlier costs dozens, not
thousands. Absolute residuals are twice the evidence that those of one side are. So both
sides count alike unless the signs of the residuals show that errors are skewed.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln
from scipy.stats import norm, rankdata
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
# A short end of skewed errors is no lack of width: ends are compared at this coverage.
TYPICAL = 0.9
# Scores of the signs of residuals, in their deviations if errors are symmetric: up to
# the first they count as symmetric, from the second on each side counts alone.
SYMMETRIC, SKEWED = 1.0, 2.0
# Where small residuals end and large ones begin: the rank, squared, of no score.
TURN = 0.6
# More residuals than this tell no more about their tail.
MOST_RATIOS = 5000
# Numbers worked on at a time.
BLOCK_VALUES = 2**17


class Errors:
    """What follows from the ends of central intervals."""

    def ends(self, coverage, std=None):
        """Standard deviations below and above the mean; each of broadcastable shape."""
        raise NotImplementedError

    def quantile(self, q, std=None):
        """Standard deviations above the mean that a share q of errors stays below.

        Examples
        --------
        >>> [Gaussian().quantile(q).round(2).tolist() for q in (0.025, 0.5)]
        [[-1.96], [0.0]]
        """
        below, above = self.ends(abs(2.0 * q - 1.0), std)
        return above if q >= 0.5 else -below


def gaussian_end(coverage):
    """Standard deviations on either side of the mean that hold a central share."""
    return norm.ppf(0.5 + 0.5 * coverage)


class Gaussian(Errors):
    """Errors of which nothing but their standard deviation is known."""

    def ends(self, coverage, std=None):
        """Equal half widths, shape (1,)."""
        half = np.array([gaussian_end(coverage)])
        return half, half

    def log_density(self, error, std):
        """Log density of errors given predicted deviations, all (n, n_outputs)."""
        std = np.maximum(std, np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # sure and wrong: a density of zero
            return norm.logpdf(error, scale=std)


@dataclass(frozen=True, eq=False)
class Calibrated(Errors):
    """Errors distributed as leave-one-out residuals are."""

    quantiles: np.ndarray
    """Of ``|error| / std`` at `LEVELS`, shape (n_levels, n_outputs)."""

    tail: np.ndarray
    """Degrees of freedom of a Student t, shape (n_outputs,)."""

    width: np.ndarray
    """Its scale, shape (n_outputs,)."""

    spread: np.ndarray
    """Standard deviation of the outputs, shape (n_outputs,)."""

    sides: np.ndarray
    """How far central shares at `LEVELS` go below and above zero, shape (2, n_levels,
    n_outputs)."""

    def half_width(self, coverage, std=None):
        """Standard deviations on either side that hold `coverage`; as `ends`, of one.

        No less than `LEAST_WIDTH` of those of a Gaussian. Residuals say how errors are
        distributed near the rows. The nearer a standard deviation is to that of the
        outputs, the less do most residuals being tiny mean that errors are.
        """
        half = _at(coverage, self.quantiles)
        half = np.maximum(half, LEAST_WIDTH * gaussian_end(coverage))
        return self._widened(half, coverage, std)

    def ends(self, coverage, std=None):
        """As `half_width`, for each side; an end may lie beyond the mean."""
        # A wider interval goes at least as far, also where the least width counts.
        n_less = np.searchsorted(LEVELS, coverage)
        levels = np.append(LEVELS[:n_less], coverage)
        below, above = (
            np.vstack([side[:n_less], _at(coverage, side)]) for side in self.sides
        )
        least = LEAST_WIDTH * gaussian_end(levels)[:, None]
        lack = np.maximum(least - 0.5 * (below + above), 0.0)
        below, above = (np.max(end + lack, axis=0) for end in (below, above))
        return tuple(self._widened(end, coverage, std) for end in (below, above))

    def _widened(self, end, coverage, std):
        """An end, given the standard deviations of queries, see `half_width`."""
        if std is None:
            return end
        gaussian = gaussian_end(coverage)
        lacking = (self.tail < HEAVY) & (end < gaussian)
        near = np.minimum(std / self.spread, 1.0) ** 2 * self._evenness()
        share = np.where(lacking, near, 0.0)
        wider = np.maximum(end, 0.0) ** (1.0 - share) * gaussian**share
        return np.where(end > 0, wider, end)

    def _evenness(self):
        """One where both ends are alike, zero where one is twice the other."""
        short, long = np.sort([_at(TYPICAL, side) for side in self.sides], axis=0)
        return np.maximum(2.0 * short - long, 0.0) / np.where(short > 0, short, 1.0)

    def log_density(self, error, std):
        """As `Gaussian.log_density`, under the Student t of the residuals."""
        scale = np.maximum(std * self.width, np.finfo(float).tiny)
        return _student_log_density((error / scale) ** 2, self.tail) - np.log(scale)


def quantiles_of(z, n_learned=0, evidence=None):
    """Quantiles at `LEVELS` of what another residual will be, for each column of z.

    A share L of them lies below number L (n + 1). Beyond the largest, quantiles go on
    as those of a Student t with n - 1 degrees of freedom, less hyperparameters that the
    same rows determined, the mean and the amplitude. Where residuals depend on each
    other, they are `evidence` of so many.
    """
    n = len(z)
    freedom = max(1, n - 3 - n_learned)
    columns = zip(z.T, [n] * z.shape[1] if evidence is None else evidence)
    return np.stack([_quantiles(column, freedom, m) for column, m in columns], axis=1)


def _quantiles(z, freedom, evidence):
    """Of one column of n residuals, which are evidence of so many or fewer."""
    n = len(z)
    # Number L (m + 1) of m residuals alone is as far up as this of n.
    shares = LEVELS * ((evidence + 1) * n) / (evidence * (n + 1))
    inside = np.quantile(z, np.minimum(shares, 1.0), method="weibull")
    top = evidence / (evidence + 1)
    levels = np.clip(LEVELS, top, max(top, 0.9999))
    beyond = student.ppf(0.5 + 0.5 * levels, max(1.0, freedom * evidence / n))
    return inside * (beyond / beyond[0])


def evidence_of(z, groups):
    """How many residuals alone tell as much as these, which depend on each other.

    With r the share of the variance of their ranks that lies between groups, and k the
    rows of a row's group, n residuals tell as much as n / (1 + r (k - 1)) alone.
    """
    numbers = np.unique(groups, return_inverse=True)[1].ravel()
    sizes = np.bincount(numbers)
    n, n_groups = len(z), len(sizes)
    if n_groups < 2 or n_groups == n:
        return np.full(z.shape[1], float(n))
    ranks = rankdata(z, axis=0) - 0.5 * (n + 1)
    sums = np.stack([np.bincount(numbers, column) for column in ranks.T], axis=1)
    explained = np.sum(sums**2 / sizes[:, None], axis=0)
    between = explained / (n_groups - 1)
    within = np.maximum(np.sum(ranks**2, axis=0) - explained, 0.0) / (n - n_groups)
    typical = (n - np.sum(sizes**2) / n) / (n_groups - 1)
    total = between + (typical - 1.0) * within
    share = np.divide(
        between - within, total, out=np.zeros_like(total), where=total > 0
    )
    return n / (1.0 + np.maximum(share, 0.0) * (np.sum(sizes**2) / n - 1.0))


def ends_of(z, sides, quantiles, evidence=None):
    """How far central shares at `LEVELS` go below and above, (2, n_levels, n_outputs).

    Absolute residuals z and their `quantiles_of` give both ends where the residuals may
    be symmetric; where their signs say they are not, those of each side do.
    """
    both = alike(quantiles)
    evidence = len(z) if evidence is None else evidence
    score = np.abs(asymmetry(z, sides)) * np.sqrt(evidence / len(z))
    share = np.clip((score - SYMMETRIC) / (SKEWED - SYMMETRIC), 0.0, 1.0)
    if not share.any():
        return both
    signed = z * sides
    alone = np.stack([_one_sided(-signed), _one_sided(signed)])
    return (1.0 - share) * both + share * alone


def alike(quantiles):
    """Equal ends, from quantiles of absolute residuals; the median is the mean."""
    half = quantiles.copy()
    half[0] = 0.0
    return np.stack([half, half])


def asymmetry(z, sides):
    """Whether large residuals lie on one side, and small ones on the other.

    Ranks of absolute residuals, squared, minus `TURN`, with the signs: a sum, in its
    standard deviations if each sign were that of a coin.
    """
    ranks, order = np.empty(z.shape), np.argsort(z, axis=0, kind="stable")
    np.put_along_axis(ranks, order, np.arange(1.0, len(z) + 1.0)[:, None], axis=0)
    scores = (ranks / len(z)) ** 2 - TURN
    deviation = np.sqrt(np.sum((scores * sides) ** 2, axis=0))
    total = np.sum(scores * sides, axis=0)
    return np.divide(total, deviation, out=np.zeros_like(total), where=deviation > 0)


def _one_sided(signed):
    """Upper ends of central shares, from residuals of one sign as above."""
    n = len(signed)
    inside = np.quantile(signed, 0.5 + 0.5 * LEVELS, axis=0, method="weibull")
    top, freedom = (n - 1) / (n + 1), max(1, n - 1)
    levels = np.clip(LEVELS, top, max(top, 0.9999))
    beyond = student.ppf(0.5 + 0.5 * levels, freedom)
    longer = np.maximum(beyond / max(beyond[0], 1e-300), 1.0)[:, None]
    return np.where(inside > 0, inside * longer, inside)


def _at(coverage, columns):
    """Values at `LEVELS`, shape (n_levels, n_outputs), at another level."""
    return np.array([np.interp(coverage, LEVELS, column) for column in columns.T])


def fit_students(z_sq, evidence=None):
    """Degrees of freedom and scale of the Student t that fits residuals best.

    No more is claimed than n residuals can tell: the tail is at most n - 1. Where they
    depend on each other, they are `evidence` of so many.

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
    evidence = len(z_sq) if evidence is None else evidence
    return np.minimum(tail, np.maximum(1, evidence - 1)), width


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
