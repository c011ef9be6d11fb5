"""scikit-learn's Gaussian process on as many rows as its budget allows."""

import numpy as np

from .contender import Contender, Prediction

N_ROWS, MOST_SCALES = 800, 20


class SubsetGP(Contender):
    name = "scikit-learn GP"
    packages = ("scikit-learn",)
    settings = (
        f"`GaussianProcessRegressor` on {N_ROWS:,} random rows, which are all that its "
        "optimiser has time for; a Matern-5/2 kernel with an amplitude, noise and a "
        f"length scale for each input, or one for all if there are over {MOST_SCALES}."
    )
    n_rows = N_ROWS

    def fit(self, X, Y):
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        rows = np.random.default_rng(self.seed).permutation(len(X))[: self.n_rows]
        n_scales = X.shape[1] if X.shape[1] <= MOST_SCALES else 1
        kernel = ConstantKernel() * Matern(np.ones(n_scales), nu=2.5) + WhiteKernel()
        self.model = GaussianProcessRegressor(kernel, random_state=self.seed)
        self.model.fit(X[rows], Y[rows])

    def predict(self, X):
        mean, std = self.model.predict(X, return_std=True)
        shape = (len(X), -1)
        return Prediction(mean.reshape(shape), std.reshape(shape))
