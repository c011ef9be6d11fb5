"""Equal-size clustering: inertia and seconds against a min-cost-flow k-means.

    python benchmarks/partition.py [--quick] [--results FOLDER]

Three tables. Quality: 10,000 uniform points in the unit disc, mean over 5 seeds, every
contender on one thread, compilation excluded by a warm-up. Scale: standard normal rows
on all cores, each problem in its own process so that its peak memory is its own. Two
levels: standard normal rows in shards against all rows at once, on one thread.

Contenders: overcover's partitions and `k-means-constrained`, which balances every
assignment optimally by a min-cost flow.
"""

import argparse
import json
import resource
import subprocess
import sys
from pathlib import Path
from time import perf_counter

import numpy as np
from threadpoolctl import threadpool_limits

from _common import RESULTS, write_json
from overcover import EqualSizeKMeans, RecursiveProjection, TwoLevelKMeans


def unit_disc(n_samples, seed):
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, n_samples)
    radius = np.sqrt(rng.uniform(size=n_samples))
    return np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])


def flow(n_clusters, n_samples, seed):
    from k_means_constrained import KMeansConstrained

    return KMeansConstrained(
        n_clusters=n_clusters,
        size_min=n_samples // n_clusters,
        size_max=-(-n_samples // n_clusters),
        n_init=1,
        max_iter=20,
        random_state=seed,
    )


CONTENDERS = {
    "refined": lambda K, N, seed: EqualSizeKMeans(K, random_state=seed),
    "assign": lambda K, N, seed: EqualSizeKMeans(K, balance="ab", random_state=seed),
    "imda": lambda K, N, seed: EqualSizeKMeans(K, balance="imda", random_state=seed),
    "rpc": lambda K, N, seed: RecursiveProjection(K, random_state=seed),
    "flow": flow,
}


def timed_fit(clusterer, X):
    start = perf_counter()
    clusterer.fit(X)
    return clusterer.inertia_, perf_counter() - start


def measure_quality(n_samples, cluster_counts, n_seeds):
    """Mean inertia and seconds of every contender, one row for each."""
    rows = []
    with threadpool_limits(1):
        for make in CONTENDERS.values():
            timed_fit(make(5, 500, 0), unit_disc(500, 0))
        for K in cluster_counts:
            for name, make in CONTENDERS.items():
                runs = [
                    timed_fit(make(K, n_samples, seed), unit_disc(n_samples, seed))
                    for seed in range(n_seeds)
                ]
                J, seconds = np.mean(runs, axis=0)
                rows.append(
                    {"K": K, "contender": name, "inertia": J, "seconds": seconds}
                )
                print(f"{K:>6}  {name:<10}{J:>10.2f}{seconds:>10.3f}", flush=True)
    return rows


def measure_two_level(n_samples, n_features, n_clusters, shard_counts):
    """J with shards over J without, one row for each number of shards."""
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    problem = {"n_samples": n_samples, "n_features": n_features, "K": n_clusters}
    rows = []
    with threadpool_limits(1):
        timed_fit(TwoLevelKMeans(16, n_shards=2, random_state=0), X[:500])
        J_alone, alone = timed_fit(EqualSizeKMeans(n_clusters, random_state=0), X)
        for n_shards in shard_counts:
            model = TwoLevelKMeans(n_clusters, n_shards=n_shards, random_state=0)
            J, seconds = timed_fit(model, X)
            result = {"n_shards": n_shards, "ratio": J / J_alone, "seconds": seconds}
            rows.append(problem | result | {"seconds_at_once": alone})
            print(
                f"{n_samples:>9,} x {n_features:<4} K = {n_clusters:<6,}{n_shards:>4} "
                f"shards: J {J / J_alone:.4f} times that at once, {seconds:.1f} s "
                f"against {alone:.1f} s",
                flush=True,
            )
    return rows


def judge(rows, two_level):
    """The claims, each as a number and whether it holds."""
    by_key = {(row["K"], row["contender"]): row for row in rows}
    claims = []
    for K in sorted({row["K"] for row in rows}):
        J = {name: by_key[K, name]["inertia"] for name in CONTENDERS}
        ratio, gain = J["refined"] / J["flow"], 1 - J["assign"] / J["imda"]
        speed = by_key[K, "flow"]["seconds"] / by_key[K, "refined"]["seconds"]
        claims += [
            {"K": K, "claim": "J(refined) / J(flow) <= 1.005", "value": ratio}
            | {"holds": bool(ratio <= 1.005)},
            {"K": K, "claim": "1 - J(assign) / J(imda) > 0", "value": gain}
            | {"holds": bool(gain > 0)},
            {"K": K, "claim": "refined at least 20 times faster than flow at K = 50"}
            | {"value": speed, "holds": bool(speed >= 20) if K == 50 else None},
        ]
    for row in two_level:
        claim = f"J({row['n_shards']} shards) / J(refined) <= 1.05"
        holds = bool(row["ratio"] <= 1.05)
        claims += [
            {"K": row["K"], "claim": claim, "value": row["ratio"], "holds": holds}
        ]
    return claims


def fit_alone(n_samples, n_features, n_clusters):
    """One large fit; prints JSON for the parent process."""
    warm_up = np.random.default_rng(1).normal(size=(500, n_features))
    EqualSizeKMeans(5, n_jobs=-1, random_state=0).fit(warm_up)
    X = np.random.default_rng(0).normal(size=(n_samples, n_features))
    model = EqualSizeKMeans(n_clusters, n_jobs=-1, random_state=0)
    J, seconds = timed_fit(model, X)
    sizes = np.bincount(model.labels_)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = {
        "n_samples": n_samples,
        "n_features": n_features,
        "K": n_clusters,
        "seconds": seconds,
        # Kilobytes on Linux, bytes on macOS.
        "peak_gb": peak / (2**30 if sys.platform == "darwin" else 2**20),
        "inertia": J,
        "n_iter": model.n_iter_,
        "sizes": [int(sizes.min()), int(sizes.max())],
    }
    print(json.dumps(outcome))


def measure_scale(problems):
    rows = []
    for problem in problems:
        command = [sys.executable, __file__, "--alone", *map(str, problem)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        row = json.loads(done.stdout)
        rows.append(row)
        print(
            f"{row['n_samples']:>9,} x {row['n_features']:<4} K = {row['K']:<6,}"
            f"{row['seconds']:>8.1f} s{row['peak_gb']:>8.2f} GB"
            f"   {row['n_iter']} iterations, sizes {row['sizes']}",
            flush=True,
        )
    return rows


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes, seconds")
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    parser.add_argument("--alone", type=int, nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.alone:
        fit_alone(*options.alone)
        return
    print(f"{'K':>6}  {'contender':<10}{'J':>10}{'seconds':>10}")
    if options.quick:
        quality = measure_quality(1000, (5, 10), n_seeds=2)
        scale = measure_scale([(2000, 2, 57)])
        two_level = measure_two_level(2000, 2, 40, (2,))
    else:
        quality = measure_quality(10_000, (5, 10, 50), n_seeds=5)
        scale = measure_scale([(300_000, 2, 57), (200_000, 16, 400)])
        two_level = measure_two_level(100_000, 8, 1250, (2, 4))
    claims = judge(quality, two_level)
    for claim in claims:
        verdict = {True: "holds", False: "FAILS", None: ""}[claim["holds"]]
        print(f"K = {claim['K']:<4}{claim['claim']}: {claim['value']:.3f} {verdict}")
    folder = options.results or (None if options.quick else RESULTS)
    if folder:
        outcome = {"quality": quality, "claims": claims, "scale": scale}
        outcome["two_level"] = two_level
        print(f"-> {write_json('partition', outcome, folder)}")


if __name__ == "__main__":
    main()
