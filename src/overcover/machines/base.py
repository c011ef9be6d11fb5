"""The protocol of a machine: what one subdomain learns, and how it answers.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

A machine is a scikit-learn regressor (fitted alone it is the full model) that can also
be split in two, so that a cover, a store or a cluster of computers can run it:

- ``tune(X, Y)`` finds what all subdomains share, the hyperparameters;
- ``fit_state(X, Y)`` does all work on one subdomain that needs no query and returns it
  as a named tuple of arrays;
- ``answer(state, X_query)`` answers a batch of queries from such a state.

The regressor around it never looks inside a state.
"""

import os
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import norm
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._notes import keep_notes
from .._streams import typical_moments_of
from .._validation import (
    all_or_nothing,
    as_training_shape,
    check_coverage,
    check_observed,
    check_queries,
    check_training_data,
    warn_of_few_rows,
)
from ..cover import KEPT_BYTES
from ..tuning.cost import TuningCost


class Prediction(NamedTuple):
    """What is said of a batch of queries."""

    mean: np.ndarray
    """Shape (n_queries, n_outputs)."""

    std: np.ndarray | None
    """Standard deviation of a new observation, mean's shape; None if not asked for."""


class Answer(NamedTuple):
    """What one subdomain says of a batch of queries."""

    mean: np.ndarray
    """Shape (n_queries, n_outputs)."""

    variance: np.ndarray | None
    """Variance of a new observation, mean's shape; None if not asked for or unknown."""

    doubt: np.ndarray | None
    """What routing by variance compares, shape (n_queries,): posterior variance on one
    scale for all subdomains, whatever the units of the outputs. That is the kernel's
    own scale where all subdomains have the same kernel. None where `variance` is."""


class Predictor:
    """What users call on a fitted model; a subclass gives `_predict_rows`."""

    def _predict_rows(self, X, return_std) -> Prediction:
        """Predict validated rows, float32 or float64."""
        raise NotImplementedError

    def _asked(self) -> "Machine":
        """The machine that answers."""
        raise NotImplementedError

    def _judge_of_errors(self) -> "Machine":
        """The machine that knows how errors are distributed."""
        return self._asked()

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
        if return_std and not self._asked().has_variance:
            raise ValueError(
                f"{self._asked()!r} has no predictive variance, so it can give neither "
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
        half = np.atleast_1d(self._judge_of_errors().half_width(coverage))
        half = as_training_shape(self, half) * std
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
        density = self._judge_of_errors().log_density_of(
            error.reshape(shape), std.reshape(shape)
        )
        return density.reshape(mean.shape)


class Machine(Predictor, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Base of all machines; a subclass gives the five methods below."""

    @property
    def has_variance(self) -> bool:
        """Whether `answer` can give a variance."""
        return True

    @property
    def takes_weights(self) -> bool:
        """Whether rows may have weights; if not, equal rows are not merged either."""
        return True

    @property
    def doubts_first(self) -> bool:
        """Whether routing by variance should ask all candidates for their `doubt`, and
        only one for an answer, because a doubt is so much cheaper."""
        return False

    def tune(self, X, Y, sample_weight, subdomain_size, random_state, n_jobs) -> None:
        """Find the hyperparameters that all subdomains share; sets fitted attributes.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        Y : ndarray of shape (n_samples, n_outputs)
        sample_weight : ndarray of shape (n_samples,) or None
        subdomain_size : int
            Rows that one local machine will see.
        random_state : RandomState
        n_jobs : int or None
        """

    def tuning_cost(self, n_samples, n_features, n_outputs) -> TuningCost:
        """What `tune` takes; nothing where no hyperparameter is "auto"."""
        return TuningCost()

    def weigh(self, X, sample_weight, X_target, random_state):
        """Weights of the training rows, given inputs like those that will be asked.

        Parameters
        ----------
        X : ndarray of shape (n_samples, n_features)
        sample_weight : ndarray of shape (n_samples,) or None
        X_target : array-like of shape (n_targets, n_features) or None
        random_state : RandomState

        Returns
        -------
        ndarray of shape (n_samples,) or None
        """
        if X_target is not None:
            raise ValueError(
                f"{type(self).__name__} does not weigh rows by X_target. Leave it out, "
                "or choose machine='iwtgp'."
            )
        return sample_weight

    def length_scales(self, X) -> np.ndarray:
        """The machine's metric: distances are meant between rows of ``X / scales``.

        Returns
        -------
        ndarray of shape (n_features,), positive; infinite for an ignored column
        """
        scales = typical_moments_of(X).deviation
        return np.where(scales > 0, scales, 1.0)

    def fit_state(self, X, Y, sample_weight=None, n_owned=None, keep=True) -> Any:
        """Everything about one subdomain that does not depend on the query.

        Parameters
        ----------
        X : ndarray of shape (size, n_features)
            The owned rows come first.
        Y : ndarray of shape (size, n_outputs)
        sample_weight : ndarray of shape (size,) or None
        n_owned : int or None
            How many rows are the subdomain's own; all if None.
        keep : bool
            Whether to keep what is large and can be made again (factors).

        Returns
        -------
        a named tuple of arrays
        """
        raise NotImplementedError

    def keeps_factors(self, n_subdomains, size) -> bool:
        """Whether states hold what is large, given how many there will be."""
        return True

    def answer(self, state, X_query, variance=False) -> Answer:
        """Answer a batch of queries from the state of one subdomain.

        Parameters
        ----------
        state : the return value of `fit_state`
        X_query : ndarray of shape (n_queries, n_features)
        variance : bool
            Whether variance and doubt are wanted.

        Returns
        -------
        Answer
        """
        raise NotImplementedError

    def doubt(self, state, X_query) -> np.ndarray:
        """The doubt of an `Answer` to a batch of queries, shape (n_queries,)."""
        doubt = self.answer(state, X_query, variance=True).doubt
        assert doubt is not None, "a machine without a variance has no doubt"
        return doubt

    def recall_inputs(self, state) -> np.ndarray | None:
        """Training inputs that a state holds, shape (size, n_features), in their units.

        None for a machine that keeps no rows. A column that the machine ignores may
        come back as zeros.
        """
        return None

    def recall_outputs(self, state, rows) -> np.ndarray | None:
        """Training outputs of some rows of a state, shape (n_rows, n_outputs).

        Parameters
        ----------
        state : the return value of `fit_state`
        rows : ndarray of int of shape (n_rows,)
            Positions among the state's rows.
        """
        return None

    def answer_once(self, X, Y, sample_weight, X_query, variance=False) -> Answer:
        """Fit and answer, where the state is not wanted afterwards.

        Parameters as in `fit_state` and `answer`; variances need no calibration.
        """
        return self.answer(self.fit_state(X, Y, sample_weight), X_query, variance)

    def calibrate(self, states) -> None:
        """Set what is learned from all subdomains together (variance factors)."""

    def half_width(self, coverage) -> np.ndarray | float:
        """Standard deviations either side of the mean that hold `coverage`."""
        return float(norm.ppf(0.5 + 0.5 * coverage))

    def log_density_of(self, error, std) -> np.ndarray:
        """Log density of errors, given their predicted deviations; Gaussian here.

        Parameters
        ----------
        error, std : ndarray of shape (n, n_outputs)

        Returns
        -------
        ndarray of shape (n, n_outputs)
        """
        std = np.maximum(std, np.finfo(float).tiny)
        with np.errstate(over="ignore"):  # sure and wrong: a density of zero
            return norm.logpdf(error, scale=std)

    # -- the machine alone: the full model ------------------------------------------

    def fit(self, X, y, sample_weight=None):
        """Fit the full model: one subdomain that holds every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights compare rows: the noise variance of a row is divided by its weight,
            and a common factor changes nothing. Rows of weight zero are left out;
            w equal rows (inputs and outputs) are one of weight w.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    @all_or_nothing
    @keep_notes
    def _fit(self, X, y, sample_weight, X_target=None):
        X, Y, sample_weight, _ = check_training_data(
            self, X, y, sample_weight, merge=self.takes_weights
        )
        warn_of_few_rows(len(X))
        self._check_alone(len(X))
        rng = check_random_state(getattr(self, "random_state", None))
        sample_weight = self.weigh(X, sample_weight, X_target, rng)
        self.tune(X, Y, sample_weight, len(X), rng, None)
        keep = self.keeps_factors(1, len(X))
        self.state_ = self.fit_state(X, Y, sample_weight, keep=keep)
        self.calibrate([self.state_])
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "state_")

    def _asked(self):
        return self

    def _predict_rows(self, X, return_std):
        X = X.astype(np.float64, copy=False)
        mean, variance, _ = self.answer(self.state_, X, variance=return_std)
        return Prediction(mean, None if variance is None else np.sqrt(variance))

    def _check_alone(self, n_samples) -> None:
        """Refuse what the machine alone cannot do; a hook for subclasses."""


def memory_of_computer() -> int:
    """Bytes of memory this computer has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def may_keep(n_bytes) -> bool:
    """Whether states may hold so much that could be made again."""
    return n_bytes <= min(KEPT_BYTES, memory_of_computer() / 4)


def check_fits(name, n_samples, n_bytes) -> None:
    """Refuse a full model that cannot fit in memory, with advice.

    Raises
    ------
    MemoryError
    """
    there = memory_of_computer()
    if n_bytes > there:
        raise MemoryError(
            f"A full {name} on n_samples={n_samples} rows needs about "
            f"{n_bytes / 2**30:.0f} GiB, this machine has {there / 2**30:.0f}. "
            f"Cover the rows instead: OverlappingCoverRegressor({name}()).fit(X, y) "
            "needs a few megabytes per subdomain."
        )
