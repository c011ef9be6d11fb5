"""Calibration: residuals of rows left out make the variance honest."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from scipy.stats import t as student

import reference
from overcover import GP, OverlappingCoverRegressor, TwinGP
from overcover._validation import FewRowsWarning
from overcover.machines import calibration, errors

few = settings(deadline=None, max_examples=25)
positive = st.floats(1e-6, 1e6)


def errors_of(calibration):
    return errors.Calibrated(
        calibration.quantiles,
        calibration.tail,
        calibration.width,
        np.sqrt(calibration.output_variance),
        calibration.ends,
    )


def calibrated(ratios):
    """Calibration where there is only one way to localise."""
    return in_all_ways(ratios[None])


def in_all_ways(ratios):
    """Calibration of outputs with mean zero and variance one."""
    one = np.ones(ratios.shape[2])
    return calibration.calibrate(ratios, one, 0.0 * one, one)


@few
@given(arrays(float, (20, 2), elements=positive))
def test_after_the_factor_ratios_are_one_on_average(ratios):
    assert_allclose(np.mean(ratios / calibrated(ratios).factor, axis=0), 1.0)


@few
@given(arrays(float, (20, 1), elements=positive))
def test_the_factor_maximises_the_gaussian_log_density(ratios):
    factor = calibrated(ratios).factor[0]

    def log_density(c):
        return -np.sum(np.log(c) + ratios / c)

    assert log_density(factor) >= max(log_density(f * factor) for f in (0.9, 1.1))


@few
@given(arrays(float, (30, 2), elements=positive), st.floats(0.01, 0.98))
def test_half_widths_hold_their_share_of_the_residuals(ratios, coverage):
    found = calibrated(ratios)
    half = errors_of(found).half_width(coverage)
    inside = np.sqrt(ratios / found.factor) <= half * (1 + 1e-9)
    # Quantiles interpolate between residuals, so one of thirty may be missing.
    assert (inside.mean(axis=0) >= coverage - 1.5 / 30).all()


def test_gaussian_residuals_have_gaussian_half_widths():
    z = norm.ppf((np.arange(20_000) + 0.5) / 20_000)[:, None]
    found = calibrated(9.0 * z**2)
    assert_allclose(found.factor, 9.0, rtol=1e-3)
    for coverage in (0.5, 0.9, 0.95, 0.99):
        half = errors_of(found).half_width(coverage)
        assert_allclose(half, norm.ppf(0.5 + 0.5 * coverage), rtol=5e-3)


def test_heavy_tails_widen_wide_intervals():
    z = np.random.default_rng(0).standard_t(3, size=(20_000, 1))
    half = errors_of(calibrated(z**2)).half_width(0.995)
    assert half > 1.1 * norm.ppf(0.9975)


def test_outputs_have_factors_of_their_own():
    ratios = np.column_stack([np.full(50, 4.0), np.full(50, 0.25)])
    assert_array_equal(calibrated(ratios).factor, [4.0, 0.25])


def test_residuals_of_zero_leave_the_variance_alone():
    found = calibrated(np.zeros((100, 1)))
    assert_array_equal(found.factor, [1.0])
    assert_array_equal(errors_of(found).half_width(0.95), [1.0])


@pytest.mark.parametrize("n_rows", [2, 5, 10, 40])
def test_half_widths_hold_another_residual_however_few_there_were(n_rows):
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(1500):
        z = rng.normal(size=(n_rows + 1, 1))
        half = errors.quantiles_of(np.abs(z[:-1]))
        at = np.array([0.5, 0.8, 0.95])
        inside.append(np.abs(z[-1]) <= np.interp(at, errors.LEVELS, half[:, 0]))
    share = np.mean(inside, axis=0)
    assert (share > at - 0.03).all()
    assert (share < at + (0.03 if n_rows > 2 else 0.08)).all()


@pytest.mark.parametrize("n_groups", [3, 10])
def test_half_widths_hold_residuals_of_another_group_however_few_there_were(n_groups):
    rng = np.random.default_rng(0)
    groups, shares = np.repeat(np.arange(n_groups), 20), []
    for _ in range(600):
        common = rng.normal(size=n_groups + 1)
        own = rng.normal(size=20 * n_groups + 20)
        z = (np.repeat(common, 20) + 0.3 * own)[:, None]
        z, others = np.abs(z[:-20]), np.abs(z[-20:])
        for evidence in (None, errors.evidence_of(z, groups)):
            half = errors.quantiles_of(z, evidence=evidence)
            shares.append(np.mean(others <= np.interp(0.95, errors.LEVELS, half[:, 0])))
    alone, together = np.mean(np.reshape(shares, (-1, 2)), axis=0)
    assert alone < 0.92
    assert 0.93 < together < 0.99


def test_groups_say_nothing_of_residuals_that_do_not_depend_on_each_other():
    rng = np.random.default_rng(0)
    z, order = np.abs(rng.normal(size=(2000, 3))), rng.permutation(2000)
    assert (errors.evidence_of(z, np.repeat(np.arange(100), 20)) > 1400).all()
    assert_array_equal(errors.evidence_of(z, order), 2000.0)
    assert_array_equal(errors.evidence_of(np.ones((9, 1)), np.arange(9) // 3), 9.0)
    whole = np.full(3, 2000.0)
    assert_array_equal(errors.quantiles_of(z, 2, whole), errors.quantiles_of(z, 2))


def test_hyperparameters_learned_from_few_rows_widen_wide_intervals():
    z = np.abs(np.random.default_rng(0).normal(size=(10, 1)))
    given, learned = (errors.quantiles_of(z, n_learned=n) for n in (0, 2))
    inside = errors.LEVELS <= 10 / 11
    assert_array_equal(learned[inside], given[inside])
    assert (learned[~inside] > given[~inside]).all()


def test_no_more_is_claimed_of_tails_than_few_residuals_can_tell():
    assert calibrated(np.ones((4, 1))).tail[0] <= 3.0


@pytest.mark.parametrize("size", [0.0, 1e-9, 7.0, 1e9])
def test_an_output_that_never_varied_has_a_small_variance(size):
    ratios = np.ones((1, 50, 1))
    nothing = np.zeros(1)
    found = calibration.calibrate(ratios, nothing, np.full(1, size), nothing)
    std = np.sqrt(found.least_scale[0] * found.factor[0])
    assert std == pytest.approx((size or 1.0) / 50)


# -- log density ----------------------------------------------------------------------


@pytest.mark.parametrize("deviation", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("freedom", [4, np.inf])
def test_densities_integrate_to_one_and_fit_the_residuals(freedom, deviation):
    z = np.random.default_rng(0).standard_t(freedom if freedom < np.inf else 1e9, 4000)
    found = calibrated(z[:, None] ** 2)
    std = np.full((200_001, 1), deviation)
    error = np.linspace(-60, 60, 200_001)[:, None] * deviation
    density = np.exp(errors_of(found).log_density(error, std))
    step = 120 * deviation / 200_000
    assert np.sum(density) * step == pytest.approx(1.0, abs=5e-3)
    # As good as the truth, whose density they were drawn from.
    z = z[:, None] / np.sqrt(found.factor)
    scale = 1 / np.sqrt(found.factor[0])
    truth = student.logpdf(z, freedom if freedom < np.inf else 1e9, scale=scale)
    fitted = errors_of(found).log_density(z, np.ones_like(z))
    assert np.mean(fitted) >= np.mean(truth) - 0.01


def test_an_outlier_costs_less_where_outliers_are_known():
    rng = np.random.default_rng(0)
    error, std = np.full((1, 1), 50.0), np.ones((1, 1))
    heavy = calibrated(rng.standard_t(2, size=(2000, 1)) ** 2)
    light = calibrated(rng.normal(size=(2000, 1)) ** 2)
    densities = [errors_of(c).log_density(error, std)[0, 0] for c in (heavy, light)]
    assert densities[0] > densities[1] + 10


def test_a_deviation_of_zero_has_a_finite_log_density():
    found = calibrated(np.random.default_rng(0).normal(size=(50, 1)) ** 2)
    assert np.isfinite(errors_of(found).log_density(*np.zeros((2, 3, 1)))).all()


# -- local scales ---------------------------------------------------------------------


def test_the_most_even_locality_is_chosen(rng):
    even, uneven = np.ones((100, 1)), rng.exponential(size=(100, 1)) ** 3
    assert in_all_ways(np.stack([uneven, even])).locality == 1
    assert in_all_ways(np.stack([even, uneven])).locality == 0


@few
@given(st.integers(0, 2**32 - 1), st.floats(0.5, 40))
def test_no_more_rows_decide_than_were_asked_for(seed, n_rows):
    similarity = np.random.default_rng(seed).uniform(size=(40, 6))
    squarings = calibration.squarings_for(similarity, n_rows)

    def deciding(s):
        return np.mean(np.sum(similarity ** (2.0**s), axis=0))

    assert deciding(squarings) <= n_rows + 1e-9
    assert squarings == 0 or deciding(squarings - 1) > n_rows - 1e-9


def test_where_all_rows_decide_weights_are_equal():
    assert calibration.squarings_for(np.zeros((3, 2)), np.inf) < 0


def test_identical_rows_cannot_be_told_apart_but_do_no_harm():
    squarings = calibration.squarings_for(np.ones((300, 2)), 25.0)
    assert squarings == calibration.MOST_SQUARINGS


@pytest.mark.parametrize("squarings", [-1, 0, 1, 5])
def test_the_local_scale_is_a_mean_weighted_by_powers(squarings, rng):
    similarity, residuals_sq = rng.uniform(size=(15, 4)), rng.uniform(size=(15, 2))
    weights = similarity ** (2**squarings) if squarings >= 0 else np.ones((15, 4))
    average = residuals_sq.mean(axis=0)
    expected = reference.local_scale(
        weights, residuals_sq, average, calibration.PRIOR_ROWS
    )
    each = np.full(2, squarings)
    found = calibration.local_scales(similarity, each, residuals_sq, average)
    assert_allclose(found, expected)


def test_a_row_left_out_has_no_part_in_its_own_scale(rng):
    """One huge residual is as huge beside the others, wherever it stands."""
    similarity = rng.uniform(size=(15, 6))
    np.fill_diagonal(similarity, 0.0)
    residuals_sq = rng.uniform(size=(15, 1))
    before, _ = calibration.leave_one_out_ratios(similarity, residuals_sq)
    residuals_sq[3] *= 1000.0
    after, _ = calibration.leave_one_out_ratios(similarity, residuals_sq)
    assert_allclose(after[:, 3], 1000.0 * before[:, 3])


def test_far_from_all_rows_the_local_scale_is_the_average(rng):
    residuals_sq = rng.uniform(size=(15, 2))
    average = residuals_sq.mean(axis=0)
    scale = calibration.local_scales(
        np.zeros((15, 3)), np.zeros(2, int), residuals_sq, average
    )
    assert_allclose(scale, np.tile(average, (3, 1)))


@few
@given(arrays(float, (8, 3), elements=st.floats(0, 1)))
def test_the_local_scale_lies_among_the_residuals(similarity):
    residuals_sq = np.arange(1.0, 9.0)[:, None]
    average = residuals_sq.mean(axis=0)
    scale = calibration.local_scales(
        similarity, np.zeros(1, int), residuals_sq, average
    )
    assert (scale >= 1 - 1e-9).all() and (scale <= 8 + 1e-9).all()


# -- few rows -------------------------------------------------------------------------


@pytest.mark.parametrize("value", [0.0, 5.0, -1e6])
@pytest.mark.parametrize("cover", [False, True])
def test_of_one_row_little_is_claimed(value, cover):
    model = OverlappingCoverRegressor() if cover else GP()
    with pytest.warns(FewRowsWarning, match=r"1 rows are few.*at least 20"):
        model.fit([[1.0]], [value])
    mean, std = model.predict([[1.0], [1e3]], return_std=True)
    assert_allclose(mean, value)
    assert (std >= 0.2 * (abs(value) or 1.0)).all()
    assert np.isfinite(model.log_density([[1.0]], [value + 1.0])).all()
    assert model.notes_


def test_intervals_of_two_rows_are_wide():
    """Two numbers say little of a third."""
    rng = np.random.default_rng(0)
    inside = []
    for _ in range(100):
        y = rng.normal(size=3)
        low, high = GP().fit([[0.0], [1.0]], y[:2]).predict_interval([[0.5]])
        inside.append(low[0] <= y[2] <= high[0])
    assert np.mean(inside) > 0.85


def test_twenty_rows_give_no_reason_to_warn(rng):
    X = rng.normal(size=(20, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert GP().fit(X, X[:, 0]).notes_ == []


@pytest.mark.parametrize("value", [0.0, 3.0, 1e9])
def test_constant_outputs_have_a_finite_log_density(value, rng):
    X = rng.normal(size=(40, 2))
    for model in (GP(), TwinGP(), OverlappingCoverRegressor()):
        model.fit(X, np.full(40, value))
        mean, std = model.predict(X, return_std=True)
        assert_allclose(mean, value, atol=1e-9)
        assert (std > 0).all()
        assert np.isfinite(model.log_density(X, np.full(40, value))).all()


def test_away_from_noise_free_rows_intervals_are_as_wide_as_the_prior():
    """Most residuals are tiny beside those at the border, which make the variance."""
    X = np.linspace(-3, 3, 400)[:, None]
    model = GP(length_scale=4.5, noise=1e-8).fit(X, np.sin(X[:, 0]))
    low, high = model.predict_interval([[10.0], [30.0]])
    _, std = model.predict([[10.0], [30.0]], return_std=True)
    assert (high - low > 1.9 * std).all() and (std > 0.5).all()
