"""The search of a Twin GP: from hyperparameters and rows to the minima of queries.

Notation as in `overcover.machines.twin_gp`. The search knows nothing of states,
calibration or tuning: it takes rows in kernel units and gives points. It works from a
core that was precomputed (`points`), or from nothing (`answer_fresh`).
"""

import numpy as np

from .. import kernels
from .._linalg import solve_cholesky, solve_lower
from .._optimize import Minima, minimize_batch
from .._weights import evidence_of
from ..tuning.twin import Scales
from . import twin_state
from .base import Answer
from .twin_objective import TwinObjective
from .twin_output import solved_output_side
from .twin_state import MeasuredRows, finite

# A search ends where its next step is shorter than this share of the deviation of every
# output, and after so many evaluations; sooner while hyperparameters are tried.
PRECISION, TRIAL_PRECISION = (1e-3, 200), (1e-2, 40)
# Below this share of explained similarity, the answer moves towards the GP's.
TRUSTED = 0.5
# No answer is farther outside the range of a subdomain's outputs, in ranges: a kernel
# much wider than the outputs hardly holds them.
MARGIN = 0.5
NOBODY = np.empty(0, dtype=np.intp)


def keep_nothing(key, make):
    """Compute it again; see `TwinSearch.answer_fresh`."""
    return make()


class TwinSearch:
    """Minima of a Twin GP's objective, for one choice of hyperparameters.

    A relative of the Twin GP with another objective overrides `make_core`, `look`,
    `objective` and `answer_fresh`. `precision` is as `PRECISION`.
    """

    def __init__(self, scales: Scales, rank, n_starts, precision=PRECISION):
        self.scales, self.rank = scales, rank
        self.n_starts, self.precision = n_starts, precision

    def rows(self, X, Y, weights):
        """Rows of a subdomain, centred and divided by length scales."""
        return twin_state.make_rows(X, Y, weights, self.scales)

    def measured_rows(self, Y, weights, distances) -> MeasuredRows:
        """Rows of a trial, with ``distances(side, unit)`` in place of inputs."""
        scales, Y_mean = self.scales, np.average(Y, axis=0, weights=weights)
        Z, nothing = (Y - Y_mean) / scales.outputs, np.empty(0)
        ends = weights, scales.inputs, scales.outputs
        rows = MeasuredRows(nothing, nothing, Z, Y_mean, *ends)
        rows.distances = distances
        return rows

    def make_core(self, rows, left):
        """What queries look at, and `Looks` of rows that are left out one by one."""
        outputs, taken = twin_state.output_side(rows, self.scales, self.rank, left)
        return twin_state.core_on(rows, self.scales, outputs, taken, left)

    def look(self, core, K_xq, Z):
        """`Looks` of queries, from their similarities to the rows."""
        return twin_state.look(core, K_xq, Z)

    def objective(self, core, looks):
        """The function that is minimised."""
        own, eta = self.scales.own_output, self.eta(looks)
        return TwinObjective(core.pivots, core.C, looks.U, eta, own, looks.taken)

    def eta(self, looks):
        """Posterior input variance with noise, shape (n,)."""
        return looks.unexplained + (self.scales.own_input - 1.0)

    def minimize(self, core, looks, deviations) -> Minima:
        """The lowest minimum of each query, from one start or two.

        `deviations` of the rows' outputs, shape (n_outputs,), say when it is settled.
        """
        objective = self.objective(core, looks)
        share, most = self.precision
        options = {"settled": share * deviations, "max_evaluations": most}
        best = minimize_batch(objective, looks.means, **options)
        if self.n_starts == 1:
            return best
        other = minimize_batch(objective, looks.nearest, **options)
        n_evaluations = best.n_evaluations + other.n_evaluations
        lower = other.values < best.values
        for ours, theirs in zip(best, other):
            ours[lower] = theirs[lower]
        return best._replace(n_evaluations=n_evaluations)

    def points(self, core, looks, Z):
        """Answers in kernel units, shape (n, n_outputs).

        Minima, moved towards the answer of a GP where the rows explain little, and
        kept near the outputs of the rows.
        """
        minima = self.minimize(core, looks, Z.std(axis=0)).points
        trust = np.clip((1.0 - looks.unexplained) / TRUSTED, 0.0, 1.0)[:, None]
        points = looks.means + trust * (minima - looks.means)
        low, high = Z.min(axis=0), Z.max(axis=0)
        margin = MARGIN * (high - low)
        return np.clip(points, low - margin, high + margin)

    def leave_out(self, rows, left, groups=None):
        """The core of all rows, and the answers to some from a core without them.

        Parameters
        ----------
        rows : TwinRows
        left : ndarray of int of shape (n_left,)
            Left out one by one, in closed form.
        groups : ndarray of int of shape (size,) or None
            Rows of a group are left out together, which takes a core of the others.

        Returns
        -------
        core : TwinCore
        points : ndarray of shape (n_left, n_outputs)
            In kernel units.
        eta : ndarray of shape (n_left,)
        """
        if groups is None:
            core, looks = self.make_core(rows, left)
            # One row alone, left out, leaves nothing to learn from.
            is_alone = len(rows.Z) == 1
            points = rows.Z[left] if is_alone else self.points(core, looks, rows.Z)
            return core, points, self.eta(looks)
        points, eta = np.empty((len(left), rows.Z.shape[1])), np.empty(len(left))
        for group in np.unique(groups[left]):
            is_out, kept = groups[left] == group, groups != group
            A, Z = rows.A[kept], rows.Z[kept]
            rest = rows._replace(A=A, Z=Z, weights=rows.weights[kept])
            core, _ = self.make_core(rest, NOBODY)
            K_xq = kernels.cross("rbf", A, rows.A[left[is_out]])
            looks = self.look(core, K_xq, Z)
            points[is_out], eta[is_out] = self.points(core, looks, Z), self.eta(looks)
        return self.make_core(rows, NOBODY)[0], points, eta

    def answer_fresh(
        self, rows, X_query, kept=keep_nothing, solve=False, variance=False
    ) -> Answer:
        """Answer a few queries where nothing has been precomputed.

        Parameters
        ----------
        rows : TwinRows
        X_query : ndarray of shape (n_queries, n_features)
        kept : callable
            ``kept(key, make)`` gives ``make()``, or what it gave before for that key:
            a grid of hyperparameters, for the same rows and queries, factorises each
            side once.
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
        noise, output_noise = self.scales.input_noise, self.scales.output_noise
        inputs = ("inputs", self.scales.inputs.tobytes(), noise)
        L = kept(inputs, lambda: twin_state.factorize_inputs(rows, noise))

        def make_outputs():
            if solve:
                return solved_output_side(rows.Z, output_noise, rows.weights)
            return twin_state.output_side(rows, self.scales, self.rank)[0]

        key = "outputs", self.scales.outputs.tobytes(), output_noise
        outputs, K_xq = kept(key, make_outputs), rows.similarities(X_query)
        u = kept((*inputs, "u"), lambda: solve_cholesky(L, K_xq))
        looks = twin_state.look_fresh(K_xq, u, rows.Z, outputs)
        core = twin_state.TwinCore(L, u, outputs.pivots, outputs.C)
        return self.with_amplitude(core, looks, rows, L if variance else None)

    def with_amplitude(self, core, looks, rows, L) -> Answer:
        """Answers, with a variance that is not calibrated unless L is None."""
        mean = rows.back(self.points(core, looks, rows.Z))
        if L is None:
            return Answer(mean, None, None)
        z_y, eta = solve_lower(L, rows.Z * finite(rows.output_scales)), self.eta(looks)
        amplitude_sq = np.einsum("ij,ij->j", z_y, z_y) / evidence_of(rows.weights).sum()
        return Answer(mean, np.outer(eta, amplitude_sq), eta)
