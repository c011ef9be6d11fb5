"""Signals that end a process become exceptions, so that cleaning up happens."""

import signal
import threading
from contextlib import contextmanager

# The end of a job or a container, and that of the terminal; Windows has only the first.
NAMES = {"SIGTERM": "terminated", "SIGHUP": "hung up"}


class Ended(KeyboardInterrupt):
    """A signal asks to end; exit code 128 and its number, as shells have it."""

    def __init__(self, number):
        super().__init__(NAMES[signal.Signals(number).name])
        self.code = 128 + number


def code_and_word(error):
    """Exit code and word for an interruption.

    >>> code_and_word(KeyboardInterrupt()), code_and_word(Ended(signal.SIGTERM))
    ((130, 'interrupted'), (143, 'terminated'))
    """
    return (
        (error.code, str(error)) if isinstance(error, Ended) else (130, "interrupted")
    )


@contextmanager
def orderly_end():
    """Raise `Ended` where a signal would end the process at once.

    An ignored signal, as under ``nohup``, stays so. Only the main thread can handle
    signals, so in others nothing changes.
    """
    numbers = [getattr(signal, name) for name in NAMES if hasattr(signal, name)]
    if threading.current_thread() is not threading.main_thread():
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
