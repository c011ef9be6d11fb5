"""The Twin GP finds its minima, chooses a branch, and knows how far it may be off."""

from copy import copy

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import reference_twin
from overcover import (
    GP,
    ImportanceWeightedTwinGP,
    OverlappingCoverRegressor,
    SharmaMittalTwinGP,
    TwinGP,
)
from overcover.machines import twin_gp

FIXED = (1.2, [0.8, 1.1], 0.02, 0.01)
S_CURVE = (0.1, 0.05, 1e-3, 1e-3)
FAMILY = [TwinGP, ImportanceWeightedTwinGP, SharmaMittalTwinGP]
each_of_the_family = pytest.mark.parametrize("kind", FAMILY)


@pytest.fixture(scope="module")
def rows():
    """100 rows with two outputs of similar scales."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (100, 2))
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1]) + 5.0])
    return X, Y + 0.05 * rng.normal(size=Y.shape)


@pytest.fixture(scope="module")
def many_queries():
    return np.random.default_rng(1).uniform(-3.5, 3.5, (200, 2))


def s_curve(y):
    """Three outputs for every input in the middle."""
    return y + 0.5 * np.sin(2 * np.pi * y)


@pytest.fixture(scope="module")
def ambiguous():
    """200 rows of the S-curve, more of them on its lower branch: X, y."""
    rng = np.random.default_rng(0)
    y = rng.uniform(0, 1, 200) ** 1.7
    return (s_curve(y) + 0.01 * rng.normal(size=200))[:, None], y


def distance_to_curve(x, y):
    """Of outputs to the nearest branch of the S-curve at their inputs."""
    all_y = np.linspace(-0.5, 1.5, 8001)
    distances = []
    for a, b in zip(x, y):
        offset = s_curve(all_y) - a
        crossings = all_y[:-1][np.diff(np.sign(offset)) != 0]
        distances.append(np.abs(crossings - b).min())
    return np.array(distances)


# -- minima ---------------------------------------------------------------------------


def dense_and_inputs(model, queries):
    """The slow version of a full model, and queries in its units."""
    rows = model.state_.rows
    noises = model.input_noise_, model.output_noise_
    slow = reference_twin.DenseTwin(rows.A, rows.Z, *noises)
    return slow, queries / rows.input_scales - rows.center


def test_no_minimum_is_above_that_of_scipy_from_the_same_start(rows, many_queries):
    model = TwinGP(*FIXED, rank="full").fit(*rows)
    found = model.search(model.state_, many_queries)
    slow, inputs = dense_and_inputs(model, many_queries)
    assert found.converged.all()
    for a, z, value in zip(inputs, found.points, found.values):
        theirs = slow.minimum(a, slow.mean(a))
        assert slow.objective(z, a) <= theirs + 1e-6
        # The last step, which is short, is not evaluated.
        assert_allclose(slow.objective(z, a), value + 1.0, atol=1e-5)


def test_answers_are_settled_to_a_thousandth_of_a_deviation(rows, many_queries):
    model = TwinGP(*FIXED, rank="full").fit(*rows)
    settled = model.predict(many_queries)
    model._precision = (0.0, 1000)
    exact = model.predict(many_queries)
    assert_allclose(settled, exact, atol=1e-3 * rows[1].std(axis=0).min())


def test_the_search_is_short(rows, many_queries):
    model = TwinGP(*FIXED).fit(*rows)
    found = model.search(model.state_, many_queries)
    assert 2 < found.n_evaluations.mean() < 30


def test_a_second_start_is_never_worse_and_sometimes_better(ambiguous):
    queries = np.linspace(0.1, 0.9, 200)[:, None]
    one, two = (
        TwinGP(*S_CURVE, rank="full", n_starts=n).fit(*ambiguous) for n in (1, 2)
    )
    single, double = (m.search(m.state_, queries) for m in (one, two))
    assert (double.values <= single.values + 1e-12).all()
    assert (double.values < single.values - 1e-3).any()
    assert (double.n_evaluations > single.n_evaluations).all()


def test_where_rows_explain_a_query_the_answer_is_the_minimum(rows):
    X, Y = rows
    model = TwinGP(*FIXED).fit(X, Y)
    points = model.search(model.state_, X).points
    assert (model.posterior_variance(model.state_, X) < 0.5).all()
    assert_allclose(model.predict(X), model.state_.rows.back(points), rtol=1e-12)


# -- one of the possible outputs ------------------------------------------------------


@each_of_the_family
def test_company_does_not_change_an_answer(kind):
    """Where outputs are ambiguous, so that searches are long."""
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(-1, 1, (100, 2)), rng.uniform(-1, 1, (20, 2))
    Y = rng.choice([-3.0, 3.0], (100, 1)) + 0.3 * rng.normal(size=(100, 3))
    model = kind(0.5, 1.0, 0.1, 0.01).fit(X, Y)
    alone = np.vstack([model.predict(query[None]) for query in queries])
    assert_allclose(model.predict(queries), alone, atol=1e-8)


@each_of_the_family
def test_no_query_stays_between_two_outputs_far_apart(kind):
    """Nine output scales, so that nothing is steep halfway."""
    rng = np.random.default_rng(0)
    X, queries = rng.uniform(-1, 1, (100, 2)), rng.uniform(-1, 1, (50, 2))
    y = rng.choice([-4.5, 4.5], 100) + 0.3 * rng.normal(size=100)
    model = kind(1.0, 1.0, 0.1, 0.01).fit(X, y)
    found = model.search(model.state_, queries)
    assert found.converged.all()
    assert found.n_evaluations.mean() < 20
    assert np.abs(model.predict(queries)).min() > 2.5


@each_of_the_family
def test_where_a_gp_is_off_every_branch_a_twin_gp_is_on_one(kind, ambiguous):
    X = np.linspace(0.31, 0.57, 41)[:, None]
    gp = GP(kernel="rbf", length_scale=0.1, noise=1e-3).fit(*ambiguous)
    twin = kind(*S_CURVE, n_starts=2).fit(*ambiguous)
    averaged = distance_to_curve(X[:, 0], gp.predict(X))
    chosen = distance_to_curve(X[:, 0], twin.predict(X))
    # What crosses the middle branch is on it for a moment.
    assert np.median(averaged) > 0.05 and np.mean(averaged > 0.03) > 0.75
    assert chosen.max() < 0.02


def test_both_outer_branches_are_possible_answers(ambiguous):
    """The answer changes sides somewhere in the middle; it does not cross it."""
    X = np.linspace(-0.2, 1.2, 101)[:, None]
    said = TwinGP(*S_CURVE, n_starts=2).fit(*ambiguous).predict(X)
    assert said.min() < 0.1 and said.max() > 0.9
    assert np.abs(np.diff(said)).max() > 0.2


# -- far away, and nearby -------------------------------------------------------------


@each_of_the_family
def test_far_from_the_data_the_answer_is_the_mean_of_the_outputs(kind, rows):
    X, Y = rows
    far = np.array([[1e3, -1e3], [1e9, 1e9], [-1e15, 0.0]])
    mean, std = kind(*FIXED).fit(X, Y).predict(far, return_std=True)
    assert_allclose(mean, np.broadcast_to(Y.mean(axis=0), mean.shape))
    assert np.isfinite(std).all() and (std > 0).all()


def test_on_the_way_out_the_answer_becomes_that_of_a_gp(rows):
    X, Y = rows
    way = np.column_stack([np.linspace(3.0, 9.0, 60), np.zeros(60)])
    twin = TwinGP(*FIXED).fit(X, Y)
    gp = GP(kernel="rbf", length_scale=FIXED[0], noise=FIXED[2]).fit(X, Y)
    gap = np.abs(twin.predict(way) - gp.predict(way)).max(axis=1)
    assert gap[0] > 1e-4
    unexplained = twin.posterior_variance(twin.state_, way) - FIXED[2]
    assert (gap[unexplained > 1 - 1e-4] < 1e-3).all()
    # No jump where the answer begins to move.
    steps = np.abs(np.diff(twin.predict(way), axis=0)).max(axis=1)
    assert steps.max() < 0.3


def test_it_gives_the_posterior_input_variance(rows, many_queries):
    model = TwinGP(*FIXED).fit(*rows)
    slow, inputs = dense_and_inputs(model, many_queries)
    expected = [slow.eta(a) for a in inputs]
    answer = model.answer(model.state_, many_queries, variance=True)
    assert_allclose(answer.posterior, expected, rtol=1e-8)
    # What routing compares is rounded where noise hides it, and only there.
    compared = model.posterior_variance(model.state_, many_queries)
    assert_allclose(compared, expected, rtol=1e-3)
    quiet = TwinGP(FIXED[0], FIXED[1], 1e-5, FIXED[3]).fit(*rows)
    answer = quiet.answer(quiet.state_, many_queries, variance=True)
    compared = quiet.posterior_variance(quiet.state_, many_queries)
    assert_allclose(compared, answer.posterior, rtol=1e-12)


def test_the_printed_form_answers_nearly_the_same_among_the_data(rows):
    X, Y = rows
    with_noise, printed = (
        TwinGP(*FIXED, self_noise=own).fit(X, Y).predict(X) for own in (True, False)
    )
    moved = np.abs(with_noise - printed).max(axis=1)
    assert 1e-4 < np.median(moved) < 0.05


def test_queries_at_training_rows_are_answered_nearly_with_their_outputs(rows):
    X, Y = rows
    mean, std = TwinGP(*FIXED).fit(X, Y).predict(X, return_std=True)
    assert np.sqrt(np.mean((mean - Y) ** 2)) < 0.06
    assert np.isfinite(std).all()


# -- standard deviations --------------------------------------------------------------


def iid_problem(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n, 2))
    clean = [np.sin(X[:, 0]), np.cos(X[:, 1]), X[:, 0] * X[:, 1] / 2]
    deviations = np.array([0.05, 0.1, 0.15])
    return X, np.column_stack(clean) + deviations * rng.normal(size=(n, 3))


@each_of_the_family
def test_nominal_intervals_cover_what_they_promise(kind):
    X, Y = iid_problem(350, seed=0)
    Xq, Yq = iid_problem(600, seed=1)
    model = kind(1.0, 1.0, 0.1, 0.1).fit(X, Y)
    low, high = model.predict_interval(Xq, 0.95)
    covered = ((low <= Yq) & (Yq <= high)).mean(axis=0)
    assert (covered > 0.88).all() and (covered < 0.99).all()
    _, std = model.predict(Xq, return_std=True)
    assert (np.diff(std.mean(axis=0)) > 0).all(), "noisier outputs have a larger std"


def test_intervals_of_a_cover_hold_too():
    X, Y = iid_problem(500, seed=0)
    Xq, Yq = iid_problem(600, seed=1)
    model = OverlappingCoverRegressor(
        TwinGP(1.0, 1.0, 0.1, 0.1), subdomain_size=120, random_state=0
    ).fit(X, Y)
    assert model.n_subdomains_ > 10
    low, high = model.predict_interval(Xq, 0.95)
    assert 0.9 < ((low <= Yq) & (Yq <= high)).mean() < 0.99


@each_of_the_family
def test_std_grows_away_from_the_data(kind, rows):
    model = kind(*FIXED).fit(*rows)
    way = np.column_stack([np.linspace(3.0, 8.0, 20), np.zeros(20)])
    _, std = model.predict(way, return_std=True)
    assert (std[-1] > 2 * std[0]).all()
    assert (std[1:] > 0.9 * std[:-1]).all()


def test_residuals_are_those_of_rows_left_out(rows):
    X, Y = rows
    model = TwinGP(*FIXED, rank="full").fit(X, Y)
    state, slow_eta = model.state_, []
    _, points, _ = model.make_search().leave_out(state.rows, np.arange(len(X)))
    said = state.rows.back(points)
    for i in range(len(X)):
        rest = np.arange(len(X)) != i
        slow = reference_twin.DenseTwin(
            state.rows.A[rest], state.rows.Z[rest], *FIXED[2:]
        )
        slow_eta.append(slow.eta(state.rows.A[i]))
    expected = (Y - said) ** 2 / np.array(slow_eta)[:, None]
    assert_allclose(state.residuals_sq, expected, rtol=1e-6)


def test_groups_are_left_out_together(rows):
    X, Y = rows
    groups = np.arange(len(X)) % 5
    model = TwinGP(*FIXED).fit(X, Y, groups=groups)
    for i in model.state_.left[::7]:
        rest = groups != groups[i]
        scaled, refit = model.state_.rows, copy(model)
        state = refit.fit_state(X[rest], Y[rest])
        answer = refit.answer(state, X[[i]], variance=True)
        expected = (Y[i] - answer.mean[0]) ** 2 / answer.posterior[0]
        at = np.flatnonzero(model.state_.left == i)[0]
        found = model.state_.residuals_sq[at]
        deviations = Y.std(axis=0) ** 2 / answer.posterior[0]
        assert_allclose(found, expected, atol=1e-2 * deviations.max(), rtol=0.05)
        assert len(scaled.A) == len(X), "the model itself has all rows"


def test_intervals_hold_new_groups_if_groups_are_given():
    """Rows of a group share an offset that no input tells."""
    rng = np.random.default_rng(0)
    X, groups = rng.uniform(-2, 2, (300, 1)), np.repeat(np.arange(30), 10)
    X += 0.1 * groups[:, None]
    Y = np.sin(X) + 0.5 * rng.normal(size=(30, 1))[groups]
    plain, grouped = (
        TwinGP(0.5, 0.5, 1e-2, 1e-2).fit(X, Y, groups=given) for given in (None, groups)
    )
    assert grouped.calibration_.factor > plain.calibration_.factor
    assert len(np.unique(groups[grouped.state_.left])) <= twin_gp.MOST_GROUPS
    # A subdomain may lie in one group, without which nothing would be left.
    whole = plain.fit_state(X, Y, groups=np.zeros(300, dtype=int))
    # Not bit by bit: alone, a fit may have more threads.
    assert_allclose(whole.residuals_sq, plain.state_.residuals_sq, rtol=1e-8)


def test_at_most_so_many_owned_rows_are_left_out():
    for n_owned in (1, 7, 199, 200, 201, 399, 400, 401, 5000):
        left = twin_gp.rows_to_leave_out(n_owned)
        assert left[0] == 0 and left[-1] < n_owned
        assert min(n_owned, 100) <= len(left) <= twin_gp.MOST_LEFT_OUT
        assert len(set(np.diff(left))) <= 1


def test_only_owned_rows_are_left_out(rows):
    X, Y = rows
    model = TwinGP(*FIXED).fit(X, Y)
    some = model.fit_state(X, Y, n_owned=9)
    assert_array_equal(some.left, np.arange(9))
    assert some.ratios.shape[1:] == (9, 2)
    assert_allclose(some.residuals_sq, model.state_.residuals_sq[:9], rtol=1e-6)
