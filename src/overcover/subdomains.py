"""All subdomains at once: fit their machines, ask those that queries are routed to.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

The unit of work is a subdomain: one task fits one machine, or answers the queries of a
few.
"""

from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs

from . import routing
from ._parallel import run_tasks
from .cover import Cover
from .machines import Answer
from .machines.base import Machine

# Queries of a task, with which handing it to a thread takes no time to speak of; fewer
# where there would be less than this many tasks for each thread.
TASK_QUERIES, TASKS_EACH = 64, 8


class InMemory:
    """Where a fit keeps its work: nowhere but in memory.

    `overcover.store` has a draft on disk with the same methods.
    """

    # Whether the rows it is given have been merged already, and if so, which of the
    # caller's rows they are; None for all. See `overcover._weights`.
    is_merged, rows = False, None

    def stage(self, name, rng, make, *args):
        """``make(*args)``, or what it gave when it was called under that name."""
        return make(*args)

    def states(self, local, n_jobs):
        """``local.fit(k)`` of every subdomain k, or what stands for it."""
        return run_tasks(local.fit, local.tasks(), n_jobs)

    def gathered(self, machine, states):
        """A sequence of all states, from what `states` gave."""
        return list(states)


class LocalFits(NamedTuple):
    """All that fitting the machines needs."""

    machine: Machine
    """Tuned."""

    X: np.ndarray
    """Shape (n_samples, n_features), float64 or float32, in memory or mapped."""

    Y: np.ndarray
    """Shape (n_samples, n_outputs)."""

    sample_weight: np.ndarray | None
    """Shape (n_samples,)."""

    cover: Cover

    keep: bool
    """Whether states keep what is large, see `Machine.keeps_factors`."""

    rows: np.ndarray | None
    """What the caller's numbers of the rows are; None if they are the same."""

    def fit(self, k):
        """The state of subdomain k."""
        members, n_owned = self.cover.members[k], self.cover.n_owned[k]
        weight = None if self.sample_weight is None else self.sample_weight[members]
        X, Y = np.asarray(self.X[members], dtype=np.float64), self.Y[members]
        return self.machine.fit_state(X, Y, weight, n_owned, self.keep)

    def members(self, k):
        """The rows of subdomain k, by the caller's numbers."""
        members = self.cover.members[k]
        return members if self.rows is None else self.rows[members]

    def tasks(self):
        """Arguments of `fit`, one after the other."""
        return ((k,) for k in range(len(self.cover.members)))


def fit_machines(
    machine, X, Y, sample_weight, cover, n_jobs=None, work=None, rows=None
):
    """One state per subdomain, in order, as they are done.

    Parameters
    ----------
    machine : Machine
        Tuned.
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    sample_weight : ndarray of shape (n_samples,) or None
    cover : Cover
    n_jobs : int or None
    work : InMemory or None
        Where states are kept.
    rows : ndarray of shape (n_samples,) or None
        As in `LocalFits`.

    Yields
    ------
    state, or what stands for it in `work`
    """
    work = InMemory() if work is None else work
    size = max(len(members) for members in cover.members)
    keep = machine.keeps_factors(len(cover.members), size)
    local = LocalFits(machine, X, Y, sample_weight, cover, keep, rows)
    yield from work.states(local, n_jobs)


def ask_doubts(machine, states, X, route, n_jobs=None):
    """Ask every candidate on a route how much it doubts.

    Parameters as in `ask`.

    Returns
    -------
    ndarray of shape (n_queries, n_candidates, 1), infinite for nobody; zeros for a
    query's only candidate, who is not asked
    """
    doubts = np.full(route.subdomains.shape, np.inf)
    alone = (route.subdomains >= 0).sum(axis=1) == 1
    doubts[alone, 0] = 0.0

    def ask_one(k, where):
        return where, machine.posterior_variance(states[k], X[where[0]])

    undecided = np.where(alone[:, None], -1, route.subdomains)
    for where, doubt in ask_each(ask_one, undecided, n_jobs):
        doubts[where] = doubt
    return doubts[..., None]


def ask(machine, states, X, route, variance=False, n_jobs=None) -> Answer:
    """Ask every subdomain on a route about all its queries at once.

    Parameters
    ----------
    machine : Machine
    states : sequence of states
    X : ndarray of shape (n_queries, n_features)
    route : Route
    variance : bool
    n_jobs : int or None

    Returns
    -------
    Answer
        With an axis for the consulted: mean and variance of shape (n_queries,
        n_consulted, n_outputs), posterior of shape (n_queries, n_consulted, 1),
        infinite for nobody.
    """
    shape = route.subdomains.shape
    found: list[np.ndarray] = []

    def ask_one(k, where):
        return where, machine.answer(states[k], X[where[0]], variance)

    for where, answer in ask_each(ask_one, route.subdomains, n_jobs):
        parts = [answer.mean]
        if variance:
            parts += [answer.variance, answer.posterior[:, None]]
        if not found:
            found = [np.full((*shape, part.shape[1]), np.inf) for part in parts]
        for whole, part in zip(found, parts):
            whole[where] = part
    return Answer(*found) if variance else Answer(found[0], None, None)


def ask_each(ask_one, subdomains, n_jobs):
    """``ask_one(k, where)`` for every subdomain k that is named, several to a task.

    Parameters
    ----------
    ask_one : callable
    subdomains : ndarray of shape (n_queries, n_consulted)
        See `routing.grouped`.
    n_jobs : int or None

    Yields
    ------
    what `ask_one` gives, in the order of subdomains
    """
    n_asked = int(np.sum(subdomains >= 0))
    n_tasks = TASKS_EACH * effective_n_jobs(n_jobs)
    least = min(TASK_QUERIES, -(-n_asked // n_tasks))

    def ask_some(*groups):
        return [ask_one(*group) for group in groups]

    for answers in run_tasks(ask_some, tasks_of(subdomains, least), n_jobs):
        yield from answers


def tasks_of(subdomains, least):
    """Groups of `routing.grouped`, as many together as have `least` queries.

    Examples
    --------
    >>> tasks = tasks_of(np.array([[1, 0], [1, 2], [4, 5]]), 2)
    >>> [[k for k, where in task] for task in tasks]
    [[0, 1], [2, 4], [5]]
    """
    task, n_queries = [], 0
    for group in routing.grouped(subdomains):
        task.append(group)
        n_queries += len(group[1][0])
        if n_queries >= least:
            yield tuple(task)
            task, n_queries = [], 0
    if task:
        yield tuple(task)
