"""Tables of `rivals.py`: overcover beside other packages."""

from _tables import made_by, number, table

ON_README = ("kin40k", "protein", "sarcos_small")
LEAST_COVERAGE = 0.93
COLUMNS = {
    "rmse": "RMSE",
    "nlpd": "NLPD",
    "coverage_95": "coverage of 95 % intervals",
    "width": "their mean width",
    "fit_cpu_s": "fit, processor s",
    "us_query": "processor us per query",
    "peak_mb": "peak memory, MB",
}
SHORT = ("rmse", "nlpd", "coverage_95", "width", "fit_cpu_s", "us_query")


def goodness(row, key):
    """Less is better; infinite where the row cannot win this column."""
    value = row.get(key)
    if value is None:
        return float("inf")
    if key == "coverage_95":
        return abs(value - 0.95)
    if key == "width" and row["coverage_95"] < LEAST_COVERAGE:
        return float("inf")
    return value


def cell(row, key, rows):
    """A number of a table, bold where it is the best of its column."""
    value = row.get(key)
    if value is None:
        return "-"
    text = f"{value:.1%}" if key == "coverage_95" else number(value)
    best = min(goodness(other, key) for other in rows)
    return f"**{text}**" if goodness(row, key) == best else text


def by_data(result):
    """Rows with numbers of each data set."""
    parts: dict[str, list[dict]] = {}
    for row in result["rows"]:
        parts.setdefault(row["data"], [])
        if "reason" not in row:
            parts[row["data"]].append(row)
    return parts


BOLD = (
    "Bold marks the best method of a column on a data set: the lowest number, the "
    "coverage nearest to 95 % and, of those that cover at least 93 %, the narrowest "
    "intervals. "
)


def readme(result):
    """The columns that matter most, on three data sets."""
    rows = [
        [name, row["method"], *(cell(row, key, part) for key in SHORT)]
        for name, part in by_data(result).items()
        if name in ON_README
        for row in part
    ]
    head = ["data", "method", *(COLUMNS[key] for key in SHORT)]
    return f"{table(head, rows)}\n\n{BOLD}{missing_text(result)}{made_by(result)}"


def full(result):
    """All columns, a table for each data set."""
    texts = []
    for name, part in by_data(result).items():
        if not part:
            continue
        sizes = part[0]
        many = "s" if sizes["n_outputs"] > 1 else ""
        rows = [
            [row["method"], *(cell(row, key, part) for key in COLUMNS)] for row in part
        ]
        texts.append(
            f"### {name}\n\n{sizes['n_train']:,} training rows, {sizes['n_test']:,} "
            f"test rows, {sizes['n_outputs']} output{many}.\n\n"
            f"{table(['method', *COLUMNS.values()], rows)}"
        )
    return "\n\n".join([*texts, f"{BOLD}{made_by(result)}"])


def settings(result):
    """What each contender is, with versions."""
    by_method = {row["method"]: row for row in result["rows"]}
    rows = [[name, versions(row), row["settings"]] for name, row in by_method.items()]
    return f"{table(['method', 'versions', 'settings'], rows)}\n\n{made_by(result)}"


def versions(row):
    """Packages with their versions."""
    return ", ".join(
        f"{package} {version or '(not installed)'}"
        for package, version in row["versions"].items()
    )


def missing(result):
    """Contenders without numbers, and why."""
    rows = [
        [row["data"], row["method"], row["reason"]]
        for row in result["rows"]
        if "reason" in row
    ]
    if not rows:
        return f"Every method ran on every data set. {made_by(result)}"
    return f"{table(['data', 'method', 'reason'], rows)}\n\n{made_by(result)}"


def missing_text(result):
    """One sentence about rows that a short table leaves out."""
    names = [
        f"{row['method']} on {row['data']}"
        for row in result["rows"]
        if "reason" in row and row["data"] in ON_README
    ]
    return f"Without a result: {', '.join(names)}. " if names else ""


TABLES = {
    "peers": ("peers", readme),
    "peers-full": ("peers", full),
    "peers-settings": ("peers", settings),
    "peers-missing": ("peers", missing),
}
