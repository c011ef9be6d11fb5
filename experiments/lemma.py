"""Lemma 1: queries come closer to the nearest subdomain's mean as the overlap grows."""

import numpy as np

from _common import note, print_table
from overcover.cover import count_subdomains, cover_partition
from overcover.partition import partition_rows
from overcover.routing import make_router

from .definitions import PARTITIONS, SEED
from .figures import LINES, figure
from .machinery import load, tuned


def run(scale):
    """Mean distance of test rows to the nearest subdomain, in the machine's metric."""
    problem, rows = load("humaneva", scale), []
    scales = tuned(problem, scale, "tgp").input_length_scale
    A, queries = problem.X_train / scales, problem.X_test / scales
    typical = np.sqrt(np.mean(np.sum((A - A.mean(axis=0)) ** 2, axis=1)))
    for partition in PARTITIONS:
        for p in scale.overlaps:
            note(f"lemma: {partition} p={p:g}")
            n_subdomains = count_subdomains(len(A), scale.size, p)
            rng = np.random.RandomState(SEED)
            clusters = partition_rows(A, n_subdomains, partition, 2, rng)
            cover = cover_partition(A, clusters, scale.size, p, 1.0, 2)
            router = make_router("euclidean", A, cover, clusters.labels, 2)
            nearest = router.route(queries, 1, 2).distances[:, 0]
            rows.append(
                {
                    "partition": partition,
                    "p": p,
                    "K": n_subdomains,
                    "distance": float(nearest.mean() / typical),
                }
            )
    print_table("Distance to the nearest subdomain mean, in the data's radius", rows)
    return rows


def draw(rows, folder):
    """Distance over p."""
    path = folder / "lemma.png"
    with figure(path, (1, 1), (5, 3.4)) as panel:
        for partition, line in zip(PARTITIONS, LINES):
            mine = [
                (r["p"], r["distance"]) for r in rows if r["partition"] == partition
            ]
            panel.plot(*zip(*mine), label=partition.upper(), **line)
        panel.set_xlabel("overlap p")
        panel.set_ylabel("distance to the nearest mean")
        panel.legend()
    return [path]
