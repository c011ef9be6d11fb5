"""Importance-weighted Twin GPs: NN scheme against cover, error and prediction time.

The paper's NN scheme estimates importance weights for every query, from its M nearest
rows and its M_tst nearest test inputs. M_tst is M, or all test inputs if there are
fewer: 800 of HumanEva's and all 418 of Poser's, as in the paper.
"""

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
        options = {"n_jobs": 1, "random_state": SEED}
        models = {
            "NN": NeighborhoodRegressor(
                machine, scale.size, n_targets=scale.size, **options
            ),
            "NN, one ratio": NeighborhoodRegressor(machine, scale.size, **options),
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
    is_scheme = label.startswith("NN")
    tested = few if is_scheme else problem
    mean, seconds = timed(model.predict, tested.X_test)
    if not is_scheme:
        mean = mean[problem.some_rows(scale.n_scheme)]
    return {
        "data": problem.name,
        "system": label,
        "error": problem.error(few.Y_test, mean),
        "unit": problem.unit,
        "us_query": 1e6 * seconds / len(tested.X_test),
        "M_tst": min(scale.size, len(problem.X_test)) if label == "NN" else None,
    }
