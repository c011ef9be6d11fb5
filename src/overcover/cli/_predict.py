"""Answers to a table, in chunks: memory does not grow with the file."""

import numpy as np

from ._files import Chunks
from ._mistakes import Cannot
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
        Kept columns, those called as a target with ``_given``; then, for every
        target, its mean, ``_std``, ``_low``, ``_high``.
    """
    for frame in chunks.frames:
        X, whole = inputs_of(stored, frame)
        if missing == "refuse" and not whole.all():
            row, column = first_gap(X, whole, stored.recipe)
            # Words have no median.
            fit = (
                ""
                if column in stored.recipe.words
                else ", or fit with --missing median"
            )
            raise Cannot(
                f"row {row} lacks a value of {column!r}. Leave such answers empty with "
                f"--missing empty{fit}."
            )
        made = frame[list(keep)].rename(columns=lambda name: name_kept(stored, name))
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


def name_kept(stored: Stored, name):
    """What a copied column is called: not as an answer is."""
    return f"{name}_given" if name in stored.targets else name


def answer(model, X, std, coverage):
    """What is said of rows, by the ending of its column's name.

    Returns
    -------
    dict of str to ndarray of shape (n_rows, n_outputs)
    """
    parts = [""]
    if std:
        parts += ["_std"]
    if coverage is not None:
        parts += ["_low", "_high"]
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
