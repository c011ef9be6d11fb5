r"""Combination: one prediction from those of several subdomains.

    X, Y -> metric -> partition -> cover -> machines -> routing -> [combination]
    -> prediction

.. math:: \mu = \sum_i a_i \mu_i, \qquad
    \sigma^2 = \sum_i a_i (\sigma_i^2 + \mu_i^2) - \mu^2, \qquad
    a_i \ge 0, \ \sum_i a_i = 1 .

The variance is that of the mixture: it grows where subdomains disagree. The weights
:math:`a_i` follow a rule:

- "certainty": :math:`a_i \propto (\eta_{\min} / \eta_i)^{16}` with :math:`\eta_i` the
  posterior variance of subdomain i. The most certain subdomain decides, but predictions
  do not jump where another one overtakes it;
- "inverse-distance": :math:`a_i \propto 1 / d_i`, the paper's rule, with the distances
  of the router; posterior standard deviations where certainty decides who answers;
- "precision": :math:`a_i \propto 1 / \sigma_i^2`, output by output;
- "nearest": the nearest alone, that is the most certain where certainty decides.
"""

import numpy as np

from .machines import Prediction

RULES = ("certainty", "inverse-distance", "precision", "nearest")
# Rules for which machines need a variance.
NEED_VARIANCE = ("certainty", "precision")
# How sharply certainty decides between candidates: a tenth more posterior variance is a
# fifth of the weight. Chosen on training rows held out, `benchmarks/constants.py`.
SHARPNESS = 16


def weights_of(rule, distances, variances=None, certainties=None):
    """The a_i of every query; a distance or variance of zero takes all the weight.

    Parameters
    ----------
    rule : one of `RULES`
    distances : ndarray of shape (n_queries, n_consulted)
        Nearest first.
    variances : ndarray of shape (n_queries, n_consulted, n_outputs) or None
        Predictive variances, for "precision": the shape of the result, which else is
        that of `certainties`.
    certainties : ndarray of shape (n_queries, n_consulted, 1) or None
        Posterior variances, for "certainty"; infinite for no candidate.

    Examples
    --------
    >>> weights_of("inverse-distance", np.array([[1.0, 3.0], [0.0, 5.0]]))[..., 0]
    array([[0.75, 0.25],
           [1.  , 0.  ]])
    """
    if rule == "nearest" or distances.shape[1] == 1:
        weights = np.zeros((*distances.shape, 1))
        weights[:, 0] = 1.0
        return weights
    if rule == "certainty":
        return _shares(_smallest_over(certainties) ** SHARPNESS)
    spread = distances[..., None] if rule == "inverse-distance" else variances
    return _shares(_smallest_over(spread))


def _smallest_over(values):
    """The smallest of each query over every value, shape as `values`.

    Neither 1e-200 nor 1e200 overflows; where the smallest is zero, one for zeros and
    zero for all else.
    """
    smallest = values.min(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(smallest > 0, smallest / values, values == 0)


def _shares(weights):
    return weights / weights.sum(axis=1, keepdims=True)


def mixture(weights, means, variances=None) -> Prediction:
    """Mean and std of a mixture of answers; without variances, the std is None.

    Parameters
    ----------
    weights : ndarray of shape (n_queries, n_consulted, 1 or n_outputs)
    means, variances : ndarray of shape (n_queries, n_consulted, n_outputs)
    """
    # Where there is no candidate the mean is infinite and the weight zero: the product
    # would be NaN.
    means = np.where(weights > 0, means, 0.0)
    mean = np.sum(weights * means, axis=1)
    if variances is None:
        return Prediction(mean, None)
    # Written with deviations from the mean: no cancellation for large means.
    spread = np.where(weights > 0, variances, 0.0) + (means - mean[:, None]) ** 2
    return Prediction(mean, np.sqrt(np.sum(weights * spread, axis=1)))
