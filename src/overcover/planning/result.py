"""`Plan`: what a fit is expected to take, or took."""

from dataclasses import dataclass, field

import numpy as np
from joblib import effective_n_jobs

from .._markup import duration, number, percent, size_of, text_table
from .budget import NO_LIMIT, Budget
from .findings import Finding, about_cover


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
    """Bytes at the peak of ``model.fit``: with the rows, without Python's 200 MB."""
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


def describe_fit(model) -> Plan:
    """M, p, K of a fitted model and the seconds of its stages, with findings."""
    return Plan(
        n_samples=int(model.cover_.n_owned.sum()),
        n_features=len(model.length_scales_),
        n_outputs=model.n_outputs_,
        machine=type(model.machine_).__name__,
        subdomain_size=max(len(members) for members in model.cover_.members),
        overlap=float(model.overlap),
        n_subdomains=model.n_subdomains_,
        seconds=dict(model.timings_),
        n_jobs=effective_n_jobs(model.n_jobs),
        findings=tuple(map(Finding.of, about_cover(model))),
    )
