"""Tables of docs/scaling.md: plans, simulations, large runs; used by `publish.py`."""

from _tables import made_apart, made_by, table

MACHINES = {"gp": "GP", "tgp": "TwinGP"}


def two_digits(value):
    """A number with two digits, or all those before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def span(seconds):
    """Seconds in a readable unit."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{two_digits(seconds / unit)} {name}"
    return f"{two_digits(seconds)} s"


def size(n_bytes):
    """Bytes in a readable unit."""
    for unit, name in ((1e12, "TB"), (1e9, "GB")):
        if n_bytes >= unit:
            return f"{two_digits(n_bytes / unit)} {name}"
    return f"{two_digits(n_bytes / 1e6)} MB"


def stream(result):
    """A model that learned a stream of rows, beside a fit at once."""
    (row,) = result["rows"]
    end, batches = row["summary"], row["batches"]
    rows = [
        [f"{b['rows']:,}", str(b.get("subdomains", "-"))]
        + [f"{span(b['seconds'])}, {size(1e6 * b['megabytes'])}"]
        + [
            f"{span(b['query_seconds'])}, {size(1e6 * b['query_megabytes'])}"
            if "query_seconds" in b
            else "-"
        ]
        + [span(b["retune_seconds"]) if b.get("retune_seconds") else "-"]
        for b in batches
        if "query_seconds" in b or b.get("retune_seconds")
    ]
    head = ["rows", "subdomains", "the batch", "the query after it", "`retune`"]
    same = "the same" if end["same"] else "other"
    text = (
        f"{end['n_rows']:,} rows of kin40k, {end['n_first']:,} of them fitted, the "
        f"others learned {end['n_batch']:,} at a time, with a query after every "
        f"{end['n_unasked']} and `retune` when `advise` says so ({end['n_retuned']} "
        f"times, {span(end['seconds_retuned'])} in all); times, and memory beyond the "
        "model. Later batches take "
        f"{end['later_over_earlier']:.2f} times as long as earlier ones. "
        "Error of test rows in the end: "
        f"{end['error_ratio']:.3f} times that of a fit at once "
        f"({end['error']:.4f}, {end['error_at_once']:.4f}). A fit at once takes "
        f"{span(end['seconds_at_once'])}, {end['batch_cheaper']:.1f} times a batch "
        f"with its share of the queries, and "
        f"{end['single_cheaper']:.0f} times a single row with a prediction after it "
        f"({span(end['seconds_single'])}). Saved and loaded midway, predictions are "
        f"{same}. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def first_use(result):
    """What numba compiles for the first fit and prediction."""
    (row,) = result["rows"]
    rows = [[f"`{name}`", f"{s:.2f}"] for name, s in row["compiled"].items()]
    total = sum(row["compiled"].values())
    rows.append(["all", f"{total:.2f}"])
    first, second = (row[which] for which in ("first", "second"))
    text = (
        f"{row['rows']:,} rows of {row['columns']} columns. Importing, fitting and "
        f"predicting take {sum(first.values()):.1f} processor seconds the first time "
        f"({first['import']:.2f}, {first['fit']:.1f} and {first['predict']:.2f}), and "
        f"{sum(second.values()):.1f} in the next process ({second['import']:.2f}, "
        f"{second['fit']:.1f} and {second['predict']:.2f}). "
    )
    head = ["function", "processor s"]
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def budgets(result):
    """What a fit within a budget chose, and took."""
    rows = [
        [
            f"{row['n']:,} x {row['d']}",
            span(row["budget"]),
            f"{row['size']}, {row['overlap']:.2f}",
            span(row["seconds"]),
        ]
        for row in result["rows"]
    ]
    shares = [row["ratio"] for row in result["rows"]]
    text = f"Fits took {min(shares):.2f} to {max(shares):.2f} of their budgets. "
    head = ["rows", "budget", "M, p", "time of the fit"]
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


def planning(result):
    """What was planned beside what was seen."""
    rows = [
        [
            f"{row['n']:,} x {row['d']}",
            str(row["d_y"]),
            MACHINES[row["machine"]],
            f"{row['size']}, {row['overlap']:g}",
            "store" if row["into_store"] else "memory",
            *(
                f"{say(row[f'{kind}_planned'])} / {say(row[f'{kind}_seen'])}"
                for kind, say in (("seconds", span), ("memory", size), ("disk", size))
            ),
        ]
        for row in result["rows"]
    ]
    head = ["rows", "outputs", "machine", "M, p", "into"]
    head += ["time, planned / seen", "memory", "disk"]
    ratios = [row["seconds_ratio"] for row in result["rows"]]
    stages = ("tuning", "partition", "cover", "machines", "queries")
    within = [
        0.5 <= row[f"{stage}_ratio"] <= 2.0
        for row in result["rows"]
        for stage in stages
        if row[f"{stage}_ratio"] is not None
    ]
    text = (
        f"Planned times are {min(ratios):.2f} to {max(ratios):.2f} times those seen; "
        f"of the {len(within)} stages, {sum(within)} are within a factor of two. "
        "1,000 queries, with standard deviations. One thread. "
    )
    return f"{table(head, rows)}\n\n{text}{made_by(result)}"


STAGES = ("tuning", "coarse", "assign", "shuffle", "partition", "borrow", "machines")
STAGES += ("write",)


def simulate(result):
    """Stage times of simulated clusters."""
    rows = [
        [
            f"10^{len(str(row['n'])) - 1} x {row['d']}",
            str(row["n_workers"]),
            *(span(row[stage]) for stage in STAGES),
            f"**{span(row['total'])}**",
            size(row["store"]),
            size(row["memory"]),
        ]
        for row in result["rows"]
    ]
    head = ["rows", "workers", *STAGES, "all", "store", "memory of a worker"]
    return f"{table(head, rows)}\n\nSimulated. {made_by(result)}"


def scale_million(result):
    head = ["", "fit", "a query", "RMSE", "RMSE without noise"]
    head += ["coverage of 95 % intervals", "memory"]
    rows = []
    for r in result["rows"]:
        held, peak = r.get("coverage_95"), r.get("peak_gb")
        rows.append(
            [
                {"cover": "**overcover**, with std"}.get(r["method"], r["method"]),
                span(r["fit_s"]),
                f"{r['us_per_query']:.0f} us",
                f"{r['rmse']:.4f}",
                f"{r['rmse_of_f']:.4f}",
                "-" if held is None else f"{100 * held:.1f} %",
                "-" if peak is None else f"{peak:.2f} GB",
            ]
        )
    r = result["rows"][0]
    stages = ", ".join(
        f"{stage} {r[f'{stage}_s']:.0f}"
        for stage in ("tuning", "partition", "cover", "machines")
    )
    text = (
        f"{r['n']:,} rows and as many queries, {r['K']:,} subdomains. Seconds of the "
        f"fit: {stages}; of all queries {r['predict_s']:.0f}. The machines reach "
        f"{100 * r['gemm_share_machines']:.0f} % of the rate of large matrix products "
        f"({r['gflops_gemm']:.0f} GFLOP/s), the queries "
        f"{100 * r['gemm_share_predict']:.0f} %."
    )
    return f"{table(head, rows)}\n\n{text} {made_apart(result)}"


def scale_pose(result):
    [r] = result["rows"]
    parts = {
        "tuning": r["tuning_s"],
        "partition": r["partition_s"],
        "cover and router": r["cover_s"],
        f"{r['K']} machines": r["machines_s"],
        "fingerprint, files": r["files_s"],
        f"{r['n_queries']:,} queries": r["predict_s"],
        "**all**": r["total_s"],
    }
    rows = [
        [name, span(s), f"{100 * s / r['total_s']:.0f} %"] for name, s in parts.items()
    ]
    text = (
        f"{r['n']:,} x {r['d']:,} rows of float32 on the disk, M = {r['M']:,}, "
        f"p = .6. Error {r['error_mm']:.1f} mm; coverage of 95 % intervals "
        f"{100 * r['coverage_95']:.1f} %. Memory {r['peak_gb']:.1f} GB "
        f"({r['rss_gb']:.1f} GB with the pages of mapped files), store "
        f"{r['store_gb']:.1f} GB. Of the rate of large matrix products "
        f"({r['gflops_gemm']:.0f} GFLOP/s) the machines reach "
        f"{100 * r['gemm_share_machines']:.0f} %, the queries "
        f"{100 * r['gemm_share_predict']:.0f} %, the whole "
        f"{100 * r['gemm_share_all']:.0f} %."
    )
    head = ["stage", "time", "share"]
    return f"{table(head, rows)}\n\n{text} {made_apart(result)}"


def scale_growth(result):
    points = result["rows"][0]["points"]
    rows = [
        [
            f"{p['n']:,}",
            f"{p['K']:,}",
            *(f"{p[stage]:.1f} s" for stage in ("partition", "cover", "machines")),
            f"{p['us_per_query']:.0f} us",
            f"{p['growth_gb']:.2f} GB",
        ]
        for p in points
    ]
    by_stage = {row["stage"]: row for row in result["rows"]}
    stages = ("partition", "cover", "machines", "us_per_query")
    slopes = [f"{by_stage[stage]['exponent']:.2f}" for stage in stages]
    rows.append(["*exponent*", "", *slopes, ""])
    head = ["rows", "subdomains", "partition", "cover", "machines", "a query", "memory"]
    return f"{table(head, rows)}\n\n{made_apart(result)}"


def scale_store(result):
    stages = ("load", "first", "warm", "thousand")
    rows = [
        [
            f"`{r['way']}`",
            f"{r['mb']:,.0f} MB",
            *(f"{r[f'{stage}_ms']:,.1f} ms" for stage in stages),
        ]
        for r in result["rows"]
    ]
    head = ["", "bytes", "load", "first query", "another", "a thousand"]
    return f"{table(head, rows)}\n\n{made_by(result)}"


TABLES = {
    "planning": ("planning", planning),
    "budgets": ("planning_budgets", budgets),
    "stream": ("stream", stream),
    "first-use": ("first_use", first_use),
    "simulate": ("simulate", simulate),
    "scale-million": ("scale_million", scale_million),
    "scale-pose": ("scale_pose", scale_pose),
    "scale-growth": ("scale_growth", scale_growth),
    "scale-store": ("scale_store", scale_store),
}
