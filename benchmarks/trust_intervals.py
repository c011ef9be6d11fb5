"""Intervals on later rows, in gaps, far away and on few rows; sections of `trust`."""

import warnings

import numpy as np
from scipy.linalg import cholesky
from sklearn.datasets import make_friedman1
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

import _trust
from _common import note, print_table
from _trust import Problem, smooth_function

# -- logs: rows in sequence ------------------------------------------------------------


def logs(settings):
    """Later rows of simulated logs, and the same rows shuffled."""
    rows = []
    for name in _trust.cases(settings, LOGS):
        for seed in settings.seeds[:2]:
            rows += log_rows(name, settings.n_rows, seed)
            print_table(f"{name}, seed {seed}", rows[-2:])
    return rows


def log_rows(name, n_rows, seed):
    """The default on later rows; on shuffled rows also with every row a group."""
    note(f"{name}, seed {seed}")
    rng = np.random.default_rng([2, seed])
    X, y = LOGS[name](rng, n_rows + n_rows // 2)
    later = Problem(name, X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])
    shuffled = _trust.split(name, X, y, n_rows, seed)
    ordered = _trust.assess(later, seed)
    random = _trust.assess(shuffled, seed)
    alone = _trust.assess(shuffled, seed, groups=np.arange(n_rows))
    known = {"case": name, "seed": seed}
    return [
        known | {"rows": "later"} | ordered,
        known
        | {"rows": "shuffled"}
        | random
        | {"ratio": random["rmse"] / alone["rmse"]},
    ]


def autoregression(rng, n_rows, memory, n_columns=1):
    """Stationary series of variance one, x_t = memory * x_{t-1} + noise."""
    x = rng.normal(size=(n_rows, n_columns))
    x[1:] *= np.sqrt(1 - memory**2)
    for t in range(1, n_rows):
        x[t] += memory * x[t - 1]
    return x


def autoregressive_log(memory):
    """Inputs and noise are autoregressions with the same memory."""

    def make(rng, n_rows):
        X = autoregression(rng, n_rows, memory, 3)
        noise = 0.3 * autoregression(rng, n_rows, memory)[:, 0]
        return X, smooth_function(rng, [1.5, 2.0, np.inf])(X) + noise

    return make


def drifting_sensor(rng, n_rows):
    """A function of slow inputs, white noise, and a drift as large as the noise."""
    X = autoregression(rng, n_rows, 0.95, 3)
    drift = 0.01 * np.cumsum(rng.normal(size=n_rows))
    noise = 0.1 * rng.normal(size=n_rows)
    return X, smooth_function(rng, [1.5, 2.0, np.inf])(X) + drift + noise


LOGS = {
    "AR(.9)": autoregressive_log(0.9),
    "AR(.99)": autoregressive_log(0.99),
    "drifting sensor": drifting_sensor,
}

# -- gaps and far away -----------------------------------------------------------------


def gaps(settings):
    """A fifth of a feature held out, and queries far from all rows."""
    rows = []
    for name in _trust.cases(settings, GAPS):
        for seed in settings.seeds[:1]:
            rows.append(gap_row(name, settings, seed))
            print_table(f"Gap, {name}", rows[-1:])
    for name in _trust.cases(settings, FUNCTIONS):
        for seed in settings.seeds[:1]:
            rows.append(far_row(name, settings, seed))
            print_table(f"Far, {name}", rows[-1:])
    return rows


def gap_row(name, settings, seed):
    """Coverage in the middle fifth of a column that training rows do not have."""
    note(f"gap, {name}, seed {seed}")
    X, y, column = GAPS[name](settings, seed)
    low, high = np.quantile(X[:, column], [0.4, 0.6])
    in_gap = (X[:, column] > low) & (X[:, column] < high)
    X_gap, y_gap = X[in_gap][:1000], y[in_gap][:1000]
    outside = _trust.split(name, X[~in_gap], y[~in_gap], settings.n_rows, seed)
    report = _trust.fit(_trust.default(seed), outside.X_train, outside.Y_train)
    nu = SMOOTHNESS[report.model.machine_.used_kernel_]
    full = full_gp(outside.X_train, outside.Y_train, nu, settings)
    wide, between = (
        _trust.widths(report.model, X) / full_width(full, X)
        for X in (X_gap, outside.X_test)
    )
    reference, std = full.predict(X_gap, return_std=True)
    return {
        "case": f"gap: {name}",
        "seed": seed,
        "coverage_95": _trust.holds(report.model, X_gap, y_gap),
        "coverage_full": float(np.mean(np.abs(y_gap - reference) < 1.96 * std)),
        "coverage_beside": _trust.holds(report.model, outside.X_test, outside.Y_test),
        "rmse": _trust.rmse(y_gap, report.model.predict(X_gap)),
        "rmse_full": _trust.rmse(y_gap, reference),
        "width_ratio": wide,
        "width_ratio_beside": between,
        "warnings": ", ".join(report.warnings) or "none",
        "fit_s": report.seconds,
    }


def full_gp(X, y, nu, settings):
    """scikit-learn's GP on all rows, its likelihood maximised on some of them."""
    some = np.random.default_rng(0).permutation(len(X))[: settings.n_full]
    units = X.std(axis=0) * np.sqrt(X.shape[1])
    bounds = np.outer(units, [1e-2, 1e4])
    kernel = ConstantKernel(1.0, (1e-2, 1e2)) * Matern(units, bounds, nu=nu)
    kernel += WhiteKernel(1e-2, (1e-8, 10.0))
    tuned = GaussianProcessRegressor(kernel, alpha=1e-8, normalize_y=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        learned = tuned.fit(X[some], y[some]).kernel_
    full = GaussianProcessRegressor(
        learned, alpha=1e-8, optimizer=None, normalize_y=True
    )
    return full.fit(X, y)


def full_width(model, X):
    """Median width of 95 % intervals."""
    return float(np.median(3.92 * model.predict(X, return_std=True)[1]))


def far_row(name, settings, seed):
    """Coverage beyond three length scales from all rows, and widths over the spread."""
    note(f"far, {name}, seed {seed}")
    rng = np.random.default_rng([3, seed])
    function, d, noise = FUNCTIONS[name](rng)
    X = rng.uniform(-2, 2, (settings.n_rows, d))
    y = function(X) + noise * rng.normal(size=len(X))
    report = _trust.fit(_trust.default(seed), X, y)
    scales = np.atleast_2d(report.model.length_scales_)[0]
    relevant = np.minimum(scales, 4.0)
    directions = rng.normal(size=(1000, d))
    directions /= np.abs(directions).max(axis=1, keepdims=True)
    far = directions * (2.0 + rng.uniform(3, 6, (1000, 1)) * relevant)
    truth = function(far) + noise * rng.normal(size=len(far))
    mean, std = report.model.predict(far, return_std=True)
    return {
        "case": f"far: {name}",
        "seed": seed,
        "coverage_95": _trust.holds(report.model, far, truth),
        "rmse_over_spread": _trust.rmse(truth, mean) / y.std(),
        "std_over_spread": float(np.median(std)) / y.std(),
        "width_over_spread": _trust.widths(report.model, far) / (3.92 * y.std()),
        "warnings": ", ".join(report.warnings) or "none",
        "fit_s": report.seconds,
    }


def function_gap(make):
    """Rows of one of `FUNCTIONS`, its first column with a gap."""

    def rows(settings, seed):
        rng = np.random.default_rng([4, seed])
        function, d, noise = make(rng)
        X = rng.uniform(-2, 2, (3 * settings.n_rows, d))
        return X, function(X) + noise * rng.normal(size=len(X)), 0

    return rows


def friedman(noise):
    """Friedman's first function, without its useless columns; a gap in the fourth."""

    def rows(settings, seed):
        X, y = make_friedman1(3 * settings.n_rows, 5, noise=noise, random_state=seed)
        return X, y, 3

    return rows


def file_gap(name, column):
    """Random rows of a data file."""

    def rows(settings, seed):
        problem = _trust.from_file(name, 3 * settings.n_rows, 0, seed)
        return problem.X_train, problem.Y_train, column

    return rows


FUNCTIONS = {
    "sine 1-D without noise": lambda rng: (lambda X: np.sin(3 * X[:, 0]), 1, 0.0),
    "waves 2-D without noise": lambda rng: (smooth_function(rng, [0.6, 0.8]), 2, 0.0),
    "waves 4-D without noise": lambda rng: (smooth_function(rng, [1.5] * 4), 4, 0.0),
    "waves 2-D with noise .1": lambda rng: (smooth_function(rng, [0.6, 0.8]), 2, 0.1),
    "waves 4-D with noise .5": lambda rng: (smooth_function(rng, [1.5] * 4), 4, 0.5),
    "step 2-D without noise": lambda rng: (
        lambda X: np.tanh(4 * X[:, 0]) + 0.5 * np.sin(2 * X[:, 1]),
        2,
        0.0,
    ),
}
GAPS = {
    "sine 1-D without noise": function_gap(FUNCTIONS["sine 1-D without noise"]),
    "waves 2-D without noise": function_gap(FUNCTIONS["waves 2-D without noise"]),
    # Its errors in the gap are tiny, and the intervals were tinier.
    "slow waves 2-D without noise": function_gap(
        lambda rng: (smooth_function(rng, [1.0, 1.5]), 2, 0.0)
    ),
    "friedman1 without noise": friedman(0.0),
    "friedman1 with noise 1": friedman(1.0),
    "kin40k": file_gap("kin40k", 2),
    "protein": file_gap("protein", 0),
}

# The kernel of the reference is the one that the cover chose.
SMOOTHNESS = {"rbf": np.inf, "matern52": 2.5, "matern32": 1.5, "matern12": 0.5}

# -- small: few rows from the model ----------------------------------------------------


def small(settings):
    """Coverage on few rows, drawn from a GP with random hyperparameters."""
    rows = []
    for n_rows in settings.small_sizes:
        inside: dict[float, list[float]] = {0.95: [], 0.99: []}
        noises, warned = [], 0
        for i in range(settings.n_repeats):
            problem = drawn_rows(n_rows, np.random.default_rng([n_rows, i]))
            report = _trust.fit(_trust.default(i), problem.X_train, problem.Y_train)
            noises.append(float(report.model.machine_.noise_))
            warned += bool(report.warnings)
            for level, shares in inside.items():
                test = problem.X_test, problem.Y_test
                shares.append(_trust.holds(report.model, *test, level))
        row = {"n_rows": n_rows, "n_repeats": settings.n_repeats}
        for level, shares in inside.items():
            row[f"coverage_{level:.0%}".rstrip("%")] = float(np.mean(shares))
        error = np.std(inside[0.95]) / np.sqrt(settings.n_repeats)
        row |= {"standard_error": float(error), "warned": warned / settings.n_repeats}
        row["below_half"] = float(np.mean(np.array(inside[0.95]) < 0.5))
        row["least_noise"] = float(np.mean(np.array(noises) < 1e-6))
        rows.append(row)
        print_table("Few rows", rows)
    return rows


def drawn_rows(n_rows, rng, n_test=50):
    """Rows of a GP: one to three columns, Matern-3/2 or RBF, noise .03 to .5."""
    d, scale = int(rng.integers(1, 4)), float(np.exp(rng.uniform(-1, 0.7)))
    noise = float(np.exp(rng.uniform(np.log(0.03), np.log(0.5))))
    X = rng.uniform(-2, 2, (n_rows + n_test, d))
    kernel = Matern(scale * np.sqrt(d), nu=rng.choice([1.5, np.inf]))
    K = kernel(X) + (noise**2 + 1e-9) * np.eye(len(X))
    y = cholesky(K, lower=True) @ rng.normal(size=len(X)) + rng.normal()
    return Problem("drawn", X[:n_rows], y[:n_rows], X[n_rows:], y[n_rows:])
