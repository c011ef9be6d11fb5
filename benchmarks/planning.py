"""Plans held against fits: seconds, memory and disk, predicted and measured.

    python benchmarks/planning.py [--quick] [--problems 0,1] [--budgets]

Every problem is planned, from its shape alone, then fitted, in a process of its own so
that memory is what one fit takes. Seconds are those of ``timings_`` and of a batch of
queries with standard deviations. Memory is what belongs to the process alone at its
peak beyond what it held before the fit, rows included where they are in memory; disk is
what the store takes in the end. Hyperparameters are learned, on one thread.

With ``--budgets``, problems are fitted within times of the clock instead: the ratio is
what ``model.fit(X, y, budget=...)`` took, measuring included, over what it may take.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np

import _common
from _common import note, print_table, timed, watched_memory
from overcover import OverlappingCoverRegressor, load, plan, store

STAGES = ("tuning", "partition", "cover", "machines", "queries")
N_QUERIES = 1000


class Problem(NamedTuple):
    """One fit."""

    n: int
    d: int
    d_y: int = 1
    machine: str = "gp"
    size: int = 400
    into_store: bool = False
    overlap: float = 0.9

    def options(self):
        """As `plan` and the regressor take them."""
        return {"subdomain_size": self.size, "overlap": self.overlap}


PROBLEMS = (
    Problem(5_000, 5),
    Problem(10_000, 20, size=800),
    Problem(10_000, 20, size=800, into_store=True),
    Problem(10_000, 10, 3, size=200, overlap=0.75),
    Problem(5_000, 20, 6, "tgp", overlap=0.75),
)
# Rows, columns, and the seconds that a fit may take.
BUDGETS = ((5_000, 8, 8), (20_000, 8, 12), (20_000, 20, 30))
QUICK_BUDGETS = ((400, 3, 5),)
QUICK = (Problem(400, 3, size=50, overlap=0.5, into_store=True),)


def rows_of(problem):
    """Normal rows, and smooth outputs of all their columns with a little noise."""
    rng = np.random.default_rng(_common.SEED)
    X = rng.normal(size=(problem.n + N_QUERIES, problem.d))
    slopes = rng.normal(size=(problem.d, problem.d_y)) / np.sqrt(problem.d)
    Y = np.sin(X @ slopes) + 0.1 * rng.normal(size=(len(X), problem.d_y))
    return X[: problem.n], Y[: problem.n], X[problem.n :]


def predict_costs(problem):
    """What is planned, as plain numbers."""
    made, seconds = timed(
        plan,
        *problem[:3],
        machine=problem.machine,
        n_queries=N_QUERIES,
        into_store=problem.into_store,
        **problem.options(),
    )
    kinds = {"memory": made.needs.memory, "disk": made.disk}
    return {**made.seconds, **kinds, "planning": seconds}


def measure_costs(problem, folder):
    """The same of a real fit; memory is that of this process, so use a fresh one."""
    options = {"random_state": _common.SEED, **problem.options()}
    warm_up(problem)
    X, Y, queries = rows_of(problem)
    path = Path(folder) / "model.ocm"
    if problem.into_store:
        for name, rows in (("X", X), ("Y", Y)):
            np.save(Path(folder) / f"{name}.npy", rows)
        X, Y = (np.load(Path(folder) / f"{k}.npy", mmap_mode="r") for k in ("X", "Y"))
    model = OverlappingCoverRegressor(problem.machine, **options)
    with watched_memory() as used:
        if problem.into_store:
            store.fit_into(model, X, Y, path)
        else:
            model.fit(X, Y)
    if not problem.into_store:
        model.save(path)
    given = 0 if problem.into_store else X.nbytes + Y.nbytes
    _, seconds = timed(
        load(path).predict if problem.into_store else model.predict,
        queries,
        return_std=True,
    )
    disk = sum(f.stat().st_size for f in path.rglob("*") if f.is_file())
    kinds = {"memory": used.peak - used.start + given, "disk": disk}
    return {**model.timings_, "queries": seconds, **kinds}


def warm_up(problem):
    """A tiny fit, which loads what is compiled."""
    X, Y, queries = rows_of(problem._replace(n=150))
    options = {"subdomain_size": 60, "overlap": 0.5, "random_state": 0}
    OverlappingCoverRegressor("gp", **options).fit(X, Y).predict(queries[:50])


def in_own_process(problem):
    """`measure_costs` where no other fit has left its memory."""
    with tempfile.TemporaryDirectory() as folder:
        arguments = [sys.executable, __file__, "--measure", json.dumps(problem), folder]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def compare(problem):
    """A row of the table: what was planned, what was seen, and their ratios."""
    note(str(problem))
    planned, seen = predict_costs(problem), in_own_process(problem)
    planned["seconds"], seen["seconds"] = (
        sum(costs[stage] for stage in STAGES) for costs in (planned, seen)
    )
    row = problem._asdict()
    for kind in ("seconds", "memory", "disk", *STAGES):
        row |= {f"{kind}_planned": planned[kind], f"{kind}_seen": seen[kind]}
        row[f"{kind}_ratio"] = planned[kind] / seen[kind] if seen[kind] > 0 else None
    return row | {"planning": planned["planning"]}


def keep_budget(n, d, seconds):
    """A row of the table of budgets: what was chosen, and the time of the fit."""
    note(f"{n} x {d} within {seconds} s")
    problem = Problem(n, d)
    warm_up(problem)
    X, Y, _ = rows_of(problem)
    model = OverlappingCoverRegressor(random_state=_common.SEED)
    _, taken = timed(model.fit, X, Y, budget=seconds)
    result = {"n": n, "d": d, "budget": seconds, "size": model.subdomain_size_}
    result |= {"overlap": model.plan_.overlap, "seconds": taken}
    return result | {"ratio": taken / seconds, "stages": model.timings_}


def main(arguments=None):
    """Plan and fit all problems."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a taste, in seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    parser.add_argument("--problems", help="positions in PROBLEMS, all by default")
    parser.add_argument("--budgets", action="store_true", help="fits within times")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        problem, folder = options.measure
        print(json.dumps(measure_costs(Problem(*json.loads(problem)), folder)))
        return
    # A taste must not overwrite published numbers.
    folder = options.results or (None if options.quick else _common.RESULTS)
    if options.budgets:
        cases = QUICK_BUDGETS if options.quick else BUDGETS
        rows = [keep_budget(*case) for case in cases]
        print_table("Fits within a budget", rows, list(rows[0])[:-1])
        if folder:
            print(f"-> {_common.write_json('planning_budgets', rows, folder)}")
        return
    problems = QUICK if options.quick else PROBLEMS
    if options.problems:
        problems = [problems[int(i)] for i in options.problems.split(",")]
    rows = []
    for problem in problems:
        rows.append(compare(problem))
        if folder:  # as they come: some fits take minutes
            path = _common.write_json("planning", rows, folder)
    shown = [*Problem._fields, "seconds_planned", "seconds_seen", "seconds_ratio"]
    shown += ["memory_ratio", "disk_ratio", *(f"{stage}_ratio" for stage in STAGES)]
    print_table("Planned over seen", rows, shown)
    if folder:
        print(f"-> {path}")


if __name__ == "__main__":
    main()
