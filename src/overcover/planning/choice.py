"""`plan`: the cost of a fit, and the M and p for a budget."""

import time
from dataclasses import replace
from functools import partial

import numpy as np
from joblib import effective_n_jobs

from .. import cover
from .._linalg import dense_flops
from .._neighbors import distance_flops
from .._validation import check_count
from ..cover import DEFAULT_OVERLAP, DEFAULT_SIZE, SIZES, CoverShape, auto_size
from ..machines import make_machine
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
    """Estimate the cost of a fit, and choose M and p for a budget.

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
    counts = {"n_samples": n_samples, "n_features": n_features}
    counts |= {"n_outputs": n_outputs, "n_queries": n_queries}
    for name, n in counts.items():
        counts[name] = int(n) if isinstance(n, float) and n.is_integer() else n
        least = int(name != "n_queries")
        check_count(name, counts[name], least, "Give the shape of the data.")
    budget, machine = Budget.of(budget), make_machine(machine)
    if budget == NO_LIMIT and subdomain_size is None:
        subdomain_size = DEFAULT_SIZE
    p = DEFAULT_OVERLAP if overlap is None else overlap
    cover.check_cover_options(1 if subdomain_size is None else subdomain_size, p)
    n_samples, n_features, n_outputs, _ = counts.values()
    if isinstance(subdomain_size, str):
        overlap, subdomain_size = p, auto_size(n_samples, n_outputs, p, machine)
    wanted = Plan(
        **counts,
        machine=type(machine).__name__,
        into_store=into_store,
        n_jobs=effective_n_jobs(n_jobs),
        budget=budget,
    )
    rates = rates or measure(machine, n_features, n_outputs)
    at = partial(plan_at, wanted, machine, rates)
    return choose(at, wanted, subdomain_size, overlap)


def plan_within(model, shape: tuple[int, int, int], budget, into_store=False) -> Plan:
    """The best cover within a budget, measuring included; only default p may fall."""
    if model.subdomain_size != DEFAULT_SIZE:
        raise ValueError(
            f"A budget chooses subdomain_size, but it is set to "
            f"{model.subdomain_size!r}. Leave out budget, or leave subdomain_size at "
            f"its default, {DEFAULT_SIZE}."
        )
    start, budget = time.perf_counter(), Budget.of(budget)
    options = {"machine": model.machine, "n_jobs": model.n_jobs}
    options["rates"] = measure(make_machine(model.machine), *shape[1:])
    if model.overlap != DEFAULT_OVERLAP:
        options["overlap"] = model.overlap
    spent = time.perf_counter() - start
    rest = budget._replace(seconds=max(budget.seconds - spent, LEAST_SECONDS))
    best = plan(*shape, rest, into_store=into_store, **options)
    return replace(best, budget=budget, seconds={"measuring": spent, **best.seconds})


def choose(at, wanted: Plan, size=None, overlap=None) -> Plan:
    """The best plan within a budget, or the cheapest; M and p never fall with it."""
    *lower, highest = OVERLAPS if overlap is None else (overlap,)
    n_samples, sizes = wanted.n_samples, [size]
    if size is None:
        # More than half the rows cost more than all, and are less accurate; fewer than
        # twice the length scales are too few to learn from.
        least = 2 * scales_to_find(wanted.n_features)
        sizes = [size for size in SIZES if least <= size <= n_samples // 2]
        sizes += [n_samples] if n_samples <= 2 * SIZES[-1] else []
    plans = [at(size, highest) for size in sizes]
    # Sizes below the quickest are left out: with more subdomains, the partition takes
    # more time than smaller machines save.
    plans = plans[int(np.argmin([option.total_seconds for option in plans])) :]
    size = plans[0].subdomain_size if size is None else size
    plans = [at(size, p) for p in lower] + plans
    within = [i for i, option in enumerate(plans) if option.fits]
    if not within:
        return plans[0]
    choice, *better = plans[within[-1] :]
    return replace(choice, binding=better[0].binding if better else "")


def plan_at(wanted: Plan, machine, rates: Rates, size, overlap) -> Plan:
    """The plan of one size and overlap: what stages count, times what it costs."""
    sizes = wanted.n_samples, wanted.n_features, wanted.n_outputs
    n_samples, d, n_outputs = sizes
    shape = CoverShape.at(n_samples, size, overlap)
    typical = typical_machine(machine, d, n_outputs)
    keep = bool(typical.keeps_factors(shape.n_subdomains, shape.size))
    borrowed = overlap if shape.n_subdomains > 1 else 0.0
    polynomial = state_bytes(machine, d, n_outputs, borrowed)[int(keep)]
    by_state = max(0.0, float(np.polyval(polynomial, shape.size)))
    tuning = machine.tuning_cost(*sizes)
    seconds = stage_seconds(wanted, rates, shape, tuning, by_state, keep)
    # Bytes: of inputs and outputs, of a partition and of machines that are fitted.
    inputs, outputs = 8.0 * n_samples * d, 8.0 * n_samples * n_outputs
    partition = partition_cost(n_samples, d, shape.n_subdomains, wanted.n_jobs)
    first = max(tuning.n_bytes, partition.n_bytes)
    working = wanted.n_jobs * WORKING_COPIES * 8 * shape.size**2
    indices = 8.0 * shape.n_subdomains * shape.size
    last = indices + max(working, CALIBRATION_COPIES * outputs)
    disk = shape.n_subdomains * (by_state + FILE_BYTES + 8 * d) + indices
    result = replace(
        wanted,
        subdomain_size=shape.size,
        overlap=overlap,
        n_subdomains=shape.n_subdomains,
        seconds=seconds,
        memory=inputs + outputs + max(first, last + shape.n_subdomains * by_state),
        memory_into_store=outputs + max(first, last),
        disk=disk,
        disk_while_fitting=disk + 8.0 * n_samples + indices,
        keeps_factors=keep,
    )
    exceeded = result.exceeded(wanted.budget)
    return replace(result, fits=not exceeded, binding=", ".join(exceeded))


def stage_seconds(wanted, r: Rates, shape: CoverShape, tuning, by_state, keep):
    """Seconds of every stage; `by_state` are the bytes of a state."""
    n_samples, d = wanted.n_samples, wanted.n_features
    shared = SERIAL_SHARE + (1.0 - SERIAL_SHARE) / wanted.n_jobs
    fit = r.machine(dense_flops(shape.size))
    trial = r.machine(dense_flops(min(shape.size, tuning.trial_size)))
    partition = partition_cost(n_samples, d, shape.n_subdomains)
    work = partition.exchanges + shared * partition.distances
    writing = r.file + r.byte * by_state if wanted.into_store else 0.0
    seconds = {
        "tuning": shared * (r.tuning * tuning.flops + tuning.n_fits * trial),
        "partition": r.partition * work,
        "cover": shared * r.cover * cover.cover_flops(shape, d),
        "machines": shared * shape.n_subdomains * (fit + writing),
    }
    if n_queries := wanted.n_queries:
        n_questions = CANDIDATES * n_queries
        route = r.partition * shape.n_subdomains * distance_flops(d)
        answers = n_questions * r.question(answer_flops(shape.size))
        n_visits = min(n_questions, shape.n_subdomains)
        visits = n_visits * (r.visit if keep else r.visit + fit)
        seconds["queries"] = shared * (n_queries * route + answers + visits)
    return seconds
