"""Errors that are not symmetric: each end of an interval misses what it should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm

from overcover import GP, NeighborhoodRegressor, OverlappingCoverRegressor, TwinGP
from overcover.machines import errors

LEVELS = (0.01, 0.025, 0.1, 0.3, 0.5, 0.7, 0.9, 0.975, 0.99)


def calibrated(z, tail=1000.0):
    """Errors distributed as the residuals z are, one column each."""
    quantiles = errors.quantiles_of(np.abs(z))
    ends = errors.ends_of(np.abs(z), np.sign(z), quantiles)
    one = np.ones(z.shape[1])
    return errors.Calibrated(quantiles, tail * one, one, one, ends)


def skewed(n_rows, seed=0):
    rng = np.random.default_rng(seed)
    return rng.exponential(size=(n_rows, 1)) - 1.0


def test_quantiles_of_skewed_residuals_are_theirs():
    found = calibrated(skewed(50_000))
    for q in LEVELS:
        true = -np.log(1.0 - q) - 1.0
        assert_allclose(found.quantile(q), [true], atol=0.06 + 0.04 * true)


def test_rare_large_errors_on_one_side_leave_the_ends_where_residuals_are():
    """Most are tiny: an interval is widened by what it lacks, never multiplied."""
    rng = np.random.default_rng(0)
    is_large = rng.uniform(size=(2000, 1)) < 0.03
    z = np.where(is_large, 4.5 + rng.normal(size=(2000, 1)), -0.2)
    z += 0.02 * rng.normal(size=(2000, 1))
    found = calibrated(z)
    below, above = found.ends(0.95)
    assert 0.1 < below < 1.3
    assert_allclose(above, np.quantile(z, 0.975), atol=0.3)
    for coverage in (0.05, 0.3, 0.5, 0.9):
        assert sum(found.ends(coverage)) < sum(found.ends(0.99)) < 10.0


def test_symmetric_residuals_have_symmetric_ends():
    """Mirrored, so that their signs say nothing."""
    z = np.random.default_rng(0).normal(size=(500, 2))
    found = calibrated(np.vstack([z, -z]))
    for coverage in (0.3, 0.8, 0.95, 0.999):
        below, above = found.ends(coverage)
        assert_array_equal(below, above)
        assert_allclose(below, found.half_width(coverage), rtol=1e-12)
    assert_array_equal(found.quantile(0.5), 0.0)


@pytest.mark.parametrize("n_rows", [10, 40, 200])
def test_symmetric_residuals_rarely_count_as_skewed(n_rows):
    rng = np.random.default_rng(1)
    scores = [
        errors.asymmetry(np.abs(z), np.sign(z))[0]
        for z in rng.standard_t(5, size=(2000, n_rows, 1))
    ]
    assert np.mean(np.abs(scores)) == pytest.approx(np.sqrt(2 / np.pi), rel=0.08)
    assert np.mean(np.abs(scores) > errors.SKEWED) < 0.06


def test_the_score_is_a_sum_of_ranks_with_signs():
    z = np.array([[0.5], [-0.1], [2.0], [-1.0]])
    scores = np.array([(r / 4) ** 2 - errors.TURN for r in (2, 1, 4, 3)])
    signs = np.array([1, -1, 1, -1])
    expected = np.sum(scores * signs) / np.sqrt(np.sum(scores**2))
    assert_allclose(errors.asymmetry(np.abs(z), np.sign(z)), expected)


@settings(deadline=None, max_examples=15)
@given(
    st.integers(2, 60),
    st.sampled_from(["skewed", "tiny", "one side", "normal"]),
    st.floats(1e-3, 3.0),
    st.sampled_from([2.5, 1000.0]),
)
def test_quantiles_rise_whatever_the_residuals(n_rows, kind, std, tail):
    rng = np.random.default_rng(n_rows)
    z = {
        "skewed": skewed(n_rows, n_rows) ** 3,
        "tiny": np.append(np.full(n_rows - 1, -1e-9), 5.0)[:, None],
        "one side": rng.exponential(size=(n_rows, 1)),
        "normal": rng.normal(size=(n_rows, 1)),
    }[kind]
    std = np.full((1, 1), std)
    levels = np.linspace(0.001, 0.999, 100)
    found = calibrated(z, tail)
    values = [found.quantile(q, std)[0, 0] for q in levels]
    assert np.isfinite(values).all()
    assert np.min(np.diff(values)) >= -1e-12


def test_gaussian_quantiles_are_those_of_the_normal_distribution():
    for q in LEVELS:
        assert_allclose(errors.Gaussian().quantile(q), [norm.ppf(q)], atol=1e-12)


# -- models ----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 6, (3000, 1))
    noise = rng.gamma(0.7, size=(3000, 2)) * [0.4, -0.4]
    return X, np.sin(X) * [1.0, 0.5] + noise


@pytest.fixture(scope="module")
def model(data):
    X, Y = data
    machine = GP("matern32", length_scale=2.0, noise=0.5)
    cover = OverlappingCoverRegressor(machine, subdomain_size=200, random_state=0)
    return cover.fit(X[:1500], Y[:1500])


def test_both_tails_of_skewed_outputs_miss_what_they_should(model, data):
    X, Y = data[0][1500:], data[1][1500:]
    low, high = model.predict_interval(X, 0.95)
    for missed in (low > Y, high < Y):
        assert (missed.mean(axis=0) > 0.012).all()
        assert (missed.mean(axis=0) < 0.04).all()
    median = model.predict_quantile(X, 0.5)
    assert_allclose((median > Y).mean(axis=0), 0.5, atol=0.04)


def test_intervals_end_at_quantiles(model, data):
    X = data[0][:20]
    quantiles = model.predict_quantile(X, [0.1, 0.5, 0.9])
    assert quantiles.shape == (20, 2, 3)
    assert (np.diff(quantiles, axis=-1) > 0).all()
    low, high = model.predict_interval(X, 0.8)
    assert_allclose(quantiles[..., 0], low, rtol=1e-12)
    assert_allclose(quantiles[..., 2], high, rtol=1e-12)
    assert_array_equal(model.predict_quantile(X, 0.9), quantiles[..., 2])
    flat = GP(**model.machine.get_params()).fit(X, data[1][:20, 0])
    assert flat.predict_quantile(X, 0.3).shape == (20,)
    assert flat.predict_quantile(X, [0.3]).shape == (20, 1)


def test_a_mirrored_output_has_mirrored_quantiles(data):
    X, y = data[0][:300], data[1][:300, 0]
    options = {"length_scale": 2.0, "noise": 0.5}
    one, other = (GP("rbf", **options).fit(X, sign * y) for sign in (1, -1))
    for q in (0.05, 0.3, 0.9):
        these, those = one.predict_quantile(X, q), other.predict_quantile(X, 1 - q)
        assert_allclose(these, -those, atol=1e-9)


def test_other_models_have_quantiles(data):
    X, Y = data[0][:60], data[1][:60]
    twin = TwinGP(1.0, 1.0, input_noise=0.5, output_noise=0.5).fit(X, Y)
    assert set(np.unique(twin.state_.sides)) <= {-1, 0, 1}
    near = NeighborhoodRegressor(GP(length_scale=1.0, noise=0.5), n_neighbors=20)
    mean, std = near.fit(X, Y[:, 0]).predict(X[:5], return_std=True)
    assert_allclose(near.predict_quantile(X[:5], 0.9), mean + norm.ppf(0.9) * std)
    low, _ = twin.predict_interval(X[:5], 0.8)
    assert_allclose(twin.predict_quantile(X[:5], 0.1), low)


@pytest.mark.parametrize("q", [0.0, 1.0, [0.5, 2.0], "much", [[0.5]], [], None, np.nan])
def test_what_is_no_probability_is_refused(model, data, q):
    with pytest.raises(ValueError, match="must be a probability between 0 and 1"):
        model.predict_quantile(data[0][:3], q)
