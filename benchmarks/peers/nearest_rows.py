"""Nearest neighbours: the mean and the spread of their outputs."""

import numpy as np

from .contender import Contender, Prediction

N_NEIGHBORS = 10


class NearestRows(Contender):
    name = "nearest neighbours"
    packages = ("scikit-learn",)
    settings = (
        f"The mean and the standard deviation of the outputs of the {N_NEIGHBORS} "
        "nearest rows."
    )

    def fit(self, X, Y):
        from sklearn.neighbors import NearestNeighbors

        search = NearestNeighbors(n_neighbors=N_NEIGHBORS, n_jobs=self.n_threads)
        self.search, self.Y = search.fit(X), Y

    def predict(self, X):
        nearest = self.search.kneighbors(X, return_distance=False)
        outputs = self.Y[nearest]
        # A new observation is one more draw: its variance exceeds that of the mean.
        inflation = np.sqrt(1 + 1 / N_NEIGHBORS)
        return Prediction(outputs.mean(axis=1), inflation * outputs.std(axis=1, ddof=1))
