"""Tables from files, whole or a few rows at a time: CSV, TSV, Parquet, NumPy.

Memory of `read_chunks`: one chunk, and what the format needs to find it (a row group's
pages of Parquet; all of a .npz file, which cannot be read in part).
"""

import bz2
import gzip
import io
import lzma
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .._validation import check_names
from ..datasets._text import Rows
from ._mistakes import Cannot, Mistake, first_line

TEXT = (".csv", ".tsv")
SUFFIXES = (*TEXT, ".parquet", ".npy", ".npz")
# Only text is packed: the other formats would have to be unpacked as a whole.
UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
# Cells that say that a value is missing, as pandas has them.
GAPS: tuple[str, ...] = (
    "",
    "#N/A",
    "#N/A N/A",
    "#NA",
    "-1.#IND",
    "-1.#QNAN",
    "-NaN",
    "-nan",
    "1.#IND",
)
GAPS += ("1.#QNAN", "<NA>", "N/A", "NA", "NULL", "NaN", "None", "n/a", "nan", "null")
# Names of columns where a file has none: this letter and a number.
ARRAY, INPUT, OUTPUT = "c", "x", "y"


class Chunks(NamedTuple):
    """A table that comes in frames."""

    frames: Iterator[Any]
    """Data frames, one after the other. Their index is called "line", and holds lines
    of a text as editors count them; or "row", counted from 0."""

    columns: list[str]
    """All that the file has, even if not all are read."""

    has_names: bool
    """False for arrays, whose columns are only numbered."""

    total: int | None
    """How much there is, in rows or bytes; None where nobody knows."""

    done: Callable[[], int]
    """How much of it has been read."""


def kind_of_file(source):
    """The ending that says how to read a file; "-" for standard input."""
    if source == "-":
        return "-"
    path = Path(source)
    if path.is_dir():
        raise Mistake(f"{source} is a folder, not a file with a table.")
    if not path.is_file():
        raise Mistake(f"there is no file {source}.")
    return known_suffix(source, SUFFIXES)


def known_suffix(source, known):
    """The ending of a name that says how to read or write it, .gz and such aside."""
    suffix, packing = Path(source).suffix.lower(), packing_of(source)
    if packing:
        suffix = Path(source).with_suffix("").suffix.lower()
    packable = [kind for kind in known if kind in TEXT]
    if suffix not in (packable if packing else known):
        packed = f", and {packable[0]}.gz" if packable else ""
        raise Mistake(
            f"{source} has no ending that is known. Known are {', '.join(known)}"
            f"{packed}."
        )
    return suffix


def packing_of(source):
    """How a file is compressed, by its ending: "", ".gz", ".bz2" or ".xz"."""
    last = Path(source).suffix.lower()
    return last if last in UNPACK else ""


def read_frame(source, words=()):
    """A table from a file, or from standard input.

    Parameters
    ----------
    source : str
        A path that ends in .csv, .tsv (also compressed, .csv.gz), .parquet, .npy or
        .npz, or "-" for CSV or TSV from standard input. Columns of a .npy file are
        c0, c1, ...; a .npz file holds X and y, with columns x0, ... and y0, ...
    words : sequence of str
        Columns of text files to leave as they are written, even if they look like
        numbers.

    Returns
    -------
    pandas.DataFrame
        With an index as in `Chunks`.
    """
    import pandas as pd

    kind, name = kind_of_file(source), name_of(source)
    with explained(name):
        if kind in ("-", *TEXT):
            with opened_text(source, kind) as (text, _):
                frame = read_text(text, words)
                frame.index = lines_of(text, 0, len(frame))
        elif kind == ".parquet":
            import pyarrow.parquet as parquet

            check_names(parquet.read_schema(source).names, "it")
            frame = counted(pd.read_parquet(source), 0)
        else:
            frame = counted(array_frame(load_arrays(source, kind)), 0)
    frame.columns = [str(column) for column in frame.columns]
    if not len(frame):
        raise Cannot(f"{name} holds no rows.")
    return frame


def read_chunks(source, n_rows, words=(), wanted=None, verbatim=()) -> Chunks:
    """A table from a file, a few rows at a time.

    Parameters
    ----------
    source, words :
        As in `read_frame`.
    n_rows : int
        Rows of every chunk but the last, however the file is cut into row groups:
        answers may depend, in the last digits, on which rows are asked about together.
    wanted : collection of str or None
        Columns to read, if reading fewer saves something; None for all.
    verbatim : sequence of str
        Columns of text files to copy as they are written, gaps included.

    Returns
    -------
    Chunks
        At least one frame, of at least one row.
    """
    kind, name = kind_of_file(source), name_of(source)
    opened: Any
    with explained(name):
        if kind in ("-", *TEXT):
            opened = text_chunks(source, kind, n_rows, words, verbatim)
        elif kind == ".parquet":
            opened = parquet_chunks(source, n_rows, wanted)
        else:
            opened = array_chunks(load_arrays(source, kind), n_rows)
        frames, columns, has_names, total, done = opened
        first = next(frames, None)
    if first is None or not len(first):
        raise Cannot(f"{name} holds no rows.")
    columns = [str(c) for c in (first.columns if columns is None else columns)]

    def explained_frames():
        frame = first
        with explained(name):
            while frame is not None:
                frame.columns = [str(c) for c in frame.columns]
                yield frame
                frame = next(frames, None)

    return Chunks(explained_frames(), columns, has_names, total, done)


def counted(frame, start):
    """A frame whose rows are numbered from `start`."""
    import pandas as pd

    frame.index = pd.RangeIndex(start, start + len(frame), name="row")
    return frame


def place(index, label):
    """Where a row is, for people.

    Examples
    --------
    >>> import pandas as pd
    >>> place(pd.RangeIndex(2, 5, name="line"), 3), place(pd.RangeIndex(2), 1)
    ('line 3', 'row 1 (counted from 0)')
    """
    return f"line {label}" if index.name == "line" else f"row {label} (counted from 0)"


# -- text ----------------------------------------------------------------------------


@contextmanager
def opened_text(source, kind):
    """Rows of a text, unpacked, and a function that tells how many bytes were read."""
    separator = "\t" if kind == ".tsv" else "auto"
    if source == "-":
        if sys.stdin is None:
            raise Cannot("standard input is closed. Give a file instead of -.")
        yield Rows(sys.stdin, separator, ","), lambda: 0
        return
    with open(source, "rb") as raw:
        packing = packing_of(source)
        unpacked = UNPACK[packing](raw) if packing else raw
        with io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="") as text:
            yield Rows(text, separator, ","), raw.tell


def read_text(text, words=(), verbatim=(), **options):
    """What pandas makes of rows of text: a frame, or a reader of frames."""
    import pandas as pd

    if not text.has_rows():
        raise ValueError("it holds no rows.")
    names = [cell or f"Unnamed: {i}" for i, cell in enumerate(text.first)]
    check_names(names, "it")
    options |= {
        "names": names,
        "index_col": False,
        "sep": text.separator,
        "skipinitialspace": True,
        "dtype": dict.fromkeys({*words, *verbatim} & {*names}, str),
    }
    if [int(part) for part in pd.__version__.split(".")[:2]] < [3, 1]:
        # Up to then its usual parser is off by a digit now and then.
        options["float_precision"] = "round_trip"
    if verbatim:
        gaps = {name: [] if name in verbatim else list(GAPS) for name in names}
        options |= {"keep_default_na": False, "na_values": gaps}
    with warnings.catch_warnings():
        # A column of numbers with a word in it: that is told later, with its line.
        warnings.simplefilter("ignore", pd.errors.DtypeWarning)
        return pd.read_csv(text, **options)


def with_gaps(frame, verbatim):
    """A frame of a text whose verbatim columns have gaps, as all others have."""
    if frame.index.name != "line":
        return frame
    gaps = {name: frame[name].where(~frame[name].isin(GAPS)) for name in verbatim}
    return frame.assign(**gaps)


def lines_of(text, start, stop):
    """An index of the lines in the file where rows begin."""
    import pandas as pd

    return pd.Index(text.line_of(range(start, stop)), name="line")


def text_chunks(source, kind, n_rows, words, verbatim):
    """Frames of separated values, and where the reader is in the file."""
    total = None if source == "-" else Path(source).stat().st_size
    reached = [0]

    def frames():
        with opened_text(source, kind) as (text, position):
            at_once = {"chunksize": n_rows, "low_memory": False}
            start = 0
            for frame in read_text(text, words, verbatim, **at_once):
                frame.index = lines_of(text, start, start + len(frame))
                start += len(frame)
                reached[0] = position()
                yield frame

    return frames(), None, True, total, lambda: reached[0]


# -- Parquet and arrays --------------------------------------------------------------


def parquet_chunks(source, n_rows, wanted):
    """Frames of a Parquet file, of those columns that are wanted."""
    import pyarrow.parquet as parquet

    # Pages are fetched as they are needed: not a whole row group at a time.
    file = parquet.ParquetFile(source, buffer_size=2**20, pre_buffer=False)
    names = file.schema_arrow.names
    check_names(names, "it")
    columns = names if wanted is None else [n for n in names if n in set(wanted)]
    read = [0]

    def frames():
        # With no column at all pyarrow would yield no rows either.
        for batch in file.iter_batches(n_rows, columns=columns or names[:1]):
            read[0] += batch.num_rows
            yield counted(batch.to_pandas(), read[0] - batch.num_rows)

    return frames(), names, True, file.metadata.num_rows, lambda: read[0]


def load_arrays(source, kind):
    """Columns by name; those of a .npy file stay on the disk."""
    if kind == ".npy":
        return as_columns(np.load(source, mmap_mode="r", allow_pickle=False), ARRAY)
    with np.load(source, allow_pickle=False) as loaded:
        if "X" not in loaded:
            held = ", ".join(loaded.files) or "nothing"
            raise ValueError(f"it holds {held}, but X, and y, are expected.")
        columns = as_columns(loaded["X"], INPUT)
        for name in ("y", "Y"):
            if name in loaded:
                return columns | as_columns(loaded[name], OUTPUT)
    return columns


def as_columns(values, letter):
    """Columns of an array by name."""
    if values.ndim not in (1, 2):
        raise ValueError(f"an array has {values.ndim} axes, 1 or 2 are expected.")
    if values.dtype.kind not in "fiub":
        raise ValueError(f"an array is of {values.dtype}, numbers are expected.")
    values = values.reshape(len(values), -1)
    return {f"{letter}{j}": values[:, j] for j in range(values.shape[1])}


def array_frame(columns, rows=slice(None)):
    """Some rows of arrays as a frame, in memory."""
    import pandas as pd

    return pd.DataFrame({name: np.array(v[rows]) for name, v in columns.items()})


def array_chunks(columns, n_rows):
    """Frames of arrays."""
    n_total = len(next(iter(columns.values()), ()))
    read = [0]

    def frames():
        for i in range(0, n_total, n_rows):
            read[0] = min(i + n_rows, n_total)
            yield counted(array_frame(columns, slice(i, i + n_rows)), i)

    return frames(), list(columns), False, n_total, lambda: read[0]


# -- what is refused -----------------------------------------------------------------


def name_of(source):
    """What to call a source when talking to people."""
    return "standard input" if source == "-" else source


@contextmanager
def explained(name):
    """Say in a line that a file cannot be read, and why."""
    try:
        yield
    except Mistake:
        raise
    except (OSError, ValueError, KeyError, EOFError, lzma.LZMAError) as error:
        raise Cannot(f"{name} cannot be read: {first_line(error)}") from error
