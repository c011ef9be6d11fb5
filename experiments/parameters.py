"""The parameter analysis: error over p, for several t, K', partitions, machines and M.

One result serves the paper's figures for GP and TGP at M = 800 and 400, and the figures
that show K' side by side.
"""

import numpy as np

from _common import note, print_table

from .definitions import CONSULTED, MACHINES, PARTITIONS
from .figures import LINES, figure
from .machinery import cover_of, load, means_by_consulted, tuned


def run(scale):
    """Errors of every combination, on the HumanEva-like set."""
    problem = load("humaneva", scale).some(scale.n_test)
    rows = []
    for size in scale.analysed:
        for kind in MACHINES:
            machine = tuned(problem, scale, kind)
            for partition in PARTITIONS:
                for p in scale.overlaps:
                    # Without overlap, t has no effect.
                    for t in scale.spreads if p else scale.spreads[:1]:
                        options = {"partition": partition, "overlap": p, "spread": t}
                        rows += analyse(
                            problem, machine, kind, size, options, scale.n_seeds
                        )
    print_table("Parameter analysis", rows)
    return rows


def analyse(problem, machine, kind, size, options, n_seeds):
    """Errors with every K', averaged over covers that differ by their seed only."""
    note(f"parameters: M={size} {kind} {options}")
    errors: dict[int, list[float]] = {}
    for seed in range(n_seeds):
        model = cover_of(machine, size, random_state=seed, **options)
        model.fit(problem.X_train, problem.Y_train)
        means = means_by_consulted(model, problem.X_test, CONSULTED)
        for k, mean in means.items():
            errors.setdefault(k, []).append(problem.error(problem.Y_test, mean))
    return [
        {
            "M": size,
            "machine": kind,
            "partition": options["partition"],
            "p": options["overlap"],
            "t": options["spread"],
            "K'": k,
            "K": model.n_subdomains_,
            "error": float(np.mean(values)),
            "errors": values,
            "unit": problem.unit,
        }
        for k, values in errors.items()
    ]


def draw(rows, folder):
    """A figure per machine and M, as the paper's; and K' side by side."""
    paths = []
    for size in sorted({r["M"] for r in rows}):
        for kind in MACHINES:
            mine = [r for r in rows if (r["M"], r["machine"]) == (size, kind)]
            paths.append(_grid(mine, folder / f"parameters-{kind}-{size}.png"))
    largest = max(r["M"] for r in rows)
    mine = [r for r in rows if (r["M"], r["machine"]) == (largest, "tgp")]
    paths.append(_side_by_side(mine, folder / "consulted.png"))
    return paths


def _grid(rows, path):
    """Partitions down, K' across, a line per t."""
    with figure(path, (2, 3), (9, 5), sharex=True, sharey=True) as panels:
        for across, partition in zip(panels, PARTITIONS):
            for panel, k in zip(across, CONSULTED):
                mine = [r for r in rows if (r["partition"], r["K'"]) == (partition, k)]
                for t, line in zip(sorted({r["t"] for r in mine}), LINES):
                    # All lines start from the cover without overlap.
                    points = sorted(
                        (r["p"], r["error"]) for r in mine if r["t"] == t or not r["p"]
                    )
                    panel.plot(*zip(*points), label=f"t = {t:g}", **line)
                panel.set_title(f"{partition.upper()}, K' = {k}", fontsize=9)
        panels[0, 0].legend(fontsize=8)
        panels[1, 1].set_xlabel("overlap p")
        for panel in panels[:, 0]:
            panel.set_ylabel(f"error, {rows[0]['unit']}")
    return path


def _side_by_side(rows, path):
    """K' in one panel per partition, t = 1."""
    with figure(path, (1, 2), (8, 3.2), sharey=True) as panels:
        for panel, partition in zip(panels, PARTITIONS):
            for k, line in zip(CONSULTED, LINES):
                points = sorted(
                    (r["p"], r["error"])
                    for r in rows
                    if (r["partition"], r["K'"], r["t"]) == (partition, k, 1.0)
                )
                panel.plot(*zip(*points), label=f"K' = {k}", **line)
            panel.set_title(f"{partition.upper()}, t = 1", fontsize=9)
            panel.set_xlabel("overlap p")
        panels[0].set_ylabel(f"error, {rows[0]['unit']}")
        panels[0].legend(fontsize=8)
    return path
