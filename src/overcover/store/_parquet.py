"""Tables in Parquet files as arrays that can be mapped: a batch of rows at a time."""

import os

import numpy as np

from ._pack import StoreError
from ._rows import write_npy

# Rows in memory at a time.
BATCH = 2**16


def parquet_to_npy(source, target, columns=None, dtype="float64"):
    """Copy numbers from Parquet files into one .npy file, and map it.

    Memory: `BATCH` rows, however large the files are. What is returned can be given to
    `overcover.store.fit_into`. Needs pyarrow, ``pip install 'overcover[cli]'``.

    Parameters
    ----------
    source : path, or list of paths
        Parquet files with the same columns; their rows follow each other.
    target : path
        The .npy file to write; replaced if it exists.
    columns : str, list of str or None, default=None
        Names of columns in the order wanted; a single name gives a one-dimensional
        array, None all columns of the first file.
    dtype : {"float64", "float32"}, default="float64"

    Returns
    -------
    memmap of shape (n_rows, n_columns), or (n_rows,) for a single name

    Raises
    ------
    StoreError
        If a column is missing, not of numbers, or lacks values.
    """
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise ImportError(
            "Reading Parquet files needs pyarrow: pip install 'overcover[cli]'."
        ) from error
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    files = [parquet.ParquetFile(name) for name in sources]
    names = files[0].schema_arrow.names if columns is None else columns
    names = [names] if isinstance(names, str) else list(names)
    for name, file in zip(sources, files):
        _check_columns(name, file.schema_arrow, names)
    n_rows = sum(file.metadata.num_rows for file in files)
    shape = (n_rows,) if isinstance(columns, str) else (n_rows, len(names))
    batches = (
        _columns(name, batch, names)
        for name, file in zip(sources, files)
        for batch in file.iter_batches(BATCH, columns=names)
    )
    return write_npy(target, shape, dtype, batches)


def _columns(name, batch, columns):
    """Columns of a batch of rows, side by side."""
    for column in columns:
        n_missing = batch.column(column).null_count
        if n_missing:
            raise StoreError(
                f"{name}: column {column!r} lacks {n_missing} values. Fill them, or "
                "leave these rows out."
            )
    values = [batch.column(c).to_numpy(zero_copy_only=False) for c in columns]
    return np.column_stack(values)


def _check_columns(name, schema, columns):
    """Refuse columns that are not there, or not of numbers."""
    from pyarrow import types

    for column in columns:
        if column not in schema.names:
            raise StoreError(
                f"{name} has no column {column!r}, only {', '.join(schema.names)}."
            )
        kind = schema.field(column).type
        if not (types.is_integer(kind) or types.is_floating(kind)):
            raise StoreError(
                f"{name}: column {column!r} is of {kind}, not of numbers. Choose "
                "others with columns=[...], or encode it first."
            )
