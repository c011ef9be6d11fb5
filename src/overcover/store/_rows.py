"""Rows too many for memory: .npy files written in blocks, then mapped."""

import os
from pathlib import Path

import numpy as np

from .._streams import blocks_of, slices_of
from .._weights import used_rows
from ..tables import TableError, check_columns, open_parquet, parquet_batches
from ._pack import StoreError, new_file

# Rows of a Parquet file in memory at a time.
BATCH = 2**16


def begin_npy(file, shape, dtype):
    """Write the header of a .npy file with rows in C order."""
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def write_npy(path, shape, dtype, blocks):
    """Write blocks of rows to a .npy file and map it; a full disk is an error."""
    with new_file(path, must_last=False) as file:
        begin_npy(file, shape, dtype)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=dtype).data)
    return np.load(path, mmap_mode="c")


def as_floats(X, path, kinds=(np.float64, np.float32)):
    """Mapped rows, or a mapped copy at a path if they are not such in C order."""
    if X.dtype in kinds and X.flags.c_contiguous:
        return X
    return write_npy(path, X.shape, np.float64, blocks_of(X))


def mapped_used(X, y, weight, groups, folder):
    """``(X, y, weight, groups)`` of the rows a fit uses, mapped; numbers, or None."""
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        if not (np.isfinite(weight).all() and weight.any() and weight.min() >= 0):
            return (X, y, weight, groups), None  # the fit refuses it
    rows, weights = used_rows(X, np.asarray(y).reshape(len(X), -1), weight)
    if rows is None:
        return (X, y, weight, groups), None

    def write(name, array, rows):
        shape = (len(rows), *array.shape[1:])
        parts = slices_of(len(rows), int(np.prod(shape[1:])))
        blocks = (array[rows[part]] for part in parts)
        # A name that `overcover.store._directory` knows to delete.
        return write_npy(Path(folder) / f"used{name}.npy", shape, array.dtype, blocks)

    each = np.arange(len(rows))
    groups = None if groups is None else write("groups", groups, rows)
    used = write("x", X, rows), write("y", y, rows), write("weights", weights, each)
    return (*used, groups), write("rows", rows, each)


def parquet_to_npy(source, target, columns=None, dtype="float64"):
    """Copy numbers from Parquet files into one .npy file, and map it.

    Memory: `BATCH` rows. `overcover.store.fit_into` takes the result. Needs pyarrow,
    ``pip install 'overcover[cli]'``.

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
