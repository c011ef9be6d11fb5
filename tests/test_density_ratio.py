"""Density ratios agree with RuLSIF's formulas, and with ratios that are known."""

import warnings

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from overcover import density_ratio
from overcover.density_ratio import (
    RelativeDensityRatio,
    cross_validated_scores,
    fold_moments,
    relative_density_ratio,
)

ALPHAS = (0.0, 0.1, 0.5, 0.9, 1.0)
each_alpha = pytest.mark.parametrize("alpha", ALPHAS)


def standardized(X_train, X_target):
    """Both samples, every column in standard deviations of their even mixture."""
    train, target = np.empty_like(X_train), np.empty_like(X_target)
    for j in range(X_train.shape[1]):
        a, b = X_train[:, j], X_target[:, j]
        mean = (a.mean() + b.mean()) / 2
        std = np.sqrt((np.mean((a - mean) ** 2) + np.mean((b - mean) ** 2)) / 2)
        train[:, j], target[:, j] = (a - mean) / std, (b - mean) / std
    return train, target


def slow_moments(train, target, centers, alpha, tau):
    """H and h by their definitions, one row at a time."""

    def k(x):
        return np.array([np.exp(-np.sum((x - c) ** 2) / (2 * tau**2)) for c in centers])

    H = np.zeros((len(centers), len(centers)))
    h = np.zeros(len(centers))
    for x in target:
        H += (1 - alpha) / len(target) * np.outer(k(x), k(x))
        h += k(x) / len(target)
    for x in train:
        H += alpha / len(train) * np.outer(k(x), k(x))
    return H, h, np.array([k(x) for x in train])


def slow_weights(X_train, X_target, alpha, tau, nu):
    """RuLSIF with a kernel at every target row."""
    train, target = standardized(X_train, X_target)
    H, h, K_train = slow_moments(train, target, target, alpha, tau)
    return np.maximum(K_train @ np.linalg.solve(H + nu * np.eye(len(h)), h), 0)


def gaussian_ratio(x, mean, std, alpha):
    """The relative ratio of N(mean, std^2) to N(0, 1)."""
    target, train = norm.pdf(x, mean, std), norm.pdf(x)
    return target / ((1 - alpha) * target + alpha * train)


@pytest.fixture
def samples(rng):
    """60 training and 40 target rows of 3 columns in quite different units."""
    units = np.array([1.0, 1e-3, 1e4])
    return rng.normal(size=(60, 3)) * units, rng.normal(0.5, 0.7, (40, 3)) * units


@pytest.fixture(scope="module")
def gaussians():
    """Training rows from N(0, 1), target rows from N(1, 0.5^2)."""
    rng = np.random.default_rng(3)
    return rng.normal(size=(2000, 1)), rng.normal(1, 0.5, size=(2000, 1))


# -- the formulas ---------------------------------------------------------------------


@pytest.mark.parametrize("alpha", ALPHAS[1:])
@pytest.mark.parametrize("tau, nu", [(0.5, 0.1), (2.0, 1e-3), (30.0, 1.0)])
def test_weights_match_the_formulas(samples, alpha, tau, nu):
    model = RelativeDensityRatio(alpha, length_scale=tau, ridge=nu).fit(*samples)
    assert_allclose(
        model.weights_, slow_weights(*samples, alpha, tau, nu), rtol=1e-8, atol=1e-8
    )
    assert (model.length_scale_, model.ridge_) == (tau, nu)
    assert np.isnan(model.scores_).all()


@pytest.mark.parametrize("block", [1, 7, 4096])
def test_moments_of_folds_add_up_to_the_formulas(samples, monkeypatch, block):
    monkeypatch.setattr(density_ratio, "BLOCK", block)
    train, target = standardized(*samples)
    taus = np.array([2.0, np.sqrt(2.0), 1.0])
    H, h = fold_moments(train, target, target[:9], taus, 0.3, n_folds=4)
    for t, tau in enumerate(taus):
        slow_H, slow_h, _ = slow_moments(train, target, target[:9], 0.3, tau)
        assert_allclose(H[t].sum(axis=0), slow_H, rtol=1e-10)
        assert_allclose(h[t].sum(axis=0), slow_h, rtol=1e-10)


def test_scores_are_j_of_rows_held_out(samples):
    """J by its definition over rows, in folds of equal size."""
    alpha, taus, ridges, n_folds = 0.3, np.array([2.0, np.sqrt(2.0)]), [1.0, 0.01], 4
    train, target = standardized(*samples)
    centers = target[:9]
    H, h = fold_moments(train, target, centers, taus, alpha, n_folds)
    scores = cross_validated_scores(H, h, np.array(ridges))
    for t, tau in enumerate(taus):
        for r, nu in enumerate(ridges):
            J = 0.0
            for f in range(n_folds):
                out = np.arange(60) % n_folds == f, np.arange(40) % n_folds == f
                kept = train[~out[0]], target[~out[1]]
                H_f, h_f, _ = slow_moments(*kept, centers, alpha, tau)
                theta = np.linalg.solve(H_f + nu * np.eye(9), h_f)
                w_train, w_target = (
                    density_ratio.gaussian(rows, centers, tau) @ theta
                    for rows in (train[out[0]], target[out[1]])
                )
                J += (1 - alpha) / 2 * np.mean(w_target**2) - np.mean(w_target)
                J += alpha / 2 * np.mean(w_train**2)
            assert_allclose(scores[t, r], J / n_folds, rtol=1e-9)


def test_theta_minimises_the_regularised_objective(rng):
    A = rng.normal(size=(6, 4))
    H, h, nu = A.T @ A, rng.normal(size=4), 0.1
    theta = relative_density_ratio(H, h, nu)
    assert_allclose(H @ theta - h + nu * theta, 0, atol=1e-12)


def test_the_setting_with_the_lowest_score_is_taken(samples):
    model = RelativeDensityRatio(random_state=0).fit(*samples)
    taus, ridges = model.grid_
    assert model.scores_.shape == (len(taus), len(ridges))
    t, r = np.argwhere(model.scores_ == model.scores_.min())[0]
    assert (model.length_scale_, model.ridge_) == (taus[t], ridges[r])
    given = clone(model).set_params(length_scale=taus[t], ridge=ridges[r])
    assert_allclose(given.fit(*samples).weights_, model.weights_, rtol=1e-6, atol=1e-9)


def test_one_setting_may_be_given_and_the_other_found(samples):
    given_tau = RelativeDensityRatio(length_scale=1, random_state=0).fit(*samples)
    given_nu = RelativeDensityRatio(ridge=1, random_state=0).fit(*samples)
    assert given_tau.length_scale_ == given_nu.ridge_ == 1
    assert given_tau.scores_.shape[0] == given_nu.scores_.shape[1] == 1


# -- ratios that are known ------------------------------------------------------------


@each_alpha
def test_equal_distributions_get_weights_near_one(rng, alpha):
    X_train, X_target = rng.normal(size=(1000, 2)), rng.normal(size=(800, 2))
    model = RelativeDensityRatio(alpha, random_state=0).fit(X_train, X_target)
    assert np.sqrt(np.mean((model.weights_ - 1) ** 2)) < 0.1
    assert model.effective_sample_size_ > 980


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9, 1.0])
def test_ratio_of_two_gaussians_is_found(gaussians, alpha):
    """At 1 it is p_target / p_train: which way round, and with which alpha."""
    model = RelativeDensityRatio(alpha, random_state=0).fit(*gaussians)
    x = np.linspace(-2, 2.5, 50)
    true = gaussian_ratio(x, 1, 0.5, alpha)
    error = np.sqrt(np.mean((model.predict(x[:, None]) - true) ** 2))
    assert error < 0.1 * true.max()


@pytest.mark.parametrize("shift", [0.0, 100.0])
def test_alpha_zero_gives_one_everywhere(gaussians, shift):
    """Of the target over itself; whatever lies where."""
    X_train, X_target = gaussians
    model = RelativeDensityRatio(0.0, random_state=0).fit(X_train, X_target + shift)
    assert_array_equal(model.weights_, 1.0)
    assert_array_equal(model.predict([[-50.0], [0.0], [1e9]]), 1.0)
    assert model.effective_sample_size_ == len(X_train)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.8])
def test_ratios_hardly_exceed_their_bound(gaussians, alpha):
    model = RelativeDensityRatio(alpha, random_state=0).fit(*gaussians)
    assert model.weights_.max() < 1.1 / (1 - alpha)


def test_effective_sample_size_falls_as_alpha_rises(gaussians):
    sizes = [
        RelativeDensityRatio(alpha, random_state=0)
        .fit(*gaussians)
        .effective_sample_size_
        for alpha in ALPHAS
    ]
    assert np.all(np.diff(sizes) < 0)
    assert sizes[0] > 1900


# -- what must not matter -------------------------------------------------------------


def test_fits_with_one_random_state_are_equal(samples):
    one, other = (
        RelativeDensityRatio(n_centers=10, random_state=7).fit(*samples)
        for _ in range(2)
    )
    assert_array_equal(one.weights_, other.weights_)
    assert_array_equal(one.scores_, other.scores_)
    assert_array_equal(one.predict(samples[0]), one.weights_)


def test_permuting_rows_permutes_weights(samples, rng):
    """Even where centres are drawn and folds are dealt at random."""
    X_train, X_target = samples
    model = RelativeDensityRatio(n_centers=10, random_state=0)
    weights = model.fit(X_train, X_target).weights_
    rows, others = rng.permutation(60), rng.permutation(40)
    permuted = model.fit(X_train[rows], X_target[others]).weights_
    assert_allclose(permuted, weights[rows], rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("unit", [1e-12, 1e-9, 1e9, 1e12, [1e-9, 1.0, 1e9]])
def test_units_do_not_matter(samples, unit):
    X_train, X_target = samples
    model = RelativeDensityRatio(n_centers=20, random_state=0)
    weights = model.fit(X_train, X_target).weights_
    scaled = model.fit(X_train * unit, X_target * unit).weights_
    assert_allclose(scaled, weights, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e12, 1e-12])
def test_constant_columns_do_not_matter(samples, value):
    model = RelativeDensityRatio(length_scale=1.0, ridge=0.1)
    weights = model.fit(*samples).weights_
    wider = [np.column_stack([X, np.full(len(X), value)]) for X in samples]
    assert_allclose(model.fit(*wider).weights_, weights, rtol=1e-9, atol=1e-12)


def test_float32_rows_and_data_frames_are_taken(samples):
    model = RelativeDensityRatio(length_scale=1.0, ridge=0.1)
    weights = model.fit(*samples).weights_
    narrow = [X.astype(np.float32) for X in samples]
    assert_allclose(model.fit(*narrow).weights_, weights, rtol=1e-4, atol=1e-5)
    frames = [pd.DataFrame(X, columns=["a", "b", "c"]) for X in samples]
    assert_allclose(model.fit(*frames).weights_, weights)
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frames[0][["c", "b", "a"]])


# -- extremes -------------------------------------------------------------------------


@each_alpha
@pytest.mark.parametrize("shift", [8.0, 1e3, 1e9])
def test_samples_far_apart_get_finite_weights(rng, alpha, shift):
    X_train, X_target = rng.normal(size=(200, 2)), rng.normal(shift, 1, (100, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = RelativeDensityRatio(alpha, random_state=0).fit(X_train, X_target)
    assert np.isfinite(model.weights_).all() and (model.weights_ >= 0).all()
    assert 0 <= model.effective_sample_size_ <= 200 * (1 + 1e-12)


def test_samples_that_hardly_overlap_warn(rng):
    X_train, X_target = rng.normal(size=(300, 1)), rng.normal(60, 1, (200, 1))
    with pytest.warns(UserWarning, match="hardly overlap.*Lower alpha=0.5"):
        RelativeDensityRatio(random_state=0).fit(X_train, X_target)


def test_one_row_with_all_the_weight_warns(rng):
    X_train = np.append(rng.normal(size=(300, 1)), [[30.0]], axis=0)
    model = RelativeDensityRatio(length_scale=0.1, ridge=0.01)
    with pytest.warns(UserWarning, match="count as 1 equal rows"):
        model.fit(X_train, rng.normal(30, 1, (200, 1)))
    assert model.effective_sample_size_ == pytest.approx(1)
    assert model.weights_.argmax() == 300


def test_without_any_overlap_all_rows_count_one(rng):
    X_train, X_target = rng.normal(size=(30, 1)), rng.normal(60, 1, (20, 1))
    model = RelativeDensityRatio(length_scale=0.01, ridge=0.1)
    with pytest.warns(UserWarning, match="all were set to one"):
        model.fit(X_train, X_target)
    assert_array_equal(model.weights_, np.ones(30))
    assert model.effective_sample_size_ == 0
    assert_array_equal(model.predict(X_train), np.zeros(30))


def test_queries_beyond_all_measure_get_zero(samples):
    model = RelativeDensityRatio(random_state=0).fit(*samples)
    assert_array_equal(model.predict(np.full((2, 3), 1e300)), [0, 0])


def test_any_positive_length_scale_will_do(samples):
    flat = RelativeDensityRatio(length_scale=1e200, ridge=1e-6).fit(*samples)
    assert_allclose(flat.weights_, 1, atol=1e-6)
    with pytest.warns(UserWarning, match="all were set to one"):
        RelativeDensityRatio(length_scale=1e-200).fit(*samples)


def test_rows_that_all_coincide_get_weight_one():
    model = RelativeDensityRatio().fit(np.full((30, 2), 0.1), np.full((20, 2), 0.1))
    assert_allclose(model.weights_, 1, atol=1e-3)


@pytest.mark.parametrize("n_train, n_target", [(1, 1), (1, 30), (30, 1), (2, 2)])
def test_very_few_rows_will_do(rng, n_train, n_target):
    X_train, X_target = rng.normal(size=(n_train, 2)), rng.normal(size=(n_target, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = RelativeDensityRatio(random_state=0).fit(X_train, X_target)
    assert np.isfinite(model.weights_).all()
    assert np.isnan(model.scores_).all() == (min(n_train, n_target) == 1)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**32 - 1),
    sizes=st.tuples(st.integers(1, 30), st.integers(1, 30), st.integers(1, 4)),
    alpha=st.floats(0, 1),
    rounded=st.booleans(),
    shift=st.sampled_from([0.0, 1.0, 10.0]),
)
def test_weights_are_finite_and_count_as_one_to_all_rows(
    seed, sizes, alpha, rounded, shift
):
    """Whatever the rows, duplicates and constant columns among them."""
    rng = np.random.default_rng(seed)
    n_train, n_target, n_features = sizes
    X_train = rng.normal(size=(n_train, n_features))
    X_target = rng.normal(shift, 1, (n_target, n_features))
    if rounded:
        X_train, X_target = np.round(X_train), np.round(X_target)
    model = RelativeDensityRatio(alpha, n_centers=8, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X_train, X_target)
    assert model.weights_.shape == (n_train,)
    assert np.isfinite(model.weights_).all() and (model.weights_ >= 0).all()
    size = model.effective_sample_size_
    assert size == 0 or 1 - 1e-9 <= size <= n_train * (1 + 1e-9)
    assert len(model.centers_) == len(model.theta_) == min(8, n_target)


# -- wrong inputs and the estimator's contract ----------------------------------------


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"alpha": -0.1}, "alpha=-0.1 must lie between 0 .* and 1"),
        ({"alpha": np.nan}, "alpha=nan"),
        ({"alpha": "half"}, "alpha='half'"),
        (
            {"length_scale": 0.0},
            "length_scale=0.0 must be a positive number, or 'auto'",
        ),
        ({"length_scale": "median"}, "length_scale='median'"),
        ({"ridge": -1.0}, "ridge=-1.0 must be a positive number"),
        ({"ridge": np.inf}, "ridge=inf"),
        ({"n_centers": 0}, "n_centers=0 must be an integer >= 1"),
    ],
)
def test_wrong_parameters_are_refused(samples, parameters, message):
    with pytest.raises(ValueError, match=message):
        RelativeDensityRatio(**parameters).fit(*samples)


@pytest.mark.parametrize(
    "X_target, message",
    [
        (np.zeros((5, 2)), "X_target has 2 columns, but X_train has 3"),
        (np.zeros((0, 3)), "X_target has no rows"),
        (np.full((5, 3), np.nan), "X_target contains NaN"),
        (np.full((5, 3), np.inf), "X_target contains infinity"),
        (np.zeros(3), "Expected 2D array"),
        ([], "X_target has no rows"),
        (None, "X_target has no rows"),
    ],
)
def test_wrong_targets_are_refused_and_leave_nothing_behind(samples, X_target, message):
    model = RelativeDensityRatio()
    with pytest.raises(ValueError, match=message):
        model.fit(samples[0], X_target)
    with pytest.raises(NotFittedError):
        model.predict(samples[0])


def test_wrong_queries_are_refused(samples):
    model = RelativeDensityRatio(random_state=0).fit(*samples)
    with pytest.raises(ValueError, match="X has 1 columns, but X_train has 3"):
        model.predict([[1.0]])


def test_parameters_can_be_cloned_set_and_shown():
    model = RelativeDensityRatio(0.3, n_centers=7)
    assert clone(model).get_params() == model.get_params()
    assert model.set_params(ridge=0.1).ridge == 0.1
    assert repr(model) == "RelativeDensityRatio(alpha=0.3, n_centers=7, ridge=0.1)"
