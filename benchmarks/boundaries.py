"""Jumps of the prediction across borders, for every system: a number and a picture.

    python benchmarks/boundaries.py [--quick]

Prints a table, writes benchmarks/results/boundaries_jumps.json and draws
docs/boundaries.png.
"""

import numpy as np

import _common
import systems
from _common import note, print_table
from overcover import GP, DomainDecompositionGP, OverlappingCoverRegressor

N_POINTS = 4001


def boundaries(settings):
    """Steps of the predictive mean along lines through a plane."""
    rng = np.random.default_rng(_common.SEED)
    n_train = settings.n_train or 6000
    X = rng.uniform(0, 1, (n_train, 2))
    y = np.sin(8 * X[:, 0]) * np.cos(6 * X[:, 1]) + 0.1 * rng.normal(size=n_train)
    machine = GP(kernel="rbf", length_scale=0.15, noise=0.02)
    size = settings.size // 4
    models = {
        "full GP": GP(kernel="rbf", length_scale=0.15, noise=0.02),
        **systems.contenders(machine, size),
        "domain decomposition": DomainDecompositionGP(machine, cell_size=size),
        "cover, p=.9, hard": OverlappingCoverRegressor(
            machine, subdomain_size=size, router="euclidean", random_state=0, n_jobs=2
        ),
    }
    ends = rng.uniform(0, 1, (settings.n_lines, 2, 2))
    shares = np.linspace(0, 1, N_POINTS)[:, None]
    rows, profiles = [], {}
    for label, model in models.items():
        note(f"boundaries: {label}")
        model.fit(X, y)
        lines = (
            ends
            if label not in systems.SLOW
            else ends[: max(1, settings.n_lines // 20)]
        )
        steps = []
        for i, (start, stop) in enumerate(lines):
            predictions = model.predict(start + shares * (stop - start))
            # A smooth function is nearly linear over three neighbouring points, so a
            # large second difference is a jump.
            bends = np.abs(np.diff(predictions, 2))
            steps.append(bends.max())
            if i == 0:
                profiles[label] = predictions
        rows.append(
            {
                "method": label,
                "largest_jump": float(np.max(steps)),
                "mean_jump": float(np.mean(steps)),
                "in_noise": float(np.mean(steps)) / 0.1,
            }
        )
    print_table("Largest jump along a line, mean over lines; noise is 0.1", rows)
    if settings is systems.FULL:
        draw(profiles)
    return rows


DRAWN = ("full GP", "cover, p=0, RPC (Local-RPC)", "domain decomposition")
DRAWN += ("PIC", "cover, p=.9, hard", "cover, p=.9")


def draw(profiles):
    """Predictions along one line, minus the full GP's."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(DRAWN) - 1,
        1,
        figsize=(8, 8),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    along = np.linspace(0, 1, N_POINTS)
    for panel, name in zip(panels, DRAWN[1:]):
        panel.plot(along, profiles[name] - profiles["full GP"], linewidth=1)
        panel.set_title(name, fontsize=9, loc="left")
        panel.axhline(0, color="0.7", linewidth=0.5)
    panels[-1].set_xlabel("along a line through the plane")
    figure.supylabel("prediction minus that of the full GP")
    figure.savefig(_common.ROOT / "docs" / "boundaries.png", dpi=110)


def main(arguments=None):
    """Measure jumps."""
    summary, settings = __doc__.splitlines()[0], (systems.FULL, systems.QUICK)
    sections = {"jumps": boundaries}
    _common.run_sections(summary, "boundaries", sections, settings, arguments)


if __name__ == "__main__":
    main()
