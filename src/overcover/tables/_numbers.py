"""Chosen columns of a table as one array of numbers, without pandas.

Text is read in one pass by numpy; only where that fails is it read again, cell by cell,
by the rule of `overcover.tables`.
"""

import warnings
from itertools import chain

import numpy as np

from .._validation import check_names
from ._arrays import read_columns
from ._cells import TableError, column_names, is_word, kind_of, numbers_of
from ._files import TEXT, form_of, open_text, reading
from ._parquet import open_parquet, read_parquet


def read_numbers(path, choose, header="auto", separator="auto"):
    """Names of all columns, and the chosen ones as numbers, NaN where one is missing.

    `choose` maps the names to positions. `header` says whether the first line of a text
    names the columns; "auto": if it holds a word.
    """
    form = form_of(path)
    if form in TEXT:
        return _read_text(path, choose, header, separator)
    if form == ".parquet":
        names = open_parquet(path).schema_arrow.names
        return names, read_parquet(path, [names[i] for i in choose(names)])
    columns = read_columns(path, form)
    names = list(columns)
    return names, np.column_stack([columns[names[i]] for i in choose(names)])


def _read_text(path, choose, header, separator):
    with reading(path, "text"), open_text(path, separator) as (text, _):
        pass
    if not text.first:
        raise TableError(f"{str(path)!r} does not begin with a line of columns.")
    first = [cell.strip() for cell in text.first]
    named = any(map(is_word, first)) if header == "auto" else bool(header)
    names = column_names(len(first))
    if named:
        names = [cell or name for cell, name in zip(first, names)]
    check_names(names, repr(str(path)))
    positions = choose(names)
    try:
        return names, _read_fast(path, text.separator, named, positions)
    except ValueError:
        return names, _read_cells(path, text.separator, named, names, positions)


def _read_fast(path, separator, named, positions):
    """The table by numpy; an error where a cell is not a number."""
    with (
        warnings.catch_warnings(),
        reading(path, "text"),
        open_text(path, separator) as (text, _),
    ):
        warnings.simplefilter("error", UserWarning)  # no rows
        return np.loadtxt(
            text if named else chain([text.header], text),
            delimiter=separator,
            usecols=positions,
            ndmin=2,
            comments=None,
            quotechar='"',
        )


def _read_cells(path, separator, named, names, positions):
    """The table cell by cell, or an error that names the cell at fault."""
    with reading(path, "text"), open_text(path, separator) as (text, _):
        first = [] if named else [(text.n_lines, text.first)]
        table = chain(first, text.cells())
        rows = [(line, [row[j] for j in positions]) for line, row in table]
    if not rows:
        raise TableError(f"{str(path)!r} holds no rows.")
    columns = []
    for k, j in enumerate(positions):
        cells = np.array([row[k] for _, row in rows], dtype=object)
        kind = "date" if kind_of(cells) == "date" else "number"
        try:
            values = numbers_of(cells, kind, names[j], lambda i: f"line {rows[i][0]}")
            columns.append(values)
        except TableError as error:
            raise TableError(
                f"{str(path)!r}: {error} Turn words into numbers, or choose other "
                "columns by features=[...]."
            ) from None
    return np.column_stack(columns)
