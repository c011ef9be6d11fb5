"""Jumps of the prediction across borders, for every system: a number and a picture.

    python benchmarks/boundaries.py [--section jumps,gap,field] [--quick]

Prints a table per section and writes benchmarks/results/boundaries_SECTION.json. The
section "jumps" draws docs/boundaries.png; "gap" has two cells on a line, whose border
is far from all rows; "field" draws smooth functions on a line and in a plane, and
compares methods with equal borders to the full GP and to separate GPs of the cells.
"""

import numpy as np

import _common
import systems
from _common import note, print_table, timed
from overcover import (
    GP,
    DomainDecompositionGP,
    OverlappingCoverRegressor,
    PatchworkGP,
)
from overcover.baselines.committee import RULES

N_ROWS = 4000
# What takes milliseconds a query is measured on fewer lines.
SLOW = {"NN scheme", "LPR", "HSIC", "KTA", *RULES}


def waves(X):
    """The function in the plane."""
    return np.sin(8 * X[:, 0]) * np.cos(6 * X[:, 1])


def boundaries(settings):
    """Steps of the predictive mean along lines through a plane."""
    rng = np.random.default_rng(_common.SEED)
    n_train = min(settings.n_train, N_ROWS)
    X = rng.uniform(0, 1, (n_train, 2))
    y = waves(X) + 0.1 * rng.normal(size=n_train)
    machine = GP(kernel="rbf", length_scale=0.15, noise=0.02)
    size = settings.plane_size
    models = {
        **systems.contenders(machine, size),
        "domain decomposition": DomainDecompositionGP(machine, cell_size=size),
        "domain decomposition, cosine": DomainDecompositionGP(
            machine, cell_size=size, n_control=1, extension="cosine"
        ),
        "patchwork kriging": PatchworkGP(machine, cell_size=size),
        "cover, p=.9, hard": OverlappingCoverRegressor(
            machine, subdomain_size=size, router="euclidean", random_state=0, n_jobs=2
        ),
    }
    ends = rng.uniform(0, 1, (settings.n_lines, 2, 2))
    shares = np.linspace(0, 1, settings.n_points)[:, None]
    rows, profiles, exact = [], {}, []
    for label, model in models.items():
        note(f"boundaries: {label}")
        _, fit_s = timed(model.fit, X, y)
        is_slow = label in SLOW
        lines = ends[: max(1, settings.n_lines // 10)] if is_slow else ends
        steps, differences, errors, seconds = [], [], [], 0.0
        for i, (start, stop) in enumerate(lines):
            places = start + shares * (stop - start)
            predictions, taken = timed(model.predict, places)
            seconds += taken
            errors.append(predictions - waves(places))
            # A smooth function is nearly linear over three neighbouring points, so a
            # large second difference is a jump.
            bends = np.abs(np.diff(predictions, 2))
            steps.append(bends.max())
            if label == "full GP":
                exact.append(predictions)
            differences.append(predictions - exact[i])
            if i == 0:
                profiles[label] = predictions
        rows.append(
            {
                "method": label,
                "largest_jump": float(np.max(steps)),
                "mean_jump": float(np.mean(steps)),
                "in_noise": float(np.mean(steps)) / 0.1,
                "rms_from_full": float(np.sqrt(np.mean(np.square(differences)))),
                "rmse": float(np.sqrt(np.mean(np.square(errors)))),
                "fit_s": fit_s,
                "us_query": 1e6 * seconds / (len(lines) * len(shares)),
            }
        )
    print_table("Largest jump along a line, mean over lines; noise is 0.1", rows)
    if settings is systems.FULL:
        draw(profiles)
    return rows


DRAWN = ("full GP", "cover, p=0, RPC (Local-RPC)", "domain decomposition")
DRAWN += ("patchwork kriging", "PIC", "cover, p=.9, hard", "cover, p=.9")


def draw(profiles):
    """Predictions along one line, minus the full GP's."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(
        len(DRAWN) - 1,
        1,
        figsize=(8, 9),
        sharex=True,
        sharey=True,
        layout="constrained",
    )
    along = np.linspace(0, 1, len(profiles["full GP"]))
    for panel, name in zip(panels, DRAWN[1:]):
        panel.plot(along, profiles[name] - profiles["full GP"], linewidth=1)
        panel.set_title(name, fontsize=9, loc="left")
        panel.axhline(0, color="0.7", linewidth=0.5)
    panels[-1].set_xlabel("along a line through the plane")
    figure.supylabel("prediction minus that of the full GP")
    figure.savefig(_common.ROOT / "docs" / "boundaries.png", dpi=110)


# -- a border without rows -------------------------------------------------------------

# Widths of the gap around the border, in length scales.
GAPS = (0.0, 1.0, 2.0, 3.0, 4.0, 8.0)


def gap(settings):
    """Two cells on a line: variance of the function at a border far from all rows."""
    rng = np.random.default_rng(_common.SEED)
    options = {"kernel": "rbf", "length_scale": 1.0, "noise": 0.02}
    half = np.sort(rng.uniform(0, 10, settings.plane_size))
    queries = np.linspace(-10, 10, settings.n_points)[:, None]
    rows = []
    for width in GAPS:
        note(f"gap: {width}")
        X = np.concatenate([-half[::-1], half])[:, None]
        X += np.sign(X) * width / 2
        y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=len(X))
        full = GP(**options).fit(X, y)
        models = {
            "domain_decomposition": DomainDecompositionGP(
                GP(**options), cell_size=len(half)
            ),
            "patchwork": PatchworkGP(GP(**options), cell_size=len(half)),
        }
        free = [free_variance(side, options) for side in (X[X < 0], X[X > 0])]
        row = {
            "gap": width,
            "full": free_variance(X[:, 0], options),
            "one_side": free[0],
            # The prior counts once for each cell, or once in all.
            "two_priors": 1 / sum(1 / v for v in free),
            "one_prior": 1 / (sum(1 / v for v in free) - 1),
        }
        for name, model in models.items():
            model.fit(X, y)
            border = model.control_points_
            _, std = model.predict(border, return_std=True, noise=False)
            row[name] = float(std[0] ** 2 / model.amplitude_sq_[0])
            difference = model.predict(queries) - full.predict(queries)
            row[f"rms_{name}"] = float(np.sqrt(np.mean(difference**2)))
        rows.append(row)
    print_table("Variance at a border without rows; the prior's is 1", rows)
    return rows


def free_variance(x, options):
    """Posterior variance of a GP's function at zero, relative to its amplitude."""
    rho, noise = options["length_scale"], options["noise"]
    K = np.exp(-0.5 * (x[:, None] - x[None]) ** 2 / rho**2) + noise * np.eye(len(x))
    k = np.exp(-0.5 * x**2 / rho**2)
    return float(1.0 - k @ np.linalg.solve(K, k))


# -- draws from the prior --------------------------------------------------------------

# Numbers of inputs in a unit box, and length scales.
FIELDS = ((1, 0.02), (1, 0.01), (2, 0.1), (2, 0.05))
FIELD_NOISE, N_WAVES = 0.02, 2000
# A separate GP of fewer rows would warn.
LEAST_SIZE = 80
SEEDS = (0, 1, 2)
TIED = {"domain_decomposition": DomainDecompositionGP, "patchwork": PatchworkGP}


def field(settings):
    """Squared errors over those of the full GP, for draws from the prior."""
    sizes = min(settings.n_train, N_ROWS), max(settings.plane_size, LEAST_SIZE)
    rows = [one_field(*kind, *sizes, seed) for kind in FIELDS for seed in SEEDS]
    print_table("Squared errors, over those of the full GP", rows)
    return rows


def one_field(d, length_scale, n, size, seed):
    """One smooth random function of d inputs: errors of all methods at new places."""
    note(f"field: {d} inputs, length scale {length_scale}, seed {seed}")
    rng = np.random.default_rng(seed)
    function = draw_from_prior(rng, d, length_scale)
    X, Q = rng.uniform(0, 1, (2, n, d))
    y = function(X) + np.sqrt(FIELD_NOISE) * rng.normal(size=n)
    options = {"kernel": "rbf", "length_scale": length_scale, "noise": FIELD_NOISE}
    truth, full = function(Q), GP(**options).fit(X, y).predict(Q)
    mse = float(np.mean((full - truth) ** 2))
    row = {"n_inputs": d, "length_scale": length_scale, "seed": seed, "n_train": n}
    predictions = {}
    for name, method in TIED.items():
        model = method(GP(**options), cell_size=size).fit(X, y)
        predictions[name] = model.predict(Q)
    row |= {"per_axis": model.n_cells_[0], "n_control": len(model.control_points_)}
    row["mse_full"] = mse
    predictions["separate"] = separate(X, y, Q, model.n_cells_, options)
    for name, mean in predictions.items():
        row[name] = float(np.mean((mean - truth) ** 2)) / mse
    return row


def draw_from_prior(rng, d, length_scale):
    """A function of variance one with a Gaussian covariance, as a sum of many waves."""
    frequencies = rng.normal(size=(d, N_WAVES)) / length_scale
    phases, amplitudes = rng.uniform(0, 2 * np.pi, N_WAVES), rng.normal(size=N_WAVES)
    return lambda X: (
        np.cos(X @ frequencies + phases) @ amplitudes * (2 / N_WAVES) ** 0.5
    )


def separate(X, y, Q, n_cells, options):
    """Predictions of GPs on the same cells, which do not know of their neighbours."""
    low, width, counts = X.min(axis=0), np.ptp(X, axis=0), np.array(n_cells)

    def cell_of(P):
        place = np.clip((P - low) / width * counts, 0, counts - 1).astype(int)
        return np.ravel_multi_index(tuple(place.T), n_cells)

    own, asked, mean = cell_of(X), cell_of(Q), np.empty(len(Q))
    for j in np.unique(asked):
        here = own == j
        mean[asked == j] = GP(**options).fit(X[here], y[here]).predict(Q[asked == j])
    return mean


def main(arguments=None):
    """Measure jumps."""
    summary, settings = __doc__.splitlines()[0], (systems.FULL, systems.QUICK)
    sections = {"jumps": boundaries, "gap": gap, "field": field}
    _common.run_sections(summary, "boundaries", sections, settings, arguments)


if __name__ == "__main__":
    main()
