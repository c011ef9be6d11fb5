"""Tables of docs/methods.md: the methods side by side; used by `publish.py`."""

from _tables import made_by, number, table


def systems_table(result):
    """All systems on the same data with the same hyperparameters."""
    rows = [
        [
            r["data"],
            r["method"],
            number(r["rmse"]),
            number(r.get("nlpd")),
            f"{r['coverage_95']:.1%}" if r.get("coverage_95") is not None else "-",
            number(r["fit_s"]),
            number(r["us_query"]),
            str(r.get("n_negative") or "-"),
        ]
        for r in result["rows"]
    ]
    head = ["data", "system", "RMSE", "NLPD", "coverage of Gaussian 95 % intervals"]
    head += ["fit, s", "us per query", "negative variances"]
    text = f"{result['rows'][0]['n_train']:,} training rows. "
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def boundaries(result):
    """Jumps along lines."""
    rows = [
        [
            r["method"],
            number(r["mean_jump"], 2),
            number(r["largest_jump"], 2),
            number(r["rms_from_full"], 2),
        ]
        for r in sorted(result["rows"], key=lambda r: r["mean_jump"])
    ]
    head = ["system", "largest jump on a line, mean over lines"]
    head += ["largest jump on any line", "RMS difference from the full GP"]
    text = (
        "A jump is a second difference of the predictive mean. Each line crosses a "
        "plane of 4,000 rows in 2,000 steps; M = 200, and the standard deviation of "
        "the noise is 0.1. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def boundaries_gap(result):
    """Variances at a border without rows."""
    names = ("full", "one_prior", "domain_decomposition", "patchwork", "two_priors")
    names += ("rms_domain_decomposition", "rms_patchwork")
    rows = [
        [f"{r['gap']:g}", *(number(r[name], 2) for name in names)]
        for r in result["rows"]
    ]
    head = ["gap, length scales", "full GP", "one prior"]
    head += ["domain decomposition", "patchwork kriging", "two priors"]
    head += ["RMS of domain decomposition", "RMS of patchwork kriging"]
    text = (
        "Variances of the function at the border, in units of the prior's; RMS "
        "differences of the means from the full GP, along the whole line. There are "
        "200 rows on each side, and the standard deviation of the noise is 0.1. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def boundaries_field(result):
    """Errors for draws from the prior: means over seeds, and their range."""
    kinds: dict[tuple, list] = {}
    for r in result["rows"]:
        kinds.setdefault((r["n_inputs"], r["length_scale"]), []).append(r)
    rows = []
    for (n_inputs, length_scale), some in kinds.items():
        cells = " x ".join([str(some[0]["per_axis"])] * n_inputs)
        width = f"{1 / some[0]['per_axis'] / length_scale:.2g}"
        ratios = [
            f"{sum(ratio) / len(ratio):.2f} ({min(ratio):.2f} to {max(ratio):.2f})"
            for name in ("domain_decomposition", "patchwork", "separate")
            for ratio in [[r[name] for r in some]]
        ]
        rows.append([str(n_inputs), cells, str(some[0]["n_control"]), width, *ratios])
    head = ["inputs", "cells", "control points", "width of a cell, length scales"]
    head += ["domain decomposition", "patchwork kriging", "separate GPs"]
    text = (
        "Mean squared errors over that of the full GP: mean over seeds 0, 1 and 2, and "
        f"range. {result['rows'][0]['n_train']:,} training rows; the variance of the "
        "noise is 2 % of the signal's. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def systems_agreement(result):
    """Differences from GPy."""
    rows = [
        [r["method"], f"{r['mean_difference']:.1e}", f"{r['variance_difference']:.1e}"]
        for r in result["rows"]
    ]
    version = result["rows"][0]["gpy"] if result["rows"] else "-"
    head = ["method", "mean", "variance"]
    text = f"Largest difference from GPy {version}. "
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def systems_learned(result):
    """Sparse GPs with the cover's hyperparameters and with their own."""
    source = {"local": "of the cover", "bound": "from its own bound"}
    rows = [
        [
            r["data"],
            r["method"],
            source[r["tuning"]],
            number(r["rmse"]),
            number(r["nlpd"]),
            f"{r['coverage_95']:.1%}",
        ]
        for r in result["rows"]
    ]
    head = ["data", "system, m = 200", "hyperparameters", "RMSE", "NLPD"]
    head += ["coverage of Gaussian 95 % intervals"]
    return f"{table(head, rows)}\n\n{made_by(result)}"


def special(result):
    """A jump, and a curve with several outputs for one input."""
    rows = [
        [r["method"], number(r["rmse_at_jump"]), f"{r['on_curve']:.0%}"]
        for r in result["rows"]
    ]
    head = ["method", "RMSE with a jump", "predictions on the S-curve"]
    return f"{table(head, rows)}\n\n{made_by(result)}"


# Facts about each method: any number of inputs, machines, and whether its parts can be
# trained in parallel.
ANY, TWO = "yes", "no, at most two"
GPS, ALL, OWN = "GP", "GP, Twin GPs, any regressor", "kernels of inputs and outputs"
YES, PARTLY, NOTHING = "yes", "partly", "nothing to train"
FACTS = {
    "full GP": (ANY, GPS, "no"),
    "cover, p=.9": (ANY, ALL, YES),
    "cover, p=0, RPC (Local-RPC)": (ANY, ALL, YES),
    "NN scheme": (ANY, ALL, NOTHING),
    **dict.fromkeys(("FIC", "DTC", "SOR", "NYSTROM", "PIC"), (ANY, GPS, PARTLY)),
    **dict.fromkeys(("poe", "gpoe", "bcm", "rbcm", "grbcm"), (ANY, GPS, YES)),
    "domain decomposition": (TWO, GPS, YES),
    "patchwork kriging": (TWO, GPS, PARTLY),
    "mixture of GPs": (ANY, GPS, YES),
    "tree of GPs": (ANY, GPS, YES),
    "LPR": (ANY, GPS, NOTHING),
    **dict.fromkeys(("weighted kNN", "HSIC", "KTA"), (ANY, OWN, NOTHING)),
}


def contrast(systems, jumps):
    """The paper's comparison of properties: what can be measured, is."""
    on_table = {r["method"]: r for r in systems["rows"] if r["data"] == "kin40k"}
    in_plane = {r["method"]: r for r in jumps["rows"]}
    accuracy, costs = ("rmse", "rms_from_full", "largest_jump"), ("fit_s", "us_query")
    rows = []
    for method, facts in FACTS.items():
        plane, table_row = in_plane[method], on_table.get(method)
        rows.append(
            [
                method,
                *(number(plane[name], 2) for name in accuracy),
                *(number(plane[name]) for name in costs),
                number(table_row["rmse"]) if table_row else "two inputs at most",
                *facts,
            ]
        )
    head = ["method", "RMSE in the plane", "RMS difference from the full GP there"]
    head += ["largest jump there", "fit, s", "us per query", "RMSE on kin40k"]
    head += ["any number of inputs", "machines", "parallel training"]
    return f"{table(head, rows)}\n\n{made_by(jumps)}"


TABLES = {
    "contrast": (("systems_table", "boundaries_jumps"), contrast),
    "systems-table": ("systems_table", systems_table),
    "boundaries": ("boundaries_jumps", boundaries),
    "boundaries-gap": ("boundaries_gap", boundaries_gap),
    "boundaries-field": ("boundaries_field", boundaries_field),
    "systems-learned": ("systems_learned", systems_learned),
    "systems-special": ("systems_special", special),
    "systems-agreement": ("systems_agreement", systems_agreement),
}
