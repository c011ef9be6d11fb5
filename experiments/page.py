"""Writes docs/reproduction.md from the JSON files: the paper's numbers beside ours."""

import json
from pathlib import Path

from _tables import made_by, number, table

from . import paper
from .claims import CLAIMS, one, pick
from .definitions import READINGS

PAGE = Path(__file__).resolve().parent.parent / "docs" / "reproduction.md"
HEAD = """\
# The paper's tables and figures, reproduced

`python benchmarks/publish.py` writes this page from `experiments/results/*.json`; do
not edit it. `python -m experiments all --quick` runs a small version of everything in
minutes.

The paper's data cannot be distributed with this package. Two replacements stand in:
synthetic data of the sizes and shapes of Poser and HumanEva
(`overcover.datasets.make_pose`, [described here](pose.md)), and *poserlike*, features
of real motion capture. The difficulty of the synthetic data was set with another seed
than the one used here. Data, computer and code differ from the paper's, so compare
trends rather than single numbers.

The letters are those of [How it works](how-it-works.md): M rows per subdomain, overlap
p, spread t, K subdomains, K' of which predict a query. ODC is the cover, TGP a Twin GP,
NN the scheme that fits a machine on the nearest neighbours of every query. AB and RPC
are the paper's partitions. "The paper's way" has the router "mahalanobis", the
partition "ab" or "rpc" and t = 1; "ours" has the defaults. The paper prints its
distance without a root; the tables and figures have the root, and the section on two
readings has both. They differ in the weights of K' > 1 answers only. Hyperparameters
are learned from training rows only, once for each data set and machine, and are the
same for all systems in a table.

## The claims of the paper
"""


def write_page(results, path=PAGE):
    """Write the page; return its path."""
    path.write_text(text_of(results))
    return path


def text_of(results):
    """The whole page, from the JSON files of a folder."""
    paths = sorted(results.glob("*.json"))
    records = {path.stem: json.loads(path.read_text()) for path in paths}
    rows = {name: record["rows"] for name, record in records.items()}
    parts = [HEAD, _claims(rows)]
    for name, section in SECTIONS.items():
        if name in records:
            parts.append(f"{section(rows[name])}\n\n{made_by(records[name])}\n")
    return "\n".join(parts)


def _claims(results):
    lines = []
    for number_, (claim, needs) in CLAIMS.items():
        text = claim.__doc__.splitlines()[0]
        if needs not in results:
            lines.append([number_, text, "not run", ""])
            continue
        verdict = claim(results)
        answer = "holds" if verdict.holds else "**does not hold**"
        lines.append([number_, text, answer, verdict.evidence])
    return table(["", "claim", "here", "evidence"], lines) + "\n"


def _parameters(rows):
    sizes = sorted({r["M"] for r in rows})
    pictures = "\n\n".join(
        f"![{kind.upper()}, M = {size}: error over overlap for both partitions and "
        f"K' = 1, 2, 3](reproduction/parameters-{kind}-{size}.png)"
        for size in reversed(sizes)
        for kind in ("gp", "tgp")
    )
    best = []
    for size in sizes:
        for kind in ("gp", "tgp"):
            mine = pick(rows, M=size, machine=kind)
            least = min(mine, key=lambda r: r["error"])
            consulted = least["K'"]
            best.append(
                [
                    str(size),
                    kind.upper(),
                    number(least["error"]),
                    f"{least['partition'].upper()}, p = {least['p']:g}, "
                    f"t = {least['t']:g}, K' = {consulted}",
                ]
            )
    return (
        "## Parameter analysis (figures of error over p)\n\n"
        f"{pictures}\n\n![K' side by side](reproduction/consulted.png)\n\n"
        + table(["M", "machine", f"least error, {rows[0]['unit']}", "with"], best)
    )


def _readings(rows):
    """Errors by machine and overlap; K' > 1 under both readings."""
    consulted = sorted({r["K'"] for r in rows})
    lines = []
    for kind, p in dict.fromkeys((r["machine"], r["p"]) for r in rows):
        mine = pick(rows, machine=kind, p=p)
        line = [kind.upper(), f"{p:g}"]
        for k in consulted:
            for router in READINGS if k > 1 else READINGS[:1]:
                errors = pick(mine, consulted=k, router=router)
                line.append(number(errors[0]["error"]) if errors else "-")
        lines.append(line)
    head = ["machine", "p"]
    for k in consulted:
        head += [f"K' = {k}, {name}" for name in ("root", "squared")] if k > 1 else [""]
    head[2] = "K' = 1"
    return (
        "## Two readings of the paper's distance\n\nAnswers of K' subdomains count by "
        'one over the Mahalanobis distance ("mahalanobis") or over its square '
        f'("mahalanobis-squared"). Partition AB, t = 1, M = {rows[0]["M"]}; errors in '
        f"{rows[0]['unit']}.\n\n" + table(head, lines)
    )


def _speed(rows):
    lines = [
        [
            r["machine"].upper(),
            str(r["M"]),
            number(r["us_odc"]),
            number(r["us_nn"]),
            f"{r['speed_up']:.0f}x",
            number(r["error"]),
        ]
        for r in rows
    ]
    head = ["machine", "M", "cover, us per query", "NN scheme", "speed-up"]
    head += [f"cover's error, {rows[0]['unit']}"]
    return (
        "## Speed-up over the NN scheme against M\n\nBoth use one thread. The NN "
        "scheme computes one Cholesky factor per query.\n\n"
        f"![Speed-up against M](reproduction/speed.png)\n\n{table(head, lines)}"
    )


def _balance(rows):
    lines = []
    for n_clusters in sorted({r["K"] for r in rows if "K" in r}):
        theirs = paper.BALANCE.get(n_clusters, {})
        for name in ("ab", "imda", "refined"):
            row = one(rows, K=n_clusters, balance=name)
            lines.append(
                [
                    str(n_clusters),
                    name,
                    number(theirs.get(name), 4),
                    number(row["J_first"], 4),
                    number(row["J"], 4),
                ]
            )
    head = ["K", "balance", "paper", "ours, one step", "ours"]
    drawn = rows[-1]["drawn"]
    return (
        "## J of equal-size clusters\n\nJ is the sum of squared distances to the "
        "cluster means. Points in the unit disc, seeds from k-means, mean of "
        f"{rows[0]['n_runs']} runs.\n\n{table(head, lines)}\n\n"
        f"AB on {drawn:,} random points in the square:\n\n"
        "![5 clusters](reproduction/clusters-5.png)\n"
        "![57 clusters](reproduction/clusters-57.png)"
    )


def _components(rows):
    sizes = rows[0]["sizes"]
    return (
        "## Clusters over principal components\n\n"
        f"{len(sizes)} clusters of {min(sizes)} to {max(sizes)} poses each.\n\n"
        "![Clusters over two principal components](reproduction/components.png)"
    )


def _table(rows):
    text = []
    for name in dict.fromkeys(r["data"] for r in rows):
        theirs = "poser" if name == "poserlike" else name
        lines = []
        for r in pick(rows, data=name):
            known = paper.TABLE.get((theirs, r["machine"], r["system"]), (None,) * 4)
            seconds = "-" if known[3] is None else f"{known[3]:g} s"
            lines.append(
                [
                    r["machine"].upper(),
                    r["system"],
                    number(known[0]),
                    number(r["error"]),
                    number(r["error_compared"]),
                    number(r["clustering_s"], 2),
                    number(r["rest_s"], 2),
                    seconds,
                    number(r["us_query"]),
                ]
            )
        unit = pick(rows, data=name)[0]["unit"]
        head = ["machine", "system", f"paper, {unit}", f"ours, {unit}"]
        head += ["ours, on NN's rows", "clustering, s", "rest of training, s"]
        head += ["paper's prediction", "us per query"]
        text.append(f"### {name}, M = {rows[0]['M']}\n\n{table(head, lines)}")
    return (
        "## Error and time\n\nOne thread. The NN scheme predicts some of the test "
        "rows, evenly spread. The hyperparameters are fixed, so training has no "
        "tuning.\n\n" + "\n\n".join(text)
    )


def _weighted(rows):
    lines = []
    for r in rows:
        known = paper.WEIGHTED[r["data"]].get(r["system"])
        lines.append(
            [
                r["data"],
                r["system"],
                str(r.get("M_tst") or "-"),
                f"{known[0]:g}" if known else "-",
                number(r["error"]),
                f"{known[1]:g} s" if known else "-",
                number(r["us_query"]),
            ]
        )
    head = ["data", "system", "M_tst", "paper's error", "ours", "paper's prediction"]
    return (
        "## Importance-weighted Twin GPs\n\nThe test inputs are the targets. Where "
        "M_tst is a number, every query has its own weights, from its M nearest rows "
        "and its M_tst nearest test inputs, as in the paper; elsewhere one ratio of "
        "densities serves all queries.\n\n" + table([*head, "us per query"], lines)
    )


def _complexity(rows):
    lines = [
        [
            r["stage"],
            r["axis"],
            "-" if r["expected"] is None else f"{r['expected']}",
            f"{r['exponent']:.2f}",
            f"{r['at_end']:.2f}",
        ]
        for r in rows
    ]
    head = ["stage", "in", "theory", "measured", "at the largest values"]
    return "## Complexity, as exponents\n\n" + table(head, lines)


def _lemma(rows):
    return (
        "## Lemma 1\n\nDistance of test rows to the nearest subdomain's mean.\n\n"
        "![Distance over overlap](reproduction/lemma.png)"
    )


def _human36m(rows):
    (row,) = rows
    theirs = paper.HUMAN36M
    lines = [
        [
            "error of the cover",
            f"{theirs['ODC']} cm",
            f"{row['error_compared']:.1f} mm",
        ],
        ["error of the NN scheme", f"{theirs['NN']} cm", f"{row['error_nn']:.1f} mm"],
        ["speed-up", f"{theirs['speed_up']}x", f"{row['speed_up']:.0f}x"],
        ["clustering", "-", f"{row['partition_s']:.0f} s"],
        ["machines", "-", f"{row['machines_s']:.0f} s"],
        ["cover's query", "-", f"{number(row['us_odc'])} us"],
    ]
    return (
        f"## Human3.6M's shape\n\n{row['n_train']:,} rows to train, "
        f"{row['n_test']:,} to test, {row['n_features']:,} features, "
        f"M = {row['M']}, p = 0.6, K = {row['K']}. "
        f"Errors are those on the rows that the NN scheme predicted.\n\n"
        + table(["", "paper", "ours"], lines)
        + "\n\n[Planning and scaling](scaling.md#what-was-run) has all 335,000 and "
        "165,000 rows, without the NN scheme."
    )


SECTIONS = {
    "table": _table,
    "parameters": _parameters,
    "readings": _readings,
    "speed": _speed,
    "balance": _balance,
    "components": _components,
    "weighted": _weighted,
    "complexity": _complexity,
    "lemma": _lemma,
    "human36m": _human36m,
}
