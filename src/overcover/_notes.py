"""Notes: the warnings of a fit, which the fitted model keeps as `notes_`."""

import inspect
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

# Packages whose lines a warning is not about: this one, and what decorates its calls.
PASSED_THROUGH = {__package__, "contextlib", "sklearn"}
_current: ContextVar[list[str] | None] = ContextVar("notes", default=None)


@contextmanager
def noted() -> Iterator[list[str]]:
    """Collect the notes of what is done inside; the caller's notes do not get them."""
    notes = list[str]()
    token = _current.set(notes)
    try:
        yield notes
    finally:
        _current.reset(token)


def remember(texts: Iterable[str]) -> None:
    """Add to the notes of the fit that is running, if there is one, each text once."""
    notes = _current.get()
    if notes is not None:
        notes += [text for text in dict.fromkeys(texts) if text not in notes]


def warn(text: str, category: type[Warning] = UserWarning) -> None:
    """Warn of the caller's line, however deep in the package, and remember it."""
    remember([text])
    depth, frame = 2, inspect.currentframe()
    while frame := frame.f_back if frame else None:
        if frame.f_globals.get("__name__", "").split(".")[0] not in PASSED_THROUGH:
            break
        depth += 1
    warnings.warn(text, category, stacklevel=depth)


def keep_notes(fit):
    """Decorate `fit` so that the estimator keeps what it warned of, as `notes_`."""

    @wraps(fit)
    def fit_with_notes(self, *args, **kwargs):
        with noted() as notes:
            fitted = fit(self, *args, **kwargs)
        self.notes_ = notes
        return fitted

    return fit_with_notes
