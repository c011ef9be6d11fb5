r"""The Gaussian process machine.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

With :math:`A = K + \nu\,\mathrm{diag}(1/w)` on the rows of a subdomain, m their mean
output and :math:`k_q` the similarities of a query to them,

.. math:: \mu(q) = m + k_q^\top A^{-1} (Y - m), \qquad
    \eta(q) = k(q, q) + \nu - k_q^\top A^{-1} k_q, \qquad
    \sigma_j^2(q) = c_j \, s_j^2(q) \, \eta(q),

:math:`\eta` on the kernel's own scale (amplitude one, :math:`\nu` the noise relative to
it), :math:`s_j^2(q)` the local scale and :math:`c_j` the factor of
`overcover.machines.calibration`. :math:`\sigma` is that of a new observation.
"""

from functools import partial

import numpy as np

from .. import kernels, tuning
from .._left_out import LIGHT, contradicted_rows
from .._linalg import pack_lower, packed_size
from .._streams import center_of
from .._weights import evidence_of
from .base import Answer, Description, Recalled
from .calibration import Calibration
from .gp_posterior import correlation_of, slopes_of
from .gp_state import (
    MOST_ROUNDING,
    THETA,
    GPState,
    answer_group,
    answer_once,
    fit_group,
    rounding_of_variance,
)
from .gp_tuning import TunedGP

# Kernel values per block of queries: 32 MB, small beside the factor of a subdomain.
BLOCK_VALUES = 2**22


class GP(TunedGP):
    """Gaussian process regression; alone the full model, in a cover a local machine.

    Choose it if outputs are few or unrelated, if you need uncertainty, or as a first
    model. Memory as a full model is O(n_samples^2).

    Parameters
    ----------
    kernel : {"auto", "rbf", "matern52", "matern32", "matern12"} or scikit-learn kernel
        The names are in the order of increasing roughness. "auto" chooses the kernel
        that predicts held-out rows best; it is "matern32" if length scale and noise are
        numbers. A kernel object has other hyperparameters, tuned within its bounds.
    length_scale : "auto", float or array-like of shape (n_features,), default="auto"
        The rho in ``exp(-d^2 / (2 rho^2))``, in units of the inputs. "auto" learns one
        per column, or one for all if that predicts better. Not for a kernel object.
    noise : "auto" or float, default="auto"
        Variance of the noise relative to that of the signal.
    per_output : "auto" or bool, default="auto"
        Whether every output has separate hyperparameters, or all share them. With
        "auto", an output gets separate ones if its held-out rows are then predicted
        better. Each separate set costs one more factorisation in each subdomain.
    per_subdomain : bool, default=False
        Whether to improve the hyperparameters of every subdomain separately, by a few
        steps that increase its likelihood.
    keep_factors : "auto" or bool, default="auto"
        Whether to keep the Cholesky factors that variances need, about ``4 * size^2``
        bytes per subdomain. If not, each batch of queries computes them again. "auto"
        keeps them if those of all subdomains fit in 4 GiB and a quarter of memory.
    factor_dtype : {"auto", "float64", "float32"}, default="auto"
        Type of the factors. float32 is half as large and faster; it changes variances
        slightly, and the weights that depend on them. "auto" is float32 if the
        subdomain borrows rows and no posterior variance changes by more than 1 % in a
        test halfway between some rows and their nearest. Rows that lie close together
        with hardly any noise need float64.
    robust : "auto" or bool, default="auto"
        Whether rows get almost no weight if their outputs contradict all rows around
        them, such as those of a broken sensor. "auto" decides by held-out rows, if any
        hyperparameter is learned.
    random_state : int, RandomState or None, default=None
        Decides which rows "auto" looks at; only used when fitted alone.

    Attributes
    ----------
    used_kernel_ : str, scikit-learn kernel, or tuple of str
        The kernel in use; one for every group of outputs where these differ.
    length_scale_ : ndarray of shape (n_features,) or (n_outputs, n_features)
        The latter if outputs do not all share them; not with a kernel object.
    noise_ : float, or ndarray of shape (n_outputs,)
        Relative to the variance of the signal.
    theta_ : ndarray of shape (n_groups, n_hyperparameters)
        Log hyperparameters, the noise last, of every group of outputs that share them.
        Length scales are infinite for a column that never varied.
    output_groups_ : ndarray of shape (n_outputs,)
        The group of every output.
    run_length_ : int
        Number of consecutive rows that calibration leaves out together, because they
        depend on each other; 1 if they do not, or with `groups`.
    is_robust_ : bool
        Whether the fit looked for contradicted rows.
    tuning_scores_ : list of dict
        The loss on held-out rows of every candidate, lower is better.
    calibration_ : Calibration
        Variance factor and interval quantiles from leave-one-out residuals.
    state_ : GPState
        Of the full model; only when fitted alone.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = GP().fit(X, np.sin(X[:, 0]))
    >>> model.predict([[1.5]]).round(3).tolist()
    [0.997]
    """

    description = Description(
        name="gp",
        help="a Gaussian process",
        state=GPState,
        tuned={"theta_": THETA},
        calibrated={"calibration_": Calibration},
        hyperparameters={
            "length_scale_": "",
            "noise_": "noise (relative to the signal)",
            "kernel_": "",
        },
        noises={"noise": tuning.NOISE_BOUNDS},
    )

    def __init__(
        self,
        kernel="auto",
        length_scale="auto",
        noise="auto",
        *,
        per_output="auto",
        per_subdomain=False,
        keep_factors="auto",
        factor_dtype="auto",
        robust="auto",
        random_state=None,
    ):
        self.kernel = kernel
        self.length_scale = length_scale
        self.noise = noise
        self.per_output = per_output
        self.per_subdomain = per_subdomain
        self.keep_factors = keep_factors
        self.factor_dtype = factor_dtype
        self.robust = robust
        self.random_state = random_state

    def fit_state(self, X, Y, sample_weight=None, n_owned=None, keep=True, groups=None):
        """Factorise the subdomain's kernel matrices; see `GPState`."""
        n_owned = len(X) if n_owned is None else n_owned
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        # A kernel object may care where the origin is; a named one does not.
        is_object = kernels.is_object(self.kernel)
        center = np.zeros(X.shape[1]) if is_object else center_of(X)
        X = X - center
        theta = self._theta_for(X, Y, sample_weight)
        Y_mean, fits = self._fit_groups(X, Y, theta, weights, n_owned, groups)
        light = self._light_rows(fits, Y) if self.is_robust_ else []
        if len(light):
            weights = weights.copy()
            weights[light] *= LIGHT
            Y_mean, fits = self._fit_groups(X, Y, theta, weights, n_owned, groups)
        Y = Y - Y_mean
        alpha = self._in_order([fit.alpha for fit in fits])
        residuals_sq = self._in_order([fit.residuals_sq for fit in fits])
        factors = self._pack(fits, n_owned)
        if not keep:
            factors = [np.empty(0, factor.dtype) for factor in factors]
        return GPState(
            X=X,
            center=center,
            theta=theta,
            weights=weights,
            Y_mean=Y_mean,
            alpha=alpha,
            residuals_sq=residuals_sq,
            residuals_sq_mean=residuals_sq.mean(axis=0),
            ratios=self._in_order([fit.ratios for fit in fits]),
            squarings=np.array([fit.squarings for fit in fits]),
            factor=np.array(factors),
            Y_variance=np.average(Y**2, axis=0, weights=weights),
            amplitude_sq=np.einsum("ij,ij->j", Y, alpha) / evidence_of(weights).sum(),
            left_out=np.array([fit.left_out for fit in fits]),
            sides=self._in_order([fit.sides for fit in fits]),
            excess=self._in_order([fit.excess for fit in fits]),
        )

    def _fit_groups(self, X, Y, thetas, weights, n_owned, groups):
        """The mean of the outputs, and what every group of outputs precomputes."""
        Y_mean = np.average(Y, axis=0, weights=weights)
        fits = []
        for (kernel, j), theta in zip(self._groups, thetas):
            kernel, A = kernels.in_units(kernel, theta, X)
            known = np.exp(theta[-1]), weights, n_owned, groups
            fits.append(fit_group(kernel, A, (Y - Y_mean)[:, j], *known))
        return Y_mean, fits

    def _light_rows(self, fits, Y):
        """Rows that others contradict in the outputs of any group."""
        pairs = zip(fits, self._groups)
        rows = [contradicted_rows(fit.L_inv, Y[:, j]) for fit, (_, j) in pairs]
        return np.unique(np.concatenate(rows))

    def _pack(self, fits, n_owned):
        """Factors: in float32 by "auto", where it changes hardly any variance."""

        def packed_as(dtype):
            return [pack_lower(fit.L_inv, dtype) for fit in fits]

        if not tuning.is_auto(self.factor_dtype):
            return packed_as(np.dtype(self.factor_dtype))
        # A machine that owns all its rows is an exact model, and says so exactly.
        if n_owned < len(fits[0].A):
            factors = packed_as(np.float32)
            if max(map(rounding_of_variance, fits, factors)) <= MOST_ROUNDING:
                return factors
        return packed_as(np.float64)

    @property
    def _groups(self):
        """The kernel and the outputs, a slice of all or numbers, of every group."""
        if len(self.theta_) == 1:
            return [(self._kernel_of(0), slice(None))]
        group = self._groups_of_outputs()
        each = range(len(self.theta_))
        return [(self._kernel_of(g), np.flatnonzero(group == g)) for g in each]

    def _in_order(self, parts):
        """Columns of all groups, joined in the order of the outputs."""
        if len(parts) == 1:
            return parts[0]
        order = np.concatenate([outputs for _, outputs in self._groups])
        return np.concatenate(parts, axis=-1)[..., np.argsort(order, kind="stable")]

    def _theta_for(self, X, Y, sample_weight):
        """Hyperparameters of a subdomain: the shared ones, or a few steps from them."""
        if not self.per_subdomain:
            return self.theta_
        fixed, improved = self.fixed_theta(X.shape[1]), []
        for (kernel, j), theta in zip(self._groups, self.theta_):
            known = X, Y[:, j], sample_weight, theta, fixed
            improved.append(tuning.improve(kernel, *known))
        return np.array(improved)

    def recall(self, state):
        """The rows of the state, moved back to where they were."""
        weights = state.weights
        if self.is_robust_:
            weights = np.where(_are_light(weights), weights / LIGHT, weights)
        X = state.X + state.center
        return Recalled(X, partial(self._outputs, state), weights)

    def _outputs(self, state, rows):
        """``A alpha`` and the mean: outputs are not kept, but can be had again."""
        each = np.arange(len(rows))
        Y = np.repeat(state.Y_mean[None], len(rows), axis=0)
        for (kernel, j), theta in zip(self._groups, state.theta):
            kernel, A = kernels.in_units(kernel, theta, state.X)
            row_noise = np.exp(theta[-1]) / state.weights[rows]
            K = kernels.cross(kernel, A[rows], A)
            K[each, rows] = kernels.diagonal(kernel, A[rows])  # of a white kernel too
            Y[:, j] += K @ state.alpha[:, j]
            Y[:, j] += row_noise[:, None] * state.alpha[rows][:, j]
        return Y

    def contradicted(self, state):
        """Places of owned rows that were made light, see `is_robust_`."""
        return np.flatnonzero(_are_light(state.weights[: state.ratios.shape[1]]))

    _n_square_arrays = 4

    def _factor_bytes(self, size):
        # The type "auto" does not know yet, and allows for the larger.
        itemsize = 4 if self.factor_dtype == "float32" else 8
        return itemsize * len(self.theta_) * packed_size(size)

    def _blocks(self, state, X_query):
        """Queries minus the center of the state, in blocks of bounded memory."""
        step = max(1, BLOCK_VALUES // len(state.X))
        for i in range(0, len(X_query), step):
            yield X_query[i : i + step] - state.center

    def answer(self, state, X_query, variance=False):
        """Mean, variance and posterior variance, in blocks of bounded memory."""
        calibrated = self.calibration_ if variance else None
        scales = [self._posterior_scale(state, j) for _, j in self._groups if variance]
        blocks = []
        for offsets in self._blocks(state, X_query):
            answers = [
                answer_group(kernel, state, g, j, offsets, calibrated)
                for g, (kernel, j) in enumerate(self._groups)
            ]
            blocks.append(self._joined(answers, scales))
        mean, *others = zip(*blocks)
        rest = map(np.concatenate, others) if variance else (None, None, None)
        return Answer(np.concatenate(mean), *rest)

    def _joined(self, answers, scales):
        """One answer from those for groups of outputs, and the scales of their etas."""
        means, variances, etas, functions = zip(*answers)
        mean = self._in_order(means)
        if variances[0] is None:
            return Answer(mean, None, None)
        posterior = sum(eta * c / len(etas) for eta, c in zip(etas, scales))
        variance, function = self._in_order(variances), self._in_order(functions)
        return Answer(mean, variance, posterior, function)

    def correlations(self, state, X_query, noise=True):
        """Of the Gaussian process on the subdomain's rows, which calibration keeps."""
        found = [
            correlation_of(kernel, state, g, X_query - state.center, noise)
            for g, (kernel, _) in enumerate(self._groups)
        ]
        if len(found) == 1:
            return found * len(state.Y_mean)
        return [found[g] for g in self._groups_of_outputs()]

    def slopes(self, state, X_query):
        """Derivatives of the kernel with the rows, in blocks of bounded memory."""
        parts = []
        for offsets in self._blocks(state, X_query):
            each = enumerate(self._groups)
            slopes = [
                slopes_of(kernel, state, g, j, offsets) for g, (kernel, j) in each
            ]
            parts.append(self._in_order(slopes))
        return np.concatenate(parts)

    def _posterior_scale(self, state, outputs):
        """What makes posterior variances of different subdomains comparable.

        Where each learns its own hyperparameters, they are relative to a variance of
        the signal, which the mean squared residual estimates, in units of the outputs'.
        """
        if not (self.per_subdomain and self._is_free(state.X.shape[1]).any()):
            return 1.0
        variance = self.calibration_.output_variance[outputs]
        return np.mean(state.residuals_sq_mean[outputs] / variance)

    def answer_once(self, X, Y, sample_weight, X_query, variance=False):
        """The textbook's GP on these rows: variances are not calibrated."""
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        Y_mean = np.average(Y, axis=0, weights=weights)
        Y = Y - Y_mean
        answers = [
            answer_once(kernel, theta, X, Y[:, j], weights, X_query)
            for (kernel, j), theta in zip(self._groups, self._theta_for(X, Y, weights))
        ]
        answer = self._joined(answers, np.ones(len(answers)))
        return answer._replace(mean=answer.mean + Y_mean)


def _are_light(weights):
    """Which rows were made light; no weight that a user gives is as small."""
    return weights < 10 * LIGHT
