"""
Poses from silhouettes
======================

This example predicts 3-D joints from the silhouettes of three cameras. Run it with
``make demo``, or ``python examples/pose.py [FOLDER [FRAMES]]``; it takes minutes. It
generates people who walk, jog, box, gesture and throw, and fits covers of GPs and of
Twin GPs to one half of every motion. On the other half, it compares them with nearest
neighbours and with the NN scheme, which fits a new machine for each query. It writes a
picture of silhouettes and predicted poses, and a report on the Twin GPs.
"""

import sys
import time
from pathlib import Path

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.neighbors import KNeighborsRegressor

from overcover import NeighborhoodRegressor, OverlappingCoverRegressor
from overcover.datasets import make_pose
from overcover.metrics import mean_joint_error
from overcover.plots import SkeletonDisplay
from overcover.report import write_report

N_FRAMES, SIZE = 4000, 400
# Frames that follow each other are alike: runs of so many are held out together.
RUN = 10
# The NN scheme takes some 10 ms a query, so it predicts only a few of them.
N_SCHEME = 40
MOTIONS = ("walk", "jog", "box", "gesture", "throw_catch")


def models(runs):
    """Label, model and options of its fit; the NN scheme follows later."""
    options = {"subdomain_size": SIZE, "random_state": 0, "n_jobs": 2, "verbose": 1}
    yield "5 nearest neighbours", KNeighborsRegressor(5), {}
    for label, machine in (("cover of GPs", "gp"), ("cover of Twin GPs", "tgp")):
        model = OverlappingCoverRegressor(machine, **options)
        yield label, model, {"groups": runs}


def measure(label, model, data, rows=slice(None), **options):
    """Fit, predict, and print one line of the table."""
    started = time.perf_counter()
    model.fit(data.X_train, data.Y_train, **options)
    fitted = time.perf_counter()
    poses = model.predict(data.X_test[rows])
    us = 1e6 * (time.perf_counter() - fitted) / len(poses)
    error = mean_joint_error(data.Y_test[rows], poses)
    return poses, f"{label:<22}{error:>10.1f}{fitted - started:>10.1f}{us:>14,.0f}"


def draw(data, poses, path):
    """Silhouettes, true and predicted poses of one frame per motion."""
    frames = [np.flatnonzero(data.rows_test.motion == m) for m in MOTIONS]
    frames = [rows[2 * len(rows) // 5] for rows in frames]
    figure = Figure(figsize=(13, 5.8), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.add_gridspec(2, len(frames), height_ratios=(1, 3))
    for column, (row, motion) in enumerate(zip(frames, MOTIONS)):
        panel = figure.add_subplot(grid[0, column])
        panel.imshow(np.hstack(data.silhouettes([row], part="test")[0]), cmap="gray_r")
        panel.set_title(motion.replace("_", ", "))
        panel.set_axis_off()
    panels = [
        figure.add_subplot(grid[1, column], projection="3d")
        for column in range(len(frames))
    ]
    SkeletonDisplay.from_predictions(
        data.skeletons(data.Y_test),
        data.skeletons(poses),
        bones=data.bones,
        frames=frames,
        ax=panels,
    )
    figure.savefig(path, dpi=90)


def main(folder="demo", n_frames=N_FRAMES):
    """Run the example; write picture and report to `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = make_pose("humaneva", n_frames=int(n_frames), n_jobs=2, verbose=1)
    print(data)
    lines = []
    for label, model, options in models(np.arange(len(data.X_train)) // RUN):
        print(label, flush=True)
        poses, line = measure(label, model, data, **options)
        lines.append(line)
    twin = model.machine_
    machine = type(twin)(
        twin.input_length_scale_,
        twin.output_length_scale_,
        twin.input_noise_,
        twin.output_noise_,
    )
    print("NN scheme with Twin GPs", flush=True)
    scheme = NeighborhoodRegressor(machine, SIZE, n_jobs=2)
    some = np.linspace(0, len(data.X_test) - 1, N_SCHEME).astype(int)
    lines.append(measure("NN scheme, Twin GPs *", scheme, data, some)[1])
    print(f"\n{'':<22}{'error, mm':>10}{'fit, s':>10}{'us a query':>14}")
    print("\n".join(lines))
    print(f"* predicts {N_SCHEME} of {len(data.X_test)} queries; precomputes nothing")
    mean_error = mean_joint_error(data.Y_test[some], poses[some])
    print(f"  cover of Twin GPs on the same queries: {mean_error:.1f} mm\n")
    draw(data, poses, folder / "pose.png")
    write_report(
        model,
        folder / "report.html",
        data.X_train,
        data.Y_train,
        data.X_test,
        data.Y_test,
        title="Poses from silhouettes",
    )
    print(f"wrote {folder / 'pose.png'} and {folder / 'report.html'}")


# sphinx_gallery_thumbnail_path = "pose.png"
if __name__ == "__main__":
    main(*sys.argv[1:])
