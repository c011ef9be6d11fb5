"""Tables from files: CSV, TSV, Parquet, NumPy; columns become numbers, or are refused.

A `Recipe` is what has to be remembered to read another table in the same way: which
columns, what their kinds are, which words a column may hold, what stands in for what is
missing. It is plain data, so that it can be kept beside a model.
"""

import difflib
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np

# More different words than this are names or free text, not categories.
MOST_WORDS = 50
SECONDS_PER_DAY = 86400.0
SUFFIXES = (".csv", ".tsv", ".parquet", ".npy", ".npz")


class Mistake(Exception):
    """Something the user gave cannot be used; the text says what to do."""


class Recipe(NamedTuple):
    """How columns become numbers."""

    kinds: dict[str, str]
    """Kind of each feature, in order: "number", "date" or "words"."""

    words: dict[str, list[str]]
    """The words that a column of words may hold; one column of 0 and 1 for each."""

    fill: dict[str, float]
    """What stands in for missing numbers and dates; empty if they are refused."""


def read_frame(source):
    """A table from a file, or from standard input.

    Parameters
    ----------
    source : str
        A path that ends in .csv, .tsv (also compressed, .csv.gz), .parquet, .npy or
        .npz, or "-" for CSV or TSV from standard input. Columns of a .npy file are
        c0, c1, ...; a .npz file holds X and y, with columns x0, ... and y0, ...

    Returns
    -------
    pandas.DataFrame
    """
    import pandas as pd

    if source == "-":
        return read_text(sys.stdin, None, "standard input")
    path = Path(source)
    if not path.is_file():
        raise Mistake(f"there is no file {source}.")
    suffix = next((s for s in path.suffixes[::-1] if s in SUFFIXES), None)
    if suffix is None:
        raise Mistake(
            f"{source} has no ending that is known. Known are {', '.join(SUFFIXES)}."
        )
    try:
        if suffix in (".csv", ".tsv"):
            return read_text(path, "\t" if suffix == ".tsv" else ",", source)
        if suffix == ".parquet":
            return named(pd.read_parquet(path), source)
        return named(arrays_as_frame(np.load(path, allow_pickle=False)), source)
    except (OSError, ValueError, KeyError) as error:
        raise Mistake(f"{source} cannot be read: {first_line(error)}") from error


def read_text(file, separator, source):
    """Lines of separated values; the separator is guessed from a stream's header."""
    import io

    import pandas as pd

    if separator is None:
        text = file.read()
        header = text.partition("\n")[0]
        separator = "\t" if header.count("\t") > header.count(",") else ","
        file = io.StringIO(text)
    try:
        frame = pd.read_csv(file, sep=separator, skipinitialspace=True)
    except (ValueError, UnicodeDecodeError) as error:
        raise Mistake(f"{source} cannot be read: {first_line(error)}") from error
    return named(frame, source)


def named(frame, source):
    """Column names as words, each once; at least one row."""
    frame.columns = [str(name) for name in frame.columns]
    if not len(frame):
        raise Mistake(f"{source} holds no rows.")
    if not frame.columns.is_unique:
        twice = frame.columns[frame.columns.duplicated()][0]
        raise Mistake(f"{source} has two columns called {twice!r}. Rename one.")
    return frame


def arrays_as_frame(loaded):
    """Columns of a NumPy file."""
    import pandas as pd

    if isinstance(loaded, np.ndarray):
        return pd.DataFrame(as_columns(loaded, "c"))
    targets = next((name for name in ("y", "Y") if name in loaded), None)
    if "X" not in loaded or targets is None:
        raise ValueError(
            f"it holds {', '.join(loaded.files)}, but X and y are expected."
        )
    X, Y = as_columns(loaded["X"], "x"), as_columns(loaded[targets], "y")
    return pd.DataFrame({**X, **Y})


def as_columns(values, letter):
    """Columns of an array by name."""
    if values.ndim not in (1, 2):
        raise ValueError(f"an array has {values.ndim} axes, 1 or 2 are expected.")
    values = values.reshape(len(values), -1)
    return {f"{letter}{j}": values[:, j] for j in range(values.shape[1])}


def first_line(error):
    """The beginning of an error's text."""
    return str(error).strip().partition("\n")[0] or type(error).__name__


def choose_columns(frame, targets, drop=()):
    """Names of targets and features.

    Parameters
    ----------
    frame : pandas.DataFrame
    targets : sequence of str
        Where there are none: y0, y1, ... as a .npz file has them.
    drop : sequence of str
        Columns not to use.

    Returns
    -------
    targets, features : list of str
    """
    columns = list(frame.columns)
    for name in (*targets, *drop):
        if name not in columns:
            near = difflib.get_close_matches(name, columns, 1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            shown = ", ".join(columns[:12]) + (", ..." if len(columns) > 12 else "")
            raise Mistake(f"there is no column {name!r}.{hint} There are {shown}.")
    if not targets:
        targets = [name for name in columns if name[0] == "y" and name[1:].isdigit()]
    if not targets:
        raise Mistake("say what to predict: --target COLUMN.")
    features = [name for name in columns if name not in {*targets, *drop}]
    if not features:
        raise Mistake("no columns are left to predict from.")
    return list(targets), features


def learn_recipe(frame, features, one_hot=(), missing="refuse") -> Recipe:
    """Find out how columns become numbers.

    Parameters
    ----------
    frame : pandas.DataFrame
    features : sequence of str
    one_hot : sequence of str
        Columns of words to use, one column of 0 and 1 for each word.
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
            raise Mistake(f"column {name!r} is empty. Leave it out with --drop {name}.")
        kinds[name] = kind = kind_of(column)
        if kind == "words":
            found = sorted({str(value) for value in column.dropna()})
            example = ", ".join(repr(word) for word in found[:3])
            if name not in one_hot:
                raise Mistake(
                    f"column {name!r} holds words ({len(found)} different: {example}"
                    f"{', ...' if len(found) > 3 else ''}). Use --one-hot {name}, or "
                    f"leave it out with --drop {name}."
                )
            if len(found) > MOST_WORDS:
                raise Mistake(
                    f"column {name!r} holds {len(found)} different words, --one-hot "
                    f"takes at most {MOST_WORDS}. Leave it out with --drop {name}."
                )
            words[name] = found
        elif missing == "median":
            fill[name] = float(np.nanmedian(as_numbers(column, kind)))
    return Recipe(kinds, words, fill)


def kind_of(column):
    """ "number", "date" or "words"."""
    import pandas as pd

    if pd.api.types.is_datetime64_any_dtype(column):
        return "date"
    if pd.api.types.is_numeric_dtype(column):  # booleans too
        return "number"
    present = column.dropna().astype(str)
    for kind in ("number", "date"):
        try:
            as_numbers(present, kind)
            return kind
        except (ValueError, TypeError, OverflowError):
            continue
    return "words"


def as_numbers(column, kind):
    """Values of a column; dates in days since 1970."""
    import pandas as pd

    if kind == "number":
        return pd.to_numeric(column).to_numpy(dtype=np.float64, na_value=np.nan)
    dates = pd.to_datetime(column, utc=True, format="ISO8601")
    epoch = pd.Timestamp(0, tz="UTC")
    return ((dates - epoch).dt.total_seconds() / SECONDS_PER_DAY).to_numpy(np.float64)


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
        raise Mistake(f"column {lacking[0]!r} is missing from the table.")
    made = {}
    for name, kind in recipe.kinds.items():
        column = frame[name]
        if kind == "words":
            given = column.astype(str).where(column.notna())
            unknown = given.dropna()[~given.dropna().isin(recipe.words[name])]
            if len(unknown):
                raise Mistake(
                    f"column {name!r} holds {unknown.iloc[0]!r}, which it did not in "
                    "training."
                )
            for word in recipe.words[name]:
                is_word = (given == word).astype(np.float64)
                made[f"{name}={word}"] = is_word.where(column.notna())
            continue
        try:
            values = as_numbers(column, kind)
        except (ValueError, TypeError) as error:
            raise Mistake(
                f"column {name!r} should hold {kind}s: {first_line(error)}"
            ) from error
        if name in recipe.fill:
            values = np.where(np.isnan(values), recipe.fill[name], values)
        made[name] = values
    return pd.DataFrame(made, index=frame.index)


def numeric_targets(frame, targets):
    """Targets as numbers; words are refused."""
    import pandas as pd

    made = {}
    for name in targets:
        if kind_of(frame[name]) != "number":
            raise Mistake(
                f"target {name!r} holds no numbers: only numbers are learned."
            )
        made[name] = as_numbers(frame[name], "number")
    return pd.DataFrame(made, index=frame.index)


def complete(X, Y, missing="refuse"):
    """Rows without gaps; gaps are refused unless rows may be dropped.

    Parameters
    ----------
    X, Y : pandas.DataFrame of float64
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
            raise Mistake(f"column {name!r} holds infinite values.")
    gaps = {
        name: int(count)
        for part in (X, Y)
        for name, count in part.isna().sum().items()
        if count
    }
    if not gaps:
        return X, Y
    if missing == "refuse":
        counts = ", ".join(f"{name} {count}" for name, count in list(gaps.items())[:8])
        more = f" and {len(gaps) - 8} more columns" if len(gaps) > 8 else ""
        raise Mistake(
            f"values are missing ({counts}{more}). Leave such rows out with --missing "
            "drop, or fill in medians with --missing median."
        )
    whole = X.notna().all(axis=1) & Y.notna().all(axis=1)
    if not whole.any():
        raise Mistake("every row lacks a value, so that none is left.")
    return X[whole], Y[whole]


def read_table(source, targets, drop=(), one_hot=(), missing="refuse"):
    """Inputs and outputs from a file, and how the inputs were made.

    Parameters
    ----------
    source : str
        As in `read_frame`.
    targets, drop, one_hot : sequence of str
        Columns to predict, not to use, and of words to use.
    missing : {"refuse", "drop", "median"}

    Returns
    -------
    X, Y : pandas.DataFrame of float64
    recipe : Recipe
    """
    frame = read_frame(source)
    targets, features = choose_columns(frame, targets, drop)
    recipe = learn_recipe(frame, features, one_hot, missing)
    X, Y = complete(cook(frame, recipe), numeric_targets(frame, targets), missing)
    return X.reset_index(drop=True), Y.reset_index(drop=True), recipe
