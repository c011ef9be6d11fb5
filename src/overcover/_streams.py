"""Rows that may be too many for memory: blocks of rows, and views in other units."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# Numbers in memory at a time: 16 MB.
BLOCK_NUMBERS = 2**21
# At most this share of a column's cells are outliers, if they make the standard
# deviation so many times as large as it is without them.
FEW_CELLS, OUTWEIGHED = 0.005, 5.0
# A number is a code, such as -9999 for a missing value, if at least so many cells of a
# sample and this share are equal to it, if it is so many ranges of the other cells
# away from them, and if these have so many different values.
LEAST_CODED, LEAST_CODED_SHARE, CODE_RANGES, LEAST_VALUES = 3, 0.001, 5.0, 10
# Queries are clipped at this many length scales from zero: squares stay finite.
FARTHEST = 1e140
# Standard deviations from the mean to which `without_far_cells` moves outliers.
NEAR_ENOUGH = 10.0
# With fewer rows than the first, no cell is an outlier; rows of a sample, at least.
LEAST_JUDGED, LEAST_SAMPLED = 10, 1000


def rows_per_block(n_columns: int) -> int:
    """Number of rows in a block of at most `BLOCK_NUMBERS` numbers; at least one."""
    return max(1, BLOCK_NUMBERS // max(1, n_columns))


def slices_of(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Successive slices of `n_rows` rows, one per block."""
    step = rows_per_block(n_columns)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def blocks_of(rows) -> Iterator[np.ndarray]:
    """Successive rows of an array of any number of axes, a block at a time."""
    for block in slices_of(len(rows), int(np.prod(rows.shape[1:]))):
        yield rows[block]


class Moments(NamedTuple):
    """Statistics of columns, each of shape (n_columns,)."""

    mean: np.ndarray
    deviation: np.ndarray
    is_constant: np.ndarray  # columns that do not vary, except by rounding


def moments_of(X) -> Moments:
    """Mean and standard deviation of every column; memory: a block."""
    return _measure(X)[0]


def _measure(X):
    """Moments, and the largest distance of a column's cells from its mean."""
    total, peak = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for block in slices_of(*X.shape):
        rows = np.asarray(X[block], dtype=np.float64)
        total += rows.sum(axis=0)
        np.maximum(peak, np.abs(rows).max(axis=0), out=peak)
    mean = total / max(1, len(X))
    squares, farthest = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for block in slices_of(*X.shape):
        rows = X[block] - mean
        squares += np.einsum("ij,ij->j", rows, rows)
        np.maximum(farthest, np.abs(rows, out=rows).max(axis=0), out=farthest)
    deviation = np.sqrt(squares / max(1, len(X)))
    return Moments(mean, deviation, deviation <= 1e-12 * peak), farthest


def typical_moments_of(X) -> Moments:
    """As `moments_of`, without outliers that raise a deviation `OUTWEIGHED` times."""
    plain, farthest = _measure(X)
    mean, deviation = plain.mean.copy(), plain.deviation.copy()
    if len(X) < LEAST_JUDGED:
        return plain
    # Without a cell beyond this distance, no column can have outliers.
    reach = 0.8 / np.sqrt(max(FEW_CELLS, 1.0 / len(X)))
    suspects = np.flatnonzero((farthest > reach * deviation) & ~plain.is_constant)
    if not len(suspects):
        return plain
    sample = sample_of(X)[:, suspects]
    offsets = np.abs(sample - np.median(sample, axis=0))
    n_kept = len(sample) - max(1, int(FEW_CELLS * len(sample)))
    near = np.argpartition(offsets, n_kept - 1, axis=0)[:n_kept]
    inner = moments_of(np.take_along_axis(sample, near, axis=0))
    is_outweighed = deviation[suspects] > OUTWEIGHED * inner.deviation
    replaced = is_outweighed & ~inner.is_constant
    mean[suspects[replaced]] = inner.mean[replaced]
    deviation[suspects[replaced]] = inner.deviation[replaced]
    return Moments(mean, deviation, plain.is_constant)


def sample_of(X) -> np.ndarray:
    """Evenly spaced rows, at most a block of numbers or `LEAST_SAMPLED` rows."""
    n_sampled = min(len(X), max(LEAST_SAMPLED, rows_per_block(X.shape[1])))
    sampled = np.linspace(0, len(X) - 1, n_sampled).astype(np.intp)
    return np.asarray(X[sampled], dtype=np.float64)


def codes_of(sample) -> np.ndarray:
    """The number of each column that looks like a code, far from all others; or NaN."""
    codes = np.full(sample.shape[1], np.nan)
    least = max(LEAST_CODED, LEAST_CODED_SHARE * len(sample))
    for ends in (sample.min(axis=0), sample.max(axis=0)):
        is_end = sample == ends
        for j in np.flatnonzero(is_end.sum(axis=0) >= least):
            others = np.unique(sample[~is_end[:, j], j])
            if len(others) >= LEAST_VALUES:
                distance = np.abs(others - ends[j]).min()
                if distance > CODE_RANGES * np.ptp(others):
                    codes[j] = ends[j]
    return codes


def center_of(rows) -> np.ndarray:
    """The mean row, without outliers in columns where they determine the mean."""
    mean, typical = rows.mean(axis=0), typical_moments_of(rows)
    is_pulled = np.abs(mean - typical.mean) > typical.deviation
    return np.where(is_pulled, typical.mean, mean)


class Rows:
    """Rows in other units, ``((X - shift) / scale)[:, columns]``, maybe clipped.

    An index reads and converts only its own rows; `columns` is a mask, or None for all.
    """

    def __init__(self, X, scale=1.0, shift=0.0, columns=None, bounds=None):
        if columns is not None and np.all(columns):
            columns = None
        self.X, self.scale, self.shift, self.columns = X, scale, shift, columns
        self.bounds = bounds
        width = X.shape[1] if columns is None else int(np.sum(columns))
        self.shape = (len(X), width)

    dtype, ndim = np.dtype(np.float64), 2

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        values = np.asarray(self.X[rows], dtype=np.float64)
        values = (values - self.shift) / self.scale
        if self.bounds is not None:
            np.clip(values, *self.bounds, out=values)
        if self.columns is None:
            return values
        return values.compress(self.columns, axis=-1)  # in the order of rows

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[:], dtype=dtype)


def without_far_cells(X):
    """The rows, with outliers moved towards the mean of their column; X without any."""
    mean, deviation, _ = typical_moments_of(X)
    is_outweighed = deviation < moments_of(X).deviation
    if not is_outweighed.any():
        return X
    reach = np.where(is_outweighed, NEAR_ENOUGH * deviation, np.inf)
    return Rows(X, bounds=(mean - reach, mean + reach))
