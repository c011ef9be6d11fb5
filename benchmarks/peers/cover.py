"""overcover: a cover of Gaussian processes with its defaults."""

from .contender import Contender, Prediction


class Cover(Contender):
    name = "overcover"
    packages = ("overcover",)
    settings = (
        "`OverlappingCoverRegressor` with its defaults. Queries are answered twice, "
        "once for `predict` and once for `predict_interval`."
    )

    def fit(self, X, Y):
        from overcover import OverlappingCoverRegressor

        model = OverlappingCoverRegressor(n_jobs=self.n_threads, random_state=self.seed)
        self.model = model.fit(X, Y)

    def predict(self, X):
        mean, std = self.model.predict(X, return_std=True)
        return Prediction(mean, std, *self.model.predict_interval(X, 0.95))
