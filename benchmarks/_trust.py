"""Functions on random problems and the judgement of a default fit; used by `trust`."""

import warnings
from typing import NamedTuple

import numpy as np

import _common
from overcover import OverlappingCoverRegressor
from overcover.metrics import interval_coverage


class Problem(NamedTuple):
    """Training rows, and test rows to predict."""

    name: str
    X_train: np.ndarray
    Y_train: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray


class Report(NamedTuple):
    """A fitted model, the warnings of its fit, and seconds."""

    model: object
    warnings: list[str]
    seconds: float


def default(seed, machine=None, **options):
    """The cover that a user gets who passes nothing but a seed."""
    return OverlappingCoverRegressor(machine, random_state=seed, **options)


def fit(model, X, Y, **options) -> Report:
    """Fit and collect this package's warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _, seconds = _common.timed(model.fit, X, Y, **options)
    kinds = [w.category for w in caught if "overcover" in w.category.__module__]
    return Report(model, sorted({kind.__name__ for kind in kinds}), seconds)


def rmse(truth, mean):
    """Root mean squared error over all rows and outputs."""
    return float(np.sqrt(np.mean((np.asarray(truth) - mean) ** 2)))


def holds(model, X, Y, coverage=0.95):
    """Share of outputs inside their interval."""
    return float(interval_coverage(Y, *model.predict_interval(X, coverage)))


def widths(model, X, coverage=0.95):
    """Median width of the intervals."""
    low, high = model.predict_interval(X, coverage)
    return float(np.median(high - low))


def judge(report, X, Y):
    """RMSE, NLPD, coverage, warnings and seconds of a fitted model."""
    mean, std = report.model.predict(X, return_std=True)
    return {
        "rmse": rmse(Y, mean),
        "nlpd": _common.nlpd(Y, mean, std),
        "coverage_95": holds(report.model, X, Y),
        "warnings": ", ".join(report.warnings) or "none",
        "fit_s": report.seconds,
    }


def assess(problem, seed, machine=None, **options):
    """`judge` the default on a problem."""
    report = fit(default(seed, machine), problem.X_train, problem.Y_train, **options)
    return judge(report, problem.X_test, problem.Y_test)


def split(name, X, Y, n_train, seed=0):
    """A problem of random training rows; the others are tested."""
    rows = np.random.default_rng(seed).permutation(len(X))
    train, test = rows[:n_train], rows[n_train:]
    return Problem(name, X[train], Y[train], X[test], Y[test])


def from_file(name, n_train, n_test, seed=0):
    """Random rows of a data file, in standard units; one output is a vector."""
    data = _common.load(name)
    rng = np.random.default_rng(seed)
    train = rng.permutation(len(data.X_train))[:n_train]
    test = rng.permutation(len(data.X_test))[:n_test]
    parts = data.X_train[train], data.Y_train[train]
    parts += data.X_test[test], data.Y_test[test]
    if data.Y_train.shape[1] == 1:
        parts = tuple(part[:, 0] if i % 2 else part for i, part in enumerate(parts))
    return Problem(name, *parts)


def cases(settings, names):
    """The cases of a section that this run is about: all, or those of ``--kinds``."""
    return [name for name in names if not settings.kinds or name in settings.kinds]


def smooth_function(rng, scales, n_waves=200):
    """A draw from a GP with an RBF kernel of these length scales, as a function.

    An infinite length scale is a column without effect. The variance is about one, and
    the function is defined everywhere.
    """
    frequencies = rng.normal(size=(n_waves, len(scales))) / np.asarray(scales)
    phases = rng.uniform(0, 2 * np.pi, n_waves)
    amplitudes = rng.normal(size=n_waves) * np.sqrt(2.0 / n_waves)
    return lambda X: np.cos(X @ frequencies.T + phases) @ amplitudes
