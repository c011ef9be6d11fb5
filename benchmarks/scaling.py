"""Measured exponents: how the stages grow with N, M, K' and d.

`python -m experiments complexity` records them. One axis varies at a time. An exponent
is the least-squares slope of log seconds over log value, and `at_end` that of the two
largest values, where fixed costs matter least. Seconds are the least of several runs.
The theory, with p = `overlap`:

    machines    O(N M^2 / (1 - p))   a Cholesky factor and inverse of every subdomain
    partition   O(N K)               with at most K = N / ((1 - p) M) centres
    mean        O(K' M d)            per query
    std         O(K' M^2)            per query

Rows are synthetic, hyperparameters fixed, and the router is Euclidean, which uses
exactly K' machines; one thread. The number of queries per subdomain is constant,
because the size of its batches determines the speed of a machine.
"""

from typing import NamedTuple

import numpy as np
from sklearn.base import clone

import _common
from _common import interleaved, note
from overcover import GP, OverlappingCoverRegressor

# -- definitions -----------------------------------------------------------------------


class Problem(NamedTuple):
    """One point on an axis."""

    N: int = 5_000
    M: int = 400
    K: int = 1
    """The paper's K', `n_consulted`."""

    d: int = 8


AXES = {
    "N": (2_500, 5_000, 10_000),
    "M": (100, 200, 400, 800),
    "K": (1, 2, 4, 8),
    "d": (2, 8, 32),
}
QUICK_AXES = {"N": (120, 240), "M": (20, 40), "K": (1, 2), "d": (2, 4)}
QUICK_PROBLEM = Problem(N=120, M=30, K=1, d=2)

EXPECTED = {
    "machines": {"N": 1, "M": 2, "K": 0, "d": None},
    "partition": {"N": None, "M": None, "K": 0, "d": None},
    "mean": {"N": 0, "M": 1, "K": 1, "d": None},
    "std": {"N": 0, "M": 2, "K": 1, "d": None},
}
"""Exponents of the theory; None where a sum of terms has no single exponent."""

QUERIES_PER_SUBDOMAIN = 20


def rows_of(problem):
    """Normal rows, and a smooth output of all their columns with a little noise."""
    rng = np.random.default_rng(_common.SEED)
    X = rng.normal(size=(problem.N, problem.d))
    y = np.sin(X @ rng.normal(size=problem.d) / np.sqrt(problem.d))
    return X, y + 0.1 * rng.normal(size=problem.N)


def model_of(problem):
    """A cover with fixed hyperparameters, which needs no tuning."""
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
        # Other work on the computer only adds to the time.
        typical=min,
    )
    return {
        **problem._asdict(),
        "n_subdomains": model.n_subdomains_,
        **{stage: stages[stage] for stage in ("machines", "partition")},
        **{label: 1e6 * s / n_queries for label, s in seconds.items()},
    }


def fit_repeatedly(problem, n_repeats):
    """A fitted model, and the least seconds of each of its stages."""
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
    """A row per stage: the measured exponent and that of the theory."""
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
