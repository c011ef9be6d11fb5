r"""The importance-weighted Twin GP, for covariate shift.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

Where queries come from elsewhere than the training rows (covariate shift), a row counts
by the relative density ratio :math:`w(x)` of the two (`overcover.density_ratio`):
:math:`K \to W^{1/2} K W^{1/2}` and :math:`k \to W^{1/2} k` on both sides. Because

.. math:: W^{1/2} (W^{1/2} K W^{1/2} + \lambda I)^{-1} W^{1/2}
    = (K + \lambda W^{-1})^{-1},

that is a Twin GP whose noise is :math:`\lambda / w_i` for row i: the exact inverse is
one Cholesky factorisation, shared by all queries. With w = 1 it is `TwinGP`.

(The paper prints another formula for the inverse. It applies a lemma for matrices of
rank one to :math:`\lambda I`, and is wrong, not approximate.)
"""

import warnings
from copy import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import numpy as np

from .._notes import noted
from .._validation import check_count
from ..density_ratio import RelativeDensityRatio
from .twin_gp import TwinGP

# No row's noise is multiplied by more than the inverse of this.
LEAST_WEIGHT = 1e-6


@dataclass(eq=False, repr=False)
class ImportanceWeightedTwinGP(TwinGP):
    """Twin GP for queries from another distribution than the training rows.

    Pass inputs that resemble the queries to `fit`, as ``X_target``, or set
    ``transductive=True``. Without targets it is a `TwinGP`. Memory as a full model is
    O(n_samples^2).

    Parameters
    ----------
    alpha : float in [0, 1], default=0.5
        The alpha in ``p_target / ((1 - alpha) p_target + alpha p_train)``: 1 is the
        plain ratio, which has no bound; weights are at most ``1 / (1 - alpha)``.
    transductive : bool, default=False
        Whether to use the queries of each `predict` as targets, subdomain by subdomain,
        as in the paper. A prediction then depends on the other queries of the call, and
        every call factorises again.
    n_centers : int, default=100
        Number of target rows on which the model of the ratio has kernels.
    input_length_scale, output_length_scale, input_noise, output_noise
        As in `TwinGP`.
    self_noise, n_starts, rank, metric, keep_factors, random_state
        As in `TwinGP`.

    Attributes
    ----------
    importance_ : RelativeDensityRatio
        With ``weights_`` of the training rows and ``effective_sample_size_``; only if
        `fit` got targets.

    See Also
    --------
    TwinGP : has the same attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import ImportanceWeightedTwinGP
    >>> rng = np.random.default_rng(0)
    >>> X, X_target = rng.normal(0, 1, (200, 1)), rng.normal(1, 0.5, (80, 1))
    >>> model = ImportanceWeightedTwinGP(0.5, 1.0, 0.01, 0.01)
    >>> model.fit(X, np.sin(2 * X[:, 0]), X_target=X_target)
    ImportanceWeightedTwinGP(input_length_scale=0.5, input_noise=0.01,
                             output_length_scale=1.0, output_noise=0.01)
    >>> bool(abs(model.predict([[1.0]])[0] - np.sin(2.0)) < 0.1)
    True
    """

    description = TwinGP.description._replace(
        name="iwtgp",
        help="a Twin GP for covariate shift",
        removed=("inverse",),
    )

    _: KW_ONLY
    alpha: float = 0.5
    transductive: bool = False
    n_centers: int = 100

    def fit(  # type: ignore[override]  # the order of a cover's `fit`
        self, X, y, sample_weight=None, X_target=None, groups=None
    ):
        """Fit the full model, weighing rows by how much they are like the targets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        sample_weight : array-like of shape (n_samples,), default=None
            Multiplies the weights by density ratio.
        X_target : array-like of shape (n_targets, n_features), default=None
            Inputs like those of the queries; no outputs are needed.
        groups : array-like of shape (n_samples,), default=None
            As in `TwinGP.fit`.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight, X_target, groups)

    def weigh(self, X, sample_weight, X_target, random_state):
        if X_target is None:
            return sample_weight
        self._check_weighing()
        self.importance_ = self._ratio(random_state).fit(X, X_target)
        weights = np.maximum(self.importance_.weights_, LEAST_WEIGHT)
        return weights if sample_weight is None else weights * sample_weight

    def weigh_more(self, X, sample_weight):
        if not self.has_targets:
            return sample_weight
        return np.maximum(self.importance_.predict(X), LEAST_WEIGHT) * sample_weight

    @property
    def has_targets(self):
        return hasattr(self, "importance_")

    def _ratio(self, random_state):
        return RelativeDensityRatio(
            self.alpha, n_centers=self.n_centers, random_state=random_state
        )

    # -- queries as targets ----------------------------------------------------------

    def answer(self, state, X_query, variance=False):
        """As `TwinGP.answer`; if transductive, with weights from these queries."""
        if self.transductive and len(state.rows.A) > 1:
            state = self._weighed_by_queries(state, X_query)
        return super().answer(state, X_query, variance)

    def _weighed_by_queries(self, state, X_query):
        rows = state.rows
        B = X_query / rows.input_scales - rows.center
        with warnings.catch_warnings(), noted():
            # A handful of queries seldom resembles a subdomain, and that is no news.
            warnings.simplefilter("ignore", UserWarning)
            ratio = self._ratio(0).fit(rows.A, B)
        weights = rows.weights * np.maximum(ratio.weights_, LEAST_WEIGHT)
        rows = rows._replace(weights=weights)
        return state._replace(rows=rows, core=None)

    def answer_once(self, X, Y, sample_weight, X_query, variance=False):
        """As `TwinGP.answer_once`; if transductive, with weights from these queries."""
        if not self.transductive:
            return super().answer_once(X, Y, sample_weight, X_query, variance)
        machine = copy(self)
        state = machine.fit_state(X, Y, sample_weight)
        machine.calibrate([state])
        return machine.answer(state, X_query, variance)

    def check_options(self, n_features, n_outputs):
        self._check_weighing()
        return super().check_options(n_features, n_outputs)

    def _check_weighing(self):
        if not isinstance(self.alpha, Real) or not 0 <= float(self.alpha) <= 1:
            raise ValueError(
                f"alpha={self.alpha!r} must be between 0 and 1: 0.5 is robust, 1 the "
                "plain ratio of densities."
            )
        check_count("n_centers", self.n_centers, 1, "100 suits most data.")
