"""How a command ends early: errors that users can correct, and signals."""

import os
import signal
import threading
from contextlib import contextmanager
from pathlib import Path

from ..tables import STDIN, WRITABLE, form_of

# The end of a job or a container, and that of the terminal; Windows has only the first.
NAMES = {"SIGTERM": "terminated", "SIGHUP": "hung up"}


class Mistake(Exception):
    """Wrong usage; the text says what to do. Exit code 2."""

    code = 2


class Cannot(Mistake):
    """Right usage, but files or data do not permit it. Exit code 1."""

    code = 1


def check_output(target, source=None, known=WRITABLE):
    """Refuse a file that cannot be written, or is the table to read."""
    if target == STDIN:
        return
    form_of(target, known)
    path = Path(target)
    if source not in (None, STDIN) and path.exists() and path.samefile(source):
        raise Mistake(f"{target} is the table to read. Choose another name for --out.")
    if path.is_dir():
        raise Mistake(f"{target} is a folder. Give the name of a file.")
    if not path.parent.is_dir():
        raise Cannot(f"there is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise Cannot(f"{path.parent} may not be written to. Choose another folder.")


class Ended(KeyboardInterrupt):
    """A signal asks to end; exit code 128 and its number, as shells have it."""

    def __init__(self, number):
        super().__init__(NAMES[signal.Signals(number).name])
        self.code = 128 + number


def code_and_word(error):
    return getattr(error, "code", 130), str(error) or "interrupted"


@contextmanager
def orderly_end():
    """Raise `Ended` where a signal would end the process; ignored ones stay ignored."""
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():  # as signal demands
        numbers = []
    numbers = [n for n in numbers if signal.getsignal(n) is signal.SIG_DFL]

    def end(number, frame):
        for other in numbers:  # a second one must not cut cleaning up short
            signal.signal(other, signal.SIG_IGN)
        raise Ended(number)

    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
