"""Tables, JSON and progress: results for people and programs."""

import json
import math
import sys
import warnings
from contextlib import contextmanager

from .. import _progress
from .._markup import number

# Of tables that go to a file.
WIDTH = 200


def is_watched():
    """Whether standard error is a terminal: only then there are bars."""
    return sys.stderr is not None and sys.stderr.isatty()


def bar(name, total=0, as_share=False):
    """A progress bar; yields a function to advance it by so many."""
    return _progress.bar(name, total or 0, as_share, is_watched())


def say(text):
    """A remark, beside the output."""
    if sys.stderr is not None:  # closed: print would take standard output instead
        print(text, file=sys.stderr, flush=True)


@contextmanager
def warnings_as_notes():
    """Say what is warned of in a line, each text once, without a place in a program."""
    said = set()

    def show(message, *args, **options):
        if str(message) not in said:
            said.add(str(message))
            say(f"note: {message}")

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield


def print_json(answer):
    """For programs; JSON has no infinity, so that what is not finite is null."""
    print(json.dumps(finite_or_none(answer), indent=2, allow_nan=False))


def finite_or_none(value):
    """Plain values without infinities; named tuples become dictionaries."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return {name: finite_or_none(part) for name, part in value.items()}
    if isinstance(value, list):
        return [finite_or_none(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def print_table(title, headings, rows, caption=None):
    """A table whose first column is words, the others numbers."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(title), caption=None if caption is None else Text(caption))
    for i, heading in enumerate(headings):
        table.add_column(
            Text(heading), justify="right" if i else "left", overflow="fold"
        )
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    # In a file or a pipe there is room, and a number that is cut is lost.
    Console(width=None if sys.stdout.isatty() else WIDTH).print(table)


def print_remarks(n_dropped, findings=()):
    """How many rows were left out, if any, and findings, one a line."""
    if n_dropped:
        print(f"{count(n_dropped, 'row')} left out, for lack of values.")
    for finding in findings:
        print(finding)


def count(n, word):
    return f"{number(n)} {word}{'' if n == 1 else 's'}"
