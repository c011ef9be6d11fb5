r"""The Twin Gaussian Process machine: outputs are similar where inputs are.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

With :math:`k_X, k_Y` Gaussian kernels on inputs and outputs, :math:`u = (K_X +
\lambda_X W^{-1})^{-1} k_X(x)` and :math:`\eta(x) = 1 + \lambda_X - k_X(x)^\top u`, the
answer to a query x is the output that makes the two kernels agree best,

.. math:: \hat y = \arg\min_y \; 1 - 2 k_Y(y)^\top u - \eta \log\bigl(1 + \lambda_Y -
    k_Y(y)^\top (K_Y + \lambda_Y W^{-1})^{-1} k_Y(y)\bigr) ,

the Kullback-Leibler divergence of the joint kernel matrices. All outputs are predicted
together: where an input is ambiguous the answer is one of the possible outputs, not
their average. All queries of a subdomain are minimised at once (`overcover._optimize`),
from the answer of a GP.

*Standard deviation.* The paper has none. Rows of the subdomain are left out one by one,
in closed form, or with their group, and predicted; the average of their squared errors
over their :math:`\eta`, near the query, times the query's :math:`\eta` is the variance
of each output, calibrated like that of a GP (`overcover.machines.calibration`).

*Far away* the objective only repels y from the data. Where the rows explain less than
half of a query's similarity to itself, the answer moves towards that of a GP, and is
just that where they explain nothing.
"""

from copy import copy
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np

from .. import kernels
from .._linalg import packed_size
from .._optimize import Minima
from .._records import NUMBER, positive
from ..tuning import is_auto
from ..tuning import twin as twin_tuning
from ..tuning.cost import TuningCost, tuning_cost
from ..tuning.twin import Scales
from . import calibration, twin_state
from .base import Answer, Description, Recalled
from .calibration import CalibratedMachine, Calibration
from .options import check_twin_options
from .twin_search import NOBODY, PRECISION, TRIAL_PRECISION, TwinSearch
from .twin_state import TwinCore, TwinRows, TwinState, finite

# Similarities per block of queries: 16 MB; a search holds about six such arrays.
BLOCK_VALUES = 2**21
# Noise of a row from which on its posterior variance is compared in float32.
LEAST_ROUGH = 3e-4
# Rows that are left out for the standard deviation, per subdomain; and groups, each of
# which costs a factorisation.
MOST_LEFT_OUT, MOST_GROUPS = 200, 8
# Pivots while hyperparameters are tried: an error hardly depends on more.
TRIAL_RANK = 300
# What is tuned, in the order of `Scales`.
TUNED = "input_length_scale_", "output_length_scale_", "input_noise_", "output_noise_"


@dataclass(eq=False, repr=False)
class TwinGP(CalibratedMachine):
    """Twin Gaussian Process; alone the full model, in a cover a local machine.

    Choose it for many outputs that depend on each other, such as a pose, above all if
    one input may have several outputs. It is slower than a `GP`, and not always more
    accurate: compare the two. Memory as a full model is O(n_samples^2).

    Parameters
    ----------
    input_length_scale : "auto", float or array-like of shape (n_features,)
        The rho_X in ``exp(-d^2 / (2 rho^2))``, in units of the inputs.
    output_length_scale : "auto", float or array-like of shape (n_outputs,)
        The rho_Y, in units of the outputs.
    input_noise, output_noise : "auto" or float, default="auto"
        The paper's lambda_X and lambda_Y, relative to a similarity of one.
    self_noise : bool, default=True
        Whether the similarity of a query, or of an output, to itself includes the
        noise, as the derivation requires. False is the formula that the paper prints.
    n_starts : {1, 2}, default=1
        With 1, the search starts from the prediction of a GP. With 2, it also starts
        from the output of the most similar row, and keeps the lower minimum.
    rank : "auto", "full" or int, default="auto"
        Number of pivots, the rows with which outputs are compared. "auto" takes as few
        as change predictions by less than about 0.1 % of an output's deviation; "full"
        takes all rows, which is exact; a number is the most.
    metric : {"rmse", "joint", "angle"} or callable, default="rmse"
        The error that "auto" minimises on held-out rows: "rmse", in deviations of each
        output; "joint", the mean distance of three-dimensional joints; "angle", the
        mean absolute angle modulo 360; or ``metric(Y_true, Y_predicted) -> float``.
    keep_factors : "auto" or bool, default="auto"
        Whether to keep arrays that can be computed again from the rows. "auto" keeps
        them if those of all subdomains fit in 4 GiB and a quarter of memory.
    random_state : int, RandomState or None, default=None
        Decides which rows "auto" looks at; only used when fitted alone.

    Attributes
    ----------
    input_length_scale_ : ndarray of shape (n_features,)
    output_length_scale_ : ndarray of shape (n_outputs,)
        Infinite for an output that never varied.
    input_noise_, output_noise_ : float
    tuning_scores_ : list of dict
        Hyperparameters that were tried and their held-out errors, best first.
    variance_inflation_ : float
        Ratio of the squared errors of rows held out in runs to those of rows left out
        one by one; 1 if nothing was tuned.
    calibration_ : Calibration
        Variance factor and interval quantiles from leave-one-out errors.
    state_ : TwinState
        Of the full model; only when fitted alone.

    Examples
    --------
    An S-shaped curve: three outputs are possible in the middle. A GP gives their mean.

    >>> import numpy as np
    >>> from overcover import TwinGP
    >>> y = np.linspace(0, 1, 200)
    >>> x = y + 0.3 * np.sin(2 * np.pi * y)
    >>> model = TwinGP(0.1, 0.1, 1e-3, 1e-3, n_starts=2).fit(x[:, None], y)
    >>> answer = model.predict([[0.6]])[0]
    >>> bool(np.abs(answer + 0.3 * np.sin(2 * np.pi * answer) - 0.6) < 0.05)
    True
    """

    description = Description(
        name="tgp",
        help="a Twin GP, for outputs that depend on each other",
        state=TwinState,
        parts={"rows": TwinRows, "core": TwinCore},
        tuned={
            "input_length_scale_": positive("d", np.inf),
            "output_length_scale_": positive("q", np.inf),
            "input_noise_": NUMBER,
            "output_noise_": NUMBER,
            "variance_inflation_": NUMBER,
        },
        calibrated={"calibration_": Calibration},
        hyperparameters={
            "input_length_scale_": "",
            "output_length_scale_": "length scales of outputs",
            "input_noise_": "noise of inputs",
            "output_noise_": "noise of outputs",
            "variance_inflation_": "inflation of variances",
        },
        noises=dict.fromkeys(("input_noise", "output_noise"), twin_tuning.NOISE_BOUNDS),
    )

    input_length_scale: Any = "auto"
    output_length_scale: Any = "auto"
    input_noise: Any = "auto"
    output_noise: Any = "auto"
    _: KW_ONLY
    self_noise: bool = True
    n_starts: int = 1
    rank: Any = "auto"
    metric: Any = "rmse"
    keep_factors: Any = "auto"
    random_state: Any = None

    _precision = PRECISION

    def tune(
        self, X, Y, sample_weight, subdomain_size, random_state, n_jobs, groups=None
    ):
        """Find length scales and noises; see `overcover.tuning.twin`."""
        self.check_options(X.shape[1], Y.shape[1])
        result = twin_tuning.tune(
            self, X, Y, sample_weight, subdomain_size, random_state, n_jobs, groups
        )
        self._set_scales(result.scales)
        self.tuning_scores_ = result.scores
        self.variance_inflation_ = result.inflation

    def tuning_cost(self, n_samples, n_features, n_outputs):
        """Trials of whole machines."""
        if any(is_auto(getattr(self, name.removesuffix("_"))) for name in TUNED):
            return tuning_cost(n_samples, n_features, is_twin=True)
        return TuningCost()

    def _set_scales(self, scales):
        for name, value in zip(TUNED, scales):
            setattr(self, name, value)

    @property
    def _scales(self):
        tuned = [getattr(self, name) for name in TUNED]
        return Scales._make([*tuned, self.self_noise])

    def make_search(self) -> TwinSearch:
        """The search under the hyperparameters of now."""
        return TwinSearch(self)

    def length_scales(self, X):
        """Those of the input kernel."""
        return self.input_length_scale_

    def fit_state(self, X, Y, sample_weight=None, n_owned=None, keep=True, groups=None):
        """Factorise both sides, leave rows out; see `TwinState`."""
        search, n_owned = self.make_search(), len(X) if n_owned is None else n_owned
        if groups is not None and (groups == groups[0]).all():
            groups = None  # nothing would be left to learn from
        rows = search.rows(X, Y, sample_weight)
        left = rows_to_leave_out(n_owned, groups)
        core, points, eta = search.leave_out(rows, left, groups)
        residuals = (rows.Z[left] - points) * finite(self.output_length_scale_)
        residuals_sq = residuals**2 / eta[:, None]
        # A row that is left out has no part in its own scale, nor has its group.
        similarity = kernels.cross("rbf", rows.A[left], rows.A[left])
        alone = left if groups is None else groups[left]
        similarity[alone[:, None] == alone] = 0.0
        ratios, squarings = calibration.leave_one_out_ratios(similarity, residuals_sq)
        return TwinState(
            rows=rows,
            core=core if keep else None,
            left=left,
            residuals_sq=residuals_sq,
            residuals_sq_mean=residuals_sq.mean(axis=0),
            ratios=ratios,
            squarings=squarings,
            reach=np.array([calibration.reach_of(eta)]),
            sides=calibration.sides_of(residuals),
        )

    def recall(self, state):
        """The rows of the state in their own units, zero where a column is ignored."""
        rows = state.rows
        X = (rows.A + rows.center) * finite(rows.input_scales)
        return Recalled(X, lambda chosen: rows.back(rows.Z[chosen]), rows.weights)

    _n_square_arrays = 6

    def _factor_bytes(self, size):
        return 8 * (packed_size(size) + 2 * size**2)

    def posterior_variance(self, state, X_query):
        """Posterior input variance eta, in blocks of queries of bounded memory.

        It is one product, where an answer is a search; in float32, if noise hides the
        rounding, because routing only compares.
        """
        noise = self.input_noise_ / state.rows.weights.max()
        dtype = np.float32 if noise >= LEAST_ROUGH else np.float64
        factor = self._core(state).factor.astype(dtype, copy=False)
        blocks = self._similarities(state, X_query, dtype)
        unexplained = [twin_state.unexplained_of(factor, K_xq) for K_xq in blocks]
        return np.concatenate(unexplained) + (self._scales.own_input - 1.0)

    def answer(self, state, X_query, variance=False):
        """Mean, variance and posterior variance, in blocks of bounded memory."""
        search, core, Z = self.make_search(), self._core(state), state.rows.Z
        parts: list[tuple[np.ndarray, ...]] = []
        for K_xq in self._similarities(state, X_query):
            looks = search.look(core, K_xq, Z)
            parts.append((state.rows.back(search.points(core, looks, Z)),))
            if variance:
                eta = search.eta(looks)
                parts[-1] += self._variances(state, K_xq[state.left], eta), eta
        joined = [np.concatenate(part) for part in zip(*parts)]
        return Answer(*joined) if variance else Answer(joined[0], None, None)

    def _variances(self, state, similarity, eta):
        """Calibrated, from similarities to the rows that were left out."""
        known, prior = self.calibration_, np.full(len(eta), self._scales.own_input)
        residuals = state.residuals_sq, state.residuals_sq_mean, state.squarings
        scale = calibration.scales_at(similarity, *residuals, known, slice(None))
        limit = known.spread_around(state.rows.Y_mean)[None]
        ends = state.reach[0], prior, limit
        return calibration.variances_at(eta, scale * known.factor, *ends)

    def search(self, state, X_query) -> Minima:
        """The minimum of every query, in kernel units, before any fall back to a GP."""
        search, core = self.make_search(), self._core(state)
        blocks = self._similarities(state, np.asarray(X_query, dtype=float))
        Z, deviations = state.rows.Z, state.rows.Z.std(axis=0)
        minima = [
            search.minimize(core, search.look(core, K_xq, Z), deviations)
            for K_xq in blocks
        ]
        return Minima(*(np.concatenate(part) for part in zip(*minima)))

    def _core(self, state):
        if state.core is not None:
            return state.core
        return self.make_search().make_core(state.rows, NOBODY)[0]

    def _similarities(self, state, X_query, dtype=np.float64):
        """Similarities of the rows to blocks of queries, each (size, n_block)."""
        step = max(1, BLOCK_VALUES // len(state.rows.A))
        for i in range(0, len(X_query), step):
            yield state.rows.similarities(X_query[i : i + step], dtype)

    def answer_once(self, X, Y, sample_weight, X_query, variance=False):
        """Two Cholesky factorisations, and solves in the search: no inverse."""
        search = self.make_search()
        rows = search.rows(X, Y, sample_weight)
        return search.answer_fresh(rows, X_query, None, variance)

    def with_scales(self, scales):
        """This machine with other hyperparameters, and a coarser search."""
        machine = copy(self)
        machine._set_scales(scales)
        machine.variance_inflation_ = 1.0
        machine._precision = TRIAL_PRECISION
        machine.rank = TRIAL_RANK if self.rank == "auto" else self.rank
        return machine

    def check_options(self, n_features, n_outputs):
        check_twin_options(self, n_features, n_outputs)
        return {}


def rows_to_leave_out(n_owned, groups=None):
    """At most `MOST_LEFT_OUT` of the owned rows, of `MOST_GROUPS` groups at most."""
    rows = np.arange(n_owned)
    if groups is not None:
        present = np.unique(groups[:n_owned])
        some = present[:: 1 + len(present) // MOST_GROUPS]
        rows = rows[np.isin(groups[:n_owned], some)]
    return rows[:: 1 + (len(rows) - 1) // MOST_LEFT_OUT]
