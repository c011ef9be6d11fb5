"""overcover beside other packages: accuracy, intervals, time and memory.

    python benchmarks/rivals.py [--data kin40k,rf1] [--only LightGBM,CatBoost] [--quick]

Prints a table per data set and writes benchmarks/results/peers.json. Contenders are in
`peers`; each runs in a process of its own, with the same rows, one thread and a budget
of processor seconds. As many run at a time as there are cores. Each fits and predicts
a few rows first, so that neither imports nor compilation count. A contender that fails
or exceeds its budget has a row that says so. Errors and widths are in standard
deviations of the outputs. A quarter of an hour on two cores.
"""

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.special import ndtri

import _common
import peers
from _common import note, print_table
from overcover.metrics import interval_coverage

NAMES = ("kin40k", "protein", "bike", "sarcos_small", "rf1", "poserlike")
THREAD_VARIABLES = ("OMP", "OPENBLAS", "MKL", "NUMBA")
WARM_UP_ROWS = 200


class Settings(NamedTuple):
    """Sizes of a run."""

    n_train: int | None
    n_test: int
    n_outputs: int
    """Most outputs of a data set; constant ones do not count."""

    budget: int
    """Processor seconds to fit and predict."""


FULL = Settings(None, 2000, 4, 90)
QUICK = Settings(300, 100, 2, 20)

# -- one contender, in its own process -------------------------------------------------


def problem(name, settings):
    """Rows of a data set; at most so many test rows and outputs that vary."""
    data = _common.load(name)
    tested = data.some_test_rows(settings.n_test)
    varied = np.flatnonzero(data.Y_train.std(axis=0) > 0)[: settings.n_outputs]
    X, Y = data.X_train[: settings.n_train], data.Y_train[: settings.n_train]
    X_test, Y_test = data.X_test[tested], data.Y_test[tested]
    return _common.Data(name, X, Y[:, varied], X_test, Y_test[:, varied])


def measured(make, data, n_threads, budget=0):
    """Accuracy and costs of one contender, as entries of a row.

    Parameters
    ----------
    make : ``function(n_threads, seed) -> Contender``
    data : Data
    n_threads : int
    budget : int
        Processor seconds after which the system ends this process; 0 for never.
    """
    few = data.first(WARM_UP_ROWS, WARM_UP_ROWS)
    first = make(n_threads, _common.SEED)
    first.fit(few.X_train, few.Y_train[:, :1])
    first.predict(few.X_test)
    contender = make(n_threads, _common.SEED)
    signal.setitimer(signal.ITIMER_PROF, budget)
    start = processor_seconds()
    contender.fit(data.X_train, data.Y_train)
    fitted = processor_seconds()
    prediction = contender.predict(data.X_test)
    predict_s = processor_seconds() - fitted
    signal.setitimer(signal.ITIMER_PROF, 0)
    return scores(prediction, data.Y_test) | {
        "fit_cpu_s": fitted - start,
        "us_query": 1e6 * predict_s / len(data.X_test),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def scores(prediction, Y):
    """Error measures; None where a contender has neither variances nor intervals."""
    mean, std, low, high = prediction
    mean = mean.reshape(Y.shape)
    row = {"rmse": float(_common.rmse(Y, mean).mean()), "nlpd": None}
    row |= {"coverage_95": None, "width": None}
    if std is not None:
        std = std.reshape(Y.shape)
        row["nlpd"] = _common.nlpd(Y, mean, std)
        if low is None:
            half = ndtri(0.975) * std
            low, high = mean - half, mean + half
    if low is not None:
        low, high = low.reshape(Y.shape), high.reshape(Y.shape)
        row["coverage_95"] = float(interval_coverage(Y, low, high))
        row["width"] = float(np.mean(high - low))
    if not all(np.isfinite(value) for value in row.values() if value is not None):
        raise FloatingPointError("predictions are not finite")
    return row


def processor_seconds():
    """Of all threads of this process, and of processes that it started and ended."""
    used = [resource.getrusage(who) for who in (0, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def run_one(task):
    """Measure one contender and leave a record in a file."""
    settings = Settings(*task["settings"])
    data = problem(task["data"], settings)
    row = {"n_train": len(data.X_train), "n_test": len(data.X_test)}
    row["n_outputs"] = data.Y_train.shape[1]
    make = peers.CONTENDERS[task["method"]]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            row |= measured(make, data, task["n_threads"], settings.budget)
    except Exception as error:
        # Whatever a package raises is its result on this data.
        lines = str(error).strip().splitlines() or [""]
        row["reason"] = f"{type(error).__name__}: {lines[0]}"[:200]
    Path(task["path"]).write_text(json.dumps(row))


# -- all contenders --------------------------------------------------------------------


def in_own_process(name, method, settings, n_threads):
    """The row of one contender on one data set."""
    note(f"{name}: {method}")
    make = peers.CONTENDERS[method]
    row = {"data": name, "method": method, "settings": make.settings}
    row["versions"] = {package: _common.version(package) for package in make.packages}
    row["n_threads"] = n_threads
    threads = {f"{name}_NUM_THREADS": str(n_threads) for name in THREAD_VARIABLES}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "row.json"
        task = {"data": name, "method": method, "settings": settings}
        task |= {"n_threads": n_threads, "path": str(path)}
        done = subprocess.run(
            [sys.executable, __file__, "--one", json.dumps(task)],
            env=os.environ | threads,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        if path.exists():
            return row | json.loads(path.read_text())
    if done.returncode == -signal.SIGPROF:
        return row | {"reason": f"over its budget of {settings.budget} processor s"}
    lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
    return row | {"reason": lines[-1][:200]}


COLUMNS = ("method", "rmse", "nlpd", "coverage_95", "width", "fit_cpu_s", "us_query")
COLUMNS += ("peak_mb", "reason")


def main(arguments=None):
    """Run the chosen contenders on the chosen data."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=listed, help="data sets; all by default")
    parser.add_argument("--only", type=listed, default=list(peers.CONTENDERS))
    parser.add_argument("--threads", type=int, default=1, help="for every contender")
    parser.add_argument("--quick", action="store_true", help="a small run")
    parser.add_argument("--rows", type=int, help="training rows; all by default")
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    parser.add_argument("--one", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.one:
        return run_one(options.one)
    for method in options.only:
        if method not in peers.CONTENDERS:
            known = ", ".join(peers.CONTENDERS)
            parser.error(f"no contender {method!r}; choose among {known}")
    settings = QUICK if options.quick else FULL
    names = options.data or list(NAMES[:1] if options.quick else NAMES)
    if options.rows:
        settings = settings._replace(n_train=options.rows)
    # A part of the run must not overwrite published numbers.
    is_full = settings == FULL and {*names} == {*NAMES}
    is_full &= {*options.only} == {*peers.CONTENDERS}
    folder = options.results or (_common.RESULTS if is_full else None)
    rows = []
    with ThreadPoolExecutor(max(1, (os.cpu_count() or 1) // options.threads)) as pool:
        tasks = {
            (name, method): pool.submit(
                in_own_process, name, method, settings, options.threads
            )
            for name in names
            for method in options.only
        }
        for name in names:
            part = [tasks[name, method].result() for method in options.only]
            print_table(f"{name}, {threads_of(part)}", part, COLUMNS)
            rows += part
            if folder:  # after every data set, so that an interruption costs little
                print(f"-> {_common.write_json('peers', rows, folder)}", flush=True)


def threads_of(rows):
    """How many threads each contender had, in words."""
    n_threads = rows[0]["n_threads"]
    return "one thread" if n_threads == 1 else f"{n_threads} threads"


def listed(text):
    """Words separated by commas."""
    return [word.strip() for word in text.split(",") if word.strip()]


if __name__ == "__main__":
    main()
