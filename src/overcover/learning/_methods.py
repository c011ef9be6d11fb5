"""The methods of a regressor that learns on."""

from threading import RLock
from time import perf_counter
from typing import Any

from sklearn.utils.validation import check_is_fitted

from .. import consult
from .._parallel import one_thread_per_worker
from .._validation import all_or_nothing
from ..fitting import InMemory
from ._changes import batch_of, compare, ground_of, places_of
from ._ground import Ground, took

# Attributes of a model that has learned on, or of groups.
LEARNED = ("groups_", "borders_", "promise_", "_ground")
# Those that follow from its rows: made when one of them is asked for.
FOLLOWING = (
    *("states_", "machine_", "router_", "cover_", "borders_", "groups_"),
    *("n_subdomains_", "subdomain_size_", "n_lenders_"),
)
_settling = RLock()


class LearnsOn:
    """`partial_fit`, `forget` and `retune` for a fitted cover.

    `_ground` has the rows that the attributes in `FOLLOWING` are to follow; it is there
    while these are not.
    """

    fit: Any
    _fit: Any
    _y_ndim: int
    n_consulted: int
    target_: Any
    weight_unit_: float
    __sklearn_is_fitted__: Any

    def __getattr__(self, name):
        if name in FOLLOWING:
            with _settling:
                if ground_of(self) is not None:
                    self._settle()
        # Its own error, if it is not there, or if a property has failed.
        return object.__getattribute__(self, name)

    @all_or_nothing
    @one_thread_per_worker()
    def _settle(self):
        # A copy: if this fails, the ground is as it was.
        ground = vars(self).pop("_ground").continued()
        ground.reshape(self)
        ground.settle(self)

    def _changing_ground(self):
        """The ground of this model, free to change; and the number of the next row."""
        ground = ground_of(self)
        ground = Ground(self) if ground is None else ground.continued()
        # A runner that merged rows before the fit may not know how many there were.
        seen = int(getattr(self, "n_samples_seen_", 0))
        return ground, max(seen, int(ground.numbers[-1]) + 1)

    def _follow(self, ground, number, started):
        """Let all else follow from a ground that has changed, once it is needed."""
        consult.check_consulted(self.n_consulted, len(ground.members))
        for name in FOLLOWING:
            vars(self).pop(name, None)
        self._ground, self.n_samples_seen_ = ground, number
        took(self, started, "learning")

    def _forget_learning(self):
        """Remove what was learned after an earlier fit."""
        for name in LEARNED:
            vars(self).pop(name, None)

    @all_or_nothing
    @one_thread_per_worker()
    def partial_fit(self, X, y, sample_weight=None, groups=None):
        """Add rows; only the subdomains that get some are fitted again.

        The first call that needs them, such as `predict`, fits them, once for all
        batches since the previous such call. An unfitted model is fitted at once.
        Hyperparameters and metric do not change: `advise` reports when `retune` is due.
        A call that fails leaves the model unchanged. Memory: all rows once more until
        the next prediction.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            They get the next row numbers. Their order, and that of batches, matters
            only if subdomains are split, or if rows are a sequence (the machine's
            `run_length_` is more than 1): then give them in order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            In the units of the first fit. Equal rows of one batch are merged; a new
            row that equals an old one is not merged with it.
        groups : array-like of shape (n_samples,), default=None
            Needed if the model was fitted with groups. The groups of a batch are
            always new: give all rows of a group together.

        Returns
        -------
        self

        Examples
        --------
        >>> import numpy as np
        >>> from overcover import GP, OverlappingCoverRegressor
        >>> X = np.random.default_rng(0).uniform(-3, 3, (600, 2))
        >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
        >>> machine = GP(length_scale=2.0, noise=1e-4)
        >>> model = OverlappingCoverRegressor(machine, subdomain_size=100)
        >>> model = model.fit(X[:400], y[:400]).partial_fit(X[400:], y[400:])
        >>> len(model.cover_.rows()), model.n_samples_seen_
        (600, 600)
        """
        if not self.__sklearn_is_fitted__():
            return self.fit(X, y, sample_weight, groups=groups)
        started, (ground, number) = perf_counter(), self._changing_ground()
        batch = batch_of(ground, X, y, sample_weight, groups, number)
        promise = compare(ground, batch, getattr(self, "promise_", None))
        ground.add(batch)
        self._follow(ground, number + batch.n_rows, started)
        if batch.target is not self.target_:
            self.target_ = batch.target
        if promise is not None:
            self.promise_ = promise
        return self

    @all_or_nothing
    @one_thread_per_worker()
    def forget(self, rows):
        """Remove rows; all others keep their numbers.

        Parameters
        ----------
        rows : int or array-like of int
            Row numbers as in `cover_`: 0 is the first row of `fit`, and those of
            `partial_fit` follow. Not all of them.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        started, (ground, number) = perf_counter(), self._changing_ground()
        places = places_of(ground, rows)
        if len(places):
            ground.drop(places)
            self._follow(ground, number, started)
        return self

    @all_or_nothing
    @one_thread_per_worker()
    def retune(self):
        """Fit again on all rows of the model, with new hyperparameters and cover.

        Row numbers and the encoder of tables do not change. This is not possible for a
        model that was fitted with ``X_target``: call `fit` instead.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        ground, number = self._changing_ground()
        if ground.model.machine_.has_targets:
            raise ValueError(
                "This model was fitted for X_target, which it does not keep, so it "
                "cannot be tuned again. Call fit with all rows and X_target."
            )
        rows, before, runner = ground.rows(), vars(self).copy(), InMemory()
        runner.is_merged, runner.rows = True, ground.numbers[rows]
        runner.n_given = number
        Y = self.target_.inverse(ground.outputs(rows)[rows])
        Y = Y[:, 0] if self._y_ndim == 1 else Y
        weights, X = ground.weights_of(rows), ground.X[rows]
        if hasattr(self, "input_scales_"):
            X = self.input_scales_.inverse(X)
        groups = None if ground.groups is None else ground.groups[rows]
        choice = before.get("budget_choice_")
        self._fit(X, Y, weights, None, runner, groups, choice=choice)
        for name in ("encoder_", "n_features_in_", "feature_names_in_"):
            if name in before:
                setattr(self, name, before[name])
        self.weight_unit_ *= before.get("weight_unit_", 1.0)
        return self
