"""Write measured numbers into README and docs, between their begin and end marks.

    python benchmarks/publish.py [--check]

Tables come from benchmarks/results/*.json, the output of README's example from running
it. A mark is a pair of comments, ``<!-- begin: NAME -->`` and ``<!-- end: NAME -->``.
With ``--check`` nothing is written, and the exit code says whether anything would be.
"""

import argparse
import contextlib
import io
import json
import re
import sys
from pathlib import Path

import _posterior_tables
import _precision_tables
import _scale_tables
import _tables
import _trust_tables

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
TABLES = _tables.TABLES | _scale_tables.TABLES | _precision_tables.TABLES
TABLES |= _trust_tables.TABLES | _posterior_tables.TABLES
PAGES = ("README.md", "docs/how-it-works.md", "docs/routing.md", "docs/choosing.md")
PAGES += ("docs/methods.md", "docs/pose.md", "docs/store-format.md")
PAGES += (
    "docs/scaling.md",
    "docs/command-line.md",
    "docs/tables.md",
    "docs/numerics.md",
    "docs/trust.md",
    "docs/posterior.md",
    "docs/learning-on.md",
)


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
            source, write = TABLES[name]
            path = RESULTS / f"{source}.json"
            if not path.exists():
                return match[0]
            text = write(json.loads(path.read_text()))
        return f"<!-- begin: {name} -->\n{text}\n<!-- end: {name} -->"

    mark = r"<!-- begin: ([\w-]+) -->\n(?:.*?\n)?<!-- end: \1 -->"
    return re.sub(mark, fill, page, flags=re.S)


def main(arguments=None):
    """Fill in all pages."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    options = parser.parse_args(arguments)
    stale = []
    for name in PAGES:
        path = ROOT / name
        page = path.read_text()
        new = filled(page)
        if new != page:
            stale.append(name)
            if not options.check:
                path.write_text(new)
    print("changed:" if stale else "nothing changed", ", ".join(stale))
    return int(options.check and bool(stale))


if __name__ == "__main__":
    sys.exit(main())
