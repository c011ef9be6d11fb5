"""What one computer of a cluster does for a fit: stages, and machines.

Tasks take paths and numbers and return digests; a task may be repeated, or run twice.
"""

from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

from joblib import parallel_config

from .._parallel import run_tasks
from .._validation import TrainingData
from .._weights import in_typical_units
from ..fitting import STAGES, Fit, Recipe
from ..store import Draft, fingerprint_of, mapped_used
from ._files import map_rows, wait_for


class Inputs(NamedTuple):
    """Paths of the .npy files that a fit reads; float64, in C order."""

    X: str
    y: str
    sample_weight: str | None = None
    X_target: str | None = None
    rows: str | None = None  # which of the caller's rows these are; None for all
    groups: str | None = None  # numbers of the rows' groups, int64

    def mapped(self):
        """All of them as arrays, None for None."""
        return [None if path is None else map_rows(path) for path in self]


@dataclass(frozen=True)
class Job:
    """One fit, as tasks know it."""

    folder: str  # of the draft
    dtype: str
    inputs: Inputs
    recipe: Recipe = field(compare=False)

    @cached_property
    def draft(self) -> Draft:
        """Where results are."""
        return Draft(self.folder, self.dtype)

    def fit(self, stage) -> Fit:
        """The fit as a stage begins: mapped rows, and the results that it needs."""
        X, y, weights, X_target, rows, groups = self.inputs.mapped()
        weights = None if weights is None else in_typical_units(weights)
        Y = self.recipe.target.forward(y.reshape(len(X), -1))
        data = TrainingData(X, Y, weights, rows)
        fit, draft = Fit(self.recipe, data, X_target, groups), self.draft
        for earlier in STAGES[stage].inputs:
            wait_for(draft.file(earlier))
            draft.run(fit, earlier)
        return fit


def prepare(model, inputs, folder, dtype, notes) -> tuple[str, Inputs]:
    """The fingerprint of a fit, and its inputs with equal rows merged into one."""
    X, y, weights, X_target, _, groups = inputs.mapped()
    options = weights, X_target, dtype, notes, groups
    fingerprint = fingerprint_of(model, X, y, *options)
    if X.ndim != 2 or not len(X) == len(y) == len(X if weights is None else weights):
        return fingerprint, inputs  # which the fit refuses
    used, rows = mapped_used(X, y, weights, groups, folder)
    if rows is not None:
        names = ("X", "y", "sample_weight", "groups", "rows")
        arrays = zip(names, (*used, rows))
        files = {name: str(a.filename) for name, a in arrays if a is not None}
        inputs = inputs._replace(**files)
    return fingerprint, inputs


def run_stage(job, name) -> None:
    """Do one stage, unless its result is there."""
    # joblib's processes cannot be started by a worker, and are not wanted.
    with parallel_config("threading"):
        job.draft.run(job.fit(name), name)


def fit_subdomains(job, keeps_factors, ids) -> list[str]:
    """Fit some machines, unless they are there; returns the digests of their files."""
    tasks = ((_opened(job, keeps_factors), k) for k in ids)
    return list(run_tasks(job.draft.keep_machine, tasks, n_jobs=1))


@lru_cache(maxsize=1)
def _opened(job, keeps_factors) -> Fit:
    """What all tasks of one fit share, opened once per process."""
    fit = job.fit("machines")
    fit.keeps_factors = keeps_factors  # decided by the memory of the client
    return fit


def forget() -> None:
    """Close the files of a fit."""
    _opened.cache_clear()
