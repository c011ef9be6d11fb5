"""Any scikit-learn regressor as a machine."""

from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_regressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.utils import check_random_state, get_tags
from sklearn.utils.validation import has_fit_parameter

from .._parameters import NestedPart
from .._streams import moments_of
from .base import Answer, Machine, Recalled


class AnyRegressorState(NamedTuple):
    """One fitted estimator, or one per output where it takes a single one."""

    estimators: list[Any]

    X: np.ndarray
    """The rows, shape (size, n_features)."""

    Y: np.ndarray
    """Their outputs, shape (size, n_outputs)."""

    weights: np.ndarray | None


class AnyRegressor(NestedPart, Machine):
    """Wrap a regressor so that it can be fitted on every subdomain.

    Choose it to make another method local: kernel ridge, support vectors, a pipeline.
    It has a variance only if the estimator's `predict` takes ``return_std`` (like
    scikit-learn's `GaussianProcessRegressor`).

    Parameters
    ----------
    estimator : regressor or None, default=None
        Cloned for every subdomain; None is ``KernelRidge(kernel="rbf")``. One that
        takes a single output is cloned for every output.
    random_state : int, RandomState or None, default=None
        Seeds the clones, where they have a `random_state` of None.

    Attributes
    ----------
    output_scales_ : ndarray of shape (n_outputs,)
        Deviation of each output among the training rows, the unit of its uncertainty
        in routing by variance. It is infinite for an output that never varied, which
        therefore has no influence; ones if no output varied.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.svm import SVR
    >>> from overcover import AnyRegressor, OverlappingCoverRegressor
    >>> X = np.linspace(0, 6, 300)[:, None]
    >>> model = OverlappingCoverRegressor(
    ...     AnyRegressor(SVR(C=10.0)), subdomain_size=100, random_state=0
    ... ).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.1)
    True
    """

    _part = "estimator"

    def __init__(self, estimator=None, *, random_state=None):
        self.estimator = estimator
        self.random_state = random_state

    @property
    def has_variance(self):
        """Whether the estimator predicts with ``return_std``."""
        predict = getattr(self._template(), "predict", None)
        return predict is not None and "return_std" in signature(predict).parameters

    @property
    def takes_weights(self):
        """Whether the estimator's `fit` takes ``sample_weight``."""
        return has_fit_parameter(self._template(), "sample_weight")

    def _part_from(self, value):
        return KernelRidge(kernel="rbf") if value is None else None

    def _template(self):
        return self._part_from(self.estimator) or self.estimator

    def tune(
        self, X, Y, sample_weight, subdomain_size, random_state, n_jobs, groups=None
    ):
        """Fix the seed that all clones share, and the units of the outputs."""
        if not is_regressor(self._template()):
            raise TypeError(
                f"estimator={self.estimator!r} is not a scikit-learn regressor. Give "
                "one, such as KernelRidge(), or leave it None."
            )
        rng = check_random_state(
            random_state if self.random_state is None else self.random_state
        )
        self.seed_ = int(rng.randint(2**31 - 1))
        _, deviation, is_flat = moments_of(Y)
        scales = np.where(is_flat, np.inf, deviation)
        self.output_scales_ = np.ones_like(scales) if is_flat.all() else scales

    def fit_state(self, X, Y, sample_weight=None, n_owned=None, keep=True, groups=None):
        """Fit clones of the estimator."""
        template = self._template()
        arguments = {}
        if sample_weight is not None:
            if not self.takes_weights:
                raise ValueError(
                    f"{template!r} does not take sample_weight. Fit without it, or "
                    "choose an estimator that does, such as KernelRidge()."
                )
            arguments["sample_weight"] = sample_weight
        X, Y = X.copy(), Y.copy()  # an estimator may keep them; they may be the user's
        together = Y.shape[1] == 1 or get_tags(template).target_tags.multi_output
        targets = [Y if Y.shape[1] > 1 else Y[:, 0]] if together else list(Y.T)
        fitted = []
        for target in targets:
            estimator = clone(template)
            if estimator.get_params().get("random_state", self) is None:
                estimator.set_params(random_state=self.seed_)
            fitted.append(estimator.fit(X, target, **arguments))
        return AnyRegressorState(fitted, X, Y, sample_weight)

    def recall(self, state):
        """The rows as they were given."""
        return Recalled(state.X, lambda rows: state.Y[rows], state.weights)

    def answer(self, state, X_query, variance=False):
        """The estimators' own predictions."""
        n_queries = len(X_query)
        if not (variance and self.has_variance):
            means = [e.predict(X_query) for e in state.estimators]
            return Answer(_columns(means, n_queries), None, None)
        pairs = [e.predict(X_query, return_std=True) for e in state.estimators]
        mean = _columns([m for m, _ in pairs], n_queries)
        std = _columns([s for _, s in pairs], n_queries)
        posterior = np.mean((std / self.output_scales_) ** 2, axis=1)
        return Answer(mean, std**2, posterior)


def _columns(parts, n_queries):
    return np.column_stack([np.reshape(p, (n_queries, -1)) for p in parts])
