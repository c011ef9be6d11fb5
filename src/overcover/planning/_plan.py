"""`plan`: what a fit will take, and the M and p that a budget allows."""

from dataclasses import replace
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs

from .._validation import check_count
from ..cover import count_subdomains
from ._costs import Problem, disk_bytes, peak_bytes, stage_seconds
from ._rates import measure
from ._result import NO_LIMIT, Budget, Plan
from ._sizes import (
    DEFAULT_OVERLAP,
    DEFAULT_SIZE,
    Asked,
    auto_size,
    candidate_sizes,
    check_auto,
    state_bytes,
    typical_machine,
)

OVERLAPS = (DEFAULT_OVERLAP, 0.75, 0.5)


def plan(
    n,
    d,
    d_y=1,
    budget=None,
    *,
    machine=None,
    subdomain_size=None,
    overlap=None,
    n_queries=0,
    into_store=False,
    n_jobs=None,
    rates=None,
) -> Plan:
    """Predict what a fit will take, and choose M and p that a budget allows.

    No data is looked at: the pieces of a fit are timed on rows of the same width that
    are made up, in a second or two, and multiplied (`overcover.planning`). Expect times
    within a factor of two on a computer that does nothing else. With a budget, the
    largest M among 100, 150, ... 1600 with p = 0.9 is chosen that fits; where not even
    the cheapest does, p falls to 0.75, then 0.5. A larger budget never gives a smaller
    M or p.

    Parameters
    ----------
    n : int
        Rows.
    d : int
        Features.
    d_y : int, default=1
        Outputs.
    budget : dict, Budget, str, float or None, default=None
        What the fit, and `n_queries`, may take: a time such as "10m", or a dict with
        any of "seconds" ("10m", 600), "memory" and "disk" ("8GB", 8e9 bytes). None
        plans the defaults of `OverlappingCoverRegressor`.
    machine : Machine, str or None, default=None
        As in `OverlappingCoverRegressor`.
    subdomain_size : int, "auto" or None, default=None
        Given, it is not chosen; None without a budget is 800.
    overlap : float or None, default=None
        Given, it is not chosen; None without a budget is 0.9.
    n_queries : int, default=0
        Queries that will be answered, with standard deviations.
    into_store : bool, default=False
        Whether the fit is one of `overcover.store.fit_into`: the budget's memory and
        disk are then compared with what that takes.
    n_jobs : int or None, default=None
        Threads, as in `OverlappingCoverRegressor`.
    rates : overcover.planning.Rates or None, default=None
        What the pieces of a fit cost; None measures them, once per process.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from overcover import plan
    >>> from overcover.planning import Curve, Rates
    >>> rates = Rates(  # as if measured: 25 ms for a machine of 800 rows, ...
    ...     machine=Curve((0, 0, 0, 5e-11)), asked=Curve((1e-4,)),
    ...     question=Curve((0, 0, 1e-11)), row=2e-4, pair=2e-9, n_iterations=18,
    ...     member=1e-6, tuning=Curve((10.0,)), few_rows=5.0, near=1e-9,
    ...     byte=1e-9, file=1e-3)
    >>> made = plan(100_000, 10, budget={"seconds": "2m", "memory": "8GB"}, rates=rates)
    >>> made.subdomain_size, made.overlap, made.n_subdomains, made.binding
    (1200, 0.9, 834, 'seconds')
    """
    for name, value, least in (("n", n, 1), ("d", d, 1), ("d_y", d_y, 1)):
        check_count(name, _whole(value), least, "Give the shape of the data.")
    check_count("n_queries", _whole(n_queries), 0, "0 plans a fit alone.")
    n, d, d_y, n_queries = int(n), int(d), int(d_y), int(n_queries)
    budget = Budget.of(budget)
    asked = Asked.of(machine)
    if rates is None:
        rates = measure(asked.machine, d, d_y)
    problem = Problem(
        n,
        d,
        d_y,
        asked,
        n_queries,
        effective_n_jobs(n_jobs),
        into_store,
        rates,
    )
    if budget == NO_LIMIT and subdomain_size is None:
        subdomain_size = DEFAULT_SIZE
    if isinstance(subdomain_size, str):
        check_auto(subdomain_size)
        overlap = DEFAULT_OVERLAP if overlap is None else overlap
        subdomain_size = auto_size(n, d_y, overlap, asked.machine)
    if subdomain_size is not None:
        check_count("subdomain_size", subdomain_size, 1, "Or give 'auto'.")
    return choose(problem, budget, subdomain_size, overlap)


def _whole(value):
    """An integer from a float that is one, such as 1e6."""
    is_whole = isinstance(value, Real) and float(value).is_integer()
    return int(value) if is_whole and not isinstance(value, bool | Integral) else value


def choose(problem: Problem, budget, size=None, overlap=None) -> Plan:
    """The best plan within a budget, or the least if there is none.

    Plans stand in one order, from the least to the best: M and p never fall along it,
    so what fits a budget and is last, is not before what is last in a smaller one.
    """
    overlaps = OVERLAPS[::-1] if overlap is None else (overlap,)
    at = Planner(problem, budget, overlaps)
    if size is not None:
        plans = [at(size, p) for p in overlaps]
    else:
        best = [at(size, overlaps[-1]) for size in candidate_sizes(problem.n_samples)]
        # Sizes below the quickest are left out: with more subdomains, the partition
        # takes more time than smaller machines save.
        best = best[int(np.argmin([made.total_seconds for made in best])) :]
        plans = [at(best[0].subdomain_size, p) for p in overlaps[:-1]] + best
    fitting = [i for i, made in enumerate(plans) if made.fits]
    if not fitting:
        return plans[0]
    chosen, *better = plans[fitting[-1] :]
    binding = better[0].exceeded(budget) if better else []
    return replace(chosen, binding=", ".join(binding))


class Planner:
    """From a size and an overlap to a plan.

    Parameters
    ----------
    problem : Problem
    budget : Budget
    overlaps : sequence of float
        Those that will be asked about.
    """

    def __init__(self, problem, budget, overlaps):
        self.problem, self.budget = problem, budget
        shape = problem.asked, problem.n_features, problem.n_outputs
        self.machine = typical_machine(*shape)
        self.state_bytes = {p: state_bytes(*shape, p) for p in overlaps}

    def __call__(self, size, overlap) -> Plan:
        problem, each = self.problem, self.state_bytes[overlap]
        size = min(size, problem.n_samples)
        n_subdomains = count_subdomains(problem.n_samples, size, overlap)
        keep = bool(self.machine.keeps_factors(n_subdomains, size))
        counts = problem, size, n_subdomains
        memory, into_store = peak_bytes(*counts, each, keep)
        disk, draft = disk_bytes(*counts, each.at(size, keep))
        made = Plan(
            n_samples=problem.n_samples,
            n_features=problem.n_features,
            n_outputs=problem.n_outputs,
            machine=type(self.machine).__name__,
            subdomain_size=size,
            overlap=overlap,
            n_subdomains=n_subdomains,
            seconds=stage_seconds(*counts, each.at(size, keep), keep),
            memory=memory,
            memory_into_store=into_store,
            disk=disk,
            disk_while_fitting=disk + draft,
            into_store=problem.into_store,
            keeps_factors=keep,
            n_jobs=problem.n_jobs,
            n_queries=problem.n_queries,
            budget=self.budget,
        )
        exceeded = made.exceeded(self.budget)
        return replace(made, fits=not exceeded, binding=", ".join(exceeded))
