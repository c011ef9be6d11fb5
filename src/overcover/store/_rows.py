"""Rows too many for memory: .npy files written in blocks, then mapped."""

from pathlib import Path

import numpy as np

from .._streams import blocks_of, slices_of
from .._weights import used_rows
from ._pack import new_file

# What the fit takes as it is.
FLOATS = (np.float64, np.float32)


def write_npy(path, shape, dtype, blocks):
    """Write a .npy file block by block, and map it.

    Not by writing to a mapped file: there a full disk would end the process.

    Parameters
    ----------
    path : path
    shape : tuple of int
    dtype : numpy dtype
    blocks : iterable of ndarray
        Rows, in order.

    Returns
    -------
    memmap of that shape; writing to it changes memory alone
    """
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    with new_file(path, must_last=False) as file:
        np.lib.format.write_array_header_1_0(file, header)
        for block in blocks:
            file.write(np.ascontiguousarray(block, dtype=dtype).data)
    return np.load(path, mmap_mode="c")


def mapped_as_float(X, folder):
    """X; if it is mapped and not of floats in C order, a mapped copy in a folder."""
    is_mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "fiub"
    if not is_mapped or (X.dtype in FLOATS and X.flags.c_contiguous):
        return X
    return write_npy(Path(folder) / "rows.npy", X.shape, np.float64, blocks_of(X))


def mapped_used(X, y, weight, folder):
    """The rows that a fit uses, and their numbers: mapped copies in a folder.

    Equal rows are merged, and rows of weight zero left out. Where all rows are used,
    they are returned as they are, with None for their numbers.
    """
    if weight is not None:
        weight = np.asarray(weight, dtype=np.float64)
        if not (np.isfinite(weight).all() and weight.any() and weight.min() >= 0):
            return X, y, weight, None  # refused with all that the fit refuses
    rows, weights = used_rows(X, np.asarray(y).reshape(len(X), -1), weight)
    if rows is None:
        return X, y, weight, None

    def write(name, array, numbers=None):
        shape = (len(rows), *array.shape[1:])
        parts = slices_of(len(rows), int(np.prod(shape[1:])))
        blocks = (array[part if numbers is None else numbers[part]] for part in parts)
        # A name that `overcover.store._directory` knows to delete.
        return write_npy(Path(folder) / f"used{name}.npy", shape, array.dtype, blocks)

    used = write("x", X, rows), write("y", y, rows)
    return *used, write("weights", weights), write("rows", rows)
