"""Reference errors on the synthetic poses of `overcover.datasets.make_pose`.

    python benchmarks/pose.py [--preset humaneva,poser] [--quick]

Errors are in the usual units: the mean distance of a joint from its true position, in
mm, or the mean absolute difference of an angle modulo 360, in degrees. All
hyperparameters are learned from training rows.
"""

import argparse
from pathlib import Path

import numpy as np
from sklearn.dummy import DummyRegressor
from sklearn.linear_model import RidgeCV
from sklearn.neighbors import KNeighborsRegressor

import _common
from _common import print_table
from overcover import OverlappingCoverRegressor
from overcover.datasets import make_pose
from overcover.metrics import mean_angle_error, mean_joint_error


def contenders(subdomain_size):
    """The contenders."""
    cover = {"subdomain_size": subdomain_size, "overlap": 0.9, "n_jobs": 2}
    cover |= {"random_state": _common.SEED}
    return {
        "mean": DummyRegressor(),
        "ridge": RidgeCV(np.logspace(-4, 2, 13)),
        "5 neighbours": KNeighborsRegressor(5),
        "GP": OverlappingCoverRegressor("gp", **cover),
        "TwinGP": OverlappingCoverRegressor("tgp", **cover),
    }


def pose_error(data, predictions):
    """Mean joint error in mm, or mean absolute angle modulo 360 in degrees."""
    is_angles = data.settings["outputs"] == "angles"
    metric = mean_angle_error if is_angles else mean_joint_error
    return metric(data.Y_test, predictions)


# Rows of the presets, where not all are taken; rows of a subdomain.
N_FRAMES, SIZE = {"humaneva": 4800}, 400


def measure(preset, quick):
    """Error and seconds of every contender on one preset."""
    n_frames = {"n_frames": 120 if quick else N_FRAMES.get(preset)}
    data, seconds = _common.timed(
        make_pose, preset, random_state=_common.SEED, n_jobs=2, cache=False, **n_frames
    )
    rows = []
    for name, model in contenders(60 if quick else SIZE).items():
        print(f"{preset}: {name}", flush=True)
        _, fit_s = _common.timed(model.fit, data.X_train, data.Y_train)
        predictions, predict_s = _common.timed(model.predict, data.X_test)
        row = {"preset": preset, "method": name, "error": pose_error(data, predictions)}
        row |= {"fit_s": fit_s, "us_mean": 1e6 * predict_s / len(predictions)}
        rows.append(row | {"n_train": len(data.X_train), "make_s": seconds})
    return rows


def main(arguments=None):
    """Measure, print and record."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--preset", default="humaneva,poser")
    parser.add_argument("--quick", action="store_true", help="a small run, in seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    options = parser.parse_args(arguments)
    rows = [
        row
        for preset in options.preset.split(",")
        for row in measure(preset, options.quick)
    ]
    print_table("Error of poses: mm (humaneva), degrees (poser)", rows)
    folder = options.results or (None if options.quick else _common.RESULTS)
    if folder:
        print(f"-> {_common.write_json('pose', rows, folder)}", flush=True)


if __name__ == "__main__":
    main()
