"""Calibration as a picture: promised and observed coverage of intervals."""

import numpy as np
from scipy.stats import binom, norm

from .._drawing import FAINT, INK, axes_for
from .._validation import check_observed

LEVELS = np.append(np.linspace(0.05, 0.95, 19), 0.99)
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
    line_ : matplotlib Line2D
        All outputs together; only after `plot`.
    band_ : matplotlib PolyCollection
    ax_ : matplotlib Axes
    figure_ : matplotlib Figure

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
        model : estimator with ``predict_interval``
            An `OverlappingCoverRegressor` or a machine, fitted.
        X : array-like of shape (n_queries, n_features)
            Rows it has not been fitted on.
        y : array-like of shape (n_queries,) or (n_queries, n_outputs)
        levels : array-like of shape (n_levels,)
            Coverages to count.
        per_output : bool, default=False
            Also draw a thin line for every output.
        ax : matplotlib Axes, default=None
        **style
            Of the line.

        Returns
        -------
        CalibrationDisplay
        """
        mean, std = model.predict(X, return_std=True)
        half = np.array([model.errors_.half_width(level) for level in levels])
        return cls._counted(y, mean, std, levels, half).plot(per_output, ax=ax, **style)

    @classmethod
    def from_predictions(
        cls, y, mean, std, *, levels=LEVELS, per_output=False, ax=None, **style
    ):
        """Count how often Gaussian intervals around predictions hold the observation.

        Parameters
        ----------
        y, mean, std : array-like of shape (n_queries,) or (n_queries, n_outputs)
        levels, per_output, ax, **style
            As in `from_estimator`.

        Returns
        -------
        CalibrationDisplay
        """
        half = norm.ppf(0.5 + 0.5 * np.asarray(levels, float))[:, None]
        mean, std = np.asarray(mean, float), np.asarray(std, float)
        return cls._counted(y, mean, std, levels, half).plot(per_output, ax=ax, **style)

    @classmethod
    def _counted(cls, y, mean, std, levels, half):
        levels = np.asarray(levels, dtype=float)
        if levels.ndim != 1 or not np.all((levels > 0) & (levels < 1)):
            raise ValueError("levels must be probabilities between 0 and 1.")
        shape = (len(mean), -1)
        error = np.abs(check_observed(y, mean) - mean).reshape(shape)
        std = std.reshape(shape)
        observed = np.array([np.mean(error <= h * std, axis=0) for h in half])
        return cls(levels, observed, len(mean))

    def plot(self, per_output=False, ax=None, **style):
        """Draw the curve, the diagonal and the band.

        Parameters
        ----------
        per_output : bool, default=False
            Also draw a thin line for every output.
        ax : matplotlib Axes, default=None
        **style
            Of the line.

        Returns
        -------
        self
        """
        self.ax_, self.figure_ = axes_for(ax, "CalibrationDisplay", figsize=(5.4, 5))
        self.band_ = self.ax_.fill_between(
            self.nominal,
            self.low,
            self.high,
            color="0.85",
            lw=0,
            label=f"sampling error of {self.n_rows:,} rows",
        )
        self.ax_.plot([0, 1], [0, 1], ls="--", color=FAINT, lw=1.3, label="calibrated")
        if per_output and self.observed.shape[1] > 1:
            thin = {"color": FAINT, "lw": 0.7}
            lines = self.ax_.plot(self.nominal, self.observed, **thin)
            lines[0].set_label("each output")
        look = {"color": INK, "lw": 1.6, "marker": "o", "ms": 4}
        (self.line_,) = self.ax_.plot(
            self.nominal,
            self.observed.mean(axis=1),
            **{**look, "label": "intervals", **style},
        )
        self.ax_.set(
            xlabel="coverage promised",
            ylabel="coverage observed",
            xlim=(0, 1),
            ylim=(0, 1),
            aspect="equal",
        )
        self.ax_.text(0.03, 0.97, "too wide", va="top", transform=self.ax_.transAxes)
        self.ax_.text(
            0.97, 0.5, "too\nnarrow", ha="right", transform=self.ax_.transAxes
        )
        self.ax_.legend(loc="lower right", frameon=False)
        return self
