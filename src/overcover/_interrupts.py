"""Ctrl-C during the imports of the command line, which take seconds, ends it."""

import os
import signal
import sys
import threading
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

NAME = "overcover"


def is_command():
    """Whether the process is ``overcover`` or ``python -m overcover``."""
    arguments = getattr(sys, "argv", None) or [""]
    if arguments[0] == "-m":  # until Python has located the module
        pairs = pairwise(sys.orig_argv)
        return next((name for option, name in pairs if option == "-m"), "") == NAME
    return Path(arguments[0]).stem == NAME


def end(number, frame):
    """End the process; during imports there is nothing to clean up."""
    os.write(2, b"interrupted\n")
    os._exit(130)


@contextmanager
def as_exceptions():
    """Let Ctrl-C raise KeyboardInterrupt, as usual, so that callers can clean up."""
    if signal.getsignal(signal.SIGINT) is not end:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, end)


if (
    is_command()
    and threading.current_thread() is threading.main_thread()
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
):
    signal.signal(signal.SIGINT, end)
