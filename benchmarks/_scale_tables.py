"""Tables of plans and simulations, for docs/scaling.md; used by `publish.py`."""

from _tables import made_by, table

MACHINES = {"gp": "GP", "tgp": "TwinGP"}


def two_digits(value):
    """A number with two digits, or all those before the point."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def span(seconds):
    """Seconds as people say them."""
    for unit, name in ((3600, "h"), (60, "min")):
        if seconds >= unit:
            return f"{two_digits(seconds / unit)} {name}"
    return f"{two_digits(seconds)} s"


def size(n_bytes):
    """Bytes as people say them."""
    for unit, name in ((1e12, "TB"), (1e9, "GB")):
        if n_bytes >= unit:
            return f"{two_digits(n_bytes / unit)} {name}"
    return f"{two_digits(n_bytes / 1e6)} MB"


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


TABLES = {"planning": ("planning", planning), "simulate": ("simulate", simulate)}
