"""Generated data on disk: a folder of .npy files, written aside and renamed when whole.

The folder's name is a hash of all that the data depend on, so a folder that exists is
complete and right; nothing is pickled.
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
        self.n_columns, self.lock = shape[1], threading.Lock()
        self.file = open(path, "wb")  # noqa: SIM115, closed by __exit__
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self.file, header)
        self.start = self.file.tell()

    def __setitem__(self, rows, values):
        """Write values of shape (n_rows, n_columns) to a slice of rows."""
        block = np.ascontiguousarray(values, "<f4")
        with self.lock:
            self.file.seek(self.start + 4 * self.n_columns * rows.start)
            self.file.write(block.data)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.file.flush()
        os.fsync(self.file.fileno())
        self.file.close()


def stored(key, shapes, fill, folder=None, data_home=None, anew=False):
    """Float32 arrays from disk, generated first where they are missing.

    `key` holds all that the data depend on. `fill` writes into a dictionary of arrays
    of these `shapes`. Arrays in a `folder` are memory-mapped; those in scikit-learn's
    data home are read. `anew` generates them in any case.
    """
    text = json.dumps(key, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    home = Path(get_data_home(data_home), "overcover") if folder is None else folder
    place = Path(home) / f"pose-{key['preset']}-{digest}"
    if anew or not place.is_dir():
        _write(place, text, shapes, fill)
    arrays = {}
    for name, shape in shapes.items():
        file = place / f"{name}.npy"
        try:
            array = np.load(file, mmap_mode=None if folder is None else "r")
            if array.shape != shape:
                raise ValueError(f"shape {array.shape} instead of {shape}")
        except (OSError, ValueError, EOFError) as error:
            raise OSError(
                f"{file} cannot be read ({error}). Delete the folder {place}, or call "
                "with cache=False, to generate the data again."
            ) from error
        arrays[name] = array
    return arrays


def _write(place, text, shapes, fill):
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
            arrays = {
                name: RowFile(aside / f"{name}.npy", shapes[name]) for name in shapes
            }
            for file in arrays.values():
                files.enter_context(file)
            fill(arrays)
        (aside / "settings.json").write_text(text, encoding="utf-8")
        _put_in_place(aside, place)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def _put_in_place(aside, place):
    """Rename a complete folder; one that is already there is moved away and deleted."""
    with contextlib.suppress(FileNotFoundError):
        os.rename(place, aside / "old")
    try:
        os.rename(aside, place)
    except OSError:
        # Another process has put an equal folder there meanwhile.
        if not place.is_dir():
            raise
    shutil.rmtree(place / "old", ignore_errors=True)
