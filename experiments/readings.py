"""Weights of several answers: the paper's distance with a root, and without.

The paper weighs answers by 1 / D. It calls D a norm, and prints the squared form.
"""

from _common import note, print_table

from .definitions import CONSULTED, MACHINES, READINGS
from .machinery import cover_of, load, means_by_consulted, tuned


def run(scale):
    """Errors with K' = 1, 2, 3 under both readings, on the HumanEva-like set."""
    problem = load("humaneva", scale).some(scale.n_test)
    rows = []
    for kind in MACHINES:
        machine = tuned(problem, scale, kind)
        for p in scale.overlaps:
            for router in READINGS:
                note(f"readings: {kind} p={p:g} {router}")
                model = cover_of(
                    machine, scale.size, router=router, overlap=p, partition="ab"
                ).fit(problem.X_train, problem.Y_train)
                means = means_by_consulted(model, problem.X_test, CONSULTED)
                rows += [
                    {
                        "machine": kind,
                        "p": p,
                        "router": router,
                        "K'": k,
                        "error": problem.error(problem.Y_test, mean),
                        "unit": problem.unit,
                        "M": scale.size,
                    }
                    for k, mean in means.items()
                ]
    print_table("Two readings of the paper's distance", rows)
    return rows
