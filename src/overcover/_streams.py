"""Rows that may be too many for memory: looked at in blocks, changed when looked at.

An array that is mapped from a file is read where it is indexed. What has to see all
rows therefore walks over them in blocks of fixed size, and what wants them in other
units gets a view that converts the rows asked for.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

BLOCK_NUMBERS = 2**21
"""Numbers in memory at a time: 16 MB."""


def rows_per_block(n_columns: int) -> int:
    """How many rows make a block of at most `BLOCK_NUMBERS` numbers; at least one."""
    return max(1, BLOCK_NUMBERS // max(1, n_columns))


def slices_of(n_rows: int, n_columns: int) -> Iterator[slice]:
    """Successive slices of `n_rows` rows, a block each.

    Examples
    --------
    >>> [(block.start, block.stop) for block in slices_of(5, 2**20)]
    [(0, 2), (2, 4), (4, 5)]
    """
    step = rows_per_block(n_columns)
    for start in range(0, n_rows, step):
        yield slice(start, min(start + step, n_rows))


def blocks_of(rows) -> Iterator[np.ndarray]:
    """Successive rows of an array of any number of axes, a block at a time.

    Examples
    --------
    >>> [block.shape for block in blocks_of(np.zeros((5, 2**20)))]
    [(2, 1048576), (2, 1048576), (1, 1048576)]
    """
    for block in slices_of(len(rows), int(np.prod(rows.shape[1:]))):
        yield rows[block]


class Moments(NamedTuple):
    """What is known of columns, each of shape (n_columns,)."""

    mean: np.ndarray
    deviation: np.ndarray
    is_constant: np.ndarray
    """Columns that do not vary; rounding leaves 1e9 with a deviation of 1e-7."""


def moments_of(X) -> Moments:
    """Mean and deviation of every column; memory: a block.

    Parameters
    ----------
    X : array of shape (n_samples, n_columns)
        In memory or mapped.

    Examples
    --------
    >>> moments_of(np.array([[1.0, 5.0], [3.0, 5.0]]))
    Moments(mean=array([2., 5.]), deviation=array([1., 0.]), \
is_constant=array([False,  True]))
    """
    total, peak = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    for block in slices_of(*X.shape):
        rows = np.asarray(X[block], dtype=np.float64)
        total += rows.sum(axis=0)
        np.maximum(peak, np.abs(rows).max(axis=0), out=peak)
    mean = total / max(1, len(X))
    squares = np.zeros(X.shape[1])
    for block in slices_of(*X.shape):
        rows = X[block] - mean
        squares += np.einsum("ij,ij->j", rows, rows)
    deviation = np.sqrt(squares / max(1, len(X)))
    return Moments(mean, deviation, deviation <= 1e-12 * peak)


class Rows:
    """A view of rows in other units: ``((X - shift) / scale)[:, columns]``.

    As float64, whatever X is; only the rows asked for are read and made.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        In memory or mapped.
    scale, shift : ndarray of shape (n_features,) or float
    columns : ndarray of bool of shape (n_features,) or None
        Which to show; None for all.

    Examples
    --------
    >>> X = np.array([[1, 10], [2, 20], [3, 30]], dtype=np.float32)
    >>> rows = Rows(X, scale=np.array([1.0, 10.0]))
    >>> rows.shape, rows[[2, 0]].tolist()
    ((3, 2), [[3.0, 3.0], [1.0, 1.0]])
    """

    def __init__(self, X, scale=1.0, shift=0.0, columns=None):
        self.X, self.scale, self.shift, self.columns = X, scale, shift, columns
        width = X.shape[1] if columns is None else int(np.sum(columns))
        self.shape = (len(X), width)

    dtype, ndim = np.dtype(np.float64), 2

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        taken = np.asarray(self.X[rows], dtype=np.float64)
        made = (taken - self.shift) / self.scale
        return made if self.columns is None else made[..., self.columns]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self[:], dtype=dtype)
