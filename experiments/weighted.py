"""Importance-weighted Twin GPs: NN scheme against cover, error and prediction time."""

from _common import note, print_table, timed
from overcover import ImportanceWeightedTwinGP, NeighborhoodRegressor

from .definitions import SEED
from .machinery import cover_of, load, tuned

SETS = ("poser", "humaneva")


def run(scale):
    """Both use the test inputs for their importance weights."""
    rows = []
    for name in SETS:
        problem = load(name, scale)
        machine = tuned(problem, scale, "tgp", ImportanceWeightedTwinGP)
        models = {
            "NN": NeighborhoodRegressor(
                machine, scale.size, n_jobs=1, random_state=SEED
            ),
            "ODC": cover_of(machine, scale.size, 1, partition="ab", overlap=0.9),
        }
        for label, model in models.items():
            note(f"weighted: {name} {label}")
            rows.append(measure(problem, scale, label, model))
    print_table("Importance-weighted Twin GPs", rows)
    return rows


def measure(problem, scale, label, model):
    """One row; both errors are those on the same test rows."""
    few = problem.some(scale.n_scheme)
    model.fit(problem.X_train, problem.Y_train, X_target=problem.X_test)
    tested = few if label == "NN" else problem
    mean, seconds = timed(model.predict, tested.X_test)
    if label != "NN":
        mean = mean[problem.some_rows(scale.n_scheme)]
    return {
        "data": problem.name,
        "system": label,
        "error": problem.error(few.Y_test, mean),
        "unit": problem.unit,
        "us_query": 1e6 * seconds / len(tested.X_test),
    }
