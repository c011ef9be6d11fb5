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


class _Dtype:
    """Stands in for a numpy type."""

    __slots__ = ("code", "order")

    def __init__(self, code, *_):
        self.code, self.order = code, "|"

    def __setstate__(self, state):
        self.order = state[1]


class _Array:
    """Stands in for an array."""

    __slots__ = ("content", "dtype", "order", "shape")

    def __init__(self, content=b"", dtype=None, shape=(0,), order="C"):
        self.content, self.dtype, self.shape, self.order = content, dtype, shape, order

    def __setstate__(self, state):
        _, self.shape, self.dtype, by_columns, self.content = state
        self.order = "F" if by_columns else "C"

    def resolve(self):
        """The array of numbers, checked against its bytes."""
        code, order, content = self.dtype.code, self.dtype.order, self.content
        is_number = isinstance(code, str) and NUMBERS.fullmatch(code)
        if not is_number or order not in ("<", ">", "|", "="):
            raise RefusedPickle(f"an array of type {code!r}")
        if isinstance(content, str):  # Python 2 wrote bytes as text
            content = content.encode("latin1")
        values = np.frombuffer(content, np.dtype(order + code))
        return values.reshape(self.shape, order=self.order).copy()


class _Maker:
    """A function that a pickle can call, but not change."""

    __slots__ = ("make",)

    def __init__(self, make):
        self.make = make

    def __call__(self, *args):
        return self.make(*args)

    def __setstate__(self, state):
        raise RefusedPickle("a change to a reader")


def _encode(text, encoding="latin1"):
    """How protocol 2 of Python 3 writes bytes, if there are any."""
    if encoding != "latin1":
        raise RefusedPickle(f"bytes in {encoding!r}")
    return text.encode("latin1")


class _Reader(pickle.Unpickler):
    """An unpickler for which only the names that numpy writes exist."""

    def __init__(self, file):
        super().__init__(file, encoding="latin1")
        self.makers = {
            ("numpy", "dtype"): _Maker(_Dtype),
            ("numpy", "ndarray"): _Maker(_Array),
            ("_codecs", "encode"): _Maker(_encode),
            ("__builtin__", "bytes"): _Maker(lambda: b""),
        }
        for module in ("numpy.core", "numpy._core"):
            empty = _Maker(lambda *_: _Array())
            self.makers[f"{module}.multiarray", "_reconstruct"] = empty
            self.makers[f"{module}.numeric", "_frombuffer"] = _Maker(_Array)

    def find_class(self, module, name):
        if (module, name) not in self.makers:
            raise RefusedPickle(f"'{module}.{name}'")
        return self.makers[module, name]

    def persistent_load(self, pid):
        raise RefusedPickle("a reference to something outside")


def read_pickle(file):
    """Dictionaries, lists, names and arrays of a pickle, of which nothing is run."""
    try:
        return _plain(_Reader(file).load(), {})
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
    is_array = isinstance(value, _Array) and isinstance(value.dtype, _Dtype)
    part: Any
    if isinstance(value, dict):
        for key in value:
            if not isinstance(key, str | int):
                raise RefusedPickle(f"a key of type {type(key).__name__!r}")
        part = {k: _plain(v, parts_by_id, depth + 1) for k, v in value.items()}
    elif isinstance(value, list | tuple):
        part = [_plain(v, parts_by_id, depth + 1) for v in value]
    elif is_array and value.dtype.code in ("O", "O8"):
        part = _plain(value.content, parts_by_id, depth + 1)
        part = part[0] if value.shape == () else part
    elif is_array:
        part = value.resolve()
    else:
        raise RefusedPickle(f"an object of type {type(value).__name__!r}")
    parts_by_id[id(value)] = part
    return part
