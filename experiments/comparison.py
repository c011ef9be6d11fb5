"""The big table: error and time of NN, FIC, the covers and the full models."""

import numpy as np

from _common import note, print_table, timed
from overcover import NeighborhoodRegressor, SharmaMittalTwinGP, SparseGP

from .definitions import MACHINES, PARTITIONS, SEED
from .machinery import cover_of, load, tuned

SETS = ("poser", "poserlike", "humaneva")
# The generalised Twin GP of the paper's conclusion, on one set: it has no numbers.
GENERALIZED = "smtgp"


def run(scale):
    """All systems of a data set and machine share hyperparameters; one thread."""
    rows = []
    for name in SETS:
        try:
            problem = load(name, scale)
        except FileNotFoundError as error:
            note(f"{name} is left out: {error}")
            continue
        for kind in (*MACHINES, GENERALIZED) if name == SETS[0] else MACHINES:
            for label, model in systems(problem, scale, kind):
                note(f"table: {name} {kind} {label}")
                rows.append(measure(problem, scale, kind, label, model))
    print_table("Error and time", rows)
    return rows


def systems(problem, scale, kind):
    """Label and model, in the order of the paper's table; ours last."""
    variant = SharmaMittalTwinGP if kind == GENERALIZED else None
    machine, size = tuned(problem, scale, kind, variant), scale.size
    yield "NN", NeighborhoodRegressor(machine, size, n_jobs=1)
    for partition in PARTITIONS:
        for p in (0.9, 0.0):
            label = f"ODC {partition} p={p:g}"
            yield label, cover_of(machine, size, 1, partition=partition, overlap=p)
    ours = {"router": "variance", "partition": "kmeans", "spread": 3.0}
    yield "ours, defaults", cover_of(machine, size, 1, overlap=0.9, **ours)
    if kind == "gp":
        yield "FIC", SparseGP(machine, n_inducing=size, n_jobs=1, random_state=SEED)
    yield "full", machine


def measure(problem, scale, kind, label, model):
    """One row; the NN scheme predicts some of the test rows."""
    _, fit_s = timed(model.fit, problem.X_train, problem.Y_train)
    clustering = getattr(model, "timings_", {}).get("partition")
    few = problem.some_rows(scale.n_scheme)
    tested = few if label == "NN" else np.arange(len(problem.X_test))
    truth = problem.Y_test[tested]
    # The first prediction of a kind compiles, which is no part of a query.
    model.predict(problem.X_test[tested[:2]])
    mean, seconds = timed(model.predict, problem.X_test[tested])
    compared = np.isin(tested, few)
    return {
        "data": problem.name,
        "machine": kind,
        "system": label,
        "error": problem.error(truth, mean),
        # On the rows that the NN scheme predicts.
        "error_compared": problem.error(truth[compared], mean[compared]),
        "unit": problem.unit,
        "clustering_s": clustering,
        "rest_s": None if label == "NN" else fit_s - (clustering or 0.0),
        "us_query": 1e6 * seconds / len(tested),
        "n_test": len(tested),
        "M": scale.size,
    }
