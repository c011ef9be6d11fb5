"""Records: what the arrays of a named tuple must be, so that they fit each other.

Compiled loops trust their arrays; a file need not tell the truth. So a class that can
be stored declares its fields:

    @record(means=finite("K d"))
    class EuclideanRouter(NamedTuple):
        means: np.ndarray

Letters stand for sizes that must agree within a record and with the model: N rows of
the training data, n of the subdomain, d features, q outputs, r pivots, K subdomains, l
rows left out, L ways to localise, G groups of outputs, h hyperparameters. "P" is the
size of a packed triangle of n rows, "P?" that or nothing, "r+q" a sum, a number itself.
The first field that has a letter decides its size. A list of one `Array` is a list with
such an array for each of K subdomains; `PART` is another record, `PART_OR_NONE` that or
None. A method `check` may refuse, by a ValueError, what no range can describe.

A class that has gained fields gives those that `older` stores lack by a classmethod of
this name, as a dict, from the others.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

T = TypeVar("T")
# Of 64 bits, so that numbers of 32 bits are compared as such.
LARGEST, SMALLEST = np.finfo(float).max, np.nextafter(0.0, 1.0)
# More rows than any table has.
MOST = 2**62
PART, PART_OR_NONE = "part", "part or None"
# A single positive number.
NUMBER = "number"


class Array(NamedTuple):
    """What an array must be; NaN is not allowed."""

    shape: str  # letters, with spaces between them
    least: float = -LARGEST
    most: Any = LARGEST  # a number, or the letter of a size that values stay below
    is_whole: bool = False  # integers of 64 bits, or else floats of 64 bits
    is_factor: bool = False  # a store may narrow it: only variances depend on it
    rule: Callable[[np.ndarray], bool] | None = None  # what else must be true

    @property
    def kinds(self) -> tuple[str, ...]:
        """Types that the array may be of in memory."""
        if self.is_whole:
            return ("int64",)
        return ("float64", "float32") if self.shape.endswith("P?") else ("float64",)


# Any numbers but infinite ones; any numbers; zero, or finite numbers above; a packed
# Cholesky factor.
finite = Array
unbounded = partial(Array, least=-np.inf, most=np.inf)
not_negative = partial(Array, least=0.0)
factor = partial(Array, is_factor=True)


def positive(shape, most=LARGEST) -> Array:
    """Numbers above zero; with ``most=np.inf`` infinite ones too."""
    return Array(shape, SMALLEST, most)


def whole(shape, least=0, most: Any = MOST) -> Array:
    """Whole numbers."""
    return Array(shape, least, most, is_whole=True)


def record(**fields) -> Callable[[type[T]], type[T]]:
    """Declare fields: an `Array`, a list of one, `PART` or `PART_OR_NONE`."""

    def declare(kind):
        kind._record = fields
        return kind

    return declare


def record_of(kind) -> dict[str, Any]:
    """Fields of a class; of a router, from its `shapes` of arrays of finite numbers."""
    if hasattr(kind, "_record"):
        return kind._record
    labels = {"labels": whole("N", 0, "K")}
    return {k: labels.get(k, finite(shape)) for k, shape in kind.shapes.items()}
