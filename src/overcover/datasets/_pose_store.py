"""Made data on disk: a folder of .npy files, written aside and put in place at once.

The folder's name is a hash of all that the data depend on, so that a folder that is
there is whole and right; nothing is pickled.
"""

import hashlib
import json
import os
import shutil
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import get_data_home


def stored(described, shapes, fill, folder=None, data_home=None, anew=False):
    """Arrays from disk, made first where they are not there.

    Parameters
    ----------
    described : dict
        All that the data depend on; its "preset" is part of the folder's name.
    shapes : dict of str to tuple
        Of the float32 arrays.
    fill : callable
        Writes into a dictionary of arrays of these shapes.
    folder : path-like or None
        Where to keep them; memory-mapped then. None for scikit-learn's data home, read
        into memory.
    data_home : path-like or None
    anew : bool
        Make them even if they are there.

    Returns
    -------
    dict of str to ndarray or memmap
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
                "with cache=False, and the data are made anew."
            ) from error
        if array.shape != shape:
            raise OSError(
                f"{file} holds shape {array.shape} instead of {shape}. Delete the folder "
                f"{place}, and the data are made anew."
            )
        arrays[name] = array
    return arrays


def _make(place, text, shapes, fill):
    """Write a folder beside its place, then rename it; another's equal one may win."""
    place.parent.mkdir(parents=True, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=f".{place.name}-", dir=place.parent))
    try:
        arrays = {
            name: np.lib.format.open_memmap(aside / f"{name}.npy", "w+", "f4", shape)
            for name, shape in shapes.items()
        }
        fill(arrays)
        for array in arrays.values():
            array.flush()
        (aside / "settings.json").write_text(text, encoding="utf-8")
        if place.is_dir():
            os.rename(place, aside / "old")
        try:
            os.rename(aside, place)
        except OSError:
            if not place.is_dir():
                raise
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    shutil.rmtree(place / "old", ignore_errors=True)
