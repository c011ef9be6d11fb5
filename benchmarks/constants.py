"""Constants of the variance router, chosen on held-out training rows.

    python benchmarks/constants.py [--data kin40k,protein] [--quick]

Users do not tune the spread, the number of candidates and the sharpness of the weights,
so this script chooses them. It holds out 3,000 of 9,000 training rows and never reads
test rows.
Errors are divided by that of a GP on the 400 nearest rows of each row. It prints a
table and writes benchmarks/results/constants.json.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

import _common
from _common import note, print_table
from overcover import GP, OverlappingCoverRegressor
from overcover._neighbors import nearest_centers
from overcover.baselines import NeighborhoodRegressor
from overcover.consult import ask
from overcover.routing import Route

SPREADS = (1.0, 3.0, 6.0)
CANDIDATES = ((3, 1.1), (5, 1.1), (8, 1.2))
SHARPNESSES = (np.inf, 64, 32, 16, 8)
SEEDS = (0, 1)
SIZE, N_NEIGHBORS, N_ROWS, N_HELD_OUT = 800, 400, 9000, 3000


def settle(name, quick=False):
    """One row for every spread, choice of candidates and sharpness; mean over seeds."""
    data = _common.load(name)
    X, Y = data.X_train, data.Y_train
    n_rows = 900 if quick else N_ROWS
    X, Y = X[:n_rows], Y[:n_rows]
    size, n_neighbors = (100, 50) if quick else (SIZE, N_NEIGHBORS)
    held_out = min(300, len(X) // 3) if quick else N_HELD_OUT
    X, X_held, Y, Y_held = train_test_split(X, Y, test_size=held_out, random_state=5)
    machine = GP(per_output=False)
    rng = np.random.RandomState(_common.SEED)
    machine.tune(*_common.distinct_rows(X, Y), None, size, rng, 2)
    machine = GP(machine.used_kernel_, machine.length_scale_, float(machine.noise_))
    scheme = NeighborhoodRegressor(machine, n_neighbors, n_jobs=2).fit(X, Y)
    base = float(_common.rmse(Y_held, scheme.predict(X_held)).mean())
    found: dict[tuple, list[tuple[float, float]]] = {}
    for spread in SPREADS:
        for seed in SEEDS[: 1 if quick else None]:
            note(f"{name}: spread {spread}, seed {seed}")
            model = OverlappingCoverRegressor(
                machine,
                subdomain_size=size,
                spread=spread,
                random_state=seed,
                n_jobs=2,
            ).fit(X, Y)
            for options, result in choices(model, X_held, Y_held).items():
                found.setdefault((spread, *options), []).append(result)
    return [
        {
            "data": name,
            "spread": spread,
            "n_candidates": n,
            "reach": reach,
            "sharpness": None if np.isinf(sharpness) else sharpness,
            "asked": float(np.mean([asked for _, asked in results])),
            "rmse_ratio": float(np.mean([error for error, _ in results])) / base,
        }
        for (spread, n, reach, sharpness), results in found.items()
    ]


def choices(model, X, Y):
    """Error and machines per query, for each choice among the same predictions."""
    most, widest = np.max(CANDIDATES, axis=0)
    X_metric = X / model.length_scales_
    n_listed = min(int(most), model.n_subdomains_)
    ids, dist_sq = nearest_centers(X_metric, model.router_.means, n_listed, 2)
    distances = np.sqrt(dist_sq)
    relative = distances / distances[:, :1]
    route = Route(np.where(relative <= widest, ids, -1), distances)
    answers = ask(model.machine_, model.states_, X, route, True, 2)
    results = {}
    for n, reach in CANDIDATES:
        asked = (relative <= reach) & (np.arange(n_listed) < n)
        variances = np.where(asked[..., None], answers.posterior, np.inf)
        excess = variances.min(axis=1, keepdims=True) / variances
        for sharpness in SHARPNESSES:
            weights = excess**sharpness if np.isfinite(sharpness) else excess == 1.0
            means = np.where(asked[..., None], answers.mean, 0.0)
            mean = np.sum(weights * means, axis=1) / weights.sum(axis=1)
            error = float(_common.rmse(Y, mean).mean())
            results[n, reach, sharpness] = error, float(asked.sum(axis=1).mean())
    return results


def main(arguments=None):
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="kin40k,protein")
    parser.add_argument("--quick", action="store_true", help="a small run, in seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    options = parser.parse_args(arguments)
    rows = [r for name in options.data.split(",") for r in settle(name, options.quick)]
    print_table("Error over that of a GP on nearest rows, on rows held out", rows)
    folder = options.results or (None if options.quick else _common.RESULTS)
    if folder:
        print(f"-> {_common.write_json('constants', rows, folder)}", flush=True)


if __name__ == "__main__":
    main()
