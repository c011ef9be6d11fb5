"""The complexity table as measured exponents.

The stages of a GP come from `benchmarks/scaling.py`: synthetic rows, one axis at a
time. The NN scheme and Twin GPs come from `speed`: prediction times over M on poses.
"""

import numpy as np
from threadpoolctl import threadpool_limits

import scaling
from _common import print_table

from . import speed


def run(scale):
    """A row per stage and axis: measured exponent and the one of the table."""
    # Small runs use the quick axes.
    full = scale.size == 800
    axes = scaling.AXES if full else scaling.QUICK_AXES
    start = scaling.Problem() if full else scaling.QUICK_PROBLEM
    rows = []
    with threadpool_limits(1):
        scaling.measure(scaling.QUICK_PROBLEM, n_repeats=1)  # compiles
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
    exponents = []
    for (kind, column), (stage, theory) in expected.items():
        mine = [(r["M"], r[column]) for r in rows if r["machine"] == kind]
        sizes, times = np.array(mine).T
        exponents.append(
            {
                "axis": "M",
                "stage": stage,
                "exponent": scaling.exponent(sizes, times),
                "at_end": scaling.exponent(sizes[-2:], times[-2:]),
                "expected": theory,
            }
        )
    return exponents
