"""Checks of rows to add or remove, and notes on models that got some."""

from typing import Any, NamedTuple

import numpy as np

from .._markup import number as in_words
from .._records import finite, record
from .._validation import check_observed, check_queries, check_weights
from .._weights import are_judged, in_units_of, used_rows
from ..tuning.cost import TuningCost

# New rows that `Promise` remembers: with more, older ones fade. And how many of a batch
# are predicted for it: in a large cover nearly each of them consults another subdomain.
MOST_REMEMBERED, MOST_COMPARED = 2000, 250
COVERAGE = 0.95
# With so many times the rows, hyperparameters are worth another look.
MANY_MORE = 2.0


@record(counts=finite("3"))
class Promise(NamedTuple):
    """How well new rows were predicted, before they were added."""

    counts: np.ndarray
    """Rows compared; mean squared error over variance; share in 95 % intervals."""

    @property
    def n_rows(self) -> int:
        """Rows compared, at most `MOST_REMEMBERED`; older ones lose weight."""
        return int(self.counts[0])

    @property
    def error_sq(self) -> float:
        """Mean squared error over variance; one if variances are right."""
        return float(self.counts[1])

    @property
    def within(self) -> float:
        """Share of outputs in their 95 % intervals."""
        return float(self.counts[2])


class Batch(NamedTuple):
    """New rows, checked; equal ones merged."""

    X: np.ndarray
    Y: np.ndarray
    weights: np.ndarray
    numbers: np.ndarray
    groups: np.ndarray | None
    target: Any
    n_rows: int  # before equal ones were merged


def batch_of(ground, X, y, sample_weight, groups, number) -> Batch:
    """New rows for the model of a ground, with weights in the units of its fit.

    The first of them gets this number.
    """
    model = ground.model
    if y is None:
        raise ValueError(
            "partial_fit requires y to be passed, but the target y is None."
        )
    X = check_queries(model, X).astype(np.float64)
    observed = check_observed(y, np.empty((len(X), model.n_outputs_)))
    Y, target = on_scale_of(model, observed), model.target_.after(observed)
    machine, largest = model.machine_, 1.0
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, X)
        largest = sample_weight.max()
        if not hasattr(model, "weight_unit_"):
            raise ValueError(
                "This model does not know which sample_weight its own rows had: it was "
                "fitted by an older version, or on a cluster with rows that repeat. "
                "Leave sample_weight out, or fit it again."
            )
    rows, weights = used_rows(X, Y, sample_weight, machine.takes_weights)
    rows = np.arange(len(X)) if rows is None else rows
    weights = np.ones(len(rows)) if weights is None else weights * largest
    weights = in_units_of(getattr(model, "weight_unit_", 1.0), weights)
    weights = machine.weigh_more(X[rows], weights)
    numbers, groups = number + rows, new_groups(ground.groups, groups, len(X))
    groups = None if groups is None else groups[rows]
    return Batch(X[rows], Y[rows], weights, numbers, groups, target, len(X))


def on_scale_of(model, Y):
    """Outputs on the scale of a model, see `overcover.targets`."""
    Z = model.target_.forward(Y)
    if not np.isfinite(Z).all():
        row, column = np.argwhere(~np.isfinite(Z))[0]
        raise ValueError(
            f"y = {Y[row, column]:.6g} in row {row} (rows count from 0) has no place "
            f"on the scale {model.target_.names[column]!r} of this model. "
            "Leave such rows out, or fit again with another target."
        )
    return Z


def new_groups(known, groups, n_rows):
    """Numbers of the groups of new rows, none of them known before; maybe None."""
    if groups is None and known is None:
        return None
    if groups is None or known is None:
        was, do = ("without", "Leave") if known is None else ("with", "Give")
        raise ValueError(
            f"The model was fitted {was} groups. {do} groups "
            f"{'out' if known is None else 'for new rows, too'}, or fit it again."
        )
    groups = np.asarray(groups)
    if groups.shape != (n_rows,):
        raise ValueError(
            f"groups has shape {groups.shape}, X has {n_rows} rows. Give one group for "
            "each row, such as the patient it was measured on."
        )
    return np.unique(groups, return_inverse=True)[1].ravel() + known.max() + 1


def compare(ground, batch, before) -> Promise | None:
    """The `Promise` of a model that predicts new rows as it was; None without std."""
    model = ground.model
    if ground.is_spent or not model.machine_.has_variance:
        return before
    judged = np.flatnonzero(are_judged(batch.weights))
    judged = judged[:: max(1, -(-len(judged) // MOST_COMPARED))]
    mean, std = model._predict_rows(batch.X[judged], True)
    error = batch.Y[judged] - mean
    below, above = (end * std for end in model.errors_.ends(COVERAGE, std))
    held = (-below <= error) & (error <= above)
    ratio = error / np.maximum(std, np.finfo(float).tiny)
    n_old, *old = (0.0, 0.0, 0.0) if before is None else before.counts
    share = len(error) / (n_old + len(error))
    new = np.array([np.mean(np.minimum(np.abs(ratio), 1e100) ** 2), np.mean(held)])
    n_rows = min(n_old + len(error), MOST_REMEMBERED)
    return Promise(np.array([n_rows, *(share * new + (1.0 - share) * np.array(old))]))


def places_of(ground, rows):
    """Positions of rows to forget; refuses rows that are not there, and all."""
    rows, known = np.unique(np.asarray(rows)), ground.numbers[ground.rows()]
    if rows.dtype.kind not in "iu" and rows.size:
        raise ValueError(
            f"rows are of type {rows.dtype}, and must be row numbers, that is, "
            "integers. Of a mask, give cover_.rows()[mask]."
        )
    if len(unknown := np.setdiff1d(rows, known)):
        some = ", ".join(map(str, unknown[:5])) + (", ..." if len(unknown) > 5 else "")
        raise ValueError(
            f"The model has no row {some}. It has {len(known)} rows, numbered as in "
            "cover_.rows(): by the order they were given in; of equal rows given "
            "together the first stands for all, and rows of weight zero are left out."
        )
    if len(rows) == len(known):
        raise ValueError(
            f"These are all {len(known)} rows: nothing would be left to predict from. "
            "Keep at least one, or fit a new model."
        )
    return np.searchsorted(ground.numbers, rows)


def ground_of(model):
    """The ground that a model is to follow, see `LearnsOn`; None if it does already."""
    return vars(model).get("_ground")


def about_growth(model):
    """A note if hyperparameters were learned from a part of the rows, for `advise`."""
    ground, n_tuned = ground_of(model), getattr(model, "n_samples_tuned_", 0)
    # Its own attributes would fit states; hyperparameters are as they were before.
    machine = (model if ground is None else ground.model).machine_
    n_rows = sum(model.cover_.n_owned if ground is None else ground.n_owned)
    shape = n_rows, len(model.length_scales_), model.n_outputs_
    is_tuned = machine.tuning_cost(*shape) != TuningCost()
    if is_tuned and n_tuned and n_rows >= MANY_MORE * n_tuned:
        yield (
            f"note: The model has {in_words(n_rows)} rows, and its hyperparameters "
            f"were learned from {in_words(n_tuned)} rows. More rows may improve them: "
            "call model.retune(), which takes as long as a fit."
        )
