"""Do defaults hold on data that nobody tuned them on? Commands behind docs/trust.md.

    python benchmarks/trust.py [--section outputs,small] [--seeds 0,1] [--quick]

Prints tables as results come, and writes benchmarks/results/trust_SECTION.json. Every
fit is the default one: `OverlappingCoverRegressor` with a seed and nothing else, unless
a section says otherwise. Errors of tables on disk (NLPD and coverage of rf1, kin40k,
protein, bike, sarcos_small) are in ``rivals.py``.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

from threadpoolctl import threadpool_limits

import _common
import trust_intervals
import trust_kernels
import trust_outputs
import trust_pose
import trust_rows
import trust_surprises


class Settings(NamedTuple):
    """Sizes of a run."""

    is_full: bool
    seeds: tuple[int, ...]
    mixtures: tuple[int, ...]
    """Seeds of the mixtures of outputs."""

    n_rows: int
    """Training rows of simulated problems."""

    n_repeats: int
    """Draws of each small problem."""

    small_sizes: tuple[int, ...]
    n_weighted: int
    n_full: int
    """Rows on which the reference GP learns its hyperparameters."""

    n_kernel_rows: int
    """Training rows of data files, for the comparison of kernels."""

    poses: tuple[str, ...] = ("demo", "humaneva", "poserlike")
    kinds: tuple[str, ...] = ()
    """Cases of a section, if not all of them."""

    n_grid: int | None = None
    """Points of the grids of poses, if not all of them."""


FULL = Settings(
    is_full=True,
    seeds=(0, 1, 2),
    mixtures=tuple(range(10)),
    n_rows=500,
    n_repeats=2000,
    small_sizes=(10, 20, 40, 100),
    n_weighted=120,
    n_full=400,
    n_kernel_rows=600,
    poses=("demo", "humaneva"),
    n_grid=0,
)
QUICK = Settings(False, (0,), (0,), 60, 2, (10, 20), 40, 40, 60, ("demo",), (), 2)

SECTIONS = {
    "outputs": trust_outputs.outputs,
    "weights": trust_rows.weights,
    "small": trust_intervals.small,
    "logs": trust_intervals.logs,
    "gaps": trust_intervals.gaps,
    "outliers": trust_rows.outliers,
    "kernels": trust_kernels.kernels,
    "surprises": trust_surprises.surprises,
    "pose": trust_pose.pose,
    "poses": trust_pose.poses,
}


def main(arguments=None):
    """Run the chosen sections."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = [name for name in SECTIONS if name != "poses"]  # which takes an hour
    parser.add_argument("--section", default=",".join(usual))
    parser.add_argument("--seeds", type=numbers, help="seeds, instead of 0,1,2")
    parser.add_argument("--rows", type=int, help="training rows of simulated problems")
    parser.add_argument("--poses", help="demo, humaneva, poserlike, or some of them")
    parser.add_argument("--kinds", help="some cases of a section, separated by commas")
    parser.add_argument("--grid", type=int, help="points of the grids; 0 for none")
    parser.add_argument("--repeats", type=int, help="draws of each small problem")
    parser.add_argument("--quick", action="store_true", help="a small run, in seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON files")
    options = parser.parse_args(arguments)
    names = options.section.split(",")
    for name in names:
        if name not in SECTIONS:
            parser.error(f"no section {name!r}; choose among {', '.join(SECTIONS)}")
    settings = QUICK if options.quick else FULL
    # The command as published: its section, and what differs from the full run.
    changes = "".join(
        f" --{name} {value!r}" if isinstance(value, str) else f" --{name} {value}"
        for name in ("rows", "repeats", "poses", "grid", "kinds")
        if (value := getattr(options, name)) is not None
    )
    if options.seeds:
        changes += f" --seeds {','.join(map(str, options.seeds))}"
    if options.seeds:
        settings = settings._replace(seeds=options.seeds, mixtures=options.seeds)
    if options.rows:
        settings = settings._replace(n_rows=options.rows, n_kernel_rows=options.rows)
    if options.repeats:
        settings = settings._replace(n_repeats=options.repeats)
    if options.poses:
        settings = settings._replace(poses=tuple(options.poses.split(",")))
    if options.kinds:
        settings = settings._replace(kinds=tuple(options.kinds.split(",")))
    if options.grid is not None:
        settings = settings._replace(n_grid=options.grid)
    # A quick run must not overwrite published numbers.
    folder = options.results or (None if options.quick else _common.RESULTS)
    with threadpool_limits(1):
        for name in names:
            rows = SECTIONS[name](settings)
            if folder:
                command = f"python benchmarks/trust.py --section {name}{changes}"
                path = _common.write_json(f"trust_{name}", rows, folder, command)
                print(f"-> {path}", flush=True)


def numbers(text):
    """Integers separated by commas."""
    return tuple(int(word) for word in text.split(","))


if __name__ == "__main__":
    main()
