"""Answers to a table, in chunks: memory does not grow with the file."""

import numpy as np

from ..tables import Chunks, with_gaps
from ._mistakes import Cannot, Mistake
from ._stored import Stored, first_gap, inputs_of


def answers(
    stored: Stored, chunks: Chunks, keep=(), std=False, coverage=None, missing="refuse"
):
    """Frames of predictions, one for each chunk of rows.

    Parameters
    ----------
    stored : Stored
    chunks : Chunks
    keep : sequence of str
        Columns to copy, before the answers.
    std : bool
        Whether standard deviations are wanted.
    coverage : float or None
        Of intervals, if they are wanted.
    missing : {"refuse", "empty"}
        What to do with rows that lack a value: "empty" leaves their answers empty.

    Yields
    ------
    pandas.DataFrame
        Kept columns, those called as an answer with ``_given``; then, for every
        target, its mean, ``_std``, ``_low``, ``_high``.
    """
    parts = parts_of(std, coverage)
    kept = names_kept(keep, [f"{t}{part}" for t in stored.targets for part in parts])
    for frame in chunks.frames:
        X, whole = inputs_of(stored, with_gaps(frame, keep))
        if missing == "refuse" and not whole.all():
            gaps = frame.index, stored.recipe.inputs(), X
            row, column = first_gap(*gaps, stored.recipe)
            # Words have no median.
            fit = (
                ""
                if column in stored.recipe.words
                else ", or fit with --missing median"
            )
            raise Cannot(
                f"{row} lacks a value of {column!r}. Leave such answers empty with "
                f"--missing empty{fit}."
            )
        made = frame[list(kept)].rename(columns=kept)
        said = answer(stored.model, X[whole], std, coverage)
        columns = {}
        for part, values in said.items():
            full = np.full((len(frame), len(stored.targets)), np.nan)
            full[whole] = values
            columns[part] = full
        for j, target in enumerate(stored.targets):
            for part, values in columns.items():
                made[f"{target}{part}"] = values[:, j]
        yield made


def parts_of(std, coverage):
    """Endings of the names of answers."""
    return ["", *(["_std"] if std else []), *(["_low", "_high"] if coverage else [])]


def names_kept(keep, answered):
    """What copied columns are called: not as an answer is.

    Parameters
    ----------
    keep : sequence of str
    answered : sequence of str
        Names of the columns of answers.

    Returns
    -------
    dict of str to str

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
    """What is said of rows, by the ending of its column's name.

    Returns
    -------
    dict of str to ndarray of shape (n_rows, n_outputs)
    """
    parts = parts_of(std, coverage)
    if not len(X):
        return {part: np.empty((0, model.n_outputs_)) for part in parts}
    said = {}
    if std or coverage is not None:
        said[""], said["_std"] = model.predict(X, return_std=True)
    else:
        said[""] = model.predict(X)
    if coverage is not None:
        said["_low"], said["_high"] = model._interval(said[""], said["_std"], coverage)
    return {part: said[part].reshape(len(X), -1) for part in parts}
