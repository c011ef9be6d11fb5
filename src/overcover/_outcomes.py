"""Predictions on the scale of a model, in the units that users ask for."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import ndtr

# Nodes of the integral over errors, in Gaussian deviations. The trapezoidal rule is
# exact to all digits that matter for such densities.
NODES = np.arange(0.5, 6.1, 0.5)
_DENSITY = np.exp(-0.5 * NODES**2)
WEIGHTS = _DENSITY / (1.0 + 2.0 * _DENSITY.sum())
# Beyond this node tails count as Gaussian where they are heavier: of the exponential of
# a heavy tail there is no mean.
LAST_OBSERVED = 2.0


class Outcomes(NamedTuple):
    """What may be observed at queries: answers on the model's scale, in units of y."""

    mean: np.ndarray
    """On the scale of the model, shape (n_queries, n_outputs)."""

    std: np.ndarray | None
    """The same; None if not wanted, or if the machine has none."""

    errors: Any
    """How errors are distributed on the scale of the model."""

    target: Any
    """The way to the units of the outputs."""

    def moments(self):
        """Mean and standard deviation, each (n_queries, n_outputs); std may be None.

        The mean of what the errors lead to, not what the mean leads to. Where there are
        no standard deviations, it is the latter.
        """
        mean, std, _, target = self
        if not np.any(target.is_changed):
            return mean, std
        if std is None:
            return target.inverse(mean), None
        middle = self.quantile(0.5)
        first, second = np.zeros_like(mean), np.zeros_like(mean)
        for off, weight in self._nodes():
            off = target.inverse(mean + off * std) - middle
            first += weight * off
            second += weight * off**2
        variance = np.maximum(second - first**2, 0.0)
        pairs = (middle + first, mean), (np.sqrt(variance), std)
        return tuple(np.where(target.is_changed, *pair) for pair in pairs)

    def covariances(self, covariances):
        """Covariances on the scale of the model, (n_outputs, n, n), in units of y.

        Correlations are those on the scale, standard deviations those of `moments`.
        """
        (_, std), before = self.moments(), self.std
        assert std is not None and before is not None, "covariances have variances"
        stretch = np.divide(std, before, out=np.zeros_like(std), where=before > 0)
        return covariances * stretch.T[:, :, None] * stretch.T[:, None, :]

    def slopes(self):
        """How means in units of y change with those on the scale, std held constant."""
        assert self.std is not None, "a machine with slopes has variances"
        step = np.where(self.std > 0, 1e-3 * self.std, 1e-6)
        ends = (self._replace(mean=self.mean + sign * step) for sign in (-1, 1))
        low, high = (end.moments()[0] for end in ends)
        return np.where(self.target.is_changed, (high - low) / (2.0 * step), 1.0)

    def _nodes(self):
        """Errors in standard deviations, and their weights; without the median."""
        longest = self.errors.ends(2.0 * ndtr(LAST_OBSERVED) - 1.0, self.std)
        for node, weight in zip(NODES, WEIGHTS):
            ends = self.errors.ends(2.0 * ndtr(node) - 1.0, self.std)
            if node > LAST_OBSERVED:
                stretch = node / LAST_OBSERVED
                # An end may lie beyond the mean, and is not stretched then.
                ends = [
                    np.where(last > 0, np.minimum(end, last * stretch), end)
                    for end, last in zip(ends, longest)
                ]
            yield -ends[0], weight
            yield ends[1], weight

    def interval(self, coverage):
        """Ends of central intervals, each (n_queries, n_outputs)."""
        below, above = (end * self.std for end in self.errors.ends(coverage, self.std))
        inverse = self.target.inverse
        return inverse(self.mean - below), inverse(self.mean + above)

    def quantile(self, q):
        """What a share q of observations stays below, shape (n_queries, n_outputs)."""
        above = self.errors.quantile(q, self.std) * self.std
        return self.target.inverse(self.mean + above)

    def log_density(self, Y):
        """Of observed outputs, the same shape; minus infinity beyond a bound."""
        error = self.target.forward(Y) - self.mean
        with np.errstate(over="ignore"):
            density = self.errors.log_density(error, self.std)
        return density + self.target.log_slope(Y)

    def beyond(self, Y, coverage):
        """Which observations lie below and above their interval, two arrays."""
        low, high = self.interval(coverage)
        return low > Y, high < Y
