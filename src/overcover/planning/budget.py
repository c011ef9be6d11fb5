"""`Budget`: what a fit may take, from times and sizes as people write them."""

import re
from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

import numpy as np

from .._markup import duration, size_of

# Units of times and sizes, what such a quantity is called, and examples of it.
SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}, "time", "90s, 2m or 1h30m"
BYTES = {"b": 1}, "size", "500MB, 8GB or 16GiB"
for power, prefix in enumerate("kmgtp", start=1):
    BYTES[0].update(dict.fromkeys((prefix, f"{prefix}b"), 1000**power))
    BYTES[0].update(dict.fromkeys((f"{prefix}i", f"{prefix}ib"), 1024**power))
QUANTITIES = {"seconds": SECONDS, "memory": BYTES, "disk": BYTES}


class Budget(NamedTuple):
    """What a fit may take."""

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
    text = str(value).lower()
    parts = re.findall(r"(\d+(?:\.\d+)?) ?([a-z]+)", text)
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number or re.fullmatch(r"\d+(\.\d+)?", text):
        total = float(value)
    elif (
        parts
        and text.replace(" ", "") == "".join(count + unit for count, unit in parts)
        and all(unit in units for _, unit in parts)
    ):
        total = float(sum(float(count) * units[unit] for count, unit in parts))
    else:
        raise ValueError(f"{value!r} is no {noun}. Give one such as {examples}.")
    if not total > 0:
        raise ValueError(f"a budget of the {noun} {value!r} is too little.")
    return total
