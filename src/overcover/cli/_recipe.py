"""Columns of a table become inputs and outputs, or are refused.

A `Recipe` holds what is needed to read another table in the same way: which columns,
of which kinds, which words a column may hold, what stands in for missing values. It is
plain data, so that it can be kept beside a model.
"""

from typing import NamedTuple

import numpy as np

from .._markup import some
from ..tables import (
    OUTPUT,
    as_numbers,
    bad_cell,
    cells_of,
    kind_of,
    near_names,
    parsed,
    place,
    read_frame,
)
from ._errors import Cannot, Mistake, check_input

# More different words than this are names or free text, not categories.
MOST_WORDS = 50


class Recipe(NamedTuple):
    """How columns become numbers."""

    kinds: dict[str, str]
    """Kind of each feature, in order: "number", "date" or "words"."""

    words: dict[str, list[str]]
    """The words that a column of words may hold; one column of 0 and 1 for each."""

    fill: dict[str, float]
    """What stands in for missing numbers and dates; empty if they are refused."""

    def inputs_of(self, name):
        """Names of the inputs that a column of the table becomes."""
        if self.kinds[name] != "words":
            return [name]
        return [f"{name}={word}" for word in self.words[name]]

    def inputs(self):
        """Names of all inputs, in order."""
        return [feature for name in self.kinds for feature in self.inputs_of(name)]

    def source_of(self, feature):
        """The column of the table that an input comes from."""
        sources = (name for name in self.words if feature in self.inputs_of(name))
        return next(sources, feature)


def choose_columns(frame, targets, drop=None):
    """Names of targets and features; the default targets are y0, y1, ... of a .npz."""
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


def split_names(words, columns):
    """Names of columns, each checked; commas separate them unless they are in a name.

    >>> split_names(["a,b", "c, d"], ["a", "b", "c, d"])
    ['a', 'b', 'c, d']
    """
    names = []
    for word in words or ():
        parts = [word] if word in columns else [n.strip() for n in word.split(",")]
        names += [name for name in parts if name not in names]
    for name in names:
        if name not in columns:
            raise Mistake(f"there is no column {name!r}.{near_names(name, columns)}")
    return names


def possible_names(words):
    """All that `split_names` may make of words, before the columns are known."""
    words = words or []
    return [*words, *(part.strip() for word in words for part in word.split(","))]


# -- learning a recipe -----------------------------------------------------------------


def learn_recipe(frame, features, one_hot=(), missing="refuse") -> Recipe:
    """Find out how columns of a frame become numbers, those in `one_hot` as words."""
    kinds, words, fill = {}, {}, {}
    for name in features:
        column = frame[name]
        if column.isna().all():
            raise Cannot(f"column {name!r} is empty. Leave it out with --drop {name}.")
        kinds[name] = kind = "words" if name in one_hot else kind_of(cells_of(column))
        if kind == "words":
            words[name] = _words_of(column, name in one_hot)
        elif missing == "median":
            fill[name] = float(np.nanmedian(as_numbers(column, kind)))
    recipe = Recipe(kinds, words, fill)
    inputs = recipe.inputs()
    for i, name in enumerate(inputs):
        if name in inputs[:i]:
            raise Cannot(
                f"--one-hot would make a column {name!r}, and there is another one of "
                "this name. Rename it in the table, or leave one out with --drop."
            )
    return recipe


def _words_of(column, is_wanted):
    """The different words of a column, if it may be used as words."""
    name, words = column.name, sorted(set(as_words(column.dropna())))
    if not is_wanted:
        _refuse_bad_cells(column)
        examples = ", ".join(map(repr, words[:3])) + (", ..." if words[3:] else "")
        raise Cannot(
            f"column {name!r} holds words ({len(words)} different: {examples}). Use "
            f"--one-hot {name}, or leave it out with --drop {name}."
        )
    if len(words) > MOST_WORDS:
        raise Cannot(
            f"column {name!r} holds {len(words)} different words, --one-hot takes at "
            f"most {MOST_WORDS}. Leave it out with --drop {name}."
        )
    return words


def _refuse_bad_cells(column):
    """Name the first cell that is no number, or no date, where most cells are."""
    name, index, present = column.name, column.index, int(column.notna().sum())
    for kind in ("number", "date"):
        n_bad = int((bad := parsed(column, kind)[1]).sum())
        if 2 * n_bad >= present:
            continue
        others = f" (nor are {n_bad - 1} others)" if n_bad > 1 else ""
        cell = bad_cell(
            column.to_numpy(), bad, kind, name, lambda i: place(index, index[i])
        )
        raise Cannot(
            f"{cell}{others}, and {present - n_bad} cells are. Correct it, or empty it "
            f"and give --missing; or use the column as words, --one-hot {name}, or "
            f"not, --drop {name}."
        )


def as_words(column):
    """Values of a column as words: 3 and 3.0 are the same one."""
    if column.dtype.kind == "f":
        return column.map("{:.15g}".format)
    return column.astype(str)


# -- following a recipe ----------------------------------------------------------------


def cook(frame, recipe: Recipe):
    """A frame of float64 that follows a recipe; NaN where values are missing."""
    import pandas as pd

    lacking = [name for name in recipe.kinds if name not in frame]
    if lacking:
        near = near_names(lacking[0], frame.columns)
        raise Cannot(f"the table lacks {some([*map(repr, lacking)])}.{near}")
    inputs: dict[str, object] = {}
    for name, kind in recipe.kinds.items():
        if kind == "words":
            inputs |= _one_hot(frame[name], recipe)
            continue
        values = as_numbers(frame[name], kind)
        if name in recipe.fill:
            values = np.where(np.isnan(values), recipe.fill[name], values)
        inputs[name] = values
    return refuse_infinite(pd.DataFrame(inputs, index=frame.index))


def refuse_infinite(frame):
    """The frame, if all its values are finite or missing."""
    is_infinite = np.isinf(frame.to_numpy())
    if is_infinite.any():
        i, j = np.argwhere(is_infinite)[0]
        where = place(frame.index, frame.index[i])
        raise Cannot(f"column {frame.columns[j]!r} holds an infinite value in {where}.")
    return frame


def _one_hot(column, recipe):
    """Columns of 0 and 1 for the words of a column; NaN where there is none."""
    name, present = column.name, column.notna()
    words = as_words(column).where(present)
    unknown = words[present & ~words.isin(recipe.words[name])]
    if len(unknown):
        raise Cannot(
            f"column {name!r} holds {unknown.iloc[0]!r} in "
            f"{place(unknown.index, unknown.index[0])}, a word that the training table "
            "did not hold."
        )
    return {
        feature: (words == word).astype(np.float64).where(present)
        for word, feature in zip(recipe.words[name], recipe.inputs_of(name))
    }


def numeric_targets(frame, targets):
    """Targets as numbers; words are refused."""
    import pandas as pd

    outputs = {}
    for name in targets:
        if parsed(frame[name], "number")[1].all():
            raise Cannot(f"target {name!r} holds no numbers: only numbers are learned.")
        outputs[name] = as_numbers(frame[name], "number")
    return refuse_infinite(pd.DataFrame(outputs, index=frame.index))


def complete(X, Y, recipe: Recipe, missing):
    """Rows without gaps; a target or a word has no median, so its row is dropped."""
    whole = X.notna().all(axis=1) & Y.notna().all(axis=1)
    if not whole.all() and missing == "refuse":
        gaps = {**X.isna().sum(), **Y.isna().sum()}
        counts = {recipe.source_of(name): n for name, n in gaps.items() if n}
        raise Cannot(
            f"values are missing ({some([f'{k} {n}' for k, n in counts.items()])}), "
            f"first in {place(whole.index, whole.index[~whole][0])}. Leave such rows "
            "out with --missing drop, or fill in medians with --missing median."
        )
    if not whole.any():
        raise Cannot("every row lacks a value, so that none is left.")
    return X[whole], Y[whole]


def read_table(source, targets, drop=None, one_hot=None, missing="refuse", fills=True):
    """Inputs and outputs from a file as frames, and the recipe of the inputs.

    ``X.attrs["dropped"]`` is the number of rows left out. ``fills=False`` leaves NaN
    for a caller that fills in medians of training rows.
    """
    check_input(source)
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
