"""Metrics agree with their definitions, and judge inside scikit-learn's searches."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score

from overcover import metrics
from overcover.tuning.twin import metric_of


@pytest.fixture
def poses():
    rng = np.random.default_rng(0)
    truth = rng.normal(scale=300, size=(7, 4, 3))
    return truth, truth + rng.normal(scale=20, size=truth.shape)


def as_matrix(Y):
    return Y.reshape(len(Y), -1)


# -- joints ----------------------------------------------------------------------------


def test_the_joint_error_is_the_mean_distance_joint_by_joint(poses):
    truth, said = poses
    distances = [
        np.sqrt(sum((a[k] - b[k]) ** 2 for k in range(3)))
        for row, other in zip(truth, said)
        for a, b in zip(row, other)
    ]
    assert_allclose(metrics.mean_joint_error(truth, said), np.mean(distances))


def test_rows_of_columns_and_of_joints_say_the_same(poses):
    truth, said = poses
    expected = metrics.mean_joint_error(truth, said)
    assert metrics.mean_joint_error(as_matrix(truth), as_matrix(said)) == expected
    assert metrics.mean_joint_error(truth, as_matrix(said)) == expected


def test_a_rigid_shift_costs_its_length(poses):
    truth, _ = poses
    assert_allclose(metrics.mean_joint_error(truth, truth + [2.0, 3.0, 6.0]), 7.0)


def test_joints_of_one_dimension_give_the_mean_absolute_error(poses):
    truth, said = map(as_matrix, poses)
    error = metrics.mean_joint_error(truth, said, n_dims=1)
    assert_allclose(error, np.abs(truth - said).mean())


def test_errors_per_joint_average_to_the_error(poses):
    truth, said = poses
    each = metrics.mean_joint_error(truth, said, multioutput="raw_values")
    assert each.shape == (4,)
    assert_allclose(each.mean(), metrics.mean_joint_error(truth, said))
    first = metrics.mean_joint_error(truth, said, multioutput=[1, 0, 0, 0])
    assert_allclose(first, each[0])


# -- angles ----------------------------------------------------------------------------


@given(a=st.floats(-1e4, 1e4), b=st.floats(-1e4, 1e4), turns=st.integers(-3, 3))
def test_angles_are_compared_the_short_way_round(a, b, turns):
    error = metrics.mean_angle_error([a], [b])
    assert 0 <= error <= 180
    assert_allclose(error, metrics.mean_angle_error([b], [a]), atol=1e-9)
    assert_allclose(error, metrics.mean_angle_error([a + 360 * turns], [b]), atol=1e-8)
    assert_allclose(np.cos(np.radians(error)), np.cos(np.radians(a - b)), atol=1e-9)


def test_half_a_turn_is_the_farthest():
    assert metrics.mean_angle_error([0.0, 180.0], [180.0, 0.0]) == 180.0


def test_radians_are_degrees_by_another_name():
    rng = np.random.default_rng(0)
    truth, said = rng.uniform(-400, 400, (2, 9, 3))
    turned = metrics.mean_angle_error(
        np.radians(truth), np.radians(said), period=2 * np.pi
    )
    assert_allclose(np.degrees(turned), metrics.mean_angle_error(truth, said))


# -- intervals -------------------------------------------------------------------------


def test_the_true_interval_holds_its_share_and_scores_best():
    y = np.random.default_rng(0).normal(size=20_000)
    half = norm.ppf(0.95)

    def score(h):
        ends = np.full_like(y, h)
        return metrics.mean_interval_score(y, -ends, ends, coverage=0.9)

    ends = np.full_like(y, half)
    assert_allclose(metrics.interval_coverage(y, -ends, ends), 0.9, atol=0.01)
    assert score(half) < min(score(0.8 * half), score(1.2 * half))


def test_ends_belong_to_the_interval_and_may_be_infinite():
    assert metrics.interval_coverage([1.0, 2.0], [1.0, 0.0], [5.0, 2.0]) == 1
    assert metrics.interval_coverage([1.0], [-np.inf], [np.inf]) == 1


def test_a_column_and_a_vector_are_the_same_outputs():
    y = np.arange(4.0)
    assert metrics.interval_coverage(y[:, None], y - 1, y + 1) == 1


def test_crossed_ends_are_refused():
    with pytest.raises(ValueError, match="low exceeds high in 1 of 2"):
        metrics.interval_coverage([1.0, 1.0], [0.0, 2.0], [1.0, 1.0])


@pytest.mark.parametrize("coverage", [0, 1, 95, "half"])
def test_a_coverage_that_is_no_probability_is_refused(coverage):
    with pytest.raises(ValueError, match="between 0 and 1"):
        metrics.mean_interval_score([1.0], [0.0], [2.0], coverage)


# -- what all share --------------------------------------------------------------------

# Each takes outputs and predictions of shape (n, 6).
ALL = {
    "joint": metrics.mean_joint_error,
    "angle": metrics.mean_angle_error,
    "coverage": lambda Y, P, **o: metrics.interval_coverage(Y, P - 9, P + 9, **o),
    "score": lambda Y, P, **o: metrics.mean_interval_score(Y, P - 9, P + 9, **o),
}


@pytest.fixture(params=ALL)
def metric(request):
    return ALL[request.param]


@pytest.fixture
def pair():
    rng = np.random.default_rng(1)
    truth = rng.normal(scale=10, size=(12, 6))
    return truth, truth + rng.normal(scale=10, size=truth.shape)


def test_a_row_of_weight_two_is_two_rows(metric, pair):
    weights = np.array([2, 1, 0] * 4)
    repeated = [np.repeat(Y, weights, axis=0) for Y in pair]
    assert_allclose(metric(*pair, sample_weight=weights), metric(*repeated))


def test_uniform_weights_change_nothing(metric, pair):
    assert_allclose(metric(*pair, sample_weight=np.full(12, 0.3)), metric(*pair))


def test_the_order_of_rows_does_not_matter(metric, pair):
    assert_allclose(metric(*(Y[::-1] for Y in pair)), metric(*pair))


def test_bad_weights_are_refused(metric, pair):
    with pytest.raises(ValueError, match="at least one non-zero"):
        metric(*pair, sample_weight=np.zeros(12))
    with pytest.raises(ValueError, match="sample_weight"):
        metric(*pair, sample_weight=np.ones(11))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        metric(*pair, sample_weight=-np.ones(12))


@pytest.mark.parametrize("multioutput", ["mean", [1.0, 2.0, 3.0, 4.0, 5.0]])
def test_an_unknown_mean_over_outputs_is_refused(metric, pair, multioutput):
    with pytest.raises(ValueError, match="'uniform_average', 'raw_values'"):
        metric(*pair, multioutput=multioutput)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_values_that_are_no_numbers_are_refused(metric, pair, bad):
    truth, said = pair
    truth[3, 2] = bad
    with pytest.raises(ValueError, match=r"(Y_true|y) contains (NaN|infinity)"):
        metric(truth, said)


def test_an_end_that_is_no_number_is_refused(pair):
    truth, said = pair
    said[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"low contains NaN .* in 1 of 72 places"):
        metrics.interval_coverage(truth, said, truth)


def test_shapes_that_differ_are_refused(metric, pair):
    truth, said = pair
    with pytest.raises(ValueError, match="Shapes differ"):
        metric(truth, said[:-1])
    with pytest.raises(ValueError, match="Shapes differ"):
        metric(truth, said[:, :3])


@pytest.mark.parametrize("shape", [(5, 7), (5, 0), (5, 2, 4), (6,), (2, 2, 2, 3)])
def test_what_holds_no_joints_is_refused(shape):
    with pytest.raises(ValueError, match=r"joints of 3 coordinates|minimum of 1"):
        metrics.mean_joint_error(np.ones(shape), np.ones(shape))


def test_what_is_no_matrix_of_angles_is_refused():
    with pytest.raises(ValueError, match="n_outputs"):
        metrics.mean_angle_error(np.ones((2, 2, 2)), np.ones((2, 2, 2)))


@pytest.mark.parametrize("period", [0, -360, np.inf, "turn"])
def test_a_period_that_is_none_is_refused(period):
    with pytest.raises(ValueError, match="360 for degrees"):
        metrics.mean_angle_error([1.0], [2.0], period=period)


# -- elsewhere -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scorer", "metric"),
    [
        (metrics.joint_error_scorer, metrics.mean_joint_error),
        (metrics.angle_error_scorer, metrics.mean_angle_error),
    ],
)
def test_scorers_are_the_negated_errors_in_searches(scorer, metric):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = X @ rng.normal(size=(4, 6)) + 0.1 * rng.normal(size=(60, 6))
    model = LinearRegression().fit(X, Y)
    assert scorer(model, X, Y) == -metric(Y, model.predict(X))
    assert (cross_val_score(model, X, Y, scoring=scorer, cv=3) < 0).all()
    search = GridSearchCV(Ridge(), {"alpha": [1e-3, 1e3]}, scoring=scorer, cv=3)
    assert search.fit(X, Y).best_params_ == {"alpha": 1e-3}
    assert pickle.loads(pickle.dumps(scorer))(model, X, Y) == scorer(model, X, Y)


@pytest.mark.parametrize(
    ("name", "metric"),
    [("joint", metrics.mean_joint_error), ("angle", metrics.mean_angle_error)],
)
def test_twin_gps_tune_for_the_same_numbers(pair, name, metric):
    weights = np.linspace(0.1, 1, 12)
    tuned = metric_of(name, pair[0])(*pair, weights)
    assert_allclose(tuned, metric(*pair, sample_weight=weights))
