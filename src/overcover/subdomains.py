"""All subdomains at once: fit their machines.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

The unit of work is a subdomain: one task fits one machine.
"""

from typing import NamedTuple

import numpy as np

from ._parallel import run_tasks
from .cover import Cover
from .machines.base import Machine


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
