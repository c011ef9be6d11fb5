"""Columns of a file become inputs and outputs of a fit; all bad ones are refused."""

import re
import warnings

from .._markup import some
from .._validation import FEW_ROWS
from ..tables import (
    OUTPUT,
    PLAIN,
    finite_values,
    kind_and_trouble,
    near_names,
    open_table,
    place,
)
from ._errors import Cannot, Mistake


def choose_columns(columns, targets, drop=None):
    """Names of targets and features; the default targets are y0, y1, ... of a .npz."""
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


def read_table(source, targets, drop=None, words=None, missing="fill", spelling=PLAIN):
    """Frames of inputs and outputs, columns of words; counts `dropped` in X.attrs."""
    with open_table(source) as table:
        targets, features = choose_columns(table.columns, targets, drop)
        words = split_names(words, features)
        chosen = [*features, *targets]
        (frame,) = table.frames(None, chosen, words, spelling=spelling)
    Y, troubles = parse_targets(frame, targets)
    pairs = {name: kind_and_trouble(frame[name], name in words) for name in features}
    reasons = {name: text for name, (_, text) in pairs.items() if text} | troubles
    if reasons:
        raise Cannot(f"{'; '.join(reasons.values())}. {remedies(reasons, troubles)}")
    warn_of_indices(frame[features])
    remedy = ", or have inputs filled in with --missing fill"
    X, Y, n_dropped = complete(frame[features], Y, missing, remedy)
    X, Y = X.reset_index(drop=True), Y.reset_index(drop=True)
    X.attrs["dropped"] = n_dropped
    return X, Y, words


def warn_of_indices(frame):
    """Warn of columns without a name that number the rows, as a saved index does."""
    names = [
        name
        for name in frame.columns
        if re.fullmatch(r"c\d+", name)
        and frame[name].dtype.kind in "iu"
        and (frame[name].diff().iloc[1:] == 1).all()
    ]
    if names and len(frame) >= FEW_ROWS:
        warnings.warn(
            f"Column {some([*map(repr, names)])} numbers the rows one by one. If it is "
            f"an index, leave it out: --drop {','.join(names)}.",
            stacklevel=2,
        )


def remedies(reasons, troubles):
    """What to do about columns that cannot be used; `troubles` are those of targets."""
    empty = [name for name, text in reasons.items() if text.endswith(" is empty")]
    inputs = [name for name in reasons if name not in {*troubles, *empty}]
    ways = options_for("; ".join(reasons.values()))
    if len(reasons) > len(empty):
        ways.insert(0, "correct or empty such cells")
    if inputs:
        name = inputs[0] if len(inputs) == 1 else "COLUMN"
        ways.append(
            f"or take a column as words, --words {name}, or leave it out, --drop {name}"
        )
    if empty:
        ways.append(f"leave out what is empty, --drop {','.join(empty)}")
    text = "; ".join(ways)
    return f"{text[0].upper()}{text[1:]}."


def options_for(text):
    ways = []
    if "comma" in text:
        ways.append("give --decimal-comma if numbers are like 1,5")
    if "the day or the month" in text:
        ways.append("give whichever is right, --dates dmy or --dates mdy")
    return ways


def parse_targets(frame, targets):
    """Targets as a frame of numbers, and reasons why some cannot be used, by name."""
    import pandas as pd

    values, troubles = {}, {}
    for name in targets:
        values[name], _, text = finite_values(frame[name], "number")
        if text is not None:
            troubles[name] = f"target {text}"
    return pd.DataFrame(values, index=frame.index), troubles


def complete(X, Y, missing, remedy=""):
    """Rows to use, and how many are left out; "fill" asks only for targets."""
    whole = Y.notna().all(axis=1)
    if missing != "fill":
        whole &= X.notna().all(axis=1)
    if not whole.all() and missing == "refuse":
        gaps = {**X.isna().sum(), **Y.isna().sum()}
        counts = [f"{name} {n}" for name, n in gaps.items() if n]
        raise Cannot(
            f"values are missing ({some(counts)}), first in "
            f"{place(whole.index, whole.index[~whole][0])}. Leave such rows out with "
            f"--missing drop{remedy}."
        )
    if not whole.any():
        raise Cannot("every row lacks a value, so that none is left.")
    return X[whole], Y[whole], int((~whole).sum())
