"""Columns with long tails are on another scale where that helps, and only there."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from overcover import GP, OverlappingCoverRegressor, inputs, load, store
from overcover.report import write_report

SIZES = {"subdomain_size": 150, "overlap": 0.5, "random_state": 0}


def draw(n_rows, seed=0):
    """Two columns with long tails, and one without; the tails matter by their logs."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.lognormal(0, 1.5, (n_rows, 2)), rng.uniform(size=n_rows)])
    y = np.sin(np.log(X[:, 0])) + np.log(X[:, 1]) + X[:, 2]
    return X, y + 0.1 * rng.normal(size=n_rows)


@pytest.fixture(scope="module")
def fitted():
    """A model with columns on another scale; its rows."""
    X, y = draw(300)
    return OverlappingCoverRegressor(**SIZES).fit(X, y), X, y


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.floats(1e-9, 1e9), st.sampled_from([-1.0, 1.0]))
def test_the_way_back_leads_to_the_same_rows(seed, unit, sign):
    x = sign * unit * np.random.default_rng(seed).lognormal(0, 2, (200, 1))
    scales = inputs.learn(x)
    assert scales.is_changed.all()
    assert_allclose(scales.inverse(scales.forward(x)), x, rtol=1e-9, atol=1e-9 * unit)
    assert np.all(np.diff(scales.forward(np.sort(x, axis=0)), axis=0) >= 0)


def test_units_do_not_matter():
    x = np.random.default_rng(0).lognormal(0, 2, (200, 1))
    plain, scaled = inputs.learn(x), inputs.learn(1e6 * x + 7.0)
    assert_allclose(plain.forward(x), scaled.forward(1e6 * x + 7.0), rtol=1e-6)


def test_slopes_are_those_of_differences():
    X = draw(100)[0]
    scales, h = inputs.learn(X), 1e-6
    differences = (scales.forward(X + h) - scales.forward(X - h)) / (2 * h)
    assert_allclose(scales.slopes(scales.forward(X)), differences, rtol=1e-4)


@pytest.mark.parametrize("tails", [1, 2])
def test_a_long_tail_is_noticed_on_each_side_and_on_both(tails):
    rng = np.random.default_rng(0)
    x = rng.lognormal(0, 1.5, 1000)
    x = x if tails == 1 else rng.standard_cauchy(1000)
    for column in (x, -x):
        assert inputs.learn(column[:, None]).is_changed[0]


@pytest.mark.parametrize(
    "draw_column",
    [
        lambda rng: rng.normal(size=1000),
        lambda rng: rng.uniform(size=1000),
        lambda rng: rng.exponential(size=1000),
        lambda rng: rng.poisson(0.2, 1000),
        lambda rng: np.zeros(1000),
    ],
)
def test_other_columns_stay_as_they_are(draw_column):
    column = draw_column(np.random.default_rng(0)).astype(float)
    assert not inputs.learn(column[:, None]).is_changed[0]


def test_logarithms_are_found_and_errors_shrink(fitted):
    model, X, y = fitted
    assert_array_equal(model.input_scales_.is_changed, [True, True, False])
    X_new, y_new = draw(300, seed=1)
    plain = OverlappingCoverRegressor(**SIZES, input_scale="identity").fit(X, y)
    assert not hasattr(plain, "input_scales_")
    errors = [np.std(each.predict(X_new) - y_new) for each in (model, plain)]
    assert errors[0] < 0.7 * errors[1]
    low, high = model.predict_interval(X_new)
    assert 0.9 < np.mean((low <= y_new) & (y_new <= high)) < 0.99


def test_a_function_of_the_columns_themselves_keeps_them():
    X = draw(300)[0]
    model = OverlappingCoverRegressor(**SIZES).fit(X, X[:, 0] + X[:, 1] * X[:, 2])
    assert not hasattr(model, "input_scales_")


def test_length_scales_of_the_user_are_in_units_of_x():
    X, y = draw(300)
    model = OverlappingCoverRegressor(GP(length_scale=1.0), **SIZES).fit(X, y)
    assert not hasattr(model, "input_scales_")


def test_a_second_fit_forgets_the_scales_of_the_first(fitted):
    first, X, y = fitted
    again = deepcopy(first).set_params(input_scale="identity").fit(X, y)
    assert not hasattr(again, "input_scales_")


def test_gradients_are_those_of_the_mean_in_units_of_x(fitted):
    model, X, _ = fitted
    queries, h = X[:5] * 1.01, 1e-6
    differences = [
        (model.predict(queries + h * e) - model.predict(queries - h * e)) / (2 * h)
        for e in np.eye(3)
    ]
    assert_allclose(model.gradient(queries), np.transpose(differences), atol=1e-3)


def test_loaded_equals_saved_and_mapped_rows_equal_rows_in_memory(fitted, tmp_path):
    model, X, y = fitted
    model.save(tmp_path / "a.ocm")
    assert_array_equal(load(tmp_path / "a.ocm").predict(X), model.predict(X))
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    other = OverlappingCoverRegressor(**SIZES)
    store.fit_into(other, mapped, y, tmp_path / "b.ocm")
    assert_array_equal(other.predict(X), model.predict(X))


def test_rows_come_back_in_their_own_units(fitted):
    _, X, y = fitted
    model = OverlappingCoverRegressor(**SIZES).partial_fit(X[:250], y[:250])
    model.partial_fit(X[250:], y[250:])
    X_new, y_new = draw(300, seed=1)
    assert np.std(model.predict(X_new) - y_new) < 0.3
    model.retune()
    assert_allclose(model.predict(X_new), fitted[0].predict(X_new), atol=1e-6)


def test_inputs_on_another_scale_are_called_so(fitted):
    assert "asinh x0" in str(fitted[0].explain(fitted[1][0]))


def test_a_report_names_them(fitted, tmp_path):
    pytest.importorskip("matplotlib")
    write_report(fitted[0], tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "inputs with long tails" in page and "asinh x1" in page
