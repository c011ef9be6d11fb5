"""Tables: columns become numbers, or are refused.

A `Recipe` is what has to be remembered to read another table in the same way: which
columns, what their kinds are, which words a column may hold, what stands in for what is
missing. It is plain data, so that it can be kept beside a model.
"""

import difflib
from typing import NamedTuple

import numpy as np

from ._files import OUTPUT, place, read_frame
from ._mistakes import Cannot, Mistake

# More different words than this are names or free text, not categories.
MOST_WORDS = 50
SECONDS_PER_DAY = 86400.0
# Most columns to name in a message.
MOST_NAMED = 12
TRUTH = {
    "True": 1.0,
    "TRUE": 1.0,
    "true": 1.0,
    "False": 0.0,
    "FALSE": 0.0,
    "false": 0.0,
}


class Recipe(NamedTuple):
    """How columns become numbers."""

    kinds: dict[str, str]
    """Kind of each feature, in order: "number", "date" or "words"."""

    words: dict[str, list[str]]
    """The words that a column of words may hold; one column of 0 and 1 for each."""

    fill: dict[str, float]
    """What stands in for missing numbers and dates; empty if they are refused."""

    def made_of(self, name):
        """Names of the columns of numbers that a column of the table becomes."""
        if self.kinds[name] != "words":
            return [name]
        return [f"{name}={word}" for word in self.words[name]]

    def made(self):
        """Names of all columns of numbers, in order."""
        return [made for name in self.kinds for made in self.made_of(name)]

    def source_of(self, made):
        """The column of the table that a column of numbers was made of."""
        sources = (name for name in self.words if made in self.made_of(name))
        return next(sources, made)


def choose_columns(frame, targets, drop=()):
    """Names of targets and features.

    Parameters
    ----------
    frame : pandas.DataFrame
    targets : sequence of str
        Each a column, or several with commas. Where there are none: y0, y1, ... as a
        .npz file has them.
    drop : sequence of str
        Columns not to use.

    Returns
    -------
    targets, features : list of str
    """
    columns = list(frame.columns)
    targets, drop = split_names(targets, columns), split_names(drop, columns)
    if not targets:
        targets = [n for n in columns if n[:1] == OUTPUT and n[1:].isdigit()]
    if not targets:
        raise Mistake("say what to predict: --target COLUMN.")
    features = [name for name in columns if name not in {*targets, *drop}]
    if not features:
        raise Mistake("no columns are left to predict from.")
    return targets, features


def split_names(given, columns):
    """Names of columns, each checked; commas separate them unless they are in a name.

    Examples
    --------
    >>> split_names(["a,b", "c, d"], ["a", "b", "c, d"])
    ['a', 'b', 'c, d']
    """
    names = []
    for word in given:
        parts = [word] if word in columns else [n.strip() for n in word.split(",")]
        names += [name for name in parts if name not in names]
    for name in names:
        if name not in columns:
            raise Mistake(f"there is no column {name!r}. {near_and_all(name, columns)}")
    return names


def possible_names(given):
    """All that `split_names` may make of words, before the columns are known."""
    return [*given, *(part.strip() for word in given for part in word.split(","))]


def near_and_all(name, columns):
    """What may have been meant, and what there is."""
    near = difflib.get_close_matches(name, columns, 1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    more = ", ..." if len(columns) > MOST_NAMED else ""
    return f"{hint}There are {', '.join(columns[:MOST_NAMED])}{more}."


def learn_recipe(frame, features, one_hot=(), missing="refuse") -> Recipe:
    """Find out how columns become numbers.

    Parameters
    ----------
    frame : pandas.DataFrame
    features : sequence of str
    one_hot : sequence of str
        Columns of words (or of numbers that are names) to use, one column of 0 and 1
        for each word.
    missing : {"refuse", "drop", "median"}
        "median" remembers the medians.

    Returns
    -------
    Recipe
    """
    kinds, words, fill = {}, {}, {}
    for name in features:
        column = frame[name]
        if column.isna().all():
            raise Cannot(f"column {name!r} is empty. Leave it out with --drop {name}.")
        kinds[name] = kind = "words" if name in one_hot else kind_of(column)
        if kind == "words":
            found = sorted(set(as_words(column.dropna())))
            example = ", ".join(repr(word) for word in found[:3])
            if name not in one_hot:
                refuse_bad_cells(column)
                raise Cannot(
                    f"column {name!r} holds words ({len(found)} different: {example}"
                    f"{', ...' if len(found) > 3 else ''}). Use --one-hot {name}, or "
                    f"leave it out with --drop {name}."
                )
            if len(found) > MOST_WORDS:
                raise Cannot(
                    f"column {name!r} holds {len(found)} different words, --one-hot "
                    f"takes at most {MOST_WORDS}. Leave it out with --drop {name}."
                )
            words[name] = found
        elif missing == "median":
            fill[name] = float(np.nanmedian(as_numbers(column, kind)))
    recipe = Recipe(kinds, words, fill)
    check_made(recipe)
    return recipe


def check_made(recipe: Recipe):
    """Refuse words that would make a column which is there already."""
    made = recipe.made()
    for i, name in enumerate(made):
        if name in made[:i]:
            raise Cannot(
                f"--one-hot would make a column {name!r}, and there is another one of "
                "this name. Rename it in the table, or leave one out with --drop."
            )


def refuse_bad_cells(column):
    """Name the first cell that is no number, or no date, where most cells are."""
    present = int(column.notna().sum())
    for kind in ("number", "date"):
        bad = parsed(column, kind)[1]
        if 2 * bad.sum() < present:
            others = f" (nor are {bad.sum() - 1} others)" if bad.sum() > 1 else ""
            raise Cannot(
                f"{bad_cell(column, bad, kind)}{others}, and {present - bad.sum()} "
                f"cells are. Correct it, or empty it and give --missing; or use the "
                f"column as words, --one-hot {column.name}, or not, --drop "
                f"{column.name}."
            )


def bad_cell(column, bad, kind):
    """Which cell is the first that is not what it should be."""
    i = int(np.flatnonzero(bad)[0])
    return (
        f"column {column.name!r} holds {str(column.iloc[i])!r} in "
        f"{place(column.index, column.index[i])}, which is not a {kind}"
    )


def kind_of(column):
    """ "number", "date" or "words"."""
    for kind in ("number", "date"):
        if not parsed(column, kind)[1].any():
            return kind
    return "words"


def parsed(column, kind):
    """Values of a column, NaN where there is none, and which cells are not of a kind.

    Truth values are the numbers 1 and 0, if a column holds nothing else.

    Parameters
    ----------
    column : pandas.Series
    kind : {"number", "date"}

    Returns
    -------
    values : ndarray of float64 of shape (n_rows,)
        Dates are in days since 1970.
    bad : ndarray of bool of shape (n_rows,)
    """
    import pandas as pd

    none = np.zeros(len(column), bool)
    is_date = pd.api.types.is_datetime64_any_dtype(column)
    if kind == "number" and pd.api.types.is_numeric_dtype(column):  # booleans too
        return column.to_numpy(dtype=np.float64, na_value=np.nan), none
    values = np.full(len(column), np.nan)
    there = column.notna().to_numpy()
    cells = column[there] if is_date else column[there].astype(str).str.strip()
    if kind == "date":
        dates = pd.to_datetime(cells, utc=True, format="ISO8601", errors="coerce")
        # In seconds: in nanoseconds there are only 292 years before and after it.
        epoch = pd.Timestamp(0, tz="UTC").as_unit("s")
        days = (dates - epoch).dt.total_seconds() / SECONDS_PER_DAY
        values[there] = days.to_numpy(np.float64)
    elif is_date:
        return values, there
    elif cells.isin(TRUTH).all():
        values[there] = cells.map(TRUTH).to_numpy(np.float64)
    else:
        is_number = pd.to_numeric(cells, errors="coerce").notna().to_numpy()
        # Python reads all digits of a number, pandas not always.
        read = [float(cell) for cell in cells[is_number]]
        values[np.flatnonzero(there)[is_number]] = read
    return values, there & np.isnan(values)


def as_words(column):
    """Values of a column as words: 3 and 3.0 are the same one."""
    if column.dtype.kind == "f":
        return column.map("{:.15g}".format)
    return column.astype(str)


def as_numbers(column, kind):
    """Values of a column, all of them of a kind; dates in days since 1970."""
    values, bad = parsed(column, kind)
    if bad.any():
        raise Cannot(f"{bad_cell(column, bad, kind)}.")
    return values


def cook(frame, recipe: Recipe):
    """Columns as numbers, as the recipe says; NaN where they are missing.

    Parameters
    ----------
    frame : pandas.DataFrame
    recipe : Recipe

    Returns
    -------
    pandas.DataFrame of float64
    """
    import pandas as pd

    lacking = [name for name in recipe.kinds if name not in frame]
    if lacking:
        raise Cannot(
            f"the table lacks {listed_names(lacking)}. "
            f"{near_and_all(lacking[0], list(frame.columns))}"
        )
    made = {}
    for name, kind in recipe.kinds.items():
        column = frame[name]
        if kind == "words":
            given = as_words(column).where(column.notna())
            unknown = given.dropna()[~given.dropna().isin(recipe.words[name])]
            if len(unknown):
                raise Cannot(
                    f"column {name!r} holds {unknown.iloc[0]!r} in "
                    f"{place(unknown.index, unknown.index[0])}, which it did not in "
                    "training."
                )
            for word, column_made in zip(recipe.words[name], recipe.made_of(name)):
                is_word = (given == word).astype(np.float64)
                made[column_made] = is_word.where(column.notna())
            continue
        values = as_numbers(column, kind)
        if name in recipe.fill:
            values = np.where(np.isnan(values), recipe.fill[name], values)
        made[name] = values
    return pd.DataFrame(made, index=frame.index)


def listed_names(names):
    """Some names of columns in quotes.

    Examples
    --------
    >>> listed_names(["a", "b"])
    "'a', 'b'"
    """
    more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
    return ", ".join(map(repr, names[:MOST_NAMED])) + more


def numeric_targets(frame, targets):
    """Targets as numbers; words are refused."""
    import pandas as pd

    made = {}
    for name in targets:
        if parsed(frame[name], "number")[1].all():
            raise Cannot(f"target {name!r} holds no numbers: only numbers are learned.")
        made[name] = as_numbers(frame[name], "number")
    return pd.DataFrame(made, index=frame.index)


def complete(X, Y, recipe: Recipe, missing="refuse"):
    """Rows without gaps; gaps are refused unless rows may be dropped.

    Parameters
    ----------
    X, Y : pandas.DataFrame of float64
    recipe : Recipe
        How X was made.
    missing : {"refuse", "drop", "median"}
        With "median", rows that lack a target or a word are dropped: neither has a
        median.

    Returns
    -------
    X, Y : pandas.DataFrame
    """
    for name in (*X, *Y):
        column = X[name] if name in X else Y[name]
        if np.isinf(column).any():
            where = place(column.index, column.index[np.isinf(column)][0])
            raise Cannot(f"column {name!r} holds infinite values, first in {where}.")
    gaps = {
        recipe.source_of(name): int(count)
        for part in (X, Y)
        for name, count in part.isna().sum().items()
        if count
    }
    if not gaps:
        return X, Y
    whole = X.notna().all(axis=1) & Y.notna().all(axis=1)
    if missing == "refuse":
        counts = ", ".join(f"{name} {count}" for name, count in list(gaps.items())[:8])
        more = f" and {len(gaps) - 8} more columns" if len(gaps) > 8 else ""
        raise Cannot(
            f"values are missing ({counts}{more}), first in "
            f"{place(whole.index, whole.index[~whole][0])}. Leave such rows out with "
            "--missing drop, or fill in medians with --missing median."
        )
    if not whole.any():
        raise Cannot("every row lacks a value, so that none is left.")
    return X[whole], Y[whole]


def read_table(source, targets, drop=(), one_hot=(), missing="refuse", fills=True):
    """Inputs and outputs from a file, and how the inputs were made.

    Parameters
    ----------
    source : str
        As in `read_frame`.
    targets, drop, one_hot : sequence of str
        Columns to predict, not to use, and of words to use.
    missing : {"refuse", "drop", "median"}
    fills : bool
        False leaves NaN where "median" would fill in those of all rows, for whoever
        fills in those of some.

    Returns
    -------
    X, Y : pandas.DataFrame of float64
        Rows that are left out are counted in ``X.attrs["dropped"]``.
    recipe : Recipe
    """
    frame = read_frame(source, possible_names(one_hot))
    targets, features = choose_columns(frame, targets, drop)
    one_hot = split_names(one_hot, features)
    recipe = learn_recipe(frame, features, one_hot, missing)
    Y = numeric_targets(frame, targets)
    X, Y = complete(cook(frame, recipe), Y, recipe, missing)
    if not fills:
        recipe = recipe._replace(fill={})
        X = cook(frame.loc[X.index], recipe)
    X = X.reset_index(drop=True)
    X.attrs["dropped"] = len(frame) - len(X)
    return X, Y.reset_index(drop=True), recipe
