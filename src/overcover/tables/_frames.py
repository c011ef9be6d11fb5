"""Tables as pandas frames, whole or a few rows at a time."""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

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
    open_text,
    pick,
    reading,
    require,
)
from ._kinds import as_numbers


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


# As pandas needs them, which compares letter by letter.
_SPELLED = {w for gap in GAPS for w in (gap, gap.upper(), gap.title())}
_SPELLED |= {"NaN", "-NaN"}


class Chunks(NamedTuple):
    """A table that comes in frames."""

    frames: Iterator[Any]  # their index is "line" (of a text, from 1) or "row" (from 0)
    columns: list[str]  # all that the file has, even if not all are read
    has_names: bool  # False for arrays, whose columns are only numbered
    total: int | None  # size of the table, in rows or bytes; None if it is not known
    done: Callable[[], int]  # how much of it has been read


def read_frame(source, words=(), spelling=PLAIN):
    """A whole table as a frame; see `read_chunks`."""
    (frame,) = read_chunks(source, None, words, spelling=spelling).frames
    return frame


def read_numbers(path, choose, header="auto", separator="auto"):
    """Columns whose names are ``choose(names)`` as numbers, by name."""
    form = form_of(path)
    if form in (".npy", ".npz"):  # without pandas
        columns = read_columns(path, form)
        return {name: columns[name] for name in choose(list(columns))}
    if form == ".parquet":
        chosen = choose(open_parquet(path).schema_arrow.names)
        with reading(path, "a Parquet file"):
            frame = open_parquet(path).read(columns=chosen)
            frame = frame.to_pandas(ignore_metadata=True)
    else:
        with reading(path, "text"), open_text(path, separator, header) as (text, _):
            names = text.names
        chosen = choose(names)
        options = {"wanted": chosen, "header": header, "separator": separator}
        (frame,) = read_chunks(path, None, **options).frames
    try:
        return {name: as_numbers(frame[name]) for name in chosen}
    except TableError as error:
        raise TableError(
            f"{str(path)!r}: {error} Turn words into numbers, or choose other "
            "columns by features=[...]."
        ) from None


def read_chunks(
    source,
    n_rows,
    words=(),
    wanted=None,
    verbatim=(),
    spelling=PLAIN,
    header=True,
    separator="auto",
) -> Chunks:
    """Frames of `n_rows` rows from a file or "-"; `wanted` columns, text as it is."""
    # Chunks but the last have `n_rows` rows, however the file is cut: predictions may
    # depend, in the last digits, on the rows that are predicted together.
    form = STDIN if source == STDIN else form_of(check_path(source))
    what = "text" if form == STDIN or form in TEXT else "a table"
    with reading(source, what):
        if what == "text":
            options = words, wanted, verbatim, spelling
            chunks = _text_chunks(source, n_rows, options, header, separator)
        elif form == ".parquet":
            chunks = _parquet_chunks(source, n_rows, wanted)
        else:
            chunks = _array_chunks(read_columns(source, form, mapped=True), n_rows)
        first = next(chunks.frames, None)
    if first is None or not len(first):
        raise TableError(f"{name_of(source)} holds no rows.")

    def frames():
        with reading(source, what):
            yield first
            yield from chunks.frames

    return chunks._replace(frames=frames())


def _text_chunks(source, n_rows, options, header, separator):
    """Frames of separated values; progress is in bytes of the file."""
    pd = require("pandas", "cli", "To read text")
    total = None if source == STDIN else Path(source).stat().st_size
    reached, columns = [0], []

    def frames():
        with open_text(source, separator, header) as (text, position):
            columns.extend(text.names)
            start = 0
            with _parsed_text(pd, text, n_rows, *options) as parts:
                for frame in parts:
                    texts = frame.columns.difference({*options[0], *options[2]})
                    frame = respelled(frame, texts, options[-1])
                    lines = text.line_of(range(start, start + len(frame)))
                    frame.index = pd.Index(lines, name="line")
                    start += len(frame)
                    reached[0] = position()
                    yield frame

    return Chunks(frames(), columns, True, total, lambda: reached[0])


def _parsed_text(pd, text, n_rows, words, wanted, verbatim, spelling):
    """A reader of frames, by pandas, of rows of text."""
    names = text.names
    options: dict[str, Any] = {
        "names": names,
        "usecols": _chosen(names, wanted),
        "index_col": False,
        "sep": r"\s+" if text.separator is None else text.separator,
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
        return pd.read_csv(text, **options)


def respelled(frame, names, spelling):
    """A frame of a text with plain numbers and dates in columns that are text."""
    if spelling == PLAIN:
        return frame
    texts = [name for name in names if frame[name].dtype.kind not in "biufM"]
    return frame.assign(**{name: spelling.plain(frame[name]) for name in texts})


def _chosen(names, wanted):
    """Names of columns to read; without any column parsers would count no rows."""
    if wanted is None:
        return names
    return [name for name in names if name in set(wanted)] or names[:1]


def _parquet_chunks(source, n_rows, wanted):
    """Frames of a Parquet file, of those columns that are wanted."""
    file = open_parquet(source)
    names = file.schema_arrow.names
    columns = _chosen(names, wanted)
    if n_rows is None:
        batches = iter([file.read(columns=columns)])
    else:
        batches = file.iter_batches(n_rows, columns=columns)
    frames = (batch.to_pandas().rename(columns=str) for batch in batches)
    return _numbered_chunks(frames, names, True, file.metadata.num_rows)


def _array_chunks(columns, n_rows):
    """Frames of arrays, which are copied to memory."""
    import pandas as pd

    n_total = len(next(iter(columns.values()), ()))
    n_rows = n_rows or max(n_total, 1)
    frames = (
        pd.DataFrame({name: np.array(v[i : i + n_rows]) for name, v in columns.items()})
        for i in range(0, n_total, n_rows)
    )
    return _numbered_chunks(frames, list(columns), False, n_total)


def _numbered_chunks(frames, columns, has_names, n_total):
    """Chunks whose rows are numbered from 0, which also tells the progress."""
    reached = [0]

    def numbered():
        for frame in frames:
            start, reached[0] = reached[0], reached[0] + len(frame)
            frame.index = range(start, reached[0])
            yield frame.rename_axis("row")

    return Chunks(numbered(), columns, has_names, n_total, lambda: reached[0])
