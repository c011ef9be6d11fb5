r"""Sparse GPs: one Gaussian process for all rows, through m inducing points.

    X, Y -> metric -> inducing points -> one m x m system -> prediction

A cover divides the rows among local machines; these methods approximate the kernel
matrix of all rows. Let :math:`K_{mm} = L L^\top`, :math:`V = L^{-1} K_{mn}` and
:math:`Q = V^\top V \approx K`, with noise :math:`\nu`, weights w and centred outputs Y.
All methods solve with :math:`Q + \Lambda`, by means of :math:`B = I + V \Lambda^{-1}
V^\top = L_B L_B^\top` and :math:`b = B^{-1} V \Lambda^{-1} Y`:

- dtc, sor, nystrom: :math:`\Lambda = \nu\,\mathrm{diag}(1/w)`;
- fic: :math:`\Lambda = \mathrm{diag}(((K - Q)_{ii} + \nu) / w_i)`;
- pic: :math:`\Lambda_{ss} = (K - Q)_{ss} + \nu\,\mathrm{diag}(1/w_s) = L_s L_s^\top`
  on each block s, with :math:`W_s = L_s^{-1} V_s^\top` and
  :math:`p_s = \Lambda_{ss}^{-1} (Y_s - V_s^\top b)`.

With :math:`v = L^{-1} k_{mq}`, and :math:`e = L_s^{-1} k_{sq} - W_s v` for the block s
whose mean is nearest, a query has the mean :math:`\mu` and the variance :math:`\eta`

- fic, dtc: :math:`v^\top b` and :math:`\nu + k_{qq} - |v|^2 + |L_B^{-1} v|^2`;
- sor: :math:`v^\top b` and :math:`\nu + |L_B^{-1} v|^2`;
- pic: :math:`v^\top (b - V_s p_s) + k_{qs} p_s` and
  :math:`\nu + k_{qq} - |v|^2 - |e|^2 + |L_B^{-1} (v - W_s^\top e)|^2`;
- nystrom: :math:`k_{qn} (Q + \Lambda)^{-1} Y` and
  :math:`\nu + k_{qq} - k_{qn} (Q + \Lambda)^{-1} k_{nq}`,

where :math:`\eta` is multiplied by :math:`s_j^2 = y_j^\top (Q + \Lambda)^{-1} y_j /
\sum_i w_i`, the amplitude that maximises the approximate marginal likelihood.
References: Quinonero-Candela & Rasmussen (2005) for the family, Snelson & Ghahramani
(2006, 2007) for fic and pic, Williams & Seeger (2001) for nystrom.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from .. import kernels
from .._numbers import numbers_of
from .._streams import center_of, without_far_cells
from .._validation import as_training_shape, check_choice, check_queries
from .._weights import evidence_of
from ..machines import Prediction
from ..partition import partition_rows
from ._bound import climb_bound
from ._shared import SharedKernelGP, in_chunks, shared_gp
from ._sparse import choose_inducing, fit_blocks, fit_diagonal, make_inducing

# Maximisations of the bound, each with new inducing points.
N_CLIMBS = 2
METHODS = ("fic", "dtc", "sor", "nystrom", "pic")


@dataclass(eq=False, repr=False, kw_only=True)
class SparseGP(SharedKernelGP):
    """A Gaussian process of all rows, approximated by m inducing points.

    A baseline for comparisons. It is a global model: accurate if the function is smooth
    enough for m points, and blurred otherwise. Fitting costs O(n m^2), a query O(m) for
    the mean and O(m^2) for the standard deviation. `overcover.baselines.sparse_gp` has
    the formulas. Memory: a few copies of X and, per worker, some arrays of 2048 x m or
    m x m numbers; "pic" keeps O(n m) numbers.

    Parameters
    ----------
    machine : GP or None, default=None
        Kernel and hyperparameters; "auto" tunes them as for a cover; None is ``GP()``.
        White noise inside a kernel object has an effect on "fic" and "pic" only: use
        the `noise` of the GP instead.
    method : {"fic", "dtc", "sor", "nystrom", "pic"}, default="fic"
        How the covariance of the rows is approximated:

        - "fic" (fully independent conditional, FITC): variances of the rows are exact,
          covariances are those of Q. The part that inducing points miss counts as
          noise, so intervals have about the right width;
        - "dtc" (deterministic training conditional): all covariances are those of Q,
          except the exact variance of a query; overconfident where points are sparse;
        - "sor" (subset of regressors): the same mean, and a variance that shrinks to
          the noise away from the inducing points. For comparisons only;
        - "pic" (partially independent conditional): exact within blocks of rows, and
          between a query and the block with the nearest mean. More accurate than "fic"
          if m points are too few;
        - "nystrom": Q in place of K, but exact between query and rows. A query costs
          O(n) or O(n m). Variances may be *negative*, and means arbitrarily large, if m
          points miss much of K and the noise is small.
    n_inducing : int, default=500
        The m above; also the approximate size of a block of "pic".
    inducing : {"kmeans", "random"} or array-like of shape (m, n_features), \
default="kmeans"
        The inducing points: centres of k-means in the machine's metric, random rows, or
        the points of an array. If there are at most `n_inducing` distinct rows, all of
        them.
    tuning : {"local", "bound"}, default="local"
        How to learn the "auto" hyperparameters of the machine:

        - "local": as for a cover, so that methods have equal hyperparameters;
        - "bound": from there, maximise the likelihood of "fic" (for "fic" and "pic") or
          the variational bound (VFE) of all rows. Each of up to 110 steps costs about
          three fits. Length scales grow until m points can represent the function, and
          the rest counts as noise. Named kernels only.
    partition, n_jobs, random_state
        As in `overcover.OverlappingCoverRegressor`; the partition makes the blocks of
        "pic".

    Attributes
    ----------
    machine_ : GP
        With its tuned hyperparameters.
    length_scales_ : ndarray of shape (n_features_in_,)
        The machine's metric.
    inducing_points_ : ndarray of shape (m, n_features_in_)
        Distinct, in the units of X.
    amplitude_sq_ : ndarray of shape (n_outputs,)
        Variance of the signal, from the approximate marginal likelihood.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP
    >>> from overcover.baselines import SparseGP
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> gp = GP(length_scale=2.0, noise=1e-4)
    >>> model = SparseGP(gp, n_inducing=100, random_state=0).fit(X, y)
    >>> mean, std = model.predict([[0.5, 0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(0.5) * np.cos(0.5)) < 0.01), mean.shape == std.shape
    (True, True)
    """

    counts = {"n_inducing": 1}
    choices = {"method": METHODS, "tuning": ("local", "bound")}
    method: str = "fic"
    n_inducing: int = 500
    inducing: Any = "kmeans"
    tuning: str = "local"
    partition: Any = "kmeans"

    def _check_options(self, n_features):
        super()._check_options(n_features)
        kernel = shared_gp(self.machine).kernel
        if self.tuning == "bound" and kernels.is_object(kernel):
            raise ValueError(
                f"tuning='bound' needs a named kernel, not {kernel!r}. Choose "
                f"one of {', '.join(map(repr, kernels.NAMES))}, or tuning='local'."
            )

    def _fit(self, X, Y, weights):
        how = self._checked_inducing(X.shape[1])
        n_inducing = self.n_inducing if isinstance(how, str) else len(how)
        rng, weights = self._tune(X, Y, weights, n_inducing)
        machine, self._center = self.machine_, center_of(X)
        scales = machine.length_scales(X)
        points = choose_inducing(how, X, scales, weights, n_inducing, rng)
        for _ in range(N_CLIMBS if self.tuning == "bound" else 0):
            rows = X, Y, weights, points
            theta = climb_bound(self.method, machine, *rows, self.n_jobs)
            machine.theta_ = theta[None]
            scales = machine.length_scales(X)
            points = choose_inducing(how, X, scales, weights, n_inducing, rng)
        self.length_scales_, self.inducing_points_ = scales, points
        kernel, points = self._in_units(points, self._center)
        inducing = make_inducing(kernel, points, float(machine.noise_))
        A = self._in_units(X, self._center)[1]
        data = inducing, A, Y - self._Y_mean, weights
        if self.method == "pic":
            n_blocks, X_metric = -(-len(X) // n_inducing), without_far_cells(X / scales)
            options = self.partition, self.n_jobs, rng
            partition = partition_rows(X_metric, n_blocks, *options)
            self.state_, energy = fit_blocks(*data, partition, self.n_jobs)
        else:
            self.state_, energy = fit_diagonal(self.method, *data, self.n_jobs)
        self.amplitude_sq_ = energy / evidence_of(weights).sum()

    def _checked_inducing(self, n_features):
        if isinstance(self.inducing, str):
            names = "kmeans", "random"
            check_choice("inducing", self.inducing, names, " or an array")
            return self.inducing
        points = check_array(numbers_of(self.inducing, "inducing"))
        if points.shape[1] != n_features:
            raise ValueError(
                f"inducing of shape {points.shape} must have {n_features} columns, as "
                "X has. Give points in the units of X, 'kmeans' or 'random'."
            )
        return points

    def predict_variance(self, X):
        """Variance of a new observation, exactly as in the formulas.

        For "nystrom" it may be negative; `predict` then warns and returns a standard
        deviation of zero. Shapes are those of `predict`.
        """
        check_is_fitted(self)
        _, eta = self._means_and_etas(check_queries(self, X), True)
        return as_training_shape(self, np.outer(eta, self.amplitude_sq_))

    def _predict_rows(self, X, return_std, noise=True):
        mean, eta = self._means_and_etas(X, return_std)
        if not return_std:
            return Prediction(mean, None)
        eta = eta if noise else eta - self._noise
        n_negative = int(np.sum(eta < 0))
        if n_negative:
            warnings.warn(
                f"method={self.method!r} gave a negative variance to {n_negative} of "
                f"{len(X)} queries; their std is set to 0. predict_variance returns "
                "these variances. Choose 'fic' for variances that are always positive.",
                UserWarning,
                stacklevel=3,
            )
        variance = np.outer(np.maximum(eta, 0.0), self.amplitude_sq_)
        return Prediction(mean, np.sqrt(variance))

    def _means_and_etas(self, X, variance):
        """Means, and variances for amplitude one, in chunks of queries."""

        def answer(queries):
            A = self._in_units(queries, self._center)[1]
            return self.state_.answer(A, queries / self.length_scales_, variance)

        step = self.state_.inducing.n_at_once
        mean, eta = in_chunks(answer, X, step, self.n_jobs)
        return mean + self._Y_mean, eta
