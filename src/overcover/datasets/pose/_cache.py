"""Made data on disk: a folder of .npy files, written aside and put in place at once.

The folder's name is a hash of all that the data depend on, so that a folder that is
there is whole and right; nothing is pickled.
"""

import contextlib
import hashlib
import json
import os
import shutil
import threading
import uuid
from pathlib import Path

import numpy as np
from sklearn.datasets import get_data_home

RESERVE = 2**26
"""Bytes that are left free on a disk."""


class RowFile:
    """A float32 .npy file that takes blocks of rows, from several threads.

    Plain writes instead of a mapped file: memory stays flat, and a full disk is an
    error instead of the end of the process.
    """

    def __init__(self, path, shape):
        self.shape, self.lock = shape, threading.Lock()
        self.file = open(path, "wb")  # noqa: SIM115, closed by __exit__
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)
        self.start = self.file.tell()

    def __setitem__(self, rows, values):
        """Write values of shape (n_rows, n_columns) to a slice of rows."""
        n_rows = rows.stop - rows.start
        block = np.ascontiguousarray(values, "<f4").reshape(n_rows, self.shape[1])
        with self.lock:
            self.file.seek(self.start + 4 * self.shape[1] * rows.start)
            self.file.write(block.data)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


def stored(described, shapes, fill, folder=None, data_home=None, anew=False):
    """Float32 arrays from disk, generated first where they are missing.

    `described` holds all that the data depend on; its "preset" is part of the folder's
    name. `fill` writes into a dictionary of arrays of these `shapes`. Arrays in a
    `folder` are memory-mapped; those in scikit-learn's data home are read. `anew` makes
    them in any case.
    """
    text = json.dumps(described, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    home = Path(folder) if folder is not None else Path(get_data_home(data_home))
    if folder is None:
        home = home / "overcover"
    place = home / f"pose-{described['preset']}-{digest}"
    if anew or not place.is_dir():
        _make(place, text, shapes, fill)
    arrays = {}
    for name, shape in shapes.items():
        file = place / f"{name}.npy"
        try:
            array = np.load(file, mmap_mode="r" if folder is not None else None)
        except (OSError, ValueError, EOFError) as error:
            raise OSError(
                f"{file} cannot be read ({error}). Delete the folder {place}, or call "
                "with cache=False, to generate the data again."
            ) from error
        if array.shape != shape:
            raise OSError(
                f"{file} holds shape {array.shape} instead of {shape}. Delete the "
                f"folder {place} to generate the data again."
            )
        arrays[name] = array
    return arrays


def _make(place, text, shapes, fill):
    """Write a folder beside its place, then rename it."""
    aside = place.parent / f".{place.name}-{uuid.uuid4().hex[:12]}"
    try:
        aside.mkdir(parents=True)
    except OSError as error:
        raise OSError(
            f"{place.parent} cannot be written ({error}). Give another folder or "
            "data_home, or call with cache=False and no folder."
        ) from error
    try:
        # Better to fail now than after an hour.
        n_bytes = 4 * sum(rows * columns for rows, columns in shapes.values())
        free = shutil.disk_usage(aside).free
        if free < n_bytes + RESERVE:
            raise OSError(
                f"{place.parent} has {free / 1e9:.1f} GB left and "
                f"{n_bytes / 1e9:.1f} GB are needed. Give another folder, or lower "
                "n_frames."
            )
        with contextlib.ExitStack() as files:
            fill(
                {
                    name: files.enter_context(RowFile(aside / f"{name}.npy", shape))
                    for name, shape in shapes.items()
                }
            )
        (aside / "settings.json").write_text(text, encoding="utf-8")
        _put_in_place(aside, place)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put_in_place(aside, place):
    """Rename a whole folder; one that stands there is equal by its name, and goes."""
    old = aside / "old"
    with contextlib.suppress(FileNotFoundError):
        os.rename(place, old)
    try:
        os.rename(aside, place)
    except OSError:
        # Somebody else has put an equal one there meanwhile.
        if not place.is_dir():
            raise
    shutil.rmtree(place / "old", ignore_errors=True)
