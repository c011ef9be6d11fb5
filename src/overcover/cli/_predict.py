"""Predictions for a table, in chunks: memory does not grow with the file."""

import numpy as np

from ..tables import Chunks, with_gaps
from ._mistakes import Cannot, Mistake
from ._stored import Stored, first_gap, inputs_of


def answers(
    stored: Stored, chunks: Chunks, keep=(), std=False, coverage=None, missing="refuse"
):
    """Frames of predictions, one for each chunk of rows.

    They hold the columns to `keep`, then, for every target, its mean, ``_std`` if
    wanted, and ``_low`` and ``_high`` of intervals of a `coverage`. Rows that lack a
    value are refused, or have empty predictions.
    """
    endings = endings_of(std, coverage)
    kept = names_kept(keep, [f"{t}{end}" for t in stored.targets for end in endings])
    for frame in chunks.frames:
        X, whole = inputs_of(stored, with_gaps(frame, keep))
        if missing == "refuse" and not whole.all():
            inputs = stored.recipe.inputs()
            row, column = first_gap(frame.index, inputs, X, stored.recipe)
            has_median = column not in stored.recipe.words
            raise Cannot(
                f"{row} lacks a value of {column!r}. Leave such answers empty with "
                f"--missing empty{', or fit with --missing median' * has_median}."
            )
        table = frame[list(kept)].rename(columns=kept)
        parts = answer(stored.model, X[whole], std, coverage)
        for j, target in enumerate(stored.targets):
            for part, values in parts.items():
                column = np.full(len(frame), np.nan)
                column[whole] = values[:, j]
                table[f"{target}{part}"] = column
        yield table


def endings_of(std, coverage):
    """Endings of the names of answers."""
    return ["", *(["_std"] if std else []), *(["_low", "_high"] if coverage else [])]


def names_kept(keep, answered):
    """New names of copied columns: none is the name of an answer.

    Examples
    --------
    >>> names_kept(["id", "y_std"], ["y", "y_std"])
    {'id': 'id', 'y_std': 'y_std_given'}
    """
    kept = {name: f"{name}_given" if name in answered else name for name in keep}
    every = [*kept.values(), *answered]
    for i, name in enumerate(every):
        if name in every[:i]:
            raise Mistake(
                f"two columns of answers would be called {name!r}. Leave one of them "
                "out: see --keep, --std and --interval."
            )
    return kept


def answer(model, X, std, coverage):
    """Predictions, shape (n_rows, n_outputs), by the endings of their names."""
    endings = endings_of(std, coverage)
    if not len(X):
        return {end: np.empty((0, model.n_outputs_)) for end in endings}
    parts = {}
    if std or coverage is not None:
        parts[""], parts["_std"] = model.predict(X, return_std=True)
    else:
        parts[""] = model.predict(X)
    if coverage is not None:
        interval = model._interval(parts[""], parts["_std"], coverage)
        parts["_low"], parts["_high"] = interval
    return {end: parts[end].reshape(len(X), -1) for end in endings}
