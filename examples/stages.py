"""
Pictures of the stages
======================

This example draws the pictures of "How it works", one for each stage. Run it with
``python examples/stages.py [FOLDER]``; it writes stages-metric.png and so on. All
pictures show one small problem: 600 rows with two inputs. The output changes three
times as fast along the first input. "How it works" explains the pictures.
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")  # pictures go to files, no screen is needed
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Ellipse
from scipy.spatial import ConvexHull

from overcover import GP, OverlappingCoverRegressor

# "auto" would learn scales in this proportion; fixed here, so that pictures do not
# change.
SCALES, NOISE = np.array([0.5, 1.5]), 0.01
SIDES = np.array([2.0, 6.0])
QUERY = np.array([1.267, 2.667])
INK, GREY, FAINT = "#111111", "#777777", "#c4c4c4"
MARKERS = "os^Dv<>Pp*X"


def surface(X):
    """The function to learn."""
    return np.sin(4 * X[:, 0]) * np.cos(1.3 * X[:, 1])


def panels(n, height=4.2, **options):
    """Panels beside each other, eight inches wide."""
    return plt.subplots(1, n, figsize=(8, height), layout="constrained", **options)


def plane(ax, X, **style):
    """All rows as faint dots, without ticks: only places matter."""
    ax.scatter(*X.T, **{"s": 7, "c": FAINT, "lw": 0, **style})
    ax.set(xticks=[], yticks=[], aspect="equal")


def outline(ax, points, **style):
    """The convex hull of some points."""
    ax.fill(*points[ConvexHull(points).vertices].T, fill=False, **style)


def draw_metric(model, X, y):
    """The same neighbourhood before and after scaling."""
    figure, axes = panels(2, width_ratios=(1, 2))
    distances = np.linalg.norm((X - QUERY) / SCALES, axis=1)
    radii = np.sort(distances)[60] * SCALES
    for ax, scales, title in zip(axes, (1, SCALES), ("unscaled", "in length scales")):
        plane(ax, X / scales, c=y, cmap="Greys", s=14, vmin=-1.6, vmax=1.2)
        ellipse = Ellipse(QUERY / scales, *(2 * radii / scales), fill=False, lw=1.8)
        ax.add_patch(ellipse)
        ax.plot(*(QUERY / scales), "P", color=INK, ms=10, mec="white")
        ax.set_title(f"near the cross, {title}")
    return figure


def draw_partition(model, X, y):
    """Clusters of equal size."""
    figure, ax = panels(1)
    Z, n_owned = X / SCALES, model.cover_.n_owned
    plane(ax, Z, s=0)
    for k, members in enumerate(model.cover_.members):
        own = Z[members[: n_owned[k]]]
        style = {"marker": MARKERS[k % len(MARKERS)], "c": str(0.1 + 0.13 * (k % 5))}
        ax.scatter(*own.T, s=16, lw=0, **style)
        outline(ax, own, ec=GREY, lw=0.8)
    ax.set_title(f"{len(n_owned)} clusters of {n_owned.min()} rows")
    return figure


def draw_cover(model, X, y):
    """Two subdomains, owned and borrowed rows."""
    figure, axes = panels(2)
    Z = X / SCALES
    for ax, letter, k in zip(axes, "AB", best_two(model)):
        members, n_owned = model.cover_.members[k], model.cover_.n_owned[k]
        plane(ax, Z)
        ax.scatter(*Z[members[n_owned:]].T, s=22, fc="white", ec=INK, lw=0.9)
        ax.scatter(*Z[members[:n_owned]].T, s=28, c=INK, lw=0)
        outline(ax, Z[members], ec=GREY, lw=1.2, ls="--")
        n_borrowed = len(members) - n_owned
        ax.set_title(f"{letter}: {n_owned} rows owned, {n_borrowed} borrowed")
    return figure


def best_two(model):
    """The two candidates of the query with the smallest posterior variance."""
    why = model.explain(QUERY)
    return why.subdomains[np.argsort(why.posterior_variances.ravel())][:2]


def draw_machines(model, X, y):
    """Predictions of two machines along a line, also far from their rows."""
    figure, axes = panels(2, height=3.4, sharey=True)
    line = np.column_stack([np.linspace(0, 2, 300), np.full(300, QUERY[1])])
    for ax, letter, k in zip(axes, "AB", best_two(model)):
        members = model.cover_.members[k]
        machine = GP("matern32", SCALES, NOISE).fit(X[members], y[members])
        mean, std = machine.predict(line, return_std=True)
        low, high = mean - 2 * std, mean + 2 * std
        ax.fill_between(line[:, 0], low, high, color=FAINT, alpha=0.6, lw=0)
        ax.plot(line[:, 0], surface(line), color=GREY, ls="--", label="truth")
        ax.plot(line[:, 0], mean, color=INK, label=f"machine {letter}")
        near = members[np.abs(X[members, 1] - QUERY[1]) < 0.3]
        ax.plot(X[near, 0], np.full(len(near), -2.6), "|", color=INK, ms=9)
        ax.set(xlabel="first column; ticks: rows near the line", ylim=(-2.9, 2.6))
        ax.legend(loc="upper right", frameon=False)
    figure.suptitle("each is certain near its rows (band: two standard deviations)")
    return figure


def draw_routing(model, X, y):
    """The candidates of one query, and the subdomain with most weight at each place."""
    figure, axes = panels(2)
    Z, why = X / SCALES, model.explain(QUERY)
    variances = why.posterior_variances.ravel()
    plane(axes[0], Z)
    for k, variance in zip(why.subdomains, variances):
        mean = Z[model.cover_.members[k]].mean(axis=0)
        arrow = {"arrowstyle": "->", "lw": 1.3}
        axes[0].annotate("", mean, QUERY / SCALES, arrowprops=arrow)
        fill = INK if variance == variances.min() else "white"
        axes[0].plot(*mean, "o", ms=9, mfc=fill, mec=INK, mew=1.3)
    axes[0].plot(*(QUERY / SCALES), "P", color=INK, ms=11, mec="white")
    axes[0].set_title(f"{len(variances)} candidates; the black one is most certain")

    side = np.linspace(0, 1, 70)
    grid = SIDES * np.stack(np.meshgrid(side, side), axis=-1).reshape(-1, 2)
    home = [w.subdomains[w.votes.mean(axis=1).argmax()] for w in model.explain(grid, 1)]
    shades = np.random.default_rng(1).permutation(model.n_subdomains_)
    right, top = SIDES / SCALES
    axes[1].imshow(
        shades[home].reshape(70, 70),
        cmap="Greys",
        vmax=1.4 * model.n_subdomains_,
        origin="lower",
        extent=(0, right, 0, top),
        aspect="equal",
    )
    axes[1].set(xticks=[], yticks=[], title="subdomain with the largest weight")
    return figure


def draw_combination(model, X, y):
    """Weights along a line, the predictions of each machine, and their combination."""
    figure, (top, bottom) = plt.subplots(
        2, 1, figsize=(8, 5), sharex=True, layout="constrained", height_ratios=(1, 2)
    )
    line = np.column_stack([np.linspace(0, 2, 500), np.full(500, QUERY[1])])
    whys = model.explain(line, 1)
    weights = np.zeros((model.n_subdomains_, len(line)))
    for i, why in enumerate(whys):
        weights[why.subdomains, i] = why.votes.mean(axis=1)
    used = np.flatnonzero(weights.max(axis=1) > 0.01)
    used = used[np.argsort(weights[used].argmax(axis=1))]  # from left to right
    shades = [str(shade) for shade in 0.5 + 0.45 * (np.arange(len(used)) % 3) / 2]
    top.stackplot(line[:, 0], weights[used], colors=shades, ec=INK, lw=0.6)
    top.set(ylabel="weight", ylim=(0, 1), yticks=(0, 1), title="weights of subdomains")
    for k in used:
        members = model.cover_.members[k]
        machine = GP("matern32", SCALES, NOISE).fit(X[members], y[members])
        bottom.plot(line[:, 0], machine.predict(line), color=GREY, lw=0.9, ls="--")
    bottom.plot([], [], color=GREY, lw=0.9, ls="--", label="each machine alone")
    mean = [why.mean[0] for why in whys]
    bottom.plot(line[:, 0], mean, color=INK, lw=2.4, label="combined")
    bottom.set(xlabel="first column, along a line", ylabel="prediction", xlim=(0, 2))
    bottom.legend(frameon=False)
    return figure


def save(figure, path):
    """Sixteen greys are enough, and keep files small."""
    from PIL import Image

    figure.canvas.draw()
    pixels = np.asarray(figure.canvas.buffer_rgba())[..., :3]
    Image.fromarray(pixels).convert("L").quantize(16).save(path, optimize=True)
    print(f"{path}: {path.stat().st_size / 1e3:.0f} kB")


def main(folder="demo"):
    """Fit once, draw every stage."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, SIDES, (600, 2))
    y = surface(X) + 0.1 * rng.normal(size=600)
    machine = GP("matern32", SCALES, NOISE)
    options = {"subdomain_size": 80, "overlap": 0.7, "random_state": 0}
    model = OverlappingCoverRegressor(machine, **options).fit(X, y)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    for draw in (
        draw_metric,
        draw_partition,
        draw_cover,
        draw_machines,
        draw_routing,
        draw_combination,
    ):
        stage = draw.__name__.removeprefix("draw_")
        save(draw(model, X, y), folder / f"stages-{stage}.png")


# sphinx_gallery_thumbnail_path = "stages-routing.png"
if __name__ == "__main__":
    main(*sys.argv[1:])
