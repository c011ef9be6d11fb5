"""A fit as a list of stages, and a runner that runs them.

    X, Y -> tune -> partition -> cover -> router -> machines

`STAGES` lists all but the last. A runner runs one after the other and keeps results.
There are three: `InMemory` here; `overcover.store.Draft`, which writes each result to a
file and reads it back when a fit is resumed; and that of `overcover.distributed`, whose
tasks are the same stages on other computers. The results are equal, bit by bit.
"""

from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from ._parallel import run_tasks
from ._streams import Rows, without_far_cells
from ._validation import TrainingData
from .cover import CoverShape, cover_partition
from .inputs import InputScales, on_scale
from .machines import make_machine
from .partition import partition_rows
from .routing import make_router
from .targets import Unchanged


class Recipe(NamedTuple):
    """What a fit depends on besides its rows: parameters, and sizes as numbers."""

    machine: Any
    shape: CoverShape  # M, p, t, and how many clusters the partition is to have
    partition: Any
    router: str
    random_state: Any
    n_jobs: int | None
    target: Any = Unchanged()  # which the outputs have gone through
    input_scales: InputScales | None = None  # of the inputs; None if unchanged


class Fit:
    """One fit: its recipe, its rows, and the results of the stages that are done.

    The result of a stage is an attribute with its name: `partition`, `cover`, `router`;
    and `tune`, the machine with its hyperparameters and the weights of the rows.
    """

    tune: Any
    partition: Any
    cover: Any
    router: Any
    states: Any

    def __init__(self, recipe, data: TrainingData, X_target=None, groups=None):
        scales = recipe.input_scales
        self.recipe, self.data = recipe, data._replace(X=on_scale(scales, data.X))
        self.X_target = on_scale(scales, X_target)
        self.groups = groups
        self.rng = check_random_state(recipe.random_state)

    @property
    def machine(self):
        """With its hyperparameters."""
        return self.tune[0]

    @property
    def n_subdomains(self):
        """How many subdomains there are; a clusterer may make more than planned."""
        return len(self.cover.members)

    @cached_property
    def length_scales(self):
        """The machine's metric, shape (n_features,)."""
        return self.machine.length_scales(self.data.X)

    @cached_property
    def X_metric(self):
        """The rows in the machine's metric, for partition, cover and router."""
        return without_far_cells(Rows(self.data.X, self.length_scales))

    @cached_property
    def keeps_factors(self):
        """Whether states keep what is large, see `Machine.keeps_factors`."""
        size = max(len(members) for members in self.cover.members)
        return self.machine.keeps_factors(self.n_subdomains, size)

    def members(self, k):
        """The rows of subdomain k, by the caller's numbers."""
        members, rows = self.cover.members[k], self.data.rows
        return members if rows is None else rows[members]

    def left_out(self, k, n=None):
        """Groups that rows of subdomain k, or its first n, are left out in, or None."""
        groups = None if self.groups is None else self.groups[self.cover.members[k]]
        groups = self.machine.groups_to_leave_out(groups, self.members(k))
        return None if groups is None else groups[:n]


def tune(fit):
    """The machine with its hyperparameters, and the weights of the rows."""
    (X, Y, weights, *_), rng = fit.data, fit.rng
    machine = make_machine(fit.recipe.machine)
    weights = machine.weigh(X, weights, fit.X_target, rng)
    size, n_jobs = fit.recipe.shape.size, fit.recipe.n_jobs
    machine.tune(X, Y, weights, size, rng, n_jobs, fit.groups)
    return machine, weights


def partition(fit):
    """The clusters, as a `Partition`."""
    recipe = fit.recipe
    wanted = recipe.shape.n_subdomains, recipe.partition
    return partition_rows(fit.X_metric, *wanted, recipe.n_jobs, fit.rng)


def cover(fit):
    """The subdomains, as a `Cover`."""
    shape, n_jobs = fit.recipe.shape, fit.recipe.n_jobs
    sizes = shape.size, shape.overlap, shape.spread
    return cover_partition(fit.X_metric, fit.partition, *sizes, n_jobs)


def router(fit):
    """Who sends queries to subdomains."""
    labels, n_jobs = fit.partition.labels, fit.recipe.n_jobs
    return make_router(fit.recipe.router, fit.X_metric, fit.cover, labels, n_jobs)


def fit_machine(fit, k):
    """The state of subdomain k."""
    members, n_owned = fit.cover.members[k], fit.cover.n_owned[k]
    machine, weights = fit.tune
    X = np.asarray(fit.data.X[members], dtype=np.float64)
    weights = None if weights is None else weights[members]
    Y, groups = fit.data.Y[members], fit.left_out(k)
    return machine.fit_state(X, Y, weights, n_owned, fit.keeps_factors, groups)


# The stages that make one result each, in order; each needs the results before it.
STAGES = {"tune": tune, "partition": partition, "cover": cover, "router": router}


class InMemory:
    """Runs the stages of a fit here and now; the base of all runners."""

    in_memory = True  # whether all states are held in memory
    # Whether equal rows have been merged before the fit, see `overcover._weights`; and
    # if so, which of the caller's rows are left, None for all.
    is_merged: bool = False
    rows: Any = None
    n_given = 0  # rows that the caller gave in all; 0 for those that the fit sees

    def run(self, fit, name):
        """Do a stage of `STAGES`; its result becomes an attribute of the fit."""
        setattr(fit, name, self.result_of(name, fit))

    def result_of(self, name, fit):
        """The result of a stage."""
        return STAGES[name](fit)

    def fit_machines(self, fit, track=iter):
        """Fit a machine to every subdomain, and calibrate it by all of their states.

        `track` passes an iterator through, whose items are subdomains that are done.
        """
        fit.states = self.states_of(fit, track)
        groups = [fit.left_out(k, n) for k, n in enumerate(fit.cover.n_owned)]
        fit.machine.calibrate(fit.states, groups)

    def states_of(self, fit, track):
        """The states of all subdomains, in order."""
        tasks = ((fit, k) for k in range(fit.n_subdomains))
        return list(track(run_tasks(self.keep_machine, tasks, fit.recipe.n_jobs)))

    def keep_machine(self, fit, k):
        """The state of subdomain k, or what stands for it."""
        return fit_machine(fit, k)
