r"""Structured predictors on nearest neighbours: weighted kNN, HSIC and KTA.

The nearest rows of a query determine its output y, all columns together; see
docs/methods.md. With Gaussian kernels :math:`k_X, k_Y`, "hsic" maximises
:math:`\sum_i a_i k_Y(y, y_i)`, a the query's column of the centred input kernel matrix,
and "kta" the alignment of both matrices with the query in them,

.. math:: \frac{c_0 + 2 \sum_i k_X(x, x_i) k_Y(y, y_i)}
    {\sqrt{c_1 + 2 \sum_i k_Y(y, y_i)^2}}, \qquad
    c_0 = 1 + \langle K_X, K_Y \rangle, \quad c_1 = 1 + \lVert K_Y \rVert^2 .
"""

from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .. import combination
from .._neighbors import BruteIndex
from .._optimize import minimize_batch
from .._parallel import one_thread_per_worker
from .._streams import FARTHEST, center_of, typical_moments_of
from .._validation import (
    all_or_nothing,
    are_scales,
    as_training_shape,
    check_queries,
    check_training_data,
)
from ._shared import Options, in_chunks

METHODS = ("knn", "hsic", "kta")
# Similarities, or offsets of outputs, in memory per worker: 32 MB.
BLOCK_VALUES = 2**22
# Candidates for "auto" length scales, in multiples of a typical distance between two
# rows; held-out rows decide. Neighbours are much nearer than typical rows.
FACTORS = (0.02, 0.06, 0.2, 0.6, 1.8)
N_HELD_OUT = 200
# Margin of predictions around the range of the neighbours' outputs, in ranges.
MARGIN = 0.5


@dataclass(eq=False, repr=False)
class StructuredNeighbors(Options, MultiOutputMixin, RegressorMixin, BaseEstimator):
    """An output that agrees with the query's nearest rows, all columns together.

    Baselines for comparisons with `overcover.TwinGP`; `overcover.baselines.structured`
    has the formulas. "knn" is fast, and accurate if there are many rows. The paper also
    compares with the other two.

    Parameters
    ----------
    method : {"knn", "hsic", "kta"}, default="knn"
    n_neighbors : int, default=25
        Number of neighbours; all rows if there are fewer.
    input_length_scale : "auto", float or array-like of shape (n_features,)
        In units of the inputs. For "knn", only ratios between columns matter.
    output_length_scale : "auto", float or array-like of shape (n_outputs,)
        In units of the outputs; no effect on "knn".
    n_jobs, random_state
        As in `overcover.OverlappingCoverRegressor`.

    Attributes
    ----------
    input_length_scale_, output_length_scale_ : ndarray

    Examples
    --------
    >>> import numpy as np
    >>> from overcover.baselines import StructuredNeighbors
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = StructuredNeighbors("hsic").fit(X, np.hstack([np.sin(X), np.cos(X)]))
    >>> bool(np.abs(model.predict([[1.0]]) - [np.sin(1), np.cos(1)]).max() < 0.1)
    True
    """

    counts, choices = {"n_neighbors": 1}, {"method": METHODS}
    method: str = "knn"
    _: KW_ONLY
    n_neighbors: int = 25
    input_length_scale: Any = "auto"
    output_length_scale: Any = "auto"
    n_jobs: Any = None
    random_state: Any = None

    @all_or_nothing
    @one_thread_per_worker()
    def fit(self, X, y):
        """Store the rows, and learn length scales; shapes as in scikit-learn."""
        X, Y, *_ = check_training_data(self, X, y)
        self._check_options(X.shape[1])
        self._X_mean, self._Y_mean = center_of(X), Y.mean(axis=0)
        X, Y = X - self._X_mean, Y - self._Y_mean
        self._tune(X, Y, check_random_state(self.random_state))
        self._A, self._Z = X / self.input_length_scale_, Y / self.output_length_scale_
        return self

    def predict(self, X):
        """Outputs of new rows X, in the shape that y had in `fit`."""
        check_is_fitted(self)
        X = check_queries(self, X).astype(np.float64) - self._X_mean
        rows = np.clip(X / self.input_length_scale_, -FARTHEST, FARTHEST)
        points = self._answer(self._A, self._Z, rows)
        scales = self.output_length_scale_
        offsets = points * np.where(np.isfinite(scales), scales, 0.0)
        return as_training_shape(self, self._Y_mean + offsets)

    def _answer(self, A, Z, B):
        """Outputs of queries B, in kernel units, in blocks of bounded memory."""
        n_near = min(self.n_neighbors, len(A))
        widest = max(len(A), n_near * max(Z.shape[1], A.shape[1], n_near))
        step = max(1, BLOCK_VALUES // widest)
        index = BruteIndex(A)

        def answer_some(queries):
            near = index.nearest(queries, n_near)
            return (answer(self.method, A[near], Z[near], queries),)

        return in_chunks(answer_some, B, step, self.n_jobs)[0]

    def _tune(self, X, Y, rng):
        """Fixed scales, or the multiples of typical distances that predict best."""
        scales = self.input_length_scale, self.output_length_scale
        unit_x, unit_y = unit(X, scales[0]), unit(Y, scales[1])
        is_free = [isinstance(s, str) and self.method != "knn" for s in scales]
        factors = (FACTORS if free else (1.0,) for free in is_free)
        held = rng.permutation(len(X))[: min(N_HELD_OUT, len(X) // 4)]
        rest = np.setdiff1d(np.arange(len(X)), held)
        best = (np.inf, 1.0, 1.0)
        for f, g in product(*factors) if len(held) and any(is_free) else ():
            A, Z = X / (f * unit_x), Y / (g * unit_y)
            offset = self._answer(A[rest], Z[rest], A[held]) - Z[held]
            best = min(best, (float(np.mean((g * offset) ** 2)), f, g))
        self.input_length_scale_ = best[1] * unit_x
        self.output_length_scale_ = best[2] * unit_y

    def _check_options(self, n_features):
        super()._check_options(n_features)
        for kind, n in (("input", n_features), ("output", self.n_outputs_)):
            name = f"{kind}_length_scale"
            value = getattr(self, name)
            is_auto = isinstance(value, str) and value == "auto"
            if not is_auto and not are_scales(value, n):
                raise ValueError(
                    f"{name}={value!r} must be 'auto', a positive number, or one for "
                    f"each of the {n} columns."
                )


def unit(columns, scale):
    """A length scale per column: `scale`, or for "auto" a typical distance."""
    deviation = columns.std(axis=0)
    constant = deviation <= 1e-12 * np.abs(columns).max(axis=0, initial=0.0)
    if not isinstance(scale, str):
        return np.where(constant, np.inf, np.broadcast_to(scale, deviation.shape))
    without_far = typical_moments_of(columns).deviation
    deviation = np.where(without_far < 0.5 * deviation, without_far, deviation)
    typical = np.sqrt(max(1, np.sum(~constant)))
    return np.where(constant, np.inf, deviation * typical)


def answer(method, A, Z, B):
    """Outputs of queries B from those Z of their neighbours A, in kernel units."""
    dist_sq = np.sum((A - B[:, None]) ** 2, axis=2)
    weights = combination.weights_of("inverse-distance", dist_sq)[..., 0]
    start = np.einsum("qi,qio->qo", weights, Z)
    if method == "knn":
        return start
    k_x = np.exp(-0.5 * dist_sq)
    K_xx = np.exp(-0.5 * pairwise_sq(A))
    if method == "hsic":
        objective = hsic(Z, centered_column(K_xx, k_x))
    else:
        K_yy = np.exp(-0.5 * pairwise_sq(Z))
        c_0 = 1.0 + np.sum(K_xx * K_yy, axis=(1, 2))
        c_1 = 1.0 + np.sum(K_yy**2, axis=(1, 2))
        objective = kta(Z, k_x, c_0, c_1)
    points = minimize_batch(objective, start).points
    # If the kernel is wider than the outputs, the optimum may lie arbitrarily far away,
    # where rows with a negative weight have no effect.
    low, high = Z.min(axis=1), Z.max(axis=1)
    margin = MARGIN * (high - low)
    return np.clip(points, low - margin, high + margin)


def pairwise_sq(A):
    """Squared distances within each set, shape (n_queries, n, n)."""
    A = A - A.mean(axis=1, keepdims=True)
    norms = np.einsum("qif,qif->qi", A, A)
    dist_sq = norms[:, :, None] + norms[:, None, :] - 2.0 * A @ A.transpose(0, 2, 1)
    return np.maximum(dist_sq, 0.0)


def centered_column(K_xx, k_x):
    """The query's column of the doubly centred joint matrix, over the neighbours."""
    n = k_x.shape[1] + 1
    of_rows = (K_xx.sum(axis=2) + k_x) / n
    of_query = (k_x.sum(axis=1) + 1.0) / n
    of_all = (of_rows.sum(axis=1) + of_query) / n
    return k_x - of_rows - of_query[:, None] + of_all[:, None]


def on_neighbors(Z, of_similarities):
    """An objective, for `minimize_batch`, of similarities to a query's neighbours."""

    def objective(points, queries):
        offset = Z[queries] - points[:, None]
        k = np.exp(-0.5 * np.einsum("qio,qio->qi", offset, offset))
        values, slopes = of_similarities(k, queries)
        return values, np.einsum("qi,qio->qo", k * slopes, offset)

    return objective


def hsic(Z, a):
    """Minus the dependence that an output adds, up to a factor."""
    # Normalised, so that gradients are of order one for any width of the kernel.
    a = a / np.maximum(np.abs(a).sum(axis=1, keepdims=True), 1e-300)
    return on_neighbors(Z, lambda k, q: (-np.sum(a[q] * k, axis=1), -a[q]))


def kta(Z, k_x, c_0, c_1):
    """Minus the alignment of both kernel matrices, up to a factor."""

    def of_similarities(k, q):
        above = 0.5 * c_0[q] + np.sum(k_x[q] * k, axis=1)
        below = np.sqrt(1.0 + 2.0 * np.sum(k * k, axis=1) / c_1[q])
        slopes = k_x[q] / below[:, None]
        slopes -= k * (2.0 * above / (below**3 * c_1[q]))[:, None]
        return -above / below, -slopes

    return on_neighbors(Z, of_similarities)
