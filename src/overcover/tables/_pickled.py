"""Read pickled dictionaries of arrays without running any of what they name.

Python's unpickler calls whatever a pickle names. Here each name leads to a stand-in
that holds the arguments; not even numpy's function to rebuild an array is called.
"""

import pickle
import re
from typing import Any

import numpy as np

MOST_NESTED = 6
NUMBERS = re.compile(r"b1|[iu][1248]|f[248]")


class RefusedPickle(ValueError):
    """A pickle that holds more than names and arrays of numbers."""


class _Part:
    """Stands in for what a name leads to, or, with arguments, for what it makes."""

    __slots__ = ("args", "name", "state")

    def __init__(self, name, args: Any = None, state: Any = None):
        self.name, self.args, self.state = name, args, state

    def __call__(self, *args):
        return _Part(self.name, args)

    def __setstate__(self, state):
        if self.args is None:
            raise RefusedPickle("a change to a reader")
        self.state = state


ALLOWED = {("numpy", "dtype"), ("numpy", "ndarray"), ("_codecs", "encode")}
ALLOWED |= {("__builtin__", "bytes")}
for _module in ("numpy.core", "numpy._core"):
    ALLOWED |= {(f"{_module}.multiarray", "_reconstruct")}
    ALLOWED |= {(f"{_module}.numeric", "_frombuffer")}


class _Reader(pickle.Unpickler):
    """An unpickler for which only the names that numpy writes exist."""

    def find_class(self, module, name):
        if (module, name) not in ALLOWED:
            raise RefusedPickle(f"'{module}.{name}'")
        return _Part(name)

    def persistent_load(self, pid):
        raise RefusedPickle("a reference to something outside")


def read_pickle(file):
    """Dictionaries, lists, names and arrays of a pickle, of which nothing is run."""
    try:
        return _plain(_Reader(file, encoding="latin1").load(), {})
    except RefusedPickle as error:
        raise RefusedPickle(
            f"It holds {error}, which is not read, for a pickle can run any program. "
            "Allowed are dict, list, str, numbers and arrays of numbers. If you trust "
            "its source, load it by numpy.load(..., allow_pickle=True) and save arrays."
        ) from None
    except Exception as error:  # a damaged pickle can fail in any way
        raise ValueError(f"Its pickled part is damaged ({error!r}).") from error


def _plain(value, parts_by_id, depth=0):
    """The value with stand-ins replaced; each shared part is built once."""
    if isinstance(value, str | int | float | bool | None):
        return value
    if depth > MOST_NESTED:
        raise RefusedPickle(f"parts nested deeper than {MOST_NESTED}")
    if id(value) in parts_by_id:
        return parts_by_id[id(value)]
    part: Any
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str | int):
                raise RefusedPickle(f"a key of type {type(key).__name__!r}")
        part = {k: _plain(v, parts_by_id, depth + 1) for k, v in value.items()}
    elif isinstance(value, list | tuple):
        part = [_plain(v, parts_by_id, depth + 1) for v in value]
    elif isinstance(value, _Part):
        part = _array(value)
        if isinstance(part, list):  # of objects
            part = _plain(part, parts_by_id, depth + 1)
            part = part[0] if value.state[1] == () else part
    else:
        raise RefusedPickle(f"an object of type {type(value).__name__!r}")
    parts_by_id[id(value)] = part
    return part


def _array(part):
    """The array that a stand-in is for; of objects their list."""
    if part.name == "_frombuffer" and part.args:
        content, dtype, shape, order = part.args
    elif part.name == "_reconstruct" and part.state:
        _, shape, dtype, by_columns, content = part.state
        order = "F" if by_columns else "C"
    else:
        raise RefusedPickle(f"an object of type {part.name!r}")
    if dtype.name != "dtype" or not dtype.args:
        raise RefusedPickle(f"an array of type {dtype.name!r}")
    code, sign = dtype.args[0], dtype.state[1] if dtype.state else "|"
    if code in ("O", "O8") and isinstance(content, list) and part.state:
        return content
    is_number = isinstance(code, str) and NUMBERS.fullmatch(code)
    if not is_number or sign not in ("<", ">", "|", "="):
        raise RefusedPickle(f"an array of type {code!r}")
    if isinstance(content, _Part):  # how protocol 2 of Python 3 writes bytes
        text, encoding = content.args or ("", "latin1")
        if content.name not in ("encode", "bytes") or encoding != "latin1":
            raise RefusedPickle(f"bytes of {content.name!r} in {encoding!r}")
        content = text
    if isinstance(content, str):  # Python 2 wrote bytes as text
        content = content.encode("latin1")
    values = np.frombuffer(content, np.dtype(sign + code))
    return values.reshape(shape, order=order).copy()
