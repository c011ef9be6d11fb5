"""What a fit of given M and p takes: pieces that are counted, times what each costs.

Notation as in `overcover.planning._rates`. Bytes are those of the arrays that a stage
holds at once; the largest stage decides.
"""

from typing import NamedTuple

from ..partition import MANY_CLUSTERS
from ..partition.shards import count_shards
from ..tuning import FEW_ROWS
from ..tuning._judge import MOST_DISTANCES, N_HELD_OUT
from ..tuning._problem import LEAST_LOOKED_AT
from ..tuning._search import N_ANCHORS
from ..tuning._search import N_NEIGHBORS as N_NEAR
from ..tuning._twin_sets import SET_SIZE
from ._rates import NEIGHBORS, Rates, partition_width, seed_distances
from ._sizes import Asked, StateBytes
from ._tuning_rates import METRICS_TRIED

# Candidates that a query is routed to, on average.
CANDIDATES = 1.8
# What tuning holds whatever the rows: blocks of them, kernel matrices of anchors, and
# so many copies of the neighbours of all anchors.
TUNING_BYTES, ANCHOR_COPIES = 1e8, 4
# Copies of X in float64 while rows are partitioned, and what every row takes besides.
PARTITION_COPIES, PER_ROW = 2, 200
# Square matrices of M rows that a worker holds while it fits a machine.
WORKING_COPIES = 6
# Of a file of a store: its header, the ends of its arrays, its line in the manifest.
FILE_OVERHEAD = 2600
# Of a stage that is done by one thread, whatever n_jobs.
SERIAL_SHARE = 0.1


class Problem(NamedTuple):
    """All that costs depend on but M and p."""

    n_samples: int
    n_features: int
    n_outputs: int
    asked: Asked
    """The machine."""

    n_queries: int
    n_jobs: int
    into_store: bool
    rates: Rates


def stage_seconds(problem: Problem, size, n_subdomains, n_bytes, keep):
    """Seconds of every stage, see `overcover.planning._rates`."""
    n, rates = problem.n_samples, problem.rates
    shared = SERIAL_SHARE + (1.0 - SERIAL_SHARE) / problem.n_jobs
    # A row meets the centres of its shard.
    n_met = n_subdomains / n_shards_of(problem, n_subdomains)
    pairs = n * (rates.n_iterations * n_met + seed_distances(n_met))
    # Rows are exchanged with as many neighbours as there are, up to 64.
    rows = n * min(1.0, n_subdomains / NEIGHBORS)
    members = n_subdomains * size
    machines = n_subdomains * rates.machine(size)
    if problem.into_store:
        machines += n_subdomains * (rates.file + rates.byte * n_bytes)
    seconds = {
        "tuning": shared * tuning_seconds(problem, size),
        "partition": rates.row * rows + shared * rates.pair * pairs,
        "cover": shared * (rates.member * members + rates.pair * n_subdomains**2),
        "machines": shared * machines,
    }
    if problem.n_queries:
        n_asked = CANDIDATES * problem.n_queries
        once = rates.asked(size) + (0.0 if keep else rates.machine(size))
        spent = min(n_asked, n_subdomains) * once + n_asked * rates.question(size)
        spent += problem.n_queries * n_subdomains * rates.pair
        seconds["queries"] = shared * spent
    return seconds


def n_shards_of(problem: Problem, n_subdomains):
    """Parts in which rows are partitioned: one, but for very many subdomains."""
    if n_subdomains <= MANY_CLUSTERS:
        return 1
    width = partition_width(problem.n_features)
    return count_shards("auto", problem.n_samples, width, n_subdomains)


def tuning_seconds(problem: Problem, size):
    """Of one thread: evaluations that N does not change, and neighbours of anchors."""
    n, rates = problem.n_samples, problem.rates
    many = rates.tuning(min(size, SET_SIZE))
    if not many:
        return 0.0
    if n <= FEW_ROWS:
        return rates.few_rows * (n / FEW_ROWS) ** 3
    n_held_out = max(LEAST_LOOKED_AT, min(N_HELD_OUT, MOST_DISTANCES / n))
    looked_at = METRICS_TRIED / 2 * (N_ANCHORS + n_held_out)
    return many + rates.near * n * looked_at


def peak_bytes(problem: Problem, size, n_subdomains, each: StateBytes, keep):
    """Peaks of a fit in memory and of one into a store, whichever stage has them."""
    n, d, n_outputs = problem[:3]
    inputs, outputs = 8 * n * d, 8 * n * n_outputs
    is_tuned = problem.rates.tuning(size) > 0
    tuning = 0.0
    if is_tuned and n > FEW_ROWS:
        tuning = TUNING_BYTES + 8 * ANCHOR_COPIES * N_ANCHORS * N_NEAR * d
    elif is_tuned:
        tuning = WORKING_COPIES * 8 * n**2
    # As many shards as threads are worked on together; one shard is all rows.
    n_shards = n_shards_of(problem, n_subdomains)
    n_copied = n * min(1.0, problem.n_jobs / n_shards)
    partition = PARTITION_COPIES * 8 * n_copied * partition_width(d) + PER_ROW * n
    indices = 8 * n_subdomains * size
    working = problem.n_jobs * WORKING_COPIES * 8 * size**2
    # Squared errors of all rows are looked at together, for each of four localities.
    calibration = 4 * 3 * outputs
    states = n_subdomains * each.at(size, keep)
    together = max(tuning, partition, indices + states + max(working, calibration))
    apart = max(tuning, partition, indices + max(working, calibration))
    return inputs + outputs + together, outputs + apart


def disk_bytes(problem: Problem, size, n_subdomains, n_bytes):
    """Bytes of a finished store, and of what a fit keeps beside it until then."""
    indices = 8 * n_subdomains * size
    each = n_bytes + FILE_OVERHEAD + 8 * problem.n_features
    return float(n_subdomains * each + indices), float(8 * problem.n_samples + indices)
