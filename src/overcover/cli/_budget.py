"""Choose the size of subdomains so that a fit takes about as long as it may.

`overcover.plan` decides, before anything is fitted; here are only the words, and a size
below which the fitted model would be warned about.
"""

import time

from .._markup import duration, number, percent
from ..planning import Plan, measure, plan
from ..planning import _units as planning
from ..planning._findings import scales_to_find
from ..planning._sizes import candidate_sizes
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
        return planning.parse_seconds(text)
    except ValueError as error:
        raise Mistake(str(error)) from error


def plan_within(shape, seconds, machine, overlap=None, n_jobs=None, rates=None) -> Plan:
    """The plan that `overcover.plan` recommends for a fit into a store.

    What measuring takes is part of the budget. Subdomains are never so small that a
    fitted model would be warned about, even if that takes longer than it may.

    Parameters
    ----------
    shape : tuple of int
        Rows, features and outputs.
    seconds : float
    machine : str
    overlap : float or None
        None chooses it too.
    n_jobs : int or None
    rates : Rates or None
        None measures them.

    Returns
    -------
    Plan
    """
    started = time.perf_counter()
    rates = rates or measure(machine, *shape[1:])
    left = max(seconds - (time.perf_counter() - started), LEAST_SECONDS)
    options = {
        "budget": left,
        "machine": machine,
        "overlap": overlap,
        "into_store": True,
        "n_jobs": n_jobs,
        "rates": rates,
    }
    made = plan(*shape, **options)
    least = 2 * scales_to_find(shape[1])
    if made.n_subdomains > 1 and made.subdomain_size < least:
        enough = [size for size in candidate_sizes(shape[0]) if size >= least]
        made = plan(*shape, subdomain_size=min(enough, default=shape[0]), **options)
    return made


def describe(made: Plan, seconds):
    """What a budget decided, in words; where it cannot be met, why not."""
    longest = max(made.seconds, key=made.seconds.__getitem__)
    spent = f"{STAGES[longest]}, {duration(made.seconds[longest])}"
    size = f"one machine on all {number(made.n_samples)} rows"
    if made.n_subdomains > 1:
        borrowed = percent(made.overlap, 0)
        size = f"subdomains of {made.subdomain_size} rows, {borrowed} of them borrowed"
    total = duration(made.total_seconds)
    if made.fits:
        return f"Planned: {size}, in about {total}; most of it for {spent}."
    return (
        f"--budget {duration(seconds)} is too little: the least is about {total}, with "
        f"{size}; most of it is for {spent}."
    )
