"""Notes: the warnings of a fit, which the fitted model keeps as `notes_`."""

import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps

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


def warn(text: str, category: type[Warning] = UserWarning, stacklevel: int = 2) -> None:
    """Warn as `warnings.warn` does, and remember it."""
    remember([text])
    warnings.warn(text, category, stacklevel=stacklevel + 1)


def keep_notes(fit):
    """Decorate `fit` so that the estimator keeps what it warned of, as `notes_`."""

    @wraps(fit)
    def fit_with_notes(self, *args, **kwargs):
        with noted() as notes:
            fitted = fit(self, *args, **kwargs)
        self.notes_ = notes
        return fitted

    return fit_with_notes
