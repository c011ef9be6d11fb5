"""Seconds of a task, and curves through seconds of several sizes.

A task runs on one thread, so its processor time is what it takes on a computer that
does nothing else, whatever this one does besides.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import nnls


class Curve(NamedTuple):
    """Seconds by size: the sum of ``coefficients[i] * size**i``."""

    coefficients: tuple[float, ...]

    def __call__(self, size) -> float:
        return float(np.polyval(self.coefficients[::-1], size))


def best_of(task: Callable[[], Any], n_repeats=2) -> float:
    """Least seconds of a task, after one call that warms up caches."""
    task()
    return min(elapsed(task) for _ in range(n_repeats))


def elapsed(task: Callable[[], Any]) -> float:
    """Processor seconds of one call, in this thread."""
    started = time.thread_time()
    task()
    return time.thread_time() - started


def curve_through(seconds: dict[int, float], powers=(0, 2, 3)) -> Curve:
    """The curve of non-negative coefficients that is nearest, relative to each value.

    Examples
    --------
    >>> curve = curve_through({100: 2.0, 200: 9.0, 400: 65.0}, powers=(0, 3))
    >>> round(curve(800))
    513
    """
    sizes, values = (np.array(list(part), float) for part in zip(*seconds.items()))
    columns = sizes[:, None] ** np.array(powers) / values[:, None]
    # Powers differ by orders of magnitude: solve in columns of norm one.
    norms = np.linalg.norm(columns, axis=0)
    found = nnls(columns / norms, np.ones(len(sizes)))[0] / norms
    coefficients = np.zeros(max(powers) + 1)
    coefficients[list(powers)] = found
    return Curve(tuple(coefficients.tolist()))
