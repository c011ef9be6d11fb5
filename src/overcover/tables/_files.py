"""Files: their names, forms and checksums; errors name the file and its content."""

import bz2
import gzip
import hashlib
import lzma
from contextlib import contextmanager, nullcontext
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from ._cells import TableError
from ._pickled import RefusedPickle

MOST_NAMES = 20
STDIN = "-"
# Text, and what separates its cells where the first line has no comma, semicolon or
# tab: None stands for blanks.
TEXT: dict[str, str | None] = {".csv": ",", ".tsv": "\t", ".tab": "\t"}
TEXT |= dict.fromkeys((".txt", ".dat", ".asc"))
FORMS = (*TEXT, ".parquet", ".npy", ".npz")
# Only text may be compressed: the other forms would have to be unpacked as a whole.
UNPACK: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}


class UnknownForm(TableError):
    """The name of a file has an ending that is not known."""


class MissingKey(TableError, KeyError):
    """A file does not hold the array or column of this name."""

    def __str__(self):  # a KeyError would show its message as a quoted word
        return str(self.args[0])


def file_checksum(path):
    """SHA-256 of a file, as ``sha256sum`` prints it.

    Loaders take it as ``sha256=`` and refuse a damaged or changed file.

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
    """SHA-256 of the values of arrays, whatever file they came from.

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
    """The path, if there is such a file (or folder) with this checksum."""
    path = Path(path)
    if not path.exists():
        beside = [p.name for p in path.parent.glob("*")] if path.parent.exists() else []
        near = near_names(path.name, beside, and_all=False)
        raise FileNotFoundError(f"There is no file {str(path)!r}.{near}")
    if path.is_dir() and not folder:
        raise IsADirectoryError(f"{str(path)!r} is a folder; give a file in it.")
    if sha256 is None:
        return path
    if path.is_dir():
        raise ValueError(
            f"sha256 is of one file, and {str(path)!r} is a folder. Leave it out."
        )
    checksum = file_checksum(path)
    if checksum != str(sha256).lower():
        raise ValueError(
            f"{str(path)!r} has sha256 {checksum}, not {sha256}: it is another file, "
            "or damaged. Get it again, or pass its own sum if you trust it."
        )
    return path


def form_of(path, known=FORMS):
    """The form of a file, one of its endings: ".csv" for "A.CSV.gz"."""
    path, packing = Path(path), packing_of(path)
    form = (path.with_suffix("") if packing else path).suffix.lower()
    packable = [ending for ending in known if ending in TEXT]
    if form not in (packable if packing else known):
        packed = f", and {packable[0]}.gz" if packable else ""
        raise UnknownForm(
            f"{str(path)!r} has no ending that is known. Known are "
            f"{', '.join(known)}{packed}."
        )
    return form


def packing_of(path):
    """The compression of a file by its ending: "", ".gz", ".bz2" or ".xz"."""
    last = Path(path).suffix.lower()
    return last if last in UNPACK else ""


def name_of(source):
    """The name of a source of rows in messages."""
    return "standard input" if source == STDIN else repr(str(source))


@contextmanager
def open_packed(path):
    """A file as it is on the disk, and what it holds, unpacked: two binary files."""
    unpack = UNPACK.get(packing_of(path), nullcontext)
    with open(path, "rb") as raw, unpack(raw) as file:
        yield raw, file


def near_names(name, names, and_all=True):
    """Sentences with the names most like a missing one, and with the first of all."""
    names = [str(n) for n in names]
    near = get_close_matches(str(name), names, n=3)
    text = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    if names and and_all:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        shown = ", ".join(map(repr, sorted(names)[:MOST_NAMES]))
        text += f" There are: {shown}{more}."
    return text


def pick(names, keys, path, what=""):
    """The first of the keys that is among the names; `what` they are, "column "."""
    keys = (keys,) if isinstance(keys, str) else keys
    for key in keys:
        if key in names:
            return key
    raise MissingKey(
        f"{str(path)!r} holds no {what}{' or '.join(map(repr, keys))}."
        f"{near_names(keys[0], names)}"
    )


def require(module, extra, purpose):
    """A module of an extra, or an error that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            f"{purpose} needs {module.partition('.')[0]}, which is not installed. "
            f"Install it by: pip install 'overcover[{extra}]'"
        ) from error


@contextmanager
def reading(source, form):
    """Turn any error that a damaged file causes into one that names the file."""
    name = name_of(source)
    try:
        yield
    except (ImportError, MemoryError, KeyError):
        raise
    except RefusedPickle as error:
        raise TableError(f"{name} is not read. {error}") from None
    except TableError as error:
        if str(error).startswith(name):
            raise
        raise TableError(f"{name} cannot be read: {error}") from None
    except Exception as error:
        raise TableError(
            f"{name} cannot be read as {form}: {error} It may be cut short or of "
            "another form; get it again."
        ) from error
