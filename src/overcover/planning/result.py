"""`Budget`: limits of a fit. `Plan`: its expected or measured cost."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from numbers import Real
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from .._markup import duration, number, percent, size_of, text_table
from .findings import Finding, about_cover, describe_sizes

TIMES = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SIZES = {"b": 1} | {
    f"{prefix}{binary}{byte}": (1024 if binary else 1000) ** power
    for power, prefix in enumerate("kmgtp", start=1)
    for binary in ("", "i")
    for byte in ("", "b")
}
# Units of what a budget limits, what it is called, and examples.
SIZE = SIZES, "size", "500MB, 8GB or 16GiB"
QUANTITIES = {"seconds": (TIMES, "time", "90s, 2m or 1h30m"), "memory": SIZE}
QUANTITIES |= {"disk": SIZE}


class Budget(NamedTuple):
    """Limits of a fit."""

    seconds: float = np.inf
    memory: float = np.inf
    """Bytes at the peak, the training rows included."""
    disk: float = np.inf
    """Bytes of the store while it is written."""

    @classmethod
    def of(cls, value) -> "Budget":
        """From a budget, a mapping with its fields, a time, or None.

        Examples
        --------
        >>> Budget.of({"seconds": "10m", "memory": "8GB"})
        Budget(seconds=600.0, memory=8000000000.0, disk=inf)
        """
        if value is None:
            return cls()
        limits = {"seconds": value} if isinstance(value, str | Real) else value
        limits = limits._asdict() if isinstance(limits, cls) else limits
        if not isinstance(limits, Mapping) or not set(limits) <= set(cls._fields):
            raise ValueError(
                f"budget={value!r} is not known. Give a time such as '10m', or a dict "
                "with seconds, memory and disk, such as "
                "{'seconds': '10m', 'memory': '8GB'}."
            )
        return cls(**{k: parse(limit, *QUANTITIES[k]) for k, limit in limits.items()})

    def text(self, names=None) -> str:
        """The limits with these names in words; without names, all that are finite."""
        words = {"memory": " of memory", "disk": " on disk"}
        return ", ".join(
            size_of(limit) + words[name] if name in words else duration(limit)
            for name, limit in self._asdict().items()
            if (name in names if names else limit < np.inf)
        )


NO_LIMIT = Budget()


def parse(value, units, noun, examples) -> float:
    """A positive number, or the sum of numbers with units."""
    text, count = str(value).lower(), r"(\d+(?:\.\d+)?)"
    unit = f"({'|'.join(units)})"
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number or re.fullmatch(count, text):
        total = float(value)
    elif re.fullmatch(f"({count} ?{unit} *)+", text):
        parts = re.findall(f"{count} ?{unit}(?![a-z])", text)
        total = float(sum(float(number) * units[word] for number, word in parts))
    else:
        raise ValueError(f"{value!r} is no {noun}. Give one such as {examples}.")
    if not total > 0:
        raise ValueError(f"{value!r} is too little for a {noun}. Give {examples}, say.")
    return total


@dataclass(frozen=True)
class Plan:
    """The expected cost of a fit; print it.

    Attributes
    ----------
    n_samples, n_features, n_outputs : int
    machine : str
        The class of the machine.
    subdomain_size, overlap, n_subdomains : int, float, int
        The paper's M, p and K.
    seconds : dict
        Of the stages tuning, partition, cover, machines, of the queries, and of
        measuring the computer for the budget of a fit.
    memory, memory_into_store : float
        Bytes at the peak of ``model.fit``, with the rows, without Python's 200 MB; and
        of `overcover.store.fit_into`, with rows mapped from files.
    disk, disk_while_fitting : float
        Bytes of the finished store, and with what `fit_into` deletes in the end.
    fits : bool
        Whether all of it is within the budget.
    binding : str
        The limits that the next better plan would exceed, or that this plan exceeds if
        it does not fit. "" if there were none.
    findings : tuple of Finding
        Advice about M and p; see `overcover.advice`.
    """

    n_samples: int
    n_features: int
    n_outputs: int
    machine: str
    subdomain_size: int = 0
    overlap: float = 0.0
    n_subdomains: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    memory: float = np.nan
    memory_into_store: float = np.nan
    disk: float = np.nan
    disk_while_fitting: float = np.nan
    into_store: bool = False
    keeps_factors: bool = True
    n_jobs: int = 1
    n_queries: int = 0
    budget: Budget = NO_LIMIT
    fits: bool = True
    binding: str = ""
    findings: tuple[Finding, ...] = ()

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
            f"{self.machine}: {number(self.n_subdomains)} subdomain"
            f"{'' if self.n_subdomains == 1 else 's'} of "
            f"{number(self.subdomain_size)} rows, {percent(self.overlap, 0)} borrowed"
        )
        rows = [[stage, duration(time)] for stage, time in self.seconds.items()]
        rows.append(["all of it", duration(self.total_seconds)])
        sizes = {
            "memory, fit": self.memory,
            "memory, fit_into": self.memory_into_store,
            "disk": self.disk,
            "disk, while fitting": self.disk_while_fitting,
        }
        rows += [[name, size_of(b)] for name, b in sizes.items() if np.isfinite(b)]
        table = text_table(["", f"{self.n_jobs} thread(s)"], rows)
        return "\n".join([head, table, *self.verdict(), *map(str, self.findings)])

    def verdict(self):
        """Sentences on whether it fits in the budget."""
        if not self.fits:
            exceeded = self.binding.split(", ")
            yield (
                f"Does not fit in {self.budget.text()}: the cheapest sensible fit "
                f"needs {self.needs.text(exceeded)}."
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
        **describe_sizes(model),
        n_outputs=model.n_outputs_,
        machine=type(model.machine_).__name__,
        seconds=dict(model.timings_),
        n_jobs=effective_n_jobs(model.n_jobs),
        findings=tuple(map(Finding.of, about_cover(model))),
    )
