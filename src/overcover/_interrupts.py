"""Ctrl-C while the command line is still being imported: an end without a traceback.

Importing takes seconds, and happens before any function of ours runs. So this module is
imported first; in any process but that of the command line it does nothing.
"""

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
    called = getattr(sys, "argv", None) or [""]
    if called[0] == "-m":  # as Python has it until it has found the module
        asked = pairwise(sys.orig_argv)
        return next((name for option, name in asked if option == "-m"), "") == NAME
    return Path(called[0]).stem == NAME


def end(number, frame):
    """End the process: nothing has been begun that would have to be cleaned up."""
    os.write(2, b"interrupted\n")
    os._exit(130)


@contextmanager
def as_exceptions():
    """Let Ctrl-C raise KeyboardInterrupt, as ever: now there may be things to do."""
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
