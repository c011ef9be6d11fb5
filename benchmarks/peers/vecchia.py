"""GPBoost: Gaussian processes by Vecchia's approximation."""

import numpy as np

from .contender import OnePerOutput, Prediction


class Vecchia(OnePerOutput):
    name = "GPBoost Vecchia"
    packages = ("gpboost",)
    settings = (
        "`GPModel` with Vecchia's approximation and its 20 neighbours; a Matern-5/2 "
        "kernel with a range for each input."
    )

    def fit_one(self, X, y):
        import gpboost

        model = gpboost.GPModel(
            gp_coords=X,
            cov_function="matern_ard",
            cov_fct_shape=2.5,
            gp_approx="vecchia",
            likelihood="gaussian",
            num_parallel_threads=self.n_threads,
            seed=self.seed,
        )
        model.fit(y=y)
        return model

    def predict_one(self, model, X):
        answer = model.predict(gp_coords_pred=X, predict_var=True)
        return Prediction(answer["mu"], np.sqrt(answer["var"]))
