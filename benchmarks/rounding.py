"""The effect of factors in float32 on predictions, size and speed, on real data.

    python benchmarks/rounding.py [--quick]

For every data set, it fits two covers that differ in `GP.factor_dtype` only: "auto" and
"float64". Prints a table and writes benchmarks/results/rounding_factors.json.
"""

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import _common
import gp
from _common import interleaved, note, print_table, run_sections

NAMES = ("kin40k", "sarcos_small", "rf1")


def factors(settings, names=NAMES):
    """One row per data set."""
    settings = settings._replace(n_train=settings.n_varied)
    with threadpool_limits(1):
        rows = [compared(name, settings) for name in names]
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


def main(arguments=None):
    """Measure, print and record."""
    sections, settings = {"factors": factors}, (gp.FULL, gp.QUICK)
    run_sections(__doc__.splitlines()[0], "rounding", sections, settings, arguments)


if __name__ == "__main__":
    main()
