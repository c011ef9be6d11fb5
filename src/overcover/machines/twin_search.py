"""The search of a Twin GP: from hyperparameters and rows to the minima of queries.

Notation as in `overcover.machines.twin_gp`. The search knows nothing of states,
calibration or tuning: it takes rows in kernel units and gives points. It works from a
core that was precomputed (`points`), or from nothing (`answer_fresh`).
"""

import numpy as np

from .. import kernels
from .._linalg import solve_cholesky, solve_lower
from .._optimize import Minima, minimize_batch
from .._streams import center_of
from .._weights import evidence_of
from . import twin_state
from .base import Answer
from .twin_objective import TwinObjective, weigh
from .twin_output import make_output_side, solved_output_side
from .twin_state import MeasuredRows, TwinRows, finite

# A search ends where its next step is shorter than this share of the deviation of every
# output, and after so many evaluations; sooner while hyperparameters are tried.
PRECISION, TRIAL_PRECISION = (1e-3, 200), (1e-2, 40)
# Below this share of explained similarity, the answer moves towards the GP's.
TRUSTED = 0.5
# No answer is farther outside the range of a subdomain's outputs, in ranges: a kernel
# much wider than the outputs hardly holds them.
MARGIN = 0.5
NOBODY = np.empty(0, dtype=np.intp)


class TwinSearch:
    """Minima of a Twin GP's objective, under the hyperparameters of a machine.

    A relative of the Twin GP with another objective overrides `make_core`, `look`,
    `objective` and `answer_fresh`.
    """

    def __init__(self, machine):
        self.machine, self.scales = machine, machine._scales

    def rows(self, X, Y, sample_weight=None) -> TwinRows:
        """Rows of a subdomain, centred and divided by length scales."""
        weights = np.ones(len(X)) if sample_weight is None else sample_weight
        A = X / self.scales.inputs
        center = center_of(A)
        return self._rows(TwinRows, A - center, center, Y, weights)

    def measured_rows(self, Y, weights, distances) -> MeasuredRows:
        """Rows of a trial, with ``distances(side, unit)`` in place of inputs."""
        rows = self._rows(MeasuredRows, np.empty(0), np.empty(0), Y, weights)
        rows.distances = distances
        return rows

    def _rows(self, kind, A, center, Y, weights):
        scales, Y_mean = self.scales, np.average(Y, axis=0, weights=weights)
        Z = (Y - Y_mean) / scales.outputs
        return kind(A, center, Z, Y_mean, weights, scales.inputs, scales.outputs)

    def output_side(self, rows, left=()):
        """`make_output_side` of the rows."""
        known = rows.weights, self.machine.rank, left, rows.output_gram()
        return make_output_side(rows.Z, self.scales.output_noise, *known)

    def make_core(self, rows, left):
        """What queries look at, and `Looks` of rows that are left out one by one."""
        outputs, taken = self.output_side(rows, left)
        return twin_state.core_on(rows, self.scales, outputs, taken, left)

    def look(self, core, K_xq, Z):
        """`Looks` of queries, from their similarities to the rows."""
        return twin_state.look(core, K_xq, Z)

    def objective(self, core, looks):
        """The function that is minimised."""
        known = looks.U, self.eta(looks), self.scales.own_output, looks.taken
        return TwinObjective(core.pivots, core.C, weigh, *known)

    def eta(self, looks):
        """Posterior input variance with noise, shape (n,)."""
        return looks.unexplained + (self.scales.own_input - 1.0)

    def minimize(self, core, looks, deviations) -> Minima:
        """The lowest minimum of each query; deviations of outputs say how precise."""
        objective = self.objective(core, looks)
        share, most = self.machine._precision
        options = {"settled": share * deviations, "max_evaluations": most}
        best = minimize_batch(objective, looks.means, **options)
        if self.machine.n_starts == 1:
            return best
        other = minimize_batch(objective, looks.nearest, **options)
        n_evaluations = best.n_evaluations + other.n_evaluations
        lower = other.values < best.values
        for ours, theirs in zip(best, other):
            ours[lower] = theirs[lower]
        return best._replace(n_evaluations=n_evaluations)

    def points(self, core, looks, Z):
        """Minima, nearer to a GP's answer where rows explain little; (n, n_outputs)."""
        minima = self.minimize(core, looks, Z.std(axis=0)).points
        trust = np.clip((1.0 - looks.unexplained) / TRUSTED, 0.0, 1.0)[:, None]
        points = looks.means + trust * (minima - looks.means)
        low, high = Z.min(axis=0), Z.max(axis=0)
        margin = MARGIN * (high - low)
        return np.clip(points, low - margin, high + margin)

    def leave_out(self, rows, left, groups=None):
        """The core of all rows; points and etas of rows left out alone or in groups."""
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

    def answer_fresh(self, rows, X_query, kept=None, variance=False) -> Answer:
        """Answer a few queries where nothing has been precomputed.

        ``kept(key, make)`` gives what it gave before for that key, or ``make()``.
        Without it the search solves instead of inverting, which for one query is
        quicker. Variances are not calibrated.
        """
        noise, output_noise = self.scales.input_noise, self.scales.output_noise
        if kept is None:
            outputs = solved_output_side(rows.Z, output_noise, rows.weights)
            L = twin_state.factorize_inputs(rows, noise)
            K_xq = rows.similarities(X_query)
            u = solve_cholesky(L, K_xq)
        else:
            inputs = ("inputs", self.scales.inputs.tobytes(), noise)
            key = "outputs", self.scales.outputs.tobytes(), output_noise
            L = kept(inputs, lambda: twin_state.factorize_inputs(rows, noise))
            outputs = kept(key, lambda: self.output_side(rows)[0])
            K_xq = rows.similarities(X_query)
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
