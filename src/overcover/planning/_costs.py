"""Seconds and bytes of a fit of one shape: what stages count, times measured rates."""

from typing import NamedTuple

from .._neighbors import distance_flops
from ..cover import CoverShape, cover_flops
from ..machines.base import Machine
from ..partition import partition_cost
from ._rates import Rates, answer_flops, fit_flops

# Candidates that a query is routed to, on average.
CANDIDATES = 1.8
# Square matrices of M rows that a worker holds while it fits a machine.
WORKING_COPIES = 6
# Numbers for every output while variances are calibrated: squared errors of all rows,
# for each of four localities.
CALIBRATION_COPIES = 12
# Of a file of a store: its header, the ends of its arrays, its line in the manifest.
FILE_OVERHEAD = 2600
# Of a stage that one thread does, whatever n_jobs.
SERIAL_SHARE = 0.1


class Problem(NamedTuple):
    """All that costs depend on but M and p."""

    n_samples: int
    n_features: int
    n_outputs: int
    machine: Machine
    """With its options as the user chose them."""

    n_queries: int
    n_jobs: int
    into_store: bool
    rates: Rates


def stage_seconds(problem: Problem, shape: CoverShape, n_bytes, keep):
    """Seconds of every stage; `n_bytes` is the size of a state."""
    rates, n_subdomains = problem.rates, shape.n_subdomains
    data = problem[:3]
    shared = SERIAL_SHARE + (1.0 - SERIAL_SHARE) / problem.n_jobs
    fit = rates.machine(fit_flops(shape.size))
    tuning = problem.machine.tuning_cost(*data)
    partition = partition_cost(*data[:2], n_subdomains)
    written = rates.file + rates.byte * n_bytes if problem.into_store else 0.0
    trial = rates.machine(fit_flops(min(shape.size, tuning.trial_size)))
    seconds = {
        "tuning": shared * (rates.tuning * tuning.flops + tuning.n_fits * trial),
        "partition": rates.partition
        * (partition.exchanges + shared * partition.distances),
        "cover": shared * rates.cover * cover_flops(shape, data[1]),
        "machines": shared * n_subdomains * (fit + written),
    }
    if problem.n_queries:
        n_questions = CANDIDATES * problem.n_queries
        flops = answer_flops(shape.size)
        route = rates.partition * distance_flops(data[1])
        once = rates.visit(flops) + (0.0 if keep else fit)
        spent = min(n_questions, n_subdomains) * once
        spent += n_questions * rates.question(flops)
        spent += problem.n_queries * n_subdomains * route
        seconds["queries"] = shared * spent
    return seconds


def peak_bytes(problem: Problem, shape: CoverShape, n_bytes):
    """Peaks of a fit in memory and of one into a store, whichever stage has them."""
    n_samples, n_features, n_outputs, machine = problem[:4]
    inputs, outputs = 8.0 * n_samples * n_features, 8.0 * n_samples * n_outputs
    tuning = machine.tuning_cost(*problem[:3]).n_bytes
    counts = n_samples, n_features, shape.n_subdomains, problem.n_jobs
    first = max(tuning, partition_cost(*counts).n_bytes)
    working = problem.n_jobs * WORKING_COPIES * 8 * shape.size**2
    last = index_bytes(shape) + max(working, CALIBRATION_COPIES * outputs)
    together = max(first, last + shape.n_subdomains * n_bytes)
    return inputs + outputs + together, outputs + max(first, last)


def disk_bytes(problem: Problem, shape: CoverShape, n_bytes):
    """Bytes of a finished store, and of what a fit keeps beside it until then."""
    indices = index_bytes(shape)
    each = n_bytes + FILE_OVERHEAD + 8 * problem.n_features
    return shape.n_subdomains * each + indices, 8.0 * problem.n_samples + indices


def index_bytes(shape: CoverShape):
    """Bytes of the row numbers of all subdomains."""
    return 8.0 * shape.n_subdomains * shape.size
