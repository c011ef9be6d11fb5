"""Input checks for all public estimators; errors say what to do next."""

from functools import wraps
from numbers import Integral, Number, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils import check_array, check_X_y
from sklearn.utils.validation import _check_sample_weight, validate_data

from . import _notes as notes
from ._numbers import EITHER_FLOAT, FLOAT64, numbers_of
from ._streams import codes_of, sample_of
from ._weights import comparable

# With fewer rows, the coverage of 95 % intervals can be as low as 88 %.
FEW_ROWS = 20


def all_or_nothing(fit):
    """Decorate `fit` so that a failure leaves the estimator unchanged."""

    @wraps(fit)
    def safe_fit(self, *args, **kwargs):
        before = self.__dict__.copy()
        try:
            return fit(self, *args, **kwargs)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise

    return safe_fit


class TrainingData(NamedTuple):
    """Validated training data."""

    X: np.ndarray  # shape (n_used, n_features)
    Y: np.ndarray  # shape (n_used, n_outputs)
    weights: np.ndarray | None  # in units of a typical weight; None if all are equal
    rows: np.ndarray | None  # numbers in the original data, ascending; None for all
    unit: float = 1.0  # the caller's weight that `weights` count as one
    n_given: int = 0  # rows of the original data


def check_training_data(
    estimator, X, y, sample_weight=None, keep_float32=False, merge=True
) -> TrainingData:
    """Validated training arrays, float64; stores the shape of y for predictions.

    Drops rows of weight zero, scales weights and, if `merge`, merges equal rows.
    """
    check_names(list(getattr(X, "columns", [])), "X")
    dtypes = EITHER_FLOAT if keep_float32 else FLOAT64
    rows = numbers_of(X, "X", dtypes, must_vary=True)
    y = None if y is None else numbers_of(y, "y", must_vary=True)
    if y is not None and y.ndim == 2 and y.shape[1] == 0:
        raise ValueError(f"y of shape {y.shape} has no columns: give at least one.")
    options = {"order": "C", "ensure_all_finite": False, "estimator": estimator}
    rows, y = check_X_y(rows, y, dtype=list(dtypes), multi_output=True, **options)
    # For the column names, which the array lacks.
    validate_data(estimator, X, skip_check_array=True)
    estimator._y_ndim = y.ndim
    Y = y.reshape(len(rows), -1)
    estimator.n_outputs_ = Y.shape[1]
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, rows)
    used, weights, unit = comparable(rows, Y, sample_weight, merge)
    n_given = len(rows)
    if used is not None:
        rows, Y = rows[used], Y[used]
    return TrainingData(rows, Y, weights, used, unit, n_given)


def take_names(estimator, table):
    """Give an estimator that was fitted to encoded rows the names of its table."""
    vars(estimator).pop("feature_names_in_", None)
    validate_data(estimator, table, skip_check_array=True)


class FewRowsWarning(UserWarning):
    """A fit had too few rows for reliable hyperparameters and intervals."""


class DataWarning(UserWarning):
    """The data have a property that limits the model; the text explains it."""


def _warn(text, category=DataWarning):
    notes.warn(text, category)


def warn_of_sequence(run_length):
    _warn(
        "The rows look like a sequence: errors of rows that follow each other depend "
        f"on each other. Runs of {run_length} rows are held out together. Standard "
        "deviations and intervals are therefore those of rows away from the sequence, "
        "not of rows between its rows. If the process drifts, they are still too "
        "small. Pass groups= to name the rows that belong together, or shuffle the "
        "rows if their order has no meaning."
    )


def warn_of_order(columns):
    """Say that rows are in order of some columns, whose numbers these are."""
    if len(columns):
        _warn(
            f"The rows are in order of column {', '.join(map(str, columns))} (counted "
            "from 0). Queries from a later time are then unlike all training rows: "
            "predictions return to the mean, and intervals are too narrow if the "
            "outputs have a trend. Predict changes instead of levels, leave out "
            "columns that only grow, and test on the last rows. If the order has no "
            "meaning, shuffle the rows."
        )


def warn_of_outliers():
    _warn(
        "Some outputs look like outliers: they are far away from those of the rows "
        "around them, and held-out rows are predicted better without them. Such rows "
        "have almost no weight in this fit, and intervals do not account for them. "
        "advise(model, X, y) names them; GP(robust=False) gives them full weight."
    )


def warn_of_bounds(outputs, n_outputs, columns):
    """Say that hyperparameters ended at bounds: numbers of outputs, and of columns."""
    if len(outputs):
        which = "the outputs" if n_outputs > 1 else "the output"
        if len(outputs) < n_outputs:
            which = f"output {', '.join(map(str, outputs))} (counted from 0)"
        _warn(
            f"The inputs explain almost nothing of {which}: nearly all variation looks "
            "like noise, so predictions stay close to the mean. Check that the rows of "
            "X and y belong together, and that X has the columns on which y depends. "
            "If y goes up and down many times along a column, such as a time, give "
            "GP(length_scale=...) about a third of the time from one peak to the next."
        )
    if len(columns):
        _warn(
            f"The outputs vary faster along column {', '.join(map(str, columns))} "
            "(counted from 0) than the shortest length scale that is tried, a "
            "twentieth of the column's deviation. If it is a time, add columns for "
            "its cycles (hour, weekday, season); or give GP(length_scale=...), one "
            "number for each column, with a shorter one for it."
        )


def warn_of_codes(X):
    """Say that a number looks like a code for missing values, in columns of numbers."""
    if len(X) < FEW_ROWS:
        return
    sample = sample_of(X)
    codes = codes_of(sample)
    columns = np.flatnonzero(~np.isnan(codes))
    if len(columns):
        first = columns[0]
        share = np.mean(sample[:, first] == codes[first])
        others = f" (so do {len(columns) - 1} others)" if len(columns) > 1 else ""
        _warn(
            f"Column {first} (counted from 0) of X holds {codes[first]:g} in "
            f"{100 * share:.2g} % of its rows, far away from all its other "
            f"numbers{others}. If it stands for a missing value, put NaN there and "
            "give X as a DataFrame: the fit then fills and marks the gaps."
        )


def warn_of_few_rows(n_rows):
    if n_rows < FEW_ROWS:
        _warn(
            f"{n_rows} rows are few: hyperparameters, standard deviations and "
            "intervals are not reliable. Collect at least "
            f"{FEW_ROWS}, or give the hyperparameters if you know them.",
            FewRowsWarning,
        )


def check_weights(sample_weight, rows):
    """One weight per row, shape (n_samples,), not negative and not all zero."""
    numbers = numbers_of(sample_weight, "sample_weight", largest=np.finfo(float).max)
    weights = sample_weight if isinstance(sample_weight, Number) else numbers
    options = {"dtype": np.float64, "ensure_non_negative": True}
    sample_weight = _check_sample_weight(weights, rows, **options)
    if not sample_weight.any():
        raise ValueError(
            "sample_weight is zero for every row, so there is nothing to learn from. "
            "Give at least one row a positive weight."
        )
    return sample_weight


def check_names(names, where):
    """Refuse two columns with the same name; `where` is their owner in messages."""
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(
            f"{where} has two columns called {twice!r}. Rename or drop one of them."
        )


def check_queries(estimator, X):
    """Validated query rows, on the scale of the model; float32 stays."""
    rows, scales = _encoded_queries(estimator, X), vars(estimator).get("input_scales_")
    return rows if scales is None else scales.forward(rows)


def _encoded_queries(estimator, X):
    encoder = getattr(estimator, "encoder_", None)
    if encoder is None:
        return check_rows(estimator, X, reset=False)
    if hasattr(X, "iloc"):
        validate_data(estimator, X, reset=False, skip_check_array=True)
        X = encoder.encode(X)
    rows = numbers_of(X, "X", EITHER_FLOAT)
    rows = check_array(rows, dtype=list(EITHER_FLOAT), order="C", input_name="X")
    if rows.shape[1] != len(encoder.inputs):
        names = ", ".join(column["name"] for column in encoder.columns_)
        raise ValueError(
            f"X has {rows.shape[1]} columns of numbers. The model was fitted to a "
            f"table with the columns {names}: give a DataFrame of these."
        )
    return rows


def check_rows(estimator, X, reset, dtypes=EITHER_FLOAT, order="C"):
    """Validated rows without outputs; `reset` takes column names, else X needs them."""
    rows = numbers_of(X, "X", dtypes)
    options = {"order": order, "ensure_all_finite": False, "estimator": estimator}
    rows = check_array(rows, dtype=list(dtypes), input_name="X", **options)
    validate_data(estimator, X, reset=reset, skip_check_array=True)
    return rows


def as_training_shape(estimator, values):
    """Drop the output axis if y was one-dimensional in fit."""
    return values[..., 0] if estimator._y_ndim == 1 else values


def check_observed(y, mean):
    """Observed outputs as an array of the predictions' shape."""
    y = numbers_of(y, "y")
    if y.size != mean.size or y.shape[:1] != mean.shape[:1]:
        raise ValueError(
            f"y of shape {y.shape} does not fit predictions of shape {mean.shape}: "
            "give one row of outputs per row of X."
        )
    return y.reshape(mean.shape)


def check_coverage(coverage):
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(
            f"coverage={coverage!r} must be a probability between 0 and 1, both "
            "excluded, such as 0.95."
        )


def check_probabilities(q):
    """Probabilities between 0 and 1 as an array with no axis, or with one."""
    try:
        levels = np.asarray(q, dtype=float)
    except (TypeError, ValueError):
        levels = np.empty((0, 0))
    if levels.ndim > 1 or not levels.size or not np.all((levels > 0) & (levels < 1)):
        raise ValueError(
            f"q={q!r} must be a probability between 0 and 1, both excluded, such as "
            "0.9, or a list of them."
        )
    return levels


def check_count(name, value, least=1, advice=""):
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer >= {least}. {advice}")


def check_choice(name, value, allowed, advice=""):
    if value not in allowed:
        raise ValueError(
            f"{name}={value!r} is not known. Choose one of "
            f"{', '.join(map(repr, allowed))}{advice}."
        )


def are_scales(value, n):
    """Whether a value can be one length scale, or one for each of n columns."""
    try:
        scales = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        return False
    return scales.shape in ((), (n,)) and bool(np.all(scales > 0))


def check_groups(groups, X):
    """Numbers of the groups of rows, shape (n_samples,), or None if there are none."""
    if groups is None:
        return None
    groups = np.asarray(groups)
    n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
    if groups.shape != (n_samples,):
        raise ValueError(
            f"groups has shape {groups.shape}, X has {n_samples} rows. Give one group "
            "for each row, such as the patient it was measured on."
        )
    try:
        values, numbers = np.unique(groups, return_inverse=True)
        is_complete = bool(np.all(values == values))
    except TypeError:  # words beside None or numbers have no order
        is_complete = False
    if not is_complete:
        raise ValueError(
            "groups has missing values, or words beside numbers. Give every row a "
            "group, of one type. A row that belongs to no other gets a separate one."
        )
    if numbers.max(initial=0) == 0:
        raise ValueError(
            "groups names one group only, so that none can be held out. Leave groups "
            "out, or give at least two."
        )
    return numbers.ravel()
