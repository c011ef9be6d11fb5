r"""Weights compare rows: equal rows become one, and a common factor has no effect.

A row of weight w has a w-th of the noise of a row of weight one, like the mean of w
equal observations. Two rules follow, for every estimator:

- w equal rows (inputs and outputs) are the same as one of weight w: equal rows are
  merged, and their weights added. Not where equal inputs often come with different
  outputs, as counts, ratings and rounded readings do: there the number of rows that
  happen to agree tells how large the noise is;
- multiplying all weights by a constant changes nothing: they are divided by a typical
  weight, the mean weight of rows drawn in proportion to their weights. The largest
  twentieth is left out of this mean, or a few huge weights could make all other rows
  count as noise.

A row that weighs less than a typical one counts as its weight as evidence, a heavier
one as one (`evidence_of`). Otherwise rows of almost no weight would decide how large
the noise is.
"""

import numpy as np

from ._streams import slices_of

# Farther apart weights make no difference that could be seen. Rows that others
# contradict are lighter still (`overcover._left_out.LIGHT`), and known by that.
LEAST, MOST = 1e-10, 1e12
# The largest weights, this share of them, do not decide what is typical.
TOP = 0.05
# Where more inputs than this share of those that repeat come with several outputs,
# equal rows are observations of their own.
MOST_MIXED = 0.05
# Rows of less weight say too little of errors to be looked at, where others can be.
LEAST_JUDGED = 0.25


def comparable(X, Y, weights, merge=True):
    """Rows to learn from, ascending or None for all; their weights, None if equal.

    And the weight that counts as one. Rows of weight zero are left out. X may be
    mapped: it is read in blocks. `merge` is False where it is known that no two rows
    are equal.

    >>> X, Y = np.array([[1.0], [2.0], [1.0]]), np.zeros((3, 1))
    >>> comparable(X, Y, np.array([1.0, 4.0, 3.0]))
    (array([0, 1]), None, 4.0)
    """
    largest = 1.0 if weights is None else weights.max()
    rows, weights = used_rows(X, Y, weights, merge)
    if weights is None:
        return rows, None, 1.0
    unit = float(min(largest * typical_of(weights), np.finfo(float).max))
    return rows, in_typical_units(weights), unit


def used_rows(X, Y, weights, merge=True):
    """As `comparable`, with weights over the largest: sums for equal rows."""
    n_rows = len(X)
    if weights is not None:
        # Before anything is added up: 1e300 and its like must not overflow.
        weights = weights / weights.max()
    first = copies_of(X, Y) if merge else np.arange(n_rows)
    is_used = first == np.arange(n_rows)
    if weights is None and is_used.all():
        return None, None
    counts = np.bincount(first, weights, n_rows)
    is_used &= counts > 0
    rows = np.flatnonzero(is_used)
    return None if len(rows) == n_rows else rows, counts[rows].astype(float)


def in_typical_units(weights):
    """Positive weights divided by a typical one; None if they are all equal.

    >>> in_typical_units(np.array([1e-9, 4.0, 4.0, 1e6])).round(3).tolist()
    [0.0, 1.0, 1.0, 250000.0]
    """
    weights = weights / weights.max()
    if weights.min() >= 1.0 - 1e-12:
        return None
    return in_units_of(typical_of(weights), weights)


def typical_of(weights):
    """The weight that counts as one, see `in_typical_units`."""
    n_typical = max(1, len(weights) - int(np.ceil(TOP * len(weights))))
    lower = np.partition(weights, n_typical - 1)[:n_typical]
    share = lower / lower.max()  # whose squares do not vanish
    return float(lower.max() * np.sum(share**2) / np.sum(share))


def in_units_of(typical, weights):
    """Positive weights divided by a typical one, none of them extreme."""
    return np.clip(weights / typical, LEAST, MOST)


def evidence_of(weights):
    """How many observations each row counts for, in (0, 1]; of `in_typical_units`."""
    return np.minimum(weights, 1.0)


def are_judged(weights):
    """Which rows weigh enough for their errors to say something; all, if none does."""
    is_judged = weights >= LEAST_JUDGED
    return is_judged if is_judged.any() else ~is_judged


def judged_first(rows, weights):
    """Rows that weigh enough to be judged by, then the others; how many are judged."""
    if weights is None:
        return rows, len(rows)
    is_judged = weights[rows] >= LEAST_JUDGED
    return np.concatenate([rows[is_judged], rows[~is_judged]]), int(is_judged.sum())


def copies_of(X, Y):
    """As `first_of_equals`, but every row itself where outputs differ too often."""
    first = first_of_equals(X, Y)
    each = np.arange(len(X))
    if np.array_equal(first, each):
        return first
    first_input = first_of_equals(X, np.empty((len(X), 0)))
    n_repeated = len(np.unique(first_input[first_input != each]))
    n_mixed = len(np.unique(first_input[first_input != first]))
    return first if n_mixed <= MOST_MIXED * n_repeated else each


def first_of_equals(X, Y):
    """For every row the first one that equals it, maybe itself.

    Rows are compared by a hash of their bits, and one by one where hashes agree.
    Memory: three numbers for each row, and a block of rows.
    """
    first = np.arange(len(X))
    keys = _hashes(X) * np.uint64(3) + _hashes(Y)
    order = np.argsort(keys, kind="stable")
    alike = np.flatnonzero(keys[order[1:]] == keys[order[:-1]])
    # Chains of rows with equal hashes, looked at along their links.
    for link in slices_of(len(alike), X.shape[1] + Y.shape[1]):
        before, after = order[alike[link]], order[alike[link] + 1]
        equal = (X[before] == X[after]).all(axis=1)
        equal &= (Y[before] == Y[after]).all(axis=1)
        # A hash that two different rows share is so rare that they stay as they are.
        first[after[equal]] = before[equal]
    while True:  # to the start of every chain, in a few doublings
        farther = first[first]
        if np.array_equal(farther, first):
            return first
        first = farther


def _hashes(rows):
    """One number of 64 bits for every row, equal for equal rows."""
    rng = np.random.default_rng(0)
    multipliers = rng.integers(2**63, size=rows.shape[1], dtype=np.uint64)
    multipliers |= np.uint64(1)
    keys = np.empty(len(rows), dtype=np.uint64)
    for block in slices_of(*rows.shape):
        # Minus zero is zero.
        values = np.ascontiguousarray(rows[block], dtype=np.float64) + 0.0
        bits = values.view(np.uint64)
        # Numbers with few digits differ in their high bits alone.
        bits ^= bits >> np.uint64(32)
        keys[block] = bits @ multipliers
    return keys
