"""One rule for the meaning of a cell: number, date, truth value, gap or word."""

import re
from datetime import UTC, datetime
from typing import NamedTuple

import numpy as np

# Cells that mean that a value is missing, in any mixture of small and capital letters.
GAPS = frozenset(("", "?", ".", "na", "n/a", "#n/a", "#na", "#n/a n/a", "<na>", "nan"))
GAPS |= {"-nan", "null", "none", "1.#ind", "-1.#ind", "1.#qnan", "-1.#qnan"}
TRUTH = {"true": 1.0, "false": 0.0}
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECONDS_PER_DAY = 86400.0
# What may stand behind a day: a time, maybe with its zone.
_REST = r"(?:(?:t|,? ) *(?P<rest>\S.*))?"
_NUMBERED = r"(?P<first>\d\d?)(?P<mark>[-/])(?P<second>\d\d?)(?P=mark)(?P<year>\d{4})"
_DAY, _NAME = r"(?P<day>\d\d?)(?:st|nd|rd|th)?", r"(?P<month>[a-z]{3,9})\.?"
_WEEKDAY = r"(?:(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,? )?"
# Dates whose parts can be told from each other, in small letters.
_DATES = [
    re.compile(pattern + _REST)
    for pattern in (
        r"(?P<year>\d{4})(?P<mark>[-/.])(?P<month>\d\d?)(?:(?P=mark)(?P<day>\d\d?))?",
        r"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{4})",  # as dots say
        rf"{_WEEKDAY}{_DAY}[-/. ]? ?{_NAME}[-/, ]? ?(?P<year>\d{{4}})",
        rf"{_WEEKDAY}{_NAME}[- ]? ?{_DAY}(?:,|-|,? )(?P<year>\d{{4}})",
        rf"(?P<year>\d{{4}})[-/ ]{_NAME}[-/ ]{_DAY}",
    )
]
_YEAR_LAST = re.compile(_NUMBERED + _REST)
_CLOCK = re.compile(
    r"(\d\d?)((?::\d\d){0,2}(?:[.,]\d+)?)(?: ?([ap])\.?m\.?)?"
    r" ?(z|utc|gmt|[-+]\d\d(?::?\d\d)?)?"
)
MONTHS = ["january", "february", "march", "april", "may", "june", "july"]
MONTHS += ["august", "september", "october", "november", "december"]
DECIMAL_COMMA = re.compile(r"[-+]?\d*,\d+(?:[eE][-+]?\d+)?")
POINTED = " (with a point)"
_ISO, _PLAIN = "write 2024-01-31", "write 1234.5"
# What cells are that look like something else than words.
_STRANGE = {
    f"a date whose first number may be the day or the month: {_ISO}": _NUMBERED + _REST,
    f"a date whose year has two digits: {_ISO}": (
        r"\d\d?([-/. ])(\d\d?|[a-z]{3,9})\1\d\d(?:[T ].*)?"
    ),
    f"a date or time of a form that is not read: {_ISO} 12:30, or hours as a number": (
        r"\d{4}([-/.])\d\d?\1\d\d?.*|\d\d?\.\d\d?\.\d{4}.*|\d\d?[-/.]\d{4}|"
        r".*\b(19|20)\d\d\b.* \d\d?:\d\d.*|\d\d?(:\d\d){1,2}(\.\d+)?( ?[ap]m)?"
    ),
    f"a number whose comma is a decimal mark, or sets thousands apart: {_PLAIN}": (
        r"[-+]?\d{1,3},\d{3}"
    ),
    "a number with a decimal comma, where a point should be": DECIMAL_COMMA.pattern,
    f"a number whose thousands are set apart: {_PLAIN}": (
        r"[-+]?\d{1,3}(?:[.,' \u00a0\u202f]\d{3})+(?:[.,]\d+)?"
    ),
    f"a number with a sign beside it: {_PLAIN}": (
        r"(?=.*[%$€£¥\u2212])[-+\u2212%$€£¥ ]*\d[\d.,]*[%$€£¥ ]*"
    ),
    "a number with a point, which may be its mark or set thousands apart": (
        r".*" + re.escape(POINTED)
    ),
}
STRANGE = {what: re.compile(p, re.IGNORECASE) for what, p in _STRANGE.items()}


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
    try:
        when = datetime.fromisoformat(cell)
    except ValueError:
        match = next(filter(None, (d.fullmatch(cell.lower()) for d in _DATES)), None)
        try:
            when = datetime.fromisoformat("" if match is None else _in_iso(match))
        except ValueError:
            return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return (when - EPOCH).total_seconds() / SECONDS_PER_DAY


def _in_iso(match):
    """A date as ISO 8601 has it; a ValueError if it cannot be one."""
    month = match["month"]
    if not month.isdigit():
        (month,) = (i for i, m in enumerate(MONTHS, 1) if m.startswith(month))
    date = f"{match['year']}-{month:0>2}-{match['day'] or '1':0>2}"
    return date if match["rest"] is None else f"{date}T{_clock(match['rest'])}"


def _clock(text):
    """A time as ISO 8601 has it; what is not known stays as it is."""
    match = _CLOCK.fullmatch(text)
    if match is None:
        return text
    hour, rest, half, zone = match.groups()
    if half is not None:
        if not 1 <= int(hour) <= 12:
            raise ValueError(f"{text!r} is no time")
        hour = int(hour) % 12 + 12 * (half == "p")
    zone = {"z": "+00", "utc": "+00", "gmt": "+00", None: ""}.get(zone, zone)
    return f"{hour:0>2}{rest}{zone}"


class Spelling(NamedTuple):
    """How a text writes numbers and dates, where that is for its author to say."""

    decimal: str = "."
    order: str | None = None  # of the numbers of a date, "dmy" or "mdy"

    def plain(self, cells):
        """Cells of a column with a decimal point, and dates with the year first."""
        plain = [self._plain(c) if isinstance(c, str) else c for c in cells]
        if self.decimal == ".":
            return plain
        # A point may set thousands apart.
        pointed = [isinstance(c, str) and "." in c and not is_word(c) for c in cells]
        words = [isinstance(c, str) and is_word(c) for c in plain]
        gaps = [c is None or c != c for c in plain]
        if 2 * (len(plain) - sum(words) - sum(gaps)) <= len(plain) - sum(gaps):
            return plain
        return [f"{c}{POINTED}" if bad else c for c, bad in zip(plain, pointed)]

    def _plain(self, cell):
        cell = cell.strip()
        if self.decimal == "," and DECIMAL_COMMA.fullmatch(cell):
            return cell.replace(",", ".")
        match = _YEAR_LAST.fullmatch(cell.lower())
        if match and self.order:
            parts = {self.order[0]: match["first"], self.order[1]: match["second"]}
            date = f"{match['year']}-{parts['m']:0>2}-{parts['d']:0>2}"
            plain = date + (f" {match['rest']}" if match["rest"] else "")
            return cell if _day(plain) is None else plain
        return cell


PLAIN = Spelling()
READERS = {"number": _number, "date": _day}


def _texts(cells):
    return ["" if c is None or c != c else str(c).strip() for c in cells]


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
    texts = _texts(cells)
    present = np.array([text.lower() not in GAPS for text in texts], bool)
    rows = np.flatnonzero(present)
    are_truths = kind == "number" and all(texts[i].lower() in TRUTH for i in rows)
    for i in rows:
        value = TRUTH[texts[i].lower()] if are_truths else READERS[kind](texts[i])
        bad[i] = value is None or value != value
        values[i] = np.nan if bad[i] else value
    return values, bad


def strange_cell(cells):
    """The first cell that looks like no word, and what it is, if few are words."""
    texts = [(i, t) for i, t in enumerate(_texts(cells)) if t.lower() not in GAPS]
    n_plain = sum(not is_word(text) or _day(text) is not None for _, text in texts)
    for what, pattern in STRANGE.items():
        rows = [i for i, text in texts if pattern.fullmatch(text)]
        if rows and 2 * (len(rows) + n_plain) > len(texts):
            return rows[0], what
    return None
