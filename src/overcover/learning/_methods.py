"""The methods of a regressor that learns on."""

from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from .._validation import all_or_nothing
from ..fitting import InMemory
from ._changes import batch_of, compare, next_number, places_of
from ._ground import Ground

# Attributes of a model that has learned on, or of groups.
LEARNED = ("groups_", "borders_", "promise_")


class LearnsOn:
    """`partial_fit`, `forget` and `retune` for a fitted cover."""

    fit: Any
    _fit: Any
    _y_ndim: int
    machine_: Any
    target_: Any
    weight_unit_: float
    __sklearn_is_fitted__: Any

    def _forget_learning(self):
        """Remove what was learned after an earlier fit."""
        for name in LEARNED:
            vars(self).pop(name, None)

    @all_or_nothing
    def partial_fit(self, X, y, sample_weight=None, groups=None):
        """Learn from more rows; only the subdomains that get some are fitted again.

        An unfitted model is fitted. Hyperparameters and metric stay: `advise` says when
        `retune` is due. A failure leaves the model as it was. Memory: all inputs once
        more, and the states that change.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            They get the next row numbers; their order, and that of batches, makes no
            difference but where subdomains are split. Of rows in a sequence (the
            machine's `run_length_` is more than 1), give them in order.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            In the units of the first fit. Equal rows are merged if they come in one
            batch; a copy of a row that is there already is a row of its own.
        groups : array-like of shape (n_samples,), default=None
            Needed if the model was fitted with groups. Groups of a batch are new ones:
            give the rows of a group together.

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
        started, number = perf_counter(), next_number(self)
        batch = batch_of(self, X, y, sample_weight, groups)
        promise = compare(self, batch)
        ground = Ground(self, batch)
        ground.add()
        ground.settle(started)
        self.n_samples_seen_ = number + batch.n_rows
        if promise is not None:
            self.promise_ = promise
        return self

    @all_or_nothing
    def forget(self, rows):
        """Unlearn rows; the numbers of all others stay.

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
        started, number = perf_counter(), next_number(self)
        places = places_of(self, rows)
        if len(places):
            ground = Ground(self)
            ground.drop(places)
            ground.settle(started)
            self.n_samples_seen_ = number
        return self

    @all_or_nothing
    def retune(self):
        """Fit anew on all rows that the model has: new hyperparameters, a new cover.

        Row numbers stay, and so does the encoder of tables. A model that was fitted for
        targets (``X_target``) cannot: fit it again.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        if self.machine_.has_targets:
            raise ValueError(
                "This model was fitted for X_target, which it does not keep, so it "
                "cannot be tuned again. Call fit with all rows and X_target."
            )
        ground, before, runner = Ground(self), vars(self).copy(), InMemory()
        runner.is_merged, runner.rows = True, ground.numbers
        runner.n_given = next_number(self)
        each = np.arange(len(ground.X))
        Y = self.target_.inverse(ground.outputs(each))
        Y = Y[:, 0] if self._y_ndim == 1 else Y
        weights = ground.weights_of(each)
        X = ground.X
        if hasattr(self, "input_scales_"):
            X = self.input_scales_.inverse(X)
        self._fit(X, Y, weights, None, runner, ground.groups)
        for name in ("encoder_", "n_features_in_", "feature_names_in_"):
            if name in before:
                setattr(self, name, before[name])
        self.weight_unit_ *= before.get("weight_unit_", 1.0)
        return self
