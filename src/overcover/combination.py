r"""Combination: the answers of the subdomains a query consulted become one.

    X, Y -> metric -> partition -> cover -> machines -> routing -> [combination]
    -> prediction

.. math:: \mu = \sum_i a_i \mu_i, \qquad
    \sigma^2 = \sum_i a_i (\sigma_i^2 + \mu_i^2) - \mu^2, \qquad
    a_i > 0, \ \sum_i a_i = 1 .

The variance is that of the mixture: where the consulted disagree, it grows.

A query that consults one subdomain by variance asks a few candidates; those about as
certain as the most certain share its answer, `soft_choice`, so that predictions do not
jump where one candidate overtakes another.
"""

import numpy as np

from .machines import Prediction

RULES = ("inverse-distance", "precision", "nearest")
# How sharply certainty decides between candidates: a tenth more doubt is a fifth of the
# weight. Chosen on training rows held out, `benchmarks/constants.py`.
SHARPNESS = 16


def weights_of(rule, distances, variances=None):
    """The a_i of every query.

    Parameters
    ----------
    rule : {"inverse-distance", "precision", "nearest"}
        "inverse-distance" is the paper's; a distance of zero takes all the weight.
        "precision" weighs by the inverse predictive variance, output by output.
    distances : ndarray of shape (n_queries, n_consulted)
    variances : ndarray of shape (n_queries, n_consulted, n_outputs) or None

    Returns
    -------
    ndarray of shape (n_queries, n_consulted, 1) or, for "precision", of the shape of
    `variances`

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


def combine(rule, distances, means, variances=None):
    """One prediction per query from those of the subdomains it consulted.

    Parameters
    ----------
    rule : {"inverse-distance", "precision", "nearest"}
    distances : ndarray of shape (n_queries, n_consulted)
    means : ndarray of shape (n_queries, n_consulted, n_outputs)
    variances : ndarray of means' shape or None

    Returns
    -------
    Prediction
        With `std` of None if `variances` is.
    """
    return mixture(weights_of(rule, distances, variances), means, variances)


def soft_choice(doubts, means, variances):
    r"""The most certain candidate's answer, shared with those about as certain.

    .. math:: a_i \propto (\eta_{\min} / \eta_i)^{16}

    Parameters
    ----------
    doubts : ndarray of shape (n_queries, n_candidates, 1)
        Infinite for nobody; a doubt of zero takes all the weight.
    means, variances : ndarray of shape (n_queries, n_candidates, n_outputs)

    Returns
    -------
    Prediction

    Examples
    --------
    >>> doubts = np.array([[[0.1], [0.2], [np.inf]]])
    >>> means = np.array([[[3.0], [4.0], [np.inf]]])
    >>> soft_choice(doubts, means, np.ones((1, 3, 1))).mean.round(3).tolist()
    [[3.0]]
    """
    return mixture(soft_weights(doubts), means, variances)


def soft_weights(doubts):
    """The a_i of `soft_choice`, of the shape of `doubts`; zero for nobody."""
    return _shares(_smallest_over(doubts) ** SHARPNESS)


def mixture(weights, means, variances=None):
    """Mean and std of a mixture of answers.

    Parameters
    ----------
    weights : ndarray of shape (n_queries, n_consulted, 1 or n_outputs)
        Shares: they sum to one over the consulted.
    means : ndarray of shape (n_queries, n_consulted, n_outputs)
    variances : ndarray of means' shape or None

    Returns
    -------
    Prediction
    """
    # What nobody says is infinite, and must not be multiplied with its weight of zero.
    means = np.where(weights > 0, means, 0.0)
    mean = np.sum(weights * means, axis=1)
    if variances is None:
        return Prediction(mean, None)
    # Written with deviations from the mean: no cancellation for large means.
    spread = np.where(weights > 0, variances, 0.0) + (means - mean[:, None]) ** 2
    return Prediction(mean, np.sqrt(np.sum(weights * spread, axis=1)))
