"""What one computer of a cluster does for a fit: stages, and machines.

    X, Y -> tune -> partition -> cover -> router -> machines

Tasks are calls of these functions, or of those in `_shards`. Their arguments are paths
and numbers of subdomains, what they return are digests; arrays are mapped from files and
written to files. Each may be called again, or twice at the same time: files get their
names when they are whole.
"""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from joblib import parallel_config

from .._parallel import run_tasks
from .._validation import TrainingData
from .._weights import in_typical_units
from ..fitting import STAGES, Fit, Recipe
from ..store import Draft, fingerprint_of, write_used
from ._files import map_rows, wait_for


class Inputs(NamedTuple):
    """Paths of the .npy files that a fit is given; float64, in C order."""

    X: str
    y: str
    sample_weight: str | None = None
    X_target: str | None = None
    rows: str | None = None
    """Which of the caller's rows these are; None for all."""

    def mapped(self):
        """All of them as arrays, None for None."""
        return [None if path is None else map_rows(path) for path in self]


@dataclass(frozen=True)
class Job:
    """One fit, as tasks know it."""

    folder: str
    """Of the draft."""

    dtype: str
    inputs: Inputs
    recipe: Recipe = field(compare=False)

    def fit(self) -> Fit:
        """The fit with mapped rows, and no results yet."""
        X, y, weights, X_target, rows = self.inputs.mapped()
        weights = None if weights is None else in_typical_units(weights)
        data = TrainingData(X, y.reshape(len(X), -1), weights, rows)
        return Fit(self.recipe, data, X_target)


def prepare(model, inputs, folder, dtype) -> tuple[str, Inputs]:
    """The fingerprint of a fit, and its inputs with equal rows merged into one."""
    X, y, weights, X_target, _ = inputs.mapped()
    fingerprint = fingerprint_of(model, X, y, weights, X_target, dtype)
    if X.ndim != 2 or not len(X) == len(y) == len(X if weights is None else weights):
        return fingerprint, inputs  # which the fit refuses
    used = write_used(X, y, weights, folder) or {}
    return fingerprint, inputs._replace(**{name: str(p) for name, p in used.items()})


def run_stage(job, name) -> None:
    """Do one stage, unless its result is there."""
    fit, draft = job.fit(), Draft(job.folder, job.dtype)
    _read_inputs(draft, fit, name)
    # joblib's processes cannot be started by a worker, and are not wanted.
    with parallel_config("threading"):
        draft.run(fit, name)


def fit_subdomains(job, keeps_factors, ids) -> list[str]:
    """Fit some machines, unless they are there; returns the digests of their files."""
    fit, draft = _opened(job, keeps_factors)
    return list(run_tasks(draft.keep_machine, ((fit, k) for k in ids), n_jobs=1))


@lru_cache(maxsize=1)
def _opened(job, keeps_factors):
    """What all tasks of one fit share, opened once per process."""
    fit, draft = job.fit(), Draft(job.folder, job.dtype)
    _read_inputs(draft, fit, "machines")
    fit.keeps_factors = keeps_factors  # decided by the memory of the client
    return fit, draft


def _read_inputs(draft, fit, name):
    for earlier in STAGES[name].inputs:
        wait_for(draft.file(earlier))
        draft.run(fit, earlier)


def forget() -> None:
    """Close the files of a fit, so that they can be deleted everywhere."""
    _opened.cache_clear()
