"""A stored model, and how rows of a table become its inputs and predictions."""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .. import load, store
from ..alone import as_cover
from ..explain import names_of_features
from ..regressor import OverlappingCoverRegressor
from ..tables import (
    OUTPUT,
    PLAIN,
    check_present,
    column_names,
    finite_values,
    open_table,
    place,
    respelled,
    with_gaps,
)
from ._columns import complete, options_for, parse_targets, split_names
from ._errors import Cannot, Mistake

# The name of the command line's notes in a store.
NOTES = "table"
# Rows of a table that are read and predicted together.
ROWS_AT_A_TIME = 2**15


class Stored(NamedTuple):
    """A model that predicts for tables."""

    model: OverlappingCoverRegressor
    targets: list[str]

    @property
    def encoder(self):
        """What encodes the columns; None if they are numbers already."""
        return getattr(self.model, "encoder_", None)

    @property
    def kinds(self):
        """Kinds of the columns that are used, by their names, in order."""
        if self.encoder is None:
            return dict.fromkeys(names_of_features(self.model), "number")
        return {column["name"]: column["kind"] for column in self.encoder.columns_}

    def inputs(self, frame):
        """Inputs from a frame, NaN in rows that lack values; cells that are no values.

        Of each column the first such cell is described.
        """
        import pandas as pd

        kinds = {name: kind for name, kind in self.kinds.items() if kind != "words"}
        read = {name: finite_values(frame[name], kind) for name, kind in kinds.items()}
        said = [text for _, _, text in read.values() if text is not None]
        if self.encoder is None:
            values = {name: values for name, (values, _, _) in read.items()}
            return pd.DataFrame(values, index=frame.index), said
        gaps = {name: frame[name].where(~bad) for name, (_, bad, _) in read.items()}
        X = self.encoder.encode(frame[[*self.kinds]].assign(**gaps))
        for _, bad, _ in read.values():
            X[bad] = np.nan
        return X, said

    def queries(self, X):
        """Inputs as the model takes them, from a frame of them."""
        has_names = hasattr(self.model, "feature_names_in_")
        return X if has_names and self.encoder is None else X.to_numpy()


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


def open_model(path, jobs=None) -> Stored:
    """Load a model, with the notes of ``overcover fit`` or without any."""
    notes = facts_of(path)["notes"].get(NOTES)
    model = as_cover(load(path))
    model.n_jobs = jobs
    if notes is None:
        names = column_names(model.n_outputs_, OUTPUT)
        return Stored(model, names if len(names) > 1 else [OUTPUT])
    targets = notes.get("targets") if isinstance(notes, dict) else None
    is_list = isinstance(targets, list) and "kinds" not in notes  # of an old version
    if targets is None or not is_list or len(targets) != model.n_outputs_:
        raise Cannot(
            f"the notes in {path} on columns cannot be used: they do not fit the "
            "model. Fit it again."
        )
    return Stored(model, [str(name) for name in targets])


def match_columns(stored, table):
    """Find the model's columns in a table by name, or in order without names."""
    names = [*stored.kinds]
    is_named = table.has_names and hasattr(stored.model, "feature_names_in_")
    if not is_named and len(table.columns) == len(names):
        table.columns = names
    check_present(names, table.columns)


def frames_of(stored, table, n_rows, others, verbatim=(), spelling=PLAIN):
    """Frames of the model's columns in a table, and of others."""
    chosen = [name for name in table.columns if name in {*stored.kinds, *others}]
    words = [name for name, kind in stored.kinds.items() if kind == "words"]
    return table.frames(n_rows, chosen, words, verbatim, spelling)


def read_observed(stored, source, names=None, missing="refuse", spelling=PLAIN):
    """Inputs and observed outputs of a whole table, and how many rows are left out."""
    with open_table(source) as table:
        match_columns(stored, table)
        targets = targets_in(stored, table.columns, names)
        (frame,) = frames_of(stored, table, None, targets, spelling=spelling)
    X, said = stored.inputs(frame)
    Y, troubles = parse_targets(frame, targets)
    refuse([*said, *troubles.values()])
    X, Y, n_dropped = complete(X, Y, missing)
    return stored.queries(X), Y.set_axis(stored.targets, axis=1), n_dropped


def targets_in(stored, columns, names):
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


class Wanted(NamedTuple):
    """What to answer besides means."""

    std: bool = False
    noise: bool = True  # deviations of observations, or of the function
    coverage: float | None = None
    quantiles: tuple[float, ...] = ()

    @property
    def endings(self) -> list[str]:
        """Of the names of columns."""
        ends = ["_low", "_high"] if self.coverage else []
        named = [f"_q{q:g}" for q in self.quantiles]
        return ["", *(["_std"] if self.std else []), *ends, *named]


def refuse(reasons, outcome=""):
    """An error with all reasons, and options that may help."""
    if reasons:
        text = "; ".join(reasons)
        options = "".join(f" {way[0].upper()}{way[1:]}." for way in options_for(text))
        raise Cannot(f"{text}{outcome}.{options}")


class Aside(NamedTuple):
    """Rows that cannot be answered, and unknown cells of those that are."""

    unknown: Counter[str]  # cells that training did not know, of each column
    rows: list[int]  # without an answer, of each chunk
    reasons: list[str]


def answers(stored: Stored, frames, keep, wanted: Wanted, missing, aside, spelling):
    """Frames of copied columns and predictions; puts what it meets in `aside`."""
    endings = wanted.endings
    kept = names_kept(keep, [f"{t}{end}" for t in stored.targets for end in endings])
    copied = [name for name in keep if stored.kinds.get(name, "words") != "words"]
    for frame in frames:
        table = respelled(with_gaps(frame, keep), copied, spelling)
        X, said = stored.inputs(table)
        if missing == "refuse":
            refuse(said)
        whole = X.notna().all(axis=1).to_numpy()
        if stored.encoder is not None:
            aside.unknown.update(stored.encoder.unknown(table[whole]))
        if not (whole.any() or aside.rows):
            refuse(said, ", and no row can be answered")
        if not whole.all() and not said:
            i, j = np.argwhere(X.isna().to_numpy())[0]
            said = [f"{place(X.index, X.index[i])} lacks a value of {X.columns[j]!r}"]
            if missing == "refuse":
                raise Cannot(
                    f"{said[0]}. Leave such answers empty with --missing empty, or fit "
                    "to a table with gaps."
                )
        aside.rows.append(int((~whole).sum()))
        aside.reasons.extend(said)
        table = frame[list(kept)].rename(columns=kept)
        parts = answer(stored.model, stored.queries(X[whole]), wanted)
        for j, target in enumerate(stored.targets):
            for end in endings:
                column = np.full(len(frame), np.nan)
                column[whole] = parts[end][:, j]
                table[f"{target}{end}"] = column
        yield table


def names_kept(keep, answered):
    """New names of copied columns: none is the name of an answer."""
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
    outcomes = model._outcomes_at(X)
    parts = dict(zip(("", "_std"), outcomes.moments()))
    if wanted.std and not wanted.noise:
        _, function = model.predict(X, return_std=True, noise=False)
        parts["_std"] = function.reshape(shape)
    if wanted.coverage:
        parts["_low"], parts["_high"] = outcomes.interval(wanted.coverage)
    for q in wanted.quantiles:
        parts[f"_q{q:g}"] = outcomes.quantile(q)
    return parts
