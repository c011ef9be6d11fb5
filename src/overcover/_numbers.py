"""Conversion of values to arrays of finite numbers, with errors that name the place."""

import numpy as np
from scipy.sparse import issparse

from ._streams import blocks_of

# Squares of magnitudes in this range, also divided by the noise, fit float64.
LARGEST, SMALLEST = 1e120, 1e-120
FLOAT64, EITHER_FLOAT = (np.float64,), (np.float64, np.float32)
# For functions that convert rows when they use them.
ANY_NUMBER = tuple(map(np.dtype, "dfebBhHiIlLqQ?"))


def numbers_of(values, name, dtypes=FLOAT64, largest=LARGEST, must_vary=False):
    """Values as an array of finite numbers.

    Accepts lists, arrays of any layout, data frames, and numbers as objects or strings.
    Refuses missing and infinite values (also None, strings such as "nan", and masked
    values), dates, complex and sparse data, and magnitudes that are too large.

    Parameters
    ----------
    values : array-like
    name : str
        The name of the values in messages.
    dtypes : tuple of types
        Types that stay as they are; others become the first.
    largest : float
        The largest allowed magnitude; infinity allows infinite values too.
    must_vary : bool
        Whether to refuse columns that vary by less than `SMALLEST`.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError or TypeError
        With the kind of the error, the number of places, and the first of them.

    Examples
    --------
    >>> numbers_of([1, "2", None], "y")
    Traceback (most recent call last):
    ValueError: Input y contains NaN (missing values) in 1 of 3 places, first in row 2 \
(rows count from 0). Leave these rows out, or fill the values in \
(sklearn.impute).
    """
    names = list(getattr(values, "columns", [])) or None
    array = _as_floats(values, name, dtypes, names)
    if array.size:
        low, high = _extremes(array)
        # In this form, the condition also refuses NaN.
        if not (np.all(low >= -largest) and np.all(high <= largest)):
            _refuse_values(array, name, names, largest)
        if must_vary:
            _refuse_tiny_ranges(low, high, name, names)
    return array


def _as_floats(values, name, dtypes, names):
    """An array of one of the types; numbers may be missing or infinite."""
    if issparse(values):
        raise TypeError(
            f"Sparse data was passed for {name}, but dense data is required. Use "
            "'.toarray()' to convert to a dense numpy array."
        )
    if hasattr(values, "iloc") and getattr(values, "ndim", 1) == 2:
        kinds = [getattr(dtype, "kind", "O") for dtype in values.dtypes]
        if not set(kinds) <= set("fiu"):
            columns = [
                _as_floats(
                    values.iloc[:, j], f"Column {column!r} of {name}", FLOAT64, None
                )
                for j, column in enumerate(names or [])
            ]
            return np.column_stack(columns) if columns else np.empty(values.shape)
    if np.ma.isMaskedArray(values):
        _refuse_masked(values, name)
    try:
        array = np.asarray(values)
    except ValueError as error:
        raise ValueError(f"{name} is no array of numbers: {error}") from None
    if array.dtype in dtypes:
        return array
    if array.dtype.kind == "c":
        raise ValueError(
            f"Complex data not supported: {name} is of {array.dtype}. Give real and "
            "imaginary parts as columns."
        )
    if array.dtype.kind in "mM":
        raise ValueError(
            f"{name} holds dates or durations ({array.dtype}), not numbers. Convert "
            "them first, for instance to seconds since the first date."
        )
    if array.dtype.kind in "OSUT":
        return _words_as_floats(array, name, names)
    if array.dtype.kind not in "fiub":
        raise TypeError(
            f"{name} is of {array.dtype}, not of numbers. Give an array with one type "
            "of numbers for all columns."
        )
    with np.errstate(over="ignore"):  # too large for 64 bits; refused as infinite
        return array.astype(dtypes[0])


def _words_as_floats(array, name, names):
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
                where = _where(place, names)
                raise type(error)(
                    f"{error} ({name}, {where}). Encode it as a number, or leave it "
                    "out."
                ) from None
            floats[place] = np.nan
    return floats


def _extremes(array):
    """Least and largest value of every column; NaN if the column has NaN."""
    blocks = blocks_of(np.atleast_1d(array))
    ends = [(block.min(axis=0), block.max(axis=0)) for block in blocks]
    lows, highs = zip(*ends)
    return np.float64(np.min(lows, axis=0)), np.float64(np.max(highs, axis=0))


def _refuse_values(array, name, names, largest):
    """Raise an error if any value is not allowed."""
    wrong = {
        "NaN (missing values)": (
            np.isnan(array),
            "Leave these rows out, or fill the values in (sklearn.impute).",
        ),
        "infinity, or numbers too large for float64,": (
            np.isinf(array) & (largest < np.inf),
            "Leave these rows out, or correct the values.",
        ),
        f"magnitudes above {largest:g}": (
            (np.abs(array) > largest) & np.isfinite(array),
            f"Correct the values, or divide {name} by a suitable number: squares of "
            "larger ones do not fit float64.",
        ),
    }
    for what, (is_wrong, advice) in wrong.items():
        if is_wrong.any():
            first = np.unravel_index(np.argmax(is_wrong), is_wrong.shape)
            raise ValueError(
                f"Input {name} contains {what} in {np.count_nonzero(is_wrong)} of "
                f"{is_wrong.size} places, first in {_where(first, names)} (rows count "
                f"from 0). {advice}"
            )


def _refuse_masked(values, name):
    is_masked = np.ma.getmaskarray(values)
    if is_masked.any():
        first = np.unravel_index(np.argmax(is_masked), is_masked.shape)
        raise ValueError(
            f"Input {name} has masked values in {np.count_nonzero(is_masked)} of "
            f"{is_masked.size} places, first in {_where(first, None)} (rows count from "
            "0). Leave these rows out, or fill the values in: "
            "numpy.ma.MaskedArray.filled."
        )


def _refuse_tiny_ranges(low, high, name, names):
    """Refuse columns whose squared differences would underflow to zero."""
    width = np.atleast_1d(high - low)
    is_tiny = (width > 0) & (width < SMALLEST)
    if is_tiny.any():
        j = int(np.argmax(is_tiny))
        column = "" if low.ndim == 0 else f"{_column(j, names)} of "
        raise ValueError(
            f"The values of {column}{name} differ by {width[j]:.3g} at most: by less "
            f"than {SMALLEST:g}, whose square does not fit float64. Multiply them by a "
            "suitable number, or leave them out."
        )


def _where(place, names):
    """A place in an array, in words."""
    if len(place) == 2:
        return f"row {place[0]}, {_column(place[1], names)}"
    return f"row {place[0]}" if len(place) == 1 else f"place {tuple(map(int, place))}"


def _column(j, names):
    return f"column {int(j) if names is None else repr(names[j])}"
