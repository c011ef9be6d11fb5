"""Equal-size clusters: J of AB and IMDA, and pictures of the clusters."""

import numpy as np

from _common import note, print_table
from overcover import EqualSizeKMeans

from .definitions import SEED
from .figures import figure
from .machinery import load, tuned

BALANCES = {"ab": "ab", "imda": "imda", "refined": "refined"}
DRAWN = (5, 57)
# Pictures of components show every fourth row.
EVERY = 4


def in_disc(n_points, seed):
    """Points spread evenly over the unit disc, as the paper's J implies."""
    rng = np.random.default_rng(seed)
    radius = np.sqrt(rng.uniform(size=n_points))
    angle = rng.uniform(0, 2 * np.pi, n_points)
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def run(scale):
    """J by the number of clusters, mean over runs."""
    rows = []
    for n_clusters in scale.clusters:
        note(f"balance: K={n_clusters}")
        for name, balance in BALANCES.items():
            row = {"K": n_clusters, "balance": name, "n_runs": scale.n_runs}
            for label, max_iter in (("J", 20), ("J_first", 1)):
                costs = [
                    cost_of(n_clusters, balance, max_iter, scale.n_points, seed)
                    for seed in range(scale.n_runs)
                ]
                row[label] = float(np.mean(costs))
            rows.append(row)
    print_table("J of equal-size clusters", rows)
    return rows + [{"drawn": scale.n_drawn}]


def cost_of(n_clusters, balance, max_iter, n_points, seed):
    """J of one run."""
    model = EqualSizeKMeans(
        n_clusters, balance=balance, max_iter=max_iter, random_state=seed
    )
    return model.fit(in_disc(n_points, seed)).inertia_


def draw(rows, folder):
    """Clusters of many random points, and of poses over two principal components."""
    paths, plan = [], rows[-1]
    for n_clusters in DRAWN:
        note(f"clusters: {plan['drawn']} points, K={n_clusters}")
        rng = np.random.default_rng(SEED)
        points = rng.uniform(size=(plan["drawn"], 2))
        model = EqualSizeKMeans(n_clusters, balance="ab", random_state=SEED)
        path = folder / f"clusters-{n_clusters}.png"
        with figure(path, (1, 1), (3.6, 3.6)) as panel:
            _scatter(panel, points, model.fit(points).labels_, model.cluster_centers_)
            panel.set_title(f"{plan['drawn']:,} points, K = {n_clusters}", fontsize=9)
        paths.append(path)
    return paths


def _scatter(panel, points, labels, centers):
    """Neighbouring clusters in colours that differ in lightness too."""
    shades = np.random.default_rng(SEED).permutation(len(centers)) / len(centers)
    panel.scatter(
        *points.T, c=shades[labels], s=0.2, cmap="nipy_spectral", linewidths=0
    )
    panel.plot(*centers.T, "w+", markersize=6)
    panel.set_aspect("equal")
    panel.set_xticks([])
    panel.set_yticks([])


def run_components(scale):
    """Clusters of the HumanEva-like rows, and their two principal components."""
    problem = load("humaneva", scale)
    scales = tuned(problem, scale, "tgp").input_length_scale
    A = (problem.X_train - problem.X_train.mean(axis=0)) / scales
    _, _, axes = np.linalg.svd(A, full_matrices=False)
    n_clusters = max(2, len(A) // scale.size)
    model = EqualSizeKMeans(n_clusters, balance="ab", random_state=SEED).fit(A)
    components = A @ axes[:2].T
    return [
        {
            "components": np.round(components[::EVERY], 3).tolist(),
            "labels": model.labels_[::EVERY].tolist(),
            "explained": float(np.sum(components**2) / np.sum(A**2)),
            "sizes": np.bincount(model.labels_).tolist(),
        }
    ]


def draw_components(rows, folder):
    """Rows over two principal components, by cluster."""
    path, row = folder / "components.png", rows[0]
    points, labels = np.array(row["components"]), np.array(row["labels"])
    markers = "osv^D*PX"
    with figure(path, (1, 1), (6, 5)) as panel:
        for k in range(labels.max() + 1):
            shade = k / max(1, labels.max())
            panel.scatter(
                *points[labels == k].T,
                s=6,
                marker=markers[k % len(markers)],
                color=_shade(shade),
                label=f"{k + 1}: {row['sizes'][k]} rows",
            )
        panel.set_xlabel("first principal component")
        panel.set_ylabel(f"second (together {row['explained']:.0%} of the variance)")
        panel.legend(fontsize=7, markerscale=2)
    return [path]


def _shade(share):
    from matplotlib import colormaps

    return colormaps["viridis"](0.92 * share)
