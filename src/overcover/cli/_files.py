"""Tables from files, whole or a few rows at a time: CSV, TSV, Parquet, NumPy.

Memory of `read_chunks`: one chunk, and what the format needs to find it (a row group's
pages of Parquet; all of a .npz file, which cannot be read in part).
"""

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ._mistakes import Cannot, Mistake, first_line

SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz")
UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
SEPARATORS = (",", ";", "\t")
# Names of columns where a file has none: this letter and a number.
ARRAY, INPUT, OUTPUT = "c", "x", "y"


class Chunks(NamedTuple):
    """A table that comes in frames."""

    frames: Iterator[Any]
    """Data frames, one after the other, with consecutive row numbers."""

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
    suffixes = Path(source).suffixes
    if suffixes and suffixes[-1].lower() in UNPACK:
        suffixes = suffixes[:-1]
    suffix = suffixes[-1].lower() if suffixes else ""
    if suffix not in known:
        raise Mistake(
            f"{source} has no ending that is known. Known are {', '.join(known)}."
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
    """
    import pandas as pd

    kind, name = kind_of_file(source), name_of(source)
    with explained(name):
        if kind in ("-", ".csv", ".tsv"):
            with opened_text(source) as (text, _):
                return named(pd.read_csv(text, **layout(text, kind, words)), name)
        if kind == ".parquet":
            return named(pd.read_parquet(source), name)
        return named(array_frame(load_arrays(source, kind)), name)


def read_chunks(source, n_rows, words=(), wanted=None) -> Chunks:
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

    Returns
    -------
    Chunks
        At least one frame, of at least one row.
    """
    kind, name = kind_of_file(source), name_of(source)
    opened: Any
    with explained(name):
        if kind in ("-", ".csv", ".tsv"):
            opened = text_chunks(source, kind, n_rows, words)
        elif kind == ".parquet":
            opened = parquet_chunks(source, n_rows, wanted)
        else:
            opened = array_chunks(load_arrays(source, kind), n_rows)
        frames, columns, has_names, total, done = opened
        first = next(frames, None)
    if first is None or not len(first):
        raise Cannot(f"{name} holds no rows.")
    columns = [str(c) for c in (first.columns if columns is None else columns)]
    check_names(columns, name)

    def checked():
        start, frame = 0, first
        with explained(name):
            while frame is not None:
                frame.columns = [str(c) for c in frame.columns]
                frame.index = range(start, start + len(frame))
                start += len(frame)
                yield frame
                frame = next(frames, None)

    return Chunks(checked(), columns, has_names, total, done)


# -- text ----------------------------------------------------------------------------


class Replayed:
    """A text file whose first line has been looked at."""

    def __init__(self, file):
        self.file = file
        self.header = self.pending = file.readline()

    def read(self, n=-1):
        """Text: first what was looked at, then the rest."""
        line, self.pending = self.pending, ""
        if n is None or n < 0:
            return line + self.file.read()
        return line or self.file.read(n)

    def __iter__(self):
        if self.pending:
            line, self.pending = self.pending, ""
            yield line
        yield from self.file


@contextmanager
def opened_text(source):
    """Text of a file, unpacked, and a function that tells how many bytes were read."""
    if source == "-":
        yield Replayed(sys.stdin), lambda: 0
        return
    with open(source, "rb") as raw:
        packing = packing_of(source)
        unpacked = UNPACK[packing](raw) if packing else raw
        with io.TextIOWrapper(unpacked, encoding="utf-8-sig", newline="") as text:
            yield Replayed(text), raw.tell


def layout(text, kind, words):
    """What pandas has to know of a text; the separator is the header's commonest."""
    import pandas as pd

    separator = "\t" if kind == ".tsv" else max(SEPARATORS, key=text.header.count)
    options: dict[str, Any] = {
        "sep": separator,
        "skipinitialspace": True,
        "dtype": dict.fromkeys(words, str),
    }
    if [int(part) for part in pd.__version__.split(".")[:2]] < [3, 1]:
        # Up to then its usual parser is off by a digit now and then.
        options["float_precision"] = "round_trip"
    return options


def text_chunks(source, kind, n_rows, words):
    """Frames of separated values, and where the reader is in the file."""
    import pandas as pd

    total = None if source == "-" else Path(source).stat().st_size
    reached = [0]

    def frames():
        with opened_text(source) as (text, position):
            options = layout(text, kind, words)
            with pd.read_csv(text, chunksize=n_rows, **options) as reader:
                for frame in reader:
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
    columns = names if wanted is None else [n for n in names if n in set(wanted)]
    read = [0]

    def frames():
        # With no column at all pyarrow would yield no rows either.
        for batch in file.iter_batches(n_rows, columns=columns or names[:1]):
            read[0] += batch.num_rows
            yield batch.to_pandas()

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
            yield array_frame(columns, slice(i, i + n_rows))

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


def named(frame, name):
    """Column names as words, each once; at least one row."""
    frame.columns = [str(column) for column in frame.columns]
    if not len(frame):
        raise Cannot(f"{name} holds no rows.")
    check_names(list(frame.columns), name)
    return frame.reset_index(drop=True)


def check_names(columns, name):
    """Refuse names that occur twice."""
    if len(set(columns)) < len(columns):
        twice = next(c for i, c in enumerate(columns) if c in columns[:i])
        raise Cannot(f"{name} has two columns called {twice!r}. Rename one.")
