"""Single precision against double: factors in memory, and stores.

    python benchmarks/precision.py [--section factors,store] [--quick]

"factors" fits, for every data set, two covers that differ in `GP.factor_dtype` only:
"auto" and "float64". "store" has the errors that a store of float32 causes, by the
noise of the data. Prints a table per section and writes
benchmarks/results/precision_SECTION.json.
"""

import tempfile
import warnings
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import _common
import gp
import overcover
from _common import interleaved, note, print_table, run_sections, timed
from overcover import GP, OverlappingCoverRegressor, TwinGP, store


class Settings(NamedTuple):
    """Sizes of a run."""

    sizes: gp.Settings
    n_stored: int
    """Rows of a stored model."""

    stored_size: int


FULL = Settings(gp.FULL, 2000, 200)
QUICK = Settings(gp.QUICK, 100, 40)

# -- factors ---------------------------------------------------------------------------

NAMES = ("kin40k", "sarcos_small", "rf1")


def factors(settings):
    """One row per data set."""
    sizes = settings.sizes._replace(n_train=settings.sizes.n_varied)
    with threadpool_limits(1):
        rows = [compared(name, sizes) for name in NAMES]
    print_table("Factors in float32 where precision allows it, and in float64", rows)
    return rows


def compared(name, settings):
    """Sizes, seconds and errors of both, and their differences."""
    data, machine = gp.problem(name, settings), gp.tuned_machine(name, settings)
    models = {}
    for dtype in ("auto", "float64"):
        note(f"{name}: {dtype}")
        typed = clone(machine).set_params(factor_dtype=dtype)
        models[dtype] = gp.cover_of(typed, settings).fit(data.X_train, data.Y_train)
        models[dtype].set_params(n_jobs=1)
    tasks = {
        dtype: lambda model=model: model.predict(data.X_test, return_std=True)
        for dtype, model in models.items()
    }
    seconds = interleaved(tasks, settings.n_repeats)
    (mean, std), (exact_mean, exact_std) = (predict() for predict in tasks.values())
    mean_in_std = np.abs(mean - exact_mean) / exact_std
    std_relative = np.abs(std / exact_std - 1.0)
    states = models["auto"].states_
    return {
        "data": name,
        "noise": float(machine.noise),
        "share_single": np.mean([s.factor.dtype == np.float32 for s in states]),
        "size_ratio": factor_bytes(models["auto"]) / factor_bytes(models["float64"]),
        "speed_up": seconds["float64"] / seconds["auto"],
        "mean_in_std_99": float(np.quantile(mean_in_std, 0.99)),
        "mean_in_std_max": float(mean_in_std.max()),
        "std_relative_99": float(np.quantile(std_relative, 0.99)),
        "std_relative_max": float(std_relative.max()),
        "rmse": rmse(data, mean),
        "rmse_double": rmse(data, exact_mean),
    }


def factor_bytes(model):
    """Bytes of the factors of all subdomains."""
    return sum(state.factor.nbytes for state in model.states_)


def rmse(data, mean):
    """RMSE, mean over outputs."""
    return float(_common.rmse(data.Y_test, mean).mean())


# -- stores ----------------------------------------------------------------------------

NOISES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def problem(n_rows, noise=0.1):
    """A smooth function of three inputs, two outputs, some noise; and queries."""
    rng = np.random.default_rng(_common.SEED)
    X = rng.uniform(-3, 3, (n_rows + 500, 3))
    Y = np.column_stack([np.sin(X[:, 0]) * np.cos(X[:, 1]), X[:, 2]])
    Y += noise * rng.normal(size=Y.shape)
    return X[:n_rows], Y[:n_rows], X[n_rows:]


def make_model(size, machine):
    """A cover with a fixed seed."""
    return OverlappingCoverRegressor(
        machine, subdomain_size=size, overlap=0.8, random_state=0, n_jobs=2
    )


def stored(settings):
    """One row per machine and noise: the errors of float32, and the bytes it saves."""
    rows = []
    for noise in NOISES:
        # The outputs have the noise that the machine assumes.
        X, Y, queries = problem(settings.n_stored, np.sqrt(noise))
        for name, machine in (
            ("gp", GP("rbf", length_scale=1.5, noise=noise, factor_dtype="float64")),
            ("tgp", TwinGP(1.5, 1.5, noise, noise)),
        ):
            note(f"{name}, noise {noise:g}")
            model = make_model(settings.stored_size, machine).fit(X, Y)
            rows.append({"machine": name, "noise": noise} | narrowed(model, queries))
    print_table("Single precision against double", rows)
    return rows


def narrowed(model, queries):
    """Sizes, seconds, and differences of means, in standard deviations, and of these.

    The largest are of queries whose best candidates are about equally certain: another
    one answers.
    """
    mean, std = model.predict(queries, return_std=True)
    with tempfile.TemporaryDirectory() as folder:
        sizes = []
        for dtype in ("float64", "float32"):
            path = f"{folder}/{dtype}"
            with warnings.catch_warnings():
                # The warning of too little noise, which is intended here.
                warnings.simplefilter("ignore", UserWarning)
                model.save(path, dtype)
            sizes.append(store.inspect(path)["bytes"])
        loaded, seconds = timed(overcover.load, path)
        mean_32, std_32 = loaded.predict(queries, return_std=True)
    mean_in_std, std_relative = np.abs(mean_32 - mean) / std, np.abs(std_32 / std - 1)
    return {
        "size_ratio": sizes[1] / sizes[0],
        "load_seconds": seconds,
        "mean_in_std_99": float(np.quantile(mean_in_std, 0.99)),
        "mean_in_std_max": float(mean_in_std.max()),
        "std_relative_99": float(np.quantile(std_relative, 0.99)),
        "std_relative_max": float(std_relative.max()),
    }


SECTIONS = {"factors": factors, "store": stored}


def main(arguments=None):
    """Run the chosen sections."""
    summary = __doc__.splitlines()[0]
    run_sections(summary, "precision", SECTIONS, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
