"""Many minimisations at once find what each would find alone."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize, rosen, rosen_der

from overcover._optimize import minimize_batch

STARTS = np.array([[-1.2, 1.0], [2.0, 2.0], [0.0, 0.0], [-0.5, 2.5], [1.5, -1.0]])


class Bowls:
    """A quadratic per problem, ``(x - c)^T H (x - c) / 2 + shift``."""

    def __init__(self, seed, n_problems, n_variables, spread=1.0):
        rng = np.random.default_rng(seed)
        Q = np.linalg.qr(rng.normal(size=(n_problems, n_variables, n_variables)))[0]
        bends = 10.0 ** rng.uniform(-spread, spread, (n_problems, n_variables))
        self.H = np.einsum("nij,nj,nkj->nik", Q, bends, Q)
        self.centers = rng.uniform(-2, 2, (n_problems, n_variables))
        self.shifts = rng.normal(size=n_problems)
        self.starts = rng.uniform(-2, 2, (n_problems, n_variables))

    def __call__(self, points, problems):
        offsets = points - self.centers[problems]
        gradients = np.einsum("nij,nj->ni", self.H[problems], offsets)
        values = 0.5 * np.einsum("ni,ni->n", offsets, gradients)
        return values + self.shifts[problems], gradients


def rosenbrock(points, problems):
    return np.array([rosen(p) for p in points]), np.array(
        [rosen_der(p) for p in points]
    )


def scipy_minimum(objective, start, problem, method="L-BFGS-B"):
    """What scipy finds for one problem alone."""
    which = np.array([problem])

    def one(point):
        values, gradients = objective(point[None], which)
        return values[0], gradients[0]

    options = {"gtol": 1e-7}
    if method == "L-BFGS-B":
        options = {"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9}
    return minimize(one, start, jac=True, method=method, options=options)


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 6))
def test_minima_of_quadratics_are_found(seed, n_problems, n_variables):
    bowls = Bowls(seed, n_problems, n_variables)
    found = minimize_batch(bowls, bowls.starts, max_evaluations=1000)
    assert found.converged.all()
    # The last step is unseen, so the value is that of a gradient of 1e-7.
    assert_allclose(found.values, bowls.shifts, atol=1e-12)
    assert_allclose(found.points, bowls.centers, atol=1e-5)


def test_the_valley_of_rosenbrock_is_followed_from_every_start():
    found = minimize_batch(rosenbrock, STARTS, max_evaluations=1000)
    assert found.converged.all()
    assert_allclose(found.points, 1.0, atol=1e-6)
    assert found.n_evaluations.max() < 200


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_functions_and_variables_of_other_scales_are_minimised_too(scale):
    def scaled(points, problems):
        values, gradients = rosenbrock(points, problems)
        return scale * values, scale * gradients

    found = minimize_batch(scaled, STARTS, tolerance=1e-7 * scale, max_evaluations=2000)
    assert_allclose(found.points, 1.0, atol=1e-5)

    bowls = Bowls(0, 6, 3)

    def stretched(points, problems):
        values, gradients = bowls(points / scale, problems)
        return values, gradients / scale

    found = minimize_batch(
        stretched, scale * bowls.starts, tolerance=1e-8 / scale, max_evaluations=20_000
    )
    assert_allclose(found.points / scale, bowls.centers, atol=1e-4)


def test_minima_are_those_of_scipy():
    """Of functions with one minimum each, quadratic nowhere."""
    rng = np.random.default_rng(0)
    slopes, starts = rng.normal(size=(30, 4)), rng.uniform(-2, 2, (30, 4))

    def logistic(points, problems):
        heights = np.sum(points * slopes[problems], axis=1)
        values = np.logaddexp(0, heights) + np.sum(np.cosh(points) - 1, axis=1)
        shares = 1 / (1 + np.exp(-heights))
        return values, shares[:, None] * slopes[problems] + np.sinh(points)

    found = minimize_batch(logistic, starts)
    assert found.converged.all()
    for i, start in enumerate(starts):
        theirs = scipy_minimum(logistic, start, i)
        assert_allclose(found.values[i], theirs.fun, rtol=1e-12)
        assert_allclose(found.points[i], theirs.x, atol=1e-6)


# -- a batch is its problems ----------------------------------------------------------


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 9))
def test_neither_company_nor_order_changes_an_answer(seed, n_problems):
    bowls = Bowls(seed, n_problems, 3)
    together = minimize_batch(bowls, bowls.starts)
    order = np.random.default_rng(seed).permutation(n_problems)

    def reordered(points, problems):
        return bowls(points, order[problems])

    shuffled = minimize_batch(reordered, bowls.starts[order])
    assert_allclose(shuffled.points, together.points[order], atol=1e-6)
    assert_allclose(shuffled.values, together.values[order], atol=1e-12)
    for i in range(n_problems):

        def alone(points, problems, i=i):
            return bowls(points, problems + i)

        one = minimize_batch(alone, bowls.starts[[i]])
        assert_allclose(one.points[0], together.points[i], atol=1e-6)
        assert_allclose(one.values[0], together.values[i], atol=1e-12)


def test_a_problem_that_never_ends_does_not_disturb_the_others():
    def mixed(points, problems):
        """A slope without end beside Rosenbrock's valley."""
        values, gradients = rosenbrock(points, problems)
        endless = problems == 1
        values[endless] = -points[endless, 0]
        gradients[endless] = [-1.0, 0.0]
        return values, gradients

    found = minimize_batch(mixed, STARTS[:3], max_evaluations=300)
    expected = minimize_batch(rosenbrock, STARTS[:3], max_evaluations=300)
    assert_array_equal(found.converged, [True, False, True])
    assert_array_equal(found.points[[0, 2]], expected.points[[0, 2]])
    assert found.n_evaluations[1] == 300


# -- evaluations and convergence ------------------------------------------------------


class Counter:
    """An objective that counts how often each problem is evaluated."""

    def __init__(self, objective, n_problems):
        self.objective, self.counts = objective, np.zeros(n_problems, dtype=int)

    def __call__(self, points, problems):
        assert len(points) == len(problems) == len(set(problems.tolist()))
        self.counts[problems] += 1
        return self.objective(points, problems)


@pytest.mark.parametrize("most", [1, 2, 7, 1000])
def test_evaluations_are_counted_and_bounded(most):
    counter = Counter(rosenbrock, len(STARTS))
    found = minimize_batch(counter, STARTS, max_evaluations=most)
    assert_array_equal(found.n_evaluations, counter.counts)
    assert found.n_evaluations.max() <= most
    assert found.converged.all() == (most == 1000)
    if most <= 7:
        assert not found.converged.any()
        assert (found.n_evaluations == most).all()


def test_values_never_rise_and_belong_to_the_points():
    before = rosenbrock(STARTS, None)[0]
    for most in (2, 5, 10, 20):
        found = minimize_batch(rosenbrock, STARTS, max_evaluations=most)
        assert (found.values <= before).all()
        under_way = ~found.converged
        at_points, _ = rosenbrock(found.points, None)
        assert_allclose(at_points[under_way], found.values[under_way], rtol=1e-12)
        before = found.values


def test_who_starts_at_a_minimum_is_evaluated_once():
    bowls = Bowls(0, 3, 2)
    starts = bowls.starts.copy()
    starts[1] = bowls.centers[1]
    found = minimize_batch(bowls, starts)
    assert found.converged.all()
    assert_array_equal(found.n_evaluations == 1, [False, True, False])
    assert_array_equal(found.points[1], bowls.centers[1])


def test_a_gradient_of_zero_everywhere_leaves_the_start_alone():
    def plain(points, problems):
        return np.full(len(points), 7.0), np.zeros_like(points)

    found = minimize_batch(plain, STARTS)
    assert found.converged.all()
    assert_array_equal(found.points, STARTS)
    assert_array_equal(found.values, 7.0)
    assert_array_equal(found.n_evaluations, 1)


def test_a_tolerance_is_what_counts_as_converged():
    steep = minimize_batch(rosenbrock, STARTS, tolerance=1e-1, max_evaluations=1000)
    flat = minimize_batch(rosenbrock, STARTS, tolerance=1e-9, max_evaluations=1000)
    assert (steep.n_evaluations <= flat.n_evaluations).all()
    assert steep.n_evaluations.sum() < flat.n_evaluations.sum()


def test_starts_are_left_alone():
    starts = STARTS.copy()
    minimize_batch(rosenbrock, starts)
    assert_array_equal(starts, STARTS)


# -- values that are not finite -------------------------------------------------------


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_trial_point_without_a_finite_value_is_stepped_back_from(bad):
    """``10 x - log x``, whose minimum lies next to where it is not defined."""
    visited = []

    def barrier(points, problems):
        x = points[:, 0]
        visited.extend(x)
        outside = x <= 0
        safe = np.where(outside, 1.0, x)
        values = np.where(outside, bad, 10 * safe - np.log(safe))
        return values, np.where(outside, bad, 10 - 1 / safe)[:, None]

    found = minimize_batch(barrier, np.array([[0.3], [0.05], [0.9], [0.101], [5.0]]))
    assert min(visited) <= 0, "or nothing is tested here"
    assert found.converged.all()
    assert_allclose(found.points, 0.1, atol=1e-7)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_start_without_a_finite_value_is_given_up_at_once(bad):
    bowls = Bowls(0, 3, 2)

    def broken(points, problems):
        values, gradients = bowls(points, problems)
        values[problems == 1] = bad
        gradients[problems == 1] = np.nan
        return values, gradients

    counter = Counter(broken, 3)
    found = minimize_batch(counter, bowls.starts)
    assert_array_equal(found.converged, [True, False, True])
    assert_array_equal(found.points[1], bowls.starts[1])
    assert found.n_evaluations[1] == counter.counts[1] == 1
    assert_allclose(found.points[[0, 2]], bowls.centers[[0, 2]], atol=1e-5)


def test_a_gradient_that_lies_ends_in_time():
    """Uphill instead of downhill: no step helps, and the start is what is found."""

    def lying(points, problems):
        return np.sum(points**2, axis=1), -2 * points

    found = minimize_batch(lying, STARTS + 3.0)
    assert not found.converged.any()
    assert_array_equal(found.points, STARTS + 3.0)
    assert found.n_evaluations.max() < 200


@pytest.mark.parametrize("shift", [0.0, 1e8])
def test_where_rounding_hides_descent_the_gradient_still_tells(shift):
    """Values are known to a few digits of the ten that count as exact."""
    bowls = Bowls(0, 6, 3)
    bowls.shifts = np.full(6, shift)

    def rounded(points, problems):
        values, gradients = bowls(points, problems)
        noise = np.sin(1e9 * points.sum(axis=1))
        return values + 3e-11 * (1 + shift) * noise, gradients

    found = minimize_batch(rounded, bowls.starts)
    assert found.converged.all()
    assert_allclose(found.points, bowls.centers, atol=1e-5)


# -- plateaus and negative curvature --------------------------------------------------


class Valleys:
    """``-sum_i a_i exp(-|x - c_i|^2 / 2)``: flat but for a few valleys per problem."""

    def __init__(self, seed, n_variables, apart, n_problems=30, n_valleys=3):
        rng = np.random.default_rng(seed)
        ways = rng.normal(size=(n_problems, n_valleys, n_variables))
        ways /= np.linalg.norm(ways, axis=2, keepdims=True)
        self.centers = apart * ways
        self.depths = rng.uniform(0.3, 1.0, (n_problems, n_valleys))
        self.starts = 0.2 * rng.normal(size=(n_problems, n_variables))

    def __call__(self, points, problems):
        offsets = points[:, None] - self.centers[problems]
        parts = self.depths[problems] * np.exp(-0.5 * np.sum(offsets**2, axis=2))
        return -parts.sum(axis=1), np.einsum("nv,nvf->nf", parts, offsets)


def of_kind(kind):
    """An objective and its starts."""
    if kind == "bowls":
        return (bowls := Bowls(0, 20, 4)), bowls.starts
    if kind == "rosenbrock":
        return rosenbrock, STARTS
    if kind == "wavy":

        def wavy(points, problems):
            values = np.sum(0.05 * points**2 + np.cos(points), axis=1)
            return values, 0.1 * points - np.sin(points)

        return wavy, np.random.default_rng(0).uniform(-0.05, 0.05, (20, 3))
    valleys = Valleys(0, *kind)
    return valleys, valleys.starts


KINDS = ["bowls", "rosenbrock", "wavy", (1, 2.0), (1, 4.5), (2, 5.5), (10, 3.0)]


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_minima_are_as_low_as_those_of_scipy_and_found_as_quickly(kind):
    objective, starts = of_kind(kind)
    found = minimize_batch(objective, starts)
    assert found.converged.all()
    theirs = [scipy_minimum(objective, s, i, "BFGS") for i, s in enumerate(starts)]
    values = np.array([one.fun for one in theirs])
    apart = [np.linalg.norm(f - t.x) for f, t in zip(found.points, theirs)]
    same = np.array(apart) < 0.5
    assert (found.values - values)[same].max() < 1e-10
    # Other valleys are found now and then, and no worse ones on average.
    assert same.mean() > 0.8
    assert np.mean(found.values) < np.mean(values) + 0.01
    assert found.n_evaluations.mean() < 1.2 * np.mean([one.nfev for one in theirs])


def test_nothing_counts_as_found_on_a_plateau():
    """However coarse the tolerance: the gradient there is small as well."""
    valleys = Valleys(0, 1, 4.5)
    _, gradients = valleys(valleys.starts, np.arange(30))
    assert np.mean(np.abs(gradients) < 1e-3) > 0.5, "or nothing is tested here"
    found = minimize_batch(valleys, valleys.starts, tolerance=1e-3, max_evaluations=40)
    assert found.converged.all()
    away = np.abs(found.points[:, None] - valleys.centers).min(axis=(1, 2))
    assert away.max() < 0.1


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 8), st.integers(1, 6))
def test_settled_problems_take_fewer_evaluations_and_end_near(seed, n, n_variables):
    bowls = Bowls(seed, n, n_variables, spread=0.5)
    exact = minimize_batch(bowls, bowls.starts)
    units = np.linspace(1.0, 2.0, n_variables)
    rough = minimize_batch(bowls, bowls.starts, settled=1e-3 * units)
    assert rough.converged.all()
    assert (rough.n_evaluations <= exact.n_evaluations).all()
    assert (np.abs(rough.points - bowls.centers) < 1e-2 * units).all()
