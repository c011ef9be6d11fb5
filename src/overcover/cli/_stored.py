"""A stored model, and how rows of a table become its inputs and predictions."""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import load, store
from ..alone import as_cover
from ..explain import names_of_features
from ..regressor import OverlappingCoverRegressor
from ..tables import OUTPUT, Chunks, place, read_chunks, with_gaps
from ._errors import Cannot, Mistake, check_input
from ._recipe import Recipe, cook, numeric_targets, possible_names, split_names

# The name of the command line's notes in a store.
NOTES = "table"
KINDS = ("number", "date", "words")
# Rows of a table that are read and predicted together.
ROWS_AT_A_TIME = 2**15


class Stored(NamedTuple):
    """A model that predicts for tables."""

    model: OverlappingCoverRegressor
    recipe: Recipe
    targets: list[str]
    has_names: bool
    """Whether the model knows the names of its inputs."""

    def queries(self, X):
        """Inputs as the model takes them, from a frame."""
        return X if self.has_names else X.to_numpy()


def facts_of(path):
    """`overcover.store.inspect`, with messages for people who know no Python."""
    if not Path(path).exists():
        raise Mistake(f"there is no model {path}.")
    is_finished = (Path(path) / store.MANIFEST).exists()
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
    """Load a model, with the notes of ``overcover fit`` or without any."""
    notes = facts_of(path)["notes"].get(NOTES)
    model = as_cover(load(path))
    model.n_jobs = jobs
    if notes is None:
        recipe = Recipe(dict.fromkeys(names_of_features(model), "number"), {}, {})
        several = [f"{OUTPUT}{j}" for j in range(model.n_outputs_)]
        targets = several if len(several) > 1 else [OUTPUT]
        return Stored(model, recipe, targets, hasattr(model, "feature_names_in_"))
    try:
        recipe, targets = read_notes(notes, model)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Cannot(
            f"the notes in {path} on columns cannot be used: {error}. Fit it again."
        ) from error
    return Stored(model, recipe, targets, True)


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


def rows_of(stored, source, others=None, verbatim=False):
    """A table in chunks, its columns with the names of the inputs, in any order.

    Where the file or the model has no names, and there are as many columns as inputs,
    they are taken in order. `others` are further columns, copied as text if `verbatim`.
    """
    check_input(source)
    names, others = list(stored.recipe.kinds), possible_names(others)
    wanted = {*names, *others} if stored.has_names else None
    copied = others if verbatim else []
    words = list(stored.recipe.words)
    chunks = read_chunks(source, ROWS_AT_A_TIME, words, wanted, copied)
    unnamed = not (chunks.has_names and stored.has_names)
    if unnamed and len(chunks.columns) == len(names):
        frames = (frame.set_axis(names, axis=1) for frame in chunks.frames)
        return chunks._replace(frames=frames, columns=names)
    return chunks


def first_gap(frame, recipe: Recipe):
    """The first row that lacks a value, and the column of the table."""
    i, j = np.argwhere(frame.isna().to_numpy())[0]
    return place(frame.index, frame.index[i]), recipe.source_of(frame.columns[j])


# -- rows to score a model on ----------------------------------------------------------


def read_observed(stored, source, names=None, missing="refuse"):
    """Inputs and observed outputs of a whole table, and how many rows are left out."""
    import pandas as pd

    chunks = rows_of(stored, source, [*stored.targets, *(names or [])])
    targets = targets_in(stored, chunks.columns, names)
    parts: list[tuple] = []
    n_dropped = 0
    for frame in chunks.frames:
        X, Y = cook(frame, stored.recipe), numeric_targets(frame, targets)
        whole = X.notna().all(axis=1) & Y.notna().all(axis=1)
        if missing == "refuse" and not whole.all():
            lacking = X if X.isna().any(axis=None) else Y
            row, column = first_gap(lacking, stored.recipe)
            raise Cannot(
                f"{row} lacks a value of {column!r}. Leave such rows out with "
                "--missing drop."
            )
        n_dropped += int((~whole).sum())
        parts.append((X[whole], Y[whole]))
    X, Y = map(pd.concat, zip(*parts))
    if not len(Y):
        raise Cannot("every row lacks a value, so that none is left.")
    return stored.queries(X), Y.set_axis(stored.targets, axis=1), n_dropped


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


# -- predictions -----------------------------------------------------------------------


class Wanted(NamedTuple):
    """What to answer besides means."""

    std: bool = False
    noise: bool = True
    """Whether standard deviations are those of observations, or of the function."""
    coverage: float | None = None
    quantiles: tuple[float, ...] = ()

    @property
    def endings(self) -> list[str]:
        """Of the names of columns."""
        ends = ["_low", "_high"] if self.coverage else []
        named = [f"_q{q:g}" for q in self.quantiles]
        return ["", *(["_std"] if self.std else []), *ends, *named]


def answers(stored: Stored, chunks: Chunks, keep, wanted: Wanted, missing):
    """Frames of copied columns and predictions, one for each chunk of rows."""
    endings = wanted.endings
    kept = names_kept(keep, [f"{t}{end}" for t in stored.targets for end in endings])
    for frame in chunks.frames:
        X = cook(with_gaps(frame, keep), stored.recipe)
        whole = X.notna().all(axis=1).to_numpy()
        if missing == "refuse" and not whole.all():
            row, column = first_gap(X, stored.recipe)
            has_median = column not in stored.recipe.words
            raise Cannot(
                f"{row} lacks a value of {column!r}. Leave such answers empty with "
                f"--missing empty{', or fit with --missing median' * has_median}."
            )
        table = frame[list(kept)].rename(columns=kept)
        parts = answer(stored.model, stored.queries(X[whole]), wanted)
        for j, target in enumerate(stored.targets):
            for end in endings:
                column = np.full(len(frame), np.nan)
                column[whole] = parts[end][:, j]
                table[f"{target}{end}"] = column
        yield table


def names_kept(keep, answered):
    """New names of copied columns: none is the name of an answer.

    >>> names_kept(["id", "y_std"], ["y", "y_std"])
    {'id': 'id', 'y_std': 'y_std_given'}
    """
    kept = {name: f"{name}_given" if name in answered else name for name in keep}
    every = [*kept.values(), *answered]
    for i, name in enumerate(every):
        if name in every[:i]:
            raise Mistake(
                f"two columns of answers would be called {name!r}. Leave one of them "
                "out: see --keep, --std and --interval."
            )
    return kept


def answer(model, X, wanted: Wanted):
    """Predictions, shape (n_rows, n_outputs), by the endings of their names."""
    shape = (len(X), model.n_outputs_)
    if not len(X):
        return dict.fromkeys(wanted.endings, np.empty(shape))
    if wanted.endings == [""]:
        return {"": model.predict(X).reshape(shape)}
    mean, std = (part.reshape(shape) for part in model.predict(X, return_std=True))
    found, errors = {"": mean, "_std": std}, model.errors_
    if wanted.std and not wanted.noise:
        _, function = model.predict(X, return_std=True, noise=False)
        found["_std"] = function.reshape(shape)
    if wanted.coverage:
        below, above = (end * std for end in errors.ends(wanted.coverage, std))
        found |= {"_low": mean - below, "_high": mean + above}
    for q in wanted.quantiles:
        found[f"_q{q:g}"] = mean + errors.quantile(q, std) * std
    return found
