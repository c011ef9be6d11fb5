"""Speed-up of precomputed machines over the NN scheme, against M."""

from functools import cache

from _common import interleaved, note, print_table
from overcover import NeighborhoodRegressor

from .definitions import MACHINES
from .figures import LINES, figure
from .machinery import cover_of, load, tuned


@cache
def run(scale):
    """Microseconds per query of both, one thread each, same hyperparameters."""
    problem = load("humaneva", scale)
    few = problem.some(max(4, scale.n_scheme // 10))
    rows = []
    for kind in MACHINES:
        machine = tuned(problem, scale, kind)
        for size in scale.sizes:
            if size <= len(problem.X_train) // 2:
                rows.append(compare(problem, few, machine, kind, size, scale))
    print_table("Prediction, one thread, microseconds per query", rows)
    return rows


def compare(problem, few, machine, kind, size, scale):
    """One size."""
    note(f"speed: {kind} M={size}")
    training = problem.X_train, problem.Y_train
    model = cover_of(machine, size, overlap=0.9, partition="ab").fit(*training)
    model.set_params(n_jobs=1)
    scheme = NeighborhoodRegressor(machine, size, n_jobs=1).fit(*training)
    seconds = interleaved(
        {
            "ODC": lambda: model.predict(problem.X_test),
            "NN": lambda: scheme.predict(few.X_test),
        },
        scale.n_repeats,
    )
    error = problem.error(problem.Y_test, model.predict(problem.X_test))
    us = {
        "ODC": 1e6 * seconds["ODC"] / len(problem.X_test),
        "NN": 1e6 * seconds["NN"] / len(few.X_test),
    }
    return {
        "machine": kind,
        "M": size,
        "us_odc": us["ODC"],
        "us_nn": us["NN"],
        "speed_up": us["NN"] / us["ODC"],
        "error": error,
        "unit": problem.unit,
    }


def draw(rows, folder):
    """Both machines on logarithmic axes."""
    path = folder / "speed.png"
    with figure(path, (1, 1), (5, 3.6)) as panel:
        for kind, line in zip(MACHINES, LINES):
            mine = [(r["M"], r["speed_up"]) for r in rows if r["machine"] == kind]
            panel.loglog(*zip(*mine), label=kind.upper(), **line)
        sizes = sorted({r["M"] for r in rows})
        panel.set_xticks(sizes, [str(size) for size in sizes], minor=False)
        panel.minorticks_off()
        panel.set_xlabel("M, rows of a subdomain or neighbourhood")
        panel.set_ylabel("speed-up over the NN scheme")
        panel.grid(alpha=0.3)
        panel.legend()
    return [path]
