"""Times and sizes as people write them; `overcover._markup` writes them."""

import math
import re
from numbers import Real

TIMES = {"s": 1, "m": 60, "h": 3600, "d": 86400}
SIZES = {"": 1, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
BINARY = {prefix: 2.0 ** (10 * i) for i, prefix in enumerate(SIZES)}


def parse_seconds(value) -> float:
    """Seconds from a number, or from a time such as 90s, 2m, 1h30m.

    Raises
    ------
    ValueError

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

    Raises
    ------
    ValueError

    Examples
    --------
    >>> parse_bytes("8GB"), parse_bytes("1 KiB"), parse_bytes(512)
    (8000000000.0, 1024.0, 512.0)
    """
    size = _as_number(value)
    if size is None:
        found = re.fullmatch(r"(\d+(?:\.\d+)?) ?([KMGTP]?)(i?)B?", str(value), re.I)
        if found is not None:
            count, prefix, binary = found[1], found[2].upper(), found[3]
            size = float(count) * (BINARY if binary else SIZES)[prefix]
    if size is None:
        raise ValueError(f"{value!r} is no size. Give one such as 500MB, 8GB or 16GiB.")
    if not size > 0:
        raise ValueError("a budget of no bytes is too little.")
    return size


def _as_number(value):
    """A float from a number or its digits, None from anything else."""
    if isinstance(value, Real) and not isinstance(value, bool):
        return None if math.isnan(value) else float(value)
    if isinstance(value, str) and re.fullmatch(r"\d+(\.\d+)?", value):
        return float(value)
    return None
