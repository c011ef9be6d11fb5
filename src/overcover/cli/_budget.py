r"""Choose the size of subdomains so that a fit takes about as long as it may.

A fit finds hyperparameters, which costs the same whatever the size, and then

.. math:: T(M) = K(M)\, c(M) / \text{jobs} + \frac{N}{n} \, t_n(M),
          \quad K(M) = \frac{N}{(1 - p) M},

with :math:`c(M)` the seconds of one machine on M rows, about
:math:`\propto M^3`, so that the first term grows as :math:`N M^2 / (1 - p)`;
:math:`t_n(M)` are those of partition and cover of n of the N rows. Nothing of this is
assumed: hyperparameters are found first, and kept; then one machine and one small cover
are timed for every size that may be chosen, and the largest M is taken with which T(M)
stays within what is left.
"""

import re
import time
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._parallel import one_thread_per_worker
from ..cover import count_subdomains, cover_partition
from ..partition import partition_rows
from ..regressor import OverlappingCoverRegressor
from ._mistakes import Mistake

SIZES = (100, 150, 200, 300, 400, 600, 800, 1200, 1600)
# What is tried where not even the smallest size will do.
LESS_OVERLAP = (0.75, 0.5)
# Rows to time a cover of, which takes about a second.
N_TIMED = 4000
# Of the time left, for writing, for noise, and for what threads do not share.
USABLE = 0.8
UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


class Choice(NamedTuple):
    """What to fit, and how long that should take."""

    machine_: Any
    """As tuned."""

    subdomain_size: int
    overlap: float
    tuning: float
    """Seconds that finding hyperparameters took."""

    expected: float
    """Seconds that the rest should take."""

    fits: bool
    """Whether that is within the budget."""


def parse_seconds(text):
    """Seconds from a time such as 90s, 2m, 1h30m.

    Examples
    --------
    >>> parse_seconds("90"), parse_seconds("1h30m"), parse_seconds("2.5m")
    (90.0, 5400.0, 150.0)
    """
    if re.fullmatch(r"\d+(\.\d+)?", text):
        seconds = float(text)
    elif re.fullmatch(r"(\d+(\.\d+)?[smhd])+", text):
        parts = re.findall(r"([\d.]+)([smhd])", text)
        seconds = sum(float(count) * UNITS[unit] for count, unit in parts)
    else:
        raise Mistake(f"{text!r} is no time. Give one such as 90s, 2m or 1h30m.")
    if not seconds:
        raise Mistake("a budget of no time is too little.")
    return seconds


def choose(model: OverlappingCoverRegressor, X, Y, seconds) -> Choice:
    """Tune the machine, then choose sizes by what is left of the time.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Its `subdomain_size` is not looked at, but for tuning Twin GPs; its `overlap`
        is lowered only if nothing else helps.
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    seconds : float
        For everything.

    Returns
    -------
    Choice
    """
    started = time.perf_counter()
    rng = check_random_state(model.random_state)
    size = min(model.subdomain_size, len(X))
    machine, weight = model._tune(X, Y, None, None, size, rng)
    tuning = time.perf_counter() - started
    machines = time_machines(machine, X, Y, weight, model, rng, seconds)
    Z, n_jobs = X / machine.length_scales(X), effective_n_jobs(model.n_jobs)
    best = None
    for overlap in (model.overlap, *(p for p in LESS_OVERLAP if p < model.overlap)):
        model = clone(model).set_params(overlap=overlap)
        covers = time_covers(Z, list(machines), model, rng)
        left = USABLE * (seconds - (time.perf_counter() - started))
        costs = {
            size: covers[size] + count_subdomains(len(X), size, overlap) * cost / n_jobs
            for size, cost in machines.items()
        }
        affordable = [size for size in costs if costs[size] <= left]
        if affordable:
            size = max(affordable)
            return Choice(machine, size, overlap, tuning, costs[size], True)
        size = min(costs, key=costs.__getitem__)
        if best is None or costs[size] < best.expected:
            best = Choice(machine, size, overlap, tuning, costs[size], False)
    assert best is not None
    return best


def with_findings(machine):
    """A machine that has nothing to find: what was "auto" is what was found."""
    found = {
        name: getattr(machine, f"{name}_")
        for name, value in machine.get_params(deep=False).items()
        if isinstance(value, str) and value == "auto" and hasattr(machine, f"{name}_")
    }
    return clone(machine).set_params(**found)


def time_machines(machine, X, Y, weight, model, rng, seconds):
    """Seconds of one machine of each size, up to where all would take too long."""
    sizes = [size for size in SIZES if size < len(X)] or [len(X)]
    cost: dict[int, float] = {}
    for i, size in enumerate(sizes):
        rows = np.sort(rng.permutation(len(X))[:size])
        given = None if weight is None else weight[rows]
        arguments = X[rows], Y[rows], given, None, True
        with one_thread_per_worker():
            if i == 0:
                machine.fit_state(*arguments)  # compiled loops, warm caches
            started = time.perf_counter()
            machine.fit_state(*arguments)
            cost[size] = time.perf_counter() - started
        n_subdomains = count_subdomains(len(X), size, min(model.overlap, 0.5))
        if n_subdomains * cost[size] > seconds * effective_n_jobs(model.n_jobs):
            break
    return cost


def time_covers(Z, sizes, model, rng):
    """Seconds of partition and cover of all rows, by the size of subdomains."""
    n_timed = min(N_TIMED, len(Z))
    rows = Z[np.sort(rng.permutation(len(Z))[:n_timed])]
    seconds = {}
    for i, size in enumerate(sizes):
        n_clusters = count_subdomains(n_timed, min(size, n_timed), model.overlap)
        for is_warm in (False, True) if i == 0 else (True,):
            started = time.perf_counter()
            partition = partition_rows(rows, n_clusters, "kmeans", model.n_jobs, 0)
            shape = min(size, n_timed), model.overlap, model.spread
            cover_partition(rows, partition, *shape, model.n_jobs)
            if is_warm:
                seconds[size] = time.perf_counter() - started
    return {size: len(Z) / n_timed * spent for size, spent in seconds.items()}
