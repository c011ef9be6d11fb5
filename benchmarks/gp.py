"""GP on a cover: speed against the NN scheme, routers, overlap, memory.

    python benchmarks/gp.py [--data kin40k,protein] [--section nn,routers] [--quick]

Prints a table per section and writes benchmarks/results/gp_SECTION.json. Errors
are in standardised units. Numbers that are compared come from one process and one run.
"""

import argparse
import tempfile
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import _common
from _common import interleaved, note, print_table, watched_memory
from overcover import GP, OverlappingCoverRegressor
from overcover.baselines import NeighborhoodRegressor
from overcover.routing import ROUTERS

# -- definitions -----------------------------------------------------------------------


class Settings(NamedTuple):
    """Sizes of a run."""

    n_train: int | None
    n_test: int | None
    subdomain_size: int
    n_neighbors: int
    n_scheme_rows: int
    """Test rows that the NN scheme predicts; each takes milliseconds."""

    n_repeats: int
    n_copies: int
    """Size of the large batch, as a multiple of the test set."""

    n_memory_rows: tuple[int, ...]
    n_jobs: int
    n_seeds: int
    """Number of partitions in the mean error against the NN scheme."""

    n_varied: int
    """Training rows where one option after the other changes."""


FULL = Settings(None, None, 800, 400, 500, 2, 10, (10**4, 10**5), 2, 3, 8000)
QUICK = Settings(600, 200, 100, 50, 50, 1, 2, (500, 1000), 2, 2, 600)

OVERLAPS = (0.0, 0.5, 0.9, 0.95)


def cover_of(machine, settings, **options):
    """A cover with defaults for all other parameters."""
    options = {"n_jobs": settings.n_jobs, "random_state": _common.SEED} | options
    size = settings.subdomain_size
    return OverlappingCoverRegressor(machine, subdomain_size=size, **options)


@cache
def problem(name, settings):
    """A data set, cut to size."""
    return _common.load(name).first(settings.n_train, settings.n_test)


@cache
def tuned_machine(name, settings):
    """A GP with fixed hyperparameters, those that the cover learns on this data."""
    note(f"{name}: hyperparameters")
    data, machine = problem(name, settings), GP(per_output=False)
    size, rng = settings.subdomain_size, np.random.RandomState(_common.SEED)
    X, Y = _common.distinct_rows(data.X_train, data.Y_train)
    machine.tune(X, Y, None, size, rng, settings.n_jobs)
    return fixed(machine)


def fixed(machine):
    """A GP with the hyperparameters of a tuned one, those that most outputs have."""
    theta = machine.theta_[np.bincount(machine.output_groups_).argmax()]
    return GP(machine.used_kernel_, np.exp(theta[:-1]), float(np.exp(theta[-1])))


def training_flops(model):
    """Kernel matrix, Cholesky factor and its inverse, of every subdomain."""
    size, n_features = model.states_[0].X.shape
    each = 2.0 * size**2 * n_features + size**3 / 3 + size**3 / 3
    return model.n_subdomains_ * each


def prediction_flops(model, n_answers):
    """Operations of kernel values and triangular products of all predictions."""
    size, n_features = model.states_[0].X.shape
    return n_answers * (2.0 * size * n_features + size * (size + 1))


def answers_of(model, X):
    """The number of pairs of a query and a candidate."""
    X_metric = X / model.length_scales_
    subdomains = model.router_.route(X_metric, model.n_consulted).subdomains
    return int(np.sum(subdomains >= 0))


# -- one model ------------------------------------------------------------------------


def assessed(label, model, data, tested=slice(None)):
    """Fit and measure one contender; a row of the table, and the fitted model."""
    note(f"{data.name}: {label}")
    X, Y = data.X_test[tested], data.Y_test[tested]
    with watched_memory() as memory:
        _, seconds = _common.timed(model.fit, data.X_train, data.Y_train)
        scores = _common.assess(model, X, Y)
    peak = (memory.peak - memory.start) / 2**20
    row = {"data": data.name, "method": label, "n_test": len(X), "fit_s": seconds}
    return row | scores | {"peak_mb": peak, "note": ""}, model


# -- against the NN scheme -------------------------------------------------------------


def against_scheme(names, settings):
    """Seconds per query with std, one thread each, and the share of the GEMM rate."""
    with threadpool_limits(1):
        rows = [scheme_row(name, settings) for name in names]
    print_table("Against the NN scheme, mean and std, one thread", rows)
    return rows


def scheme_row(name, settings):
    """One data set: both systems with the same hyperparameters, interleaved."""
    data, machine = problem(name, settings), tuned_machine(name, settings)
    note(f"{name}: cover against NN scheme")
    model = cover_of(machine, settings)
    model.fit(data.X_train, data.Y_train).set_params(n_jobs=1)
    scheme = NeighborhoodRegressor(machine, settings.n_neighbors, n_jobs=1)
    scheme.fit(data.X_train, data.Y_train)
    some = data.some_test_rows(settings.n_scheme_rows)
    batches = {
        "cover": (model, data.X_test),
        "cover_large": (model, jittered(data.X_test, settings.n_copies)),
        "nn": (scheme, data.X_test[some]),
    }
    seconds = interleaved(
        {
            label: lambda m=m, X=X: m.predict(X, return_std=True)
            for label, (m, X) in batches.items()
        },
        settings.n_repeats,
    )
    us = {label: 1e6 * seconds[label] / len(X) for label, (_, X) in batches.items()}
    error_nn = error_of(scheme.set_params(n_jobs=settings.n_jobs), data)
    # The error varies by some per cent between partitions.
    errors = [error_of(model, data)]
    for seed in range(1, settings.n_seeds):
        other = clone(model).set_params(random_state=seed, n_jobs=settings.n_jobs)
        errors.append(error_of(other.fit(data.X_train, data.Y_train), data))
    return {
        "data": name,
        "us_cover": us["cover"],
        "us_cover_large": us["cover_large"],
        "us_nn": us["nn"],
        "speed_up": us["nn"] / us["cover"],
        "speed_up_large": us["nn"] / us["cover_large"],
        "rmse_cover": float(np.mean(errors)),
        "rmse_nn": error_nn,
        "rmse_ratio": float(np.mean(errors)) / error_nn,
        "rmse_ratios": [error / error_nn for error in errors],
        **gemm_shares(model, seconds, batches),
        "n_nn_rows": len(some),
    }


def error_of(model, data):
    """RMSE on the test rows, mean over outputs."""
    return float(_common.rmse(data.Y_test, model.predict(data.X_test)).mean())


def gemm_shares(model, seconds, batches):
    """FLOP/s of training and prediction, divided by those of plain matrix products."""
    size = len(model.states_[0].X)
    rate = training_flops(model) / model.timings_["machines"]
    shares = {"gemm_share_train": rate / _common.gemm_rate(size, size)}
    for label in ("cover", "cover_large"):
        n_answers = answers_of(model, batches[label][1])
        per_subdomain = max(1, round(n_answers / model.n_subdomains_))
        dtype = model.states_[0].factor.dtype
        plain = _common.gemm_rate(size, per_subdomain, dtype=dtype)
        rate = prediction_flops(model, n_answers) / seconds[label]
        shares[f"gemm_share_{label}"] = rate / plain
        shares[f"gemm_columns_{label}"] = per_subdomain
    return shares


def jittered(X, n_copies):
    """Copies of the rows of X, shifted by a hundredth of a standard deviation."""
    many = np.tile(X, (n_copies, 1))
    return many + 0.01 * np.random.default_rng(_common.SEED).normal(size=many.shape)


# -- routers, overlap ------------------------------------------------------------------


def routers(names, settings):
    """All routers on the same hyperparameters and the same cover."""
    rows = [varied(name, settings, router=r) for name in names for r in ROUTERS]
    print_table("Routers", rows, VARIED_COLUMNS)
    return rows


def overlaps(names, settings):
    """Overlap on the first data set, under the paper's router and ours."""
    rows = [
        varied(names[0], settings, router=router, overlap=overlap)
        for router in ("mahalanobis", "variance")
        for overlap in OVERLAPS
    ]
    print_table("Overlap", rows, VARIED_COLUMNS)
    return rows


VARIED_COLUMNS = (
    *("data", "router", "overlap", "rmse", "nlpd", "coverage_95"),
    *("us_mean", "us_std", "fit_s", "n_subdomains", "n_lenders"),
)


def varied(name, settings, **options):
    """A row for the default model with one option changed, hyperparameters fixed."""
    settings = settings._replace(n_train=settings.n_varied)
    data, machine = problem(name, settings), tuned_machine(name, settings)
    model = cover_of(machine, settings, **options)
    label = " ".join(f"{key}={value}" for key, value in options.items())
    row, model = assessed(label, model, data)
    used = {key: getattr(model, key) for key in ("router", "overlap")}
    counts = {"n_subdomains": model.n_subdomains_, "n_lenders": model.n_lenders_}
    return row | used | counts


# -- memory ----------------------------------------------------------------------------


def memory(names, settings):
    """Growth of memory during `predict`, beyond queries and result."""
    settings = settings._replace(n_train=settings.n_varied)
    data = problem(names[0], settings)
    model = cover_of(tuned_machine(names[0], settings), settings)
    model.fit(data.X_train, data.Y_train)
    model.predict(data.X_test, return_std=True)  # what happens once, happens here
    batches = [(n, np.float64) for n in settings.n_memory_rows]
    batches += [(settings.n_memory_rows[-1], np.float32)]
    rows = [memory_row(model, data, n, dtype) for n, dtype in batches]
    print_table("Memory of predict, mean and std", rows)
    return rows


def memory_row(model, data, n_rows, dtype):
    """One batch of queries, read from a mapped file so that it takes no memory."""
    note(f"{data.name}: {n_rows} queries, {np.dtype(dtype)}")
    with tempfile.TemporaryDirectory() as folder:
        X = mapped_queries(Path(folder) / "queries.bin", data.X_train, n_rows, dtype)
        with watched_memory() as used:
            result, seconds = _common.timed(model.predict, X, return_std=True)
        del X
    returned = sum(part.nbytes for part in result)
    return {
        "data": data.name,
        "n_queries": n_rows,
        "dtype": str(np.dtype(dtype)),
        "growth_mb": (used.peak - used.start - returned) / 2**20,
        "result_mb": returned / 2**20,
        "us_std": 1e6 * seconds / n_rows,
    }


def mapped_queries(path, X, n_rows, dtype, step=10_000):
    """Random rows around those of X, in a file."""
    rng = np.random.default_rng(_common.SEED)
    shape = (n_rows, X.shape[1])
    queries = np.memmap(path, dtype, mode="w+", shape=shape)
    for start in range(0, n_rows, step):
        part = queries[start : start + step]
        near = X[rng.integers(len(X), size=len(part))]
        part[:] = near + 0.1 * rng.normal(size=part.shape)
    queries.flush()
    return np.memmap(path, dtype, mode="r", shape=shape)


# -- the command -----------------------------------------------------------------------

SECTIONS = {
    "nn": (against_scheme, ("kin40k", "protein")),
    "routers": (routers, ("kin40k", "protein")),
    "overlap": (overlaps, ("kin40k",)),
    "memory": (memory, ("kin40k",)),
}


def main(arguments=None):
    """Run the chosen sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=listed, help="data sets, instead of a section's")
    parser.add_argument("--section", type=listed, default=list(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="a small run, in seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON files")
    options = parser.parse_args(arguments)
    for name in options.section:
        if name not in SECTIONS:
            parser.error(f"no section {name!r}; choose among {', '.join(SECTIONS)}")
    # A quick run must not overwrite published numbers.
    folder = options.results or (None if options.quick else _common.RESULTS)
    settings = QUICK if options.quick else FULL
    for name in options.section:
        run, names = SECTIONS[name]
        rows = run(options.data or names, settings)
        if folder:
            print(f"-> {_common.write_json(f'gp_{name}', rows, folder)}", flush=True)


def listed(text):
    """Words separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


if __name__ == "__main__":
    main()
