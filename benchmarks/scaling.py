"""Measured exponents: how the stages grow with N, M, K' and d.

    python benchmarks/scaling.py [--axis N,M] [--quick]

One axis moves, the others stay; an exponent is the least-squares slope of log seconds
over log value, and `at_end` that of the two largest values, where fixed costs weigh
least. Seconds are the least of several runs. The theory, with p = `overlap`:

    machines    O(N M^2 / (1 - p))   of every subdomain a Cholesky factor and inverse
    partition   O(N K)               K = N / ((1 - p) M) centres at worst
    mean        O(K' M d)            per query
    std         O(K' M^2)            per query

Synthetic rows, fixed hyperparameters, Euclidean routing (which asks K' machines and no
more), one thread. Queries are as many per subdomain everywhere, since the size of the
batches that a machine answers decides its share of the GEMM rate.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import _common
from _common import interleaved, note, print_table
from overcover import GP, OverlappingCoverRegressor

# -- definitions -----------------------------------------------------------------------


class Problem(NamedTuple):
    """One point on an axis."""

    N: int = 10_000
    M: int = 400
    K: int = 1
    """The paper's K', `n_consulted`."""

    d: int = 8


AXES = {
    "N": (5_000, 10_000, 20_000, 40_000),
    "M": (100, 200, 400, 800),
    "K": (1, 2, 4, 8),
    "d": (2, 4, 8, 16, 32),
}
QUICK_AXES = {"N": (120, 240), "M": (20, 40), "K": (1, 2), "d": (2, 4)}
QUICK_PROBLEM = Problem(N=120, M=30, K=1, d=2)

EXPECTED = {
    "machines": {"N": 1, "M": 2, "K": 0, "d": None},
    "partition": {"N": None, "M": None, "K": 0, "d": None},
    "mean": {"N": 0, "M": 1, "K": 1, "d": None},
    "std": {"N": 0, "M": 2, "K": 1, "d": None},
}
"""What theory says; None where a sum of terms has no single exponent."""

QUERIES_PER_SUBDOMAIN = 20


def rows_of(problem):
    """Normal rows, and a smooth output of all their columns with a little noise."""
    rng = np.random.default_rng(_common.SEED)
    X = rng.normal(size=(problem.N, problem.d))
    y = np.sin(X @ rng.normal(size=problem.d) / np.sqrt(problem.d))
    return X, y + 0.1 * rng.normal(size=problem.N)


def model_of(problem):
    """A cover with hyperparameters given, so that nothing is tuned."""
    return OverlappingCoverRegressor(
        GP(length_scale=2.0 * np.sqrt(problem.d), noise=0.1),
        subdomain_size=problem.M,
        n_consulted=problem.K,
        router="euclidean",
        n_jobs=1,
        random_state=_common.SEED,
    )


# -- measuring -------------------------------------------------------------------------


def measure(problem, n_repeats=2):
    """Seconds of the stages; of prediction per query, in microseconds."""
    note(str(problem))
    model, stages = fit_repeatedly(problem, n_repeats)
    n_queries = QUERIES_PER_SUBDOMAIN * model.n_subdomains_
    rng = np.random.default_rng(_common.SEED + 1)
    queries = rng.normal(size=(n_queries, problem.d))
    seconds = interleaved(
        {
            "mean": lambda: model.predict(queries),
            "std": lambda: model.predict(queries, return_std=True),
        },
        n_repeats,
        # What else the machine does can only add to the time.
        typical=min,
    )
    return {
        **problem._asdict(),
        "n_subdomains": model.n_subdomains_,
        **{stage: stages[stage] for stage in ("machines", "partition")},
        **{label: 1e6 * s / n_queries for label, s in seconds.items()},
    }


def fit_repeatedly(problem, n_repeats):
    """A fitted model, and the least seconds that each of its stages took."""
    X, y = rows_of(problem)
    model, runs = model_of(problem), []
    for _ in range(n_repeats):
        model = clone(model)  # lets go of the factors before there are new ones
        runs.append(model.fit(X, y).timings_)
    return model, {stage: min(run[stage] for run in runs) for stage in runs[0]}


def exponent(values, seconds):
    """Least-squares slope in the log-log plane.

    >>> round(exponent([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    return float(np.polyfit(np.log(values), np.log(seconds), 1)[0])


def exponents(axis, points):
    """A row per stage: the exponent found, and the one that theory gives."""
    rows = []
    for stage, expected in EXPECTED.items():
        pairs = [(point[axis], point[stage]) for point in points]
        rows.append(
            {
                "axis": axis,
                "stage": stage,
                "exponent": exponent(*zip(*pairs)),
                "at_end": exponent(*zip(*pairs[-2:])),
                "expected": expected[axis],
            }
        )
    return rows


def main(arguments=None):
    """Measure along the chosen axes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--axis", default=",".join(AXES), help="of N, M, K, d")
    parser.add_argument("--quick", action="store_true", help="a taste, in seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    options = parser.parse_args(arguments)
    chosen = options.axis.split(",")
    if not set(chosen) <= set(AXES):
        parser.error(f"no axis {options.axis!r}; choose among {', '.join(AXES)}")
    axes, base = (QUICK_AXES, QUICK_PROBLEM) if options.quick else (AXES, Problem())
    with threadpool_limits(1):
        measure(QUICK_PROBLEM, n_repeats=1)  # compiles what has to be compiled
        rows = [row for axis in chosen for row in along(axis, axes[axis], base)]
    print_table("Exponents", rows)
    # A taste must not overwrite published numbers.
    folder = options.results or (None if options.quick else _common.RESULTS)
    if folder:
        print(f"-> {_common.write_json('scaling', rows, folder)}")


def along(axis, values, base):
    """Move along one axis; the points are printed, and kept beside the exponents."""
    points = [measure(base._replace(**{axis: value})) for value in values]
    print_table(f"Along {axis} (seconds; mean and std in us per query)", points)
    return [row | {"points": points} for row in exponents(axis, points)]


if __name__ == "__main__":
    main()
