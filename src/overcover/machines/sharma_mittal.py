r"""The Sharma-Mittal Twin GP: Twin GPs with another divergence.

    X, Y -> metric -> partition -> cover -> [machines] -> routing -> combination
    -> prediction

With :math:`A = (1 - \alpha)(K_X + \lambda_X W^{-1}) + \alpha (K_Y + \lambda_Y W^{-1})`
and :math:`k = (1 - \alpha) k_X(x) + \alpha k_Y(y)`, the answer to a query minimises

.. math:: F(y) = \log c_{xy}(y) - \alpha \log c_y(y), \qquad
    c_{xy}(y) = (1 - \alpha)(1 + \lambda_X) + \alpha (1 + \lambda_Y) - k^\top A^{-1} k ,

:math:`c_y` as in a Twin GP. The divergence's second parameter, :math:`\beta`, rescales
it monotonically and does not move the minimum, so there is no such option. As
:math:`\alpha \to 0` it tends to `TwinGP`: what is minimised here is :math:`\eta F /
\alpha`, whose limit is the Twin GP's objective.

On the pivots of the output side (`twin_output`), :math:`k_Y(y) = B k_r(y)`, both
:math:`c` are quadratic in :math:`k_r`: with :math:`T = A^{-1} B`,

.. math:: c_{xy} = s - 2 \alpha (1 - \alpha) k_r^\top T^\top k_X(x)
    - \alpha^2 k_r^\top B^\top T k_r .
"""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import NamedTuple

import numpy as np

from .._linalg import (
    add_to_diagonal,
    cholesky,
    compiled_loosely,
    inverse_factor,
    pack_lower,
    packed_column_norms_sq,
    solve_cholesky,
)
from .._records import factor, finite, record, record_of
from . import twin_state
from .twin_gp import TwinGP
from .twin_objective import LEAST_C, TwinObjective
from .twin_search import NOBODY, TwinSearch


@record(
    **record_of(twin_state.TwinCore),
    mixed_factor=factor("P"),
    T=finite("n r"),
    mixed_C=finite("r r"),
)
class MixedCore(NamedTuple):
    """As `TwinCore`, and what queries see of the mixed kernel matrix A."""

    factor: np.ndarray
    readout: np.ndarray
    pivots: np.ndarray
    C: np.ndarray
    # packed inverse Cholesky factor of A, shape (packed_size(size),)
    mixed_factor: np.ndarray
    T: np.ndarray
    mixed_C: np.ndarray  # ``B^T T``, shape (r, r)


class MixedLooks(NamedTuple):
    """What queries, or rows left out, get from the mixed kernel matrix."""

    U: np.ndarray  # ``T^T k_X``, shape (n, r)
    explained: np.ndarray  # ``k_X^T A^-1 k_X``, shape (n,)
    # what a row left out takes back of A^-1, shape (n, r); (0, r) for queries
    taken: np.ndarray


@dataclass(eq=False, repr=False)
class SharmaMittalTwinGP(TwinGP):
    """Twin GP under a Sharma-Mittal divergence.

    Memory as a full model is O(n_samples^2).

    Parameters
    ----------
    alpha : float between 0 and 1, default=0.5
        How much the output kernel counts in the mixture; near 0 it is `TwinGP`.
    input_length_scale, output_length_scale, input_noise, output_noise
        As in `TwinGP`.
    self_noise, n_starts, rank, metric, keep_factors, random_state
        As in `TwinGP`.

    See Also
    --------
    TwinGP : has the same attributes.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import SharmaMittalTwinGP
    >>> X = np.linspace(0, 6, 60)[:, None]
    >>> model = SharmaMittalTwinGP(1.0, 1.0, 1e-3, 1e-3).fit(X, np.sin(X[:, 0]))
    >>> bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.01)
    True
    """

    description = TwinGP.description._replace(
        name="smtgp",
        help="a Twin GP under another divergence",
        parts={**TwinGP.description.parts, "core": MixedCore},
        removed=("beta",),
    )

    _: KW_ONLY
    alpha: float = 0.5

    def make_search(self):
        return MixedSearch(self)

    def check_options(self, n_features, n_outputs):
        if not isinstance(self.alpha, Real) or not 0 < float(self.alpha) < 1:
            raise ValueError(
                f"alpha={self.alpha!r} must be above 0 and below 1; near 0 it is a "
                "TwinGP."
            )
        return super().check_options(n_features, n_outputs)


class MixedSearch(TwinSearch):
    """The search of a Sharma-Mittal Twin GP."""

    def make_core(self, rows, left):
        scales, a = self.scales, self.machine.alpha
        outputs, taken = self.output_side(rows, left)
        core, looks = twin_state.core_on(rows, scales, outputs, taken, left)
        B = outputs.B if len(outputs.B) else np.eye(len(rows.Z))
        K_xx = rows.input_gram()
        K_xx = np.tril(K_xx) + np.tril(K_xx, -1).T
        mixed = (1.0 - a) * K_xx + a * rows.output_gram()
        noise = (1.0 - a) * scales.input_noise + a * scales.output_noise
        L, _ = cholesky(
            add_to_diagonal(mixed, noise / rows.weights), "The mixed kernel matrix"
        )
        T, L_inv = solve_cholesky(L, B), inverse_factor(L)
        mixed_core = MixedCore(
            **core._asdict(), mixed_factor=pack_lower(L_inv), T=T, mixed_C=B.T @ T
        )
        # Rows left out: k^T A^-1 k falls by (p_i^T k)^2 / p_ii, p_i a column of A^-1.
        columns = solve_cholesky(L, np.eye(len(rows.Z))[:, left])
        diagonal = columns[left, np.arange(len(left))]
        k_x = K_xx[:, left]
        back = np.einsum("ij,ij->j", columns, k_x)
        explained = np.einsum("ij,ij->j", k_x, solve_cholesky(L, k_x))
        U = k_x.T @ T - (back / diagonal)[:, None] * T[left]
        taken = T[left] / np.sqrt(diagonal)[:, None]
        mixed = MixedLooks(U, explained - back**2 / diagonal, taken)
        return mixed_core, looks._replace(mixed=mixed)

    def look(self, core, K_xq, Z):
        looks = twin_state.look(twin_state.TwinCore(*core[:4]), K_xq, Z)
        explained = packed_column_norms_sq(core.mixed_factor, K_xq)
        mixed = MixedLooks(K_xq.T @ core.T, explained, np.empty((0, core.T.shape[1])))
        return looks._replace(mixed=mixed)

    def objective(self, core, looks):
        scales, a = self.scales, self.machine.alpha
        own = (1.0 - a) * scales.own_input + a * scales.own_output
        own_left = own - (1.0 - a) ** 2 * looks.mixed.explained
        numbers = a, self.eta(looks), scales.own_output, own_left
        arrays = looks.mixed.U, looks.taken, looks.mixed.taken
        both_C = np.hstack([core.C, core.mixed_C])
        return TwinObjective(core.pivots, both_C, weigh_mixed, *numbers, *arrays)

    def answer_fresh(self, rows, X_query, kept=None, variance=False):
        core, _ = self.make_core(rows, NOBODY)  # nothing of the mixture could be kept
        looks = self.look(core, rows.similarities(X_query), rows.Z)
        noise = self.scales.input_noise
        L = twin_state.factorize_inputs(rows, noise) if variance else None
        return self.with_amplitude(core, looks, rows, L)


@compiled_loosely
def weigh_mixed(K, W, queries, a, eta, own, own_left, U, taken, mixed, values, sums):
    """``(eta / alpha) F``; `own` as in `twin_objective.weigh`, `own_left` is s."""
    n, r = K.shape
    for i in range(n):
        q = queries[i]
        k, v, m, u = K[i], W[i, :r], W[i, r:], U[q]
        linear = quadratic = mixed_quadratic = 0.0
        for j in range(r):
            linear += k[j] * u[j]
            quadratic += k[j] * v[j]
            mixed_quadratic += k[j] * m[j]
        back = mixed_back = 0.0
        if len(taken):
            b, t = taken[q], mixed[q]
            for j in range(r):
                back += b[j] * k[j]
                mixed_back += t[j] * k[j]
            for j in range(r):
                v[j] -= back * b[j]
                m[j] -= mixed_back * t[j]
        c_y = max(own - quadratic + back * back, LEAST_C)
        c_xy = own_left[q] - 2.0 * a * (1.0 - a) * linear
        c_xy = max(c_xy - a * a * (mixed_quadratic - mixed_back * mixed_back), LEAST_C)
        values[i] = eta[q] * (np.log(c_xy) / a - np.log(c_y))
        by_y, by_xy, total = 2.0 * eta[q] / c_y, 2.0 * eta[q] / c_xy, 0.0
        for j in range(r):
            slope = by_y * v[j] - by_xy * ((1.0 - a) * u[j] + a * m[j])
            v[j] = k[j] * slope
            total += v[j]
        sums[i] = total
