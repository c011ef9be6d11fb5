"""Loops that numba compiles, when they are first called.

The import of numba takes a good part of a second, so it waits for the first call. The
compiled code is kept in numba's cache on the disk, for the next process.
"""

from functools import partial, update_wrapper
from threading import RLock
from typing import Any

_lock = RLock()


class Compiled:
    """A function that is compiled by its first call, with the functions that it calls.

    It uses only what numba knows, and other functions of this class; the options are
    those of `numba.njit`.
    """

    def __init__(self, function, **options):
        update_wrapper(self, function)
        self.function, self.options = function, options
        self.dispatcher: Any = None

    def __call__(self, *args):
        if self.dispatcher is None:
            self.prepare()
        return self.dispatcher(*args)

    def prepare(self):
        """Import numba and give this function to it; returns numba's function."""
        from numba import njit

        with _lock:
            if self.dispatcher is None:
                names = self.function.__globals__
                for name in self.function.__code__.co_names:
                    if isinstance(names.get(name), Compiled):
                        names[name] = names[name].prepare()
                decorate = njit(cache=True, nogil=True, **self.options)
                self.dispatcher = decorate(self.function)
        return self.dispatcher


def read_only(array):
    """A view that compiled code takes as one type, mapped from a file or not.

    Another type would be another compiled function, and other rounding.
    """
    view = array.view()
    view.flags.writeable = False
    return view


compiled = Compiled
# Vectorised sums need another order of additions; nothing else is relaxed.
compiled_loosely = partial(Compiled, fastmath={"reassoc", "contract", "nsz"})
