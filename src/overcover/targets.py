r"""Targets: transformations of the outputs before a fit, and back after a prediction.

    X, y -> [scale] -> metric -> ... -> prediction -> [units of y]

A model is fitted on a scale on which errors are roughly symmetric, such as the
logarithm. Users get predictions in units of the outputs. A *target* transforms outputs:

- ``forward(Y)`` is increasing in every column, and infinite beyond a bound;
- ``inverse(Z)`` returns to the units of the outputs;
- ``log_slope(Y)`` is the logarithm of the derivative of `forward`;
- ``after(Y)`` is the target of a model that has learned Y besides;
- ``is_changed`` is true for every output whose scale is not the identity;
- ``names`` has the name of the scale of every output.

`Unchanged` does nothing, `Scales` has a named scale for every output, and `Transformed`
wraps a scikit-learn transformer. "auto" compares named scales on rows held out.
"""

import warnings
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from ._notes import noted
from ._outcomes import Outcomes
from ._records import record, unbounded, whole
from ._scales import LARGEST, SCALES, Impossible

AUTO, LOGIT = "auto", "logit"
CHOICES = (*SCALES, AUTO)
# "auto" looks at so many rows at most, and needs so many; each of so many parts of them
# is predicted from the others.
MOST_JUDGED, LEAST_JUDGED, N_PARTS = 600, 30, 3
# Of more inputs than this it looks at so many principal components.
MOST_INPUTS, N_COMPONENTS = 100, 64
# It looks at outputs of which one tail is so many times as long as the other.
LOPSIDED = 1.5
# A scale must be better than the one before by so many standard errors.
SURE = 2.0
# If more intervals than this share cross a bound that the scale has, it may add as much
# to mean squared errors, or a standard error, not more.
MOST_CROSSED, MOST_LOST = 0.05, 0.02


class Unchanged:
    """The model's scale is that of the outputs."""

    is_changed, names = np.zeros(1, dtype=bool), ()

    def forward(self, Y):
        """The same."""
        return Y

    inverse = forward

    def log_slope(self, Y):
        """Zero."""
        return 0.0

    def after(self, Y):
        """The same target, for a model that has learned more outputs."""
        return self


@record(kind=whole("q", 0, len(SCALES) - 1), numbers=unbounded("4 q"))
class Scales(NamedTuple):
    """A named scale for every output."""

    kind: np.ndarray
    """Which of `SCALES`, shape (n_outputs,)."""

    numbers: np.ndarray
    """What these have learned, shape (4, n_outputs); zeros where it is less."""

    @property
    def names(self):
        """Of the scales, one for each output; none if all are the identity."""
        return self._each_name() if self.is_changed.any() else ()

    @property
    def is_changed(self):
        """For every output whether its scale is another, shape (n_outputs,)."""
        return self.kind > 0

    def forward(self, Y):
        """Outputs on the scale of the model, the same shape (n, n_outputs)."""
        return self._each("forward", Y) if self.is_changed.any() else Y

    def inverse(self, Z):
        """The way back."""
        return self._each("inverse", Z)

    def log_slope(self, Y):
        """Logarithms of the derivatives of `forward`."""
        return self._each("log_slope", Y)

    def after(self, Y):
        """The same, without bounds that `natural_bounds` found if Y lies beyond."""
        numbers = self.numbers.copy()
        for j, scale in enumerate(SCALES[name] for name in self._each_name()):
            low, high = scale.bounds(numbers[:, j])
            if Y[:, j].min() < low or Y[:, j].max() > high:
                values = scale.within(numbers[:, j], -LARGEST, LARGEST)
                numbers[: len(values), j] = values
        return self._replace(numbers=numbers)

    def _each_name(self):
        return tuple(list(SCALES)[k] for k in self.kind)

    def _each(self, method, values):
        result = np.empty(values.shape)
        for j, scale in enumerate(self._each_name()):
            apply = getattr(SCALES[scale], method)
            result[:, j] = apply(values[:, j], self.numbers[:, j])
        return result

    def check(self):
        """Refuse numbers that make no sense (ValueError)."""
        for scale, numbers in zip(self._each_name(), self.numbers.T):
            if not (np.isfinite(numbers).all() and SCALES[scale].makes_sense(numbers)):
                raise ValueError(f"The scale {scale!r} cannot have {numbers}.")


class Transformed:
    """Outputs on the scale of a transformer of scikit-learn, fitted to them."""

    def __init__(self, transformer, Y):
        self.transformer = clone(transformer).fit(Y)
        self.is_changed = np.ones(Y.shape[1], dtype=bool)
        self.names = (repr(transformer),) * Y.shape[1]
        # A step that is small beside the spread of an output.
        spread = np.where(np.ptp(Y, axis=0) > 0, np.std(Y, axis=0), 1.0)
        self._step = 1e-6 * spread
        Z, sorted_Y = self.forward(Y), np.sort(Y, axis=0)
        sorted_Z = self.forward(sorted_Y)
        rises = np.diff(sorted_Z, axis=0)[np.diff(sorted_Y, axis=0) > 0] > 0
        is_apart = np.allclose(np.sort(Z, axis=0), sorted_Z)
        fault = ""
        if not (rises.all() and is_apart and np.isfinite(Z).all()):
            fault = "must be increasing in every column, finite, and treat each alone"
        elif not np.allclose(self.inverse(Z), Y, rtol=1e-4, atol=1e-4 * spread.max()):
            fault = "does not come back to the outputs by its inverse_transform"
        if fault:
            raise ValueError(
                f"target={transformer!r} {fault}. Choose another transformer, or one "
                f"of {', '.join(map(repr, CHOICES))}."
            )

    def forward(self, Y):
        """Outputs on the scale of the model, the same shape (n, n_outputs)."""
        with np.errstate(all="ignore"):
            Z = np.asarray(self.transformer.transform(Y), dtype=float)
        return np.where(np.isnan(Z), -np.inf, Z)

    def inverse(self, Z):
        """The way back; a ValueError where the transformer knows none."""
        Y = np.asarray(self.transformer.inverse_transform(Z), dtype=float)
        if np.isfinite(Y).all():
            return Y
        raise ValueError(
            f"inverse_transform of {self.transformer!r} gives no number for "
            f"{Z[~np.isfinite(Y)][0]:.4g}, which errors reach. Choose a transformer "
            "that can take back every number, such as target='yeo-johnson'."
        )

    def log_slope(self, Y):
        """By differences; minus infinity where `forward` is flat."""
        low, middle, high = (self.forward(Y + k * self._step) for k in (-1, 0, 1))
        is_inside = np.isfinite(low)  # else at a bound: only on the other side
        with np.errstate(divide="ignore", invalid="ignore"):
            rise = np.where(is_inside, 0.5 * (high - low), high - middle) / self._step
            return np.where(np.isfinite(middle), np.log(rise), 0.0)

    after = Unchanged.after


def check_target(target) -> None:
    """Refuse what is no target."""
    if isinstance(target, str) and target in CHOICES:
        return
    if hasattr(target, "fit") and hasattr(target, "inverse_transform"):
        return
    if isinstance(target, tuple) and len(target) == 3 and target[0] == LOGIT:
        low, high = target[1:]
        if np.isfinite([low, high]).all() and low < high:
            return
    raise ValueError(
        f"target={target!r} is not known. Choose one of "
        f"{', '.join(map(repr, CHOICES))}, ('logit', low, high) for outputs between "
        "these bounds, or a transformer with inverse_transform."
    )


def fit_target(target, data, groups=None, judge=None):
    """The target that a parameter stands for, fitted to `TrainingData`.

    `judge` is the machine by which "auto" chooses; `groups` are those of the rows.
    """
    if not isinstance(target, str | tuple):
        return Transformed(target, data.Y)
    name, *bounds = [target] if isinstance(target, str) else target
    if name == AUTO:
        return choose(data, groups, judge)
    if name == "identity":
        return Unchanged()
    columns = range(data.Y.shape[1])
    return joined([learn(name, data, j, bounds) for j in columns])


def learn(name, data, column, bounds):
    """A scale of one output; a ValueError where the outputs do not allow it."""
    y = data.Y[:, column]
    try:
        return name, SCALES[name].learn(y, data.weights, *bounds)
    except Impossible as error:
        row, advice = error.args
        number = row if data.rows is None else data.rows[row]
        where = f", column {column}" if data.Y.shape[1] > 1 else ""
        raise ValueError(
            f"target={name!r} cannot take y = {y[row]:.6g} in row {number}{where} "
            f"(rows count from 0): {advice}"
        ) from None


def joined(learned):
    """`Scales` from the name and the numbers of each output."""
    names = [name for name, _ in learned]
    numbers = np.zeros((4, len(names)))
    for j, (_, values) in enumerate(learned):
        numbers[: len(values), j] = values
    return Scales(np.array([list(SCALES).index(name) for name in names]), numbers)


def choose(data, groups, judge):
    """For each output the scale on which rows held out are likeliest, in units of y.

    A scale must be better than those before it in `SCALES` beyond doubt, in densities
    and in means: ties go to the first, "identity". Means may suffer a little where
    intervals so far cross bounds that the scale has. Only outputs with one long tail,
    or between 0 and 1, are looked at, and these get `natural_bounds`. Work and memory
    do not grow with the number of rows.
    """
    n_rows, n_outputs = data.Y.shape
    kept = [("identity", ())] * n_outputs
    some = some_rows(data, MOST_JUDGED)
    some = some._replace(X=fewer_inputs(some.X))
    groups = None if groups is None else groups[some.rows]
    columns = [j for j, y in enumerate(some.Y.T) if is_lopsided(y)]
    if n_rows < LEAST_JUDGED or not columns:
        return Unchanged()
    best = held_out(some, Unchanged(), groups, judge)
    for name in list(SCALES)[1:]:
        trial = list(kept)
        for j in columns:
            with suppress(Impossible):  # all rows must allow it, not just these
                trial[j] = name, SCALES[name].learn(data.Y[:, j], data.weights)
        allowed = [j for j in columns if trial[j][0] == name]
        if not allowed:
            continue
        new = held_out(some, joined(trial), groups, best.judge)
        for j in allowed:
            if is_better(best, new, j, *SCALES[name].bounds(trial[j][1])):
                kept[j] = trial[j]
                for before, after in zip(best[:-1], new[:-1]):
                    before[:, j] = after[:, j]
    is_bounded = False
    for j in columns:
        if (bounds := natural_bounds(data.Y[:, j])) is not None:
            name, numbers = kept[j]
            kept[j] = name, SCALES[name].within(numbers, *bounds)
            is_bounded = True
    chosen = joined(kept)
    return chosen if is_bounded or chosen.is_changed.any() else Unchanged()


def is_lopsided(y):
    """Whether an output has one long tail, or lies between 0 and 1: most have neither.

    >>> rng = np.random.default_rng(0)
    >>> is_lopsided(rng.normal(size=500)), is_lopsided(rng.lognormal(size=500))
    (False, True)
    """
    low, middle, high = np.quantile(y, [0.05, 0.5, 0.95])
    tails = sorted((middle - low, high - middle))
    is_between = np.all((y > 0) & (y < 1))
    return bool(tails[1] > LOPSIDED * tails[0] or (is_between and tails[1] > 0))


def natural_bounds(y):
    """Bounds that an output with a long tail or between 0 and 1 keeps; maybe None.

    Zero, if no output is below it, the tail is above, and the least is near zero. If
    none of n rows lies beyond a bound, one of n + 1 does: intervals that end there
    hold what they held.

    >>> y = np.random.default_rng(0).lognormal(size=500)
    >>> natural_bounds(y)[0], natural_bounds(y - 1.0), natural_bounds(y + 9.0)
    (0.0, None, None)
    """
    low, middle, high = np.quantile(y, [0.05, 0.5, 0.95])
    if np.all((y > 0) & (y < 1)):
        return 0.0, 1.0
    is_near = 0.0 <= y.min() < y.std() and high - middle > middle - low
    return (0.0, LARGEST) if is_near else None


def standard_error(values):
    """Of the mean of some values."""
    return np.std(values) / np.sqrt(len(values))


def some_rows(data, most):
    """At most so many evenly spaced rows; their `rows` are positions in `data`."""
    rows = np.unique(np.linspace(0, len(data.Y) - 1, most).astype(int))
    return data._replace(
        X=np.asarray(data.X[rows], dtype=np.float64),
        Y=data.Y[rows],
        weights=None if data.weights is None else data.weights[rows],
        rows=rows,
    )


def fewer_inputs(X):
    """The rows, or their first principal components if inputs are many."""
    if X.shape[1] <= MOST_INPUTS:
        return X
    offsets = X - X.mean(axis=0)
    variances, directions = np.linalg.eigh(offsets @ offsets.T)
    lengths = np.sqrt(np.maximum(variances[-N_COMPONENTS:], 0.0))
    return directions[:, -N_COMPONENTS:] * lengths


class HeldOut(NamedTuple):
    """How rows are predicted from others, in units of y, each (n_rows, n_outputs)."""

    density: np.ndarray  # log densities
    squares: np.ndarray  # squared errors
    low: np.ndarray  # the ends of 95 % intervals
    high: np.ndarray
    # A machine with the length scales that predicted: they hardly differ from scale to
    # scale, and take most of the time.
    judge: Any


def is_better(old, new, j, low, high):
    """Whether output j is better predicted on a scale that keeps between two bounds."""
    densities = new.density[:, j] - old.density[:, j]
    if not np.mean(densities) > SURE * standard_error(densities):
        return False  # maybe so bad that squares have no deviation
    squares = old.squares[:, j] - new.squares[:, j]
    least = SURE * standard_error(squares)
    if np.mean((old.low[:, j] < low) | (old.high[:, j] > high)) > MOST_CROSSED:
        least = -max(MOST_LOST * old.squares[:, j].mean(), standard_error(squares))
    return bool(np.mean(squares) > least)


def held_out(data, target, groups, judge) -> HeldOut:
    """All rows predicted, each from the parts that it does not belong to."""
    X, weights, judge = data.X, data.weights, clone(judge)
    Z = target.forward(data.Y)
    part = (np.arange(len(X)) if groups is None else groups) % N_PARTS
    density, squares, low, high = np.empty((4, *Z.shape))
    with noted(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rng = np.random.RandomState(0)
        judge.tune(X, Z, weights, len(X), rng, None, groups)
        for k in np.unique(part):
            others, own = part != k, part == k
            left = None if groups is None else groups[others]
            left = judge.groups_to_leave_out(left, np.flatnonzero(others))
            w = None if weights is None else weights[others]
            state = judge.fit_state(X[others], Z[others], w, groups=left)
            judge.calibrate([state], [left])
            answer = judge.answer(state, X[own], variance=True)
            parts = answer.mean, np.sqrt(answer.variance), judge.errors_, target
            outcomes = Outcomes(*parts)
            density[own] = outcomes.log_density(data.Y[own])
            squares[own] = (outcomes.moments()[0] - data.Y[own]) ** 2
            low[own], high[own] = outcomes.interval(0.95)
    judge = clone(judge).set_params(length_scale=judge.length_scale_)
    return HeldOut(density, squares, low, high, judge)
