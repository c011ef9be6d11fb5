"""Conversion of values to arrays of finite numbers, with errors that name the place."""

import numpy as np
from scipy.sparse import issparse

from ._streams import blocks_of

# Squares of magnitudes in this range, also divided by the noise, fit float64.
LARGEST, SMALLEST = 1e120, 1e-120
FLOAT64, EITHER_FLOAT = (np.float64,), (np.float64, np.float32)
TAKER = " OverlappingCoverRegressor encodes a DataFrame with such columns by itself."
# For functions that convert rows when they use them.
ANY_NUMBER = tuple(map(np.dtype, "dfebBhHiIlLqQ?"))


def numbers_of(values, name, dtypes=FLOAT64, largest=LARGEST, must_vary=False):
    """Values as an array of finite numbers; messages call them by `name`.

    Accepts lists, arrays, data frames, and numbers as objects or strings. Refuses
    missing and infinite values, dates, complex and sparse data, magnitudes above
    `largest` and, if they `must_vary`, columns that vary by less than `SMALLEST`. The
    `dtypes` stay.
    """
    names = list(getattr(values, "columns", [])) or None
    array = _as_floats(values, name, dtypes, names)
    if not array.size:
        return array
    ends = [(b.min(axis=0), b.max(axis=0)) for b in blocks_of(np.atleast_1d(array))]
    lows, highs = zip(*ends)
    low, high = np.float64(np.min(lows, axis=0)), np.float64(np.max(highs, axis=0))
    # In this form, the condition also refuses NaN.
    if not (np.all(low >= -largest) and np.all(high <= largest)):
        _refuse_values(array, name, names, largest)
    if not must_vary:
        return array
    width = np.atleast_1d(high - low)
    # The squared differences of such columns would underflow to zero.
    is_tiny = (width > 0) & (width < SMALLEST)
    if is_tiny.any():
        j = int(np.argmax(is_tiny))
        column = "" if low.ndim == 0 else f"{_column(j, names)} of "
        raise ValueError(
            f"The values of {column}{name} differ by {width[j]:.3g} at most: by less "
            f"than {SMALLEST:g}, whose square does not fit float64. Multiply them by a "
            "suitable number, or leave them out."
        )
    return array


def _as_floats(values, name, dtypes, names):
    """An array of one of the types; numbers may be missing or infinite."""
    if issparse(values):
        raise TypeError(
            f"Sparse data was passed for {name}, but dense data is required. Use "
            "'.toarray()' to convert to a dense numpy array."
        )
    if hasattr(values, "iloc") and getattr(values, "ndim", 1) == 2:
        kinds = {getattr(dtype, "kind", "O") for dtype in values.dtypes}
        if not kinds <= set("fiu"):
            columns = np.empty(values.shape)
            for j, column in enumerate(names or []):
                label = f"Column {column!r} of {name}"
                columns[:, j] = _as_floats(values.iloc[:, j], label, FLOAT64, None)
            return columns
    if np.ma.isMaskedArray(values):
        advice = "Leave these rows out, or fill the values in: "
        advice += "numpy.ma.MaskedArray.filled."
        _refuse(np.ma.getmaskarray(values), name, "has masked values", None, advice)
    # Who does take such columns.
    remedy = TAKER if name.endswith("X") else ""
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is no array of numbers: {error}") from None
    if array.dtype in dtypes:
        return array
    kind = array.dtype.kind
    if kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} is of {array.dtype}. Give real and "
            "imaginary parts as columns."
        )
    if kind in "mM":
        raise ValueError(
            f"{name} holds dates or durations ({array.dtype}), not numbers. Convert "
            f"them first, for instance to seconds since the first date.{remedy}"
        )
    if kind in "OSUT":
        return _words_as_floats(array, name, names, remedy)
    if kind not in "fiub":
        raise TypeError(
            f"{name} is of {array.dtype}, not of numbers. Give an array with one type "
            "of numbers for all columns."
        )
    with np.errstate(over="ignore"):  # too large for 64 bits; refused as infinite
        return array.astype(dtypes[0])


def _words_as_floats(array, name, names, remedy):
    """Numbers from objects, strings or bytes."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        floats = np.empty(array.shape)
    for place in np.ndindex(array.shape):
        try:
            floats[place] = float(array[place])
        except OverflowError:
            floats[place] = np.inf
        except (TypeError, ValueError) as error:
            # pandas has its own objects for missing values.
            if type(array[place]).__name__ not in ("NAType", "NaTType"):
                raise type(error)(
                    f"{error} ({name}, {_where(place, names)}). Encode it as a number, "
                    f"or leave it out.{remedy}"
                ) from None
            floats[place] = np.nan
    return floats


def _refuse_values(array, name, names, largest):
    """Raise an error if any value is not allowed."""
    advice = "Leave these rows out, or fill the values in (sklearn.impute)."
    _refuse(np.isnan(array), name, "contains NaN (missing values)", names, advice)
    if largest < np.inf:
        advice = "Leave these rows out, or correct the values."
        what = "contains infinity, or numbers too large for float64,"
        _refuse(np.isinf(array), name, what, names, advice)
    advice = (
        f"Correct the values, or divide {name} by a suitable number: squares of larger "
        "ones do not fit float64."
    )
    what = f"contains magnitudes above {largest:g}"
    _refuse(np.abs(array) > largest, name, what, names, advice)


def _refuse(is_wrong, name, what, names, advice):
    """Raise an error that names the first wrong place, if there is any."""
    if is_wrong.any():
        first = np.unravel_index(np.argmax(is_wrong), is_wrong.shape)
        raise ValueError(
            f"Input {name} {what} in {np.count_nonzero(is_wrong)} of {is_wrong.size} "
            f"places, first in {_where(first, names)} (rows count from 0). {advice}"
        )


def _where(place, names):
    """A place in an array, in words."""
    if len(place) == 2:
        return f"row {place[0]}, {_column(place[1], names)}"
    return f"row {place[0]}" if len(place) == 1 else f"place {tuple(map(int, place))}"


def _column(j, names):
    return f"column {int(j) if names is None else repr(names[j])}"
