"""Columns of a file become inputs and outputs of a fit; all bad ones are refused."""

import numpy as np

from .._markup import some
from ..tables import (
    OUTPUT,
    TableError,
    as_numbers,
    kind_and_trouble,
    near_names,
    parsed,
    place,
    read_frame,
)
from ._errors import Cannot, Mistake, check_input


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
    """Names of columns, each checked; commas separate them, unless in a name."""
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


def read_table(source, targets, drop=None, words=None, missing="fill", decimal="."):
    """Frames of inputs and outputs, columns of words; counts `dropped` in X.attrs."""
    check_input(source)
    frame = read_frame(source, possible_names(words), decimal)
    targets, features = choose_columns(frame, targets, drop)
    words = split_names(words, features)
    Y, troubles = parse_targets(frame, targets)
    check_columns(frame, features, words, troubles)
    X, Y = complete(frame[features], Y, missing)
    X = X.reset_index(drop=True)
    X.attrs["dropped"] = len(frame) - len(X)
    return X, Y.reset_index(drop=True), words


def check_columns(frame, features, words, troubles):
    """Refuse all columns that cannot be used, `troubles` of targets too."""
    reasons = {name: trouble_in(frame[name], name in words) for name in features}
    reasons = {name: text for name, text in reasons.items() if text} | troubles
    if not reasons:
        return
    all_of_them = "; ".join(reasons.values())
    name = next(iter(reasons)) if len(reasons) == 1 else "COLUMN"
    comma = "; give --decimal-comma" if "comma" in all_of_them else ""
    raise Cannot(
        f"{all_of_them}. Correct or empty such cells{comma}; or take a column as "
        f"words, --words {name}, or leave it out, --drop {name}."
    )


def trouble_in(column, is_words):
    """Why a column cannot be an input; None if it can be."""
    kind, trouble = kind_and_trouble(column, is_words)
    if kind in (None, "words"):
        return trouble
    return infinite_in(column, as_numbers(column, kind))


def infinite_in(column, values):
    """Where a column holds an infinite value; None if it does not."""
    rows = np.flatnonzero(np.isinf(values))
    if not len(rows):
        return None
    where = place(column.index, column.index[rows[0]])
    return f"column {column.name!r} holds an infinite value in {where}"


def parse_targets(frame, targets):
    """Targets as a frame of numbers, and reasons why some cannot be used, by name."""
    import pandas as pd

    values, troubles = {}, {}
    for name in targets:
        column = frame[name]
        try:
            values[name] = as_numbers(column, "number")
            trouble = infinite_in(column, values[name])
        except TableError as error:
            trouble = str(error).rstrip(".")
            if parsed(column, "number")[1].all():
                trouble = f"target {name!r} holds no numbers: only numbers are learned"
        if trouble is not None:
            troubles[name] = trouble
    return pd.DataFrame(values, index=frame.index), troubles


def complete(X, Y, missing):
    """Rows to fit; those without a target are left out, others as `missing` says."""
    whole = Y.notna().all(axis=1)
    if missing != "fill":
        whole &= X.notna().all(axis=1)
    if not whole.all() and missing == "refuse":
        gaps = {**X.isna().sum(), **Y.isna().sum()}
        counts = [f"{name} {n}" for name, n in gaps.items() if n]
        raise Cannot(
            f"values are missing ({some(counts)}), first in "
            f"{place(whole.index, whole.index[~whole][0])}. Leave such rows out with "
            "--missing drop, or have inputs filled in with --missing fill."
        )
    if not whole.any():
        raise Cannot("every row lacks a value, so that none is left.")
    return X[whole], Y[whole]
