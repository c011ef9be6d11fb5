"""Bayesian ridge regression: a plane, the least that others must surpass."""

from .contender import OnePerOutput, Prediction


class Linear(OnePerOutput):
    name = "Bayesian ridge"
    packages = ("scikit-learn",)
    settings = "`BayesianRidge` with its defaults."

    def fit_one(self, X, y):
        from sklearn.linear_model import BayesianRidge

        return BayesianRidge().fit(X, y)

    def predict_one(self, model, X):
        return Prediction(*model.predict(X, return_std=True))
