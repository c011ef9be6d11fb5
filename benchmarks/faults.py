"""Single precision in the store against double.

    python benchmarks/faults.py [--quick]

The errors that float32 causes, by the noise of the data. Prints a table and writes
benchmarks/results/faults_precision.json.
"""

import tempfile
import warnings
from typing import NamedTuple

import numpy as np

import _common
import overcover
from _common import note, print_table, run_sections, timed
from overcover import GP, OverlappingCoverRegressor, TwinGP, store


class Settings(NamedTuple):
    """Sizes of a run."""

    n_rows: int
    size: int


FULL = Settings(8000, 200)
QUICK = Settings(400, 40)
NOISES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def problem(n_rows, noise=0.1):
    """A smooth function of three inputs, two outputs, some noise; and queries."""
    rng = np.random.default_rng(_common.SEED)
    X = rng.uniform(-3, 3, (n_rows + 500, 3))
    Y = np.column_stack([np.sin(X[:, 0]) * np.cos(X[:, 1]), X[:, 2]])
    Y += noise * rng.normal(size=Y.shape)
    return X[:n_rows], Y[:n_rows], X[n_rows:]


def make_model(settings, machine):
    """A cover with a fixed seed."""
    return OverlappingCoverRegressor(
        machine, subdomain_size=settings.size, overlap=0.8, random_state=0, n_jobs=2
    )


# -- precision -------------------------------------------------------------------------


def precision(settings):
    """One row per machine and noise: the errors of float32, and the bytes it saves."""
    rows = []
    for noise in NOISES:
        # The outputs have the noise that the machine assumes.
        X, Y, queries = problem(settings.n_rows // 4, np.sqrt(noise))
        for name, machine in (
            ("gp", GP("rbf", length_scale=1.5, noise=noise, factor_dtype="float64")),
            ("tgp", TwinGP(1.5, 1.5, noise, noise)),
        ):
            note(f"{name}, noise {noise:g}")
            model = make_model(settings, machine).fit(X, Y)
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


SECTIONS = {"precision": precision}


def main(arguments=None):
    """Run the chosen sections."""
    run_sections(__doc__.splitlines()[0], "faults", SECTIONS, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
