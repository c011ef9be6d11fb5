"""Compare methods on one table, by cross-validation; and the demo.

Everything, also how to encode words, is learned from the training rows of a fold.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.dummy import DummyRegressor
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV, GroupKFold, KFold
from sklearn.multioutput import MultiOutputRegressor
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

from .. import OverlappingCoverRegressor
from ..advice import COVERAGE
from ..datasets import make_pose
from ..metrics import mean_joint_error
from ..report import write_report
from ..tables import TableEncoder, needs_encoding

N_NEIGHBORS = (2, 5, 10, 20, 40)
# Trees are added until the error on a tenth of the training rows does not fall.
MOST_TREES, PATIENCE = 2000, 20


class Score(NamedTuple):
    """One method, over all folds; means over outputs that vary, in deviations."""

    method: str
    rmse: float
    rmse_spread: float  # standard deviation of the folds' own errors
    mae: float
    r2: float | None  # None where no output varies
    nlpd: float | None
    held: float | None
    fit_seconds: float  # of one fold, the median
    microseconds: float  # per row answered, without a variance
    rmse_of_outputs: list[float]
    r2_of_outputs: list[float | None]


def methods(cover: dict[str, Any], n_rows=1000) -> dict[str, Callable[[], Any]]:
    """Functions that make an estimator for `n_rows` training rows at least, by name."""
    seed, n_jobs = cover.get("random_state"), cover.get("n_jobs")
    possible = [k for k in N_NEIGHBORS if 2 * k <= n_rows]
    return {
        "odc-gp": lambda: OverlappingCoverRegressor("gp", **cover),
        "odc-tgp": lambda: OverlappingCoverRegressor("tgp", **cover),
        "knn": lambda: make_pipeline(
            StandardScaler(),
            GridSearchCV(
                KNeighborsRegressor(weights="distance", n_jobs=n_jobs),
                {"n_neighbors": possible},
                scoring="neg_mean_squared_error",
                cv=KFold(3, shuffle=True, random_state=seed),
            ),
        ),
        "ridge": lambda: make_pipeline(
            StandardScaler(), RidgeCV(np.logspace(-4, 4, 17))
        ),
        "boosting": lambda: MultiOutputRegressor(
            HistGradientBoostingRegressor(
                max_iter=MOST_TREES,
                early_stopping=True,
                n_iter_no_change=PATIENCE,
                random_state=seed,
            )
        ),
        "mean": DummyRegressor,
    }


def compare(X, Y, names, n_folds, cover, block=1, words=(), done=lambda: None):
    """Score methods on the same folds; the smallest error first."""
    splits = list(splits_of(len(X), n_folds, block, cover.get("random_state")))
    makers = methods(cover, min(len(train) for train, _ in splits))
    inputs = [encoded(X, Y, words, *split) for split in splits]
    unit = np.ones(1) if Y.shape[1] == 1 else Y.std(axis=0)
    scores = []
    for name in names:
        folds = []
        for (train, test), (X_train, X_test) in zip(splits, inputs):
            model, tables = makers[name](), (X_train, X_test, Y[train], Y[test])
            # Equal threads for all, so that seconds can be compared.
            with threadpool_limits(effective_n_jobs(cover.get("n_jobs"))):
                folds.append(score_fold(model, *tables))
            done()
        scores.append(summary(name, folds, unit))
    return sorted(scores, key=lambda score: score.rmse)


def splits_of(n_rows, n_folds, block, seed):
    """Training and test rows of every fold; a block of rows stays together."""
    blocks = np.arange(n_rows) // block
    folds = GroupKFold(n_folds, shuffle=True, random_state=seed)
    return folds.split(blocks, groups=blocks)


def encoded(X, Y, words, train, test):
    """Training and test inputs as arrays, by what the training rows tell."""
    if not (words or needs_encoding(X)):
        X = np.asarray(X)
        return X[train], X[test]
    encoder = TableEncoder(words=words)
    learned = encoder.learn(X.iloc[train], Y[train])
    return learned.to_numpy(), encoder.encode(X.iloc[test]).to_numpy()


def score_fold(model, X, X_test, Y, Y_test):
    """Squared and absolute errors, R2, NLPD, coverage of outputs; and two times."""
    mean, deviation = Y.mean(axis=0), Y.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    Z_test = (Y_test - mean) / deviation
    mean_test, *times = fit_predict(model, X, (Y - mean) / deviation, X_test)
    nlpd = held = np.full(Y.shape[1], np.nan)
    if hasattr(model, "predict_interval"):
        low, high = model.predict_interval(X_test, coverage=COVERAGE)
        held = np.mean((low <= Z_test) & (Z_test <= high), axis=0)
        nlpd = np.log(deviation) - np.mean(model.log_density(X_test, Z_test), axis=0)
    error = deviation * (Z_test - mean_test.reshape(len(X_test), -1))
    error_sq, spread = np.mean(error**2, axis=0), Y_test.var(axis=0)
    r2 = 1.0 - error_sq / np.where(spread > 0, spread, np.nan)
    mae = np.mean(np.abs(error), axis=0)
    return error_sq, mae, r2, nlpd, held, *times


def fit_predict(model, X, Y, X_test, **options):
    """Predictions, seconds of the fit, and microseconds per row answered."""
    start = time.perf_counter()
    model.fit(X, Y, **options)
    end_of_fit = time.perf_counter()
    predicted = model.predict(X_test)
    micro = 1e6 * (time.perf_counter() - end_of_fit) / len(X_test)
    return predicted, end_of_fit - start, micro


def summary(name, folds, unit) -> Score:
    """Means over folds and outputs, in their `unit`; outputs of unit 0 never vary."""
    error_sq, mae, r2, nlpd, held, seconds, micro = map(np.array, zip(*folds))
    varies = unit > 0 if unit.any() else np.ones(len(unit), bool)
    unit = np.where(unit > 0, unit, 1.0)
    rmse = np.sqrt(np.mean((error_sq / unit**2)[:, varies], axis=1))
    r2_of_outputs = [mean_or_none(column) for column in r2.T]
    return Score(
        name,
        float(np.sqrt(np.mean(rmse**2))),
        float(np.std(rmse, ddof=1)),
        float(np.mean(mae)),
        mean_or_none([value for value in r2_of_outputs if value is not None]),
        mean_or_none((nlpd - np.log(unit))[:, varies]),
        mean_or_none(held[:, varies]),
        # The first fold may compile something.
        float(np.median(seconds)),
        float(np.median(micro)),
        np.sqrt(error_sq.mean(axis=0)).tolist(),
        r2_of_outputs,
    )


def mean_or_none(values):
    """Mean of the values that are no NaN; None where there are none."""
    values = np.asarray(values, float)
    values = values[~np.isnan(values)]
    return float(np.mean(values)) if len(values) else None


SIZE = 150
# Frames that follow each other are alike: runs of so many are held out together.
RUN = 10


def run_demo(folder, n_frames, jobs, done):
    """Fit people's poses on half of every motion: data, results, report or None."""
    data = make_pose("humaneva", n_frames=n_frames, n_jobs=jobs, cache=False)
    done()
    options = {"subdomain_size": SIZE, "random_state": 0, "n_jobs": jobs}
    runs = {"groups": np.arange(len(data.X_train)) // RUN}
    methods = {
        "5 nearest neighbours": (KNeighborsRegressor(5), {}),
        "cover of GPs": (OverlappingCoverRegressor("gp", **options), runs),
        "cover of Twin GPs": (OverlappingCoverRegressor("tgp", **options), runs),
    }
    rows = (data.X_train, data.Y_train, data.X_test, data.Y_test)
    results = []
    for name, (model, fit_options) in methods.items():
        predicted, seconds, micro = fit_predict(model, *rows[:3], **fit_options)
        error = mean_joint_error(data.Y_test, predicted)
        result = {"method": name, "error": error, "fit_seconds": seconds}
        results.append(result | {"microseconds": micro})
        done()
    path, title = Path(folder) / "report.html", "Poses from silhouettes"
    try:
        report = write_report(model, path, *rows, title=title)
    except ImportError:
        report = None
    done()
    return data, results, report
