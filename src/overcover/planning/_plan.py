"""`plan`: what a fit will take, and the M and p that a budget allows."""

from dataclasses import dataclass, field, replace
from numbers import Integral, Real

import numpy as np
from joblib import effective_n_jobs

from .._markup import duration, number, percent, size_of, text_table
from .._validation import check_count
from ..cover import (
    DEFAULT_OVERLAP,
    DEFAULT_SIZE,
    SIZES,
    CoverShape,
    auto_size,
    check_cover_options,
)
from ..machines import make_machine
from ..tuning.cost import scales_to_find
from ._budget import Budget
from ._costs import Problem, disk_bytes, peak_bytes, stage_seconds
from ._findings import Finding, about_cover
from ._rates import measure, state_bytes, typical_machine

NO_LIMIT = Budget()
# Overlaps to choose among, the best last.
OVERLAPS = (0.5, 0.75, DEFAULT_OVERLAP)


@dataclass(frozen=True)
class Plan:
    """What a fit is expected to take; print it."""

    n_samples: int
    n_features: int
    n_outputs: int
    machine: str
    """Its class."""

    subdomain_size: int
    """The paper's M."""

    overlap: float
    """The paper's p."""

    n_subdomains: int
    """The paper's K."""

    seconds: dict[str, float] = field(default_factory=dict)
    """Of the stages tuning, partition, cover, machines, and of the queries."""

    memory: float = np.nan
    """Bytes at the peak of ``model.fit``, rows included, Python itself (some 200 MB)
    not."""

    memory_into_store: float = np.nan
    """The same of `overcover.store.fit_into`, with rows mapped from files."""

    disk: float = np.nan
    """Bytes of the finished store."""

    disk_while_fitting: float = np.nan
    """The same, with what `fit_into` deletes in the end."""

    into_store: bool = False
    keeps_factors: bool = True
    n_jobs: int = 1
    n_queries: int = 0
    budget: Budget = NO_LIMIT
    fits: bool = True
    """Whether all of it is within the budget."""

    binding: str = ""
    """The limits that decided: those that the next better plan would exceed, or that
    this one does if it does not fit. "" if there were none."""

    findings: tuple[Finding, ...] = ()
    """Advice about M and p; see `overcover.advice`."""

    @property
    def total_seconds(self) -> float:
        """All stages together, queries included."""
        return float(sum(self.seconds.values()))

    @property
    def needs(self) -> Budget:
        """What the plan takes, as a budget: of a fit in memory, or into a store."""
        if self.into_store:
            disk = self.disk_while_fitting
            return Budget(self.total_seconds, self.memory_into_store, disk)
        return Budget(self.total_seconds, self.memory, self.disk)

    def exceeded(self, budget) -> list[str]:
        """Names of the limits that the plan exceeds."""
        pairs = zip(budget._fields, self.needs, budget)
        return [name for name, needed, allowed in pairs if needed > allowed]

    def __str__(self):
        head = (
            f"{number(self.n_samples)} x {number(self.n_features)} rows, "
            f"{number(self.n_outputs)} output{'' if self.n_outputs == 1 else 's'}, "
            f"{self.machine}: {number(self.n_subdomains)} subdomains of "
            f"{number(self.subdomain_size)} rows, {percent(self.overlap, 0)} borrowed"
        )
        rows = [[stage, duration(spent)] for stage, spent in self.seconds.items()]
        rows.append(["all of it", duration(self.total_seconds)])
        sizes = {
            "memory, fit": self.memory,
            "memory, fit_into": self.memory_into_store,
            "disk": self.disk,
            "disk, while fitting": self.disk_while_fitting,
        }
        rows += [[name, size_of(b)] for name, b in sizes.items() if np.isfinite(b)]
        table = text_table(["", f"{self.n_jobs} thread(s)"], rows)
        return "\n".join([head, table, *self._verdict(), *map(str, self.findings)])

    def _verdict(self):
        if not self.fits:
            exceeded = self.binding.split(", ")
            yield (
                f"Does not fit in {self.budget.text()}: nothing that makes sense takes "
                f"less. Needed: {self.needs.text(exceeded)}."
            )
            if "memory" in exceeded and not self.into_store:
                yield f"Into a store (fit_into): {size_of(self.memory_into_store)}."
            if "disk" in exceeded and self.keeps_factors:
                yield "Without factors (keep_factors=False) a store is far smaller."
        elif self.binding:
            yield f"Fits in {self.budget.text()}; more would exceed the {self.binding}."
        elif self.budget != NO_LIMIT:
            yield f"Fits in {self.budget.text()}."


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

    No data is needed: a small run on made-up rows of the same width, in a second or
    two, finds what the operations of every stage cost, and the stages say how many they
    do (`overcover.planning`). Expect times within a factor of 1.5 on a computer that
    does nothing else. With a budget, the largest M among 100, 150, ... 1600 with
    p = 0.9 is chosen that fits, and none with too few rows for the features; where not
    even the cheapest fits, p falls to 0.75, then 0.5. A larger budget never gives a
    smaller M or p.

    Parameters
    ----------
    n_samples, n_features : int
        The shape of X.
    n_outputs : int, default=1
    budget : dict, Budget, str, float or None, default=None
        What the fit, and `n_queries`, may take: a time such as "10m", or a dict with
        any of "seconds" ("10m", 600), "memory" and "disk" ("8GB", 8e9 bytes). None
        plans the defaults of `OverlappingCoverRegressor`.
    machine : Machine, str or None, default=None
        As in `OverlappingCoverRegressor`.
    subdomain_size : int, "auto" or None, default=None
        A number is not changed; None without a budget is 800.
    overlap : float or None, default=None
        A number is not changed; None without a budget is 0.9.
    n_queries : int, default=0
        Queries that will be answered, with standard deviations.
    into_store : bool, default=False
        Whether the fit is one of `overcover.store.fit_into`: the budget's memory and
        disk are then compared with what that takes.
    n_jobs : int or None, default=None
        Threads, as in `OverlappingCoverRegressor`.
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
    ...     visit=Line(1e-4, 0), question=Line(0, 1e-11), byte=1e-9, file=1e-3)
    >>> made = plan(100_000, 10, budget={"seconds": "2m", "memory": "8GB"}, rates=rates)
    >>> made.subdomain_size, made.overlap, made.n_subdomains, made.binding
    (1200, 0.9, 834, 'seconds')
    """
    shape = {"n_samples": n_samples, "n_features": n_features, "n_outputs": n_outputs}
    for name, value in shape.items():
        check_count(name, _whole(value), 1, "Give the shape of the data.")
    check_count("n_queries", _whole(n_queries), 0, "0 plans a fit alone.")
    counts = [int(value) for value in shape.values()]
    budget, machine = Budget.of(budget), make_machine(machine)
    if budget == NO_LIMIT and subdomain_size is None:
        subdomain_size = DEFAULT_SIZE
    p = DEFAULT_OVERLAP if overlap is None else overlap
    check_cover_options(1 if subdomain_size is None else subdomain_size, p)
    if isinstance(subdomain_size, str):
        overlap, subdomain_size = p, auto_size(counts[0], counts[2], p, machine)
    rates = measure(machine, *counts[1:]) if rates is None else rates
    n_threads = effective_n_jobs(n_jobs)
    problem = Problem(*counts, machine, int(n_queries), n_threads, into_store, rates)
    return choose(problem, budget, subdomain_size, overlap)


def _whole(value):
    """An integer from a float that is one, such as 1e6."""
    is_whole = isinstance(value, Real) and float(value).is_integer()
    return int(value) if is_whole and not isinstance(value, bool | Integral) else value


def candidate_sizes(n_samples, n_features):
    """Sizes to choose among: at most half the rows, or all of them if they are few.

    A subdomain of more than half the rows costs more than all of them, and knows less.
    One of fewer rows than twice the length scales has too few to learn from.

    Examples
    --------
    >>> candidate_sizes(500, 8), candidate_sizes(10**6, 8)[-2:], candidate_sizes(50, 8)
    ([100, 150, 200, 500], [1200, 1600], [50])
    >>> candidate_sizes(500, 90)
    [200, 500]
    """
    least = 2 * scales_to_find(n_features)
    sizes = [size for size in SIZES if least <= size <= n_samples // 2]
    return [*sizes, n_samples] if n_samples <= 2 * SIZES[-1] else sizes


def choose(problem: Problem, budget, size=None, overlap=None) -> Plan:
    """The best plan within a budget, or the least if there is none.

    Plans stand in one order, from the least to the best: M and p never fall along it,
    so a larger budget never chooses an earlier one.
    """
    overlaps = OVERLAPS if overlap is None else (overlap,)
    if size is not None:
        plans = [plan_at(problem, budget, size, p) for p in overlaps]
    else:
        sizes = candidate_sizes(problem.n_samples, problem.n_features)
        best = [plan_at(problem, budget, size, overlaps[-1]) for size in sizes]
        # Sizes below the quickest are left out: with more subdomains, the partition
        # takes more time than smaller machines save.
        best = best[int(np.argmin([made.total_seconds for made in best])) :]
        least = best[0].subdomain_size
        plans = [plan_at(problem, budget, least, p) for p in overlaps[:-1]] + best
    fitting = [i for i, made in enumerate(plans) if made.fits]
    if not fitting:
        return plans[0]
    chosen, *better = plans[fitting[-1] :]
    binding = better[0].exceeded(budget) if better else []
    return replace(chosen, binding=", ".join(binding))


def plan_at(problem: Problem, budget, size, overlap) -> Plan:
    """The plan of one size and overlap."""
    counts = problem[:3]
    machine = typical_machine(problem.machine, *counts[1:])
    shape = CoverShape.at(counts[0], size, overlap)
    keep = bool(machine.keeps_factors(shape.n_subdomains, shape.size))
    n_bytes = state_bytes(problem.machine, *counts[1:], overlap).at(shape.size, keep)
    memory, memory_into_store = peak_bytes(problem, shape, n_bytes)
    disk, draft = disk_bytes(problem, shape, n_bytes)
    made = Plan(
        *counts,
        type(machine).__name__,
        shape.size,
        overlap,
        shape.n_subdomains,
        stage_seconds(problem, shape, n_bytes, keep),
        memory,
        memory_into_store,
        disk,
        disk_while_fitting=disk + draft,
        into_store=problem.into_store,
        keeps_factors=keep,
        n_jobs=problem.n_jobs,
        n_queries=problem.n_queries,
        budget=budget,
    )
    exceeded = made.exceeded(budget)
    return replace(made, fits=not exceeded, binding=", ".join(exceeded))


def describe_fit(model) -> Plan:
    """M, p, K of a fitted model and the seconds of its stages, with findings."""
    return Plan(
        n_samples=int(model.cover_.n_owned.sum()),
        n_features=model.n_features_in_,
        n_outputs=model.n_outputs_,
        machine=type(model.machine_).__name__,
        subdomain_size=max(len(members) for members in model.cover_.members),
        overlap=float(model.overlap),
        n_subdomains=model.n_subdomains_,
        seconds=dict(model.timings_),
        n_jobs=effective_n_jobs(model.n_jobs),
        findings=tuple(about_cover(model)),
    )
