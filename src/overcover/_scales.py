"""Named scales of one output, as `overcover.targets` uses them.

A scale learns at most four numbers from the outputs. Its functions are increasing; what
lies beyond a bound of the outputs is infinite on the scale.
"""

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit

# Logarithms of the least and the largest outputs that come back from a scale.
LEAST_LOG, MOST_LOG = -700.0, 276.0
# Powers of Yeo and Johnson for which the inverse knows every number.
POWERS = (0.0, 2.0)
# Stands for no bound, in the numbers of a scale.
LARGEST = float(np.finfo(float).max)
# More rows than this tell no more of a power.
MOST_ROWS = 100_000


class Impossible(ValueError):
    """A scale that an output does not allow: the row, and what to do."""


class Identity:
    """The scale of the outputs, and the methods of every scale.

    Two numbers, if `within` gives it bounds: answers stay between them.
    """

    def learn(self, y, weights):
        """The numbers of an output; `Impossible` where it does not allow the scale."""
        return ()

    def makes_sense(self, numbers):
        """Whether these can be the numbers of the scale."""
        return True

    def bounds(self, numbers):
        """Between which outputs lie."""
        return tuple(numbers[:2]) if numbers[0] < numbers[1] else (-np.inf, np.inf)

    def within(self, numbers, low, high):
        """The numbers of a scale whose answers stay between bounds as well."""
        return low, high

    def forward(self, y, numbers):
        """From outputs to the scale."""
        return y

    def inverse(self, z, numbers):
        """From the scale to outputs."""
        return np.clip(z, *self.bounds(numbers))

    def log_slope(self, y, numbers):
        """Logarithm of the derivative of `forward`; zero beyond a bound."""
        return np.zeros(y.shape)


class Log(Identity):
    """The logarithm of positive outputs."""

    def learn(self, y, weights):
        is_positive = y > 0
        if not is_positive.all():
            raise Impossible(
                int(np.argmin(is_positive)),
                "a logarithm needs positive numbers. Choose target='yeo-johnson', "
                "which takes zeros (as those of counts) and negative numbers.",
            )
        return ()

    def bounds(self, numbers):
        return 0.0, np.inf

    def within(self, numbers, low, high):
        return numbers

    def forward(self, y, numbers):
        return _log(y)

    def inverse(self, z, numbers):
        return np.exp(np.clip(z, LEAST_LOG, MOST_LOG))

    def log_slope(self, y, numbers):
        return -_log(np.where(y > 0, y, 1.0))


class Logit(Identity):
    """Logarithm of the way from the lower bound over that to the upper; two numbers."""

    def learn(self, y, weights, low=0.0, high=1.0):
        is_inside = (low < y) & (y < high)
        if not is_inside.all():
            raise Impossible(
                int(np.argmin(is_inside)),
                f"it must lie between {low:g} and {high:g}, both excluded. Give other "
                "bounds, target=('logit', low, high), or choose target='yeo-johnson', "
                "which has none.",
            )
        return float(low), float(high)

    def makes_sense(self, numbers):
        return numbers[0] < numbers[1]

    def bounds(self, numbers):
        return numbers[:2]

    within = Log.within

    def forward(self, y, numbers):
        return _log(y - numbers[0]) - _log(numbers[1] - y)

    def inverse(self, z, numbers):
        low, high = numbers[:2]
        y = np.where(
            z < 0, low + (high - low) * expit(z), high - (high - low) * expit(-z)
        )
        return np.clip(y, low, high)

    def log_slope(self, y, numbers):
        low, high = numbers[:2]
        y = np.where((low < y) & (y < high), y, 0.5 * (low + high))
        return np.log(high - low) - _log(y - low) - _log(high - y)


class YeoJohnson(Identity):
    """A power of the distance from a center, on either side of it.

    Four numbers: center, unit, power, and the least output. The center is the median.
    Where no output is negative and some are zero, as of counts, it is zero, and no
    answer is less. The power is the likeliest under a Gaussian; between 0 and 2, where
    every number has an inverse.
    """

    def learn(self, y, weights):
        has_floor = np.min(y) == 0 and np.max(y) > 0
        center = 0.0 if has_floor else float(np.median(y))
        low, high = np.quantile(y, [0.25, 0.75])
        unit = float(high - low) / 1.349 or float(np.std(y)) or 1.0
        floor = 0.0 if has_floor else -LARGEST
        step = 1 + len(y) // MOST_ROWS
        u = (y[::step] - center) / unit
        w = None if weights is None else weights[::step]

        def loss(power):
            z = _bent(u, power)
            mean = np.average(z, weights=w)
            variance = np.average((z - mean) ** 2, weights=w)
            slope = np.average(_log_slope(u, power), weights=w)
            return 0.5 * np.log(max(variance, 1e-300)) - slope

        power = minimize_scalar(loss, bounds=POWERS, method="bounded").x
        # Straight lines and logarithms are exact.
        powers = 0.0, 1.0, float(power)
        power = min(powers, key=lambda p: loss(p) - 1e-6 * (p in (0, 1)))
        return center, unit, power, floor

    def makes_sense(self, numbers):
        return numbers[1] > 0 and POWERS[0] <= numbers[2] <= POWERS[1]

    def bounds(self, numbers):
        return numbers[3], np.inf

    def within(self, numbers, low, high):
        return *numbers[:3], low

    def forward(self, y, numbers):
        center, unit, power, _ = numbers
        return _bent((y - center) / unit, power)

    def inverse(self, z, numbers):
        center, unit, power, floor = numbers
        up = _unbent(np.maximum(z, 0.0), power)
        down = _unbent(np.maximum(-z, 0.0), 2.0 - power)
        return np.maximum(center + unit * (up - down), floor)

    def log_slope(self, y, numbers):
        center, unit, power, _ = numbers
        return _log_slope((y - center) / unit, power) - np.log(unit)


def _bent(u, power):
    """``((1 + u)**power - 1) / power`` above zero, mirrored with 2 - power below."""
    up, down = np.log1p(np.maximum(u, 0.0)), np.log1p(np.maximum(-u, 0.0))
    return _box(up, power) - _box(down, 2.0 - power)


def _box(log, power):
    return log if power == 0 else np.expm1(power * log) / power


def _unbent(z, power):
    """What became z, not negative, by a power."""
    log = z if power == 0 else np.log1p(power * z) / power
    return np.expm1(np.minimum(log, MOST_LOG))


def _log_slope(u, power):
    return (power - 1.0) * np.sign(u) * np.log1p(np.abs(u))


def _log(y):
    """The logarithm; minus infinity of what is not positive."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(y > 0, np.log(np.maximum(y, 0.0)), -np.inf)


# In the order in which "auto" tries them; the first is that of no target.
SCALES = {
    "identity": Identity(),
    "logit": Logit(),
    "log": Log(),
    "yeo-johnson": YeoJohnson(),
}
