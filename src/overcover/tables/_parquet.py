"""Columns of Parquet files as frames and numbers."""

import numpy as np

from .._validation import check_names
from ._cells import TableError
from ._files import near_names, reading, require
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
        if name not in file.schema_arrow.names:
            raise TableError(
                f"{path} has no column {name!r}."
                f"{near_names(name, file.schema_arrow.names)}"
            )
    return file.metadata.num_rows


def _numbers(path, column):
    try:
        return as_numbers(column, "date" if column.dtype.kind == "M" else "number")
    except TableError as error:
        raise TableError(
            f"{str(path)!r}: {error} Turn it into numbers, or choose other columns."
        ) from None
