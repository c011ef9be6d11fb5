"""LightGBM: boosted trees for the mean, and for both ends of the interval."""

import numpy as np

from .contender import OnePerOutput, Prediction, held_out

# Of one output; of several, half as many again for all together.
MOST_TREES, PATIENCE = 2000, 50
TREES = {"num_leaves": 63, "learning_rate": 0.05}
# An end of the interval has at most a quarter of the trees: ensembles of a quantile
# rarely stop early, and would take the time of all others.
ENDS = (0.025, 0.975)


class LightGBM(OnePerOutput):
    name = "LightGBM"
    packages = ("lightgbm",)
    settings = (
        f"At most {MOST_TREES:,} trees of 63 leaves and a rate of 0.05, for several "
        "outputs half as many again divided by their number; settled by early stopping "
        f"on a tenth of the rows, with a patience of {PATIENCE} trees; one more "
        "ensemble of at most a quarter of the trees for each end of the interval, by "
        "the quantile objective, exchanged where they cross."
    )

    def fit(self, X, Y):
        self.n_trees = most_trees(Y)
        super().fit(X, Y)

    def fit_one(self, X, y):
        means = self.trees(X, y, self.n_trees)
        some = self.n_trees // 4
        ends = [self.trees(X, y, some, objective="quantile", alpha=end) for end in ENDS]
        return [means, *ends]

    def trees(self, X, y, n_trees, **options):
        """An ensemble that has stopped early."""
        return stopped_early(X, y, n_trees, self.n_threads, self.seed, **options)

    def predict_one(self, model, X):
        mean, *ends = (trees.predict(X) for trees in model)
        # Ensembles that know nothing of each other may cross.
        return Prediction(mean, None, np.minimum(*ends), np.maximum(*ends))


def most_trees(Y):
    """Trees of one output, fewer if there are several."""
    return min(MOST_TREES, 3 * MOST_TREES // (2 * Y.shape[1]))


def stopped_early(X, y, n_trees, n_threads, seed, **options):
    """Trees as LightGBM's guide advises: many, with early stopping."""
    from lightgbm import LGBMRegressor, early_stopping

    X, y, X_decide, y_decide = held_out(X, y, 0.1, seed)
    trees = LGBMRegressor(
        n_estimators=n_trees,
        n_jobs=n_threads,
        random_state=seed,
        verbose=-1,
        **TREES,
        **options,
    )
    stop = early_stopping(PATIENCE, verbose=False)
    return trees.fit(X, y, eval_set=[(X_decide, y_decide)], callbacks=[stop])
