"""Compare methods on one table, by cross-validation."""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from .. import OverlappingCoverRegressor

COVERAGE = 0.95
N_NEIGHBORS = 10


class Score(NamedTuple):
    """One method, over all folds."""

    method: str
    rmse: float
    """Root mean squared error, outputs in units of their deviation."""

    r2: float
    """Mean over the outputs."""

    held: float | None
    """Share of outputs inside 95 % intervals; None for a method without any."""

    fit_seconds: float
    """Of one fold, on average."""

    microseconds: float
    """Per row answered."""


def methods(cover: dict[str, Any]) -> dict[str, Callable[[], Any]]:
    """What is compared: a maker of a fresh estimator, by name.

    Parameters
    ----------
    cover : dict
        Options of `OverlappingCoverRegressor`.
    """
    seed = cover.get("random_state")
    return {
        "odc-gp": lambda: OverlappingCoverRegressor("gp", **cover),
        "odc-tgp": lambda: OverlappingCoverRegressor("tgp", **cover),
        "knn": lambda: make_pipeline(
            StandardScaler(), KNeighborsRegressor(N_NEIGHBORS, weights="distance")
        ),
        "ridge": lambda: make_pipeline(
            StandardScaler(), RidgeCV(np.logspace(-4, 4, 17))
        ),
        "boosting": lambda: MultiOutputRegressor(
            HistGradientBoostingRegressor(random_state=seed)
        ),
    }


def compare(X, Y, names, n_folds, cover, done=lambda: None):
    """Score methods on the same folds.

    Errors are in units of the training outputs' deviation, so that outputs of any scale
    count alike.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    names : sequence of str
        Of `methods`.
    n_folds : int
    cover : dict
        Options of `OverlappingCoverRegressor`.
    done : callable
        Called after every fold of every method.

    Returns
    -------
    list of Score
        The smallest error first.
    """
    makers = methods(cover)
    folds = KFold(n_folds, shuffle=True, random_state=cover.get("random_state"))
    splits = list(folds.split(X))
    scores = []
    for name in names:
        parts = []
        for train, test in splits:
            # Equal threads for all, so that seconds can be compared.
            with threadpool_limits(effective_n_jobs(cover.get("n_jobs"))):
                parts.append(score_fold(makers[name](), X, Y, train, test))
            done()
        error_sq, r2, held, seconds, micro = zip(*parts)
        scores.append(
            Score(
                name,
                float(np.sqrt(np.mean(error_sq))),
                float(np.mean(r2)),
                None if held[0] is None else float(np.mean(held)),
                float(np.mean(seconds)),
                float(np.mean(micro)),
            )
        )
    return sorted(scores, key=lambda score: score.rmse)


def score_fold(model, X, Y, train, test):
    """Mean squared error, R^2, coverage, seconds, microseconds of one fold."""
    mean, std = Y[train].mean(axis=0), Y[train].std(axis=0)
    std = np.where(std > 0, std, 1.0)
    Z = (Y - mean) / std
    started = time.perf_counter()
    model.fit(X[train], Z[train])
    fitted = time.perf_counter()
    said = model.predict(X[test]).reshape(len(test), -1)
    answered = time.perf_counter()
    held = None
    if hasattr(model, "predict_interval"):
        low, high = model.predict_interval(X[test], coverage=COVERAGE)
        held = np.mean((low <= Z[test]) & (Z[test] <= high))
    error_sq = np.mean((Z[test] - said) ** 2, axis=0)
    spread = Z[test].var(axis=0)
    r2 = np.mean(1.0 - error_sq / np.where(spread > 0, spread, 1.0))
    micro = 1e6 * (answered - fitted) / len(test)
    return np.mean(error_sq), r2, held, fitted - started, micro
