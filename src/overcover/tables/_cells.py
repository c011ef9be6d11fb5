"""One rule for the meaning of a cell: number, date, truth value, gap or word."""

import re
from datetime import UTC, datetime

import numpy as np

# Cells that mean that a value is missing, in any mixture of small and capital letters.
GAPS = frozenset(("", "?", ".", "na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>", "nan"))
GAPS |= {"-nan", "null", "none", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"}
TRUTH = {"true": 1.0, "false": 0.0}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_PER_DAY = 86400.0
# Year first, maybe with other separators than ISO 8601 has, or without a day.
_DATE = re.compile(r"(\d{4})([-/.])(\d\d)(?:\2(\d\d))?((?:[T ].*)?)")
# Day first, as dots say; slashes do not tell which comes first.
_DOTTED = re.compile(r"(\d\d?)\.(\d\d?)\.(\d{4})((?:[T ].*)?)")
_SLASHED = re.compile(r"\d\d?/\d\d?/(?:\d\d|\d{4})(?:[T ].*)?")
DECIMAL_COMMA = re.compile(r"[-+]?\d+,\d+")


class TableError(ValueError):
    """A file holds no table, or a table holds no numbers; the message says where."""


def column_names(n_columns, letter="c"):
    """Names of columns that have none: a letter and the position."""
    return [f"{letter}{i}" for i in range(n_columns)]


def is_word(cell):
    """Whether the text of a cell is neither a number nor a gap."""
    return cell.strip().lower() not in GAPS and _number(cell) is None


def _number(cell):
    """The number in a cell; None for a word."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _day(cell):
    """The date in a cell as days since 1970, in UTC; None for a word."""
    match, dotted = _DATE.fullmatch(cell), _DOTTED.fullmatch(cell)
    if dotted is not None:
        day, month, year, rest = dotted.groups()
        cell = f"{year}-{month:0>2}-{day:0>2}{rest}"
    elif match is not None:
        year, _, month, day, rest = match.groups()
        cell = f"{year}-{month}-{day or '01'}{rest}"
    try:
        when = datetime.fromisoformat(cell)
    except ValueError:
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return (when - EPOCH).total_seconds() / SECONDS_PER_DAY


READERS = {"number": _number, "date": _day}


def parse(cells, kind):
    """Values of a column as float64 (gaps NaN, dates days), and which cells are bad."""
    values, bad = np.full(len(cells), np.nan), np.zeros(len(cells), bool)
    if cells.dtype.kind == "M":
        present = ~np.isnat(cells)
        if kind == "number":
            return values, present
        since = cells[present] - np.datetime64(0, "s")
        values[present] = since / np.timedelta64(1, "s") / SECONDS_PER_DAY
        return values, bad
    if kind == "number" and cells.dtype.kind in "biuf":
        return cells.astype(np.float64), bad
    texts = ["" if c is None or c != c else str(c).strip() for c in cells]
    present = np.array([text.lower() not in GAPS for text in texts], bool)
    rows = np.flatnonzero(present)
    are_truths = kind == "number" and all(texts[i].lower() in TRUTH for i in rows)
    for i in rows:
        value = TRUTH[texts[i].lower()] if are_truths else READERS[kind](texts[i])
        bad[i] = value is None or value != value
        values[i] = np.nan if bad[i] else value
    return values, bad


def kind_of(cells):
    """The kind of a column as in `parse`: "number", "date" or "words"."""
    for kind in READERS:
        if not parse(cells, kind)[1].any():
            return kind
    return "words"


def strange_cell(cells):
    """The first cell and what it is, if most cells look like something else."""
    texts = ["" if c is None or c != c else str(c).strip() for c in cells]
    n_present = sum(text.lower() not in GAPS for text in texts)
    slashes = "a date whose first number may be the day or the month: write 2024-01-31"
    commas = "a number with a decimal comma, where a point should be"
    for pattern, what in ((_SLASHED, slashes), (DECIMAL_COMMA, commas)):
        rows = [i for i, text in enumerate(texts) if pattern.fullmatch(text)]
        if 2 * len(rows) > n_present:
            return rows[0], what
    return None
