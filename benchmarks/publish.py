"""Write measured numbers into README and docs, between their begin and end marks.

    python benchmarks/publish.py [--check] [--mixed]

Tables come from benchmarks/results/*.json, the output of README's example from running
it. A mark is a pair of comments, ``<!-- begin: NAME -->`` and ``<!-- end: NAME -->``.
With ``--check`` nothing is written, and the exit code says whether anything would be.
docs/reproduction.md is written as a whole, from experiments/results. Results of
different versions of the package, or of a changed checkout, are refused, but for the
large ones; ``--mixed`` publishes them nevertheless. Every table names its commit.
"""

import argparse
import contextlib
import io
import json
import re
import sys
from pathlib import Path

import _common
import _peer_tables
import _posterior_tables
import _precision_tables
import _scale_tables
import _system_tables
import _tables
import _trust_tables

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
import experiments.page

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
EXPERIMENTS = ROOT / "experiments" / "results"
REPRODUCTION = ROOT / "docs" / "reproduction.md"
TABLES = _tables.TABLES | _scale_tables.TABLES | _precision_tables.TABLES
TABLES |= _system_tables.TABLES
TABLES |= _trust_tables.TABLES | _posterior_tables.TABLES | _peer_tables.TABLES
# Hours, on a run of their own: `make bench-large`.
LARGE = ("scale_million", "scale_growth", "scale_pose", "trust_poses")
PAGES = ("README.md", *(f"docs/{page.name}" for page in (ROOT / "docs").glob("*.md")))


def path_of(name):
    """The file of a result."""
    folder = EXPERIMENTS if name in experiments.page.SECTIONS else RESULTS
    return folder / f"{name}.json"


def sources_of(names):
    """The results that a table needs: one name, or several."""
    return (names,) if isinstance(names, str) else names


def example(page):
    """What the page's first Python block prints."""
    code = re.search(r"```python\n(.*?)```", page, re.S)
    assert code is not None, "the page has no Python block"
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code[1], "example", "exec"), {})
    return f"```\n{printed.getvalue()}```"


def filled(page):
    """The page with every mark filled that there are numbers for."""

    def fill(match):
        name = match[1]
        if name == "example":
            text = example(page)
        else:
            names, write = TABLES[name]
            paths = [path_of(source) for source in sources_of(names)]
            if not all(path.exists() for path in paths):
                return match[0]
            text = write(*(json.loads(path.read_text()) for path in paths))
        return f"<!-- begin: {name} -->\n{text}\n<!-- end: {name} -->"

    mark = r"<!-- begin: ([\w-]+) -->\n(?:.*?\n)?<!-- end: \1 -->"
    return re.sub(mark, fill, page, flags=re.S)


def records(large=False):
    """Every published result that there is, by the path of its file."""
    names = {name for names, _ in TABLES.values() for name in sources_of(names)}
    names |= set(experiments.page.SECTIONS)
    names = [name for name in sorted(names) if large or name not in LARGE]
    paths = [path_of(name) for name in names]
    return {
        path: json.loads(path.read_text())["run"] if path.exists() else None
        for path in paths
    }


def objection():
    """Why the published results do not belong together, or None.

    They must come from one version of the package and of what measures it, and from
    checkouts without changes. The large ones are runs of their own: their tables name
    the commit, and may be older.
    """
    by_source: dict[str, list[str]] = {}
    changed = []
    for path, run in records().items():
        if run is None:
            continue
        source = _common.source_of(run) or f"unknown, of {path.name}"
        text = f"{path.name} (commit {(run.get('commit') or 'unknown')[:7]})"
        by_source.setdefault(source, []).append(text)
        if run.get("dirty"):
            changed.append(text)
    parts = []
    if len(by_source) > 1:
        lines = [f"  {source[:12]}: {', '.join(t)}" for source, t in by_source.items()]
        lines.insert(0, "Results come from different versions of the code:")
        parts.append("\n".join(lines))
    if changed:
        parts.append(f"Results come from changed checkouts: {', '.join(changed)}.")
    if not parts:
        return None
    remedy = "Run these benchmarks again on one commit, or publish with --mixed."
    return "\n".join([*parts, remedy])


def missing():
    """Names of the results that pages want and nobody has measured."""
    return [path.name for path, run in records(large=True).items() if run is None]


def main(arguments=None):
    """Fill in all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    parser.add_argument(
        "--mixed", action="store_true", help="publish results of different versions"
    )
    options = parser.parse_args(arguments)
    if missing():
        print(f"not measured: {', '.join(missing())}", file=sys.stderr)
    reason = None if options.mixed else objection()
    if reason:
        print(reason, file=sys.stderr)
        return 2
    pages = {ROOT / name: filled((ROOT / name).read_text()) for name in PAGES}
    if EXPERIMENTS.is_dir():
        pages[REPRODUCTION] = experiments.page.text_of(EXPERIMENTS)
    stale = [path for path, new in pages.items() if path.read_text() != new]
    for path in stale:
        if not options.check:
            path.write_text(pages[path])
    stale = [str(path.relative_to(ROOT)) for path in stale]
    print("changed:" if stale else "nothing changed", ", ".join(stale))
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
