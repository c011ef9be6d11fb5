"""Columns of Parquet files as numbers, by pyarrow alone."""

import numpy as np

from .._validation import check_names
from ._cells import TableError, kind_of, numbers_of, row_number
from ._files import near_names, reading, require

FORM = "a Parquet file"


def open_parquet(path):
    """A Parquet file without two columns of one name.

    Pages are fetched as they are needed: not a whole row group at a time.
    """
    parquet = require("pyarrow.parquet", "cli", "To read .parquet files")
    with reading(path, FORM):
        file = parquet.ParquetFile(path, buffer_size=2**20, pre_buffer=False)
    check_names(file.schema_arrow.names, repr(str(path)))
    return file


def read_parquet(path, names):
    """Chosen columns of a Parquet file, shape (n_rows, n_columns), float64."""
    with reading(path, FORM):
        table = open_parquet(path).read(columns=names)
    return np.column_stack([_numbers(path, name, table[name]) for name in names])


def parquet_batches(path, names, n_rows):
    """Chosen columns of a Parquet file, some rows at a time, without gaps."""
    file, start = open_parquet(path), 0
    for batch in file.iter_batches(n_rows, columns=names):
        columns = [_numbers(path, n, batch.column(n), "number", start) for n in names]
        rows = np.column_stack(columns)
        gaps = np.isnan(rows).sum(axis=0)
        if gaps.any():
            j = int(np.argmax(gaps > 0))
            raise TableError(
                f"{path}: column {names[j]!r} lacks {gaps[j]} values. Fill them, or "
                "leave these rows out."
            )
        start += len(rows)
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


def _numbers(path, name, column, text_kind=None, start=0):
    """Values of an Arrow column; text is of this kind, or None to find out."""
    from pyarrow import types

    type_ = column.type
    if types.is_integer(type_) or types.is_floating(type_) or types.is_boolean(type_):
        numbers = column.cast("float64", safe=False)
        return numbers.to_numpy(zero_copy_only=False)
    cells = np.empty(len(column), dtype=object)
    cells[:] = column.to_pylist()
    kind = "date" if types.is_temporal(type_) else text_kind or kind_of(cells)
    kind = "number" if kind == "words" else kind
    try:
        return numbers_of(cells, kind, name, lambda i: row_number(start + i))
    except TableError as error:
        raise TableError(
            f"{str(path)!r}: {error} Turn it into numbers, or choose other columns."
        ) from None
