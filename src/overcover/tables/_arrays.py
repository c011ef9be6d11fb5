"""Arrays of numbers from .npy and .npz files, never unpickled by Python's unpickler."""

import zipfile

import numpy as np

from ._cells import TableError, column_names
from ._files import pick, reading
from ._pickled import RefusedPickle, read_pickle

# Names of the arrays of an .npz archive.
INPUTS, OUTPUTS = ("X", "x", "data"), ("Y", "y", "target")
# What columns of theirs are called: this letter and a number.
INPUT, OUTPUT = "x", "y"


def npz_names(path):
    """Names of the arrays of an .npz archive."""
    with reading(path, "an .npz archive"), zipfile.ZipFile(path) as archive:
        return [n.removesuffix(".npy") for n in archive.namelist()]


def read_npz(path, keys=None, pickled=False):
    """The first array of these names, or the only one; a dictionary if `pickled`."""
    names = npz_names(path)
    if keys is None and len(names) != 1:
        raise TableError(f"{str(path)!r} holds {names}; give an .npz of one array.")
    key = names[0] if keys is None else pick(names, keys, path)
    with reading(path, "an .npz archive"), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        with archive.open(key if key in names else f"{key}.npy") as file:
            if _holds_objects(file) and pickled:
                return read_pickle(file)
            return _read_numbers(file)


def read_npy(path, mapped=False):
    """The array of an .npy file; its rows stay on the disk if it is mapped."""
    with reading(path, "an .npy file"), open(path, "rb") as file:
        if not mapped:
            return _read_numbers(file)
        _holds_objects(file)
        return np.load(path, mmap_mode="r", allow_pickle=False)


def _holds_objects(file):
    """Whether an array is of objects; reads the header, refuses records and text."""
    form = np.lib.format
    header = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    version = form.read_magic(file)
    if version not in header:  # (3, 0): names of fields beyond latin1
        raise RefusedPickle("It is an array of records, not of numbers.")
    dtype = header[version](file)[2]
    if not dtype.hasobject and dtype.kind not in "biuf":
        raise RefusedPickle(f"It is an array of {dtype}, not of numbers.")
    return dtype.hasobject


def _read_numbers(file):
    file.seek(0)
    if _holds_objects(file):
        raise RefusedPickle(
            "It is an array of Python objects, which only unpickling can restore, and "
            "that can run any program. Save arrays of numbers."
        )
    file.seek(0)
    values = np.lib.format.read_array(file, allow_pickle=False)
    file.read()  # to the end, where an archive has its checksum
    return values.astype(values.dtype.newbyteorder("="), order="C", copy=False)


def read_columns(path, form, mapped=False):
    """Columns of a .npy or .npz file (X and maybe Y, or one table) by name."""
    if form == ".npy":
        return _as_columns(read_npy(path, mapped), path)
    names = npz_names(path)
    if len(names) == 1 and names[0] not in INPUTS:
        return _as_columns(read_npz(path), path)
    columns = _as_columns(read_npz(path, INPUTS), path, INPUT)
    for name in OUTPUTS:
        if name in names:
            return columns | _as_columns(read_npz(path, name), path, OUTPUT)
    return columns


def _as_columns(values, path, letter="c"):
    if values.ndim not in (1, 2):
        raise TableError(
            f"{str(path)!r} holds an array of shape {values.shape}; a table has one or "
            "two dimensions."
        )
    values = values.reshape(len(values), -1)
    return dict(zip(column_names(values.shape[1], letter), values.T))
