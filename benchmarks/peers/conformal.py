"""MAPIE: split conformal intervals around LightGBM."""

from .contender import OnePerOutput, Prediction, held_out
from .lightgbm_quantiles import most_trees, stopped_early


class Conformal(OnePerOutput):
    name = "MAPIE + LightGBM"
    packages = ("mapie", "lightgbm")
    settings = (
        "`SplitConformalRegressor` with a fifth of the rows to conformalise, around "
        "LightGBM's mean as in its own row. All intervals of an output have the same "
        "width."
    )

    def fit(self, X, Y):
        self.n_trees = most_trees(Y)
        super().fit(X, Y)

    def fit_one(self, X, y):
        from mapie.regression import SplitConformalRegressor

        X, y, X_rest, y_rest = held_out(X, y, 0.2, self.seed)
        trees = stopped_early(X, y, self.n_trees, self.n_threads, self.seed)
        model = SplitConformalRegressor(trees, confidence_level=0.95, prefit=True)
        return model.conformalize(X_rest, y_rest)

    def predict_one(self, model, X):
        mean, ends = model.predict_interval(X)
        return Prediction(mean, None, ends[:, 0, 0], ends[:, 1, 0])
