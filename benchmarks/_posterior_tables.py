"""Tables of what a posterior says; used by `publish.py`."""

from _tables import made_by, number, table


def together(result):
    """Log densities of the function at neighbouring places."""
    rows = [
        [
            f"{row['noise']:g}",
            row["model"],
            number(row["together"], 3),
            number(row["independent"], 3),
        ]
        for row in result["rows"]
    ]
    head = ["noise", "model", "with covariances", "standard deviations alone"]
    return f"{table(head, rows)}\n\n{made_by(result)}"


def tails(result):
    """Test rows beyond either end of intervals."""
    keys = ("below", "above", "below_equal", "above_equal")
    rows = [
        [row["outputs"], str(row["n_rows"]), *(f"{row[key]:.1%}" for key in keys)]
        for row in result["rows"]
    ]
    head = ["outputs", "rows", "below", "above", "below, equal widths"]
    return f"{table([*head, 'above, equal widths'], rows)}\n\n{made_by(result)}"


def targets(result):
    """Both tails and bounds, with target="auto" and without."""
    shares = ("below", "above", "beyond_bounds")
    rows = [
        [
            row["outputs"],
            str(row["n_rows"]),
            row["target"],
            *(f"{row[key]:.1%}" for key in shares),
            f"{row['log_density']:.3f}",
            number(row["rmse"]),
        ]
        for row in result["rows"]
    ]
    head = ["outputs", "rows", "target", "below", "above", "ends beyond bounds"]
    head += ["log density", "RMSE"]
    text = (
        "Shares of test rows below and above 95 % intervals, and of intervals that "
        "cross a bound of the outputs; the mean log density, more is better."
    )
    return f"{text}\n\n{table(head, rows)}\n\n{made_by(result)}"


TABLES = {
    "together": ("posterior_together", together),
    "tails": ("posterior_tails", tails),
    "targets": ("posterior_targets", targets),
}
