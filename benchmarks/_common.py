"""Data, error measures, timing, tables and records for all benchmarks.

The benchmark files and `peers` define the contenders. Errors are in standardised units:
outputs have mean 0 and standard deviation 1 among the training rows.
"""

import argparse
import ctypes
import hashlib
import json
import os
import platform
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

if os.environ.get("OVERCOVER_CLOCK") == "processor":
    # Every module that is imported from here on reads the processor's clock.
    time.perf_counter = time.process_time

from threadpoolctl import threadpool_limits

from overcover.metrics import interval_coverage

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
# What a run depends on: everything but results and pictures, which it writes itself.
CODE = ("--", ".", ":(exclude)benchmarks/results", ":(exclude)experiments/results")
CODE += (":(exclude)docs/*.png", ":(exclude)docs/reproduction*")
MEASURING = ("benchmarks", "experiments")
PACKAGES = ("overcover", "numpy", "scipy", "scikit-learn", "numba", "lightgbm")
PACKAGES += ("k-means-constrained",)
SEED = 0
# A standard deviation below this counts as this, for every contender alike: one flat
# neighbourhood must not make a mean log density infinite.
LEAST_STD = 1e-6

# -- data ------------------------------------------------------------------------------


class Data(NamedTuple):
    """A regression problem in standard units; outputs are always two-dimensional."""

    name: str
    X_train: np.ndarray
    Y_train: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray

    def first(self, n_train, n_test):
        """The same problem with fewer rows."""
        X, Y = self.X_train[:n_train], self.Y_train[:n_train]
        return Data(self.name, X, Y, self.X_test[:n_test], self.Y_test[:n_test])

    def some_test_rows(self, n_rows):
        """Sorted positions of random test rows; of all of them if they are fewer."""
        rows = np.random.default_rng(SEED).permutation(len(self.X_test))
        return np.sort(rows[:n_rows])


def data_folder():
    """The folder of the data files, or an error that says how to set it."""
    named = os.environ.get("OVERCOVER_DATA")
    folder = Path(named) if named else ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no data folder {folder}. Set OVERCOVER_DATA to the folder that "
            "holds kin40k.npz and the other data files."
        )
    return folder


def load(name):
    """Read one data set and standardise it by its training rows."""
    X_train, Y_train, X_test, Y_test = _read(name)
    return Data(name, *_standardize(X_train, X_test, Y_train, Y_test))


def load_raw(name):
    """Training rows and outputs of a data set, in their own units."""
    return _read(name)[:2]


def distinct_rows(X, Y):
    """Rows, each once, in an order of chance: as a fit tunes on them.

    Copies, left out one at a time, would speak against any noise.
    """
    rows = np.unique(np.hstack([X, Y]), axis=0)
    rows = np.random.default_rng(SEED).permutation(rows)
    return rows[:, : X.shape[1]], rows[:, X.shape[1] :]


def output_units(name):
    """Standard deviations of the outputs of a data set, the units of `load`."""
    return load_raw(name)[1].std(axis=0)


def _read(name):
    path = data_folder() / f"{name}.npz"
    if not path.is_file():
        there = ", ".join(sorted(p.stem for p in path.parent.glob("*.npz")))
        raise FileNotFoundError(
            f"There is no {path.name} in {path.parent}, only: {there or 'nothing'}. "
            "Choose one of these with --data, or set OVERCOVER_DATA."
        )
    with np.load(path) as arrays:
        return [part.astype(np.float64) for part in _split(arrays)]


def _split(arrays):
    """The file's own split, else the first 80 % of a permutation with seed 0."""
    if "X_train" in arrays:
        return [arrays[k] for k in ("X_train", "Y_train", "X_test", "Y_test")]
    X, Y = arrays["X"], arrays["Y"]
    rows = np.random.default_rng(0).permutation(len(X))
    train, test = np.split(rows, [int(0.8 * len(X))])
    return [X[train], Y[train], X[test], Y[test]]


def _standardize(X_train, X_test, Y_train, Y_test):
    X_train, X_test = _in_deviations(X_train, X_test)
    Y_train, Y_test = _in_deviations(Y_train, Y_test)
    return X_train, Y_train, X_test, Y_test


def _in_deviations(train, test):
    mean, deviation = train.mean(axis=0), train.std(axis=0)
    deviation = np.where(deviation > 0, deviation, 1.0)
    return (train - mean) / deviation, (test - mean) / deviation


# -- error measures --------------------------------------------------------------------


def rmse(Y, mean):
    """Root mean squared error of each output, shape (n_outputs,)."""
    return np.sqrt(np.mean((Y - mean) ** 2, axis=0))


def nlpd(Y, mean, std):
    """Mean negative log density of a Gaussian, over all rows and outputs."""
    std = np.maximum(std, LEAST_STD)
    z = (Y - mean) / std
    return float(np.mean(np.log(std) + 0.5 * np.log(2 * np.pi) + 0.5 * z * z))


def assess(model, X, Y):
    """Accuracy and speed of a fitted model; None where it has no variances.

    Returns
    -------
    dict with rmse (mean over outputs), nlpd of a Gaussian, nlpd_own of the density that
    the model itself gives, coverage_95, microseconds per query for the mean alone and
    with a standard deviation, rmse_per_output; None where the model has no such thing
    """
    mean, seconds = timed(model.predict, X)
    errors = rmse(Y, mean.reshape(Y.shape))
    scores = {"rmse": float(errors.mean()), "nlpd": None, "nlpd_own": None}
    scores |= {"coverage_95": None, "us_mean": 1e6 * seconds / len(X), "us_std": None}
    if hasattr(model, "predict_interval"):
        (mean, std), seconds = timed(model.predict, X, return_std=True)
        scores["nlpd"] = nlpd(Y, mean, std)
        scores["nlpd_own"] = -float(np.mean(model.log_density(X, Y)))
        scores["coverage_95"] = interval_coverage(Y, *model.predict_interval(X, 0.95))
        scores["us_std"] = 1e6 * seconds / len(X)
    return scores | {"rmse_per_output": errors.tolist()}


# -- measuring -------------------------------------------------------------------------


def timed(function, *args, **options):
    """The function's result, and its seconds."""
    start = time.perf_counter()
    result = function(*args, **options)
    return result, time.perf_counter() - start


def interleaved(tasks, n_repeats, typical=np.median):
    """Typical seconds of each task, in rounds, so that noise falls on all alike.

    Parameters
    ----------
    tasks : dict from name to function without arguments
    n_repeats : int
    typical : callable
        From the seconds of all rounds to one number.

    Returns
    -------
    dict from name to seconds
    """
    seconds: dict[str, list[float]] = {name: [] for name in tasks}
    for _ in range(n_repeats):
        for name, task in tasks.items():
            seconds[name].append(timed(task)[1])
    return {name: float(typical(runs)) for name, runs in seconds.items()}


def gemm_rate(size, n_queries, least_seconds=0.3, dtype=np.float64):
    """FLOP/s of a plain (size x size) (size x n_queries) product on one thread."""
    rng = np.random.default_rng(SEED)
    A, B = (rng.normal(size=(size, n)).astype(dtype) for n in (size, n_queries))
    out = np.empty((size, n_queries), dtype)
    runs, seconds = [], 0.0
    with threadpool_limits(1):
        np.matmul(A, B, out=out)
        while seconds < least_seconds or len(runs) < 5:
            runs.append(timed(np.matmul, A, B, out=out)[1])
            seconds += runs[-1]
    return 2.0 * size * size * n_queries / float(np.median(runs))


def private_bytes():
    """Memory that belongs to this process alone; mapped files do not count."""
    resident, shared = Path("/proc/self/statm").read_text().split()[1:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def give_back_freed():
    """Return freed memory to the system, so that later growth shows."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc has it
    if trim is not None:
        trim(0)


class Memory:
    """Bytes at the start of a block of code, and at its peak."""

    start = peak = 0


@contextmanager
def watched_memory(seconds=0.005):
    """Sample this process's memory in a thread; zeros where /proc is missing."""
    memory, done = Memory(), threading.Event()
    if not Path("/proc/self/statm").exists():
        yield memory
        return
    give_back_freed()
    memory.start = memory.peak = private_bytes()

    def watch():
        while not done.wait(seconds):
            memory.peak = max(memory.peak, private_bytes())

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield memory
    finally:
        done.set()
        watcher.join()
        memory.peak = max(memory.peak, private_bytes())


def note(text):
    """Report progress on standard error."""
    print(f"... {text}", file=sys.stderr, flush=True)


# -- tables and records ----------------------------------------------------------------


def print_table(title, rows, columns=None):
    """Print dictionaries as an aligned table; by default their scalar entries."""
    if columns is None:
        columns = list(dict.fromkeys(k for row in rows for k in row if _fits(row[k])))
    cells = [list(columns)] + [[_text(row.get(k)) for k in columns] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells)]
    print(f"\n{title}")
    for line in cells:
        print("  ".join(f"{cell:>{w}}" for cell, w in zip(line, widths)).rstrip())
    sys.stdout.flush()


def _fits(value):
    return not isinstance(value, list | dict)


def _text(value):
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)


def describe_run(command=None):
    """Everything that a repetition of the run needs."""
    return {
        "command": command or " ".join(["python", *sys.argv]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "commit": _git("rev-parse", "HEAD"),
        "source": code_of("HEAD"),
        "dirty": bool(_git("--no-optional-locks", "status", "--porcelain", *CODE)),
        "seed": SEED,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES},
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "clock": os.environ.get("OVERCOVER_CLOCK", "wall"),
    }


def write_json(name, rows, folder=RESULTS, command=None):
    """Write rows and a description of the run to FOLDER/NAME.json; return the path."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    record = {"run": describe_run(command), "rows": rows}
    path.write_text(json.dumps(record, indent=1) + "\n")
    return path


def source_of(run):
    """The code behind a run; old records name only a commit."""
    commit = run.get("commit")
    return run.get("source") or (commit and code_of(commit))


def code_of(commit):
    """One hash of the package, the benchmarks and the experiments of a commit."""
    files = _git("ls-tree", "-r", commit, "--", "src/overcover", *MEASURING)
    if files is None:
        return None
    lines = [line for line in files.splitlines() if "/results/" not in line]
    return hashlib.sha1("\n".join(lines).encode()).hexdigest()


def _git(*arguments):
    try:
        done = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True
        )
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def version(package):
    """The installed version of a package, or None."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _cpu_model():
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2] for line in lines if line.startswith("model name")]
    return models[0].strip() if models else platform.processor()


# -- commands --------------------------------------------------------------------------


def run_sections(description, prefix, sections, settings, arguments=None):
    """The command of a benchmark in sections: run the chosen ones, record their rows.

    Parameters
    ----------
    description : str
    prefix : str
        Of the JSON files, ``PREFIX_SECTION.json``.
    sections : dict from name to ``function(settings) -> rows``
    settings : tuple
        Full ones, and those of ``--quick``.
    arguments : list of str or None
    """
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--section", default=",".join(sections))
    parser.add_argument("--quick", action="store_true", help="a small run, in seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON files")
    options = parser.parse_args(arguments)
    names = options.section.split(",")
    for name in names:
        if name not in sections:
            parser.error(f"no section {name!r}; choose among {', '.join(sections)}")
    # A quick run must not overwrite published numbers.
    folder = options.results or (None if options.quick else RESULTS)
    for name in names:
        rows = sections[name](settings[1] if options.quick else settings[0])
        if folder:
            print(f"-> {write_json(f'{prefix}_{name}', rows, folder)}", flush=True)
