"""A billion rows on a cluster, simulated: what each stage of a fit would take.

    python benchmarks/simulate.py [--quick] [--shard-rows 250000]

The design is that of two levels. A sample gives the centres of shards; every row is
assigned to a shard, and rows are shuffled so that a shard lies with one worker; each
shard is partitioned on its own (equal-size k-means); shards give each other the rows
near their borders; each fits the machines of its subdomains where the rows are, and
writes them. Costs of the pieces are measured on this computer (`overcover.planning`);
the cluster is assumed (`Cluster`), and its tasks are really scheduled, one after the
other, on workers that are simulated: a task's time varies by a fifth, and every task
passes one scheduler.

Assumed too: machines without factors, float64, M = 800, p = 0.9, one output; shards are
cubes in `DIMENSION` dimensions, which decides how many rows are near a border.
"""

import argparse
import heapq
from pathlib import Path
from typing import NamedTuple

import numpy as np

import _common
from _common import note, print_table
from overcover import GP
from overcover._linalg import dense_flops
from overcover._neighbors import distance_flops
from overcover.cover import CoverShape, cover_flops
from overcover.partition import partition_cost
from overcover.planning import measure
from overcover.planning.rates import state_bytes

SIZE, OVERLAP = 800, 0.9
ROWS, FEATURES, WORKERS = (10**8, 10**9), (10, 100), (16, 64, 256)
# Rows of a shard at least; and shards at most, because the sample for their centres
# is clustered by one worker.
SHARD_ROWS, MOST_SHARDS, SAMPLED_ROWS = 50_000, 4096, 256
# Of the sheet that rows lie on.
DIMENSION = 5
SPREAD_OF_TASKS = 0.2


class Cluster(NamedTuple):
    """Equal workers, a network between them, and a file system that they share."""

    n_workers: int
    cores: int = 8
    network: float = 1.0e9
    """Bytes per second that a worker sends, and receives."""

    disk: float = 0.5e9
    """Bytes per second that a worker reads or writes."""

    file_system: float = 20e9
    """The same of all workers together."""

    files: float = 10_000.0
    """Files that the file system makes in a second."""

    task: float = 1e-3
    """Seconds of the scheduler for one task."""

    def io(self, n_bytes):
        """Seconds to read or write so much, all workers together."""
        return n_bytes / min(self.n_workers * self.disk, self.file_system)

    def exchange(self, n_bytes):
        """Seconds to send so much from every worker to all others."""
        others = 1.0 - 1.0 / self.n_workers
        return n_bytes * others / (self.n_workers * self.network)

    def run(self, n_tasks, seconds, rng):
        """Seconds until the last of equal tasks is done: the next goes to who is free.

        Tasks take `seconds` on one core, give or take a fifth; a core waits for the
        scheduler, which starts one task after the other.
        """
        factors = rng.normal(1.0, SPREAD_OF_TASKS, n_tasks).clip(0.4, 2.0)
        free = [0.0] * (self.n_workers * self.cores)
        for i, factor in enumerate(factors):
            start = max(heapq.heappop(free), self.task * (i + 1))
            heapq.heappush(free, start + factor * seconds)
        return max(free)


class Shards(NamedTuple):
    """How rows are cut."""

    n_shards: int
    rows: float
    """Of each."""

    n_subdomains: int
    """Of all together."""

    halo: float
    """Rows of other shards that one needs, as a share of its own."""


def cut(n, shard_rows=SHARD_ROWS) -> Shards:
    """Shards of n rows.

    A shard of k clusters is a cube of k^(1/q) clusters a side, and a subdomain reaches
    beyond its cluster as far as 1 / (1 - p) clusters' volume does.

    >>> cut(10**9).n_shards, round(cut(10**9).halo, 2)
    (4096, 0.74)
    """
    n_shards = int(np.clip(n // shard_rows, 1, MOST_SHARDS))
    n_subdomains = CoverShape.at(n, SIZE, OVERLAP).n_subdomains
    side = (n_subdomains / n_shards) ** (1.0 / DIMENSION)
    reach = ((1.0 - OVERLAP) ** (-1.0 / DIMENSION) - 1.0) / 2.0
    halo = (1.0 + 2.0 * reach / side) ** DIMENSION - 1.0
    return Shards(n_shards, n / n_shards, n_subdomains, halo)


def simulate(n, d, cluster, rates, shard_rows=SHARD_ROWS):
    """Seconds of all stages, bytes that move, and bytes that stay."""
    rng = np.random.default_rng(_common.SEED)
    shards, cores = cut(n, shard_rows), cluster.n_workers * cluster.cores
    bytes_of_rows = 8.0 * n * (d + 1)
    each = np.polyval(state_bytes(GP(), d, 1, OVERLAP)[0], SIZE)
    store = shards.n_subdomains * (each + 8 * SIZE)
    local = shards.n_subdomains / shards.n_shards
    sampled = SAMPLED_ROWS * shards.n_shards
    # Rows of a shard, and those it borrows, are read once and stay in memory.
    fits = local * rates.machine(dense_flops(SIZE))
    fits += rates.cover * cover_flops(CoverShape.at(shards.rows, SIZE, OVERLAP), d)
    pair = rates.partition * distance_flops(d)
    seconds = {
        "tuning": rates.tuning * GP().tuning_cost(n, d, 1).flops / cluster.cores,
        "coarse": part(rates, sampled, d, shards.n_shards) / cluster.cores,
        "assign": cluster.io(bytes_of_rows) + n * shards.n_shards * pair / cores,
        "shuffle": cluster.exchange(bytes_of_rows) + 2 * cluster.io(bytes_of_rows),
        "partition": cluster.run(
            shards.n_shards, part(rates, shards.rows, d, local), rng
        ),
        "borrow": cluster.exchange(shards.halo * bytes_of_rows),
        "machines": cluster.run(shards.n_shards, fits, rng),
        "write": cluster.io(store) + shards.n_shards / cluster.files,
    }
    held = shards.rows * (1.0 + shards.halo) * 8 * (4 * d + 25)
    return {
        "n": n,
        "d": d,
        "n_workers": cluster.n_workers,
        **seconds,
        "total": sum(seconds.values()),
        "n_shards": shards.n_shards,
        "n_subdomains": shards.n_subdomains,
        "shuffled": bytes_of_rows,
        "borrowed": shards.halo * bytes_of_rows,
        "store": store,
        "memory": min(cluster.cores, shards.n_shards / cluster.n_workers) * held,
        "file_each": shards.n_subdomains / cluster.files,
    }


def part(rates, n, d, n_clusters):
    """Seconds of a partition into so many clusters, on one core."""
    cost = partition_cost(n, d, n_clusters, n_shards=1)
    return rates.partition * (cost.distances + cost.exchanges)


def main(arguments=None):
    """Simulate all clusters."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one cluster")
    parser.add_argument("--shard-rows", type=int, default=SHARD_ROWS)
    parser.add_argument("--results", type=Path, help="folder for the JSON file")
    options = parser.parse_args(arguments)
    features, workers = (
        (FEATURES[:1], WORKERS[:1])
        if options.quick
        else (
            FEATURES,
            WORKERS,
        )
    )
    rows = []
    for d in features:
        note(f"measuring with {d} features")
        rates = measure(GP(), d, 1)
        for n in ROWS:
            for n_workers in workers:
                cluster = Cluster(n_workers)
                rows.append(simulate(n, d, cluster, rates, options.shard_rows))
                rows[-1]["machine_seconds"] = rates.machine(dense_flops(SIZE))
    print_table("Seconds of the stages, and bytes", rows)
    # A taste must not overwrite published numbers.
    folder = options.results or (None if options.quick else _common.RESULTS)
    if folder:
        print(f"-> {_common.write_json('simulate', rows, folder)}")


if __name__ == "__main__":
    main()
