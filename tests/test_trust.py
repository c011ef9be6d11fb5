"""Defaults hold on data of other kinds than tables of independent, clean rows."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import overcover
from overcover import GP, OverlappingCoverRegressor
from overcover._left_out import contradicted_rows
from overcover._linalg import cholesky, inverse_factor
from overcover._validation import DataWarning, warn_of_bounds
from overcover.advice import advise
from overcover.tuning._bounds import at_bounds
from overcover.tuning._outliers import lie_together
from overcover.tuning._problem import Candidate, standardize


def waves(X):
    """A smooth function of two columns."""
    return np.sin(2 * X[:, 0]) * np.cos(X[:, 1])


def draw(n_rows, n_columns=2, noise=0.1, seed=0):
    """Rows, and noisy outputs."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n_rows, n_columns))
    return X, waves(X) + noise * rng.normal(size=n_rows)


def with_outliers(y, size, seed=1):
    """One output in fifty moved by so many deviations, up or down."""
    rng = np.random.default_rng(seed)
    rows = rng.choice(len(y), len(y) // 50, replace=False)
    moved = y.copy()
    moved[rows] += size * y.std() * rng.choice([-1, 1], len(rows))
    return moved, rows


def rmse(model, X, truth):
    return np.sqrt(np.mean((model.predict(X) - truth) ** 2))


# -- outliers -----------------------------------------------------------------------


def contradicted_slowly(K, Y):
    """The worst row leaves, and all others are predicted without it, one by one."""
    left, rows = list(range(len(Y))), []
    least = 0.5 * 1.4826 * np.median(np.abs(Y - np.median(Y)))
    while True:
        z, errors = [], []
        for i in left:
            others = [j for j in left if j != i]
            A = K[np.ix_(others, others)]
            ones, k = np.ones(len(others)), K[i, others]
            mean = (
                ones @ np.linalg.solve(A, Y[others]) / (ones @ np.linalg.solve(A, ones))
            )
            error = Y[i] - mean - k @ np.linalg.solve(A, Y[others] - mean)
            lack = 1.0 - k @ np.linalg.solve(A, ones)
            variance = K[i, i] - k @ np.linalg.solve(A, k)
            variance += lack**2 / (ones @ np.linalg.solve(A, ones))
            z.append(abs(error) / np.sqrt(variance))
            errors.append(abs(error))
        z, errors = np.array(z), np.array(errors)
        size = max(1.4826 * np.median(z), 0.1 * np.sqrt(np.mean(z**2)))
        worst = np.where(errors > least, z, 0.0)
        if worst.max() <= 6.0 * size:
            return rows
        rows.append(left.pop(int(np.argmax(worst))))


@pytest.mark.parametrize("noise", [1e-6, 0.1])
def test_contradicted_rows_are_those_of_a_slow_version(noise):
    x = np.linspace(0, 6, 50)
    y = np.sin(x)
    y[[10, 11, 30]] += [5.0, -4.0, 6.0]
    K = np.exp(-0.5 * (x[:, None] - x) ** 2) + noise * np.eye(50)
    rows = contradicted_rows(inverse_factor(cholesky(K)[0]), y[:, None])
    assert rows.tolist() == contradicted_slowly(K, y)
    assert set(rows) == {10, 11, 30}


def test_outliers_on_one_side_do_not_move_the_mean():
    X, y = draw(300)
    moved = y.copy()
    moved[::50] += 30.0
    X_new = draw(300, seed=2)[0]
    with pytest.warns(DataWarning, match="look like outliers"):
        model = GP(random_state=0).fit(X, moved)
    assert rmse(model, X_new, waves(X_new)) < 0.1


def test_a_long_tail_is_not_taken_for_outliers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The inputs explain almost nothing")
        model = GP(random_state=0).fit(X, np.exp(X[:, 0] + rng.normal(size=300)))
    assert not model.is_robust_


@pytest.mark.parametrize("n_rows", [300, 600])
def test_gross_outliers_hardly_change_what_is_said_of_clean_rows(n_rows):
    X, y = draw(n_rows)
    X_new = draw(500, seed=2)[0]
    clean = OverlappingCoverRegressor(subdomain_size=300, random_state=0).fit(X, y)
    assert not clean.machine_.is_robust_
    moved, rows = with_outliers(y, 20.0)
    with pytest.warns(DataWarning, match="look like outliers"):
        model = OverlappingCoverRegressor(subdomain_size=300, random_state=0).fit(
            X, moved
        )
    errors = [np.hypot(rmse(m, X_new, waves(X_new)), 0.1) for m in (clean, model)]
    assert errors[1] < 1.1 * errors[0]
    found = [f.text for f in advise(model, X, moved) if "outliers" in f.text]
    assert len(found) == 1 and all(str(row) in found[0] for row in sorted(rows)[:3])


@pytest.mark.parametrize("size", [1.6, 100.0])
def test_outliers_of_a_function_without_noise_leave_no_trace(size):
    X, y = draw(300, noise=0.0)
    X_new = draw(300, seed=2)[0]
    clean = GP(random_state=0).fit(X, y)
    with pytest.warns(DataWarning, match="look like outliers"):
        model = GP(random_state=0).fit(X, with_outliers(y, size)[0])
    errors = [rmse(one, X_new, waves(X_new)) for one in (clean, model)]
    assert errors[1] < 1.5 * errors[0] < 1e-2


def test_clean_rows_are_all_trusted():
    """Noise, no noise, long tails, counts and rare events are no outliers."""
    rng = np.random.default_rng(0)
    X, y = draw(250)
    rare = (rng.uniform(size=250) < 0.03).astype(float)
    for outputs in (y, waves(X), rng.laplace(size=250), rng.poisson(2.0, 250), rare):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The inputs explain almost nothing")
            assert not GP(random_state=0).fit(X, outputs).is_robust_


def test_robust_true_makes_contradicted_rows_light_whatever_is_given():
    X, y = draw(200)
    moved, rows = with_outliers(y, 20.0)
    given = {"kernel": "rbf", "length_scale": 1.0, "noise": 0.05}
    clean, trusting = GP(**given).fit(X, y), GP(**given).fit(X, moved)
    robust = GP(**given, robust=True).fit(X, moved)
    assert_array_equal(np.flatnonzero(robust.state_.weights < 1), np.sort(rows))
    X_new = draw(200, seed=2)[0]
    assert rmse(robust, X_new, waves(X_new)) < 1.2 * rmse(clean, X_new, waves(X_new))
    assert rmse(trusting, X_new, waves(X_new)) > 3 * rmse(robust, X_new, waves(X_new))


def test_outliers_are_found_where_rows_explain_the_function_in_part():
    """Usual errors are large there, and outliers only some times as large."""
    rng = np.random.default_rng(0)
    X = 1.2 * rng.uniform(-2, 2, (600, 4))
    truth = np.sin(X[:, 0] * X[:, 1]) + np.cos(X[:, 2] + X[:, 3] * X[:, 0])
    X, y, X_new = X[:300], truth[:300], X[300:]
    clean = GP(random_state=0).fit(X, y)
    with pytest.warns(DataWarning, match="look like outliers"):
        model = GP(random_state=0).fit(X, with_outliers(y, 3.0)[0])
    errors = [rmse(one, X_new, truth[300:]) for one in (clean, model)]
    assert errors[1] < 1.1 * errors[0] and errors[0] > 0.2 * truth.std()


def test_noise_of_one_place_is_not_taken_for_outliers():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (900, 2))
    noise = np.where(X.min(axis=1) > 1.2, 3.0, 0.03)
    y = waves(X) + noise * rng.normal(size=900)
    model = GP(random_state=0).fit(X[:500], y[:500])
    assert not model.is_robust_
    low, high = model.predict_interval(X[500:])
    assert np.mean((low <= y[500:]) & (y[500:] <= high)) > 0.92


def test_marked_rows_lie_together_only_if_they_are_neighbours():
    X, rng = draw(500)[0], np.random.default_rng(3)
    scattered = rng.uniform(size=500) < 0.03
    assert not lie_together(X, scattered)
    assert lie_together(X, X.min(axis=1) > 1.4)
    assert not lie_together(X, np.zeros(500, dtype=bool))
    assert not lie_together(X[:1], np.ones(1, dtype=bool))


# -- many outputs -------------------------------------------------------------------


def test_outputs_in_conflict_are_predicted_as_well_as_alone(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (400, 3))
    steps = np.sign(np.sin(3 * X[:, 2]))
    Y = np.column_stack(
        [waves(X), waves(X) + 0.5 * rng.normal(size=400), steps]  # smooth, noisy, rough
    )
    model = GP(random_state=0).fit(X[:300], Y[:300])
    assert len(set(model.output_groups_)) == 3
    for j in range(3):
        alone = GP(random_state=0).fit(X[:300], Y[:300, j])
        error, one = (
            np.sqrt(np.mean((prediction - Y[300:, j]) ** 2))
            for prediction in (model.predict(X[300:])[:, j], alone.predict(X[300:]))
        )
        assert error < 1.05 * one + 2e-3
    model.save(tmp_path / "model")
    loaded = overcover.load(tmp_path / "model")
    assert_array_equal(loaded.predict(X[300:]), model.predict(X[300:]))


# -- wide inputs --------------------------------------------------------------------


def test_a_few_columns_that_matter_are_found_among_many():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 120))
    y = np.sin(X[:, 7]) + X[:, 50]
    model = GP(random_state=0).fit(X[:250], y[:250])
    assert set(np.argsort(model.length_scale_)[:2]) == {7, 50}
    assert rmse(model, X[250:], y[250:]) < 0.3 * y.std()


def test_columns_that_all_matter_alike_are_not_told_apart():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 60))
    y = X.sum(axis=1) / np.sqrt(60) + 0.3 * rng.normal(size=1200)
    model = GP(random_state=0).fit(X[:250], y[:250])
    low, high = model.predict_interval(X[250:])
    assert 0.9 < np.mean((low <= y[250:]) & (y[250:] <= high)) < 0.99


# -- hyperparameters at a bound -----------------------------------------------------


def test_inputs_that_explain_nothing_are_spoken_of():
    X, y = draw(200)
    noise = np.random.default_rng(3).normal(size=200)
    with pytest.warns(
        DataWarning, match="nothing of the output: .* Check that the rows"
    ):
        GP(random_state=0).fit(X, noise)
    with pytest.warns(DataWarning, match=r"nothing of output 1 \(counted from 0\)"):
        model = GP(random_state=0).fit(X, np.column_stack([y, noise]))
    assert "nothing of output 1" in model.notes_[0]


@pytest.mark.parametrize("n_samples, period", [(300, 12), (600, 20), (1500, 40)])
def test_waves_of_a_few_rows_are_found(n_samples, period):
    """A search from a length scale of many waves sees nothing but noise."""
    time = np.arange(float(n_samples))[:, None]
    truth = np.sin(2 * np.pi * time[:, 0] / period)
    y = truth + 0.1 * np.random.default_rng(0).normal(size=n_samples)
    model = GP(random_state=0).fit(time[::2], y[::2])
    assert rmse(model, time[1::2], truth[1::2]) < 0.25


def test_waves_along_one_column_of_several_are_found():
    """All length scales as short as the waves would leave every row alone."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (700, 4))
    y = np.sin(12 * X[:, 1]) + 0.5 * X[:, 2]
    noisy = y + 0.1 * rng.normal(size=700)
    model = GP(random_state=0).fit(X[:400], noisy[:400])
    assert rmse(model, X[400:], y[400:]) < 0.2


def test_the_shortest_length_scale_is_trouble_where_a_shorter_one_predicts_better():
    x = np.linspace(0, 1, 200)
    X = np.column_stack([np.full(200, 7.0), x])
    for y, columns in (
        (np.sin(700 * x), [1]),
        (np.sign(x - 0.5), []),
        (np.sin(5 * x), []),
    ):
        nothing_given = np.full(3, np.nan)
        problem, _, _ = standardize(
            "rbf", X, y[:, None], np.ones(200), nothing_given, None
        )
        winner = Candidate("rbf", np.append(problem.bounds()[0][:-1], np.log(0.01)))
        found = at_bounds(problem, [winner], np.array([1]), np.zeros(1))
        assert found.fast.tolist() == columns
    with pytest.warns(DataWarning, match="vary faster along column 1 .counted from 0"):
        warn_of_bounds([], 1, [1])


def test_bounds_that_are_right_are_not_spoken_of():
    """No noise, useless columns, codes of unrelated levels, and fixed values."""
    rng = np.random.default_rng(0)
    X, _ = draw(150, 3)
    codes = rng.integers(0, 2, 150)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GP(random_state=0).fit(X, waves(X))
        GP(random_state=0).fit(X, X[:, 0])
        GP(random_state=0).fit(np.column_stack([codes, X[:, 0]]), codes + waves(X))
        # Little is explained, but not nothing.
        GP(random_state=0).fit(X, 0.6 * X[:, 0] + rng.normal(size=150))
        GP(noise=10.0, length_scale=0.01).fit(X, rng.normal(size=150))


# -- gaps ---------------------------------------------------------------------------


def test_intervals_hold_what_a_gap_without_noise_hides():
    """The middle fifth of a column is missing, as if a sensor had slept.

    All errors in one gap are large or small together, so the mean over gaps counts.
    """
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (900, 2))
    in_gap = np.abs(X[:, 0]) < 0.4
    train, held = np.flatnonzero(~in_gap)[:300], []
    for y in (
        np.sin(0.8 * X[:, 0] + 0.5) * np.cos(0.6 * X[:, 1]),
        X[:, 0] ** 2 * X[:, 1] + X[:, 1] ** 3,
        np.sin(3 * X[:, 0]),
        X[:, 0] / (3 + X[:, 1]),
    ):
        model = OverlappingCoverRegressor(random_state=0).fit(X[train], y[train])
        low, high = model.predict_interval(X[in_gap])
        held.append(np.mean((low <= y[in_gap]) & (y[in_gap] <= high)))
        assert held[-1] > 0.65
        assert np.median(high - low) < 0.05 * y.std()
    assert np.mean(held) > 0.9


def test_blocks_left_out_show_no_growth_where_noise_is_real():
    X, y = draw(400, noise=0.3)
    clean, noisy = (
        GP("rbf", 1.5, 1e-7).fit(X, waves(X)),
        GP("rbf", 1.0, 0.1).fit(X, y),
    )
    assert (noisy.calibration_.growth < 1.5).all()
    assert clean.calibration_.growth[-1, 0] > 5.0


# -- far away -----------------------------------------------------------------------


def test_intervals_far_from_rows_without_noise_are_as_wide_as_the_outputs():
    x = np.linspace(0, 6, 100)[:, None]
    y = np.sin(x[:, 0])
    model = OverlappingCoverRegressor(random_state=0).fit(x, y)
    far = np.linspace(12, 30, 50)[:, None]
    low, high = model.predict_interval(far)
    assert_allclose(high - low, 3.92 * y.std(), rtol=0.15)
    near_low, near_high = model.predict_interval(x + 0.03)
    assert (near_high - near_low).max() < 0.01
