"""`plan`: what a fit will take, and the M and p that a budget allows."""

import time
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from .. import cover
from .._linalg import dense_flops
from .._neighbors import distance_flops
from .._validation import check_count
from ..cover import DEFAULT_OVERLAP, DEFAULT_SIZE, SIZES, CoverShape, auto_size
from ..machines import make_machine
from ..machines.base import Machine
from ..partition import partition_cost
from ..tuning.cost import scales_to_find
from .rates import Rates, answer_flops, measure, state_bytes, typical_machine
from .result import NO_LIMIT, Budget, Plan

# Overlaps to choose among, the best last.
OVERLAPS = (0.5, 0.75, DEFAULT_OVERLAP)
# Candidates that a query is routed to, on average.
CANDIDATES = 1.8
# Square matrices of M rows that a worker holds while it fits a machine; numbers for
# every output while variances are calibrated.
WORKING_COPIES, CALIBRATION_COPIES = 6, 12
# Of a store's file: header, padding of the arrays, line in the manifest.
FILE_BYTES = 2600
# Less time than this is none.
LEAST_SECONDS = 1e-3
# The share of a stage that one thread does, whatever n_jobs.
SERIAL_SHARE = 0.1


class Problem(NamedTuple):
    """All that costs depend on but M and p."""

    n_samples: int
    n_features: int
    n_outputs: int
    machine: Machine
    n_queries: int
    n_jobs: int
    into_store: bool
    rates: Rates


def plan(
    n_samples,
    n_features,
    n_outputs=1,
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

    No data is needed: a run on made-up rows of the same width, in a second or two,
    finds what the operations of every stage cost, and the stages say how many they do.
    Expect times within a factor of 1.5 on a computer that does nothing else. With a
    budget, M is the largest of 100, 150, ... 1600 that fits with p = 0.9 and has
    enough rows for the features; where not even the cheapest fits, p falls to 0.75,
    then 0.5. A larger budget never gives a smaller M or p.

    Parameters
    ----------
    n_samples, n_features, n_outputs : int
        The shapes of X and y.
    budget : dict, Budget, str, float or None, default=None
        What the fit, and `n_queries`, may take: a time such as "10m", or a dict with
        any of "seconds" ("10m", 600), "memory" and "disk" ("8GB", 8e9 bytes). None
        plans the defaults of `OverlappingCoverRegressor`.
    machine, n_jobs : optional
        As in `OverlappingCoverRegressor`.
    subdomain_size : int, "auto" or None, default=None
    overlap : float or None, default=None
        Numbers are not changed; None without a budget is 800 and 0.9.
    n_queries : int, default=0
        Queries to predict, with standard deviations.
    into_store : bool, default=False
        Whether the budget's memory and disk are those of `overcover.store.fit_into`.
    rates : overcover.planning.Rates or None, default=None
        What the operations cost; None measures them, once per process.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from overcover import plan
    >>> from overcover.planning import Line, Rates
    >>> rates = Rates(  # as if measured: 23 ms for a machine of 800 rows, ...
    ...     tuning=2e-11, partition=2e-11, cover=2e-11, machine=Line(0, 2e-11),
    ...     visit=1e-4, question=Line(0, 1e-11), byte=1e-9, file=1e-3)
    >>> best = plan(100_000, 10, budget={"seconds": "1m", "memory": "8GB"}, rates=rates)
    >>> best.subdomain_size, best.overlap, best.n_subdomains, best.binding
    (600, 0.9, 1667, 'seconds')
    """
    n_samples = _whole("n_samples", n_samples)
    n_features = _whole("n_features", n_features)
    n_outputs = _whole("n_outputs", n_outputs)
    n_queries = _whole("n_queries", n_queries, least=0)
    budget, machine = Budget.of(budget), make_machine(machine)
    if budget == NO_LIMIT and subdomain_size is None:
        subdomain_size = DEFAULT_SIZE
    p = DEFAULT_OVERLAP if overlap is None else overlap
    cover.check_cover_options(1 if subdomain_size is None else subdomain_size, p)
    rates = measure(machine, n_features, n_outputs) if rates is None else rates
    if isinstance(subdomain_size, str):
        overlap, subdomain_size = p, auto_size(n_samples, n_outputs, p, machine)
    shape, n_jobs = (n_samples, n_features, n_outputs), effective_n_jobs(n_jobs)
    problem = Problem(*shape, machine, n_queries, n_jobs, into_store, rates)
    return choose(problem, budget, subdomain_size, overlap)


def plan_within(model, shape: tuple[int, int, int], budget, into_store=False) -> Plan:
    """The best cover within a budget, for rows of a shape; measuring counts too.

    shape is (n_samples, n_features, n_outputs). Only the default overlap may fall.
    """
    if model.subdomain_size != DEFAULT_SIZE:
        raise ValueError(
            f"A budget chooses subdomain_size, which is {model.subdomain_size!r}: give "
            f"one of them. Without a choice of yours it is {DEFAULT_SIZE}."
        )
    start, budget = time.perf_counter(), Budget.of(budget)
    options = {"machine": model.machine, "n_jobs": model.n_jobs}
    options["rates"] = measure(make_machine(model.machine), *shape[1:])
    if model.overlap != DEFAULT_OVERLAP:
        options["overlap"] = model.overlap
    left = max(budget.seconds - (time.perf_counter() - start), LEAST_SECONDS)
    rest = budget._replace(seconds=left)
    best = plan(*shape, rest, into_store=into_store, **options)
    return replace(best, budget=budget)


def _whole(name, value, least=1):
    """An integer, also from a float that is one, such as 1e6."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    check_count(name, value, least, "Give the shape of the data.")
    return int(value)


def candidate_sizes(n_samples, n_features):
    """Sizes to choose among: at most half the rows, or all of them if they are few."""
    # More than half the rows cost more than all, and are less accurate; fewer than
    # twice the length scales are too few to learn from.
    least = 2 * scales_to_find(n_features)
    sizes = [size for size in SIZES if least <= size <= n_samples // 2]
    return [*sizes, n_samples] if n_samples <= 2 * SIZES[-1] else sizes


def choose(problem: Problem, budget, size=None, overlap=None) -> Plan:
    """The best plan within a budget, or the cheapest if there is none.

    M and p never fall along the list of plans, so a larger budget never chooses less.
    """
    overlaps = OVERLAPS if overlap is None else (overlap,)
    if size is not None:
        plans = [plan_at(problem, budget, size, p) for p in overlaps]
    else:
        sizes = candidate_sizes(problem.n_samples, problem.n_features)
        best = [plan_at(problem, budget, size, overlaps[-1]) for size in sizes]
        # Sizes below the quickest are left out: with more subdomains, the partition
        # takes more time than smaller machines save.
        best = best[int(np.argmin([option.total_seconds for option in best])) :]
        least = best[0].subdomain_size
        plans = [plan_at(problem, budget, least, p) for p in overlaps[:-1]] + best
    within = [i for i, option in enumerate(plans) if option.fits]
    if not within:
        return plans[0]
    choice, *better = plans[within[-1] :]
    binding = better[0].exceeded(budget) if better else []
    return replace(choice, binding=", ".join(binding))


def plan_at(problem: Problem, budget, size, overlap) -> Plan:
    """The plan of one size and overlap: what stages count, times what it costs."""
    n_samples, n_features, n_outputs, machine, n_queries, n_jobs, *_ = problem
    typical = typical_machine(machine, n_features, n_outputs)
    shape = CoverShape.at(n_samples, size, overlap)
    keep = bool(typical.keeps_factors(shape.n_subdomains, shape.size))
    polynomial = state_bytes(machine, n_features, n_outputs, overlap)[int(keep)]
    n_bytes = max(0.0, float(np.polyval(polynomial, shape.size)))
    indices = 8.0 * shape.n_subdomains * shape.size
    memory = peak_bytes(problem, shape, indices, n_bytes)
    disk = shape.n_subdomains * (n_bytes + FILE_BYTES + 8 * n_features) + indices
    seconds = stage_seconds(problem, shape, n_bytes, keep)
    facts: list[Any] = [*problem[:3], type(machine).__name__, shape.size, overlap]
    facts += [shape.n_subdomains, seconds, *memory]
    facts += [disk, disk + 8.0 * n_samples + indices]
    facts += [problem.into_store, keep, n_jobs, n_queries, budget]
    result = Plan(*facts)
    exceeded = result.exceeded(budget)
    return replace(result, fits=not exceeded, binding=", ".join(exceeded))


def stage_seconds(problem: Problem, shape: CoverShape, n_bytes, keep):
    """Seconds of every stage; `n_bytes` is the size of a state."""
    sizes, machine, r = problem[:3], problem.machine, problem.rates
    n_samples, n_features, _ = sizes
    shared = SERIAL_SHARE + (1.0 - SERIAL_SHARE) / problem.n_jobs
    fit = r.machine(dense_flops(shape.size))
    tuning = machine.tuning_cost(*sizes)
    trial = r.machine(dense_flops(min(shape.size, tuning.trial_size)))
    partition = partition_cost(n_samples, n_features, shape.n_subdomains)
    exchanges, distances = partition.exchanges, shared * partition.distances
    writing = r.file + r.byte * n_bytes if problem.into_store else 0.0
    seconds = {
        "tuning": shared * (r.tuning * tuning.flops + tuning.n_fits * trial),
        "partition": r.partition * (exchanges + distances),
        "cover": shared * r.cover * cover.cover_flops(shape, n_features),
        "machines": shared * shape.n_subdomains * (fit + writing),
    }
    if n_queries := problem.n_queries:
        n_questions = CANDIDATES * n_queries
        route = r.partition * shape.n_subdomains * distance_flops(n_features)
        answers = n_questions * r.question(answer_flops(shape.size))
        n_visits = min(n_questions, shape.n_subdomains)
        visits = n_visits * (r.visit if keep else r.visit + fit)
        seconds["queries"] = shared * (n_queries * route + answers + visits)
    return seconds


def peak_bytes(problem: Problem, shape: CoverShape, indices, n_bytes):
    """Peaks of a fit in memory and of one into a store, whichever stage has them."""
    n_samples, n_features, n_outputs, machine, _, n_jobs, *_ = problem
    inputs, outputs = 8.0 * n_samples * n_features, 8.0 * n_samples * n_outputs
    tuning = machine.tuning_cost(n_samples, n_features, n_outputs)
    partition = partition_cost(n_samples, n_features, shape.n_subdomains, n_jobs)
    first = max(tuning.n_bytes, partition.n_bytes)
    working = n_jobs * WORKING_COPIES * 8 * shape.size**2
    last = indices + max(working, CALIBRATION_COPIES * outputs)
    together = max(first, last + shape.n_subdomains * n_bytes)
    return inputs + outputs + together, outputs + max(first, last)
