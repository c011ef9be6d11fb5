"""A stored model, and how rows of a table become its inputs."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import load, store
from ..alone import as_cover
from ..explain import names_of_features
from ..regressor import OverlappingCoverRegressor
from ..tables import OUTPUT, as_numbers, place, read_chunks
from ._checks import check_input
from ._mistakes import Cannot, Mistake
from ._recipe import Recipe, cook, possible_names, split_names

# The name of the command line's notes in a store.
NOTES = "table"
KINDS = ("number", "date", "words")


class Stored(NamedTuple):
    """A model that predicts for tables."""

    model: OverlappingCoverRegressor
    recipe: Recipe
    targets: list[str]
    has_names: bool
    """Whether the model knows the names of its inputs."""


def facts_of(path):
    """`overcover.store.inspect`, with messages for people who know no Python.

    The size of subdomains is that of the fit: no larger than the number of rows.
    """
    if not Path(path).exists():
        raise Mistake(f"there is no model {path}.")
    is_finished = (Path(path) / "manifest.json").exists()
    if not is_finished and any(Path(path).glob("data-*")):
        raise Cannot(
            f"the fit of {path} is not finished. Give the same overcover fit command "
            "again to go on with it."
        )
    facts = store.inspect(path)
    return facts | {"subdomain_size": min(facts["subdomain_size"], facts["n_rows"])}


def notes_of(recipe, targets):
    """The notes to keep beside a model: see docs/store-format.md."""
    return {NOTES: {"targets": list(targets), **recipe._asdict()}}


def open_model(path, jobs=None) -> Stored:
    """Load a model, with the notes of ``overcover fit`` or without any.

    A model that Python saved takes columns by the names it was fitted with, or in their
    order, if it was fitted without names. `jobs` threads predict.
    """
    notes = facts_of(path)["notes"].get(NOTES)
    model = as_cover(load(path))
    model.n_jobs = jobs
    if notes is not None:
        try:
            recipe, targets = read_notes(notes, model)
            return Stored(model, recipe, targets, True)
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise Cannot(
                f"the notes in {path} on columns cannot be used: {error}. Fit it again."
            ) from error
    recipe = Recipe(dict.fromkeys(names_of_features(model), "number"), {}, {})
    targets = [f"{OUTPUT}{j}" for j in range(model.n_outputs_)]
    if len(targets) == 1:
        targets = [OUTPUT]
    return Stored(model, recipe, targets, hasattr(model, "feature_names_in_"))


def read_notes(notes, model):
    """Recipe and targets, if they fit the model."""
    recipe = Recipe(*(dict(notes[field]) for field in Recipe._fields))
    targets = [str(name) for name in notes["targets"]]
    if any(kind not in KINDS for kind in recipe.kinds.values()):
        raise ValueError("there are columns of unknown kinds")
    if recipe.inputs() != names_of_features(model) or len(targets) != model.n_outputs_:
        raise ValueError("they do not fit the model's inputs and outputs")
    fill = {name: float(value) for name, value in recipe.fill.items()}
    return recipe._replace(fill=fill), targets


def rows_of(stored, source, n_rows, others=(), verbatim=False):
    """A table in chunks of `n_rows` rows, its columns with the names of the inputs.

    Columns may come in any order, and there may be more. Where the file or the model
    has no names, and there are as many columns as inputs, they are taken in order.
    `others` are further columns, as the user writes them; `verbatim` leaves these as
    they are in a text.
    """
    check_input(source)
    recipe = stored.recipe
    wanted = None if not stored.has_names else {*recipe.kinds, *possible_names(others)}
    kept = possible_names(others) if verbatim else []
    chunks = read_chunks(source, n_rows, list(recipe.words), wanted, kept)
    names = list(recipe.kinds)
    unnamed = not (chunks.has_names and stored.has_names)
    if unnamed and len(chunks.columns) == len(names):
        frames = (frame.set_axis(names, axis=1) for frame in chunks.frames)
        return chunks._replace(frames=frames, columns=names)
    return chunks


def inputs_of(stored, frame):
    """Inputs of the model, and which rows lack none of them."""
    X = cook(frame, stored.recipe)
    values = X.to_numpy()
    if np.isinf(values).any():
        i, j = np.argwhere(np.isinf(values))[0]
        where = place(X.index, X.index[i])
        raise Cannot(f"column {X.columns[j]!r} is infinite in {where}.")
    whole = ~np.isnan(values).any(axis=1)
    return (X if stored.has_names else values), whole


def first_gap(index, names, values, recipe: Recipe):
    """The first row that lacks a value, and the column of the table."""
    i, j = np.argwhere(np.isnan(np.asarray(values)))[0]
    return place(index, index[i]), recipe.source_of(names[j])


def read_observed(stored, source, names=(), missing="refuse"):
    """Inputs and observed outputs of a whole table, and how many rows are left out.

    `names` are those of the outputs in this table, in the model's order; none if as in
    training. Rows that lack a value are refused or dropped.
    """
    import pandas as pd

    chunks = rows_of(stored, source, 2**15, [*stored.targets, *names])
    targets = targets_in(stored, chunks.columns, names)
    parts: list[tuple] = []
    n_dropped = 0
    for frame in chunks.frames:
        X, whole = inputs_of(stored, frame)
        values = {name: as_numbers(frame[name], "number") for name in targets}
        Y = pd.DataFrame(values, index=frame.index)
        both = whole & np.isfinite(Y.to_numpy()).all(axis=1)
        if missing == "refuse" and not both.all():
            gaps = (targets, Y) if whole.all() else (stored.recipe.inputs(), X)
            row, column = first_gap(frame.index, *gaps, stored.recipe)
            raise Cannot(
                f"{row} lacks a value of {column!r}. Leave such rows out with "
                "--missing drop."
            )
        n_dropped += int((~both).sum())
        parts.append((X[both], Y[both]))
    Xs, Ys = zip(*parts)
    join = pd.concat if stored.has_names else np.concatenate
    Y = pd.concat(Ys).set_axis(stored.targets, axis=1)
    if not len(Y):
        raise Cannot("every row lacks a value, so that none is left.")
    return join(Xs), Y, n_dropped


def targets_in(stored, columns, names):
    """Names of the observed outputs in a table."""
    if names:
        names = split_names(names, columns)
        if len(names) != len(stored.targets):
            raise Mistake(
                f"the model has {len(stored.targets)} outputs "
                f"({', '.join(stored.targets[:12])}), --target names {len(names)}."
            )
        return names
    for name in stored.targets:
        if name not in columns:
            raise Cannot(
                f"the table has no column {name!r} to compare answers with. If it "
                "has another name there, give that name with --target."
            )
    return stored.targets
