"""Tables as pandas frames, whole or a few rows at a time."""

import io
import sys
import warnings
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from .._validation import check_names
from ._arrays import read_columns
from ._cells import GAPS, PLAIN, TableError
from ._files import (
    STDIN,
    TEXT,
    check_path,
    form_of,
    name_of,
    open_packed,
    pick,
    reading,
    require,
)
from ._kinds import as_numbers
from ._text import Rows

# As pandas needs them, which compares letter by letter.
_SPELLED = {w for gap in GAPS for w in (gap, gap.upper(), gap.title())}
_SPELLED |= {"NaN", "-NaN"}


@contextmanager
def open_table(source, header=True, separator="auto"):
    """A `Table` from a file or "-", which stays open inside."""
    with ExitStack() as stack:
        yield Table(source, header, separator, stack)


class Table:
    """An open table: its columns are known, and its rows are still to be read."""

    def __init__(self, source, header, separator, stack):
        self.source = source
        self.form = STDIN if source == STDIN else form_of(check_path(source))
        self.is_text = self.form == STDIN or self.form in TEXT
        # Size, in rows, or bytes of a text, or None; and how much has been read.
        self.total: int | None = None
        self.done = 0
        with self._reading():
            if self.is_text:
                self._rows = self._open_text(header, separator, stack)
                names = self._rows.names
            elif self.form == ".parquet":
                self._rows = stack.enter_context(open_parquet(source))
                schema = self._rows.schema_arrow
                index = (schema.pandas_metadata or {}).get("index_columns", [])
                names = [name for name in schema.names if name not in index]
                self.total = self._rows.metadata.num_rows
            else:
                self._rows = read_columns(source, self.form, mapped=True)
                names = [*self._rows]
                self.total = len(next(iter(self._rows.values()), ()))
        self.columns = names
        self.has_names = self.is_text or self.form == ".parquet"
        self._given = names

    def _reading(self):
        return reading(self.source, "text" if self.is_text else "a table")

    def _open_text(self, header, separator, stack):
        otherwise = "," if self.source == STDIN else TEXT[self.form]
        if separator == "auto" and otherwise == "\t":
            separator = otherwise
        if self.source == STDIN:
            if sys.stdin is None:
                raise TableError("standard input is closed. Give a file instead of -.")
            self._position = lambda: 0
            if hasattr(sys.stdin, "reconfigure"):
                sys.stdin.reconfigure(errors="surrogateescape")
            return Rows(sys.stdin, separator, otherwise, header)
        raw, unpacked = stack.enter_context(open_packed(self.source))
        self.total, self._position = Path(self.source).stat().st_size, raw.tell
        # `Rows` names the line where something is not in UTF-8.
        text = io.TextIOWrapper(unpacked, "utf-8-sig", "surrogateescape", newline="")
        stack.enter_context(text)
        return Rows(text, separator, otherwise, header)

    def frames(self, n_rows=None, chosen=None, words=(), verbatim=(), spelling=PLAIN):
        """Frames of `n_rows` rows, or of all, of chosen columns.

        Their index is "line" (of a text, from 1) or "row" (from 0). In a text, `words`
        and `verbatim` stay text, the latter without gaps.
        """
        # Frames but the last have `n_rows` rows, however the file is cut: predictions
        # may depend, in the last digits, on the rows that are predicted together.
        # Without any column parsers would count no rows.
        names = self.columns if chosen is None else chosen or self.columns[:1]
        n_read = 0
        with self._reading():
            if self.is_text:
                parts = self._parsed(n_rows, names, words, verbatim, spelling)
            elif self.form == ".parquet":
                parts = self._pages(n_rows, names)
            else:
                parts = self._slices(n_rows or max(self.total or 0, 1), names)
            for frame in parts:
                if not len(frame):
                    continue
                n_read += len(frame)
                if self.is_text:
                    self.done = self._position()
                    frame.index = self._rows.next_lines(len(frame))
                    texts = frame.columns.difference({*words, *verbatim})
                    frame = respelled(frame, texts, spelling)
                else:
                    self.done = n_read
                    frame.index = range(n_read - len(frame), n_read)
                yield frame.rename_axis("line" if self.is_text else "row")
        if not n_read:
            raise TableError(f"{name_of(self.source)} holds no rows.")

    def _parsed(self, n_rows, names, words, verbatim, spelling):
        pd = require("pandas", "cli", "To read text")
        options: dict[str, Any] = {
            "names": self.columns,
            "usecols": names,
            "index_col": False,
            "sep": self._rows.separator or r"\s+",
            "skipinitialspace": True,
            "decimal": spelling.decimal,
            "dtype": dict.fromkeys({*words, *verbatim} & {*names}, str),
            "keep_default_na": False,
            "na_values": {n: [] if n in verbatim else [*_SPELLED] for n in names},
            "low_memory": False,
            "chunksize": n_rows or 2**62,
        }
        if [int(part) for part in pd.__version__.split(".")[:2]] < [3, 1]:
            # Up to then its usual parser is off by a digit now and then.
            options["float_precision"] = "round_trip"
        with warnings.catch_warnings():
            # A column of numbers with a word in it: an error names its line later.
            warnings.simplefilter("ignore", pd.errors.DtypeWarning)
            return pd.read_csv(self._rows, **options)

    def _pages(self, n_rows, names):
        given = dict(zip(self._given, self.columns))
        columns = [old for old, new in given.items() if new in names]
        if n_rows is None:
            pages = [self._rows.read(columns=columns)]
        else:
            pages = self._rows.iter_batches(n_rows, columns=columns)
        return (page.to_pandas().rename(columns=given) for page in pages)

    def _slices(self, n_rows, names):
        import pandas as pd

        arrays = dict(zip(self.columns, self._rows.values()))
        for start in range(0, self.total or 0, n_rows):
            rows = slice(start, start + n_rows)
            yield pd.DataFrame({name: np.array(arrays[name][rows]) for name in names})


def read_numbers(path, choose, header="auto", separator="auto"):
    """Columns whose names are ``choose(names)`` as numbers, by name."""
    form = form_of(path)
    if form in (".npy", ".npz"):  # without pandas
        columns = read_columns(path, form)
        return {name: columns[name] for name in choose(list(columns))}
    if form == ".parquet":
        file = open_parquet(path)
        chosen = choose(file.schema_arrow.names)
        with reading(path, "a Parquet file"):
            frame = file.read(columns=chosen).to_pandas(ignore_metadata=True)
    else:
        with open_table(path, header, separator) as table:
            chosen = choose(table.columns)
            (frame,) = table.frames(None, chosen)
    try:
        return {name: as_numbers(frame[name]) for name in chosen}
    except TableError as error:
        raise TableError(
            f"{str(path)!r}: {error} Turn words into numbers, or choose other "
            "columns by features=[...]."
        ) from None


def respelled(frame, names, spelling):
    """A frame of a text with plain numbers and dates in columns that are text."""
    if spelling == PLAIN:
        return frame
    texts = [name for name in names if frame[name].dtype.kind not in "biufM"]
    return frame.assign(**{name: spelling.plain(frame[name]) for name in texts})


def open_parquet(path):
    """A Parquet file without two columns of one name, read as pages are needed."""
    parquet = require("pyarrow.parquet", "cli", "To read .parquet files")
    with reading(path, "a Parquet file"):
        file = parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False)
    check_names(file.schema_arrow.names, repr(str(path)))
    return file


def parquet_batches(path, names, n_rows):
    """Chosen columns of a Parquet file, some rows at a time, without gaps."""
    start = 0
    for batch in open_parquet(path).iter_batches(n_rows, columns=names):
        frame = batch.to_pandas(ignore_metadata=True, date_as_object=False)
        frame.index += start
        start += len(frame)
        rows = np.column_stack([_numbers(path, frame[name]) for name in names])
        gaps = np.isnan(rows).sum(axis=0)
        if gaps.any():
            j = int(np.argmax(gaps > 0))
            raise TableError(
                f"{path}: column {names[j]!r} lacks {gaps[j]} values. Fill them, or "
                "leave these rows out."
            )
        yield rows


def check_columns(path, names):
    """Refuse columns that a Parquet file does not have; returns its number of rows."""
    file = open_parquet(path)
    for name in names:
        pick(file.schema_arrow.names, name, path, "column ")
    return file.metadata.num_rows


def _numbers(path, column):
    try:
        return as_numbers(column, "date" if column.dtype.kind == "M" else "number")
    except TableError as error:
        raise TableError(
            f"{str(path)!r}: {error} Turn it into numbers, or choose other columns."
        ) from None
