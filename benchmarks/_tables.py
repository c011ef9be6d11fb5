"""How each record of results becomes a table of a page; used by `publish.py`."""


def table(head, rows):
    """A markdown table; numbers are formatted by the caller."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def number(value, digits=3):
    """A number with so many significant digits, or a dash."""
    if value is None:
        return "-"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:#.{digits}g}".rstrip(".")


def made_by(result):
    """The command, commit, seed and machine behind the numbers, in one line."""
    run = result["run"]
    commit = (run["commit"] or "unknown")[:7]
    clock = "processor seconds, " if run.get("clock") == "processor" else ""
    return (
        f"`{run['command']}`, commit {commit}, seed {run['seed']}, {clock}"
        f"{run['cores']} cores ({run['cpu']})."
    )


def made_apart(result):
    """The same of a large run, which is repeated less often than the others."""
    return f"A long run of its own, perhaps of an older version: {made_by(result)}"


def nn(result):
    rows = [
        [
            row["data"],
            f"{row['speed_up']:.1f}x",
            f"{row['speed_up_large']:.1f}x",
            f"{row['rmse_ratio']:.3f} ({min(row['rmse_ratios']):.3f} to "
            f"{max(row['rmse_ratios']):.3f})",
            f"{row['gemm_share_train']:.0%}",
            f"{row['gemm_share_cover_large']:.0%}",
        ]
        for row in result["rows"]
    ]
    head = ["data", "speed-up on the test set"]
    head += ["speed-up on ten times as many queries", "RMSE ratio"]
    head += ["share of the GEMM rate, training", "share of the GEMM rate, prediction"]
    text = (
        "The cover against `NeighborhoodRegressor`, a GP on the 400 nearest rows of "
        "each query. Both predict means and standard deviations with the same "
        "hyperparameters, in one run, with one thread each. The RMSE ratio is the "
        "cover's error over that of `NeighborhoodRegressor`: the mean of three "
        "partitions, with the least and the largest in brackets. The GEMM rate is the "
        "speed at which this computer multiplies large matrices, which is the upper "
        "limit for all methods here. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def partition(result):
    found = result["rows"]
    names = ("refined", "assign", "imda", "rpc", "flow")
    by_key = {(row["K"], row["contender"]): row for row in found["quality"]}
    counts = sorted({row["K"] for row in found["quality"]})
    rows = [
        [str(K)]
        + [
            f"{by_key[K, n]['inertia']:.1f} ({number(by_key[K, n]['seconds'], 2)} s)"
            for n in names
        ]
        for K in counts
    ]
    head = ["K", "refined", "AB", "IMDA", "RPC", "min-cost flow (k-means-constrained)"]
    large = "; ".join(
        f"{r['n_samples']:,} x {r['n_features']} into {r['K']:,} clusters: "
        f"{r['seconds']:.0f} s, peak {r['peak_gb']:.1f} GB"
        for r in found["scale"]
    )
    sharded = "".join(
        f"{r['n_samples']:,} x {r['n_features']} into {r['K']:,} clusters in "
        f"{r['n_shards']} shards (one thread): {r['ratio']:.3f} times the J of "
        f"`EqualSizeKMeans`, in {r['seconds']:.0f} s instead of "
        f"{r['seconds_at_once']:.0f} s. "
        for r in found["two_level"]
    )
    return (
        f"{table(head, rows)}\n\nJ, the sum of squared distances to the cluster means, "
        "and seconds; 10,000 points in the unit disc, mean of five seeds, one thread. "
        f"Larger data on two cores: {large}. {sharded}{made_by(result)}"
    )


def scaling(result):
    stages = ("machines", "partition", "mean", "std")
    by_key = {(row["axis"], row["stage"]): row for row in result["rows"]}
    axes = list(dict.fromkeys(row["axis"] for row in result["rows"]))
    letters = {"K": "K'"}
    rows = [
        [letters.get(axis, axis)]
        + [f"{by_key[axis, stage]['exponent']:.2f}" for stage in stages]
        for axis in axes
    ]
    head = ["exponent in", "machines", "partition", "a mean", "a standard deviation"]
    text = "Measured slopes of log time over the log of each letter. "
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def memory(result):
    rows = [
        [f"{r['n_queries']:,}", r["dtype"], f"{r['growth_mb']:.0f} MB"]
        for r in result["rows"]
    ]
    head = ["queries", "type", "memory of `predict` beyond queries and result"]
    return f"{table(head, rows)}\n\n{made_by(result)}"


def varied(rows, key):
    """Rows of `gp.py` in which one option changed, a column per data set."""
    data = list(dict.fromkeys(row["data"] for row in rows))
    values = list(dict.fromkeys(row[key] for row in rows))
    by_key = {(row["data"], row[key]): row for row in rows}
    head = [key]
    for name in data:
        head += [f"{name} RMSE", "NLPD"]
    lines = []
    for value in values:
        line = [str(value)]
        for name in data:
            row = by_key[name, value]
            line += [number(row["rmse"]), number(row["nlpd"])]
        lines.append(line)
    return table(head, lines)


def routers(result):
    return f"{varied(result['rows'], 'router')}\n\n{made_by(result)}"


def overlap(result):
    changed = [row for row in result["rows"] if row["method"].startswith("router")]
    parts = []
    for router in dict.fromkeys(row["router"] for row in changed):
        rows = [row for row in changed if row["router"] == router]
        parts.append(f"Routed by {router}:\n\n{varied(rows, 'overlap')}")
    return "\n\n".join([*parts, made_by(result)])


def constants(result):
    """Error over that of a GP on nearest rows, by spread, candidates and sharpness."""
    rows = result["rows"]
    data = list(dict.fromkeys(row["data"] for row in rows))
    by_option: dict[tuple, dict[str, dict]] = {}
    for row in rows:
        # One thing at a time: spread at the default candidates, these at the default
        # spread.
        default = (row["n_candidates"], row["reach"]) == (5, 1.1)
        if row["sharpness"] in (None, 16, 8) and (default or row["spread"] == 3):
            key = (row["spread"], row["n_candidates"], row["reach"], row["sharpness"])
            by_option.setdefault(key, {})[row["data"]] = row
    head = ["spread", "candidates", "within", "sharpness"]
    head += [text for name in data for text in (f"{name}, machines", "RMSE ratio")]
    lines = [
        [str(spread), str(n), f"{reach:g}", str(sharpness or "hard")]
        + [
            text
            for name in data
            for text in (
                f"{by_data[name]['asked']:.2f}",
                f"{by_data[name]['rmse_ratio']:.3f}",
            )
        ]
        for (spread, n, reach, sharpness), by_data in by_option.items()
    ]
    return f"{table(head, lines)}\n\n{made_by(result)}"


def twin_search(result):
    """Batched search against a loop, by size of the subdomain."""
    rows = [
        [
            str(r["size"]),
            str(r["rank"]),
            f"{r['dense_speed_up']:.1f}x",
            f"{r['low_rank_speed_up']:.1f}x",
            f"{r['evaluations']:.1f}",
            f"{r['gemm_share_dense']:.0%}",
            f"{r['low_rank_change']:.2%}",
        ]
        for r in result["rows"]
    ]
    head = ["M", "pivots", "batched, exact", "batched, pivots", "evaluations per query"]
    head += ["share of the GEMM rate, exact", "change by pivots"]
    text = (
        "Speed-ups of the batched search over a loop of scipy's L-BFGS over the "
        "queries, at equal precision, with precomputed inverses and one thread each. "
        "The 2,000 queries are training rows of one subdomain, shifted a little. The "
        "GEMM rate is the speed of large matrix products on this computer. The change "
        "that pivots cause in predictions is relative to the outputs' standard "
        "deviation. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def twin_cover(result):
    """Cover against the NN scheme and the full model, by size of the subdomain."""
    rows = [
        [
            str(r["size"]),
            *(number(r[f"us_{name}"]) for name in ("cover", "nn", "full")),
            f"{r['speed_up']:.0f}x",
            f"{r['speed_up_std']:.0f}x",
            *(number(r[f"mm_{name}"]) for name in ("cover", "nn", "full")),
            f"{r['mm_ratio']:.3f}",
        ]
        for r in result["rows"]
    ]
    head = ["M", "us per query, cover", "NN scheme", "full model"]
    head += ["speed-up of the cover over NN", "speed-up with std"]
    head += ["error, cover", "NN scheme", "full model", "error, cover / NN"]
    text = (
        f"Twin GPs on the {result['rows'][0]['n_train']:,} training frames of "
        '`make_pose("humaneva")`, p = 0.9. All three use the same hyperparameters and '
        "one thread; times are processor times and include routing, errors are mean "
        f"joint errors in mm on {result['rows'][0]['n_compared']} test frames. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def twin_tuning(result):
    """Twin GPs beside other systems on real data."""
    rows = [
        [
            r["data"],
            r["method"],
            number(r["error"]),
            f"{r['coverage_95']:.1%}" if r.get("coverage_95") else "-",
            number(r["fit_s"]),
        ]
        for r in result["rows"]
    ]
    head = ["data", "method", "error", "coverage of 95 % intervals", "fit, s"]
    text = (
        "The error on poserlike is the mean absolute difference of angles in degrees, "
        "on sarcos_small the RMSE in standard deviations of the outputs. TwinGP and GP "
        "are machines of a cover. The nearest-neighbour and ridge regressions are "
        "tuned by cross-validation. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def twin_shift(result):
    """Weighted against plain Twin GPs."""
    rows = result["rows"]
    better = sum(r["ratio"] < 1 for r in rows)
    ratio = sum(r["ratio"] for r in rows) / len(rows)
    return (
        f"On this problem the error of the weighted machine is {ratio:.2f} times that "
        f"of `TwinGP` (mean of {len(rows)} seeds), and lower in {better} of the "
        f"{len(rows)}. "
        f"{made_by(result)}"
    )


def pose(result):
    """Errors on synthetic poses, a column per preset."""
    units = {"humaneva": "mm", "poser": "degrees", "human36m": "mm"}
    errors = {(r["preset"], r["method"]): r["error"] for r in result["rows"]}
    presets = list(dict.fromkeys(preset for preset, _ in errors))
    methods = list(dict.fromkeys(method for _, method in errors))
    rows = [
        [method] + [number(errors[preset, method]) for preset in presets]
        for method in methods
    ]
    head = ["method"] + [f"{preset}, {units[preset]}" for preset in presets]
    return f"{table(head, rows)}\n\n{made_by(result)}"


def comparison(result):
    """The table of `overcover compare` for one data set."""
    rows = [
        [
            f"**{r['method']}**" if r["method"].startswith("odc") else r["method"],
            f"{number(r['rmse'])} ± {number(r['rmse_spread'], 2)}",
            number(r["mae"]),
            f"{r['r2']:.3f}",
            number(r["nlpd"]),
            f"{r['held']:.1%}" if r["held"] is not None else "-",
            number(r["fit_seconds"]),
            number(r["microseconds"]),
        ]
        for r in result["rows"]
    ]
    first = result["rows"][0]
    many = first["n_outputs"] > 1
    head = ["method", "RMSE, standardised" if many else "RMSE", "mean abs. error"]
    head += ["R2", "NLPD", "coverage of 95 % intervals", "fit, s", "us per row"]
    parted = ""
    if first["block"] > 1:
        parted = f" that keep {first['block']} consecutive rows together"
    threads = "one thread" if first["n_jobs"] == 1 else f"{first['n_jobs']} threads"
    text = (
        f"{first['data']}: {first['n_rows']:,} rows, {first['n_inputs']} inputs, "
        f"{first['n_outputs']} output{'s' if many else ''}, {first['n_folds']} folds"
        f"{parted}; ± is the spread between folds; seconds are those of one fold, with "
        f"{threads} each. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def frames(result):
    """Errors on a table with words, dates and gaps."""
    rows = [
        [
            f"**{r['method']}**" if r is result["rows"][0] else r["method"],
            number(r["rmse"]),
            ", ".join(number(error) for error in r["rmse_of_seeds"]),
            f"{r['coverage_95']:.1%}" if r["coverage_95"] is not None else "-",
            number(r["fit_seconds"]),
        ]
        for r in result["rows"]
    ]
    head = ["method", "RMSE, standardised", "of each seed"]
    head += ["coverage of 95 % intervals", "fit, s"]
    first = result["rows"][0]
    text = f"{first['n_train']:,} training rows, {first['n_test']:,} test rows. "
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


TABLES = {
    "nn": ("gp_nn", nn),
    "partition": ("partition", partition),
    "scaling": ("complexity", scaling),
    "memory": ("gp_memory", memory),
    "routers": ("gp_routers", routers),
    "overlap": ("gp_overlap", overlap),
    "constants": ("constants", constants),
    "twin-search": ("twin_search", twin_search),
    "twin-cover": ("twin_cover", twin_cover),
    "twin-tuning": ("twin_tuning", twin_tuning),
    "twin-shift": ("twin_shift", twin_shift),
    "pose": ("pose", pose),
    "compare-kin40k": ("compare_kin40k", comparison),
    "compare-poserlike": ("compare_poserlike", comparison),
    "frames": ("frames_table", frames),
}
