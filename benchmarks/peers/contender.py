"""What a contender is: it describes itself, fits and predicts.

A contender imports its package when it fits, so that all of them can be listed where
only some are installed, and none takes the memory of another.
"""

from typing import NamedTuple

import numpy as np


class Prediction(NamedTuple):
    """What a contender says about queries; every array is (n_queries, n_outputs)."""

    mean: np.ndarray
    std: np.ndarray | None = None
    low: np.ndarray | None = None
    """Lower ends of 95 % intervals; None where they are those of a Gaussian."""
    high: np.ndarray | None = None


class Contender:
    """A method with its settings; subclasses fit and predict."""

    name: str
    """What tables call it."""

    packages: tuple[str, ...]
    """Names of the distributions whose versions are recorded."""

    settings: str
    """Settings that are not the package's defaults, in one sentence."""

    def __init__(self, n_threads=2, seed=0):
        self.n_threads, self.seed = n_threads, seed

    def fit(self, X, Y):
        """Learn from rows (n_rows, n_inputs) and outputs (n_rows, n_outputs)."""
        raise NotImplementedError

    def predict(self, X) -> Prediction:
        """Predict new observations, noise included."""
        raise NotImplementedError


class OnePerOutput(Contender):
    """A contender of a package for one output: it has a model for each."""

    def fit(self, X, Y):
        # A package in another language may read a column's memory without its strides.
        columns = np.ascontiguousarray(Y.T)
        self.models = [self.fit_one(X, y) for y in columns]

    def predict(self, X):
        parts = [self.predict_one(model, X) for model in self.models]
        return Prediction(*(_columns(part) for part in zip(*parts)))

    def fit_one(self, X, y):
        """A fitted model of one output, y of shape (n_rows,)."""
        raise NotImplementedError

    def predict_one(self, model, X) -> Prediction:
        """The same as `predict`, with arrays of shape (n_queries,)."""
        raise NotImplementedError


def _columns(parts):
    """Answers for one output each, side by side; None where there are none."""
    return None if parts[0] is None else np.column_stack(parts)


def held_out(X, y, share, seed):
    """Rows to learn from, and a random share of rows to decide on.

    Returns
    -------
    X_learn, y_learn, X_decide, y_decide
    """
    rows = np.random.default_rng(seed).permutation(len(X))
    decide, learn = np.split(rows, [int(share * len(X))])
    return X[learn], y[learn], X[decide], y[decide]
