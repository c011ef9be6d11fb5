"""Tables of what `scale.py` measures."""

from _tables import made_by, table


def scale_million(result):
    head = ["", "fit", "a query", "RMSE", "of what lies behind", "95 % hold", "memory"]
    rows = []
    for r in result["rows"]:
        held, peak = r.get("coverage_95"), r.get("peak_gb")
        rows.append(
            [
                {"cover": "**overcover**, with std"}.get(r["method"], r["method"]),
                minutes(r["fit_s"]),
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
    return f"{table(head, rows)}\n\n{text} {made_by(result)}"


def scale_pose(result):
    [r] = result["rows"]
    parts = {
        "find hyperparameters": r["tuning_s"],
        "partition": r["partition_s"],
        "cover, and who is asked": r["cover_s"],
        f"{r['K']} machines": r["machines_s"],
        "fingerprint, files": r["files_s"],
        f"{r['n_queries']:,} queries": r["predict_s"],
        "**all**": r["total_s"],
    }
    rows = [
        [name, minutes(s), f"{100 * s / r['total_s']:.0f} %"]
        for name, s in parts.items()
    ]
    text = (
        f"{r['n']:,} x {r['d']:,} rows of float32 on the disk, M = {r['M']:,}, "
        f"p = .6. Error {r['error_mm']:.1f} mm; 95 % intervals hold "
        f"{100 * r['coverage_95']:.1f} %. Memory {r['peak_gb']:.1f} GB "
        f"({r['rss_gb']:.1f} GB with the pages of mapped files), store "
        f"{r['store_gb']:.1f} GB. Of the rate of large matrix products "
        f"({r['gflops_gemm']:.0f} GFLOP/s) the machines reach "
        f"{100 * r['gemm_share_machines']:.0f} %, the queries "
        f"{100 * r['gemm_share_predict']:.0f} %, the whole "
        f"{100 * r['gemm_share_all']:.0f} %."
    )
    head = ["stage", "time", "share"]
    return f"{table(head, rows)}\n\n{text} {made_by(result)}"


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
    return f"{table(head, rows)}\n\n{made_by(result)}"


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


def minutes(seconds):
    """Seconds, or minutes where there are many."""
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.1f} min"


TABLES = {
    "scale-million": ("scale_million", scale_million),
    "scale-pose": ("scale_pose", scale_pose),
    "scale-growth": ("scale_growth", scale_growth),
    "scale-store": ("scale_store", scale_store),
}
