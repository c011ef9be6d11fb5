"""The protocol of a machine: its fit on one subdomain, and its predictions.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

A machine is a scikit-learn regressor; fitted alone, it is the full model. The following
methods divide its work, so that a cover, a store or a cluster of computers can run it:

- ``tune(X, Y, ...)`` finds what all subdomains share, the hyperparameters;
- ``length_scales(X)`` is the metric that they define;
- ``fit_state(X, Y, ...)`` does all work on one subdomain that needs no query and
  returns it as a named tuple of arrays;
- ``calibrate(states, groups)`` sets what is learned from all subdomains together;
- ``answer(state, X_query)`` answers a batch of queries from such a state, and
  ``posterior_variance(state, X_query)`` gives what routing compares;
- ``correlations(state, X_query)`` and ``slopes(state, X_query)`` give the covariances
  and gradients of a Gaussian process (`Machine.has_posterior`);
- ``recall(state)`` gives the training rows back.

Only `fit_state` and `answer` have no default. The regressor around a machine does not
use the fields of a state. Other parts of the package read the machine's `description`.
"""

import os
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state

from .._notes import keep_notes
from .._parallel import threads_for
from .._streams import typical_moments_of
from .._validation import (
    all_or_nothing,
    check_groups,
    check_training_data,
    warn_of_codes,
    warn_of_few_rows,
)
from ..cover import KEPT_BYTES
from ..tuning.cost import TuningCost
from .predictor import FullModel, Prediction

# Rows in kernel units: the squares of their differences are finite.
FARTHEST = 1e150


class Answer(NamedTuple):
    """The answer of one subdomain to a batch of queries."""

    mean: np.ndarray
    """Shape (n_queries, n_outputs)."""

    variance: np.ndarray | None
    """Variance of a new observation, mean's shape; None if not wanted or unknown."""

    posterior: np.ndarray | None
    """What routing by variance compares, shape (n_queries,): posterior variance on one
    scale for all subdomains, whatever the units of the outputs. That is the kernel's
    own scale where all subdomains have the same kernel. None where `variance` is."""

    function: np.ndarray | None = None
    """Variance of the function alone, without the noise of an observation, mean's
    shape; None where `variance` is, or unless the machine has a posterior."""


class Recalled(NamedTuple):
    """Training rows out of a state."""

    X: np.ndarray
    """Inputs in their units, shape (size, n_features). A column that the machine
    ignores may come back as zeros."""

    outputs: Callable[[np.ndarray], np.ndarray]
    """``outputs(rows)`` are the outputs of some rows, shape (n_rows, n_outputs)."""

    weights: np.ndarray | None = None
    """As they were given to `fit_state`, shape (size,); None if all are one."""


class Description(NamedTuple):
    """What other parts of the package need to know of a class of machines."""

    name: str = ""
    """A short word, as in ``machine="gp"``."""

    help: str = ""
    """When to choose it, in a few words, for the command line."""

    state: type | None = None
    """Class of the states, a record (see `overcover._records`); None for a machine
    that cannot be stored."""

    parts: Mapping[str, type] = {}
    """Classes of the records that stand in fields of a state, by field."""

    tuned: Mapping[str, Any] = {}
    """Attributes that `tune` sets and answers depend on: each an `Array` of
    `overcover._records`, or `NUMBER`."""

    calibrated: Mapping[str, type] = {}
    """Attributes that `calibrate` sets, and the classes of these records."""

    hyperparameters: Mapping[str, str] = {}
    """Attributes that a summary shows, and words for them; without words for what a
    report shows elsewhere."""

    noises: Mapping[str, tuple[float, float]] = {}
    """Noises, the first that of the inputs' kernel, and the bounds of their "auto"."""

    removed: tuple[str, ...] = ()
    """Parameters that old stores may have, and that are no more."""


class Machine(FullModel, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """Base of all machines; see the module for what a subclass gives."""

    description: ClassVar[Description] = Description()

    # -- the protocol ---------------------------------------------------------------

    def tune(
        self, X, Y, sample_weight, subdomain_size, random_state, n_jobs, groups=None
    ) -> None:
        """Find the hyperparameters that all subdomains share; sets fitted attributes.

        One local machine will learn from `subdomain_size` rows. Rows of a group are
        held out together.
        """

    def tuning_cost(self, n_samples, n_features, n_outputs) -> TuningCost:
        """What `tune` takes; nothing where no hyperparameter is "auto"."""
        return TuningCost()

    def length_scales(self, X) -> np.ndarray:
        """The machine's metric: distances are meant between rows of ``X / scales``.

        Shape (n_features,), positive; infinite for an ignored column.
        """
        scales = typical_moments_of(X).deviation
        return np.where(scales > 0, scales, 1.0)

    def fit_state(
        self, X, Y, sample_weight=None, n_owned=None, keep=True, groups=None
    ) -> Any:
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
            Whether to keep factors, which are large and can be computed again.
        groups : ndarray of int of shape (size,) or None
            Rows of a group are left out together when variances are calibrated.

        Returns
        -------
        a named tuple of arrays
        """
        raise NotImplementedError

    def calibrate(self, states, groups=None) -> None:
        """Set what is learned from all subdomains together (variance factors).

        groups has, for every state, the groups in which its owned rows were left out,
        or None; it is None itself if all rows were left out alone.
        """

    def contradicted(self, state) -> np.ndarray:
        """Places of owned rows that all others contradict, if `is_robust_`."""
        return np.empty(0, dtype=np.intp)

    # Rows that follow each other and depend on each other; whether contradicted rows
    # are looked for.
    run_length_, is_robust_ = 1, False

    def groups_to_leave_out(self, groups, rows):
        """The user's groups, or runs of row numbers, for `fit_state`; maybe None."""
        if groups is None and self.run_length_ > 1:
            return rows // self.run_length_
        return groups

    def answer(self, state, X_query, variance=False) -> Answer:
        """Answer queries of shape (n_queries, n_features) from a subdomain's state.

        `variance` says whether variance and posterior variance are wanted.
        """
        raise NotImplementedError

    def posterior_variance(self, state, X_query) -> np.ndarray:
        """The `posterior` of an `Answer` to a batch of queries, shape (n_queries,)."""
        posterior = self.answer(state, X_query, variance=True).posterior
        assert posterior is not None, "a machine without a variance has none"
        return posterior

    def correlations(self, state, X_query, noise=True) -> list[np.ndarray]:
        """Posterior correlations between queries, (n_queries, n_queries) per output.

        Those of new observations or, without `noise`, of the function. Outputs that
        have the same correlations share an array.
        """
        raise NotImplementedError

    def slopes(self, state, X_query) -> np.ndarray:
        """Slopes of the mean, shape (n_queries, n_features, n_outputs)."""
        raise NotImplementedError

    def recall(self, state) -> Recalled | None:
        """Training rows that a state holds; None for a machine that keeps no rows."""
        return None

    # -- where a machine is unlike most ---------------------------------------------

    # Whether `answer` can give a variance; whether rows may have weights (if not, equal
    # rows are not merged either); whether `tune` finds length scales, so that the scale
    # of inputs is free. A subclass may make them properties.
    has_variance: Any = True
    takes_weights: Any = True
    learns_metric: Any = False

    @property
    def has_posterior(self) -> bool:
        """Whether there are correlations, slopes, and variances without noise."""
        return type(self).correlations is not Machine.correlations

    @property
    def posterior_first(self) -> bool:
        """Whether all candidates give posterior variances, and only the best answer:
        where a machine computes them apart, because that is so much cheaper."""
        return type(self).posterior_variance is not Machine.posterior_variance

    def keeps_factors(self, n_subdomains, size) -> bool:
        """Whether so many states hold their factors: the option, or whether they fit.

        Of a machine with factors, `keep_factors` is True, False or "auto".
        """
        keep = getattr(self, "keep_factors", True)
        if keep != "auto":
            return bool(keep)
        room = min(KEPT_BYTES, memory_of_computer() / 4)
        return n_subdomains * self._factor_bytes(size) <= room

    # Square arrays of doubles in a fit of the machine alone.
    _n_square_arrays = 0

    def _factor_bytes(self, size) -> int:
        """Bytes of the factors of one state."""
        raise NotImplementedError

    def check_options(self, n_features, n_outputs) -> dict[str, int]:
        """Refuse parameters that make no sense, by a ValueError or TypeError.

        Returns sizes that follow from the parameters, by the letters that stand for
        them in shapes of records.
        """
        return {}

    def weigh(self, X, sample_weight, X_target, random_state):
        """Weights of the training rows; X_target are inputs like those of queries."""
        if X_target is not None:
            raise ValueError(
                f"{type(self).__name__} does not weigh rows by X_target. Leave it out, "
                "or choose machine='iwtgp'."
            )
        return sample_weight

    def weigh_more(self, X, sample_weight):
        """Weights of rows that come after the fit, like those of `weigh`."""
        return sample_weight

    # Whether `weigh` was given targets.
    has_targets: Any = False

    def answer_once(self, X, Y, sample_weight, X_query, variance=False) -> Answer:
        """Fit and answer, where no one needs the state afterwards.

        Parameters as in `fit_state` and `answer`; variances need no calibration.
        """
        return self.answer(self.fit_state(X, Y, sample_weight), X_query, variance)

    # -- the machine alone: the full model ------------------------------------------

    def fit(self, X, y, sample_weight=None, groups=None):
        """Fit the full model: one subdomain that holds every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            Weights compare rows: the noise variance of a row is divided by its weight,
            and a common factor changes nothing. Rows of weight zero are left out;
            w equal rows (inputs and outputs) are one of weight w.
        groups : array-like of shape (n_samples,), default=None
            Rows of a group belong together, such as those of one patient: they are held
            out together in tuning and in calibration, so that intervals are made for
            new groups. Without groups, runs of rows in order are where they depend on
            each other.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, groups=groups)

    @all_or_nothing
    @keep_notes
    def _fit(self, X, y, sample_weight, X_target=None, groups=None):
        groups = check_groups(groups, X)
        X, Y, sample_weight, rows, *_ = check_training_data(
            self, X, y, sample_weight, merge=self.takes_weights
        )
        rows = np.arange(len(X)) if rows is None else rows
        groups = None if groups is None else groups[rows]
        warn_of_few_rows(len(X))
        warn_of_codes(X)
        name = type(self).__name__
        check_memory(
            f"The kernel matrices of a full {name} on n_samples={len(X)} rows",
            8 * self._n_square_arrays * len(X) ** 2,
            f"Cover the rows instead: OverlappingCoverRegressor({name}()).fit(X, y) "
            "needs a few megabytes per subdomain.",
        )
        with threads_for(len(X)):
            rng = check_random_state(getattr(self, "random_state", None))
            sample_weight = self.weigh(X, sample_weight, X_target, rng)
            self.tune(X, Y, sample_weight, len(X), rng, None, groups)
            keep = self.keeps_factors(1, len(X))
            left = self.groups_to_leave_out(groups, rows)
            self.state_ = self.fit_state(X, Y, sample_weight, keep=keep, groups=left)
            self.calibrate([self.state_], [left])
        return self

    def __sklearn_is_fitted__(self):
        return hasattr(self, "state_")

    @property
    def _answering_machine(self):
        return self

    def _predict_rows(self, X, return_std, noise=True):
        X = X.astype(np.float64, copy=False)
        with threads_for(len(X)):
            answer = self.answer(self.state_, X, variance=return_std)
        variance = answer.variance if noise else answer.function
        return Prediction(answer.mean, None if variance is None else np.sqrt(variance))

    def _covariance_rows(self, X, noise):
        X = X.astype(np.float64, copy=False)
        check_covariance_fits(len(X), self.n_outputs_)
        mean, std = self._predict_rows(X, True, noise)
        assert std is not None
        found = self.correlations(self.state_, X, noise)
        pairs = zip(found, std.T)
        return mean, np.array([r * np.outer(column, column) for r, column in pairs])

    def _gradient_rows(self, X):
        return self.slopes(self.state_, X.astype(np.float64, copy=False))


def memory_of_computer() -> int:
    """Bytes of memory this computer has."""
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")


def check_memory(what, n_bytes, advice) -> None:
    """Refuse what cannot fit in memory, with advice (MemoryError)."""
    there = memory_of_computer()
    if n_bytes > there:
        raise MemoryError(
            f"{what} need about {n_bytes / 2**30:.0f} GiB, this computer has "
            f"{there / 2**30:.0f}. {advice}"
        )


def check_covariance_fits(n_queries, n_outputs) -> None:
    """Refuse covariances that cannot fit in memory."""
    check_memory(
        f"Covariances of n_queries={n_queries} rows and {n_outputs} output(s)",
        8 * n_queries**2 * (n_outputs + 3),
        "Ask for fewer rows at a time; return_std needs no such matrix.",
    )


def check_distances(farthest, noise) -> None:
    """Refuse rows of a stored state that have no kernel matrix (ValueError).

    `farthest` is the largest coordinate in kernel units, `noise` that of every row.
    """
    if not farthest < FARTHEST or not np.isfinite(noise).all():
        raise ValueError("Its rows are too far apart for its scales.")
