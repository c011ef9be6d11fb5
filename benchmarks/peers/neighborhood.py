"""The NN scheme: a GP per query on its nearest rows, the reference of speed-ups."""

from overcover.baselines import NeighborhoodRegressor

NAME = "NN-GP"
IS_SLOW = True


def skip():
    """It can always run."""


def make(machine=None, n_neighbors=400, n_trees=None, n_jobs=None):
    """With the hyperparameters of `machine`: both sides have the same model."""
    return NeighborhoodRegressor(machine, n_neighbors, n_jobs=n_jobs, random_state=0)
