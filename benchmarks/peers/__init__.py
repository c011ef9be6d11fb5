"""Contenders, one file each, all with the same four names.

- ``NAME``: what tables call it;
- ``IS_SLOW``: whether it answers only some of the test rows;
- ``skip() -> str | None``: why it cannot run here, or None if it can;
- ``make(machine, n_neighbors, n_trees, n_jobs) -> regressor``: not yet fitted. A peer
  uses what concerns it; `machine` is a GP with hyperparameters found beforehand.
"""

from . import boosted_trees, neighborhood

ALL = (boosted_trees, neighborhood)
