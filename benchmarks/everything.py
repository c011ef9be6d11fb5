"""Every published number from one commit: all benchmarks and experiments in one go.

    python benchmarks/everything.py [--only peers,trust] [--large] [--quick]

Every section is a command with a time limit and a log of its own. Sections that need
both cores, or whose seconds on the clock are published, have the computer to
themselves; the others have one thread, count processor seconds, and run two at a time.
The driver says beforehand
how long all will take. A section that fails or takes too long does not stop the others;
at the end come seconds, failures, and the command that repeats the failed sections.
Results of both runs belong together if the commit is the same.

``--large`` runs what takes longer than everything else together instead, ``--quick`` a
taste of every section on few rows.
"""

import argparse
import os
import re
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import requires
from pathlib import Path
from typing import NamedTuple

import _common
import publish
from _common import note, print_table, timed

LANES = 2
# What runs beside another section leaves it its core, and counts its own time only.
ONE_THREAD = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
ONE_THREAD["OVERCOVER_CLOCK"] = "processor"
EXPERIMENTS = "-m experiments"
# A section may take so many times what it takes on two quiet cores, and a minute more.
PATIENCE = 3.0


class Section(NamedTuple):
    """A command, and the seconds that it takes on two quiet cores."""

    command: str
    seconds: int

    @property
    def limit(self):
        """Seconds after which it is ended."""
        return 60 + PATIENCE * self.seconds


# Seconds on the clock are published, or both cores are used.
ALONE = {
    "peers": Section("benchmarks/rivals.py", 500),
    "nn": Section("benchmarks/gp.py --section nn", 90),
    "twin": Section("benchmarks/twin.py --section cover", 120),
    "partition": Section("benchmarks/partition.py", 70),
    "systems": Section("benchmarks/systems.py --section table", 80),
    "budgets": Section("benchmarks/planning.py --budgets", 40),
    "simulate": Section("benchmarks/simulate.py", 10),
    "compare": Section("benchmarks/compare.py", 110),
    "stream": Section("benchmarks/stream.py", 80),
    "store": Section("benchmarks/scale.py --section store", 20),
}
# The longest come first, so that both lanes end together.
BESIDE = {
    "rows": Section("benchmarks/trust.py --section small,outliers,surprises,pose", 700),
    "paper": Section(f"{EXPERIMENTS} table,speed,complexity,weighted,human36m", 350),
    "parameters": Section(
        f"{EXPERIMENTS} parameters,readings,lemma,components,balance", 210
    ),
    "trust": Section(
        "benchmarks/trust.py --section outputs,weights,logs,gaps,kernels", 180
    ),
    "covers": Section("benchmarks/gp.py --section routers,overlap,memory", 100),
    "search": Section("benchmarks/twin.py --section search,shift,tuning", 90),
    "posterior": Section("benchmarks/posterior.py", 200),
    "pose": Section("benchmarks/pose.py", 60),
    "planning": Section("benchmarks/planning.py", 60),
    "frames": Section("benchmarks/frames.py", 40),
    "constants": Section("benchmarks/constants.py", 40),
    "precision": Section("benchmarks/precision.py", 40),
    "learned": Section("benchmarks/systems.py --section agreement,learned,special", 30),
    "boundaries": Section("benchmarks/boundaries.py", 30),
    "first_use": Section("benchmarks/first_use.py", 20),
}
LARGE = {
    "million": Section("benchmarks/scale.py --section million", 600),
    "growth": Section("benchmarks/scale.py --section growth", 600),
    "human36m": Section("benchmarks/scale.py --section pose", 3600),
    "poses": Section("benchmarks/trust.py --section poses", 3600),
}


def run(name, section, logs, options):
    """One section to its end; a row of the table of seconds."""
    note(f"{name}: python {section.command}")
    with open(logs / f"{name}.log", "w") as log:
        child = subprocess.Popen(
            [sys.executable, *words(section.command, options)],
            cwd=_common.ROOT,
            env=os.environ | (ONE_THREAD if name in BESIDE else {}),
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        outcome, seconds = timed(wait, child, section.limit)
    note(f"{name}: {outcome} after {seconds:.0f} s")
    return {"section": name, "seconds": round(seconds), "outcome": outcome}


def words(command, options):
    """The command's arguments."""
    given = command.split()
    if options.quick:
        given += ["--scale", "tiny"] if command.startswith(EXPERIMENTS) else ["--quick"]
    if options.results:
        given += ["--results", str(options.results)]
    return given


def wait(child, limit):
    """The outcome in words; a child over its limit ends with all its own children."""
    try:
        code = child.wait(limit)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()
        return f"over its limit of {limit:g} s"
    return "done" if code == 0 else f"failed (exit code {code})"


def expected(names, known):
    """Seconds that these sections take together on two quiet cores."""
    beside = [known[name].seconds for name in names if name in BESIDE]
    alone = [known[name].seconds for name in names if name not in BESIDE]
    return sum(alone) + max([sum(beside) / LANES, *beside])


def lacking():
    """Packages of the extra "bench" that are not installed."""
    lines = [line for line in requires("overcover") or () if '"bench"' in line]
    names = [re.match(r"[\w.-]+", line)[0] for line in lines]
    return [name for name in names if _common.version(name) is None]


def refusal():
    """Why published numbers cannot be measured here and now, or None."""
    if _common.describe_run()["dirty"]:
        return "the checkout has changes: commit them, or choose --results"
    if lacking():
        return f"not installed: {', '.join(lacking())}; or choose --results"
    _common.data_folder()
    return None


def main(arguments=None):
    """Run the chosen sections; the exit code says whether all of them ended well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", help="sections, separated by commas")
    parser.add_argument("--large", action="store_true", help="a million rows and more")
    parser.add_argument("--quick", action="store_true", help="a taste, on few rows")
    parser.add_argument("--results", type=Path, help="folder for the JSON files")
    parser.add_argument("--logs", type=Path, help="folder for the logs")
    options = parser.parse_args(arguments)
    known = LARGE if options.large else ALONE | BESIDE
    chosen = options.only.split(",") if options.only else list(known)
    for name in chosen:
        if name not in known:
            parser.error(f"no section {name!r}; choose among {', '.join(known)}")
    if options.quick and options.results is None:
        # A quick run must not overwrite published numbers.
        options.results = Path(tempfile.mkdtemp(prefix="quick-results-"))
    if options.results:
        options.results = options.results.resolve()
    elif refusal():
        parser.error(refusal())
    logs = options.logs or Path(tempfile.mkdtemp(prefix="benchmarks-"))
    logs.mkdir(parents=True, exist_ok=True)
    note(f"logs are in {logs}")
    if not options.quick:
        note(f"expected on two quiet cores: {expected(chosen, known) / 60:.0f} minutes")
    beside = [name for name in chosen if name in BESIDE and not options.large]
    with ThreadPoolExecutor(LANES) as lanes:
        # The longest come first in BESIDE, so that both lanes end together.
        tasks = [lanes.submit(run, n, BESIDE[n], logs, options) for n in beside]
        rows = [task.result() for task in tasks]
    alone = [name for name in chosen if name not in beside]
    rows += [run(name, known[name], logs, options) for name in alone]
    print_table("Sections", rows)
    failed = [row["section"] for row in rows if row["outcome"] != "done"]
    if failed:
        print(f"Not done: {', '.join(failed)}. Read {logs}/SECTION.log, then repeat:")
        print(f"python benchmarks/everything.py --only {','.join(failed)}")
    if options.results:
        print(f"Results are in {options.results}.")
    else:
        print(publish.objection() or "All results belong together.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
