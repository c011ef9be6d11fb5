"""Input checks every public estimator shares; errors say what to do next."""

from contextlib import contextmanager
from functools import wraps
from numbers import Integral, Real

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data


def all_or_nothing(fit):
    """Decorate `fit` so that, if it fails, the estimator is what it was before."""

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


@contextmanager
def naming_columns(**tables):
    """Add to the error of a check which column of which table is at fault.

    Parameters
    ----------
    **tables : array-like
        What is checked inside, by the name that users know it by.
    """
    try:
        yield
    except (TypeError, ValueError) as error:
        for name, table in tables.items():
            fault = fault_in(table, name)
            if fault:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                first_line = str(error).split("\n")[0].rstrip(".")
                raise kind(f"{first_line}. {fault}") from error
        raise


def fault_in(table, name):
    """The first column that holds what is no finite number, in words; None if none.

    Examples
    --------
    >>> print(fault_in([[0.0, 1.0], [2.0, np.nan]], "X"))
    Column 1 of X holds a missing value in row 1 (counted from 0): replace it, or \
leave out the row.
    >>> fault_in([[0.0, 1.0]], "X")
    """
    try:
        values = np.asarray(table)
    except (TypeError, ValueError):  # such as rows of different lengths
        return None
    if values.ndim not in (1, 2) or values.dtype.kind not in "fiubOUS":
        return None
    called = getattr(table, "columns", None)
    for j, column in enumerate(values.T if values.ndim == 2 else [values]):
        i = _first_fault(column)
        if i is not None:
            which = j if called is None else repr(called[j])
            of = f"Column {which} of {name}" if values.ndim == 2 else name
            what, advice = _describe(column[i])
            return f"{of} holds {what} in row {i} (counted from 0){advice}"
    return None


def _first_fault(column):
    """Where a column first holds what is no finite number; None if nowhere."""
    try:
        bad = ~np.isfinite(column.astype(np.float64, copy=False))
        return int(bad.argmax()) if bad.any() else None
    except (TypeError, ValueError):
        return next(i for i, value in enumerate(column) if _describe(value))


def _describe(value):
    """What is wrong with a value, and what to do; None for a finite number."""
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        value = np.nan
    try:
        value = float(value)
    except (TypeError, ValueError):
        value = value.item() if isinstance(value, np.generic) else value
        return repr(value), ", not a number: encode it, or leave out the column."
    if np.isfinite(value):
        return None
    what = "a missing value" if np.isnan(value) else "an infinite value"
    return what, ": replace it, or leave out the row."


def check_training_data(estimator, X, y, sample_weight=None, keep_float32=False):
    """Validated training arrays; remembers the shape of y for the answers.

    Rows of weight zero are dropped: a row that counts zero times is not there.

    Parameters
    ----------
    estimator : the estimator being fitted; gets ``n_features_in_``, ``n_outputs_``
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array-like of shape (n_samples,), number or None
    keep_float32 : bool
        For who converts the rows it looks at, and need not copy all of them.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features), float64, or float32 if that is kept
    Y : ndarray of shape (n_samples, n_outputs), float64
    sample_weight : ndarray of shape (n_samples,) or None
    """
    dtype = [np.float64, np.float32] if keep_float32 else np.float64
    with naming_columns(X=X, y=y):
        X, y = validate_data(
            estimator, X, y, dtype=dtype, order="C", multi_output=True, y_numeric=True
        )
        Y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    estimator._y_ndim = y.ndim
    estimator.n_outputs_ = Y.shape[1]
    if sample_weight is None:
        return X, Y, None
    with naming_columns(sample_weight=sample_weight):
        sample_weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
    used = sample_weight > 0
    if not used.any():
        raise ValueError(
            "sample_weight is zero for every row, so there is nothing to learn from. "
            "Give at least one row a positive weight."
        )
    return X[used], Y[used], sample_weight[used]


def check_queries(estimator, X):
    """Validated query rows of shape (n_queries, n_features), float32 or float64.

    float32 is kept: whoever works in chunks need not copy everything.
    """
    dtype = [np.float64, np.float32]
    with naming_columns(X=X):
        return validate_data(estimator, X, dtype=dtype, order="C", reset=False)


def as_training_shape(estimator, values):
    """Drop the output axis where y was one-dimensional in fit."""
    return values[..., 0] if estimator._y_ndim == 1 else values


def check_observed(y, mean):
    """Observed outputs as an array of the predictions' shape."""
    y = np.asarray(y, dtype=np.float64)
    if y.size != mean.size or len(y) != len(mean):
        raise ValueError(
            f"y of shape {y.shape} does not fit predictions of shape {mean.shape}: "
            "give one row of outputs per row of X."
        )
    return y.reshape(mean.shape)


def check_coverage(coverage):
    """Refuse an interval probability outside (0, 1)."""
    if not isinstance(coverage, Real) or not 0 < float(coverage) < 1:
        raise ValueError(
            f"coverage={coverage!r} must be a probability between 0 and 1, both "
            "excluded, such as 0.95."
        )


def check_count(name, value, least=1, advice=""):
    """Refuse anything but an integer of at least `least`."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name}={value!r} must be an integer >= {least}. {advice}")


def check_choice(name, value, allowed, advice=""):
    """Refuse a word that is not among the allowed ones."""
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
