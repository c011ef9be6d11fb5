"""Tables as they are: words, dates and gaps become columns of numbers.

- A number stays as it is, and a date is the number of days since 1970. The median
  replaces missing cells, and a second column of 0 and 1 marks them.
- A word becomes columns of 0 and 1, one for each level (each different word). A column
  of many levels becomes one number instead: the effect of the level on the output, see
  `overcover.tables._effects`. On training rows it comes from other rows (out of fold),
  so that the output does not leak into the input.
- A word that the training table did not hold, or a gap where it had none, gets the mean
  code of the training rows: an *unknown* cell, whose answers have more variance.
"""

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import check_consistent_length

from .._numbers import numbers_of
from .._validation import check_choice, check_count, check_names, check_weights
from ._effects import bins_of, effects_of, folds_of
from ._kinds import as_numbers, check_frame, kinds_of, needs_encoding, places_of

MISSING = "(missing)"
DAYS = {"year": 365.2425, "week": 7.0, "day": 1.0}
# Numbers that the effect of a level on several outputs becomes at most.
MOST_EFFECTS = 3
# What sets an unknown cell apart from all others, in units of its column.
NUDGE = 1e-9
KINDS = ("number", "date", "words")


class TableEncoder(BaseEstimator):
    """How the columns of a DataFrame become numbers.

    `OverlappingCoverRegressor` makes one if a DataFrame holds words, dates or gaps. To
    change the rules, pass one as the parameter `encoder`. Memory: the encoded table,
    and as much again for the effects of levels.

    Parameters
    ----------
    words : sequence of str, default=()
        Columns of numbers that are names, such as postcodes.
    cycles : sequence of {"year", "week", "day"}, default=()
        Cycles of dates: each adds a sine and a cosine to every column of dates.
    one_hot : int, default=12
        The largest number of levels that become columns of 0 and 1.

    Attributes
    ----------
    columns_ : list of dict
        For every column of the table its name, its kind ("number", "date" or "words"),
        the names of the inputs it becomes, and what was learned: `levels` and their
        `codes` (the last one of unknown words), or what to `fill` gaps with; the
        `unknown_variance` is what an unknown cell adds, shape (n_outputs,).

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from overcover import TableEncoder
    >>> table = pd.DataFrame({"soil": ["clay", "sand"] * 10, "wet": [0.5, np.nan] * 10})
    >>> encoder = TableEncoder()
    >>> encoder.learn(table, np.arange(20.0))[:2].to_numpy().tolist()
    [[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 0.5, 1.0]]
    >>> encoder.inputs
    ['soil=clay', 'soil=sand', 'wet', 'wet is missing']
    >>> encoder.encode(table[:1].assign(soil="rock")).to_numpy().tolist()
    [[0.5, 0.5, 0.5, 0.0]]
    """

    def __init__(self, words=(), cycles=(), one_hot=12):
        self.words = words
        self.cycles = cycles
        self.one_hot = one_hot

    @property
    def inputs(self):
        """Names of the inputs that the table becomes, in order."""
        return [name for column in self.columns_ for name in column["inputs"]]

    @property
    def dates(self):
        """Names of the inputs that are days since 1970."""
        return [c["inputs"][0] for c in self.columns_ if c["kind"] == "date"]

    def learn(self, table, y, sample_weight=None, groups=None):
        """Learn from a training table, and encode it out of fold.

        Parameters
        ----------
        table : DataFrame of shape (n_rows, n_columns)
        y : array-like of shape (n_rows,) or (n_rows, n_outputs)
        sample_weight : array-like of shape (n_rows,), default=None
        groups : array of integers of shape (n_rows,), default=None
            Rows of a group are left out together.

        Returns
        -------
        DataFrame of shape (n_rows, n_inputs), of float64
            `encode` gives others: there effects come from all training rows.
        """
        self._check_options(table)
        check_consistent_length(table, y)
        Y = numbers_of(y, "y").reshape(len(table), -1)
        deviation = Y.std(axis=0)
        scale = np.where(deviation > 0, deviation, 1.0)
        weights = np.ones(len(Y))
        if sample_weight is not None:
            weights = weights * numbers_of(sample_weight, "sample_weight")
            weights = weights / weights[weights > 0].mean()
        kinds = kinds_of(table, [str(name) for name in self.words])
        values = [_values_of(table.iloc[:, j], kind) for j, kind in enumerate(kinds)]
        facts = zip(map(str, table.columns), kinds, values)
        self.columns_ = columns = [self._begin(*fact) for fact in facts]
        levels = [_levels_of(*pair) for pair in zip(columns, values)]
        data = (Y - Y.mean(axis=0)) / scale, weights
        axes = _main_axes(data[0])
        for j, effects in enumerate(effects_of(levels, *data)):
            columns[j]["unknown_variance"] = effects.unknown * scale**2
            if columns[j]["kind"] == "words":
                columns[j] |= _coded(columns[j], levels[j][0], effects.means @ axes)
        check_names(self.inputs, "the encoded table")
        encoded = self._encoded(values, table.index)
        self._leave_out(encoded, levels, data, axes, folds_of(len(Y), groups))
        return encoded

    def _check_options(self, table):
        check_frame(table)
        check_count("one_hot", self.one_hot, 0, "12 suits most tables.")
        for option in ("words", "cycles"):
            if isinstance(getattr(self, option), str):
                one = getattr(self, option)
                raise ValueError(f"{option}={one!r} must be a list: [{one!r}].")
        for cycle in self.cycles:
            check_choice("cycles", cycle, tuple(DAYS))
        names = [str(name) for name in table.columns]
        check_names(names, "X")
        for name in self.words:
            check_choice("words", str(name), names)

    def _begin(self, name, kind, values):
        """A description of a column: what does not depend on outputs."""
        facts = {"name": name, "kind": kind}
        if kind == "words":
            levels = np.unique(values).astype(object)
            return facts | {"levels": levels, "is_effect": len(levels) > self.one_hot}
        gaps = np.isnan(values)
        fill, inputs = float(np.median(values[~gaps])), [name]
        if not gaps.any():
            fill += NUDGE * (float(np.std(values)) or 1.0)
        cycles = [*self.cycles] if kind == "date" else []
        inputs += [f"{name} ({c}, {wave})" for c in cycles for wave in ("sin", "cos")]
        inputs += [f"{name} is missing"] if gaps.any() else []
        facts |= {"inputs": inputs, "fill": fill, "cycles": cycles}
        return facts | {"had_gaps": bool(gaps.any())}

    def _leave_out(self, encoded, levels, data, axes, folds):
        """Replace the effects of levels by what other rows say."""
        places = [j for j, c in enumerate(self.columns_) if c.get("is_effect")]
        if not places:
            return
        coded = [self.columns_[j] for j in places]
        inputs = [np.empty((len(encoded), len(c["inputs"]))) for c in coded]
        for fold in np.unique(folds):
            out = folds == fold
            rest = [(rows[~out], n) for rows, n in levels]
            effects = effects_of(rest, *(part[~out] for part in data))
            for part, c, j in zip(inputs, coded, places):
                own = levels[j][0][out]
                counts = np.bincount(rest[j][0], minlength=rest[j][1])[own]
                codes = (effects[j].means @ axes)[own]
                part[out] = np.where(counts[:, None] > 0, codes, c["codes"][-1])
        for part, column in zip(inputs, coded):
            encoded[column["inputs"]] = part

    def encode(self, table):
        """Numbers of a table with the columns of the training table, found by name.

        Parameters
        ----------
        table : DataFrame of shape (n_rows, n_columns)

        Returns
        -------
        DataFrame of shape (n_rows, n_inputs), of float64
        """
        if not hasattr(self, "columns_"):
            raise NotFittedError("This TableEncoder knows no table: call learn first.")
        places = places_of([column["name"] for column in self.columns_], table)
        kinds = [column["kind"] for column in self.columns_]
        values = [_values_of(table.iloc[:, j], kind) for j, kind in zip(places, kinds)]
        return self._encoded(values, table.index)

    def _encoded(self, values, index):
        import pandas as pd

        parts = []
        for column, cells in zip(self.columns_, values):
            if column["kind"] == "words":
                # -1 is the last row of the codes, that of unknown words.
                parts.append(column["codes"][_levels_of(column, cells)[0]])
            else:
                parts.append(_numbers_of(column, cells))
        rows = np.concatenate(parts, axis=1)
        return pd.DataFrame(rows, index=index, columns=self.inputs)

    def unknown_variance(self, X):
        """Variance that unknown cells add to answers.

        Parameters
        ----------
        X : ndarray of shape (n_rows, n_inputs)
            Encoded rows.

        Returns
        -------
        ndarray of shape (n_rows, n_outputs)
        """
        added = np.zeros((len(X), len(self.columns_[0]["unknown_variance"])))
        for column, is_unknown in self._unknown_cells(X):
            added[is_unknown] += column["unknown_variance"]
        return added

    def unknown(self, table):
        """How many cells of each column are unknown: a dict of counts above zero.

        Parameters
        ----------
        table : DataFrame of shape (n_rows, n_columns)
        """
        cells = self._unknown_cells(self.encode(table).to_numpy())
        counts = {column["name"]: int(rows.sum()) for column, rows in cells}
        return {name: n for name, n in counts.items() if n}

    def _unknown_cells(self, X):
        """Columns of the table, and in which encoded rows their cells are unknown."""
        start = 0
        for column in self.columns_:
            part = X[:, start : start + len(column["inputs"])]
            start += part.shape[1]
            if column["kind"] == "words":
                yield column, np.all(part == column["codes"][-1], axis=1)
            elif not column["had_gaps"]:
                yield column, part[:, 0] == column["fill"]

    def describe(self):
        """How each column is encoded, in words: a list of pairs of name and text."""
        return [(column["name"], _in_words(column)) for column in self.columns_]

    def check(self, n_outputs):
        """Refuse, by a ValueError, what cannot have been learned; for files."""
        for column in self.columns_:
            n_inputs = len(column["inputs"])
            texts = [column["name"], *column["inputs"]]
            sound = column["kind"] in KINDS and all(isinstance(t, str) for t in texts)
            variance = np.asarray(column["unknown_variance"], float)
            sound &= variance.shape == (n_outputs,) and bool(np.all(variance >= 0))
            if column["kind"] == "words":
                shape = (len(column["levels"]) + 1, n_inputs)
                sound &= all(isinstance(level, str) for level in column["levels"])
                sound &= np.shape(column["codes"]) == shape
                sound &= bool(np.isfinite(column["codes"]).all())
            else:
                sound &= set(column["cycles"]) <= set(DAYS)
                expected = 1 + 2 * len(column["cycles"]) + bool(column["had_gaps"])
                sound &= n_inputs == expected and bool(np.isfinite(column["fill"]))
            if not sound:
                raise ValueError(f"column {column['name']!r} cannot be encoded")


def encode_training(estimator, X, y, sample_weight=None, X_target=None, groups=None):
    """Training rows and targets as numbers; sets or removes ``estimator.encoder_``.

    What needs no encoding is returned as it is.
    """
    vars(estimator).pop("encoder_", None)
    is_frame = hasattr(X, "iloc") and getattr(X, "ndim", 1) == 2
    wanted = is_frame and estimator.encoder is not None
    if y is None or not (wanted or needs_encoding(X)):
        return X, X_target
    check_consistent_length(X, y)
    encoder = TableEncoder() if estimator.encoder is None else clone(estimator.encoder)
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, X)
    rows = encoder.learn(X, y, sample_weight, groups)
    estimator.encoder_ = encoder
    if hasattr(X_target, "iloc"):
        X_target = encoder.encode(X_target)
    return rows, X_target


def _values_of(column, kind):
    """A column as numbers, or as words, also gaps: 3 and 3.0 are the same one."""
    if kind != "words":
        return as_numbers(column, kind)
    as_word = "{:.15g}".format if column.dtype.kind == "f" else str
    words = column.astype(object).map(as_word).where(column.notna(), MISSING)
    return words.to_numpy(dtype=object).astype(str)


def _levels_of(column, values):
    """The level of every cell of a column, -1 where unknown; and how many there are."""
    if column["kind"] == "words":
        known = column["levels"].astype(str)
        levels = np.searchsorted(known, values)
        is_known = known[np.minimum(levels, len(known) - 1)] == values
        return np.where(is_known, levels, -1), len(known)
    levels = bins_of(values)
    return levels, int(levels.max()) + 1


def _main_axes(Z):
    """Directions in which outputs vary most, shape (n_outputs, at most 3)."""
    if Z.shape[1] == 1:
        return np.ones((1, 1))
    vectors = np.linalg.eigh(Z.T @ Z)[1]
    return vectors[:, ::-1][:, :MOST_EFFECTS]


def _coded(column, levels, effects):
    """Inputs of a column of words, and codes: those of levels, then of unknown words.

    The last is the mean of all rows, and not the code of any level.
    """
    name, codes = column["name"], effects
    if not column["is_effect"]:
        codes = np.eye(len(column["levels"]))
        inputs = [f"{name}={level}" for level in column["levels"]]
    elif codes.shape[1] == 1:
        inputs = [f"{name} (effect)"]
    else:
        inputs = [f"{name} (effect {i + 1})" for i in range(codes.shape[1])]
    unknown = codes[levels].mean(axis=0)
    while np.any(np.all(codes == unknown, axis=1)):
        unknown = unknown + NUDGE
    return {"inputs": inputs, "codes": np.vstack([codes, unknown])}


def _numbers_of(column, values):
    """Inputs of a column of numbers or dates, shape (n_rows, n_inputs)."""
    gaps = np.isnan(values)
    values = np.where(gaps, column["fill"], values)
    parts = [values]
    for cycle in column["cycles"]:
        phase = 2 * np.pi * values / DAYS[cycle]
        parts += [np.sin(phase), np.cos(phase)]
    if column["had_gaps"]:
        parts.append(gaps.astype(np.float64))
    return np.column_stack(parts)


def _in_words(column):
    if column["kind"] == "words":
        n_levels = len(column["levels"])
        if column["is_effect"]:
            return f"{n_levels:,} words, each as its effect on the output, out of fold"
        return f"{n_levels} words, a column of 0 and 1 for each"
    text = "number" if column["kind"] == "number" else "date, in days since 1970"
    if column["cycles"]:
        text += f", with cycles of {', '.join(column['cycles'])}"
    if column["had_gaps"]:
        text += f"; gaps filled with {column['fill']:.6g}, and marked in a column"
    return text
