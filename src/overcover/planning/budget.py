"""`Budget`: what a fit may take, from times and sizes as people write them."""

import re
from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

import numpy as np

from .._markup import duration, size_of

TIMES = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SIZES = {"b": 1} | {
    f"{prefix}{binary}{byte}": (1024 if binary else 1000) ** power
    for power, prefix in enumerate("kmgtp", start=1)
    for binary in ("", "i")
    for byte in ("", "b")
}


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
        if isinstance(value, str | Real):
            return cls(seconds=parse_seconds(value))
        limits = value._asdict() if isinstance(value, cls) else value
        if not isinstance(limits, Mapping) or not set(limits) <= set(cls._fields):
            raise ValueError(
                f"budget={value!r} is not known. Give a time such as '10m', or a dict "
                "with seconds, memory and disk, such as "
                "{'seconds': '10m', 'memory': '8GB'}."
            )
        parsers = {"seconds": parse_seconds, "memory": parse_bytes, "disk": parse_bytes}
        return cls(**{name: parsers[name](limit) for name, limit in limits.items()})

    def text(self, names=None) -> str:
        """The limits with these names in words; without names, all that are finite."""
        words = {"memory": " of memory", "disk": " on disk"}
        return ", ".join(
            size_of(limit) + words[name] if name in words else duration(limit)
            for name, limit in self._asdict().items()
            if (name in names if names else limit < np.inf)
        )


NO_LIMIT = Budget()


def parse_seconds(value) -> float:
    """Seconds from a number, or from a time such as 90s, 2m, 1h30m.

    >>> parse_seconds("90"), parse_seconds("1h30m"), parse_seconds("2.5m")
    (90.0, 5400.0, 150.0)
    """
    return _parse(value, TIMES, "time", "90s, 2m or 1h30m")


def parse_bytes(value) -> float:
    """Bytes from a number, or from a size such as 500MB, 8GB, 16GiB, 2T.

    >>> parse_bytes("8GB"), parse_bytes("1 KiB"), parse_bytes(512)
    (8000000000.0, 1024.0, 512.0)
    """
    return _parse(value, SIZES, "size", "500MB, 8GB or 16GiB")


def _parse(value, units, noun, examples):
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
