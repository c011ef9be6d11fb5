r"""What this computer needs for the pieces of a fit, measured in a second or two.

Each stage is a sum of pieces whose number is known and whose cost is measured:

.. math::
    T_\text{tuning} &= \text{evaluations of the losses} + a N \cdot \text{anchors} \\
    T_\text{partition} &= b N + c \, i N K \\
    T_\text{cover} &= e K M + c K^2 \\
    T_\text{machines} &= K c(M), \quad c(M) = c_0 + c_2 M^2 + c_3 M^3 \\
    T_\text{query} &= V f(M) + Q g(M)

with i iterations, V subdomains that are asked at all and Q questions (a query asks
about two candidates). What is timed is the real thing, on rows of the width that will
be given: machines and answers of three sizes, one small partition and its cover, losses
on a few anchors, one file of a store. The number of evaluations is what tuning takes on
most data.
"""

import tempfile
import time
from copy import copy
from functools import lru_cache, partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._neighbors import nearest_centers, nearest_rows
from .._parallel import one_thread_per_worker
from ..cover import cover_partition
from ..partition import MOST_COLUMNS, EqualSizeKMeans, Partition, partition_rows
from ..partition._arrays import N_COMPONENTS
from ._sizes import Asked, typical_machine, typical_rows
from ._timing import Curve, best_of, curve_through, elapsed
from ._tuning_rates import time_tuning

# Sizes of machines that are timed; larger ones follow the cubic term.
TIMED = (200, 400, 800)
BATCH = 100
# A partition that is timed: as many neighbours as clusters exchange rows with.
PARTED, OWNED, NEIGHBORS = 2600, 20, 64
# Ordinary k-means for the seeds: starts, iterations of each, and from how many seeds on
# they are sought within coarse cells (`overcover.partition._seeds`).
STARTS, SEED_ITERATIONS, MANY_SEEDS = 4, 30, 300


class Rates(NamedTuple):
    """Seconds that one thread takes for the pieces of a fit."""

    machine: Curve
    """One machine, by its size."""

    asked: Curve
    """A subdomain that is asked, whatever about."""

    question: Curve
    """One query to one subdomain, with its variance."""

    row: float
    """A row in the partition, but for what grows with the number of clusters."""

    pair: float
    """The distance of a row to a centre."""

    n_iterations: float
    """In which a partition looks at all distances."""

    member: float
    """A row of a subdomain, in the cover."""

    tuning: Curve
    """All of tuning that does not grow with the rows, on more than 1,000 of them, by
    the size of subdomains."""

    few_rows: float
    """Tuning on 1,000 rows; on fewer it falls with their cube."""

    near: float
    """The distance of a row to an anchor, while neighbours are found."""

    byte: float
    """A byte, written to a store."""

    file: float
    """A file of a store."""


# -- timing, shared with the command line ----------------------------------------------


def time_states(machine, X, Y, weight, sizes, rng, too_long=None):
    """Seconds of one machine of each size, on random rows.

    Parameters
    ----------
    machine : Machine
        Tuned.
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    weight : ndarray of shape (n_samples,) or None
    sizes : sequence of int
    rng : numpy random generator
    too_long : callable or None
        From size and seconds to whether larger sizes need not be looked at.

    Returns
    -------
    dict from size to seconds
    """
    seconds: dict[int, float] = {}
    for i, size in enumerate(sizes):
        rows = np.sort(rng.permutation(len(X))[:size])
        given = None if weight is None else weight[rows]
        arguments = X[rows], Y[rows], given, None, True
        with one_thread_per_worker():
            if i == 0:
                machine.fit_state(*arguments)  # compiled loops, warm caches
            seconds[size] = elapsed(partial(machine.fit_state, *arguments))
        if too_long is not None and too_long(size, seconds[size]):
            break
    return seconds


def time_cover(Z, size, overlap, spread, n_clusters, n_jobs=None):
    """Seconds of partition and of cover of some rows."""
    started = time.perf_counter()
    partition = partition_rows(Z, n_clusters, "kmeans", n_jobs, 0)
    parted = time.perf_counter()
    cover_partition(Z, partition, size, overlap, spread, n_jobs)
    return parted - started, time.perf_counter() - parted


# -- rates -----------------------------------------------------------------------------


def measure(machine, n_features, n_outputs) -> Rates:
    """Time the pieces of a fit; remembered for the next call in this process.

    Parameters
    ----------
    machine : Machine, str or None
    n_features, n_outputs : int

    Returns
    -------
    Rates
    """
    return _measured(Asked.of(machine), n_features, n_outputs)


@lru_cache(maxsize=32)
def _measured(asked, n_features, n_outputs) -> Rates:
    machine = copy(typical_machine(asked, n_features, n_outputs))  # is calibrated
    X, Y = typical_rows(PARTED, n_features, n_outputs)
    rng = np.random.default_rng(0)
    # What else the computer does can only add to the time.
    runs = [time_states(machine, X, Y, None, TIMED, rng) for _ in range(2)]
    seconds = {size: min(run[size] for run in runs) for size in TIMED}
    with one_thread_per_worker():
        answers = {size: _time_answers(machine, X, Y, size) for size in TIMED}
        Z = (X / X.std(axis=0))[:, : partition_width(n_features)]
        row, pair, n_iterations, member = _time_partition(Z)
        tuning, few_rows = time_tuning(asked.machine, machine, X, Y)
        near = _time_near(X)
    byte, file = _time_writing()
    asked_once, question = (
        curve_through({size: both[i] for size, both in answers.items()}, (0, 1, 2))
        for i in (0, 1)
    )
    return Rates(
        machine=curve_through(seconds),
        asked=asked_once,
        question=question,
        row=row,
        pair=pair,
        n_iterations=n_iterations,
        member=member,
        tuning=tuning,
        few_rows=few_rows,
        near=near,
        byte=byte,
        file=file,
    )


def _time_answers(machine, X, Y, size):
    """Seconds of asking a subdomain at all, and of each query."""
    state = machine.fit_state(X[:size], Y[:size])
    machine.calibrate([state])
    variance = machine.has_variance
    one, many = (
        best_of(partial(machine.answer, state, X[-n:], variance)) for n in (1, BATCH)
    )
    each = max(many - one, 0.05 * many) / (BATCH - 1)
    return max(one - each, 1e-6), each


def _time_partition(Z):
    """Seconds per row, per distance, number of iterations, seconds per member."""
    warm = EqualSizeKMeans(2, random_state=0).fit(Z[:200])
    cover_partition(
        Z[:200], Partition(warm.labels_, warm.cluster_centers_), 150, 0.5, 1
    )
    n_clusters = PARTED // OWNED
    clusterer = EqualSizeKMeans(n_clusters, random_state=0)
    seconds = elapsed(lambda: clusterer.fit(Z))
    centers = np.tile(clusterer.cluster_centers_, (8, 1))
    pair = best_of(lambda: nearest_centers(Z, centers)) / (len(Z) * len(centers))
    per_row = clusterer.n_iter_ * n_clusters + seed_distances(n_clusters)
    row = max(seconds / len(Z) - pair * per_row, 0.3 * seconds / len(Z))
    found = Partition(clusterer.labels_, clusterer.cluster_centers_)
    lending = elapsed(lambda: cover_partition(Z, found, 10 * OWNED, 0.9, 3.0))
    return row, pair, float(clusterer.n_iter_), lending / (n_clusters * 10 * OWNED)


def partition_width(n_features):
    """Columns that a partition looks at: wide rows are projected first."""
    return n_features if n_features <= MOST_COLUMNS else N_COMPONENTS


def seed_distances(n_clusters):
    """Distances per row while seeds are sought; no more for many clusters."""
    return STARTS * SEED_ITERATIONS * min(n_clusters, MANY_SEEDS)


def _time_near(X):
    """Seconds per distance of a row to an anchor."""
    return best_of(lambda: nearest_rows(X, X[:100], 50)) / (100 * len(X))


def _time_writing():
    """Seconds per byte and per file of a store, where temporary files are."""
    from ..store._pack import write_pack  # which makes models, so it imports this

    large = np.zeros(2**21)
    with tempfile.TemporaryDirectory() as folder:

        def write(array):
            started = time.perf_counter()  # the disk's time counts
            write_pack(Path(folder) / "000000.pack", {}, [array], [array.dtype.str])
            return time.perf_counter() - started

        file = min(write(large[:1]) for _ in range(3))
        byte = max(min(write(large) for _ in range(2)) - file, 0.0) / large.nbytes
    return byte, file
