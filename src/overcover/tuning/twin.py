r"""Hyperparameters "auto" of Twin GPs: held-out error, searched along a ridge.

    X, Y -> [metric] -> partition -> cover -> machines -> routing -> combination
    -> prediction

Nothing but the error of predictions tells good values from bad ones, and good ones lie
on a narrow ridge, where :math:`K_X` and :math:`K_Y` resemble each other. So

1. *ridge*: for inputs in column deviations, as they are, and in the length scales that
   a GP finds for every column, and a few multiples :math:`\rho_X` of each: the
   :math:`\rho_Y` that maximises the centred alignment :math:`\langle K_X, K_Y \rangle
   / (\lVert K_X \rVert \lVert K_Y \rVert)`, which needs no prediction;
2. *coarse*: the error there, for a few noises, outputs in deviations and as they are;
3. *fine*: from the best, steps along and across the ridge and in both noises, halved
   twice, while the error falls.

The error is that of Twin GPs on neighbourhoods as large as a subdomain, or of rows left
out one by one where there are few (`overcover.tuning._twin_sets`). Factorised sides are
kept, so a grid costs little more than its searches. The number of trials is bounded,
and none grows with the number of rows.

Rows held out in runs can be farther from the rest than rows left out one by one, which
standard deviations are made from: by how much these are too small is measured too.
"""

from typing import NamedTuple

import numpy as np

from .._parallel import run_tasks
from .._streams import moments_of, typical_moments_of
from ..metrics import angle_differences, joint_distances
from ._problem import MOST_SCALES, standardize
from ._search import by_likelihood, by_prediction
from ._twin_sets import make_sets, median_distance

METRICS = ("rmse", "joint", "angle")
# Multiples of the median distance between the rows of a set.
INPUT_FACTORS = (0.5, 1.0, 2.0, 4.0)
OUTPUT_FACTORS = tuple(2.0 ** (0.5 * k) for k in range(-4, 9))
NOISES = ((1e-3, 1e-3), (1e-2, 1e-2), (1e-2, 1e-1), (1e-3, 1e-1), (1e-4, 1e-4))
FACTOR_BOUNDS, NOISE_BOUNDS = (1e-2, 1e3), (1e-6, 1.0)
# Steps of the refinement in (rho_X, rho_Y, lambda_X, lambda_Y): factors of two for the
# scales, of ten for the noises.
MOVES = (
    *((1, 1, 0, 0), (1, 0, 0, 0), (0, 1, 0, 0)),
    *((0, 0, 1, 0), (0, 0, 0, 1), (0, 0, 1, 1), (1, 1, 1, 1)),
)
MOST_ROUNDS = 4
# The ridge, and four times its output scale: few outputs that noise hardly touches want
# a kernel that is wide.
WIDER = (0, 2)
# An input metric with more than this times the least error is given up.
FAR_BEHIND = 1.15
# Sets on which every point is tried, and the error there, in multiples of the least of
# the same metric, with which it is not tried on the others.
N_FIRST, BEHIND = 3, 1.01
# Variances are checked on so many sets of each of some draws of runs to hold out: which
# runs these are matters more than the number of sets.
N_DRAWS, N_FRESH, LONG_RUN = 3, 4, 64
# An error must fall by this share to be worth a step.
LEAST_GAIN = 2e-3


class Scales(NamedTuple):
    """The hyperparameters of a Twin GP; scales are infinite for an ignored column."""

    inputs: np.ndarray
    outputs: np.ndarray
    input_noise: float
    output_noise: float
    # whether noise counts in the similarity of a query, and an output, to itself
    self_noise: bool

    @property
    def own_input(self):
        """Similarity of a query to itself."""
        return 1.0 + self.input_noise if self.self_noise else 1.0

    @property
    def own_output(self):
        """Similarity of an output to itself."""
        return 1.0 + self.output_noise if self.self_noise else 1.0


class TunedTwin(NamedTuple):
    """The best hyperparameters; all trials; and the factor that variances lack."""

    scales: Scales
    scores: list[dict]
    inflation: float


class Point(NamedTuple):
    """A place in the search: units of both sides, multiples of them, noises."""

    inputs: str
    outputs: str
    input_factor: float
    output_factor: float
    input_noise: float
    output_noise: float


def tune(
    machine, X, Y, weights, subdomain_size, random_state, n_jobs=None, groups=None
) -> TunedTwin:
    """Find length scales and noises; parameters as in `Machine.tune`."""
    space = Space(machine, X, Y, weights, random_state, n_jobs)
    if not space.is_free() or len(X) < 3:
        return TunedTwin(space.scales(space.start), [], 1.0)
    weights = np.ones(len(X)) if weights is None else weights
    options = subdomain_size, random_state, n_jobs
    sets = make_sets(X, Y, weights, space.inputs, *options, groups)
    space.measure(sets)
    trials = Trials(space, sets, machine, Y, n_jobs)
    coarse(trials, space)
    fine(trials, space)
    best = trials.best()
    scales = space.scales(best)
    # On rows that did not choose the hyperparameters, held out in longer runs.
    chosen = {best.inputs: space.inputs[best.inputs]}
    runs = groups, N_FRESH, max(1, min(LONG_RUN, len(X) // 30))
    fresh = []
    for _ in range(N_DRAWS):
        fresh += make_sets(X, Y, weights, chosen, *options, *runs)[best.inputs]
    inflation = variance_inflation(machine.with_scales(scales), fresh)
    return TunedTwin(scales, trials.scores(), inflation)


def variance_inflation(machine, sets):
    """How far variances made by leaving rows out fall short on rows held out in runs.

    The factor that makes nominal 95 % intervals hold 95 % of all outputs together; it
    is at least one.
    """
    widths = [local.excess(machine, 0.95) for local in sets]
    excess = np.concatenate([width.ravel() for width in widths])
    if not len(excess):
        return 1.0
    return float(max(1.0, np.quantile(excess, 0.95)) ** 2)


def coarse(trials, space):
    """Try the ridge and its wide side, then noises and units of the outputs."""
    ridge = space.ridge(trials.sets)
    trials.run([space.moved(p, (0, wide, 0, 0)) for p in ridge for wide in WIDER])
    for name in space.inputs:
        best = trials.best(name)
        trials.run([space.moved(best, noises=noises) for noises in NOISES])
        best, local = trials.best(name), trials.sets[name][0]
        trials.run(
            [space.in_other_units(best, other, local) for other in space.outputs]
        )


def fine(trials, space):
    """Large steps from the best of every input metric not far behind, then smaller."""
    for name in space.inputs:
        best = trials.errors[trials.best()]
        if trials.errors[trials.best(name)] < FAR_BEHIND * best:
            descend(trials, space, 1.0, name)
    for size in (0.5, 0.25):
        descend(trials, space, size)


def descend(trials, space, size, name=None):
    """Steps of one size around the best, while its error falls."""
    for _ in range(MOST_ROUNDS):
        best = trials.best(name)
        before = trials.errors[best]
        signed = [size * sign * np.array(m) for m in MOVES for sign in (1, -1)]
        trials.run([space.moved(best, step) for step in signed])
        if trials.errors[trials.best(name)] > (1.0 - LEAST_GAIN) * before:
            break


class Space:
    """From points to hyperparameters; what the user has fixed stays as it is.

    Units of both sides, by name, are infinite for a constant column.
    """

    def __init__(self, machine, X, Y, weights, random_state, n_jobs):
        given = (machine.input_length_scale, machine.output_length_scale)
        noises = (machine.input_noise, machine.output_noise)
        self.free = tuple(isinstance(value, str) for value in (*given, *noises))
        self.self_noise = machine.self_noise
        self.inputs, self.outputs = units(X), units(Y, moments_of)
        if not self.free[0]:
            self.inputs = {"given": np.full(X.shape[1], given[0], dtype=float)}
        if not self.free[1]:
            # A constant output has nothing to say, whatever scale it was given.
            is_constant = np.isinf(self.outputs["plain"])
            self.outputs = {"given": np.where(is_constant, np.inf, given[1])}
        if self.free[0] and self.is_free():
            scales = relevant_scales(X, Y, weights, random_state, n_jobs)
            self.inputs |= {} if scales is None else {"relevance": scales}
        units_of_both = next(iter(self.inputs)), next(iter(self.outputs))
        starts = (1e-3 if isinstance(noise, str) else float(noise) for noise in noises)
        self.start = Point(*units_of_both, 1.0, 1.0, *starts)

    def is_free(self):
        """Whether there is anything to find."""
        sides = (self.inputs, self.outputs)
        varies = [np.isfinite(next(iter(side.values()))).any() for side in sides]
        return any(self.free) and all(varies)

    def measure(self, sets):
        """Units such that the median distance between rows of a set is one."""
        for name in self.inputs if self.free[0] else ():
            self.inputs[name] *= median_distance(sets[name][0].X, self.inputs[name])
        some = next(iter(sets.values()))[0]
        for name in self.outputs if self.free[1] else ():
            self.outputs[name] *= median_distance(some.Y, self.outputs[name])

    def scales(self, point) -> Scales:
        """Hyperparameters at a point."""
        return Scales(
            self.inputs[point.inputs] * point.input_factor,
            self.outputs[point.outputs] * point.output_factor,
            point.input_noise,
            point.output_noise,
            self.self_noise,
        )

    def moved(self, point, step=(0, 0, 0, 0), noises=None):
        """The point a step away, or with other noises; what is fixed does not move."""
        if noises is None:
            noises = (point.input_noise, point.output_noise)
        factors = (point.input_factor, point.output_factor)
        moved = [f * 2.0**s for f, s in zip(factors, step[:2])]
        moved += [n * 10.0**s for n, s in zip(noises, step[2:])]
        bounds = (FACTOR_BOUNDS, FACTOR_BOUNDS, NOISE_BOUNDS, NOISE_BOUNDS)
        places = zip(Point._fields[2:], moved, bounds, self.free)
        changed = {
            name: float(f"{np.clip(value, *bound):.6g}")
            for name, value, bound, is_free in places
            if is_free
        }
        return point._replace(**changed)

    def ridge(self, sets):
        """For every input scale the output scale most alike; a list of points."""
        factors = INPUT_FACTORS if self.free[0] else (1.0,)
        starts = [
            self.start._replace(inputs=name, input_factor=factor)
            for name in self.inputs
            for factor in factors
        ]
        return [self._most_alike(start, sets[start.inputs][0]) for start in starts]

    def in_other_units(self, point, outputs, local):
        """The place on the ridge with outputs in other units, as far off as before."""
        off = point.output_factor / self._most_alike(point, local).output_factor
        other = self._most_alike(point._replace(outputs=outputs), local)
        return other._replace(output_factor=float(f"{other.output_factor * off:.6g}"))

    def _most_alike(self, point, local):
        if not self.free[1]:
            return point
        tried = [point._replace(output_factor=f) for f in OUTPUT_FACTORS]
        alike = [local.alignment(self.scales(p)) for p in tried]
        return tried[int(np.argmax(alike))]


class Trials:
    """Held-out errors of points, each tried once."""

    def __init__(self, space, sets, machine, Y, n_jobs):
        self.space, self.sets, self.n_jobs = space, sets, n_jobs
        self.metric = metric_of(machine.metric, Y)
        self.machine = machine
        self.errors: dict[Point, float] = {}
        self.early: dict[Point, float] = {}

    def run(self, points):
        """Try all that are new on a few sets, and on the others what does well there.

        The rest counts as far behind the best of its metric as it was on the first.
        """
        new = [p for p in dict.fromkeys(points) if p not in self.errors]
        self.early |= zip(new, self._mean_errors(new, slice(N_FIRST)))
        early: dict[Point, float] = self.early
        ahead: dict[str, Point] = {}
        for p in early:
            if p.inputs not in ahead or early[p] < early[ahead[p.inputs]]:
                ahead[p.inputs] = p
        chosen = [p for p in new if early[p] <= BEHIND * early[ahead[p.inputs]]]
        n_sets = len(next(iter(self.sets.values())))
        share = max(0, n_sets - N_FIRST) / n_sets
        late = [0.0] * len(chosen)
        if share:
            late = self._mean_errors(chosen, slice(N_FIRST, None))
        for p, error in zip(chosen, late):
            self.errors[p] = (1.0 - share) * early[p] + share * error
        for p in (p for p in new if p not in self.errors):
            other = ahead[p.inputs]
            self.errors[p] = self.errors[other] + early[p] - early[other]

    def _mean_errors(self, points, which):
        """Mean errors on some of the sets, set by set: a set keeps its factors."""
        n_sets = len(next(iter(self.sets.values()))[which])
        tasks = [
            (self.sets[p.inputs][which][k], p) for k in range(n_sets) for p in points
        ]
        errors = list(run_tasks(self._try, tasks, self.n_jobs))
        return np.reshape(errors, (n_sets, -1)).mean(axis=0).tolist()

    def _try(self, local, point):
        machine = self.machine.with_scales(self.space.scales(point))
        try:
            return local.error(machine, self.metric)
        except np.linalg.LinAlgError:
            return np.inf  # not positive definite: not a place to be

    def ranked(self):
        """Points, the best first; the first tried wins ties."""
        return sorted(self.errors, key=self.errors.__getitem__)

    def best(self, inputs=None):
        """The point with the least error, of all or of one input metric."""
        return next(p for p in self.ranked() if inputs in (None, p.inputs))

    def scores(self):
        """Points and their errors, the best first."""
        return [p._asdict() | {"error": self.errors[p]} for p in self.ranked()]


def units(columns, measure=typical_moments_of):
    """Column deviations, and one unit for all; infinite for a constant column."""
    _, deviation, constant = measure(columns)
    deviation = np.where(constant, np.inf, deviation)
    typical = np.sqrt(np.mean(deviation[~constant] ** 2)) if not constant.all() else 1.0
    return {"deviation": deviation, "plain": np.where(constant, np.inf, typical)}


def relevant_scales(X, Y, weights, random_state, n_jobs):
    """A length scale for every column, as a GP finds them; None if there is no use."""
    if not 1 < X.shape[1] <= MOST_SCALES:
        return None
    theta, everyone = np.full(X.shape[1] + 1, np.nan), [np.arange(len(X))]
    problem, start, restore = standardize("rbf", X, Y, weights, theta, n_jobs)
    if problem.free[:-1].sum() < 2:
        return None
    if len(X) <= 1000:
        start = by_likelihood(problem, start, everyone, 10, tied=True)
        theta = by_likelihood(problem, start, everyone, 30)
    else:
        theta = by_prediction(problem, start, random_state)
    return np.exp(restore(theta)[:-1])


def metric_of(metric, Y):
    """``metric(Y_true, Y_predicted, weights)``; errors of "rmse" in deviations of Y."""
    _, deviation, constant = moments_of(Y)
    varies = ~constant

    def rmse(truth, predicted, weights):
        z = (predicted - truth)[:, varies] / deviation[varies]
        return np.sqrt(np.average(z**2, axis=0, weights=weights)).mean()

    def mean_of(truth, predicted, weights):
        each = {"joint": joint_distances, "angle": angle_differences}[metric]
        return np.average(each(truth, predicted).mean(axis=1), weights=weights)

    if callable(metric):
        return lambda truth, predicted, weights: float(metric(truth, predicted))
    return rmse if metric == "rmse" else mean_of
