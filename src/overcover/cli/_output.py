"""Tables to files, a few rows at a time: whole under their name, or not at all."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ._files import UNPACK, known_suffix, packing_of, with_gaps
from ._mistakes import Cannot, Mistake
from ._tables import as_numbers

SUFFIXES = (".csv", ".tsv", ".parquet", ".npy")


@contextmanager
def writing_table(target):
    """A function that writes frames of the same columns, one after the other.

    Parameters
    ----------
    target : str
        A path that ends in .csv, .tsv (also compressed, .csv.gz), .parquet or .npy, or
        "-" for CSV to standard output. The file has its name when all is written; a
        failure or an interruption leaves what was there before.

    Yields
    ------
    callable
    """
    writer: Any
    if target == "-":
        writer = TextWriter(sys.stdout, ",")
        yield writer.write
        sys.stdout.flush()
        return
    check_output(target)
    kind = known_suffix(target, SUFFIXES)
    with whole_file(target) as unfinished:
        if kind == ".parquet":
            writer = ParquetWriter(unfinished)
        elif kind == ".npy":
            writer = ArrayWriter(unfinished)
        else:
            packing = packing_of(target)
            opener: Any = UNPACK.get(packing, open)
            file = opener(unfinished, "wt", encoding="utf-8", newline="")
            writer = TextWriter(file, "\t" if kind == ".tsv" else ",", closes=True)
        try:
            yield writer.write
        finally:
            writer.close()


@contextmanager
def whole_file(target):
    """A name to write to, which becomes `target` if all goes well, else goes away."""
    target = Path(target)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    try:
        yield unfinished
        os.replace(unfinished, target)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise Cannot(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def check_output(target, source=None, known=SUFFIXES):
    """Refuse, before any work is done, a place that cannot be written to.

    Parameters
    ----------
    target : str
    source : str or None
        What will be read, which must not be overwritten.
    known : sequence of str
        Endings that tell how to write.
    """
    if target == "-":
        return
    known_suffix(target, known)
    path = Path(target)
    if source not in (None, "-") and path.exists() and path.samefile(source):
        raise Mistake(f"{target} is what is read. Choose another name for --out.")
    if path.is_dir():
        raise Mistake(f"{target} is a folder. Give the name of a file.")
    if not path.parent.is_dir():
        raise Cannot(f"there is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise Cannot(f"{path.parent} may not be written to. Choose another folder.")


class TextWriter:
    """Separated values; numbers with all their digits."""

    def __init__(self, file, separator, closes=False):
        self.file, self.separator, self.closes = file, separator, closes
        self.begun = False

    def write(self, frame):
        """Write rows, and a header before the first."""
        frame.to_csv(
            self.file,
            sep=self.separator,
            index=False,
            header=not self.begun,
            lineterminator="\n",
        )
        self.begun = True

    def close(self):
        """Close the file, if it is the writer's."""
        if self.closes:
            self.file.close()


class ParquetWriter:
    """A row group for every frame; the first one decides the types."""

    def __init__(self, path):
        self.path, self.writer = path, None

    def write(self, frame):
        """Write a row group."""
        import pyarrow as pa
        import pyarrow.parquet as parquet

        if self.writer is None:
            table = pa.Table.from_pandas(frame, preserve_index=False)
            self.writer = parquet.ParquetWriter(self.path, table.schema)
        else:
            schema = self.writer.schema
            try:
                table = pa.Table.from_pandas(frame, schema, preserve_index=False)
            except pa.ArrowException as error:
                raise Cannot(
                    f"a column changes its type within the file: {error}. Write CSV "
                    "instead, or leave the column out of --keep."
                ) from error
        self.writer.write_table(table)

    def close(self):
        """Write the end of the file."""
        if self.writer is not None:
            self.writer.close()


class ArrayWriter:
    """A .npy file of float64, a column for each of a frame's.

    The number of rows stands in the header, which has room for any, and is written
    again at the end.
    """

    def __init__(self, path):
        self.file = open(path, "wb")  # noqa: SIM115, closed by `close`
        self.shape = None

    def write(self, frame):
        """Write rows."""
        try:
            gaps = with_gaps(frame, list(frame))
            columns = [as_numbers(column, "number") for _, column in gaps.items()]
        except Cannot as error:
            raise Cannot(
                f"{error} A .npy file holds only numbers. Write .csv or .parquet, or "
                "leave columns of words out of --keep."
            ) from error
        rows = np.column_stack(columns)
        if self.shape is None:
            self.shape = (0, rows.shape[1])
            self.header()
        self.file.write(rows.data)
        self.shape = (self.shape[0] + len(rows), self.shape[1])

    def header(self):
        """Write what the file holds, at its beginning."""
        described = {"descr": "<f8", "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(self.file, described)

    def close(self):
        """Write the header again, now that the rows are counted."""
        if self.shape is not None:
            self.file.seek(0)
            self.header()
        self.file.close()
