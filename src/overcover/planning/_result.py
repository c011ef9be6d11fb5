"""What a plan says: `Plan`, and the `Budget` it is held against."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from .._markup import duration, number, percent, size_of, text_table
from ._findings import Finding, about_cover
from ._units import parse_bytes, parse_seconds

LIMITS = ("seconds", "memory", "disk")


class Budget(NamedTuple):
    """What a fit may take."""

    seconds: float = np.inf
    memory: float = np.inf
    """Bytes at the peak, the training rows included."""

    disk: float = np.inf
    """Bytes of the store while it is written."""

    @classmethod
    def of(cls, given) -> "Budget":
        """From a budget, a mapping with its fields, a time, or None.

        Examples
        --------
        >>> Budget.of({"seconds": "10m", "memory": "8GB"})
        Budget(seconds=600.0, memory=8000000000.0, disk=inf)
        """
        if given is None:
            return cls()
        if isinstance(given, str | Real):
            return cls(seconds=parse_seconds(given))
        given = given._asdict() if isinstance(given, cls) else given
        if not isinstance(given, Mapping) or not set(given) <= set(LIMITS):
            raise ValueError(
                f"budget={given!r} is not known. Give a time such as '10m', or a dict "
                "with seconds, memory and disk, such as "
                "{'seconds': '10m', 'memory': '8GB'}."
            )
        parsers = {"seconds": parse_seconds, "memory": parse_bytes, "disk": parse_bytes}
        return cls(**{name: parsers[name](value) for name, value in given.items()})

    def text(self) -> str:
        """The limits there are, in words."""
        return _listed(
            self, [name for name in LIMITS if np.isfinite(getattr(self, name))]
        )


NO_LIMIT = Budget()


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
    """What there is to say about M and p; see `overcover.advice`."""

    @property
    def total_seconds(self) -> float:
        """All stages together, queries included."""
        return float(sum(self.seconds.values()))

    @property
    def needs(self) -> Budget:
        """What the plan takes, as a budget: that of the fit that was asked for."""
        if self.into_store:
            disk = self.disk_while_fitting
            return Budget(self.total_seconds, self.memory_into_store, disk)
        return Budget(self.total_seconds, self.memory, self.disk)

    def exceeded(self, budget) -> list[str]:
        """Names of the limits that the plan exceeds."""
        pairs = zip(LIMITS, self.needs, budget)
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
            missed = self.binding.split(", ")
            yield (
                f"Does not fit in {self.budget.text()}: nothing that makes sense takes "
                f"less. Needed: {_listed(self.needs, missed)}."
            )
            if "memory" in missed and not self.into_store:
                yield f"Into a store (fit_into): {size_of(self.memory_into_store)}."
            if "disk" in missed and self.keeps_factors:
                yield "Without factors (keep_factors=False) a store is far smaller."
        elif self.binding:
            yield f"Fits in {self.budget.text()}; more is kept back by {self.binding}."
        elif self.budget != NO_LIMIT:
            yield f"Fits in {self.budget.text()}."


def _listed(budget, names):
    texts = {
        "seconds": lambda value: duration(value),
        "memory": lambda value: f"{size_of(value)} of memory",
        "disk": lambda value: f"{size_of(value)} on disk",
    }
    return ", ".join(texts[name](getattr(budget, name)) for name in names)


def describe_fit(model) -> Plan:
    """What came of a fit: M, p, K and the seconds that were spent, with findings."""
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
