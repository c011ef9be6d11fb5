"""GPBoost: Gaussian processes by Vecchia's approximation."""

import numpy as np

from .contender import OnePerOutput, Prediction

MOST_TUNED, MOST_RANGES = 4000, 20


class Vecchia(OnePerOutput):
    name = "GPBoost Vecchia"
    packages = ("gpboost",)
    settings = (
        "`GPModel` with Vecchia's approximation and its 20 neighbours; a Matern-5/2 "
        "kernel with a range for each input, or one for all if there are over "
        f"{MOST_RANGES}; parameters from {MOST_TUNED:,} random rows, predictions from "
        "all rows."
    )

    def fit_one(self, X, y):
        rows = np.random.default_rng(self.seed).permutation(len(X))[:MOST_TUNED]
        tuned = self.model(X[rows])
        tuned.fit(y=y[rows])
        return self.model(X), y, tuned.get_cov_pars(format_pandas=False)

    def model(self, X):
        """A model of rows, without parameters."""
        import gpboost

        return gpboost.GPModel(
            gp_coords=X,
            cov_function="matern_ard" if X.shape[1] <= MOST_RANGES else "matern",
            cov_fct_shape=2.5,
            gp_approx="vecchia",
            likelihood="gaussian",
            num_parallel_threads=self.n_threads,
            seed=self.seed,
        )

    def predict_one(self, model, X):
        model, y, parameters = model
        answer = model.predict(
            y=y, gp_coords_pred=X, predict_var=True, cov_pars=parameters
        )
        return Prediction(answer["mu"], np.sqrt(answer["var"]))
