"""Generated data on disk: a folder's name is a hash of all that the data depend on."""

import hashlib
import json
import os
import shutil
from contextlib import ExitStack, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.datasets import get_data_home

RESERVE = 2**26  # bytes that are left free on a disk


def stored(key, shapes, blocks, folder=None, data_home=None, anew=False):
    """Float32 arrays from disk, made first by `blocks` if missing or `anew`."""
    text = json.dumps(key, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    home = Path(get_data_home(data_home), "overcover") if folder is None else folder
    place = Path(home) / f"pose-{key['preset']}-{digest}"
    if anew or not place.is_dir():
        _write(place, text, shapes, blocks)
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


def _write(place, text, shapes, blocks):
    """Write a folder beside its place, then rename it."""
    try:
        place.parent.mkdir(parents=True, exist_ok=True)
        aside = TemporaryDirectory(prefix=".pose-", dir=place.parent)
    except OSError as error:
        raise OSError(
            f"{place.parent} cannot be written ({error}). Give another folder or "
            "data_home, or call with cache=False and no folder."
        ) from error
    with aside:
        # Better to fail now than after an hour.
        n_bytes = 4 * sum(rows * columns for rows, columns in shapes.values())
        free = shutil.disk_usage(aside.name).free
        if free < n_bytes + RESERVE:
            raise OSError(
                f"{place.parent} has {free / 1e9:.1f} GB left and "
                f"{n_bytes / 1e9:.1f} GB are needed. Give another folder, or lower "
                "n_frames."
            )
        new, old = Path(aside.name, "new"), Path(aside.name, "old")
        new.mkdir()
        # Plain writes instead of mapped files: memory stays flat, and a full disk is an
        # error instead of the end of the process.
        with ExitStack() as stack:
            files = {}
            for name, shape in shapes.items():
                file = stack.enter_context(open(new / f"{name}.npy", "wb"))
                header = {"descr": "<f4", "fortran_order": False, "shape": shape}
                np.lib.format.write_array_header_1_0(file, header)
                files[name] = file
            for _, block in blocks():
                for name, rows in block.items():
                    files[name].write(rows.astype("<f4").tobytes())
            for file in files.values():
                file.flush()
                os.fsync(file.fileno())
        (new / "settings.json").write_text(text, encoding="utf-8")
        with suppress(FileNotFoundError):
            os.rename(place, old)
        try:
            os.rename(new, place)
        except OSError:
            # Another process has put an equal folder there meanwhile.
            if not place.is_dir():
                raise
