"""The paper's claims, each with a verdict from our results.

A claim is a function from all results (name to rows) to a `Verdict`. The first line of
its docstring is the claim.
"""

from itertools import pairwise
from typing import NamedTuple


class Verdict(NamedTuple):
    """Whether a claim holds, and why."""

    holds: bool
    evidence: str


def pick(rows, **values):
    """Rows with these values; the keyword `consulted` stands for K'."""
    if "consulted" in values:
        values["K'"] = values.pop("consulted")
    return [r for r in rows if all(r.get(k) == v for k, v in values.items())]


def one(rows, **values):
    """The only row with these values."""
    (row,) = pick(rows, **values)
    return row


def _cases(rows):
    """Machine, partition and M of the parameter analysis."""
    keys = sorted({(r["M"], r["machine"], r["partition"]) for r in rows})
    return [dict(zip(("M", "machine", "partition"), key)) for key in keys]


def _name(case):
    return f"{case['machine'].upper()} {case['partition'].upper()} M={case['M']}"


def overlap_helps(results):
    """Error falls as p rises at t = 1, for GP and TGP, AB and RPC."""
    evidence, holds, rise = [], True, 0.0
    for case in _cases(results["parameters"]):
        rows = pick(results["parameters"], t=1.0, consulted=1, **case)
        errors = [r["error"] for r in sorted(rows, key=lambda r: r["p"])]
        holds &= errors[-1] < errors[0]
        rise = max(rise, *(b / a - 1.0 for a, b in pairwise(errors)))
        evidence.append(f"{_name(case)}: " + " -> ".join(f"{e:.1f}" for e in errors))
    overlaps = ", ".join(f"{p:g}" for p in sorted({r["p"] for r in rows}))
    steps = f" Not at every step: the largest rise is {rise:.1%}." if rise > 0 else ""
    return Verdict(holds, f"p = {overlaps}. {'; '.join(evidence)}.{steps}")


def consulting_more(results):
    """K' = 2 and 3 increase the error at small p, and not as p goes to 1."""
    rows, evidence, holds = results["parameters"], [], True
    low, high = min(r["p"] for r in rows), max(r["p"] for r in rows)
    for case in _cases(rows):
        ratios = []
        for p in (low, high):
            alone = one(rows, t=1.0, p=p, consulted=1, **case)["error"]
            more = [r["error"] for r in pick(rows, t=1.0, p=p, **case) if r["K'"] > 1]
            ratios.append(max(more, default=alone) / alone)
        holds &= ratios[0] > 1.0 and ratios[1] < 1.02
        evidence.append(f"{_name(case)}: {ratios[0]:.2f}, {ratios[1]:.2f}")
    return Verdict(
        holds,
        f"Largest error with K' = 2 or 3, divided by that with 1, at p = {low:g} and "
        f"{high:g}. " + "; ".join(evidence),
    )


def clusters_beat_projections(results):
    """AB beats RPC, more so for small M."""
    rows, evidence, holds, gaps = results["parameters"], [], True, {}
    high = max(r["p"] for r in rows)
    for size in sorted({r["M"] for r in rows}):
        for kind in ("gp", "tgp"):
            mine = pick(rows, M=size, machine=kind, consulted=1, t=1.0)
            ratios = {
                p: one(mine, p=p, partition="rpc")["error"]
                / one(mine, p=p, partition="ab")["error"]
                for p in sorted({r["p"] for r in mine})
            }
            holds &= ratios[high] > 1.0
            gaps[kind, size] = ratios[high]
            listed = ", ".join(f"{ratio:.3f}" for ratio in ratios.values())
            evidence.append(f"{kind.upper()} M={size}: {listed}")
    sizes = sorted({size for _, size in gaps})
    more = all(gaps[k, sizes[0]] >= gaps[k, sizes[-1]] for k in ("gp", "tgp"))
    tail = "" if more else " The gap is not wider for the smaller M in every case."
    return Verdict(
        holds and more,
        "Error of RPC divided by that of AB, by p. " + "; ".join(evidence) + tail,
    )


def twin_beats_gp(results):
    """TGP beats GP on pose data."""
    evidence, holds = [], True
    for name in dict.fromkeys(r["data"] for r in results["table"]):
        gp, twin = (
            one(results["table"], data=name, machine=kind, system="ODC ab p=0.9")
            for kind in ("gp", "tgp")
        )
        holds &= twin["error"] < gp["error"]
        evidence.append(
            f"{name}: {twin['error']:.2f} against {gp['error']:.2f} {gp['unit']}"
        )
    return Verdict(holds, "; ".join(evidence))


def size_helps(results):
    """Error falls as M rises."""
    evidence, falls = [], {}
    for kind in ("gp", "tgp"):
        mine = sorted(pick(results["speed"], machine=kind), key=lambda r: r["M"])
        errors = [r["error"] for r in mine]
        falls[kind] = errors[-1] < errors[0]
        falls[kind] &= all(b < 1.02 * a for a, b in pairwise(errors))
        listed = ", ".join(f"{r['M']}: {r['error']:.1f}" for r in mine)
        evidence.append(f"{kind.upper()} {listed} {mine[0]['unit']}")
    if falls["tgp"] and not falls["gp"]:
        # More rows do not tell a mean of two poses from a pose.
        evidence.append(
            "the claim holds for TGP; the error of a GP hardly depends on M, perhaps "
            "because it averages poses that look alike, however many rows it has"
        )
    return Verdict(all(falls.values()), "; ".join(evidence))


def speed_grows(results):
    """The speed-up of precomputed machines over the NN scheme grows with M."""
    evidence, holds = [], True
    for kind in ("gp", "tgp"):
        mine = sorted(pick(results["speed"], machine=kind), key=lambda r: r["M"])
        ratios = [r["speed_up"] for r in mine]
        holds &= all(a < b for a, b in pairwise(ratios))
        listed = ", ".join(f"{r['M']}: {r['speed_up']:.0f}x" for r in mine)
        evidence.append(f"{kind.upper()} {listed}")
    return Verdict(holds, "; ".join(evidence))


def table_holds(results):
    """A TGP cover with p = .9 is as accurate as the NN scheme, and much faster."""
    evidence, holds = [], True
    for name in dict.fromkeys(r["data"] for r in results["table"]):
        scheme, cover, ours = (
            one(results["table"], data=name, machine="tgp", system=system)
            for system in ("NN", "ODC ab p=0.9", "ours, defaults")
        )
        for label, row in (("paper's way", cover), ("ours", ours)):
            ratio = row["error_compared"] / scheme["error"]
            speed_up = scheme["us_query"] / row["us_query"]
            holds &= ratio < 1.05 and speed_up > 10
            evidence.append(
                f"{name}, {label}: {ratio:.3f} of NN's error, {speed_up:.0f}x"
            )
    return Verdict(holds, "; ".join(evidence))


def weighted_cover(results):
    """IWTGP in the cover is about 13.5 times faster than NN at equal error."""
    evidence, holds = [], True
    for name in dict.fromkeys(r["data"] for r in results["weighted"]):
        scheme = one(results["weighted"], data=name, system="NN")
        cover = one(results["weighted"], data=name, system="ODC")
        ratio = cover["error"] / scheme["error"]
        speed_up = scheme["us_query"] / cover["us_query"]
        holds &= ratio < 1.05 and speed_up > 13.5
        evidence.append(f"{name}: {speed_up:.0f}x at {ratio:.3f} of the error")
    return Verdict(holds, "; ".join(evidence))


def balance(results):
    """AB has a lower J than IMDA: 16.5, 17.8, 13.5 % at K = 5, 10, 50."""
    rows, evidence, holds = results["balance"], [], True
    for n_clusters in sorted({r["K"] for r in rows if "K" in r}):
        lower = {}
        for column in ("J_first", "J"):
            ab = one(rows, K=n_clusters, balance="ab")[column]
            lower[column] = 1.0 - ab / one(rows, K=n_clusters, balance="imda")[column]
        holds &= lower["J_first"] > 0 and lower["J"] > -0.005
        evidence.append(
            f"K = {n_clusters}: {lower['J_first']:.1%} after one step, "
            f"{lower['J']:.1%} after up to 20 steps"
        )
    return Verdict(holds, "; ".join(evidence))


def large(results):
    """At Human3.6M's shape the cover predicts 41.7 times faster than NN."""
    (row,) = results["human36m"]
    ratio = row["error_compared"] / row["error_nn"]
    text = (
        f"{row['n_train']:,} rows to train and {row['n_test']:,} to test (not 335,000 "
        f"and 165,000), M = {row['M']}: {row['speed_up']:.0f}x at {ratio:.3f} of "
        "NN's error"
    )
    return Verdict(row["speed_up"] > 41.7 and ratio < 1.05, text)


def exponents(results):
    """Costs grow as the complexity table says."""
    evidence, holds = [], True
    for row in results["complexity"]:
        if row.get("expected") is None:
            continue
        # The table has bounds, so slower growth is no contradiction.
        holds &= row["at_end"] < row["expected"] + 0.4
        evidence.append(f"{row['stage']} in {row['axis']}: {row['at_end']:.2f}")
    return Verdict(holds, "Exponents at the largest two values. " + "; ".join(evidence))


def lemma(results):
    """The mean of the nearest subdomain comes closer as p rises."""
    evidence, holds = [], True
    for partition in ("ab", "rpc"):
        mine = sorted(pick(results["lemma"], partition=partition), key=lambda r: r["p"])
        distances = [r["distance"] for r in mine]
        holds &= distances[-1] < distances[0]
        listed = ", ".join(f"{d:.3f}" for d in distances)
        evidence.append(f"{partition.upper()}: {listed}")
    return Verdict(
        holds, "Distance over the radius of the data, by p. " + "; ".join(evidence)
    )


CLAIMS = {
    "1": (overlap_helps, "parameters"),
    "2": (consulting_more, "parameters"),
    "3": (clusters_beat_projections, "parameters"),
    "4": (twin_beats_gp, "table"),
    "5": (size_helps, "speed"),
    "6": (speed_grows, "speed"),
    "7": (table_holds, "table"),
    "8": (weighted_cover, "weighted"),
    "9": (balance, "balance"),
    "10": (large, "human36m"),
    "11": (exponents, "complexity"),
    "Lemma 1": (lemma, "lemma"),
}
