"""The command: run experiments, record them, draw them, write the page."""

import argparse
import json
from importlib import import_module
from pathlib import Path

from _common import write_json

from .definitions import SCALES

HERE = Path(__file__).resolve().parent
RESULTS, PICTURES = HERE / "results", HERE.parent / "docs" / "reproduction"
# Name of the experiment: module, and the functions that run and draw it.
EXPERIMENTS = {
    "parameters": ("parameters", "run", "draw"),
    "readings": ("readings", "run", None),
    "speed": ("speed", "run", "draw"),
    "balance": ("clustering", "run", "draw"),
    "components": ("clustering", "run_components", "draw_components"),
    "table": ("comparison", "run", None),
    "weighted": ("weighted", "run", None),
    "complexity": ("complexity", "run", None),
    "lemma": ("lemma", "run", "draw"),
    "human36m": ("human36m", "run", None),
}


def command_of(name, scale):
    """The command that repeats the run."""
    option = "" if scale == "full" else f" --scale {scale}"
    return f"python -m experiments {name}{option}"


def run(name, scale, results, pictures):
    """Run one experiment, write its rows, draw its figures."""
    module_name, runner, drawer = EXPERIMENTS[name]
    module = import_module(f".{module_name}", __package__)
    rows = getattr(module, runner)(SCALES[scale])
    path = write_json(name, rows, results, command_of(name, scale))
    print(f"-> {path}", flush=True)
    if drawer:
        rows = json.loads(path.read_text())["rows"]
        for picture in getattr(module, drawer)(rows, pictures):
            print(f"-> {picture}", flush=True)


def main(arguments=None):
    """Parse the command and run it."""
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description=__doc__.splitlines()[0]
    )
    names = ", ".join(EXPERIMENTS)
    parser.add_argument("name", help=f"{names}, several with commas, 'all', or 'page'")
    parser.add_argument("--scale", choices=SCALES, default="full")
    parser.add_argument(
        "--quick", action="store_true", help="the same as --scale quick"
    )
    parser.add_argument("--results", type=Path, help="folder of the JSON files")
    options = parser.parse_args(arguments)
    if options.name == "page":
        from .page import write_page

        print(f"-> {write_page(options.results or RESULTS)}")
        return
    chosen = list(EXPERIMENTS) if options.name == "all" else options.name.split(",")
    for name in chosen:
        if name not in EXPERIMENTS:
            parser.error(f"no experiment {name!r}; choose among {names}, all, page")
    scale = "quick" if options.quick else options.scale
    # A small run must not overwrite published numbers.
    here = scale == "full" and options.results is None
    results = options.results or (RESULTS if here else HERE / "quick")
    for name in chosen:
        run(name, scale, results, PICTURES if here else results)


if __name__ == "__main__":
    main()
