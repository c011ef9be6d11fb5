"""Synthetic and rendered poses: error, regret and later frames; a section of `trust`.

A grid whose winner is chosen by its error on test rows takes most of the time; it does
not depend on seeds or on tuning, so its errors are kept in the folder that
OVERCOVER_SCRATCH names, if it names one.
"""

import json
import os
from itertools import product
from pathlib import Path

import numpy as np
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import KNeighborsRegressor

import _common
import _trust
from _common import note, print_table
from overcover import GP, TwinGP
from overcover.datasets import make_pose
from overcover.metrics import mean_angle_error, mean_joint_error

BLOCK = 50
GP_GRID = {
    "unit": ("plain", "deviation"),
    "kernel": ("rbf", "matern32"),
    "scale": (0.35, 0.7, 1.4, 2.8),
    "noise": (1e-5, 1e-4, 1e-3, 1e-2, 1e-1),
}
TWIN_GRID = {
    "unit": ("plain", "deviation"),
    "scale": (0.5, 1.0, 2.0, 4.0),
    "output_scale": (0.5, 1.0, 4.0),
    "noise": (1e-4, 1e-3, 1e-2),
    "output_noise": (1e-4, 1e-2),
}
FINER = (0.7, 1.4)


def pose(settings):
    """Two machines on all sets, seed by seed."""
    rows = []
    for name in settings.poses:
        data, size, error = SETS[name](settings)
        neighbours = KNeighborsRegressor(5).fit(data.X_train, data.Y_train)
        nearest = error(data, neighbours.predict(data.X_test))
        for machine in ("gp", "tgp"):
            best = best_of_grid(name, machine, data, size, error, settings)
            for seed in settings.seeds:
                note(f"{name}: {machine}, seed {seed}")
                row = {"case": name, "machine": machine, "seed": seed}
                row |= pose_row(data, machine, size, seed, error)
                row |= {"neighbours": nearest, "gain": 1 - row["error"] / nearest}
                row |= {"best_of_grid": best}
                row["regret"] = row["error"] / best - 1 if best else None
                rows.append(row)
                print_table("Poses", rows)
    return rows


def poses(settings):
    """All sets, with five seeds and a grid."""
    if settings.is_full:
        settings = settings._replace(poses=tuple(SETS), seeds=(0, 1, 2, 3, 4))
        settings = settings._replace(n_grid=30)
    return pose(settings)


def pose_row(data, machine, size, seed, error):
    """The default on later frames."""
    model = _trust.default(seed, machine, subdomain_size=size, n_jobs=1)
    report = _trust.fit(model, data.X_train, data.Y_train)
    varies = data.Y_train.std(axis=0) > 0
    low, high = model.predict_interval(data.X_test, 0.95)
    is_inside = (low <= data.Y_test) & (data.Y_test <= high)
    mean, std = model.predict(data.X_test, return_std=True)
    return {
        "error": error(data, mean),
        "coverage_95": float(is_inside[:, varies].mean()),
        "nlpd": _common.nlpd(*(part[:, varies] for part in (data.Y_test, mean, std))),
        "run_length": int(model.machine_.run_length_),
        "warnings": ", ".join(report.warnings) or "none",
        "fit_s": report.seconds,
    }


# -- the grid --------------------------------------------------------------------------


def best_of_grid(name, machine, data, size, error, settings):
    """Least test error of a cover with fixed hyperparameters; None without a grid."""
    grid = GP_GRID if machine == "gp" else TWIN_GRID
    candidates = [dict(zip(grid, values)) for values in product(*grid.values())]
    errors = kept_errors(name, machine)
    make = gp_of if machine == "gp" else twin_of
    distances = {unit: median_distances(data, unit) for unit in grid["unit"]}

    def measured(candidate):
        key = json.dumps(candidate, sort_keys=True)
        if key not in errors:
            model = _trust.default(0, make(candidate, distances), subdomain_size=size)
            model.fit(data.X_train, data.Y_train)
            errors[key] = error(data, model.predict(data.X_test))
            keep(name, machine, errors)
        return errors[key]

    if settings.n_grid is not None:
        order = np.random.default_rng(0).permutation(len(candidates))
        candidates = [candidates[i] for i in order[: settings.n_grid]]
    for i, candidate in enumerate(candidates):
        if not i % 10:
            note(f"{name}: {machine}, {i} of {len(candidates)} on test rows")
        measured(candidate)
    if not candidates:
        return None
    best = min(candidates, key=measured)
    for field in ("scale", "output_scale", "noise", "output_noise"):
        if field in best:
            around = [best | {field: best[field] * factor} for factor in FINER]
            best = min([best, *around], key=measured)
    note(f"{name}: {machine}, best of the grid: {best}, {measured(best):.4g}")
    return measured(best)


def median_distances(data, unit, n_rows=500):
    """Median distances between inputs and between outputs, in this unit."""
    rows = np.random.default_rng(0).permutation(len(data.X_train))[:n_rows]
    X, Y = data.X_train[rows], data.Y_train[rows]
    inputs = deviations(data.X_train) if unit == "deviation" else 1.0
    outputs = deviations(data.Y_train)
    scales = inputs * np.median(pairwise_distances(X / inputs))
    return scales * np.ones(X.shape[1]), outputs * np.median(
        pairwise_distances(Y / outputs)
    )


def deviations(Z):
    """Standard deviations of columns; one for constant ones."""
    spread = Z.std(axis=0)
    return np.where(spread > 0, spread, 1.0)


def gp_of(candidate, distances):
    """A GP with one point of the grid."""
    scale = candidate["scale"] * distances[candidate["unit"]][0]
    return GP(candidate["kernel"], scale, candidate["noise"])


def twin_of(candidate, distances):
    """A Twin GP with one point of the grid."""
    inputs, outputs = distances[candidate["unit"]]
    return TwinGP(
        candidate["scale"] * inputs,
        candidate["output_scale"] * outputs,
        candidate["noise"],
        candidate["output_noise"],
    )


def grid_file(name, machine):
    """Where errors of the grid stay between runs, if anywhere."""
    folder = os.environ.get("OVERCOVER_SCRATCH")
    return Path(folder) / f"trust_{name}_{machine}.json" if folder else None


def kept_errors(name, machine):
    """Errors of an earlier run."""
    path = grid_file(name, machine)
    return json.loads(path.read_text()) if path and path.exists() else {}


def keep(name, machine, errors):
    """Keep errors for the next run."""
    path = grid_file(name, machine)
    if path:
        path.write_text(json.dumps(errors))


# -- data ------------------------------------------------------------------------------


def synthetic(n_frames, size):
    """Later (or earlier) halves of synthetic sequences, in mm."""

    def make(settings):
        frames = n_frames if settings.is_full else 120
        data = make_pose("humaneva", **({"n_frames": frames} if frames else {}))
        return data, size, joint_error

    return make


def joint_error(data, mean):
    """Mean distance of joints, mm."""
    return float(mean_joint_error(data.Y_test, mean))


def rendered_blocks(settings):
    """Blocks of consecutive rows of poserlike, a fifth of them tested, in degrees."""
    X, Y = _common.load_raw("poserlike")
    if not settings.is_full:
        X, Y = X[:200], Y[:200]
    block = np.arange(len(X)) // BLOCK
    order = np.random.default_rng(0).permutation(block.max() + 1)
    is_tested = np.isin(block, order[: max(1, len(order) // 5)])
    parts = X[~is_tested], Y[~is_tested], X[is_tested], Y[is_tested]
    return _trust.Problem("poserlike", *parts), 800, angle_error


def angle_error(data, mean):
    """Mean absolute difference of angles, degrees."""
    return float(mean_angle_error(data.Y_test, mean))


SETS = {
    "demo": synthetic(4000, 400),
    "humaneva": synthetic(None, 800),
    "poserlike": rendered_blocks,
}
