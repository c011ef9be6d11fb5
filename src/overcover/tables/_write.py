"""Tables to files, a few rows at a time: whole under their name, or not at all."""

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ._cells import TableError
from ._files import STDIN, UNPACK, form_of, packing_of
from ._kinds import as_numbers, with_gaps

WRITABLE = (".csv", ".tsv", ".parquet", ".npy")


@contextmanager
def writing_table(target):
    """A function that writes frames; the file gets its name when all is written."""
    if target == STDIN:
        yield _TextWriter(sys.stdout, ",").write
        sys.stdout.flush()
        return
    target = Path(target)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    try:
        writer = _writer(target, unfinished)
        try:
            yield writer.write
        finally:
            writer.close()
        os.replace(unfinished, target)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TableError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _writer(target, path) -> Any:
    """A writer to a path, of the form that the target's name tells."""
    form = form_of(target, WRITABLE)
    if form == ".parquet":
        return _ParquetWriter(path)
    if form == ".npy":
        return _ArrayWriter(path)
    opener: Any = UNPACK.get(packing_of(target), open)
    file = opener(path, "wt", encoding="utf-8", newline="")
    return _TextWriter(file, "\t" if form == ".tsv" else ",")


class _TextWriter:
    """Separated values; numbers with all their digits."""

    def __init__(self, file, separator):
        self.file, self.close = file, file.close
        self.options = {"sep": separator, "index": False, "lineterminator": "\n"}
        self.has_header = False

    def write(self, frame):
        frame.to_csv(self.file, header=not self.has_header, **self.options)
        self.has_header = True


class _ParquetWriter:
    """A row group for every frame; the first one decides the types."""

    def __init__(self, path):
        self.path, self.writer = path, None

    def write(self, frame):
        import pyarrow as pa
        import pyarrow.parquet as parquet

        schema = None if self.writer is None else self.writer.schema
        try:
            table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        except pa.ArrowException as error:
            raise TableError(
                f"a column changes its type within the file: {error}. Write CSV "
                "instead, or leave the column out of --keep."
            ) from error
        if self.writer is None:
            self.writer = parquet.ParquetWriter(self.path, table.schema)
        self.writer.write_table(table)

    def close(self):
        if self.writer is not None:
            self.writer.close()


class _ArrayWriter:
    """A .npy file of float64; its header, which counts rows, is written again last."""

    def __init__(self, path):
        self.file = open(path, "wb")  # noqa: SIM115, closed by `close`
        self.shape = None

    def write(self, frame):
        try:
            gaps = with_gaps(frame, list(frame))
            columns = [as_numbers(column, "number") for _, column in gaps.items()]
        except TableError as error:
            raise TableError(
                f"{error} A .npy file holds only numbers. Write .csv or .parquet, or "
                "leave columns of words out of --keep."
            ) from error
        rows = np.column_stack(columns)
        if self.shape is None:
            self.shape = (0, rows.shape[1])
            self._write_header()
        self.file.write(rows.data)
        self.shape = (self.shape[0] + len(rows), self.shape[1])

    def _write_header(self):
        header = {"descr": "<f8", "fortran_order": False, "shape": self.shape}
        np.lib.format.write_array_header_1_0(self.file, header)

    def close(self):
        if self.shape is not None:
            self.file.seek(0)
            self._write_header()
        self.file.close()
