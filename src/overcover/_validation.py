"""Input checks every public estimator shares; errors say what to do next."""

from functools import wraps
from numbers import Integral, Real
from typing import NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight, validate_data

from ._weights import comparable


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


class TrainingData(NamedTuple):
    """What there is to learn from."""

    X: np.ndarray
    """Shape (n_used, n_features)."""

    Y: np.ndarray
    """Shape (n_used, n_outputs)."""

    weights: np.ndarray | None
    """In units of a typical weight, shape (n_used,); None if they are all equal."""

    rows: np.ndarray | None
    """Which of the rows that were given these are, ascending; None for all."""


def check_training_data(
    estimator, X, y, sample_weight=None, keep_float32=False, merge=True
) -> TrainingData:
    """Validated training arrays; remembers the shape of y for the answers.

    Rows of weight zero are dropped, equal rows are merged and weights are scaled: see
    `overcover._weights`.

    Parameters
    ----------
    estimator : the estimator being fitted; gets ``n_features_in_``, ``n_outputs_``
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array-like of shape (n_samples,), number or None
    keep_float32 : bool
        For who converts the rows it looks at, and need not copy all of them.
    merge : bool
        False where it is known that no two rows are equal.

    Returns
    -------
    TrainingData
        float64, but X is float32 if that is kept.
    """
    dtype = [np.float64, np.float32] if keep_float32 else np.float64
    check_names(list(getattr(X, "columns", [])), "X")
    X, y = validate_data(
        estimator, X, y, dtype=dtype, order="C", multi_output=True, y_numeric=True
    )
    estimator._y_ndim = y.ndim
    Y = np.asarray(y, dtype=np.float64).reshape(len(X), -1)
    estimator.n_outputs_ = Y.shape[1]
    if sample_weight is not None:
        sample_weight = _check_sample_weight(
            sample_weight, X, dtype=np.float64, ensure_non_negative=True
        )
        if not sample_weight.any():
            raise ValueError(
                "sample_weight is zero for every row, so there is nothing to learn "
                "from. Give at least one row a positive weight."
            )
    rows, weights = comparable(X, Y, sample_weight, merge)
    if rows is not None:
        X, Y = X[rows], Y[rows]
    return TrainingData(X, Y, weights, rows)


def check_names(names, where):
    """Refuse columns of the same name: a name must say which column is meant.

    Parameters
    ----------
    names : list of str
    where : str
        What has them, for the message.
    """
    if len(set(names)) < len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise ValueError(
            f"{where} has two columns called {twice!r}. Rename or drop one of them."
        )


def check_queries(estimator, X):
    """Validated query rows of shape (n_queries, n_features), float32 or float64.

    float32 is kept: whoever works in chunks need not copy everything.
    """
    dtype = [np.float64, np.float32]
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
