r"""Density ratio: weights of training rows for queries of another distribution.

    X_train, X_target -> standard units -> H, h -> tau, nu -> theta -> weights

The weights are for importance-weighted machines. The ratio is modelled by kernels at
target rows :math:`c_l` (RuLSIF); J is its squared error up to a constant:

.. math:: w_a(x) = \frac{p_{target}(x)}{(1-a)\,p_{target}(x) + a\,p_{train}(x)}
    \approx \theta^\top k(x), \qquad
    k_l(x) = \exp\!\left(-\frac{\|x - c_l\|^2}{2 \tau^2}\right),

.. math:: J = \tfrac{1-a}{2} \langle w^2 \rangle_{target}
    + \tfrac{a}{2} \langle w^2 \rangle_{train} - \langle w \rangle_{target}
    = \tfrac12 \theta^\top H \theta - h^\top \theta, \qquad
    \theta = (H + \nu I)^{-1} h,

.. math:: H = (1-a) \langle k k^\top \rangle_{target}
    + a \langle k k^\top \rangle_{train}, \qquad h = \langle k \rangle_{target}.

Rows enter by H and h alone, so J of a fold costs the same however many rows it holds.
Notation: a is ``alpha`` (1 - a in some codes), tau ``length_scale``, nu ``ridge``.
"""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ._linalg import add_to_diagonal, cholesky, solve_cholesky, squared_distances
from ._notes import warn
from ._numbers import numbers_of
from ._parallel import one_thread_per_worker
from ._validation import all_or_nothing, check_count

# Rows whose kernel values are held at once: 3 MB for 100 centres.
BLOCK = 4096
N_FOLDS = 5
# Length scales tried, in median distances: from 4 down to 1 / 16, each 1 / sqrt(2) of
# the one before, so that its kernel values are the squares of that one's.
MULTIPLES = 4.0 * 2.0 ** (-0.5 * np.arange(13))
# Kernel values are at most 1, so these mean the same on all data.
RIDGES = 10.0 ** np.arange(1.0, -4.5, -0.5)
# For a sample of one row, which cannot be learned from and held out too.
DEFAULT_RIDGE = 0.1
# Weights below this are rounding of theta^T k, not evidence of an overlap.
NEGLIGIBLE = 1e-8
# Less weight than this, or on fewer rows, is worth a warning.
LEAST_OVERLAP = 2.0
# So far out every kernel is 0, and squares do not overflow yet.
FAR = 1e50


def standard_units(X_train, X_target):
    """Mean and deviation of columns over both samples; infinite for a constant."""
    samples = (X_train, X_target)
    low = np.min([X.min(axis=0) for X in samples], axis=0)
    high = np.max([X.max(axis=0) for X in samples], axis=0)
    # Divided out before squaring, or 1e-200 would become zero.
    peak = np.maximum(np.maximum(-low, high), np.finfo(np.float64).tiny)
    mean = np.mean([np.mean(X / peak, axis=0) for X in samples], axis=0)
    mean_sq = [np.mean((X / peak - mean) ** 2, axis=0) for X in samples]
    # Judged by the range: a rounded mean gives even a constant some variance.
    varies = high / peak - low / peak > 4 * np.finfo(np.float64).eps
    spread = np.sqrt(np.mean(mean_sq, axis=0))
    return mean * peak, np.where(varies, peak * spread, np.inf)


def shuffled(rows, rng):
    """Row numbers in a random order that does not depend on how the rows are sorted."""
    # Ranks along a random line; a BLAS product may round by the place of a row.
    along = np.einsum("ij,j->i", rows, rng.normal(size=rows.shape[1]))
    return np.argsort(along, kind="stable")[rng.permutation(len(rows))]


def median_distance(A, B):
    """Median distance from rows of A to other rows of A and B; 1 if all coincide."""
    dist_sq = squared_distances(A, np.concatenate([A, B]))
    apart = dist_sq[dist_sq > 1e-12 * dist_sq.max()]
    return float(np.sqrt(np.median(apart))) if len(apart) else 1.0


def gaussian(rows, centers, length_scale):
    """``exp(-d^2 / (2 tau^2))``, shape (n_rows, n_centers)."""
    K = squared_distances(rows, centers)
    tau = float(np.clip(length_scale, 1e-100, 1e100))  # its square must exist
    K /= -2.0 * tau * tau
    return np.exp(K, out=K)


def fold_moments(train, target, centers, length_scales, alpha, n_folds=1):
    """Shares of each fold, every `n_folds`-th row, in H and h, by length scale."""
    h = np.zeros((len(length_scales), n_folds, len(centers)))
    H = np.zeros((*h.shape, len(centers)))
    for rows, in_H, in_h in ((train, alpha, 0.0), (target, 1.0 - alpha, 1.0)):
        for first in range(0, len(rows), BLOCK * n_folds):
            for f in range(n_folds):
                block = rows[first + f : first + BLOCK * n_folds : n_folds]
                K = gaussian(block, centers, length_scales[0])
                for t in range(len(length_scales)):
                    if t > 0:
                        np.square(K, out=K)
                    H[t, f] += (in_H / len(rows)) * (K.T @ K)
                    h[t, f] += (in_h / len(rows)) * K.sum(axis=0)
    return H, h


def relative_density_ratio(H, h, ridge):
    """``theta = (H + nu I)^-1 h``, shape (n_centers,); the ratio is ``k^T theta``."""
    L, _ = cholesky(add_to_diagonal(H.copy(), ridge), "The matrix H + ridge I")
    return solve_cholesky(L, h[:, None])[:, 0]


def cross_validated_scores(H, h, ridges):
    """J of each fold under the theta of the others, summed over the folds."""
    n_folds = h.shape[1]
    scores = np.zeros((len(h), len(ridges)))
    for f in range(n_folds):
        kept = np.arange(n_folds) != f
        # Means over the rows kept, which are this share of all, but for a row.
        share = 1.0 - 1.0 / n_folds
        eigenvalues, V = np.linalg.eigh(H[:, kept].sum(axis=1) / share)
        projected = V.swapaxes(1, 2) @ (h[:, kept].sum(axis=1) / share)[..., None]
        theta = V @ (projected / (np.maximum(eigenvalues, 0.0)[..., None] + ridges))
        scores += 0.5 * np.einsum("tcr,tcr->tr", theta, H[:, f] @ theta)
        scores -= np.einsum("tc,tcr->tr", h[:, f], theta)
    return scores


def effective_sample_size(weights):
    """Kish's ``(sum w)^2 / sum w^2``; 0 if no weight is above rounding."""
    peak = weights.max()
    if peak < NEGLIGIBLE:
        return 0.0
    return float(np.sum(weights / peak) ** 2 / np.sum((weights / peak) ** 2))


@dataclass(eq=False, repr=False)
class RelativeDensityRatio(BaseEstimator):
    """Importance weights of training rows for a target sample of inputs (RuLSIF).

    It estimates the ratio of the target's density to a mixture of both. The ratio is at
    most 1 / (1 - alpha), which keeps a few rows from getting all the weight.

    Parameters
    ----------
    alpha : float in [0, 1], default=0.5
        Share of the training density in the mixture: 1 is the plain ratio
        p_target / p_train; towards 0 the weights become flatter, at 0 all are one.
    length_scale : float or "auto", default="auto"
        tau, in standard deviations of the columns over both samples. "auto" tries 4
        down to 1/16 median distances by 5-fold cross-validation of J.
    ridge : float or "auto", default="auto"
        nu, beside kernel values of at most 1. "auto" tries 10 down to 1e-4.
    n_centers : int, default=100
        Kernels, at that many random target rows; at all of them if there are fewer.
    random_state : int, RandomState or None, default=None
        Decides centres and folds. The order of the rows does not matter.

    Attributes
    ----------
    weights_ : ndarray of shape (n_train,)
        Ratios at the training rows, none negative. If all are negligible they are
        replaced by ones, with a warning.
    effective_sample_size_ : float
        ``(sum w)^2 / sum w^2`` of the ratios, at most n_train; 0 if all are negligible.
    length_scale_, ridge_ : float
        tau and nu, as passed or selected.
    grid_ : tuple of ndarrays of shape (n_length_scales,) and (n_ridges,)
        Their candidates.
    scores_ : ndarray of shape (n_length_scales, n_ridges)
        Cross-validated J, lower is better; NaN if there was no choice: both were
        given, or a sample has one row (then "auto" is the median distance and 0.1).
    centers_, theta_ : ndarray of shape (n_centers, n_features_in_) and (n_centers,)

    Examples
    --------
    >>> import numpy as np
    >>> from overcover.density_ratio import RelativeDensityRatio
    >>> rng = np.random.default_rng(0)
    >>> X_train, X_target = rng.normal(0, 1, (500, 1)), rng.normal(1, 0.5, (300, 1))
    >>> ratio = RelativeDensityRatio(random_state=0).fit(X_train, X_target)
    >>> bool(100 < ratio.effective_sample_size_ < 400), ratio.weights_.shape
    (True, (500,))
    >>> near, far = ratio.predict([[1.0], [-2.0]])
    >>> bool(near > 1.2), bool(far < 0.2)
    (True, True)
    """

    alpha: float = 0.5
    _: KW_ONLY
    length_scale: Any = "auto"
    ridge: Any = "auto"
    n_centers: int = 100
    random_state: Any = None

    @all_or_nothing
    def fit(self, X_train, X_target):
        """Estimate the ratio, and the weights of the training rows.

        Memory: two copies of the rows, kernel values of 4,096 rows at a time, and at
        most ``70 * n_centers**2`` numbers for H, 6 MB for 100 centres.

        Parameters
        ----------
        X_train : array-like of shape (n_train, n_features)
        X_target : array-like of shape (n_target, n_features)
            Inputs of queries; no outputs are needed.

        Returns
        -------
        self
        """
        self._check_parameters()
        X_train = self._check_rows(X_train, "X_train", reset=True)
        X_target = self._check_rows(X_target, "X_target")
        rng = check_random_state(self.random_state)
        self._center, self._scale = standard_units(X_train, X_target)
        train, target = self._standardize(X_train), self._standardize(X_target)
        order = shuffled(target, rng)
        self.centers_ = X_target[order[: self.n_centers]]
        with one_thread_per_worker():
            self._fit_theta(train[shuffled(train, rng)], target[order])
            ratios = self._ratios(X_train)
        ess = self.effective_sample_size_ = effective_sample_size(ratios)
        # By the sum too: rows that are all far from the target get tiny, equal weights.
        if min(ess, ratios.sum()) < min(LEAST_OVERLAP, len(ratios) / 2):
            warn(
                "Training and target rows hardly overlap: the weights of "
                f"{len(ratios)} training rows sum to {ratios.sum():.2g} and count as "
                f"{ess:.2g} equal rows{'' if ess else '; all were set to one'}. Lower "
                f"alpha={self.alpha} for flatter weights, give more target rows, or "
                "training rows nearer to them.",
            )
        self.weights_ = ratios if ess else np.ones_like(ratios)
        return self

    def predict(self, X):
        """The ratio at any rows, clipped at 0; memory as for 4,096 rows.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features)

        Returns
        -------
        ndarray of shape (n_queries,)
        """
        check_is_fitted(self)
        X = self._check_rows(X, "X")
        with one_thread_per_worker():
            return self._ratios(X)

    def _fit_theta(self, train, target):
        """Choose tau and nu, and solve for theta; rows shuffled, in standard units."""
        centers = target[: self.n_centers]
        n_folds = min(N_FOLDS, len(train), len(target))
        median = median_distance(centers, train[: self.n_centers])
        if n_folds == 1:
            taus, ridges = np.array([median]), np.array([DEFAULT_RIDGE])
        else:
            taus, ridges = median * MULTIPLES, RIDGES
        if not isinstance(self.length_scale, str):
            taus = np.array([float(self.length_scale)])
        if not isinstance(self.ridge, str):
            ridges = np.array([float(self.ridge)])
        self.grid_ = taus, ridges
        n_folds = n_folds if len(taus) * len(ridges) > 1 else 1
        H, h = fold_moments(train, target, centers, taus, float(self.alpha), n_folds)
        self.scores_ = np.full((1, 1), np.nan)
        if n_folds > 1:
            self.scores_ = cross_validated_scores(H, h, ridges)
        t, r = np.unravel_index(np.argmin(self.scores_), self.scores_.shape)
        self.length_scale_, self.ridge_ = float(taus[t]), float(ridges[r])
        self.theta_ = relative_density_ratio(H[t].sum(0), h[t].sum(0), self.ridge_)

    def _standardize(self, X):
        return np.clip((X - self._center) / self._scale, -FAR, FAR)

    def _ratios(self, X):
        if self.alpha == 0:
            # p_target / p_target: nothing to estimate.
            return np.ones(len(X))
        centers = self._standardize(self.centers_)
        ratios = np.empty(len(X))
        for first in range(0, len(X), BLOCK):
            block = self._standardize(X[first : first + BLOCK])
            K = gaussian(block, centers, self.length_scale_)
            ratios[first : first + BLOCK] = K @ self.theta_
        return np.maximum(ratios, 0.0, out=ratios)

    def _check_parameters(self):
        if not isinstance(self.alpha, Real) or not 0 <= float(self.alpha) <= 1:
            raise ValueError(
                f"alpha={self.alpha!r} must lie between 0 (all weights one) and 1 (the "
                "plain ratio p_target / p_train). 0.5 suits most data."
            )
        for name in ("length_scale", "ridge"):
            value = getattr(self, name)
            positive = isinstance(value, Real) and 0 < float(value) < np.inf
            if not positive and not (isinstance(value, str) and value == "auto"):
                raise ValueError(
                    f"{name}={value!r} must be a positive number, or 'auto' to choose "
                    "it by cross-validation."
                )
        check_count("n_centers", self.n_centers, 1, "100 suits most data.")

    def _check_rows(self, X, name, reset=False):
        """Validated rows, float64; messages call them by `name`."""
        if X is None or np.shape(X)[:1] == (0,):
            raise ValueError(f"{name} has no rows: give at least 1.")
        rows = numbers_of(X, name, largest=np.finfo(np.float64).max)
        rows = check_array(rows, order="C", input_name=name)
        if not reset and rows.shape[1] != self.n_features_in_:
            raise ValueError(
                f"{name} has {rows.shape[1]} columns, but X_train has "
                f"{self.n_features_in_}. Give the same columns in the same order."
            )
        # Names of the columns are checked too; the values have been.
        validate_data(self, X, reset=reset, skip_check_array=True)
        return rows
