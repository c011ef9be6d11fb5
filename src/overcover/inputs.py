r"""Inputs with long tails: a scale that is a logarithm in the tail.

    X, Y -> [inputs] -> metric -> partition -> cover -> machines -> routing
    -> combination -> prediction

A kernel compares rows by differences. In a column of incomes, areas or counts, most
rows lie close together and a few very far away, and no length scale suits both. Such a
column :math:`x` is replaced by

.. math:: z = \operatorname{asinh}\frac{x - c}{w} ,

which is linear near the centre :math:`c` and a logarithm far away from it. A tail on
one side begins at the other end of the column; with two tails, the centre is the
median. Only columns with long tails are considered, and only if held-out rows are
then predicted better.
"""

from typing import NamedTuple

import numpy as np

from . import targets
from ._records import finite, not_negative, record
from ._streams import Rows, sample_of

AUTO = "auto"
CHOICES = (AUTO, "identity")
# "auto" looks at so many rows at most, and needs so many. Wider inputs, such as
# histograms, have one unit for all columns.
MOST_JUDGED, LEAST_JUDGED, MOST_FEATURES = 600, 60, 100
# What the mean log density must gain.
LEAST_GAIN = 0.01
# A tail is long if its last percent begins so many times farther from the median than
# the last quarter does: 3.4 for normal, 5.6 for exponential columns.
LONG = 6.0
# A column with fewer values is a code, or a count of a few.
LEAST_VALUES = 16
# The width is this quantile of distances from the end where a tail on one side begins.
NEAR = 0.1
# Of a normal column, the quartiles lie so many deviations apart.
QUARTILES = 1.35


@record(center=finite("d"), width=not_negative("d"))
class InputScales(NamedTuple):
    """A scale for every column of X."""

    center: np.ndarray
    """Where the scale is linear, shape (n_features,)."""

    width: np.ndarray
    """How far it is linear, shape (n_features,); zero where nothing is changed."""

    @property
    def is_changed(self) -> np.ndarray:
        """For every column whether its scale is another, shape (n_features,)."""
        return self.width > 0

    def forward(self, X) -> np.ndarray:
        """Rows on the scale of the model, float64, the same shape."""
        Z = np.array(X, dtype=np.float64)
        j = self.is_changed
        Z[..., j] = np.arcsinh((Z[..., j] - self.center[j]) / self.width[j])
        return Z

    def inverse(self, Z) -> np.ndarray:
        """The way back."""
        X = np.array(Z, dtype=np.float64)
        j = self.is_changed
        X[..., j] = self.center[j] + self.width[j] * np.sinh(X[..., j])
        return X

    def slopes(self, Z) -> np.ndarray:
        """Derivatives of `forward`, at rows on the scale of the model."""
        slopes, j = np.ones(np.shape(Z)), self.is_changed
        slopes[..., j] = 1.0 / (self.width[j] * np.cosh(Z[..., j]))
        return slopes


class ScaledRows(Rows):
    """A view of rows on the scale of the model: an index converts its own rows only."""

    def __init__(self, X, scales):
        super().__init__(X)
        self.scales = scales

    def __getitem__(self, rows):
        return self.scales.forward(self.X[rows])


def on_scale(scales, X):
    """Rows on the scale of the model; X itself without scales, or if it is None.

    Mapped rows stay where they are, and are converted as they are read.
    """
    if scales is None or X is None:
        return X
    return ScaledRows(X, scales) if isinstance(X, np.memmap) else scales.forward(X)


def choose(data, groups, judge) -> InputScales | None:
    """Scales of all columns with long tails, if they help; else None.

    The machine `judge` predicts rows that are held out, with X as it is and on these
    scales; the scales must be better beyond doubt. Nothing is tried without long
    tails. Work and memory do not grow with the number of rows.
    """
    n_rows, n_features = data.X.shape
    if n_rows < LEAST_JUDGED or n_features > MOST_FEATURES:
        return None
    scales = learn(data.X)
    if not scales.is_changed.any():
        return None
    some = targets.some_rows(data, MOST_JUDGED)
    groups = None if groups is None else groups[some.rows]
    before, after = (
        targets.held_out(
            some._replace(X=X), targets.Unchanged(), groups, judge
        ).density.mean(axis=1)
        for X in (some.X, scales.forward(some.X))
    )
    gain = after - before
    doubt = targets.standard_error(gain)
    return scales if np.mean(gain) > max(LEAST_GAIN, targets.SURE * doubt) else None


def learn(X) -> InputScales:
    """Scales of the columns with long tails, from a sample of the rows.

    >>> x = np.random.default_rng(0).lognormal(0.0, 2.0, (1000, 1))
    >>> bool(learn(x).is_changed[0]), bool(learn(np.log(x)).is_changed[0])
    (True, False)
    """
    center, width = np.zeros((2, X.shape[1]))
    for j, column in enumerate(sample_of(X).T):
        if len(np.unique(column)) >= LEAST_VALUES:
            center[j], width[j] = scale_of(column)
    return InputScales(center, width)


def scale_of(column) -> tuple[float, float]:
    """Centre and width of a column with a long tail; (0, 0) without one."""
    low, first, median, third, high = np.quantile(column, [0.01, 0.25, 0.5, 0.75, 0.99])
    is_long = {
        -1: median - low > LONG * (median - first),
        1: high - median > LONG * (third - median),
    }
    if all(is_long.values()):
        center, width = median, (third - first) / QUARTILES
    elif is_long[1] or is_long[-1]:
        center = column.min() if is_long[1] else column.max()
        distances = np.abs(column - center)
        width = np.quantile(distances[distances > 0], NEAR)
    else:
        return 0.0, 0.0
    return (float(center), float(width)) if width > 0 else (0.0, 0.0)
