"""Rows too many for memory: .npy files written in blocks, then mapped."""

import os
from pathlib import Path

import numpy as np

from .._streams import blocks_of
from ._pack import UNFINISHED

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
    path = Path(path)
    unfinished = path.with_name(path.name + UNFINISHED)
    header = {"descr": np.dtype(dtype).str, "fortran_order": False, "shape": shape}
    try:
        with open(unfinished, "wb") as file:
            np.lib.format.write_array_header_1_0(file, header)
            for block in blocks:
                file.write(np.ascontiguousarray(block, dtype=dtype).data)
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return np.load(path, mmap_mode="c")


def mapped_as_float(X, path):
    """Rows that the fit need not copy: mapped ones of another type, converted on disk.

    Parameters
    ----------
    X : array-like
    path : path
        The file to write, if X is mapped and not float64 or float32 in C order.

    Returns
    -------
    X, or a memmap of the same rows
    """
    is_mapped = isinstance(X, np.memmap) and X.ndim == 2 and X.dtype.kind in "fiub"
    if not is_mapped or (X.dtype in FLOATS and X.flags.c_contiguous):
        return X
    return write_npy(path, X.shape, np.float64, blocks_of(X))
