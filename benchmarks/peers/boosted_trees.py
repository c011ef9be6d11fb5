"""LightGBM: the usual first choice for tables; one ensemble per output, no variance."""

from importlib.util import find_spec

from sklearn.multioutput import MultiOutputRegressor

NAME = "LightGBM"
IS_SLOW = False


def skip():
    """The reason why it cannot run, or None."""
    if find_spec("lightgbm") is None:
        return "lightgbm is not installed: pip install 'overcover[bench]'"
    return None


def make(machine=None, n_neighbors=None, n_trees=2000, n_jobs=None):
    """A regressor with small steps and many trees."""
    from lightgbm import LGBMRegressor

    trees = LGBMRegressor(
        n_estimators=n_trees,
        learning_rate=0.05,
        num_leaves=63,
        n_jobs=n_jobs,
        random_state=0,
        verbose=-1,
    )
    return MultiOutputRegressor(trees)
