"""Tables of the changes that single precision causes; used by `publish.py`."""

from _tables import made_by, number, table

DIFFERENCES = {
    "mean, 99 %": "mean_in_std_99",
    "mean, all": "mean_in_std_max",
    "std, 99 %": "std_relative_99",
    "std, all": "std_relative_max",
}


def differences(row):
    """Changes of the mean, in standard deviations, and relative changes of these."""
    return [f"{row[key]:.0e}" for key in DIFFERENCES.values()]


def precision(result):
    """Stores in float32 and in float64."""
    rows = [
        [row["machine"], f"{row['noise']:g}", number(row["size_ratio"], 2)]
        + differences(row)
        for row in result["rows"]
    ]
    head = ["machine", "noise", "size", *DIFFERENCES]
    return f"{table(head, rows)}\n\n{made_by(result)}"


def rounding(result):
    """Covers with factors in float32, where precision allows it, and in float64."""
    rows = [
        [
            row["data"],
            f"{row['noise']:.1e}",
            f"{row['share_single']:.0%}",
            number(row["size_ratio"], 2),
            f"{row['speed_up']:.1f}x",
            *differences(row),
            f"{number(row['rmse'], 4)}, {number(row['rmse_double'], 4)}",
        ]
        for row in result["rows"]
    ]
    head = ["data", "noise", "in float32", "size", "speed", *DIFFERENCES, "RMSE"]
    return f"{table(head, rows)}\n\n{made_by(result)}"


TABLES = {
    "precision": ("precision_store", precision),
    "rounding": ("precision_factors", rounding),
}
