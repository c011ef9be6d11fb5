r"""The Twin Gaussian Process machine: outputs that are alike where inputs are.

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
from what a GP would say.

*Standard deviation.* The paper has none. Rows of the subdomain are left out one by one,
in closed form (`twin_state.left_out`), and predicted; the average of their squared
errors over their :math:`\eta`, near the query, times the query's :math:`\eta` is the
variance of each output, calibrated like that of a GP
(`overcover.machines.calibration`).

*Far away* nothing holds the outputs together: all similarities vanish and the objective
only repels y from the data. Where the rows explain less than half of a query's
similarity to itself, the answer moves towards what a GP says, and is just that where
they explain nothing.
"""

from copy import copy
from typing import Any, NamedTuple

import numpy as np

from .. import kernels
from .._linalg import packed_size, solve_cholesky, solve_lower
from .._optimize import Minima, minimize_batch
from .._weights import are_judged, evidence_of
from ..tuning import twin as twin_tuning
from ..tuning.cost import TuningCost, tuning_cost
from ..tuning.twin import Scales
from . import calibration, twin_state
from .base import Answer, check_fits, may_keep
from .calibration import CalibratedMachine
from .twin_objective import TwinObjective
from .twin_options import check_twin_options
from .twin_output import make_output_side, solved_output_side
from .twin_state import TwinRows, finite, make_rows

# Similarities per block of queries: 16 MB; a search holds about six such arrays.
BLOCK_VALUES = 2**21
# Rows that are left out for the standard deviation, per subdomain.
MOST_LEFT_OUT = 200
# Largest gradient that counts as none, and evaluations per query at most; coarser while
# hyperparameters are tried.
PRECISION, TRIAL_PRECISION = (1e-7, 200), (1e-3, 40)
# Pivots while hyperparameters are tried: an error hardly depends on more.
TRIAL_RANK = 300
# Below this share of explained similarity, the answer moves towards the GP's.
TRUSTED = 0.5
# No answer is farther outside the range of a subdomain's outputs, in ranges: a kernel
# much wider than the outputs hardly holds them.
MARGIN = 0.5


def made_anew(key, make):
    """Keep nothing; see `TwinGP.answer_fresh`."""
    return make()


class TwinState(NamedTuple):
    """One subdomain, ready to answer."""

    rows: TwinRows

    core: Any
    """`TwinCore`; None where it is to be made again."""

    left: np.ndarray
    """Rows left out for the standard deviation, shape (n_left,)."""

    residuals_sq: np.ndarray
    """Their squared errors over eta, shape (n_left, n_outputs)."""

    residuals_sq_mean: np.ndarray
    """Shape (n_outputs,)."""

    ratios: np.ndarray
    """`residuals_sq` over local scales, shape (n_localities, n_left, n_outputs)."""

    squarings: np.ndarray
    """Powers of two of the similarity for these, shape (n_localities,)."""

    reach: np.ndarray
    """See `overcover.machines.calibration`, shape (1,)."""

    @property
    def judged(self):
        """Those of the rows left out that weigh enough to be calibrated by."""
        return are_judged(self.rows.weights[self.left])

    @property
    def output_moments(self):
        """Mean and variance of the subdomain's outputs."""
        deviations = self.rows.Z * finite(self.rows.output_scales)
        weights = self.rows.weights
        variance = np.average(deviations**2, axis=0, weights=weights)
        return self.rows.Y_mean.copy(), variance

    @classmethod
    def of_version_1(cls, **fields):
        """From a store of version 1, which says nothing of variances far away."""
        return cls(reach=np.array([np.inf]), **fields)


class TwinGP(CalibratedMachine):
    """Twin Gaussian Process; alone the full model, in a cover a local machine.

    Choose it for many outputs that hang together, such as a pose, above all where one
    input may belong to different outputs. It is slower than a `GP`, and better only
    where outputs resemble each other as inputs do: compare the two. Memory as a full
    model is O(n_samples^2).

    Parameters
    ----------
    input_length_scale : "auto", float or array-like of shape (n_features,)
        The rho_X in ``exp(-d^2 / (2 rho^2))``, in units of the inputs.
    output_length_scale : "auto", float or array-like of shape (n_outputs,)
        The rho_Y, in units of the outputs.
    input_noise, output_noise : "auto" or float, default="auto"
        The paper's lambda_X and lambda_Y, relative to a similarity of one.
    self_noise : bool, default=True
        Whether noise counts in the similarity of a query, or an output, to itself, as
        the derivation demands. False is the paper's printed form.
    n_starts : {1, 2}, default=1
        Where to start from: from what a GP says, and (2) from the output of the most
        similar row too; the lower minimum is kept.
    rank : "auto", "full" or int, default="auto"
        Rows on which the output side hangs: as few as change predictions by less than
        about 0.1 % of an output's deviation, all of them (exact), or at most so many.
    metric : {"rmse", "joint", "angle"} or callable, default="rmse"
        What "auto" minimises on held-out rows: the error in deviations of each output,
        the mean distance of three-dimensional joints, the mean absolute angle modulo
        360; or ``metric(Y_true, Y_predicted) -> float``.
    keep_factors : "auto" or bool, default="auto"
        Whether to keep what can be made again from the rows. "auto" keeps it when that
        of all subdomains fits in 4 GiB and a quarter of memory.
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
        How much larger the squared errors of rows held out in runs were than those of
        rows left out one by one; 1 where nothing was tuned.
    calibration_ : Calibration
        Variance factor and interval quantiles from leave-one-out errors.
    state_ : TwinState
        Of the full model; only when fitted alone.

    Examples
    --------
    An S-shaped curve: three outputs are possible in the middle, a GP says their mean.

    >>> import numpy as np
    >>> from overcover import TwinGP
    >>> y = np.linspace(0, 1, 200)
    >>> x = y + 0.3 * np.sin(2 * np.pi * y)
    >>> model = TwinGP(0.1, 0.1, 1e-3, 1e-3, n_starts=2).fit(x[:, None], y)
    >>> answer = model.predict([[0.6]])[0]
    >>> bool(np.abs(answer + 0.3 * np.sin(2 * np.pi * answer) - 0.6) < 0.05)
    True
    """

    def __init__(
        self,
        input_length_scale="auto",
        output_length_scale="auto",
        input_noise="auto",
        output_noise="auto",
        *,
        self_noise=True,
        n_starts=1,
        rank="auto",
        metric="rmse",
        keep_factors="auto",
        random_state=None,
    ):
        self.input_length_scale = input_length_scale
        self.output_length_scale = output_length_scale
        self.input_noise = input_noise
        self.output_noise = output_noise
        self.self_noise = self_noise
        self.n_starts = n_starts
        self.rank = rank
        self.metric = metric
        self.keep_factors = keep_factors
        self.random_state = random_state

    _precision = PRECISION

    # -- the metric: hyperparameters -------------------------------------------------

    def tune(self, X, Y, sample_weight, subdomain_size, random_state, n_jobs):
        """Find length scales and noises; see `overcover.tuning.twin`."""
        self._check_options(X.shape[1], Y.shape[1])
        found = twin_tuning.tune(
            self, X, Y, sample_weight, subdomain_size, random_state, n_jobs
        )
        self._set_scales(found.scales)
        self.tuning_scores_ = found.scores
        self.variance_inflation_ = found.inflation

    def tuning_cost(self, n_samples, n_features, n_outputs):
        """Trials of whole machines."""
        scales = self.input_length_scale, self.output_length_scale
        asked = *scales, self.input_noise, self.output_noise
        if not any(isinstance(value, str) for value in asked):
            return TuningCost()
        return tuning_cost(n_samples, n_features, is_twin=True)

    def _set_scales(self, scales):
        self.input_length_scale_ = scales.inputs
        self.output_length_scale_ = scales.outputs
        self.input_noise_ = scales.input_noise
        self.output_noise_ = scales.output_noise

    @property
    def _scales(self):
        return Scales(
            self.input_length_scale_,
            self.output_length_scale_,
            self.input_noise_,
            self.output_noise_,
            self.self_noise,
        )

    def length_scales(self, X):
        """Those of the input kernel."""
        return self.input_length_scale_

    # -- one subdomain ---------------------------------------------------------------

    def fit_state(self, X, Y, sample_weight=None, n_owned=None, keep=True):
        """Factorise both sides, leave rows out; see `TwinState`."""
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        rows = self.in_kernel_units(X, Y, weights)
        left = rows_to_leave_out(len(X) if n_owned is None else n_owned)
        core, looks = self._make_core(rows, left)
        # One row alone, left out, leaves nothing to learn from.
        points = (
            self._search(core, looks, rows.Z).points if len(X) > 1 else rows.Z[left]
        )
        residuals_sq = (
            (rows.Z[left] - points) * finite(self.output_length_scale_)
        ) ** 2
        eta = self._eta(looks)
        residuals_sq /= eta[:, None]
        similarity = kernels.cross("rbf", rows.A[left], rows.A[left])
        np.fill_diagonal(similarity, 0.0)
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
        )

    def recall_inputs(self, state):
        """The rows of the state in their own units, zero where a column is ignored."""
        rows = state.rows
        return (rows.A + rows.center) * finite(rows.input_scales)

    def recall_outputs(self, state, rows):
        """Outputs in their own units."""
        return state.rows.back(state.rows.Z[rows])

    def keeps_factors(self, n_subdomains, size):
        """Whether states hold their cores, given how many there will be."""
        if self.keep_factors != "auto":
            return bool(self.keep_factors)
        return may_keep(n_subdomains * 8 * (packed_size(size) + 2 * size**2))

    @property
    def doubts_first(self):
        """A doubt is one product, an answer a search."""
        return True

    def doubt(self, state, X_query):
        """Posterior input variance eta, in blocks of queries of bounded memory."""
        core = self._core(state)
        return np.concatenate(
            [
                twin_state.unexplained_of(core.factor, K_xq)
                for K_xq in self._similarities(state, X_query)
            ]
        ) + (self._scales.own_input - 1.0)

    def answer(self, state, X_query, variance=False):
        """Mean, variance and doubt, in blocks of queries of bounded memory."""
        core, parts = self._core(state), list[tuple[np.ndarray, ...]]()
        if variance:
            spread = self.calibration_.spread_around(state.rows.Y_mean)
        for K_xq in self._similarities(state, X_query):
            looks = self._look(core, K_xq, state.rows.Z)
            points = self._search(core, looks, state.rows.Z).points
            mean = state.rows.back(points)
            if not variance:
                parts.append((mean,))
                continue
            eta = self._eta(looks)
            scale = calibration.scales_at(
                K_xq[state.left],
                state.residuals_sq,
                state.residuals_sq_mean,
                state.squarings,
                self.calibration_,
                slice(None),
            )
            scale *= self.calibration_.factor
            prior = np.full(len(eta), self._scales.own_input)
            ends = state.reach[0], prior, spread[None]
            var = calibration.variances_at(eta, scale, *ends)
            parts.append((mean, var, eta))
        joined = [np.concatenate(part) for part in zip(*parts)]
        return Answer(*joined) if variance else Answer(joined[0], None, None)

    def search(self, state, X_query) -> Minima:
        """How the minimum of every query was found: evaluations, convergence, value.

        Parameters
        ----------
        state : TwinState
            ``model.state_`` when fitted alone, else one of a cover's ``states_``.
        X_query : ndarray of shape (n_queries, n_features)

        Returns
        -------
        Minima
            Points in kernel units, before the fall back of far-away queries.
        """
        core = self._core(state)
        found = [
            self._minimize(core, self._look(core, K_xq, state.rows.Z))
            for K_xq in self._similarities(state, np.asarray(X_query, dtype=float))
        ]
        return Minima(*(np.concatenate(part) for part in zip(*found)))

    def _core(self, state):
        if state.core is not None:
            return state.core
        nobody = np.empty(0, dtype=np.intp)
        return self._make_core(state.rows, nobody)[0]

    def _similarities(self, state, X_query):
        """Similarities of the rows to blocks of queries, each (size, n_block)."""
        step = max(1, BLOCK_VALUES // len(state.rows.A))
        for i in range(0, len(X_query), step):
            yield state.rows.similarities(X_query[i : i + step])

    def _eta(self, looks):
        return looks.unexplained + (self._scales.own_input - 1.0)

    def _search(self, core, looks, Z) -> Minima:
        """Minima, drawn towards what a GP says where the rows explain little, and kept
        near the outputs that have been seen."""
        found = self._minimize(core, looks)
        trust = np.clip((1.0 - looks.unexplained) / TRUSTED, 0.0, 1.0)[:, None]
        points = looks.means + trust * (found.points - looks.means)
        low, high = Z.min(axis=0), Z.max(axis=0)
        margin = MARGIN * (high - low)
        return found._replace(points=np.clip(points, low - margin, high + margin))

    def _minimize(self, core, looks) -> Minima:
        objective = self._objective(core, looks)
        tolerance, most = self._precision
        best = minimize_batch(
            objective, looks.means, tolerance=tolerance, max_evaluations=most
        )
        if self.n_starts == 1:
            return best
        other = minimize_batch(
            objective, looks.nearest, tolerance=tolerance, max_evaluations=most
        )
        lower = other.values < best.values
        spent = best.n_evaluations + other.n_evaluations
        pairs = zip(best, other)
        best = Minima(*(np.where(_along(lower, a), b, a) for a, b in pairs))
        return best._replace(n_evaluations=spent)

    # -- what a relative of this machine does differently ------------------------------

    def _make_core(self, rows, left):
        """What queries look at, and what rows left out see; `twin_state.make_core`."""
        return twin_state.make_core(rows, self._scales, self.rank, left)

    def _look(self, core, K_xq, Z):
        """What queries see, from their similarities to the rows."""
        return twin_state.look(core, K_xq, Z)

    def _objective(self, core, looks):
        """What is minimised."""
        own, eta = self._scales.own_output, self._eta(looks)
        return TwinObjective(core.pivots, core.C, looks.U, eta, own, looks.taken)

    def answer_fresh(
        self, rows, X_query, kept=made_anew, solve=False, variance=False
    ) -> Answer:
        """Answer a few queries where nothing has been precomputed.

        Parameters
        ----------
        rows : TwinRows
        X_query : ndarray of shape (n_queries, n_features)
        kept : callable
            ``kept(key, make)`` gives ``make()``, or what it gave before for that key:
            a grid of hyperparameters factorises each side once.
        solve : bool
            Whether the search solves with a Cholesky factor of the outputs' kernel
            matrix: for a single query that beats making an inverse.
        variance : bool

        Returns
        -------
        Answer
            With variances that are not calibrated: eta times the amplitude of the
            outputs' marginal likelihood.
        """
        scales = self._scales
        inputs = ("inputs", scales.inputs.tobytes(), scales.input_noise)
        L = kept(
            inputs,
            lambda: twin_state.factorize_inputs(rows, scales.input_noise),
        )
        outputs = kept(
            ("outputs", scales.outputs.tobytes(), scales.output_noise),
            lambda: self._fresh_outputs(rows, solve),
        )
        K_xq = rows.similarities(X_query)
        u = kept((*inputs, X_query.tobytes()), lambda: solve_cholesky(L, K_xq))
        looks = twin_state.look_fresh(K_xq, u, rows.Z, outputs)
        core = twin_state.TwinCore(L, u, outputs.pivots, outputs.C)
        mean = rows.back(self._search(core, looks, rows.Z).points)
        if not variance:
            return Answer(mean, None, None)
        eta = self._eta(looks)
        return Answer(mean, np.outer(eta, amplitude_sq(rows, L)), eta)

    def _fresh_outputs(self, rows, solve):
        noise = self.output_noise_
        if solve:
            return solved_output_side(rows.Z, noise, rows.weights)
        return make_output_side(rows.Z, noise, rows.weights, self.rank)[0]

    def answer_once(self, X, Y, sample_weight, X_query, variance=False):
        """Two Cholesky factorisations, and solves in the search: no inverse."""
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        rows = self.in_kernel_units(X, Y, weights)
        return self.answer_fresh(rows, X_query, solve=True, variance=variance)

    def answer_left_out(self, rows, left):
        """What is said of rows that are left out one by one, in units of the outputs.

        Parameters
        ----------
        rows : TwinRows
        left : ndarray of int of shape (n_left,)

        Returns
        -------
        ndarray of shape (n_left, n_outputs)
        """
        core, looks = self._make_core(rows, left)
        return rows.back(self._search(core, looks, rows.Z).points)

    def in_kernel_units(self, X, Y, weights) -> TwinRows:
        """Rows of a subdomain, centred and divided by length scales."""
        return make_rows(X, Y, weights, self._scales)

    def with_scales(self, scales):
        """This machine with given hyperparameters."""
        machine = copy(self)
        machine._set_scales(scales)
        machine.variance_inflation_ = 1.0
        machine._precision = TRIAL_PRECISION
        machine.rank = TRIAL_RANK if self.rank == "auto" else self.rank
        return machine

    def _check_alone(self, n_samples):
        check_fits(type(self).__name__, n_samples, 6 * 8 * n_samples**2)

    def _check_options(self, n_features, n_outputs):
        check_twin_options(self, n_features, n_outputs)


def amplitude_sq(rows, L):
    """Of the outputs' marginal likelihood, shape (n_outputs,)."""
    z_y = solve_lower(L, rows.Z * finite(rows.output_scales))
    return np.einsum("ij,ij->j", z_y, z_y) / evidence_of(rows.weights).sum()


def rows_to_leave_out(n_owned):
    """At most `MOST_LEFT_OUT` of the owned rows, evenly spaced."""
    return np.arange(0, n_owned, 1 + (n_owned - 1) // MOST_LEFT_OUT)


def _along(choice, values):
    return choice.reshape(-1, *[1] * (values.ndim - 1))
