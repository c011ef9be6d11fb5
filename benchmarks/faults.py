"""The store under stress: fits killed at random moments, damaged files, precision.

    python benchmarks/faults.py [--section kills,damage,precision] [--quick]

Kills: SIGKILL ends fits into a store at random moments, and they start again until they
are complete. Every model must equal that of an undisturbed fit. Damage: random bytes
flip and files lose their ends. Every damage must cause an error that names the file, or
change nothing. Precision: the errors that float32 causes, by the noise of the data.
Prints tables and writes benchmarks/results/faults_*.json.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
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
    n_kills: int
    n_flips: int
    n_cuts: int


FULL = Settings(8000, 200, 12, 2000, 500)
QUICK = Settings(400, 40, 2, 60, 20)
NOISES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)


def problem(n_rows, noise=0.1):
    """A smooth function of three inputs, two outputs, some noise; and queries."""
    rng = np.random.default_rng(_common.SEED)
    X = rng.uniform(-3, 3, (n_rows + 500, 3))
    Y = np.column_stack([np.sin(X[:, 0]) * np.cos(X[:, 1]), X[:, 2]])
    Y += noise * rng.normal(size=Y.shape)
    return X[:n_rows], Y[:n_rows], X[n_rows:]


def make_model(settings, machine=None):
    """A model with a fixed seed."""
    machine = GP(noise=0.01) if machine is None else machine
    return OverlappingCoverRegressor(
        machine, subdomain_size=settings.size, overlap=0.8, random_state=0, n_jobs=2
    )


# -- kills -----------------------------------------------------------------------------


def fit_alone(path, n_rows, size):
    """The fit that a process runs until it is killed."""
    settings = FULL._replace(n_rows=int(n_rows), size=int(size))
    X, Y, _ = problem(settings.n_rows)
    store.fit_into(make_model(settings), X, Y, path)


def kills(settings):
    """One row per fit: the number of kills, and whether the model is the same."""
    X, Y, queries = problem(settings.n_rows)
    expected = make_model(settings).fit(X, Y)
    answers = np.array(expected.predict(queries, return_std=True))
    rng = np.random.default_rng(_common.SEED)
    rows, n_kills = list[dict](), 0
    with tempfile.TemporaryDirectory() as folder:
        while n_kills < settings.n_kills:
            path = Path(folder) / f"{len(rows)}.ocm"
            count, n_files_at_kills = 0, list[int]()
            while n_kills + count < settings.n_kills:
                note(f"fit {len(rows)}, kill {n_kills + count}")
                if not killed(path, settings, rng):
                    break
                count += 1
                n_files_at_kills.append(n_files(path))
            X, Y, _ = problem(settings.n_rows)
            store.fit_into(make_model(settings), X, Y, path)
            results = overcover.load(path).predict(queries, return_std=True)
            store.verify(path)
            same = bool(np.array_equal(results, answers))
            rows.append(
                {"kills": count, "files_at_kills": n_files_at_kills, "same_model": same}
            )
            n_kills += count
            shutil.rmtree(path)
    print_table(f"Fits of {expected.n_subdomains_} subdomains, killed", rows)
    return rows


def n_files(path):
    """The number of complete files of a store."""
    try:
        return len(list(Path(path).glob("data-*/*.pack")))
    except FileNotFoundError:  # a folder that has just got its final name
        return 0


def killed(path, settings, rng):
    """Start a fit and kill it at a random moment; False if it ends before."""
    command = [sys.executable, __file__, "--fit", str(path)]
    command += [str(settings.n_rows), str(settings.size)]
    child = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    # Wait for a random number of files and a little longer, to hit any point.
    wanted = n_files(path) + int(rng.integers(0, 12))
    while child.poll() is None and n_files(path) < wanted:
        time.sleep(0.001)
    if wanted == n_files(path):
        time.sleep(float(rng.uniform(0, 0.05)))
    if child.poll() is not None:
        return False
    os.kill(child.pid, signal.SIGKILL)
    return child.wait() == -signal.SIGKILL


# -- damage ----------------------------------------------------------------------------


def damage(settings):
    """One row per kind of damage: how often it was noticed, harmless, or missed."""
    X, Y, queries = problem(120)
    model = make_model(settings._replace(size=30)).fit(X, Y)
    expected = np.array(model.predict(queries, return_std=True))
    rng = np.random.default_rng(_common.SEED)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.ocm"
        model.save(path)
        files = sorted(f for f in path.rglob("*") if f.is_file())

        def flipped(data):
            changed = bytearray(data)
            changed[rng.integers(len(data))] ^= 1 << rng.integers(8)
            return bytes(changed)

        def cut(data):
            return data[: rng.integers(len(data))]

        for kind, change, n in (
            ("one bit flipped", flipped, settings.n_flips),
            ("cut short", cut, settings.n_cuts),
        ):
            counts = {"noticed": 0, "harmless": 0, "missed": 0}
            for _ in range(n):
                file = files[rng.integers(len(files))]
                counts[outcome(path, file, change, queries, expected)] += 1
            rows.append({"damage": kind, "tried": n} | counts)
    print_table("Damaged files", rows)
    return rows


def outcome(path, file, change, queries, expected):
    """The effect of one damaged file."""
    whole = file.read_bytes()
    replace(file, change(whole))
    try:
        results = overcover.load(path).predict(queries, return_std=True)
        return "harmless" if np.array_equal(results, expected) else "missed"
    except store.StoreError as error:
        return "noticed" if file.name in str(error) else "missed"
    finally:
        replace(file, whole)


def replace(file, content):
    """Put another file under the same name: threads may still read the old one, and the
    system ends a process whose mapped file shrinks."""
    file.unlink()
    file.write_bytes(content)


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


SECTIONS = {"kills": kills, "damage": damage, "precision": precision}


def main(arguments=None):
    """Run the chosen sections."""
    run_sections(__doc__.splitlines()[0], "faults", SECTIONS, (FULL, QUICK), arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        fit_alone(*sys.argv[2:])
    else:
        main()
