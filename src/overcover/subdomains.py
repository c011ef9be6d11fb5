"""All subdomains at once: ask those that queries are routed to.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

The unit of work is a subdomain: one task answers the queries of a few.
"""

import numpy as np
from joblib import effective_n_jobs

from . import routing
from ._parallel import run_tasks
from .machines import Answer

# Queries of a task, with which handing it to a thread takes no time to speak of; fewer
# where there would be less than this many tasks for each thread.
TASK_QUERIES, TASKS_EACH = 64, 8


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
        return where, machine.doubt(states[k], X[where[0]])

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
        n_consulted, n_outputs), doubt of shape (n_queries, n_consulted, 1), infinite
        for nobody.
    """
    shape = route.subdomains.shape
    found: list[np.ndarray] = []

    def ask_one(k, where):
        return where, machine.answer(states[k], X[where[0]], variance)

    for where, answer in ask_each(ask_one, route.subdomains, n_jobs):
        parts = [answer.mean]
        if variance:
            parts += [answer.variance, answer.doubt[:, None]]
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
