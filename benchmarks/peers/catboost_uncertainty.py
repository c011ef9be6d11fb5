"""CatBoost: boosted trees that predict a mean and a variance."""

import numpy as np

from .contender import OnePerOutput, Prediction, held_out

MOST_TREES = 1000


class CatBoost(OnePerOutput):
    name = "CatBoost"
    packages = ("catboost",)
    settings = (
        "The loss `RMSEWithUncertainty` and at most 1,000 trees, the default, for "
        "several outputs twice as many divided by their number; the best number is "
        "settled on a tenth of the rows."
    )

    def fit(self, X, Y):
        self.n_trees = min(MOST_TREES, 2 * MOST_TREES // Y.shape[1])
        super().fit(X, Y)

    def fit_one(self, X, y):
        from catboost import CatBoostRegressor

        X, y, X_decide, y_decide = held_out(X, y, 0.1, self.seed)
        trees = CatBoostRegressor(
            loss_function="RMSEWithUncertainty",
            iterations=self.n_trees,
            thread_count=self.n_threads,
            random_seed=self.seed,
            verbose=False,
            allow_writing_files=False,
        )
        return trees.fit(X, y, eval_set=(X_decide, y_decide), early_stopping_rounds=50)

    def predict_one(self, model, X):
        mean, variance = model.predict(X).T
        return Prediction(mean, np.sqrt(variance))
