"""The first fit and prediction after an installation: what numba compiles.

    python benchmarks/first_use.py [--quick]

A separate process has an empty cache of compiled code. Seconds of a function are those
of the processor, without those of the functions that it calls.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time

import numpy as np

import _common
from _common import print_table

N_ROWS, N_COLUMNS, N_QUICK = 1500, 4, 200


class Compilations:
    """Processor seconds that numba spends on each function."""

    def __init__(self):
        self.seconds: dict[str, float] = {}
        self.open: list[list] = []

    def on_start(self, event):
        """A function, perhaps called by the one before it."""
        self.open.append([process_time(), 0.0])

    def on_end(self, event):
        """Its own seconds are those that no other took."""
        start, of_others = self.open.pop()
        whole = process_time() - start
        name = event.data["dispatcher"].py_func.__name__
        self.seconds[name] = self.seconds.get(name, 0.0) + whole - of_others
        if self.open:
            self.open[-1][1] += whole


def use_once(n_rows):
    """Import, fit and predict; seconds of each, and of compilation by function."""
    start = process_time()
    from overcover import OverlappingCoverRegressor

    model = OverlappingCoverRegressor(random_state=0)
    steps = {"import": process_time() - start}
    from numba.core import event

    # numba wants a subclass of its own; its import belongs to the fit's, not to ours.
    compilations = type("Listener", (Compilations, event.Listener), {})()
    event.register("numba:compile", compilations)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_rows, N_COLUMNS))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=n_rows)
    for name, call in {
        "fit": lambda: model.fit(X, y),
        "predict": lambda: model.predict(X, return_std=True),
    }.items():
        start = process_time()
        call()
        steps[name] = process_time() - start
    return {"steps": steps, "compiled": compilations.seconds}


def in_new_process(n_rows, cache):
    """`use_once` in a process of its own, with a cache in this folder."""
    limits = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    child = subprocess.run(
        [sys.executable, __file__, "--once", str(n_rows)],
        env=os.environ | limits | {"NUMBA_CACHE_DIR": cache},
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(child.stdout.splitlines()[-1])


def main(arguments=None):
    """Print and write both tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a taste, on few rows")
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    parser.add_argument("--once", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.once:
        print(json.dumps(use_once(options.once)))
        return
    n_rows = N_QUICK if options.quick else N_ROWS
    with tempfile.TemporaryDirectory() as cache:
        first, second = (in_new_process(n_rows, cache) for _ in range(2))
    compiled = sorted(first["compiled"].items(), key=lambda pair: -pair[1])
    rows = [
        {
            "rows": n_rows,
            "columns": N_COLUMNS,
            "first": first["steps"],
            "second": second["steps"],
            "compiled": dict(compiled),
            "compiled_again": sum(second["compiled"].values()),
        }
    ]
    print_table("Compiled", [{"function": k, "s": v} for k, v in compiled])
    print_table("Steps", [first["steps"], second["steps"]])
    folder = options.results or (None if options.quick else _common.RESULTS)
    if folder:
        print(f"-> {_common.write_json('first_use', rows, folder)}")


if __name__ == "__main__":
    main()
