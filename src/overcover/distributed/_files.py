"""Files that all computers see: rows in .npy files, mapped or written in parts."""

import os
import time
from pathlib import Path

import numpy as np

from .._streams import blocks_of
from ..store import StoreError, write_npy

# Seconds until a file of another computer must be visible, and between checks.
PATIENCE, PAUSE = 30.0, 0.1


def sees(folder) -> bool:
    """Whether this computer can read and write a folder."""
    return os.access(folder, os.R_OK | os.W_OK | os.X_OK)


def wait_for(path) -> None:
    """Wait until a file of another computer is visible: it may be a moment later."""
    until = time.monotonic() + PATIENCE
    while not Path(path).exists():
        if time.monotonic() > until:
            raise StoreError(
                f"{path} was written by a worker and is not visible here. Every worker "
                "must see the store under the same path, on a file system that all of "
                "them share, and no one may discard the fit meanwhile."
            )
        time.sleep(PAUSE)


def map_rows(path):
    """A .npy file as an array whose values are read when they are looked at."""
    try:
        return np.load(path, mmap_mode="r")
    except (OSError, ValueError) as error:
        raise StoreError(
            f"{path} cannot be mapped: {error}. Give the path of a .npy file of "
            "numbers that all workers can read."
        ) from error


def as_float64(source, target) -> str:
    """The path of the same rows as float64 in C order: `target`, if they are not."""
    rows = map_rows(source)
    if rows.dtype.kind not in "fiub":
        raise StoreError(f"{source} holds {rows.dtype}, not numbers.")
    if rows.dtype == np.float64 and rows.flags.c_contiguous:
        return str(source)
    write_npy(target, rows.shape, np.float64, blocks_of(rows))
    return str(target)


def begin_rows(path, shape) -> None:
    """Make a .npy file of float64 that `write_rows` fills."""
    header = {"descr": "<f8", "fortran_order": False, "shape": shape}
    with open(path, "wb") as file:
        np.lib.format.write_array_header_1_0(file, header)
        file.truncate(file.tell() + 8 * int(np.prod(shape)))


def write_rows(rows, path, start) -> int:
    """Write successive rows into a file of `begin_rows`; returns how many."""
    values = np.ascontiguousarray(rows, dtype="<f8")
    with open(path, "r+b") as file:
        np.lib.format.read_magic(file)
        shape, _, _ = np.lib.format.read_array_header_1_0(file)
        if values.shape[1:] != shape[1:] or start + len(values) > shape[0]:
            raise ValueError(
                f"A block of shape {values.shape} does not fit rows {start} and "
                f"following of an array of shape {shape}: it has another shape when "
                "it is computed than it promises."
            )
        file.seek(8 * int(np.prod(shape[1:])) * start, os.SEEK_CUR)
        file.write(values.data)
    return len(values)
