"""
Poses from silhouettes
======================

Silhouettes of people seen by three cameras, to 3-D joints. Run with ``make demo``, or
``python examples/pose.py [FOLDER [FRAMES]]``; it takes minutes. Makes people who walk,
jog, box, gesture and throw before three cameras, fits covers of GPs and of Twin GPs on
one half of every motion, sets them against nearest neighbours and against the NN scheme
(a machine made anew for each query) on the other half, and writes a picture of what the
cameras saw and of what was predicted, and a report on the Twin GPs.
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
# The NN scheme takes some 10 ms a query: it answers a few of them.
N_SCHEME = 40
MOTIONS = ("walk", "jog", "box", "gesture", "throw_catch")


def models():
    """Label and model; the NN scheme is made later, with the Twin GP's findings."""
    options = {"subdomain_size": SIZE, "random_state": 0, "n_jobs": 2, "verbose": 1}
    yield "5 nearest neighbours", KNeighborsRegressor(5)
    yield "cover of GPs", OverlappingCoverRegressor("gp", **options)
    yield "cover of Twin GPs", OverlappingCoverRegressor("tgp", **options)


def measure(label, model, data, rows=slice(None)):
    """Fit, predict, and print one line of the table."""
    started = time.perf_counter()
    model.fit(data.X_train, data.Y_train)
    fitted = time.perf_counter()
    said = model.predict(data.X_test[rows])
    us = 1e6 * (time.perf_counter() - fitted) / len(said)
    error = mean_joint_error(data.Y_test[rows], said)
    return said, f"{label:<22}{error:>10.1f}{fitted - started:>10.1f}{us:>14,.0f}"


def draw(data, said, path):
    """What the cameras saw, and true and predicted poses, of one frame per motion."""
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
        data.skeletons(said),
        bones=data.bones,
        frames=frames,
        ax=panels,
    )
    figure.savefig(path, dpi=90)


def main(folder="demo", n_frames=N_FRAMES):
    """Run the example, leave picture and report in `folder`."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    data = make_pose("humaneva", n_frames=int(n_frames), n_jobs=2, verbose=1)
    print(data)
    lines = []
    for label, model in models():
        print(label, flush=True)
        said, line = measure(label, model, data)
        lines.append(line)
    found = model.machine_
    machine = type(found)(
        found.input_length_scale_,
        found.output_length_scale_,
        found.input_noise_,
        found.output_noise_,
    )
    print("NN scheme with Twin GPs", flush=True)
    scheme = NeighborhoodRegressor(machine, SIZE, n_jobs=2)
    some = np.linspace(0, len(data.X_test) - 1, N_SCHEME).astype(int)
    lines.append(measure("NN scheme, Twin GPs *", scheme, data, some)[1])
    print(f"\n{'':<22}{'error, mm':>10}{'fit, s':>10}{'us a query':>14}")
    print("\n".join(lines))
    print(f"* answers {N_SCHEME} of {len(data.X_test)} queries; nothing is precomputed")
    mean_error = mean_joint_error(data.Y_test[some], said[some])
    print(f"  cover of Twin GPs on the same queries: {mean_error:.1f} mm\n")
    draw(data, said, folder / "pose.png")
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
