"""Twin GPs: batched search, low rank, cover against NN scheme, tuning, covariate shift.

    python benchmarks/twin.py [--section search,cover,tuning,shift] [--quick]

Prints a table per section and writes benchmarks/results/twin_SECTION.json. Errors are
in standardised units, of poserlike in degrees, of humaneva in mm. Every contender has
one BLAS thread.
"""

import time
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsRegressor
from threadpoolctl import threadpool_limits

import _common
import _pose
from _common import interleaved, note, print_table
from overcover import (
    GP,
    ImportanceWeightedTwinGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    TwinGP,
)
from overcover.datasets import make_pose
from overcover.machines.twin_state import LEAST_VARIANCE, finite
from overcover.metrics import interval_coverage, mean_angle_error, mean_joint_error

# -- definitions -----------------------------------------------------------------------


class Settings(NamedTuple):
    """Sizes of a run."""

    sizes: tuple[int, ...]
    n_queries: int
    n_loop: int
    """Queries of the loop and of the NN scheme, which take milliseconds each."""

    n_rows: int
    subdomain_size: int
    n_repeats: int
    n_seeds: int
    names: tuple[str, ...] = ("poserlike", "sarcos_small")
    is_full: bool = True


FULL = Settings((400, 800, 1600), 2000, 60, 6000, 800, 2, 10)
QUICK = Settings((30, 60), 40, 5, 160, 40, 1, 1, ("poserlike",), False)


@cache
def pose_problem(settings):
    """Synthetic poses, and a Twin GP with the hyperparameters of "auto" for them."""
    data = _pose.make(settings.n_rows)
    return data, tuned_for(data, settings)


@cache
def humaneva_problem(settings):
    """Frames of `make_pose`, later ones held out; and a tuned Twin GP again."""
    # As many for training as for tests.
    n_frames = None if settings.is_full else 2 * settings.n_rows
    data = make_pose("humaneva", n_frames=n_frames)
    return data, tuned_for(data, settings)


def tuned_for(data, settings):
    """A Twin GP with the hyperparameters of "auto"."""
    note("hyperparameters")
    machine, rng = TwinGP(), np.random.RandomState(_common.SEED)
    machine.tune(data.X_train, data.Y_train, None, settings.subdomain_size, rng, 2)
    return TwinGP(
        machine.input_length_scale_,
        machine.output_length_scale_,
        machine.input_noise_,
        machine.output_noise_,
    )


# -- search: all queries of one subdomain ----------------------------------------------


def search(settings):
    """Batched against a loop, low rank against dense, and the GEMM rate, by size."""
    data, machine = pose_problem(settings)
    rows = [search_row(data, machine, size, settings) for size in settings.sizes]
    print_table("One subdomain, one thread, microseconds per query", rows)
    return rows


def search_row(data, machine, size, settings):
    """One size of subdomain."""
    note(f"search: {size} rows")
    near = nearest_to(data.X_train, data.X_train[0], machine.input_length_scale, size)
    X, Y = data.X_train[near], data.Y_train[near]
    asked = np.random.default_rng(_common.SEED).integers(size, size=settings.n_queries)
    X_query = X[asked] + 0.05 * np.random.default_rng(1).normal(size=X[asked].shape)
    dense, low = (fitted(machine, X, Y, rank) for rank in ("full", "auto"))
    loop = LoopedSearch(dense, X_query[: settings.n_loop])
    seconds = interleaved(
        {
            "dense": lambda: dense.search(dense.state_, X_query),
            "low_rank": lambda: low.search(low.state_, X_query),
            "loop": loop.run,
        },
        settings.n_repeats,
    )
    found = dense.search(dense.state_, X_query)
    other = low.search(low.state_, X_query)
    us = {k: 1e6 * s / len(X_query) for k, s in seconds.items()}
    us["loop"] = 1e6 * seconds["loop"] / settings.n_loop
    moved = np.abs(other.points - found.points) * finite(dense.output_length_scale_)
    flops = search_flops(dense, found, X_query)
    rate = _common.gemm_rate(size, settings.n_queries)
    excess = found.values[: settings.n_loop] - loop.values
    return {
        "size": size,
        "rank": len(low.state_.core.pivots),
        "us_loop": us["loop"],
        "us_dense": us["dense"],
        "us_low_rank": us["low_rank"],
        "dense_speed_up": us["loop"] / us["dense"],
        "low_rank_speed_up": us["loop"] / us["low_rank"],
        "evaluations": float(found.n_evaluations.mean()),
        "loop_evaluations": loop.n_evaluations / settings.n_loop,
        "converged": float(found.converged.mean()),
        "above_loop": float(excess.max()),
        "gemm_share_dense": flops / seconds["dense"] / rate,
        "low_rank_change": float(moved.mean()),
        "low_rank_change_99": float(np.quantile(moved, 0.99)),
    }


def search_flops(model, found, X_query):
    """Operations of all products: three per evaluation, and those needed once."""
    size, n_outputs = model.state_.rows.Z.shape
    once = size * (2.0 * X_query.shape[1] + size + 2.0 * (size + n_outputs))
    each = 2.0 * size**2 + 4.0 * size * n_outputs
    return len(X_query) * once + found.n_evaluations.sum() * each


def fitted(machine, X, Y, rank):
    """A full model; the benchmark ignores its standard deviations."""
    return TwinGP(**machine.get_params() | {"rank": rank}).fit(X, Y)


def nearest_to(X, x, scales, size):
    """The rows nearest to one row, like a subdomain."""
    return np.argsort(np.sum(((X - x) / scales) ** 2, axis=1), kind="stable")[:size]


# About as precise as the batched search, which ends at a thousandth of a deviation.
PRECISE = {"gtol": 1e-4, "ftol": 1e-12}


class LoopedSearch:
    """The rival: scipy's L-BFGS per query, with both inverses precomputed."""

    def __init__(self, model, X_query):
        self.core, self.Z = model.state_.core, model.state_.rows.Z
        self.own = 1.0 + model.output_noise_
        self.model, self.X_query = model, X_query

    def run(self):
        """Predict the queries one by one."""
        state = self.model.state_
        self.n_evaluations, values = 0, []
        for x in self.X_query:
            K_xq = state.rows.similarities(x[None])
            seen = self.core.readout.T @ K_xq[:, 0]
            u, start = seen[: len(self.Z)], seen[len(self.Z) :]
            explained = K_xq[:, 0] @ u
            eta = max(1.0 - explained, LEAST_VARIANCE) + self.model.input_noise_
            found = minimize(
                self._objective, start, (u, eta), "L-BFGS-B", jac=True, options=PRECISE
            )
            self.n_evaluations += found.nfev
            values.append(found.fun)
        self.values = np.array(values)

    def _objective(self, z, u, eta):
        offset = self.Z - z
        k = np.exp(-0.5 * np.einsum("ij,ij->i", offset, offset))
        v = self.core.C @ k
        c = self.own - k @ v
        w = k * (2.0 * eta / c * v - 2.0 * u)
        return -2.0 * (k @ u) - eta * np.log(c), w @ offset


# -- cover: against the NN scheme and the full model -----------------------------------


def cover(settings):
    """Prediction per query with the same hyperparameters, one thread, and errors."""
    data, machine = humaneva_problem(settings)
    full = TwinGP(**machine.get_params()).fit(data.X_train, data.Y_train)
    rows = [cover_row(data, machine, full, size, settings) for size in settings.sizes]
    print_table("Cover, NN scheme and full model, one thread, processor time", rows)
    return rows


def cover_row(data, machine, full, size, settings):
    """One size of subdomains and neighbourhoods."""
    note(f"cover: {size} rows")
    options = {"random_state": _common.SEED, "n_jobs": 1}
    model = OverlappingCoverRegressor(machine, subdomain_size=size, **options)
    scheme = NeighborhoodRegressor(machine, size, n_jobs=1)
    for contender in (model, scheme):
        contender.fit(data.X_train, data.Y_train)
        contender.predict(data.X_test[:2])  # compiles, if it has to
    # The NN scheme takes up to a quarter of a second per query.
    some = np.linspace(0, len(data.X_test) - 1, settings.n_loop).astype(int)
    few = data.X_test[some]
    tasks = {
        "cover": lambda: model.predict(data.X_test),
        "cover_std": lambda: model.predict(data.X_test, return_std=True)[0],
        "nn": lambda: scheme.predict(few),
        "full": lambda: full.predict(few),
    }
    timed = {name: processor_time(task) for name, task in tasks.items()}
    us = {k: 1e6 * seconds / len(mean) for k, (mean, seconds) in timed.items()}
    truth = data.Y_test[some]
    means = {k: mean for k, (mean, _) in timed.items() if k != "cover_std"}
    means["cover"] = means["cover"][some]
    rmse = {k: float(_common.rmse(truth, mean).mean()) for k, mean in means.items()}
    mm = {k: float(mean_joint_error(truth, mean)) for k, mean in means.items()}
    return {
        "n_train": len(data.X_train),
        "n_test": len(data.X_test),
        "n_compared": len(some),
        "size": size,
        **{f"us_{k}": v for k, v in us.items()},
        "speed_up": us["nn"] / us["cover"],
        "speed_up_std": us["nn"] / us["cover_std"],
        **{f"rmse_{k}": v for k, v in rmse.items()},
        "rmse_ratio": rmse["cover"] / rmse["nn"],
        **{f"mm_{k}": v for k, v in mm.items()},
        "mm_ratio": mm["cover"] / mm["nn"],
        "machines_s": model.timings_["machines"],
    }


def processor_time(task):
    """The result of a task, and its seconds of processor time."""
    start = time.process_time()
    result = task()
    return result, time.process_time() - start


def error_of(data, mean):
    """Mean over outputs of the root mean squared error."""
    return float(_common.rmse(data.Y_test, mean).mean())


# -- tuning: beside other systems ------------------------------------------------------


def tuning(settings):
    """ "auto" on real data, beside GP, neighbours and ridge; coverage."""
    rows = []
    for name in settings.names:
        rows += tuning_rows(name, settings)
    print_table("Hyperparameters learned from training rows", rows)
    return rows


def tuning_rows(name, settings):
    """One data set."""
    data, error, metric = real_problem(name)
    size, seed = settings.subdomain_size, _common.SEED
    options = {"subdomain_size": size, "random_state": seed, "n_jobs": 2}
    contenders = {
        "TwinGP": OverlappingCoverRegressor(TwinGP(metric=metric), **options),
        "GP": OverlappingCoverRegressor(GP(), **options),
        "neighbours": GridSearchCV(
            KNeighborsRegressor(weights="distance"),
            {"n_neighbors": [2, 3, 5, 8, 12]},
            scoring="neg_mean_squared_error",
        ),
        "ridge": RidgeCV(np.logspace(-4, 4, 17)),
    }
    rows = []
    for label, model in contenders.items():
        note(f"tuning: {name}, {label}")
        _, seconds = _common.timed(model.fit, data.X_train, data.Y_train)
        row = {"data": name, "method": label, "fit_s": seconds}
        row["error"] = error(model.predict(data.X_test))
        if hasattr(model, "predict_interval"):
            low, high = model.predict_interval(data.X_test, 0.95)
            varies = data.Y_train.std(axis=0) > 0
            row["coverage_95"] = interval_coverage(
                data.Y_test[:, varies], low[:, varies], high[:, varies]
            )
        rows.append(row)
    return rows


def real_problem(name):
    """Data, the error of a mean in its usual unit, and the error measure of tuning."""
    data = _common.load(name)
    if name != "poserlike":
        return data, lambda mean: error_of(data, mean), "rmse"
    unit = _common.output_units(name)

    def degrees(mean):
        return mean_angle_error(data.Y_test * unit, mean * unit)

    # In standard units, every output counts by its standard deviation.
    def metric(truth, said):
        return float(np.mean(np.abs(said - truth) * unit))

    return data, degrees, metric


# -- shift: importance weights ---------------------------------------------------------


def shift(settings):
    """Twin GPs with and without weights, for queries from another distribution."""
    rows = [shift_row(seed) for seed in range(settings.n_seeds)]
    print_table("Covariate shift, RMSE on target rows", rows)
    return rows


def shift_row(seed):
    """A curve that one wide kernel cannot follow everywhere; queries are at one end."""
    rng = np.random.default_rng(seed)
    X, X_target = rng.normal(0.0, 1.0, (400, 1)), rng.normal(2.0, 0.4, (200, 1))

    def curve(x):
        return np.hstack([np.sin(x**2), np.cos(1.5 * x)])

    Y = curve(X) + 0.1 * rng.normal(size=(len(X), 2))
    scales = (1.5, 1.5, 0.1, 0.1)
    plain = TwinGP(*scales).fit(X, Y)
    weighted = ImportanceWeightedTwinGP(*scales).fit(X, Y, X_target=X_target)
    errors = [
        float(_common.rmse(curve(X_target), model.predict(X_target)).mean())
        for model in (plain, weighted)
    ]
    size = weighted.importance_.effective_sample_size_
    return {
        "seed": seed,
        "rmse_plain": errors[0],
        "rmse_weighted": errors[1],
        "ratio": errors[1] / errors[0],
        "effective_sample_size": float(size),
    }


# -- the command -----------------------------------------------------------------------

SECTIONS = {"search": search, "cover": cover, "tuning": tuning, "shift": shift}


def main(arguments=None):
    """Run the chosen sections."""
    summary = __doc__.splitlines()[0]
    with threadpool_limits(1):
        _common.run_sections(summary, "twin", SECTIONS, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
