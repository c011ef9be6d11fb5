"""Advice is given where there is reason for it, and nowhere else."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge

from conftest import wave
from overcover import GP, AnyRegressor, OverlappingCoverRegressor, TwinGP
from overcover.advice import (
    SEVERITIES,
    Finding,
    about_intervals,
    advise,
    as_cover,
    assess,
)
from overcover.consult import panel_of

FIXED = GP(length_scale=1.0, noise=0.01)


def fitted(X, y, machine=FIXED, **options):
    options = {"subdomain_size": 60, "random_state": 0, **options}
    return OverlappingCoverRegressor(machine, **options).fit(X, y)


def said(findings, words):
    """The findings that hold some words."""
    return [finding for finding in findings if words in finding.text]


@pytest.fixture(scope="module")
def healthy():
    """Plenty of rows of a surface, as many to test on, and a model that fits them."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (1200, 2))
    y = wave(X) + 0.05 * rng.normal(size=1200)
    return fitted(X[:600], y[:600]), X[:600], y[:600], X[600:], y[600:]


def test_a_healthy_model_gives_no_reason_to_speak(healthy):
    assert advise(*healthy) == []


def test_the_assessment_is_what_the_model_predicts(healthy):
    model, _, _, X_test, y_test = healthy
    seen = assess(model, X_test, y_test)
    mean, std = model.predict(X_test, return_std=True)
    assert_array_equal(seen.mean[:, 0], mean)
    assert_array_equal(seen.std[:, 0], std)
    pages = model.explain(X_test[:20])
    assert_allclose(seen.remoteness[:20], [page.remoteness for page in pages])
    homes = [page.subdomains[np.argmax(page.votes[:, 0])] for page in pages]
    assert_array_equal(seen.home[:20], homes)
    low, high = model.predict_interval(X_test, coverage=0.95)
    assert_array_equal(seen.held()[:, 0], (low <= y_test) & (y_test <= high))


def test_the_assessment_does_not_depend_on_rounds(healthy, monkeypatch):
    model, _, _, X_test, y_test = healthy
    whole = assess(model, X_test, y_test)
    monkeypatch.setattr("overcover.consult.ROUND_BYTES", 77 * 160)
    assert panel_of(model).rows_per_round == 77
    for one, other in zip(whole[:5], assess(model, X_test, y_test)):
        assert_allclose(one, other, atol=1e-12)


def test_queries_outside_the_cover_are_counted(healthy):
    model, X, y, X_test, y_test = healthy
    moved = X_test.copy()
    moved[:72] += 20.0  # 12 %
    (finding,) = said(advise(model, X, y, moved, y_test), "outside the cover")
    assert finding.severity == "warning"
    assert finding.text.startswith("12.0 %")
    (finding,) = said(advise(model, X, y, X_test + 20.0, y_test), "outside the cover")
    assert finding.severity == "problem"


def test_intervals_that_are_too_narrow_or_too_wide_are_told(healthy):
    model, X, y, X_test, y_test = healthy
    noise = np.random.default_rng(3).normal(size=len(y_test))
    (finding,) = said(advise(model, X, y, X_test, y_test + noise), "hold only")
    assert finding.severity == "problem"
    quiet = model.predict(X_test)
    (finding,) = said(advise(model, X, y, X_test, quiet), "they are too wide")
    assert "100.0 %" in finding.text


def test_intervals_around_a_constant_are_not_called_wide(healthy):
    _, X, y, X_test, y_test = healthy
    Y, Y_test = (np.column_stack([part, np.ones(600)]) for part in (y, y_test))
    findings = advise(fitted(X, Y), X, Y, X_test, Y_test)
    assert said(findings, "y1 never varied")
    assert not said(findings, "intervals")
    assert not said(findings, "one test row")


def test_a_gap_that_chance_explains_is_not_told():
    # Of 50 rows 45 held: 90 %, within three standard errors of 95 %.
    assert not list(about_intervals(np.array([0.9]), 50, ["y"]))
    assert list(about_intervals(np.array([0.9]), 5000, ["y"]))


def test_answers_worse_than_the_mean_are_a_problem(healthy):
    model, _, _, X_test, y_test = healthy
    findings = advise(model, None, None, X_test, -y_test)
    assert findings[0].severity == "problem"
    assert said(findings, "more accurate")


def test_one_wrong_measurement_is_pointed_at(healthy):
    model, _, _, X_test, y_test = healthy
    y_test = y_test.copy()
    y_test[123] = 1000.0
    assert said(advise(model, None, None, X_test, y_test), "one test row: 123.")


def test_a_bad_subdomain_is_named(healthy):
    model, _, _, X_test, y_test = healthy
    home = assess(model, X_test, y_test).home
    worst = np.bincount(home).argmax()
    rows = np.tile(np.flatnonzero(home == worst), 4)
    X = np.concatenate([X_test, X_test[rows], X_test, X_test, X_test])
    y = np.concatenate([y_test, y_test[rows] + 5.0, y_test, y_test, y_test])
    assert said(advise(model, None, None, X, y), f"subdomain {worst} predicts")


def test_a_cover_of_almost_everything_is_told(surface):
    assert said(advise(fitted(*surface, subdomain_size=200)), "67 % of all rows")
    assert said(advise(fitted(*surface, subdomain_size=300)), "full model")


def test_little_overlap_is_told_where_there_are_borders(surface):
    assert said(advise(fitted(*surface, overlap=0.2)), "Only 29 %")  # 7 for 300 rows
    assert not said(advise(fitted(*surface, overlap=0.2, subdomain_size=300)), "Only")


def test_a_subdomain_needs_more_rows_than_features():
    X = np.random.default_rng(0).normal(size=(200, 15))
    model = fitted(X, X[:, 0], subdomain_size=20)
    assert said(advise(model), "20 rows for 15 features")


def test_columns_and_outputs_that_do_not_vary_are_named(surface):
    X, y = surface
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "dull": 3.7})
    outputs = pd.DataFrame({"good": y, "flat": 1.0})
    findings = advise(fitted(frame, outputs), frame, outputs)
    assert said(findings, "dull never varied")
    assert said(findings, "flat never varied")
    assert not said(findings, "good")


def drifting(n_samples=600):
    """A column that outputs turn along, one they follow steadily, and two needless."""
    X = np.random.default_rng(0).uniform(-1, 1, (n_samples, 4))
    return X, np.sin(9 * X[:, 0]) + X[:, 1]


STEADY = GP(length_scale=[0.3, 100.0, 100.0, 100.0], noise=0.01)


@pytest.mark.parametrize("noise", [0.0, 0.1])
def test_columns_are_called_needless_only_if_rows_held_out_are_predicted_as_well(noise):
    X, y = drifting()
    y = y + noise * np.random.default_rng(1).normal(size=len(y))
    (finding,) = said(advise(fitted(X, y, STEADY), X, y), "no difference")
    assert finding.text.startswith("x2 and x3 make no difference: ")
    assert "120 rows held out" in finding.text


def test_a_level_of_words_is_not_called_needless_while_the_others_matter():
    X, y = drifting()
    words = np.array(["clay", "sand", "silt"])[np.arange(len(y)) % 3]
    dull = np.array(["up", "down"])[np.random.default_rng(0).integers(0, 2, len(y))]
    table = pd.DataFrame({"x0": X[:, 0], "x1": X[:, 1], "soil": words, "side": dull})
    scales = [0.3, 100.0, 1.0, 1000.0, 1000.0, 1000.0, 1000.0]
    model = fitted(table, y + (words == "clay"), GP(length_scale=scales, noise=0.01))
    (finding,) = said(advise(model, table, y), "no difference")
    assert finding.text.startswith("side makes no difference: ")


def test_two_columns_that_say_the_same_are_not_both_called_needless():
    X, y = drifting()
    X[:, 2] = X[:, 1]
    (finding,) = said(advise(fitted(X, y, STEADY), X, y), "no difference")
    named = finding.text.split(" make")[0]
    assert "x3" in named and not ("x1" in named and "x2" in named)


def test_time_that_outputs_drift_with_is_not_called_needless():
    """Rows in the order of their time, tested on later ones."""
    rng = np.random.default_rng(0)
    time = np.arange(500.0)
    X = np.column_stack([rng.uniform(-1, 1, 500), time])
    y = np.sin(20 * X[:, 0]) + time / 100
    seen = slice(0, 400)
    machine = GP(length_scale=[0.1, 5e4], noise=1e-4)
    model = fitted(X[seen], y[seen], machine)
    spread = X[seen].std(axis=0) / model.length_scales_
    assert spread[1] < 0.01 * spread[0]
    assert not said(advise(model, X[seen], y[seen], X[400:], y[400:]), "x1")


def test_what_cannot_be_measured_is_not_said():
    X, y = drifting(60)  # 15 rows held out
    model = fitted(X, y, STEADY)
    assert not said(advise(model, X, y), "no difference")


@pytest.mark.parametrize(
    "machine", [GP(length_scale=1.0, noise=0.01), TwinGP(1.0, 1.0, 0.01, 0.01)], ids=str
)
def test_a_machine_that_was_fitted_alone_is_advised(machine, healthy):
    _, X, y, X_test, y_test = healthy
    frame = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "dull": 3.7})
    machine = clone(machine).fit(frame, y)
    assert advise(machine) == []
    tested = frame.assign(a=X_test[:, 0], b=X_test[:, 1])
    assert said(advise(machine, frame, y, tested, y_test), "dull never varied")
    assert not said(advise(machine, frame, y, tested, y_test), "outside the cover")
    assert said(advise(machine, None, None, tested + 20.0, y_test), "outside the cover")
    mean, std = machine.predict(tested, return_std=True)
    seen = assess(as_cover(machine), tested, y_test)
    assert_allclose(seen.mean[:, 0], mean)
    assert_allclose(seen.std[:, 0], std)


class Forgetful(AnyRegressor):
    """A machine that keeps no rows."""

    def recall(self, state):
        return None


def test_a_machine_that_keeps_no_rows_is_advised_if_they_are_given(surface):
    X, y = surface
    machine = Forgetful().fit(X, y)
    assert said(advise(machine, X, y, X, -y), "more accurate")
    assert said(advise(machine, X), "no predictive variance")
    with pytest.raises(ValueError, match=r"Forgetful keeps no training rows. Give X"):
        advise(machine)


def test_what_is_no_model_of_ours_is_refused(surface):
    with pytest.raises(TypeError, match="not about a KernelRidge"):
        advise(KernelRidge().fit(*surface))


def test_repeated_rows_are_counted(surface):
    X, y = surface
    X, y = np.tile(X[:100], (3, 1)), np.tile(y[:100], 3)
    (finding,) = said(advise(fitted(X, y), X, y), "repeat the inputs")
    assert finding.text.startswith("67 %")
    assert finding.severity == "warning"


@pytest.mark.filterwarnings("ignore:The inputs explain almost nothing")
def test_noise_at_its_bounds_is_told(surface):
    X, _ = surface
    findings = advise(fitted(X, X[:, 0] + X[:, 1], GP(length_scale=10.0)))
    assert said(findings, "noise is at its lower bound")
    noise = np.random.default_rng(0).normal(size=len(X))
    model = fitted(X, noise, GP(length_scale=3.0))
    model.machine_.theta_[:, -1] = np.log(10.0)
    assert said(advise(model), "upper bound")
    # A noise that the user chose is no finding.
    assert not said(advise(fitted(X, noise, GP("rbf", 1.0, 10.0))), "bound")


def test_a_machine_without_variance_is_told(surface):
    model = fitted(*surface, KernelRidge())
    findings = advise(model, *surface, *surface)
    assert said(findings, "no predictive variance")


def test_a_twin_gp_is_advised_too(two_outputs):
    model = fitted(*two_outputs, TwinGP(1.0, 10.0, 0.01, 0.01))
    X, Y = two_outputs
    assert said(advise(model, X, Y, X + 50.0, Y), "outside the cover")
    assert not said(advise(model, X, Y, X, Y), "outside the cover")


def test_the_most_severe_comes_first(healthy):
    model, X, y, X_test, y_test = healthy
    findings = advise(model, X, y, X_test[:600] + 20.0, -y_test)
    order = [SEVERITIES.index(finding.severity) for finding in findings]
    assert order == sorted(order)
    assert str(Finding("note", "fine.")) == "note: fine."


def test_half_of_the_test_data_is_refused(healthy):
    with pytest.raises(ValueError, match="both X_test and y_test"):
        advise(healthy[0], X_test=healthy[3])


def test_few_test_rows_are_not_judged_by(healthy):
    model, _, _, X_test, y_test = healthy
    (finding,) = advise(model, None, None, X_test[:3], -y_test[:3])
    assert "too few" in finding.text
