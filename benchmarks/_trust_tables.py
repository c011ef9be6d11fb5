"""Tables of the trials of defaults on unfamiliar data; used by `publish.py`."""

from _tables import made_apart, made_by, number, table


def share(value):
    """A share in per cent, or a dash."""
    return "-" if value is None else f"{value:.1%}"


def finished(head, rows, result, made=made_by):
    """The table, and the command behind it."""
    return f"{table(head, rows)}\n\n{made(result)}"


def pairs(result):
    """The two outputs, seed by seed."""
    rows = [
        [
            str(r["seed"]),
            *(f"{r[f'r2_{name}']:.3f}" for name in ("noisy", "free")),
            *(share(r[f"coverage_{name}"]) for name in ("noisy", "free")),
        ]
        for r in result["rows"]
        if r["case"] == "pair"
    ]
    head = ["seed", "R2, noisy output", "R2, output without noise"]
    head += ["coverage, noisy output", "coverage, output without noise"]
    return finished(head, rows, result)


def mixtures(result):
    """Joint fit over fits alone, one line per mixture."""
    by_seed: dict[int, list[dict]] = {}
    for r in result["rows"]:
        if r["case"] == "mixture":
            by_seed.setdefault(r["seed"], []).append(r)
    rows = []
    for seed, group in by_seed.items():
        ratios = [r["ratio"] for r in group]
        errors = ", ".join(number(r["rmse_alone"]) for r in group)
        noises = ", ".join(f"{r['noise']:.2f}" for r in group)
        covered = [r["coverage_95"] for r in group]
        rows.append(
            [
                str(seed),
                str(group[0]["n_features"]),
                noises,
                errors,
                ", ".join(f"{ratio:.3f}" for ratio in ratios),
                f"{share(min(covered))} to {share(max(covered))}",
            ]
        )
    head = ["mixture", "columns", "noise of the outputs", "RMSE, alone"]
    return finished([*head, "RMSE, joint / alone", "coverage"], rows, result)


def kernels(result):
    """Errors over that of the best fixed kernel."""
    names = ("rbf", "matern52", "matern32", "matern12", "auto")
    rows = [
        [r["case"], str(r["seed"]), f"{r['n_rows']:,}", r["chosen"]]
        + [f"{r[name]:.3f}" for name in names]
        for r in result["rows"]
    ]
    return finished(["data", "seed", "rows", '"auto" chose', *names], rows, result)


def logs(result):
    """Later rows and shuffled rows."""
    rows = [
        [
            r["case"],
            str(r["seed"]),
            r["rows"],
            number(r["rmse"]),
            share(r["coverage_95"]),
            r["warnings"],
            f"{r['ratio']:.3f}" if "ratio" in r else "-",
        ]
        for r in result["rows"]
    ]
    head = ["log", "seed", "test rows", "RMSE", "coverage", "warning"]
    return finished([*head, "RMSE over that with every row a group"], rows, result)


def gaps(result):
    """Gaps, with widths beside those of a full GP."""
    rows = [
        [
            r["case"].removeprefix("gap: "),
            str(r["seed"]),
            share(r["coverage_95"]),
            share(r["coverage_full"]),
            number(r["rmse"]),
            number(r["rmse_full"]),
            number(r["width_ratio"], 2),
            number(r["width_ratio_beside"], 2),
        ]
        for r in result["rows"]
        if r["case"].startswith("gap")
    ]
    head = ["data", "seed", "coverage in the gap", "coverage, full GP"]
    head += ["RMSE in the gap", "RMSE, full GP", "width / full GP, in the gap"]
    return finished([*head, "width / full GP, elsewhere"], rows, result)


def far(result):
    """Queries far from all rows."""
    rows = [
        [
            r["case"].removeprefix("far: "),
            str(r["seed"]),
            share(r["coverage_95"]),
            number(r["width_over_spread"], 2),
        ]
        for r in result["rows"]
        if r["case"].startswith("far")
    ]
    head = ["function", "seed", "coverage", "width / that of the outputs' spread"]
    return finished(head, rows, result)


def small(result):
    """Few rows."""
    rows = [
        [
            str(r["n_rows"]),
            str(r["n_repeats"]),
            share(r["coverage_95"]),
            share(r["coverage_99"]),
        ]
        for r in result["rows"]
    ]
    head = ["rows", "repetitions", "95 % intervals hold", "99 % intervals hold"]
    return finished(head, rows, result)


def weights(result):
    """Largest relative changes."""
    rows = []
    for r in result["rows"]:
        factors = [
            value for key, value in r.items() if key.startswith(("constant", "times"))
        ]
        if not factors:
            rows.append([r["estimator"], r["note"], "-", "-"])
            continue
        values = r["effect of weights"], max(factors), r["copies"]
        rows.append([r["estimator"], *(f"{value:.1g}" for value in values)])
    head = ["estimator", "effect of the weights", "change by a common factor"]
    return finished([*head, "change by copies instead of weights"], rows, result)


def outliers(result):
    """Errors on clean rows, a column per magnitude."""
    sizes = list(dict.fromkeys(r["deviations"] for r in result["rows"]))
    cases = list(dict.fromkeys((r["case"], r["seed"]) for r in result["rows"]))
    by_key = {(r["case"], r["seed"], r["deviations"]): r for r in result["rows"]}
    rows = [
        [name, str(seed), number(by_key[name, seed, sizes[0]]["rmse_clean"])]
        + [number(by_key[name, seed, size]["ratio"]) for size in sizes]
        + [", ".join(share(by_key[name, seed, s]["coverage_95"]) for s in sizes)]
        + [by_key[name, seed, sizes[-1]]["warnings"]]
        for name, seed in cases
    ]
    head = ["data", "seed", "RMSE without outliers"]
    head += [f"ratio, {size:g} deviations" for size in sizes]
    return finished([*head, "coverage", "warning"], rows, result)


def pose(result, made=made_by):
    """Errors, regrets and coverage of both machines."""
    rows = [
        [
            r["case"],
            {"gp": "GP", "tgp": "TwinGP"}[r["machine"]],
            str(r["seed"]),
            number(r["error"]),
            number(r["neighbours"]),
            f"{r['regret']:+.1%}" if r["regret"] is not None else "-",
            share(r["coverage_95"]),
            number(r["fit_s"]),
        ]
        for r in result["rows"]
    ]
    head = ["data", "machine", "seed", "error", "error, 5 neighbours"]
    head += ["error over the best of a grid", "coverage", "fit, s"]
    return finished(head, rows, result, made)


def poses(result):
    """The same of a large run."""
    return pose(result, made_apart)


def surprises(result):
    """The default beside simple methods."""
    rows = [
        [r["case"], str(r["seed"])]
        + [number(r[key]) for key in ("rmse", "ridge", "neighbours", "trees", "nlpd")]
        + [share(r["coverage_95"]), r["warnings"], number(r["fit_s"], 2)]
        for r in result["rows"]
    ]
    head = ["kind of data", "seed", "RMSE", "ridge", "5 neighbours", "boosted trees"]
    return finished([*head, "NLPD", "coverage", "warning", "fit, s"], rows, result)


TABLES = {
    "trust-pairs": ("trust_outputs", pairs),
    "trust-mixtures": ("trust_outputs", mixtures),
    "trust-kernels": ("trust_kernels", kernels),
    "trust-logs": ("trust_logs", logs),
    "trust-gaps": ("trust_gaps", gaps),
    "trust-far": ("trust_gaps", far),
    "trust-small": ("trust_small", small),
    "trust-weights": ("trust_weights", weights),
    "trust-outliers": ("trust_outliers", outliers),
    "trust-pose": ("trust_pose", pose),
    "trust-poses": ("trust_poses", poses),
    "trust-surprises": ("trust_surprises", surprises),
}
