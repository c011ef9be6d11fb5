"""Seconds of an operation of each stage on this computer, from one small run."""

import os
import pickle
import tempfile
import time
import timeit
import warnings
from copy import copy
from functools import partial, wraps
from typing import Any, NamedTuple

import joblib
import numpy as np
from sklearn.base import clone

from .. import kernels
from .._linalg import cholesky, dense_flops, inverse_from_cholesky
from .._parallel import one_thread_per_worker
from ..cover import CoverShape, cover_flops, cover_partition
from ..machines import make_machine
from ..partition import partition_cost, partition_rows

# Rows of the run that are partitioned, covered and tuned on; sizes of machines.
N_PARTITIONED, N_COVERED, N_TUNED, SIZES = 2600, 200, 60, (200, 800)
BATCH = 100
# Sizes at which the bytes of a state are counted: they are quadratic in the size.
COUNTED = (40, 80, 160)


class Line(NamedTuple):
    """Seconds by operations."""

    fixed: float
    each: float

    def __call__(self, flops) -> float:
        return self.fixed + self.each * flops

    @classmethod
    def through(cls, few, many) -> "Line":
        """Through two pairs of operations and seconds, neither term negative."""
        (least, quick), (most, slow) = few, many
        each = max(slow - quick, 0.0) / (most - least)
        fixed = quick - each * least
        return cls(fixed, each) if fixed >= 0 else cls(0.0, slow / most)


class Rates(NamedTuple):
    """Seconds of one thread, see `measure`."""

    tuning: float  # an operation of this stage; so are the next two
    partition: float
    cover: float
    machine: Line  # one machine, by `dense_flops` of its size
    visit: float  # a subdomain that answers any query
    question: Line  # a query to one subdomain, with its variance, by `answer_flops`
    byte: float  # a byte, written to a store
    file: float  # a file of a store


def answer_flops(size):
    """Operations of an answer: a product with a factor, and similarities."""
    return size**2 + 300.0 * size


def once_per_machine(function):
    """Remember results in this process, by the parameters of the machine."""
    results: dict[tuple, Any] = {}

    @wraps(function)
    def remembered(machine, *numbers):
        machine = make_machine(machine)
        key = joblib.hash((type(machine), machine.get_params())), *numbers
        if key not in results:
            results[key] = function(machine, *numbers)
        return results[key]

    return remembered


def typical_rows(n_samples, n_features, n_outputs):
    """X and Y on a curved sheet of five dimensions, with a little noise."""
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n_samples, 5))
    X = np.sin(hidden @ rng.normal(size=(5, n_features)))
    X += 0.3 * rng.normal(size=X.shape)
    Y = np.sin(hidden @ rng.normal(size=(5, n_outputs)))
    return X, Y + 0.1 * rng.normal(size=Y.shape)


@once_per_machine
def typical_machine(machine, n_features, n_outputs):
    """The machine, tuned on a few typical rows: its cost hardly depends on them."""
    machine = clone(machine)
    X, Y = typical_rows(N_TUNED, n_features, n_outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine.tune(X, Y, None, N_TUNED, np.random.RandomState(0), None)
    return machine


@once_per_machine
def state_bytes(machine, n_features, n_outputs, overlap):
    """Polynomials (2, 3) of a state's bytes by its size: without and with factors."""
    machine, counts = typical_machine(machine, n_features, n_outputs), []
    for size in COUNTED:
        X, Y = typical_rows(size, n_features, n_outputs)
        n_owned = max(1, round((1.0 - overlap) * size))
        states = [machine.fit_state(X, Y, None, n_owned, k) for k in (False, True)]
        counts.append([bytes_of(state) for state in states])
    return np.polyfit(COUNTED, np.array(counts, float), 2).T


def bytes_of(tree: Any) -> int:
    """Bytes of all arrays in a state, however nested; of anything else as pickled."""
    if isinstance(tree, tuple | list):
        return sum(map(bytes_of, tree))
    if isinstance(tree, np.ndarray):
        return tree.nbytes
    return 0 if tree is None else len(pickle.dumps(tree))


@once_per_machine
def measure(machine, n_features, n_outputs) -> Rates:
    """Time one small run of every stage; a process remembers the result."""
    machine = copy(typical_machine(machine, n_features, n_outputs))  # is calibrated
    X, Y = typical_rows(N_PARTITIONED, n_features, n_outputs)
    Z, A = X / X.std(axis=0), X[: SIZES[-1] // 2]
    A = A / A.std(axis=0) / np.sqrt(n_features)
    shape = CoverShape.at(len(Z), N_COVERED)

    def fit(size):
        return machine.fit_state(X[:size], Y[:size], None, size // 10, True)

    def question(size, n_queries):
        """Seconds of one of so many queries that a subdomain answers together."""
        state = machine.fit_state(X[:size], Y[:size])
        machine.calibrate([state])
        ask = partial(machine.answer, state, X[-n_queries:], machine.has_variance)
        return best_of(ask) / n_queries

    def factorise():
        K = kernels.cross("rbf", A, A)
        K[np.diag_indices(len(K))] += 0.05
        inverse_from_cholesky(cholesky(K)[0])

    def divide():
        return partition_rows(Z, shape.n_subdomains, random_state=0)

    with one_thread_per_worker():
        fits = [best_of(partial(fit, size)) for size in SIZES]
        questions = [question(size, BATCH) for size in SIZES]
        cost = partition_cost(len(Z), n_features, shape.n_subdomains)
        extend = partial(cover_partition, Z, divide(), *shape[1:4])
        return Rates(
            tuning=best_of(factorise) / dense_flops(len(A)),
            partition=best_of(divide) / (cost.distances + cost.exchanges),
            cover=best_of(extend) / cover_flops(shape, n_features),
            machine=Line.through(*zip(map(dense_flops, SIZES), fits)),
            visit=question(SIZES[0], 1),
            question=Line.through(*zip(map(answer_flops, SIZES), questions)),
            **writing_seconds(),
        )


def best_of(task, clock=time.thread_time) -> float:
    """Least seconds of three calls of a task; the first fills caches."""
    return max(1e-9, min(timeit.repeat(task, timer=clock, repeat=3, number=1)))


def writing_seconds():
    """Seconds of a byte and of a file, where temporary files are."""
    large = np.zeros(2**21)
    with tempfile.TemporaryDirectory() as folder:

        def write(array):
            with open(os.path.join(folder, "part"), "wb") as file:
                array.tofile(file)
                os.fsync(file)

        clock = time.perf_counter  # the disk's time counts
        few, many = (best_of(partial(write, a), clock) for a in (large[:1], large))
    return {"byte": max(many - few, 0.0) / large.nbytes, "file": few}
