"""`Budget`: what a fit may take, from times and sizes as people write them."""

import re
from collections.abc import Mapping
from numbers import Real
from typing import NamedTuple

import numpy as np

from .._markup import duration, size_of

TIMES = {"s": 1, "m": 60, "h": 3600, "d": 86400}
PREFIXES = "KMGTP"


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
        """Some limits in words; those that there are if none is named."""
        values = {name: x for name, x in self._asdict().items() if x < np.inf}
        words = {
            "seconds": duration,
            "memory": lambda n_bytes: f"{size_of(n_bytes)} of memory",
            "disk": lambda n_bytes: f"{size_of(n_bytes)} on disk",
        }
        return ", ".join(words[name](values[name]) for name in names or values)


NO_LIMIT = Budget()


def parse_seconds(value) -> float:
    """Seconds from a number, or from a time such as 90s, 2m, 1h30m.

    Examples
    --------
    >>> parse_seconds("90"), parse_seconds("1h30m"), parse_seconds("2.5m")
    (90.0, 5400.0, 150.0)
    """
    seconds = _as_number(value)
    if seconds is None and re.fullmatch(r"(\d+(\.\d+)?[smhd])+", str(value)):
        parts = re.findall(r"([\d.]+)([smhd])", value)
        seconds = sum(float(count) * TIMES[unit] for count, unit in parts)
    if seconds is None:
        raise ValueError(f"{value!r} is no time. Give one such as 90s, 2m or 1h30m.")
    if not seconds > 0:
        raise ValueError("a budget of no time is too little.")
    return seconds


def parse_bytes(value) -> float:
    """Bytes from a number, or from a size such as 500MB, 8GB, 16GiB, 2T.

    Examples
    --------
    >>> parse_bytes("8GB"), parse_bytes("1 KiB"), parse_bytes(512)
    (8000000000.0, 1024.0, 512.0)
    """
    size = _as_number(value)
    parts = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGTP]?)(i?)B?", str(value), re.I)
    if size is None and parts is not None:
        power = PREFIXES.find(parts[2].upper()) + 1 if parts[2] else 0
        size = float(parts[1]) * (1024.0 if parts[3] else 1000.0) ** power
    if size is None:
        raise ValueError(f"{value!r} is no size. Give one such as 500MB, 8GB or 16GiB.")
    if not size > 0:
        raise ValueError("a budget of no bytes is too little.")
    return size


def _as_number(value):
    """A float from a number or its digits, None from anything else."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return None if np.isnan(float(value)) else float(value)
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    return None
