"""What tuning takes: evaluations of its losses, each timed on a few rows.

How many there are was counted; it hardly depends on the data (`overcover.tuning`).
"""

from typing import Any

import numpy as np
from sklearn.base import clone

from .. import kernels
from ..machines import AnyRegressor
from ..tuning import FEW_ROWS, LOCAL_SIZE
from ..tuning._problem import FULL_WIDTH, LEAST_LOOKED_AT
from ..tuning._search import N_ANCHORS
from ..tuning._twin_sets import N_HELD_OUT as N_TRIED
from ..tuning._twin_sets import N_SETS, SET_SIZE
from ..tuning.likelihood import negative_log_likelihood
from ..tuning.prediction_loss import prediction_loss, prediction_score
from ..tuning.twin import N_ANCHORS as TWIN_ANCHORS
from ._sizes import is_auto
from ._timing import Curve, best_of, curve_through, elapsed

# Evaluations of each loss; the last is for the likelihoods of no more than `FEW_ROWS`.
LOSSES, LIKELIHOODS, SCORES, FEW_ROWS_LIKELIHOODS = 56, 64, 12, 30
# Neighbours are found anew for every metric that is tried.
METRICS_TRIED = 8
# Trials of a Twin GP's hyperparameters, and sizes of the sets they are timed on.
TRIALS, TRIED_SIZES = 150, (200, 400, 800)
# "auto" that is not sought on data.
NOT_TUNED = ("keep_factors", "factor_dtype", "rank")


def time_tuning(asked, machine, X, Y):
    """Seconds of tuning on many rows, by size, and on a thousand; zero if none is.

    Parameters
    ----------
    asked : Machine
        As it was given.
    machine : Machine
        The same with hyperparameters.
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)

    Returns
    -------
    many : Curve
    few : float
    """
    params = asked.get_params(deep=False)
    kernel = params.get("kernel", "rbf")
    tuned = [k for k in params if is_auto(params[k]) and k not in NOT_TUNED]
    if isinstance(asked, AnyRegressor) or not (tuned or kernels.is_object(kernel)):
        return Curve((0.0,)), 0.0
    if hasattr(machine, "with_scales"):
        return _time_twin(machine, X, Y)
    few = FEW_ROWS_LIKELIHOODS * _time_likelihood(kernel, X[:FEW_ROWS], Y)
    if kernels.is_object(kernel):  # tuned on so many rows at most
        return Curve((few,)), few
    likelihood = _time_likelihood(kernel, X[:LOCAL_SIZE], Y)
    loss = _time_anchors(prediction_loss, kernel, X, Y, 51, 25)
    score = _time_anchors(prediction_score, kernel, X, Y, 257, 8)
    per_anchor = LOSSES * loss + SCORES * score
    many = per_anchor * looked_at(X.shape[1]) + LIKELIHOODS * likelihood
    n_groups = Y.shape[1] if params.get("per_output") else 1
    return Curve((n_groups * many,)), n_groups * few


def looked_at(n_features, n_anchors=N_ANCHORS):
    """Anchors that are predicted: fewer where rows are wide."""
    return max(LEAST_LOOKED_AT, n_anchors * min(1.0, FULL_WIDTH / n_features))


def _time_twin(machine, X, Y):
    trials = {size: _time_trial(machine, X, Y, size) for size in TRIED_SIZES}
    tried = {size: TRIALS * N_SETS * seconds for size, seconds in trials.items()}
    loss = _time_anchors(prediction_loss, "rbf", X, Y, 51, 25)
    relevance = LOSSES * loss * looked_at(X.shape[1], TWIN_ANCHORS)
    fixed, *others = curve_through(tried).coefficients
    many = Curve((fixed + relevance * (X.shape[1] > 1), *others))
    return many, many(SET_SIZE)


def _theta(kernel, n_features):
    """Hyperparameters of a typical machine, for the losses."""
    if kernels.is_object(kernel):
        return np.append(kernel.theta, np.log(0.05))
    return np.append(np.full(n_features, 0.5 * np.log(n_features)), np.log(0.05))


def _time_anchors(loss, kernel, X, Y, n_near, n_anchors):
    """Seconds per anchor that is predicted from its neighbours."""
    rows = np.arange(n_anchors)[:, None] + np.arange(n_near)
    sets = [(X[rows], Y[rows], np.ones(rows.shape))]
    theta = _theta(kernel, X.shape[1])
    return best_of(lambda: loss(theta, kernel, sets)) / n_anchors


def _time_likelihood(kernel, X, Y):
    """Seconds of one likelihood and its gradient."""
    centred = Y[: len(X)] - Y[: len(X)].mean(axis=0)
    theta = _theta(kernel, X.shape[1])
    return best_of(lambda: negative_log_likelihood(theta, kernel, X, centred), 1)


def _time_trial(machine, X, Y, size):
    """Seconds of trying a Twin GP on a set; every other time factors are there."""
    trial = clone(machine).with_scales(machine._scales).make_search()
    rows = trial.rows(X[:size], Y[:size], np.ones(size))
    kept: dict[tuple, Any] = {}

    def keep(key, make):
        if key not in kept:
            kept[key] = make()
        return kept[key]

    def ask():
        trial.answer_fresh(rows, X[-N_TRIED:], keep)

    return 0.5 * (elapsed(ask) + elapsed(ask))
