"""LightGBM: boosted trees for the mean, and for both ends of the interval."""

import numpy as np

from .contender import OnePerOutput, Prediction, held_out

MOST_TREES, PATIENCE = 1000, 50
ENDS = (0.025, 0.975)


class LightGBM(OnePerOutput):
    name = "LightGBM"
    packages = ("lightgbm",)
    settings = (
        f"At most {MOST_TREES:,} trees of the default rate, 0.1; their number is "
        "settled by early stopping on a tenth of the rows, with a patience of "
        f"{PATIENCE} trees; "
        "one more ensemble for each end of the interval, by the quantile objective, "
        "exchanged where they cross."
    )

    def fit_one(self, X, y):
        means = self.trees(X, y)
        ends = [self.trees(X, y, objective="quantile", alpha=end) for end in ENDS]
        return [means, *ends]

    def trees(self, X, y, **options):
        """An ensemble that has stopped early."""
        return stopped_early(X, y, self.n_threads, self.seed, **options)

    def predict_one(self, model, X):
        mean, *ends = (trees.predict(X) for trees in model)
        # Ensembles that know nothing of each other may cross.
        return Prediction(mean, None, np.minimum(*ends), np.maximum(*ends))


def stopped_early(X, y, n_threads, seed, **options):
    """Trees as LightGBM's guide advises: many, with early stopping."""
    from lightgbm import LGBMRegressor, early_stopping

    X, y, X_decide, y_decide = held_out(X, y, 0.1, seed)
    trees = LGBMRegressor(
        n_estimators=MOST_TREES,
        n_jobs=n_threads,
        random_state=seed,
        verbose=-1,
        **options,
    )
    stop = early_stopping(PATIENCE, verbose=False)
    return trees.fit(X, y, eval_set=[(X_decide, y_decide)], callbacks=[stop])
