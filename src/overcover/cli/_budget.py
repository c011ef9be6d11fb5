"""A time budget on the command line: `overcover.plan` chooses, here are the words."""

import time

from .. import planning
from .._markup import duration, number, percent
from ._mistakes import Mistake

# What the stages of a plan do.
STAGES = {
    "tuning": "finding hyperparameters",
    "partition": "partitioning the rows",
    "cover": "covering them",
    "machines": "fitting and writing the machines",
}
# Less time than this is none.
LEAST_SECONDS = 1e-3


def parse_seconds(text):
    """Seconds from a time such as 90s, 2m, 1h30m; see `overcover.planning`."""
    try:
        return planning.budget.parse_seconds(text)
    except ValueError as error:
        raise Mistake(str(error)) from error


def plan_within(shape, seconds, machine, overlap=None, n_jobs=None) -> planning.Plan:
    """The plan that `overcover.plan` recommends for a fit into a store.

    The budget includes the time that measuring takes.

    Parameters
    ----------
    shape : tuple of int
        Rows, features and outputs.
    seconds : float
    machine : str
    overlap : float or None
        None chooses it too.
    n_jobs : int or None

    Returns
    -------
    Plan
    """
    start = time.perf_counter()
    n_samples, n_features, n_outputs = shape
    rates = planning.measure(machine, n_features, n_outputs)
    left = max(seconds - (time.perf_counter() - start), LEAST_SECONDS)
    return planning.plan(
        n_samples,
        n_features,
        n_outputs,
        budget=left,
        machine=machine,
        overlap=overlap,
        into_store=True,
        n_jobs=n_jobs,
        rates=rates,
    )


def describe(choice: planning.Plan, seconds):
    """What a budget decided, in words; where the plan exceeds it, why."""
    longest = max(choice.seconds, key=choice.seconds.__getitem__)
    spent = f"{STAGES[longest]}, {duration(choice.seconds[longest])}"
    size = f"one machine on all {number(choice.n_samples)} rows"
    if choice.n_subdomains > 1:
        borrowed = percent(choice.overlap, 0)
        size = (
            f"subdomains of {choice.subdomain_size} rows, {borrowed} of them borrowed"
        )
    total = duration(choice.total_seconds)
    if choice.fits:
        return f"Planned: {size}, in about {total}; most of it for {spent}."
    return (
        f"--budget {duration(seconds)} is too little: the least is about {total}, with "
        f"{size}; most of it is for {spent}."
    )
