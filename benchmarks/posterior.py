"""What a posterior says: is it likelier together, and do both tails miss the same?

    python benchmarks/posterior.py [--section together,tails,targets] [--quick]

"together" draws groups of four neighbouring places and gives the log density of the
true function there, per place: under the covariances of a full GP, under those of a
cover, and under its standard deviations alone. "tails" counts the test rows below and
above 95 % intervals, for outputs whose noise is and is not symmetric, and what equal
half widths would have missed. "targets" counts the same with target="auto" beside the
default, with the ends beyond the bounds of the outputs, mean log densities and RMSE;
also for flows of a river (rf1), where its file is there. Prints tables and writes
benchmarks/results/posterior_SECTION.json.
"""

import time
from contextlib import suppress
from typing import NamedTuple

import numpy as np
from scipy.stats import multivariate_normal, norm
from threadpoolctl import threadpool_limits

from _common import load_raw, print_table, run_sections
from overcover import GP, OverlappingCoverRegressor


class Settings(NamedTuple):
    """Sizes of a run."""

    n_rows: int
    n_groups: int
    seeds: tuple[int, ...]


# The tails of one fit to 600 rows differ by a standard error of about 0.6 %.
FULL, QUICK = Settings(1200, 100, tuple(range(12))), Settings(320, 5, (0,))
# How far neighbours lie apart; the function changes over lengths of about one.
DISTANCE, GROUP = 0.1, 4
# Keeps log densities of equal places finite, for every model alike.
LEAST_VARIANCE = 1e-12


def waves(X):
    """A smooth function of two columns, between -1.5 and 1.5."""
    return np.sin(2 * X[:, 0]) * np.cos(X[:, 1]) + 0.5 * np.sin(X.sum(axis=1))


# -- together --------------------------------------------------------------------------


def together(settings):
    """One row per noise and model."""
    with threadpool_limits(1):
        rows = [row for noise in (0.02, 0.2) for row in compared(noise, settings)]
    print_table("Log density of the function at neighbouring places, per place", rows)
    return rows


def compared(noise, settings):
    """The full GP and covers with its hyperparameters, on the same rows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-4, 4, (settings.n_rows, 2))
    y = waves(X) + noise * rng.normal(size=len(X))
    offsets = DISTANCE * rng.normal(size=(settings.n_groups, GROUP, 2))
    groups = rng.uniform(-4, 4, (settings.n_groups, 1, 2)) + offsets
    full = GP(random_state=0).fit(X, y)
    machine = GP(full.used_kernel_, full.length_scale_, full.noise_)
    options = {"subdomain_size": settings.n_rows // 10, "random_state": 0}
    cover = OverlappingCoverRegressor(machine, **options).fit(X, y)
    for name, model in (("full GP", full), ("cover", cover)):
        densities = np.mean([log_densities(model, group) for group in groups], axis=0)
        row = {"noise": noise, "model": name}
        yield row | {"together": densities[0], "independent": densities[1]}


def log_densities(model, places):
    """With covariances and without, for each place."""
    mean, cov = model.predict(places, return_cov=True, noise=False)
    cov = cov + LEAST_VARIANCE * np.eye(len(cov))
    alone = norm.logpdf(waves(places), mean, np.sqrt(np.diag(cov)))
    joint = multivariate_normal.logpdf(waves(places), mean, cov)
    return float(joint) / len(places), float(alone.mean())


# -- tails -----------------------------------------------------------------------------


def _bounded(f, rng):
    share = 1 / (1 + np.exp(-2.5 * f))
    return rng.beta(8 * share + 0.2, 8 * (1 - share) + 0.2)


# Outputs given the function, by what they are like.
KINDS = {
    "normal": lambda f, rng: f + 0.3 * rng.normal(size=f.shape),
    "heavy tails": lambda f, rng: f + 0.2 * rng.standard_t(4, size=f.shape),
    "skewed": lambda f, rng: f + 0.3 * rng.exponential(size=f.shape),
    "very skewed": lambda f, rng: f + 0.2 * rng.lognormal(0, 1, size=f.shape),
    "positive": lambda f, rng: np.exp(f + 0.5 * rng.normal(size=f.shape)),
    "bounded": _bounded,
    "counts": lambda f, rng: rng.poisson(np.exp(f + 0.7)).astype(float),
}


def tails(settings):
    """One row per kind of outputs and number of rows."""
    rows = []
    with threadpool_limits(1):
        for kind in KINDS:
            for n_rows in (settings.n_rows // 20, settings.n_rows // 2):
                missed = [one_fit(kind, n_rows, seed) for seed in settings.seeds]
                means = {k: np.mean([m[k] for m in missed]) for k in missed[0]}
                rows.append({"outputs": kind, "n_rows": n_rows, **means})
    print_table("Test rows below and above 95 % intervals", rows)
    return rows


def one_fit(kind, n_rows, seed, n_test=2000):
    """Shares of test rows beyond either end, and beyond ends at equal distance."""
    rng = np.random.default_rng([n_rows, seed])
    X = rng.uniform(-2, 2, (n_rows + n_test, 2))
    y = KINDS[kind](waves(X), rng)
    model = OverlappingCoverRegressor(target="identity", random_state=seed).fit(
        X[:n_rows], y[:n_rows]
    )
    X, y = X[n_rows:], y[n_rows:]
    mean, std = model.predict(X, return_std=True)
    low, high = model.predict_interval(X, 0.95)
    half = model.errors_.half_width(0.95, std[:, None])[:, 0] * std
    return {
        "below": float(np.mean(y < low)),
        "above": float(np.mean(y > high)),
        "below_equal": float(np.mean(y < mean - half)),
        "above_equal": float(np.mean(y > mean + half)),
    }


# -- targets ---------------------------------------------------------------------------

TARGETS = ("identity", "auto")
# Bounds of outputs by what they are like; none for the others.
BOUNDS = {"positive": (0, np.inf), "bounded": (0, 1), "counts": (0, np.inf)}
BOUNDS["river"] = (0, np.inf)
SITE = 5  # of the river


def targets(settings):
    """One row per kind of outputs and target."""
    kinds, n_rows = list(KINDS), settings.n_rows // 2
    with suppress(FileNotFoundError):
        load_raw("rf1")
        kinds.append("river")
    rows = []
    with threadpool_limits(1):
        for kind in kinds:
            for target in TARGETS:
                fits = [on_scale(kind, n_rows, s, target) for s in settings.seeds]
                means = {k: np.mean([fit[k] for fit in fits]) for k in fits[0]}
                rows.append({"outputs": kind, "n_rows": n_rows, "target": target})
                rows[-1] |= means
    print_table("Both tails and bounds on a scale that is chosen", rows)
    return rows


def rows_of(kind, n_rows, rng, n_test=2000):
    """Inputs and outputs, the test rows last."""
    if kind == "river":
        X, Y = load_raw("rf1")
        some = rng.permutation(len(X))[: n_rows + n_test]
        return X[some].astype(float), Y[some, SITE].astype(float)
    X = rng.uniform(-2, 2, (n_rows + n_test, 2))
    return X, KINDS[kind](waves(X), rng)


def on_scale(kind, n_rows, seed, target):
    """Shares beyond either end, of ends beyond the bounds, log density, error."""
    X, y = rows_of(kind, n_rows, np.random.default_rng([n_rows, seed]))
    model = OverlappingCoverRegressor(target=target, random_state=seed)
    start = time.perf_counter()
    model.fit(X[:n_rows], y[:n_rows])
    seconds = time.perf_counter() - start
    X, y = X[n_rows:], y[n_rows:]
    low, high = model.predict_interval(X, 0.95)
    least, most = BOUNDS.get(kind, (-np.inf, np.inf))
    return {
        "below": float(np.mean(y < low)),
        "above": float(np.mean(y > high)),
        "beyond_bounds": float(np.mean((low < least) | (high > most))),
        "log_density": float(model.log_density(X, y).mean()),
        "rmse": float(np.sqrt(np.mean((model.predict(X) - y) ** 2))),
        "changed": float(np.any(model.target_.is_changed)),
        "fit_s": seconds,
    }


def main(arguments=None):
    """Measure, print and record."""
    sections = {"together": together, "tails": tails, "targets": targets}
    settings = FULL, QUICK
    run_sections(__doc__.splitlines()[0], "posterior", sections, settings, arguments)


if __name__ == "__main__":
    main()
