"""scikit-learn's Gaussian process on as many rows as its budget allows."""

import numpy as np

from .contender import Contender, Prediction

N_ROWS = 1500


class SubsetGP(Contender):
    name = "scikit-learn GP"
    packages = ("scikit-learn",)
    settings = (
        f"`GaussianProcessRegressor` on {N_ROWS:,} random rows, which are all that its "
        "optimiser has time for; a Matern-5/2 kernel with a length scale for each "
        "input, an amplitude and noise."
    )
    n_rows = N_ROWS

    def fit(self, X, Y):
        from sklearn.gaussian_process import GaussianProcessRegressor
        from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

        rows = np.random.default_rng(self.seed).permutation(len(X))[: self.n_rows]
        kernel = ConstantKernel() * Matern(np.ones(X.shape[1]), nu=2.5) + WhiteKernel()
        self.model = GaussianProcessRegressor(kernel, random_state=self.seed)
        self.model.fit(X[rows], Y[rows])

    def predict(self, X):
        mean, std = self.model.predict(X, return_std=True)
        shape = (len(X), -1)
        return Prediction(mean.reshape(shape), std.reshape(shape))
