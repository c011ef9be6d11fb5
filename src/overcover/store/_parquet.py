"""Tables in Parquet files as arrays that can be mapped: a batch of rows at a time."""

import os

from ..tables import TableError, check_columns, open_parquet, parquet_batches
from ._pack import StoreError
from ._rows import write_npy

# Rows in memory at a time.
BATCH = 2**16


def parquet_to_npy(source, target, columns=None, dtype="float64"):
    """Copy numbers from Parquet files into one .npy file, and map it.

    Memory: `BATCH` rows, however large the files are. The result can be given to
    `overcover.store.fit_into`. Needs pyarrow, ``pip install 'overcover[cli]'``.

    Parameters
    ----------
    source : path, or list of paths
        Parquet files with the same columns; their rows follow each other.
    target : path
        The .npy file to write; replaced if it exists.
    columns : str, list of str or None, default=None
        Names of columns in the order wanted; a single name gives a one-dimensional
        array, None all columns of the first file. Dates become days since 1970.
    dtype : {"float64", "float32"}, default="float64"

    Returns
    -------
    memmap of shape (n_rows, n_columns), or (n_rows,) for a single name

    Raises
    ------
    StoreError
        If a column is missing, not of numbers, or lacks values.
    """
    sources = [source] if isinstance(source, str | os.PathLike) else list(source)
    try:
        names = open_parquet(sources[0]).schema_arrow.names
        if columns is not None:
            names = [columns] if isinstance(columns, str) else list(columns)
        n_rows = sum(check_columns(path, names) for path in sources)
        shape = (n_rows,) if isinstance(columns, str) else (n_rows, len(names))
        batches = (b for path in sources for b in parquet_batches(path, names, BATCH))
        return write_npy(target, shape, dtype, batches)
    except TableError as error:
        raise StoreError(str(error)) from error
