"""Columns of a DataFrame: their kinds, their values, and what cannot be of any kind."""

import numpy as np

from .._markup import some
from .._validation import check_names
from ._cells import (
    DECIMAL_COMMA,
    GAPS,
    READERS,
    SECONDS_PER_DAY,
    TableError,
    parse,
    strange_cell,
)
from ._files import near_names


def place(index, label):
    """The position of a row: 'line 3', or 'row 1 (counted from 0)'."""
    return f"line {label}" if index.name == "line" else f"row {label} (counted from 0)"


def with_gaps(frame, verbatim):
    """A frame of a text whose verbatim columns have gaps, as all others have."""
    if frame.index.name != "line":
        return frame
    gaps = {}
    for name in verbatim:
        words = frame[name].astype(str).str.strip().str.lower()
        gaps[name] = frame[name].where(~words.isin(GAPS))
    return frame.assign(**gaps)


def cells_of(column):
    """A column of a frame as an array for `parse`."""
    import pandas as pd

    if pd.api.types.is_numeric_dtype(column):  # booleans too
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    if pd.api.types.is_datetime64_any_dtype(column):
        is_local = getattr(column.dt, "tz", None) is not None
        return (column.dt.tz_convert(None) if is_local else column).to_numpy()
    if pd.api.types.is_timedelta64_dtype(column):
        return column.dt.total_seconds().to_numpy() / SECONDS_PER_DAY
    cells = column.astype(object).to_numpy(copy=True)
    cells[column.isna().to_numpy()] = None
    return cells


def as_numbers(column, kind=None):
    """Values of a column; of dates or else numbers, where no kind is asked for.

    An error names a cell of another kind.
    """
    cells = cells_of(column)
    values, bad = parse(cells, kind or "number")
    if kind is None and bad.any():
        days, is_no_date = parse(cells, "date")
        if not is_no_date.any():
            return days
    if bad.any():
        raise TableError(f"{_bad_cell(column, cells, values, bad, kind or 'number')}.")
    return values


def _cell(column, cells, i):
    where = place(column.index, column.index[i])
    return f"column {str(column.name)!r} holds {str(cells[i])!r} in {where}"


def _bad_cell(column, cells, values, bad, kind):
    """A description of the first cell that is not of a kind, or infinite."""
    i, hint = int(np.argmax(bad)), ""
    if np.isinf(values[i]):
        where = place(column.index, column.index[i])
        return f"column {str(column.name)!r} holds an infinite value in {where}"
    if kind == "number" and DECIMAL_COMMA.fullmatch(str(cells[i]).strip()):
        hint = " (a decimal mark is a point, not a comma)"
    if kind == "date" and (strange := strange_cell(cells[i : i + 1])):
        hint = f" ({strange[1]})"
    return f"{_cell(column, cells, i)}, which is not a {kind}{hint}"


def finite_values(column, kind):
    """Values of a column, which cells are no finite ones (NaN), what the first is."""
    cells = cells_of(column)
    values, bad = parse(cells, kind)
    bad |= np.isinf(values)
    said = _bad_cell(column, cells, values, bad, kind) if bad.any() else None
    return np.where(bad, np.nan, values), bad, said


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

    A column is refused if it is empty or holds an infinite value, or if most of its
    cells are numbers (or dates) but some are not, unless it is to be taken as words.
    """
    n_present = int(column.notna().sum())
    empty = f"column {str(column.name)!r} is empty"
    if not n_present:
        return None, empty
    if is_words or str(column.dtype) == "category":
        return "words", None
    cells, parsed = cells_of(column), {}
    for kind in READERS:
        parsed[kind] = values, bad = parse(cells, kind)
        if not bad.any():
            if np.isnan(values).all():
                return None, empty
            trouble = finite_values(column, kind)[2]
            return None if trouble else kind, trouble
    for kind, (values, bad) in parsed.items():
        if 2 * bad.sum() < n_present:
            cell = _bad_cell(column, cells, values, bad, kind)
            return None, f"{cell} (bad cells: {bad.sum()} of {n_present})"
    if strange := strange_cell(cells):
        i, what = strange
        return None, f"{_cell(column, cells, i)}, {what}"
    return "words", None


def check_frame(table):
    if not (hasattr(table, "iloc") and getattr(table, "ndim", 1) == 2):
        raise TypeError(
            f"the table is of type {type(table).__name__}. Give a pandas DataFrame."
        )


def kinds_of(table, words):
    """The kind of every column; all that cannot be used are refused at once."""
    columns = [table.iloc[:, j] for j in range(table.shape[1])]
    pairs = [kind_and_trouble(c, str(c.name) in words) for c in columns]
    bad = [(c, text) for c, (_, text) in zip(columns, pairs) if text is not None]
    if not bad:
        return [kind for kind, _ in pairs]
    names = [str(c.name) for c, _ in bad if c.notna().any()]
    remedy = f"Leave {'it' if len(bad) == 1 else 'them'} out."
    if names:
        remedy = (
            "Correct or empty such cells; or take a column as words, "
            f"TableEncoder(words={names}), or leave it out."
        )
    raise TableError(f"{'; '.join(text for _, text in bad)}. {remedy}")


def places_of(names, table):
    """Positions in a table of columns with these names."""
    check_frame(table)
    present = [str(name) for name in table.columns]
    check_names(present, "the table")
    check_present(names, present)
    return [present.index(name) for name in names]


def check_present(names, present):
    """Refuse a table whose columns, those that are present, are not all the names."""
    lacking = [name for name in names if name not in present]
    if lacking:
        raise TableError(
            f"the table lacks {some([*map(repr, lacking)])}."
            f"{near_names(lacking[0], present)}"
        )
