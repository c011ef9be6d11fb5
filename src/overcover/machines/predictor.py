"""What users call on a fitted model: predictions, intervals, log densities."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import (
    as_training_shape,
    check_coverage,
    check_observed,
    check_queries,
)
from .errors import Calibrated, Gaussian


class Prediction(NamedTuple):
    """The answer of a model to a batch of queries."""

    mean: np.ndarray
    """Shape (n_queries, n_outputs)."""

    std: np.ndarray | None
    """Standard deviation of a new observation, mean's shape; None if not wanted."""


class Predictor:
    """Methods of every fitted model; a subclass gives `_predict_rows`."""

    machine_: Any

    def _predict_rows(self, X, return_std) -> Prediction:
        """Predict validated rows, float32 or float64."""
        raise NotImplementedError

    @property
    def _answering_machine(self):
        """The machine that answers."""
        return self.machine_

    @property
    def errors_(self) -> Gaussian | Calibrated:
        """How errors are distributed, see `overcover.machines.errors`.

        Gaussian, where leave-one-out errors do not calibrate the model.
        """
        return Gaussian()

    def predict(self, X, return_std=False):
        """Predict the outputs of new rows.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        return_std : bool, default=False
            Also return the standard deviation of a new observation.

        Returns
        -------
        mean : ndarray of shape (n_queries,) or (n_queries, n_outputs)
        std : ndarray of mean's shape
            Only if `return_std`.
        """
        check_is_fitted(self)
        X = check_queries(self, X)
        machine = self._answering_machine
        if return_std and not machine.has_variance:
            raise ValueError(
                f"{machine!r} has no predictive variance, so it can give neither "
                "std nor intervals. Predict without return_std, or use GP(), whose "
                "variance is exact."
            )
        mean, std = self._predict_rows(X, return_std)
        if not return_std:
            return as_training_shape(self, mean)
        return as_training_shape(self, mean), as_training_shape(self, std)

    def predict_interval(self, X, coverage=0.95):
        """Central intervals that hold a new observation with given probability.

        Half widths come from the distribution of leave-one-out errors, not from the
        Gaussian, where the machine knows them.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        coverage : float, default=0.95

        Returns
        -------
        low, high : ndarray of shape (n_queries,) or (n_queries, n_outputs)
        """
        check_coverage(coverage)
        mean, std = self.predict(X, return_std=True)
        return self._interval(mean, std, coverage)

    def _interval(self, mean, std, coverage):
        """`predict_interval` of queries that have been answered."""
        columns = std.reshape(len(std), -1)
        half = (self.errors_.half_width(coverage, columns) * columns).reshape(std.shape)
        return mean - half, mean + half

    def log_density(self, X, y):
        """Log predictive density of observed outputs; its mean is minus the NLPD.

        Where the machine knows its leave-one-out errors the density is a Student t
        with their tails, so that a gross outlier costs dozens, not thousands.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)
        y : array-like of shape (n_queries,) or (n_queries, n_outputs)

        Returns
        -------
        ndarray of y's shape
        """
        mean, std = self.predict(X, return_std=True)
        error = check_observed(y, mean) - mean
        shape = (len(mean), -1)
        density = self.errors_.log_density(error.reshape(shape), std.reshape(shape))
        return density.reshape(mean.shape)


class FullModel(Predictor):
    """A predictor that can be explained and stored: a cover, or a machine alone."""

    def explain(self, X, n_neighbors=5):
        """Say why: which subdomains answered, with which weights; which rows are near.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features) or (n_features,)
        n_neighbors : int, default=5
            Nearest training rows to list. Every training row is looked at.

        Returns
        -------
        Explanation, or a tuple of them if X has two axes
            With plain attributes; see `overcover.explain.Explanation`. Print it.
        """
        from ..explain import explain  # which is for whole models, so it comes later

        return explain(self, X, n_neighbors)

    def save(self, path, dtype=None, notes=None):
        """Write the fitted model to a directory that `overcover.load` opens.

        Parameters
        ----------
        path : str or path-like
            Made if there is none, replaced if it is a store, refused otherwise.
        dtype : {None, "float64", "float32"}, default=None
            None is exact; "float32" halves the size. See `overcover.store.save`.
        notes : dict or None, default=None
            Plain values to keep beside the model; `overcover.store.inspect` gives them
            back.
        """
        from ..store import save  # which makes models, so it imports this module

        check_is_fitted(self)
        save(self, path, dtype, notes)
