"""Scores in the units of the problem: joints, angles, intervals.

The mean log density is ``model.log_density(X, y).mean()``. Scorers for ``scoring=`` are
negated, so that greater is better: `joint_error_scorer`, `angle_error_scorer`. Memory
is that of the errors, one number per joint or output.
"""

from numbers import Real

import numpy as np
from sklearn.metrics import make_scorer
from sklearn.utils import check_array

from ._numbers import LARGEST, numbers_of
from ._validation import check_count, check_coverage, check_weights

__all__ = ["angle_error_scorer", "interval_coverage", "joint_error_scorer"]
__all__ += ["mean_angle_error", "mean_interval_score", "mean_joint_error"]


def joint_distances(Y_true, Y_pred, n_dims=3):
    """Euclidean distance of each joint, shape (n_samples, n_joints)."""
    offsets = (Y_pred - Y_true).reshape(len(Y_true), -1, n_dims)
    return np.linalg.norm(offsets, axis=2)


def angle_differences(Y_true, Y_pred, period=360.0):
    """Absolute differences of angles, the short way round."""
    half = 0.5 * period
    return np.abs((Y_pred - Y_true + half) % period - half)


def mean_joint_error(
    Y_true, Y_pred, *, sample_weight=None, n_dims=3, multioutput="uniform_average"
):
    r"""Mean distance between true and predicted joints, in the units of Y.

    .. math:: \tfrac{1}{n J} \sum_{ij} \lVert \hat y_{ij} - y_{ij} \rVert_2

    Parameters
    ----------
    Y_true, Y_pred : array-like of shape (n_samples, n_joints * n_dims) or \
            (n_samples, n_joints, n_dims)
        Columns ``x, y, z`` of the first joint, then of the second.
    sample_weight : array-like of shape (n_samples,) or None
    n_dims : int, default=3
        Coordinates of a joint; 2 for joints in an image.
    multioutput : {"uniform_average", "raw_values"} or array-like of shape (n_joints,)
        The mean over joints, one error per joint, or a mean with these weights.

    Returns
    -------
    float or ndarray of shape (n_joints,)

    Examples
    --------
    Two joints, one of them 5 mm off:

    >>> from overcover.metrics import mean_joint_error
    >>> truth, predicted = [[0, 0, 0, 10, 10, 10]], [[3, 4, 0, 10, 10, 10]]
    >>> mean_joint_error(truth, predicted)
    2.5
    >>> mean_joint_error(truth, predicted, multioutput="raw_values").tolist()
    [5.0, 0.0]
    """
    check_count("n_dims", n_dims, advice="Joints in space have 3.")
    Y_true = as_joints(Y_true, "Y_true", n_dims)
    Y_pred = as_joints(Y_pred, "Y_pred", n_dims)
    check_same_shape(Y_true=Y_true, Y_pred=Y_pred)
    return _mean(joint_distances(Y_true, Y_pred, n_dims), sample_weight, multioutput)


def mean_angle_error(
    Y_true, Y_pred, *, sample_weight=None, period=360.0, multioutput="uniform_average"
):
    r"""Mean absolute difference of angles, the short way round the period :math:`P`.

    .. math:: \lvert ((\hat y - y + P/2) \bmod P) - P/2 \rvert

    Parameters
    ----------
    Y_true, Y_pred : array-like of shape (n_samples,) or (n_samples, n_outputs)
    sample_weight : array-like of shape (n_samples,) or None
    period : float, default=360.0
        A full turn: 360 for degrees, ``2 * np.pi`` for radians.
    multioutput : {"uniform_average", "raw_values"} or array-like of shape (n_outputs,)
        The mean over outputs, one error per output, or a mean with these weights.

    Returns
    -------
    float or ndarray of shape (n_outputs,)

    Examples
    --------
    From 359 to 1 degree it is two degrees:

    >>> from overcover.metrics import mean_angle_error
    >>> mean_angle_error([359.0, 90.0], [1.0, 90.0])
    1.0
    """
    if not isinstance(period, Real) or not 0 < float(period) < np.inf:
        raise ValueError(
            f"period={period!r} must be a positive number: 360 for degrees, "
            "2 * np.pi for radians."
        )
    Y_true, Y_pred = _as_columns(Y_true=Y_true, Y_pred=Y_pred)
    errors = angle_differences(Y_true, Y_pred, float(period))
    return _mean(errors, sample_weight, multioutput)


def interval_coverage(
    y, low, high, *, sample_weight=None, multioutput="uniform_average"
):
    """Share of the values that lie in their interval, ends included.

    Intervals of nominal probability 0.95 should hold about 0.95 of the values.
    `mean_interval_score` also accounts for their width.

    Parameters
    ----------
    y, low, high : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Observed values, and the ends that ``model.predict_interval(X)`` gives.
    sample_weight, multioutput :
        As in `mean_angle_error`.

    Returns
    -------
    float or ndarray of shape (n_outputs,)

    Examples
    --------
    >>> from overcover.metrics import interval_coverage
    >>> interval_coverage([1.0, 2.0, 3.0, 9.0], [0, 0, 0, 0], [3, 3, 3, 3])
    0.75
    """
    y, low, high = _as_intervals(y, low, high)
    return _mean((low <= y) & (y <= high), sample_weight, multioutput)


def mean_interval_score(
    y, low, high, coverage=0.95, *, sample_weight=None, multioutput="uniform_average"
):
    r"""Mean width of intervals, plus a penalty for values outside; smaller is better.

    .. math:: (h - l) + \tfrac{2}{1-c} \left[ (l - y)_+ + (y - h)_+ \right]

    This is a proper score (Gneiting and Raftery, 2007, sec. 6.2): its mean is smallest
    for the true central interval of probability :math:`c`.

    Parameters
    ----------
    y, low, high : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Observed values, and the ends that ``model.predict_interval(X, coverage)``
        gives.
    coverage : float, default=0.95
        Nominal probability of the intervals.
    sample_weight, multioutput :
        As in `mean_angle_error`.

    Returns
    -------
    float or ndarray of shape (n_outputs,)

    Examples
    --------
    One value inside an interval of width 2, one outside by 0.5:

    >>> from overcover.metrics import mean_interval_score
    >>> mean_interval_score([0.0, 1.5], [-1, -1], [1, 1], coverage=0.75)
    4.0
    """
    check_coverage(coverage)
    y, low, high = _as_intervals(y, low, high)
    outside = np.maximum(low - y, 0.0) + np.maximum(y - high, 0.0)
    scores = (high - low) + 2.0 / (1.0 - float(coverage)) * outside
    return _mean(scores, sample_weight, multioutput)


joint_error_scorer = make_scorer(mean_joint_error, greater_is_better=False)
angle_error_scorer = make_scorer(mean_angle_error, greater_is_better=False)


def as_joints(Y, name, n_dims=3):
    """A finite array of shape (n_samples, n_joints, n_dims)."""
    Y = _as_numbers(Y, name)
    if Y.ndim == 2 and Y.shape[1] % n_dims == 0 and Y.shape[1]:
        return Y.reshape(len(Y), -1, n_dims)
    if Y.ndim != 3 or Y.shape[2] != n_dims:
        raise ValueError(
            f"{name} of shape {Y.shape} does not hold joints of {n_dims} coordinates. "
            f"Give (n_samples, {n_dims} * n_joints) or (n_samples, n_joints, "
            f"{n_dims}), or pass n_dims."
        )
    return Y


def _as_columns(**arrays):
    """Arrays of one shape (n_samples, n_outputs), finite except for ends."""
    for name, Y in arrays.items():
        Y = _as_numbers(Y, name)
        if Y.ndim > 2:
            raise ValueError(
                f"{name} has shape {Y.shape}; give (n_samples,) or "
                "(n_samples, n_outputs)."
            )
        # A column and a vector are the same outputs; two widths are not.
        arrays[name] = Y.reshape(len(Y), -1)
    check_same_shape(**arrays)
    return tuple(arrays.values())


def _as_intervals(y, low, high):
    y, low, high = _as_columns(y=y, low=low, high=high)
    n_crossed = int(np.count_nonzero(low > high))
    if n_crossed:
        raise ValueError(
            f"low exceeds high in {n_crossed} of {low.size} intervals. Give the lower "
            "ends first, as predict_interval does."
        )
    return y, low, high


def _as_numbers(Y, name):
    """A float64 array without NaN; ends of intervals may be infinite."""
    largest = np.inf if name in ("low", "high") else LARGEST
    numbers = numbers_of(Y, name, largest=largest)
    options = {"ensure_all_finite": False, "ensure_2d": False, "allow_nd": True}
    return check_array(numbers, input_name=name, **options)


def check_same_shape(**arrays):
    shapes = {name: Y.shape for name, Y in arrays.items()}
    if len(set(shapes.values())) > 1:
        text = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"Shapes differ: {text}. Give one row per sample in all.")


def _mean(errors, sample_weight, multioutput):
    """Mean of errors (n_samples, n_outputs) over rows, then over outputs."""
    if sample_weight is not None:
        sample_weight = check_weights(sample_weight, errors)
    per_output = np.average(errors, axis=0, weights=sample_weight)
    if isinstance(multioutput, str):
        if multioutput == "raw_values":
            return per_output
        if multioutput == "uniform_average":
            return float(per_output.mean())
    weights = None if isinstance(multioutput, str) else np.asarray(multioutput)
    if weights is None or weights.shape != per_output.shape or not weights.sum():
        raise ValueError(
            f"multioutput={multioutput!r} is not known. Choose 'uniform_average', "
            f"'raw_values', or one weight for each of {len(per_output)}."
        )
    return float(np.average(per_output, weights=weights))
