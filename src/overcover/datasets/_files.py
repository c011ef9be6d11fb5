"""Files: are they there, are they the right ones, what arrays do they hold.

Every reader names the file in its errors, lists the keys there are when one is missing,
and never unpickles (see `_pickled`).
"""

import hashlib
import zipfile
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path

import numpy as np
from scipy.io import loadmat

from ._pickled import RefusedPickle, read_pickle
from ._text import BadText

MOST_NAMES = 20

# -- which file ------------------------------------------------------------------------


def file_checksum(path):
    """SHA-256 of a file, as ``sha256sum`` prints it.

    Record it when you first get a file, and pass it to the loader as ``sha256=``: then
    a damaged or changed file is refused before anything in it is read.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from overcover.datasets import file_checksum
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "empty"
    ...     _ = path.write_bytes(b"")
    ...     file_checksum(path)[:8]
    'e3b0c442'
    """
    with open(check_path(path), "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def array_checksum(*arrays):
    """SHA-256 of what arrays hold, whatever file they came from.

    Values count as little-endian float64 in row order, and shapes count too.

    Parameters
    ----------
    *arrays : array-like of numbers

    Returns
    -------
    str
        64 hexadecimal digits.

    Examples
    --------
    >>> from overcover.datasets import array_checksum
    >>> array_checksum([[1, 2]], [3.0]) == array_checksum([[1.0, 2.0]], [3])
    True
    >>> array_checksum([[1, 2]]) == array_checksum([[1], [2]])
    False
    """
    digest = hashlib.sha256()
    for array in arrays:
        array = np.ascontiguousarray(array, dtype="<f8")
        digest.update(repr(array.shape).encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def check_path(path, sha256=None, folder=False):
    """The path, if there is such a file (or folder) and it is the one meant."""
    path = Path(path)
    if not path.exists():
        beside = [p.name for p in path.parent.glob("*")] if path.parent.exists() else []
        raise FileNotFoundError(
            f"There is no {str(path)!r}.{near_names(path.name, beside)}"
        )
    if path.is_dir() and not folder:
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a file in it.")
    if sha256 is None:
        return path
    if path.is_dir():
        raise ValueError(
            f"sha256 is of one file, and {str(path)!r} is a folder. Leave it out."
        )
    found = file_checksum(path)
    if found != str(sha256).lower():
        raise ValueError(
            f"{str(path)!r} has sha256 {found}, not {sha256}: it is another file, or "
            "damaged. Get it again, or pass its own sum if you trust it."
        )
    return path


def near_names(name, names):
    """A sentence with the names most like a missing one, and with the first of all."""
    names = [str(n) for n in names]
    near = get_close_matches(str(name), names, n=3)
    said = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    if names:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        shown = ", ".join(map(repr, sorted(names)[:MOST_NAMES]))
        said += f" There are: {shown}{more}."
    return said


def require(module, extra, purpose):
    """Import a module of an extra, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {module.partition('.')[0]}, which is not installed. "
            f"Install it by: pip install 'overcover[{extra}]'"
        ) from error


@contextmanager
def reading(path, form):
    """Turn whatever a damaged file makes its reader raise into one clear error."""
    try:
        yield
    except (ImportError, MemoryError, KeyError):
        raise
    except RefusedPickle as error:
        raise ValueError(f"{str(path)!r} is not read. {error}") from None
    except BadText as error:
        raise ValueError(f"{str(path)!r} is not read: {error}") from None
    except Exception as error:
        raise ValueError(
            f"{str(path)!r} cannot be read as {form}: {error} It may be cut short or "
            "of another form; get it again."
        ) from error


class MissingKey(KeyError):
    """A file does not hold the array asked for."""

    def __str__(self):  # a KeyError would show its message as a quoted word
        return str(self.args[0])


def pick(names, keys, path):
    """The first of the keys that is among the names."""
    keys = (keys,) if isinstance(keys, str) else keys
    for key in keys:
        if key in names:
            return key
    raise MissingKey(
        f"{str(path)!r} holds no {' or '.join(map(repr, keys))}."
        f"{near_names(keys[0], names)}"
    )


# -- what it holds ---------------------------------------------------------------------


def npz_names(path):
    """Names of the arrays of an .npz archive."""
    with reading(path, "an .npz archive"), zipfile.ZipFile(path) as archive:
        return [n.removesuffix(".npy") for n in archive.namelist()]


def read_npz(path, key, pickled=False):
    """One array of an .npz archive; if `pickled`, also a dictionary of arrays."""
    pick(npz_names(path), key, path)
    with reading(path, "an .npz archive"), zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        member = key if key in names else f"{key}.npy"
        with archive.open(member) as file:
            return _read_npy(file, pickled)


def read_npy(path):
    """The array of an .npy file."""
    with reading(path, "an .npy file"), open(path, "rb") as file:
        return _read_npy(file)


def _read_npy(file, pickled=False):
    form = np.lib.format
    magic = form.read_magic(file)
    header = {(1, 0): form.read_array_header_1_0, (2, 0): form.read_array_header_2_0}
    if magic not in header:  # (3, 0): names of fields beyond latin1
        raise RefusedPickle("It is an array of records, not of numbers.")
    shape, by_columns, dtype = header[magic](file)
    if dtype.hasobject:
        if pickled:
            return read_pickle(file)
        raise RefusedPickle(
            "It is an array of Python objects, which only unpickling can restore, and "
            "that can run any program. Save arrays of numbers."
        )
    if dtype.kind not in "biuf":
        raise RefusedPickle(f"It is an array of {dtype}, not of numbers.")
    size = int(np.prod(shape, dtype=np.int64))
    content = file.read(size * dtype.itemsize)
    if len(content) < size * dtype.itemsize:
        raise EOFError(f"{len(content)} bytes are there of {size * dtype.itemsize}.")
    values = np.frombuffer(content, dtype).reshape(
        shape, order="F" if by_columns else "C"
    )
    return np.array(values, dtype.newbyteorder("="), order="C")


def read_mat(path, keys):
    """The first of the keys in a MATLAB file: numbers, in a 1 x 1 cell or not.

    Files of version 7.3 need h5py.
    """
    with reading(path, "a MATLAB file"):
        try:
            arrays = loadmat(path)
        except NotImplementedError:  # how scipy says version 7.3
            return read_h5(path, keys, "a MATLAB 7.3 file").T
    key = pick([n for n in arrays if not n.startswith("__")], keys, path)
    value = arrays[key]
    while isinstance(value, np.ndarray) and value.dtype == object and value.size == 1:
        value = value.item()
    return _numeric(value, key, path)


def read_h5(path, keys, form="an HDF5 file"):
    """The first of the keys in an HDF5 file: numbers, as they are stored."""
    h5py = require("h5py", "data", f"To read {form}")
    with reading(path, form), h5py.File(path, "r") as file:
        key = pick(list(file), keys, path)
        value = file[key]
        if value.dtype == h5py.ref_dtype and value.size == 1:
            value = file[value[()].item()]  # a cell of MATLAB
        value = value[()]
    return _numeric(value, key, path)


def read_cdf(path, key):
    """One numeric array of a CDF file as rows, whatever its axes of records."""
    cdflib = require("cdflib", "data", "To read .cdf files")
    with reading(path, "a CDF file"):
        file = cdflib.CDF(path)
        info = file.cdf_info()
        pick([*info.zVariables, *info.rVariables], key, path)
        value = file.varget(key)
        value = value.reshape(-1, value.shape[-1])
    return _numeric(value, key, path)


def _numeric(value, key, path):
    value = np.asarray(value)
    if value.dtype.kind not in "biuf":
        raise ValueError(
            f"{key!r} in {str(path)!r} is of type {value.dtype}; numbers are needed."
        )
    return value
