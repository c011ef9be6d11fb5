"""Calibration as a picture: promised and observed coverage of intervals."""

import numpy as np
from scipy.stats import binom

from .._drawing import FAINT, INK, axes_for
from .._validation import check_observed
from ..machines.errors import Gaussian
from ..targets import Outcomes, Unchanged

# Probability of the band in which calibrated intervals stay.
BAND = 0.95


class CalibrationDisplay:
    """Nominal against observed coverage of central intervals.

    Parameters
    ----------
    nominal : ndarray of shape (n_levels,)
        Coverages that the intervals promise.
    observed : ndarray of shape (n_levels, n_outputs)
        Shares of observations inside the intervals.
    n_rows : int
        Number of rows, for the band of sampling error. All outputs of a row count as
        one observation, so the band is rather too wide than too narrow.

    Attributes
    ----------
    low, high : ndarray of shape (n_levels,)
        The band: calibrated intervals are inside with probability 95 % at each level.
    line_, band_, ax_, figure_
        Of matplotlib, after `plot`; the line is that of all outputs together.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from overcover.plots import CalibrationDisplay
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> display = CalibrationDisplay.from_predictions(
    ...     y, np.zeros(1000), np.ones(1000), ax=Figure().subplots()
    ... )
    >>> bool(np.all(np.abs(display.observed[:, 0] - display.nominal) < 0.05))
    True
    """

    LEVELS = np.append(np.linspace(0.05, 0.95, 19), 0.99)

    def __init__(self, nominal, observed, n_rows):
        self.nominal = nominal
        self.observed = observed
        self.n_rows = n_rows
        tails = (0.5 * (1 - BAND), 0.5 * (1 + BAND))
        self.low, self.high = (binom.ppf(t, n_rows, nominal) / n_rows for t in tails)

    @classmethod
    def from_estimator(
        cls, model, X, y, *, levels=LEVELS, per_output=False, ax=None, **style
    ):
        """Count how often the intervals of a fitted model hold the observation.

        Parameters
        ----------
        model : OverlappingCoverRegressor or Machine
        X : array-like of shape (n_queries, n_features)
            Rows it has not been fitted on.
        y : array-like of shape (n_queries,) or (n_queries, n_outputs)
        levels : array-like of shape (n_levels,)
            Coverages to count.
        per_output, ax, **style
            As in `plot`.
        """
        display = cls._counted(y, model._outcomes_at(X), levels)
        return display.plot(per_output, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls, y, mean, std, *, levels=LEVELS, per_output=False, ax=None, **style
    ):
        """Count how often Gaussian intervals around predictions hold the observation.

        `y`, `mean` and `std` have the shape (n_queries,) or (n_queries, n_outputs); the
        others are as in `from_estimator`.
        """
        mean, std = (np.asarray(a, float).reshape(len(a), -1) for a in (mean, std))
        outcomes = Outcomes(mean, std, Gaussian(), Unchanged())
        display = cls._counted(y, outcomes, levels)
        return display.plot(per_output, ax=ax, **style)

    @classmethod
    def _counted(cls, y, outcomes, levels=LEVELS):
        levels = np.asarray(levels, dtype=float)
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError("levels must be probabilities between 0 and 1.")
        Y = check_observed(y, outcomes.mean)
        beyond = [np.logical_or(*outcomes.beyond(Y, level)) for level in levels]
        observed = 1.0 - np.mean(beyond, axis=1)
        return cls(levels, observed, len(Y))

    def plot(self, per_output=False, ax=None, **style):
        """Draw the curve, the diagonal and the band.

        Parameters
        ----------
        per_output : bool, default=False
            Also draw a thin line for every output.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        **style
            Of the line.
        """
        options = {"layout": "constrained", "figsize": (5.4, 5)}
        self.ax_ = axes_for(ax, "CalibrationDisplay", **options)
        self.figure_ = self.ax_.figure
        label = f"sampling error of {self.n_rows:,} rows"
        self.band_ = self.ax_.fill_between(
            self.nominal, self.low, self.high, color="0.85", lw=0, label=label
        )
        self.ax_.plot([0, 1], [0, 1], ls="--", color=FAINT, lw=1.3, label="calibrated")
        if per_output and self.observed.shape[1] > 1:
            lines = self.ax_.plot(self.nominal, self.observed, color=FAINT, lw=0.7)
            lines[0].set_label("each output")
        look = {"color": INK, "lw": 1.6, "marker": "o", "ms": 4, "label": "intervals"}
        mean = self.observed.mean(axis=1)
        (self.line_,) = self.ax_.plot(self.nominal, mean, **{**look, **style})
        self.ax_.set(xlabel="coverage promised", ylabel="coverage observed")
        self.ax_.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
        place = {"transform": self.ax_.transAxes}
        self.ax_.text(0.03, 0.97, "too wide", va="top", **place)
        self.ax_.text(0.97, 0.5, "too\nnarrow", ha="right", **place)
        self.ax_.legend(loc="lower right", frameon=False)
        return self
