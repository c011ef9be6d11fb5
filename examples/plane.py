"""
A surface over the plane
========================

This example draws the picture of the README: a cover, the predictive mean and its
standard deviation. Run it with ``python examples/plane.py [FOLDER [ROWS]]``. It fits
6,000 noisy rows of a surface that is smooth on one side and ripples on the other, with
a hole in the data, and compares the errors with those of scikit-learn's nearest
neighbours. What to see: one subdomain borrows nine tenths of its rows, and standard
deviations are large where rows are noisy or missing.
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # pictures go to files, no screen is needed
import matplotlib.pyplot as plt
import numpy as np
from sklearn.neighbors import KNeighborsRegressor

from overcover import OverlappingCoverRegressor

HOLE_CENTER, HOLE_RADIUS = np.array([0.62, 0.3]), 0.13


def surface(X):
    """Slow on the left, rippling on the right."""
    ripple = np.sin(25 * X[:, 0] ** 2) * np.cos(12 * X[:, 1])
    return np.sin(3 * X[:, 0]) + 0.5 * ripple


def sample(n_rows, rng):
    """Noisy rows of the surface, none of them in the hole; noisier at the top."""
    X = rng.uniform(0, 1, (3 * n_rows, 2))
    X = X[np.linalg.norm(X - HOLE_CENTER, axis=1) > HOLE_RADIUS][:n_rows]
    noise = 0.02 + 0.15 * (X[:, 1] > 0.75)
    return X, surface(X) + noise * rng.normal(size=n_rows)


def grid(n_side):
    """Points of a regular grid over the unit square, row by row."""
    side = np.linspace(0, 1, n_side)
    return np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)


def draw_cover(ax, model, X, chosen):
    """All clusters in colour, and one subdomain with the rows that it borrows."""
    owner = np.empty(len(X), dtype=int)
    for k, members in enumerate(model.cover_.members):
        owner[members[: model.cover_.n_owned[k]]] = k
    colours = np.random.default_rng(3).permutation(model.n_subdomains_)[owner]
    ax.scatter(*X.T, c=colours, cmap="viridis", s=7, alpha=0.6, lw=0)
    members, n_owned = model.cover_.members[chosen], model.cover_.n_owned[chosen]
    ax.scatter(*X[members[n_owned:]].T, s=14, fc="none", ec="black", lw=0.7)
    ax.scatter(*X[members[:n_owned]].T, s=16, c="crimson", lw=0)
    ax.set_title(
        f"{model.n_subdomains_} clusters; one subdomain:\n"
        f"{n_owned} rows owned (red), {len(members) - n_owned} borrowed (rings)"
    )


def draw_field(figure, ax, values, n_side, title, norm=None):
    """One value per point of the grid, as colours."""
    image = ax.imshow(
        values.reshape(n_side, n_side), origin="lower", extent=(0, 1, 0, 1), norm=norm
    )
    figure.colorbar(image, ax=ax, shrink=0.75)
    ax.set_title(title)


def main(folder="demo", n_rows=6000):
    """Fit, compare, draw."""
    rng = np.random.default_rng(0)
    X, y = sample(int(n_rows), rng)
    X_test, y_test = sample(2000, rng)

    model = OverlappingCoverRegressor(
        subdomain_size=300, n_jobs=-1, random_state=0, verbose=1
    )
    model.fit(X, y)
    started = time.perf_counter()
    mean, std = model.predict(X_test, return_std=True)
    seconds = time.perf_counter() - started
    low, high = model.predict_interval(X_test, coverage=0.95)
    neighbors = KNeighborsRegressor(10, weights="distance").fit(X, y)

    stages = ", ".join(f"{name} {s:.1f} s" for name, s in model.timings_.items())
    print(f"{len(X)} rows, {model.n_subdomains_} subdomains: {stages}")
    print(f"{len(X_test)} queries with standard deviations in {seconds:.2f} s")
    print(f"{'':24}{'RMSE':>8}{'coverage (95 %)':>22}")
    covered = np.mean((low <= y_test) & (y_test <= high))
    rmse = np.sqrt(np.mean((mean - y_test) ** 2))
    print(f"{'overlapping cover, GP':24}{rmse:8.4f}{covered:21.1%}")
    rmse = np.sqrt(np.mean((neighbors.predict(X_test) - y_test) ** 2))
    print(f"{'10 nearest neighbours':24}{rmse:8.4f}{'-':>21}")

    n_side = 150
    mean, std = model.predict(grid(n_side), return_std=True)
    chosen = int(
        model.router_.route(np.array([[0.35, 0.6]]) / model.length_scales_, 1)[0][0, 0]
    )
    figure, axes = plt.subplots(1, 3, figsize=(15, 4.8), layout="constrained")
    draw_cover(axes[0], model, X, chosen)
    draw_field(figure, axes[1], mean, n_side, "predictive mean")
    draw_field(
        figure,
        axes[2],
        std,
        n_side,
        "standard deviation:\nthe noisy top, and the hole",
        norm="log",
    )
    for ax in axes:
        ax.set_aspect("equal")
    path = Path(folder)
    path.mkdir(parents=True, exist_ok=True)
    figure.savefig(path / "plane.png", dpi=110)
    print(f"picture: {path / 'plane.png'}")


# sphinx_gallery_thumbnail_path = "plane.png"
if __name__ == "__main__":
    main(*sys.argv[1:])
