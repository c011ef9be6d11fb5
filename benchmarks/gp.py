"""GP on a cover: accuracy, speed against the NN scheme, routers, overlap, memory.

    python benchmarks/gp.py [--data kin40k,protein] [--section accuracy,nn] [--quick]

Prints a table per section and writes benchmarks/results/gp_SECTION.json. Contenders
other than the cover are in `peers`. Errors are in standardised units. Numbers that are
compared come from one process and one run.
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
import peers
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
    n_trees: int
    n_scheme_rows: int
    """Test rows that the NN scheme predicts; each takes milliseconds."""

    n_repeats: int
    n_copies: int
    """Size of the large batch, as a multiple of the test set."""

    n_memory_rows: tuple[int, ...]
    n_jobs: int
    n_seeds: int
    """Number of partitions in the mean error against the NN scheme."""


FULL = Settings(
    None, None, 800, 400, 2000, 1000, 7, 10, (10**4, 10**5, 10**6, 2 * 10**6), 2, 5
)
QUICK = Settings(600, 200, 100, 50, 20, 50, 1, 2, (500, 1000), 2, 2)

SCHEME_OVERLAPS = (0.9, 0.95)
OVERLAPS = (0.0, 0.5, 0.8, 0.9)
SPREADS = (1.0, 1.5, 2.0, 4.0)


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


# -- accuracy --------------------------------------------------------------------------


def accuracy(names, settings):
    """The default model beside its peers, on the same rows."""
    rows = []
    for name in names:
        rows += compared(problem(name, settings), settings)
    return rows


def compared(data, settings):
    """The rows of one data set; its models are freed at the end."""
    row, model = assessed("cover", cover_of(None, settings), data)
    rows = [row | {f"{stage}_s": s for stage, s in model.timings_.items()}]
    rows += [peer_row(peer, data, model, settings) for peer in peers.ALL]
    print_table(
        f"{data.name}: accuracy and time; NN-GP has the hyperparameters of the cover",
        rows,
        ACCURACY_COLUMNS,
    )
    if data.Y_test.shape[1] > 1:
        print_outputs(f"{data.name}: RMSE of each output", rows)
    return rows


def print_outputs(title, rows):
    """A column of errors for each output, where there are several."""
    wide = [
        {"method": row["method"]}
        | {f"y{j}": error for j, error in enumerate(row["rmse_per_output"])}
        for row in rows
        if "rmse_per_output" in row
    ]
    print_table(title, wide)


ACCURACY_COLUMNS = (
    *("data", "method", "n_test", "rmse", "cover_rmse", "nlpd", "nlpd_own"),
    *("coverage_95", "us_mean", "us_std", "fit_s", "tuning_s", "partition_s"),
    *("cover_s", "machines_s", "peak_mb", "note"),
)


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


def peer_row(peer, data, cover, settings):
    """One contender's row, or the reason why it has no numbers.

    Its ``cover_rmse`` is the error of the fitted `cover` on the rows the peer answered.
    """
    reason = peer.skip()
    if reason:
        return {"data": data.name, "method": peer.NAME, "note": f"skipped: {reason}"}
    machine = fixed(cover.machine_)
    model = peer.make(machine, settings.n_neighbors, settings.n_trees, settings.n_jobs)
    most = settings.n_scheme_rows if peer.IS_SLOW else len(data.X_test)
    tested = data.some_test_rows(most)
    row, _ = assessed(peer.NAME, model, on_scale_of(cover, data), tested)
    if len(tested) < len(data.X_test):
        row["note"] = f"{len(tested)} random test rows"
    mean = cover.predict(data.X_test[tested])
    return row | {"cover_rmse": float(_common.rmse(data.Y_test[tested], mean).mean())}


def on_scale_of(cover, data):
    """The data on the scale of inputs that the hyperparameters of a cover are for."""
    if not hasattr(cover, "input_scales_"):
        return data
    forward = cover.input_scales_.forward
    return data._replace(X_train=forward(data.X_train), X_test=forward(data.X_test))


# -- against the NN scheme -------------------------------------------------------------


def against_scheme(names, settings):
    """Seconds per query with std, one thread each, and the share of the GEMM rate."""
    with threadpool_limits(1):
        rows = [
            scheme_row(name, settings, overlap)
            for name in names
            for overlap in SCHEME_OVERLAPS
        ]
    print_table("Against the NN scheme, mean and std, one thread", rows)
    return rows


def scheme_row(name, settings, overlap):
    """One data set: both systems with the same hyperparameters, interleaved."""
    data, machine = problem(name, settings), tuned_machine(name, settings)
    note(f"{name}: cover with overlap {overlap} against NN scheme")
    model = cover_of(machine, settings, n_jobs=1, overlap=overlap)
    model.fit(data.X_train, data.Y_train)
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
    error_nn = error_of(scheme, data)
    # The error varies by some per cent between partitions.
    errors = [error_of(model, data)]
    for seed in range(1, settings.n_seeds):
        other = clone(model).set_params(random_state=seed, n_jobs=settings.n_jobs)
        errors.append(error_of(other.fit(data.X_train, data.Y_train), data))
    return {
        "data": name,
        "overlap": overlap,
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


# -- routers, overlap, spread ----------------------------------------------------------


def routers(names, settings):
    """All routers on the same hyperparameters and the same cover."""
    rows = [varied(name, settings, router=r) for name in names for r in ROUTERS]
    print_table("Routers", rows, VARIED_COLUMNS)
    return rows


def overlaps(names, settings):
    """Overlap on the first data set, under the paper's router and ours; spread."""
    rows = [
        varied(names[0], settings, router=router, overlap=overlap)
        for router in ("mahalanobis", "variance")
        for overlap in OVERLAPS
    ]
    rows += [varied(name, settings, spread=t) for name in names for t in SPREADS]
    print_table("Overlap and spread", rows, VARIED_COLUMNS)
    return rows


VARIED_COLUMNS = (
    *("data", "router", "overlap", "spread", "rmse", "nlpd", "coverage_95"),
    *("us_mean", "us_std", "fit_s", "n_subdomains", "n_lenders"),
)


def varied(name, settings, **options):
    """A row for the default model with one option changed, hyperparameters fixed."""
    data, machine = problem(name, settings), tuned_machine(name, settings)
    model = cover_of(machine, settings, **options)
    label = " ".join(f"{key}={value}" for key, value in options.items())
    row, model = assessed(label, model, data)
    used = {key: getattr(model, key) for key in ("router", "overlap", "spread")}
    counts = {"n_subdomains": model.n_subdomains_, "n_lenders": model.n_lenders_}
    return row | used | counts


# -- memory ----------------------------------------------------------------------------


def memory(names, settings):
    """Growth of memory during `predict`, beyond queries and result."""
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
    "accuracy": (accuracy, ("kin40k", "protein", "bike", "sarcos_small", "rf1")),
    "nn": (against_scheme, ("kin40k", "protein")),
    "routers": (routers, ("kin40k", "protein", "bike")),
    "overlap": (overlaps, ("kin40k", "protein")),
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
