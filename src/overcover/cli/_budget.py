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

import time
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..cover import count_subdomains
from ..planning import _units as planning
from ..planning._rates import time_cover, time_states
from ..planning._sizes import SIZES
from ..regressor import OverlappingCoverRegressor
from ._mistakes import Mistake

# What is tried where not even the smallest size will do.
LESS_OVERLAP = (0.75, 0.5)
# Rows to time a cover of, which takes about a second.
N_TIMED = 4000
# Of the time left, for writing, for noise, and for what threads do not share.
USABLE = 0.8


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
    """Seconds from a time such as 90s, 2m, 1h30m; see `overcover.planning`."""
    try:
        return planning.parse_seconds(text)
    except ValueError as error:
        raise Mistake(str(error)) from error


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
    size = model._size(len(X), Y.shape[1])
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

    def too_long(size, cost):
        n_subdomains = count_subdomains(len(X), size, min(model.overlap, 0.5))
        return n_subdomains * cost > seconds * effective_n_jobs(model.n_jobs)

    return time_states(machine, X, Y, weight, sizes, rng, too_long)


def time_covers(Z, sizes, model, rng):
    """Seconds of partition and cover of all rows, by the size of subdomains."""
    n_timed = min(N_TIMED, len(Z))
    rows = Z[np.sort(rng.permutation(len(Z))[:n_timed])]
    seconds = {}
    for i, size in enumerate(sizes):
        size_timed = min(size, n_timed)
        shape = size_timed, model.overlap, model.spread
        n_clusters = count_subdomains(n_timed, size_timed, model.overlap)
        for _ in range(2 if i == 0 else 1):  # the first call compiles
            spent = sum(time_cover(rows, *shape, n_clusters, model.n_jobs))
        seconds[size] = len(Z) / n_timed * spent
    return seconds
