"""The complexity table as measured exponents.

GP stages are those of `benchmarks/scaling.py`, made-up rows, one axis at a time; the NN
scheme and Twin GPs are taken from how prediction grows with M on poses.
"""

import numpy as np

import scaling
from _common import print_table

from . import speed


def run(scale):
    """A row per stage and axis: measured exponent and the one of the table."""
    # A taste where everything is; the whole is only for the full size.
    full = scale.size == 800
    axes = scaling.AXES if full else scaling.QUICK_AXES
    start = scaling.Problem() if full else scaling.QUICK_PROBLEM
    rows = []
    for axis, values in axes.items():
        points = [scaling.measure(start._replace(**{axis: v})) for v in values]
        rows += scaling.exponents(axis, points)
    rows += growth(speed.run(scale))
    print_table("Exponents", rows)
    return rows


def growth(rows):
    """How a query's time grows with M, at the larger half of the sizes."""
    expected = {
        ("gp", "us_odc"): ("GP, cover: mean of a query", 1),
        ("tgp", "us_odc"): ("TGP, cover: a query", 2),
        ("gp", "us_nn"): ("GP, NN scheme: a query", 3),
        ("tgp", "us_nn"): ("TGP, NN scheme: a query", 3),
    }
    found = []
    for (kind, column), (stage, theory) in expected.items():
        mine = [(r["M"], r[column]) for r in rows if r["machine"] == kind]
        sizes, times = np.array(mine).T
        found.append(
            {
                "axis": "M",
                "stage": stage,
                "exponent": scaling.exponent(sizes, times),
                "at_end": scaling.exponent(sizes[-2:], times[-2:]),
                "expected": theory,
            }
        )
    return found
