"""Tables as pandas frames, whole or a few rows at a time.

Memory of `read_chunks`: one chunk, and what the form needs to find it (a row group's
pages of Parquet; all of a .npz file, which cannot be read in part).
"""

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_names
from ._arrays import read_columns
from ._cells import GAPS, SECONDS_PER_DAY, TableError, numbers_of, parse, row_number
from ._files import STDIN, TEXT, check_path, form_of, name_of, open_text, reading
from ._parquet import open_parquet

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


def read_frame(source, words=(), decimal="."):
    """A whole table as a frame; see `read_chunks`."""
    (frame,) = read_chunks(source, None, words, decimal=decimal).frames
    return frame


def read_chunks(
    source, n_rows, words=(), wanted=None, verbatim=(), decimal="."
) -> Chunks:
    """A table from a file, or "-" for text from standard input, `n_rows` at a time.

    All chunks but the last have as many rows, however the file is cut into row groups:
    predictions may depend, in the last digits, on the rows that are predicted together.
    None is all rows; there is at least one. The first line of a text names its columns.
    Of these, `words` stay as they are written even if they look like numbers, and
    `verbatim` ones with their gaps. Only `wanted` columns are read where this saves
    something. `decimal` is the mark of numbers in a text, "." or ",".
    """
    form = STDIN if source == STDIN else form_of(check_path(source))
    with reading(source, "a table"):
        if form == STDIN or form in TEXT:
            chunks = _text_chunks(source, n_rows, words, verbatim, decimal)
        elif form == ".parquet":
            chunks = _parquet_chunks(source, n_rows, wanted)
        else:
            chunks = _array_chunks(read_columns(source, form, mapped=True), n_rows)
        first = next(chunks.frames, None)
    if first is None or not len(first):
        raise TableError(f"{name_of(source)} holds no rows.")
    # Only the first frame of a text tells its columns.
    columns = [str(c) for c in chunks.columns or first.columns]

    def named_frames():
        frame = first
        with reading(source, "a table"):
            while frame is not None:
                frame.columns = [str(c) for c in frame.columns]
                yield frame
                frame = next(chunks.frames, None)

    return chunks._replace(frames=named_frames(), columns=columns)


def _text_chunks(source, n_rows, words, verbatim, decimal):
    """Frames of separated values; progress is in bytes of the file."""
    total = None if source == STDIN else Path(source).stat().st_size
    reached = [0]

    def frames():
        import pandas as pd

        with open_text(source) as (text, position):
            start = 0
            with _parsed_text(text, n_rows, words, verbatim, decimal) as parts:
                for frame in parts:
                    lines = text.line_of(range(start, start + len(frame)))
                    frame.index = pd.Index(lines, name="line")
                    start += len(frame)
                    reached[0] = position()
                    yield frame

    return Chunks(frames(), [], True, total, lambda: reached[0])


def _parsed_text(text, n_rows, words, verbatim, decimal):
    """A reader of frames, by pandas, of rows of text."""
    import pandas as pd

    if not text.first:
        raise TableError("it holds no rows.")
    names = [cell or f"c{i}" for i, cell in enumerate(text.first)]
    check_names(names, "it")
    options: dict[str, Any] = {
        "names": names,
        "index_col": False,
        "sep": r"\s+" if text.separator is None else text.separator,
        "skipinitialspace": True,
        "decimal": decimal,
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


def _parquet_chunks(source, n_rows, wanted):
    """Frames of a Parquet file, of those columns that are wanted."""
    file = open_parquet(source)
    names = file.schema_arrow.names
    columns = names if wanted is None else [n for n in names if n in set(wanted)]

    def frames():
        if n_rows is None:
            yield file.read(columns=columns).to_pandas()
            return
        # With no column at all pyarrow would yield no rows either.
        for batch in file.iter_batches(n_rows, columns=columns or names[:1]):
            yield batch.to_pandas()

    return _numbered_chunks(frames(), names, True, file.metadata.num_rows)


def _array_chunks(columns, n_rows):
    """Frames of arrays."""
    n_total = len(next(iter(columns.values()), ()))
    n_rows = n_rows or max(n_total, 1)
    parts = (slice(i, i + n_rows) for i in range(0, n_total, n_rows))
    frames = (array_frame(columns, part) for part in parts)
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


def array_frame(columns, rows):
    """Some rows of arrays as a frame, in memory."""
    import pandas as pd

    return pd.DataFrame({name: np.array(v[rows]) for name, v in columns.items()})


def place(index, label):
    """The position of a row: 'line 3', or 'row 1 (counted from 0)'."""
    return f"line {label}" if index.name == "line" else row_number(label)


def with_gaps(frame, verbatim):
    """A frame of a text whose verbatim columns have gaps, as all others have."""
    if frame.index.name != "line":
        return frame
    gaps = {}
    for name in verbatim:
        words = frame[name].astype(str).str.strip().str.lower()
        gaps[name] = frame[name].where(~words.isin(GAPS))
    return frame.assign(**gaps)


def cells_of(column):
    """A column of a frame as an array for `parse`."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):  # booleans too
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_datetime64_any_dtype(column):
        is_local = getattr(column.dt, "tz", None) is not None
        return (column.dt.tz_convert(None) if is_local else column).to_numpy()
    if pd.api.types.is_timedelta64_dtype(column):
        return column.dt.total_seconds().to_numpy() / SECONDS_PER_DAY
    cells = column.astype(object).to_numpy(copy=True)
    cells[column.isna().to_numpy()] = None
    return cells


def parsed(column, kind):
    """Values of a column of a frame, and which cells are not of a kind; see `parse`."""
    return parse(cells_of(column), kind)


def as_numbers(column, kind):
    """Values of a column of a frame, or an error that names a cell of another kind."""
    at = column.index
    return numbers_of(cells_of(column), kind, column.name, lambda i: place(at, at[i]))
