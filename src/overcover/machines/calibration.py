r"""Leave-one-out residuals: what turns a posterior variance into an honest one.

For a GP, the error at row i of a machine that never saw it is known in closed form,
:math:`\alpha_i / [A^{-1}]_{ii}`, with predicted variance :math:`1 / [A^{-1}]_{ii}` on
the kernel's scale. Their ratio squared, :math:`z_i^2 = \alpha_i^2 / [A^{-1}]_{ii}`, is
used three times:

1. its average, weighted by closeness to the query, is the *local scale* of the
   variance, so that a subdomain may be noisier on one side than on the other;
2. the mean over all rows of what is left, one *factor* per output, makes the log
   density of rows not seen as high as one factor can;
3. the distribution of what is left then gives the *half width* of intervals, so that
   tails heavier than Gaussian do not spoil their coverage.
"""

from typing import NamedTuple

import numpy as np

# Similarity to the power of four: neighbours within half a length scale decide.
SHARPNESS = 4
# The subdomain's average counts as much as this many rows at the query itself.
PRIOR_ROWS = 10.0
# Enough to read off any coverage up to 99.9 %.
LEVELS = np.concatenate([np.linspace(0.0, 0.99, 100), [0.995, 0.998, 0.999, 1.0]])


class Calibration(NamedTuple):
    """How far to trust the machines' variances."""

    factor: np.ndarray
    """Multiplies the variance of each output, shape (n_outputs,)."""

    quantiles: np.ndarray
    """Of ``|error| / std`` at `LEVELS`, shape (n_levels, n_outputs)."""


def closeness(similarity):
    """Weights of rows in the local scale, from kernel values between 0 and 1."""
    squared = similarity * similarity
    squared *= squared
    return squared


def local_scale(weights, residuals_sq, average):
    """Average of squared residuals near each query.

    Parameters
    ----------
    weights : ndarray of shape (size, n_queries)
    residuals_sq : ndarray of shape (size, n_outputs)
    average : ndarray of shape (n_outputs,)

    Returns
    -------
    ndarray of shape (n_queries, n_outputs)
    """
    scale = weights.T @ residuals_sq
    scale += PRIOR_ROWS * average
    scale /= (weights.sum(axis=0) + PRIOR_ROWS)[:, None]
    return scale


def calibrate(ratios):
    """Factor and quantiles from standardised squared residuals.

    Parameters
    ----------
    ratios : ndarray of shape (n_samples, n_outputs)
        Squared leave-one-out residuals over their predicted variances.

    Returns
    -------
    Calibration

    Examples
    --------
    Errors twice as large as predicted call for a factor of four:

    >>> calibrate(np.full((50, 1), 4.0)).factor.tolist()
    [4.0]
    """
    factor = ratios.mean(axis=0)
    factor = np.where(factor > 0, factor, 1.0)
    return Calibration(factor, np.quantile(np.sqrt(ratios / factor), LEVELS, axis=0))


def half_width(calibration, coverage):
    """Standard deviations either side of the mean that hold `coverage`.

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    return np.array(
        [np.interp(coverage, LEVELS, column) for column in calibration.quantiles.T]
    )
