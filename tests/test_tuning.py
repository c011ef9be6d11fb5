"""Tuning finds what matters, the same way every time, in any units."""

from functools import cache

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import reference
from overcover import GP, OverlappingCoverRegressor, tuning
from overcover._validation import DataWarning
from overcover.tuning import _judge, _search, _serial
from overcover.tuning._problem import (
    LEAST_NOISE,
    LENGTH_BOUNDS,
    NOISE_BOUNDS,
    Candidate,
    standardize,
)
from overcover.tuning.likelihood import negative_log_likelihood

# Found to three decimals of a logarithm.
ROUNDING = 2e-3
SMALL, FEW, LARGE = 150, 200, 400
each_size = pytest.mark.parametrize("n_samples", [SMALL, LARGE])


@pytest.fixture(autouse=True)
def small_searches(monkeypatch):
    """The same searches as for large data, begun at 200 rows and on fewer rows."""
    for module in (tuning, _judge):
        monkeypatch.setattr(module, "FEW_ROWS", FEW)
    monkeypatch.setattr(tuning, "N_LOCAL_SETS", 2)
    monkeypatch.setattr(tuning, "LOCAL_SIZE", 80)
    monkeypatch.setattr(_search, "N_SPOTS", 10)
    monkeypatch.setattr(_search, "SET_SIZE", 50)
    monkeypatch.setattr(_judge, "N_SPOTS", 12)
    monkeypatch.setattr(_judge, "SET_SIZE", 60)


def make_data(n_samples, noise=0.1, seed=0):
    """Two columns that matter, one of them twice as fast, and one that does not."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n_samples, 3))
    y = np.sin(2 * X[:, 0]) + np.sin(X[:, 1]) + noise * rng.normal(size=n_samples)
    return X, y


def tune(X, Y, seed=0, n_jobs=None, weights=None, **options):
    machine = GP(**options)
    Y = np.reshape(Y, (len(X), -1))
    machine.tune(X, Y, weights, 100, np.random.RandomState(seed), n_jobs)
    return machine


@cache
def tuned(n_samples):
    """What is found on `make_data(n_samples)`, by the searches of this file."""
    return tune(*make_data(n_samples))


@each_size
def test_an_irrelevant_column_gets_a_much_longer_scale(n_samples):
    fast, slow, irrelevant = tuned(n_samples).length_scale_
    assert irrelevant > 5 * slow
    assert slow > 1.2 * fast


@each_size
@pytest.mark.parametrize("per_subdomain", [False, True])
def test_scales_are_found_where_noise_is_given_as_zero(n_samples, per_subdomain):
    X, y = make_data(n_samples, noise=0.0)
    X[-5:], y[-5:] = X[:5], y[:5]  # rows that occur twice do no harm
    options = {"noise": 0, "per_subdomain": per_subdomain}
    machine = tune(X, y, **options)
    fast, slow, irrelevant = machine.length_scale_
    assert machine.noise_ == 0 and fast < slow < irrelevant
    state = machine.fit_state(X[:50], y[:50, None], np.ones(50))
    assert np.isfinite(state.alpha).all()
    weights = np.random.default_rng(0).uniform(1, 3, n_samples)
    assert np.isfinite(tune(X, y, weights=weights, **options).length_scale_).all()


@each_size
def test_more_noise_is_found_where_there_is_more(n_samples):
    quiet, loud = (
        tune(*make_data(n_samples, noise), kernel="rbf").noise_ for noise in (0.05, 0.5)
    )
    assert loud > quiet


def test_the_truth_is_recovered_from_a_draw_of_the_prior():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (200, 2))
    lengths, noise = np.array([0.6, 2.0]), 0.02
    K_xx = reference.kernel_matrix("matern52", X, X, lengths)
    L = np.linalg.cholesky(K_xx + noise * np.eye(200))
    found = tune(X, 7.0 * L @ rng.normal(size=(200, 4)), kernel="matern52")
    assert_allclose(found.length_scale_, lengths, rtol=0.25)
    assert_allclose(found.noise_, noise, rtol=0.5)


def test_few_rows_are_tuned_to_the_top_of_the_likelihood():
    X, y = make_data(150)
    theta = tune(X, y, kernel="matern32").theta_[0]
    Y = (y - y.mean())[:, None]
    best, gradient = negative_log_likelihood(theta, "matern32", X, Y)
    inside = theta < np.log(900 * np.append(X.std(axis=0), np.inf))
    # But for a weak prior, which few rows need.
    assert_allclose(gradient[inside], 0, atol=1e-2)
    for i in np.flatnonzero(theta < np.log(100 * np.append(X.std(axis=0), np.inf))):
        for step in (-0.3, 0.3):
            moved = theta.copy()
            moved[i] += step
            assert negative_log_likelihood(moved, "matern32", X, Y)[0] > best - 3e-3


@each_size
def test_tuning_is_deterministic(n_samples):
    X, y = make_data(n_samples)
    assert_array_equal(tune(X, y).theta_, tuned(n_samples).theta_)


@each_size
def test_the_number_of_workers_does_not_matter(n_samples):
    X, y = make_data(n_samples)
    assert_array_equal(tune(X, y, n_jobs=2).theta_, tuned(n_samples).theta_)


@each_size
@pytest.mark.parametrize(
    "given",
    [{"length_scale": [0.7, 1.3, 5.0]}, {"noise": 0.123}, {"length_scale": 0.9}],
    ids=str,
)
def test_what_was_given_stays_and_the_rest_is_found(given, n_samples):
    found = tune(*make_data(n_samples), **given)
    if "noise" in given:
        assert_allclose(found.noise_, 0.123, rtol=1e-12)
        assert found.length_scale_[2] > 3 * found.length_scale_[0]
    else:
        expected = np.broadcast_to(given["length_scale"], 3)
        assert_allclose(found.length_scale_, expected, rtol=1e-12)
        assert NOISE_BOUNDS[0] < found.noise_ < NOISE_BOUNDS[1]


def test_what_was_given_stays_on_every_subdomain_too():
    """`per_subdomain` improves what was learned, not what the user said."""
    X, y = make_data(SMALL)
    model = OverlappingCoverRegressor(
        GP(length_scale=0.8, per_subdomain=True), subdomain_size=80, random_state=0
    ).fit(X, y)
    for state in model.states_:
        assert_allclose(np.exp(state.theta[0, :-1]), 0.8)


def test_a_column_that_is_constant_here_only_keeps_its_shared_length_scale():
    """A subdomain that never saw it vary must not take all its values for equal."""
    X, y = make_data(60)
    X[:, 2] = 1.0
    theta = np.log([1.0, 1.5, 2.0, 0.05])
    Y = (y - y.mean())[:, None]
    improved = tuning.improve("matern32", X, Y, None, theta, np.full(4, np.nan))
    assert np.isfinite(improved).all()
    assert improved[2] == pytest.approx(theta[2])


def test_improving_climbs_the_likelihood():
    X, y = make_data(100)
    Y = (y - y.mean())[:, None]
    theta = np.log([3.0, 3.0, 3.0, 0.5])
    improved = tuning.improve("matern32", X, Y, None, theta, np.full(4, np.nan))
    before, after = (
        negative_log_likelihood(t, "matern32", X, Y)[0] for t in (theta, improved)
    )
    assert after < before


@each_size
def test_a_smooth_function_without_noise_has_less_than_candidates_may_have(n_samples):
    rng = np.random.default_rng(0)
    X, Q = rng.uniform(-1, 1, (2, n_samples, 2))

    def function(X):
        return np.sin(3 * X[:, 0]) * np.cos(2 * X[:, 1])

    def error(machine):
        model = OverlappingCoverRegressor(machine, subdomain_size=300, random_state=0)
        return np.abs(model.fit(X, function(X)).predict(Q) - function(Q)).mean()

    found = tune(X, function(X))
    assert LEAST_NOISE / (1 + ROUNDING) <= found.noise_ < 0.1 * NOISE_BOUNDS[0]
    assert error(GP()) < 0.5 * error(GP(noise=NOISE_BOUNDS[0]))


@each_size
@pytest.mark.filterwarnings("ignore:The inputs explain almost nothing")
def test_what_is_found_lies_within_the_bounds(n_samples):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_samples, 2)) * [1.0, 100.0]
    for y in (rng.normal(size=n_samples), X[:, 0], np.sign(X[:, 0])):
        found = tune(X, y)
        lengths = found.length_scale_ / X.std(axis=0)
        slack = 1 + ROUNDING
        assert (lengths >= LENGTH_BOUNDS[0] / slack).all()
        assert (lengths <= LENGTH_BOUNDS[1] * slack).all()
        assert LEAST_NOISE / slack <= found.noise_ <= NOISE_BOUNDS[1] * slack


@each_size
@pytest.mark.parametrize("value", [0.0, 1e9])
def test_constant_columns_are_ignored(n_samples, value):
    X, y = make_data(n_samples)
    with_constant = np.insert(X, 1, value, axis=1)
    found = tune(with_constant, y)
    assert np.isinf(found.length_scale_[1])
    expected = tuned(n_samples)
    assert_allclose(np.delete(found.length_scale_, 1), expected.length_scale_)
    assert_allclose(found.noise_, expected.noise_)


@each_size
def test_constant_outputs_do_not_break_it(n_samples):
    X, y = make_data(n_samples)
    flat = np.full(n_samples, 5.0)
    assert np.isfinite(tune(X, flat).theta_).all()
    both = tune(X, np.column_stack([y, flat]))
    assert_allclose(both.theta_, tuned(n_samples).theta_, atol=ROUNDING)


@each_size
@pytest.mark.parametrize("factor", [1e6, 1e-6])
def test_length_scales_follow_the_units_of_the_inputs(n_samples, factor):
    X, y = make_data(n_samples)
    expected, scaled = tuned(n_samples), tune(factor * X, y)
    assert_allclose(scaled.length_scale_, factor * expected.length_scale_, rtol=0.05)
    assert_allclose(scaled.noise_, expected.noise_, rtol=0.05)


@each_size
@pytest.mark.parametrize(("factor", "shift"), [(1e-9, 0.0), (-1e9, 0.0), (1.0, 1e6)])
def test_the_units_of_the_outputs_do_not_matter(n_samples, factor, shift):
    X, y = make_data(n_samples)
    scaled = tune(X, shift + factor * y)
    assert_allclose(scaled.theta_, tuned(n_samples).theta_, atol=0.02)


def test_per_output_is_tuned_output_by_output():
    X, y = make_data(SMALL)
    Y = np.column_stack([y, np.cos(3 * X[:, 2])])
    found = tune(X, Y, per_output=True, kernel="matern32")
    assert found.length_scale_.shape == (2, 3)
    assert found.length_scale_[0, 2] > found.length_scale_[0, 0]
    assert found.length_scale_[1, 2] < found.length_scale_[1, 0]


def test_a_kernel_object_is_tuned_by_the_likelihood():
    X, y = make_data(200)
    kernel = ConstantKernel(1.0) * RBF([1.0, 1.0, 1.0])
    found = tune(X, y, kernel=kernel)
    fast, slow, irrelevant = found.kernel_.k2.length_scale
    assert irrelevant > 3 * slow > 3 * fast


def test_a_kernel_object_without_free_hyperparameters_keeps_them():
    X, y = make_data(100)
    found = tune(X, y, kernel=RBF(1.7, "fixed"))
    assert found.kernel_.length_scale == 1.7
    assert 1e-7 <= found.noise_ <= 10


def test_every_candidate_has_a_score_and_the_refined_one_is_no_worse():
    [scores] = tune(*make_data(LARGE), kernel="matern32").tuning_scores_
    assert {"isotropic", "columns 1", "likelihood", "refined"} <= set(scores)
    # Scores are of the first part of the rows, the choice is by all of them.
    assert scores["refined"] <= min(scores.values()) + 0.05


def test_a_kernel_is_chosen_that_suits_the_function():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (LARGE, 2))
    smooth = np.sin(X[:, 0]) * np.cos(X[:, 1])
    assert tune(X, smooth).used_kernel_ in ("rbf", "matern52")
    steps = np.sign(np.sin(9 * X[:, 0])) + 0.05 * rng.normal(size=LARGE)
    assert tune(X, steps).used_kernel_ in ("matern12", "matern32")


@each_size
def test_an_output_without_noise_leaves_a_noisy_one_alone(n_samples):
    """Shared, its noise would be at its bound, and the other's noise interpolated."""
    X, y = make_data(n_samples, noise=0.5)
    both = tune(X, np.column_stack([y, np.cos(X[:, 0]) + X[:, 1]]))
    noisy, clean = both.noise_
    assert noisy > 100 * clean
    assert both.output_groups_[0] != both.output_groups_[1]


@each_size
def test_outputs_that_agree_share_their_hyperparameters(n_samples):
    X, y = make_data(n_samples)
    shared = tune(X, np.column_stack([y, 3.0 * y, -y]))
    assert len(shared.theta_) == 1
    assert shared.output_groups_.tolist() == [0, 0, 0]
    assert len(tune(X, np.column_stack([y, X[:, 0]]), per_output=False).theta_) == 1


def test_columns_as_they_are_where_quiet_ones_are_noise():
    """In deviations, the noise of quiet columns would be as loud as the signal."""
    rng = np.random.default_rng(0)
    loud = rng.normal(size=(LARGE, 3))
    X = np.hstack([loud, 1e-3 * rng.normal(size=(LARGE, 220))])
    [scores] = tune(X, np.sin(loud[:, 0]) + loud[:, 1]).tuning_scores_
    assert scores["plain"] < scores["isotropic"] - 0.5


def repeated(n_groups=40, n_each=10):
    """Groups that share their inputs nearly, and an offset of the output."""
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-2, 2, (n_groups, 2)), n_each, axis=0)
    X += 0.01 * rng.normal(size=X.shape)
    offsets = np.repeat(rng.normal(size=n_groups), n_each)
    order = rng.permutation(len(X))
    groups = np.repeat(np.arange(n_groups), n_each)
    return X[order], (np.sin(X[:, 0]) + offsets)[order], groups[order]


def test_groups_are_held_out_together():
    """With its group known, the offset of a row is no surprise; without, it is."""
    X, y, groups = repeated()
    queries = np.random.default_rng(1).uniform(-2, 2, (200, 2))
    alone, together = (
        GP(random_state=0).fit(X, y, groups=g).predict(queries, return_std=True)[1]
        for g in (None, groups)
    )
    assert np.median(together) > 0.7
    assert np.median(together) > np.median(alone)


def test_groups_that_cannot_be_held_out_are_refused():
    X, y, groups = repeated()
    with pytest.raises(ValueError, match="one group only"):
        GP().fit(X, y, groups=np.zeros(len(X)))
    with pytest.raises(ValueError, match="Give one group for each row"):
        GP().fit(X, y, groups=groups[:-1])
    for missing in (None, np.nan, pd.NA):
        for names in ([*groups[1:], missing], [*groups[1:].astype(str), missing]):
            with pytest.raises(ValueError, match="groups has missing values"):
                GP().fit(X, y, groups=pd.Series(names, dtype=object))
    mixed = np.array([*groups[1:], "new"], dtype=object)
    with pytest.raises(ValueError, match="words beside numbers"):
        GP().fit(X, y, groups=mixed)


def sequence(n_samples=1500, memory=0.99, seed=0):
    """Inputs that wander, and an error that wanders too."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(size=(n_samples, 3))
    state = np.zeros((n_samples, 3))
    for t in range(1, n_samples):
        state[t] = memory * state[t - 1] + np.sqrt(1 - memory**2) * steps[t]
    return state[:, :2], np.sin(state[:, 0]) + 0.5 * state[:, 2]


def test_rows_in_sequence_are_noticed_and_left_out_in_runs():
    X, y = sequence()
    with pytest.warns(DataWarning, match="look like a sequence"):
        machine = tune(X, y)
    assert machine.run_length_ >= 16
    order = np.random.default_rng(0).permutation(len(X))
    assert tune(X[order], y[order]).run_length_ == 1


@pytest.mark.parametrize("memory", [0.0, 0.95])
@pytest.mark.parametrize("n_samples", [150, 1200])
def test_a_slow_drift_below_the_noise_is_noticed(n_samples, memory):
    """Whether the inputs wander, or are at random."""
    X, _ = sequence(n_samples, memory)
    rng = np.random.default_rng(1)
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=n_samples)
    drift = 0.2 * np.sin(np.linspace(0, 9, n_samples))
    with pytest.warns(DataWarning, match="look like a sequence"):
        assert tune(X, y + drift).run_length_ >= n_samples // 8
    # Inputs that wander, and independent errors, are no sequence.
    assert tune(X, y).run_length_ == 1


def test_slow_waves_are_as_rare_as_is_said_where_errors_are_independent(monkeypatch):
    """Also where the inputs wander, and errors have long tails."""
    monkeypatch.setattr(_serial, "RARE", 0.1)
    n_noticed = 0
    for seed in range(200):
        X, _ = sequence(100, memory=0.9, seed=seed)
        y = np.sin(X[:, 0]) + 0.1 * np.random.default_rng(seed).laplace(size=100)
        theta = np.log([1.0, 10.0, 0.03])
        problem, start, _ = standardize("rbf", X, y[:, None], None, theta, None)
        n_noticed += _serial.have_slow_waves(problem, "rbf", start)
    assert 5 < n_noticed < 35


def test_rows_in_order_of_the_output_are_no_sequence():
    X, y = make_data(150)
    labels = np.sort(np.digitize(y, [-0.5, 0.5]))
    assert tune(X[np.argsort(y)], labels).run_length_ == 1


def test_independent_rows_are_no_sequence():
    X, y = make_data(LARGE)
    assert tune(X, y).run_length_ == 1
    ordered = np.argsort(X[:, 0])
    with pytest.warns(DataWarning, match="in order of column 0"):
        assert tune(X[ordered], y[ordered]).run_length_ == 1


@pytest.mark.parametrize(
    "kind", ["one column", "grid", "useless", "groups", "shuffled"]
)
def test_rows_in_order_of_a_column_are_no_matter(kind):
    rng = np.random.default_rng(0)
    X, groups = rng.uniform(-2, 2, (80, 2)), None
    X = X[np.argsort(X[:, 0])]
    if kind == "one column":
        X = X[:, :1]
    elif kind == "grid":
        X = np.stack(np.meshgrid(np.arange(8.0), np.arange(10.0)), -1).reshape(-1, 2)
    elif kind == "groups":
        groups = np.arange(80) // 4
    elif kind == "shuffled":
        X = X[rng.permutation(80)]
    column = X[:, -1] if kind == "useless" else X[:, 0]
    y = np.sin(column) + 0.01 * rng.normal(size=80)
    GP("rbf").fit(X, y, groups=groups)


@pytest.mark.parametrize("descent", ["descend", "descend_columns"])
@each_size
def test_what_halves_of_the_rows_measured_survives_another_descent(n_samples, descent):
    # Another kernel starts from length scales whose variances were found too small.
    X, y = make_data(n_samples)
    theta = np.full(X.shape[1] + 1, np.nan)
    problem, start, _ = standardize("rbf", X, y[:, None], None, theta, None)
    is_small = n_samples <= _judge.FEW_ROWS
    make = _search.LikelihoodSearch if is_small else _search.PredictionSearch
    search = make(problem, start, np.random.RandomState(0))
    candidate = Candidate("matern52", start, inflation=1.5)
    moved = getattr(search, descent)(candidate)
    assert moved.inflation == 1.5 and moved.kernel == "matern52"
    assert not np.array_equal(moved.theta, start)


def test_standard_units_can_be_undone():
    X, y = make_data(50)
    fixed = np.array([np.nan, np.log(2.0), np.nan, np.log(0.1)])
    problem, start, restore = standardize("rbf", X, y[:, None], None, fixed, None)
    assert_array_equal(problem.free, [True, False, True, False])
    assert_allclose(problem.X[:].std(axis=0), 1.0)
    theta = restore(start)
    assert_allclose(theta[[1, 3]], fixed[[1, 3]], rtol=1e-12)
    assert_allclose(restore.inverse(theta), start, atol=1e-3)


def test_tuned_machines_predict_well_in_a_cover():
    X, y = make_data(LARGE, noise=0.05)
    Xq, yq = make_data(200, noise=0.0, seed=1)
    model = OverlappingCoverRegressor(subdomain_size=150, random_state=0).fit(X, y)
    assert np.sqrt(np.mean((model.predict(Xq) - yq) ** 2)) < 0.1
