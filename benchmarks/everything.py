"""Every published number from one commit: all benchmarks and experiments in one go.

    python benchmarks/everything.py [--only peers,trust] [--large] [--quick]

Every section is a command with a time limit and a log of its own. Sections whose
seconds are published have the computer to themselves; the others only count errors, and
run two at a time. A section that fails or takes too long does not stop the others. At
the end come seconds, failures, and whether the results belong together.

``--large`` runs what takes longer than everything else together instead, ``--quick`` a
taste of every section on few rows.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import _common
import publish
from _common import note, print_table, timed

LANES = 2
EXPERIMENTS = "-m experiments"


class Section(NamedTuple):
    """A command, and the seconds after which it is ended."""

    command: str
    limit: int


# Their seconds are published.
ALONE = {
    "peers": Section("benchmarks/rivals.py", 2700),
    "nn": Section("benchmarks/gp.py --section nn", 300),
    "partition": Section("benchmarks/partition.py", 180),
    "twin": Section("benchmarks/twin.py", 360),
    "systems": Section("benchmarks/systems.py --section table", 300),
    "planning": Section("benchmarks/planning.py", 240),
    "budgets": Section("benchmarks/planning.py --budgets", 120),
    "first_use": Section("benchmarks/first_use.py", 120),
    "simulate": Section("benchmarks/simulate.py", 60),
    "compare": Section("benchmarks/compare.py", 300),
    "frames": Section("benchmarks/frames.py", 180),
    "rounding": Section("benchmarks/rounding.py", 180),
    "stream": Section("benchmarks/stream.py", 360),
    "store": Section("benchmarks/scale.py --section store", 120),
    "experiments": Section(
        f"{EXPERIMENTS} table,speed,complexity,weighted,balance,human36m", 600
    ),
}
# Their errors alone are published, and do not depend on the load.
BESIDE = {
    "trust": Section(
        "benchmarks/trust.py --section outputs,weights,logs,gaps,kernels", 1200
    ),
    "rows": Section(
        "benchmarks/trust.py --section small,outliers,surprises,pose", 1200
    ),
    "parameters": Section(f"{EXPERIMENTS} parameters,readings,lemma,components", 1200),
    "covers": Section("benchmarks/gp.py --section routers,overlap,memory", 900),
    "posterior": Section("benchmarks/posterior.py", 900),
    "learned": Section("benchmarks/systems.py --section agreement,learned", 900),
    "constants": Section("benchmarks/constants.py", 900),
    "faults": Section("benchmarks/faults.py", 900),
    "pose": Section("benchmarks/pose.py", 900),
    "boundaries": Section("benchmarks/boundaries.py", 900),
}
LARGE = {
    "million": Section("benchmarks/scale.py --section million", 3600),
    "growth": Section("benchmarks/scale.py --section growth", 3600),
    "human36m": Section("benchmarks/scale.py --section pose", 2 * 3600),
    "poses": Section("benchmarks/trust.py --section poses", 2 * 3600),
}


def run(name, section, logs, options):
    """One section to its end; a row of the table of seconds."""
    note(f"{name}: python {section.command}")
    with open(logs / f"{name}.log", "w") as log:
        child = subprocess.Popen(
            [sys.executable, *words(section.command, options)],
            cwd=_common.ROOT,
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
        return f"over its limit of {limit} s"
    return "done" if code == 0 else f"failed (exit code {code})"


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
    elif _common.describe_run()["dirty"]:
        parser.error("the checkout has changes: commit them, or choose --results")
    logs = options.logs or Path(tempfile.mkdtemp(prefix="benchmarks-"))
    logs.mkdir(parents=True, exist_ok=True)
    note(f"logs are in {logs}")
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
        print(f"Not done: {', '.join(failed)}. Read {logs}/SECTION.log.")
    if options.results:
        print(f"Results are in {options.results}.")
    else:
        print(publish.objection() or "All results belong together.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
