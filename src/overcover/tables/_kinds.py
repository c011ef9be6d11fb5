"""Kinds of the columns of a DataFrame, and what cannot be of any."""

import numpy as np

from ._cells import bad_cell, kind_of, parse, strange_cell
from ._frames import cells_of, place


def needs_encoding(X):
    """Whether X is a pandas DataFrame of more than numbers without gaps."""
    if hasattr(X, "dask") or not hasattr(X, "iloc") or X.ndim != 2 or not len(X):
        return False
    kinds = [getattr(dtype, "kind", "O") for dtype in X.dtypes]
    if "c" in kinds:  # complex numbers, which are refused elsewhere
        return False
    return any(
        bool(X.iloc[:, j].isna().any()) or (kind not in "fiub" and not _is_plain(X, j))
        for j, kind in enumerate(kinds)
    )


def _is_plain(X, j):
    """Whether a column of objects holds numbers that numpy converts."""
    column = X.iloc[:, j]
    if str(column.dtype) == "category":
        return False
    try:
        return np.asarray(column).dtype.kind != "M" and bool(len(column.astype(float)))
    except (TypeError, ValueError, OverflowError):
        return False


def kind_and_trouble(column, is_words=False):
    """The kind of a column, and why it cannot be used: one of them is None.

    A column is refused if it is empty, or if most of its cells are numbers (or dates)
    but some are not, unless it is to be taken as words.
    """
    name, index, present = str(column.name), column.index, int(column.notna().sum())
    if not present:
        return None, f"column {name!r} is empty"
    if is_words or str(column.dtype) == "category":
        return "words", None
    cells = cells_of(column)
    kind = kind_of(cells)
    for kind_of_most in ("number", "date") if kind == "words" else ():
        bad = parse(cells, kind_of_most)[1]
        n_bad = int(bad.sum())
        if 2 * n_bad < present:
            others = f" (nor are {n_bad - 1} others)" if n_bad > 1 else ""
            where = bad_cell(
                cells, bad, kind_of_most, name, lambda i: place(index, index[i])
            )
            return None, f"{where}{others}, and {present - n_bad} cells are"
    strange = strange_cell(cells) if kind == "words" else None
    if strange is not None:
        i, what = strange
        where = place(index, index[i])
        return None, f"column {name!r} holds {str(cells[i])!r} in {where}, {what}"
    return kind, None
