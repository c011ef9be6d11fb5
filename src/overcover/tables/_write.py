"""Tables to files, a few rows at a time: whole under their name, or not at all."""

import os
import sys
from contextlib import ExitStack, contextmanager
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import numpy as np

from ._cells import TableError
from ._files import STDIN, UNPACK, form_of, packing_of
from ._kinds import as_numbers

WRITABLE = (".csv", ".tsv", ".parquet", ".npy")


@contextmanager
def writing_table(target):
    """A function that writes frames; the file gets its name when all is written."""
    if target == STDIN:
        yield _text_writer(sys.stdout)
        sys.stdout.flush()
        return
    target = Path(target)
    form = form_of(target, WRITABLE)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.unfinished")
    try:
        with ExitStack() as stack:
            yield _writer(stack, form, UNPACK.get(packing_of(target), open), unfinished)
        os.replace(unfinished, target)
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TableError(f"{target} cannot be written: {error.strerror}.") from error
    finally:
        unfinished.unlink(missing_ok=True)


def _writer(stack, form, opener: Any, path):
    """A function that writes frames to a path, until the stack of contexts ends."""
    if form == ".parquet":
        return _parquet_writer(stack, path)
    if form == ".npy":
        return _array_writer(stack, stack.enter_context(open(path, "wb")))
    file = stack.enter_context(opener(path, "wt", encoding="utf-8", newline=""))
    return _text_writer(file, "\t" if form == ".tsv" else ",")


def _text_writer(file, separator=","):
    """Write separated values; numbers with all their digits."""
    options = {"sep": separator, "index": False, "lineterminator": "\n"}
    headers = chain([True], repeat(False))
    return lambda frame: frame.to_csv(file, header=next(headers), **options)


def _parquet_writer(stack, path):
    """Write a row group for every frame; the first one decides the types."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    writer: Any = None

    def write(frame):
        nonlocal writer
        schema = None if writer is None else writer.schema
        try:
            table = pa.Table.from_pandas(frame, schema, preserve_index=False)
        except pa.ArrowException as error:
            raise TableError(
                f"a column changes its type within the file: {error}. Write CSV "
                "instead, or leave the column out of --keep."
            ) from error
        if writer is None:
            writer = stack.enter_context(parquet.ParquetWriter(path, table.schema))
        writer.write_table(table)

    return write


def _array_writer(stack, file):
    """Write float64 to .npy; the header, which counts rows, is written again last."""
    n_rows = n_columns = 0

    def write_header():
        header = {"descr": "<f8", "fortran_order": False, "shape": (n_rows, n_columns)}
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, header)

    def write(frame):
        nonlocal n_rows, n_columns
        try:
            rows = [as_numbers(column, "number") for _, column in frame.items()]
        except TableError as error:
            raise TableError(
                f"{error} A .npy file holds only numbers. Write .csv or .parquet, or "
                "leave columns of words out of --keep."
            ) from error
        if not n_rows:
            n_columns = len(rows)
            write_header()
            stack.callback(write_header)
        file.write(np.column_stack(rows).data)
        n_rows += len(frame)

    return write
