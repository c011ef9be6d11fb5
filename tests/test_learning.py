"""Rows that come after a fit: learned as if at once, forgotten without a trace."""

import os
import pickle
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.linear_model import Ridge

import overcover
from conftest import wave
from overcover import (
    GP,
    AnyRegressor,
    ImportanceWeightedTwinGP,
    OverlappingCoverRegressor,
    TwinGP,
    learning,
)
from overcover.advice import advise
from overcover.cover import Cover
from overcover.learning import GROWN
from overcover.routing import ROUTERS

# What rounding may change, where rows are recalled and fitted again.
CLOSE = {"rtol": 1e-8, "atol": 1e-8}
FIXED = GP(length_scale=1.5, noise=0.01, factor_dtype="float64")
MACHINES = {
    "gp": FIXED,
    "tgp": TwinGP(1.5, 1.0, 0.01, 0.01),
    "ridge": AnyRegressor(Ridge(0.1)),
}
SOURCE = Path(overcover.__file__).parent.parent


def make(machine=FIXED, **options):
    options = {"subdomain_size": 60, "overlap": 0.7, "random_state": 0} | options
    return OverlappingCoverRegressor(clone(machine), **options)


def begun(surface, machine=FIXED, n_rows=200, **options):
    X, y = surface
    return make(machine, **options).fit(X[:n_rows], y[:n_rows])


def answers(model, queries):
    std = model.machine_.has_variance
    return np.array(model.predict(queries, return_std=std))


def check_cover(model, n_rows):
    """Every row is owned once, no subdomain is too large, counts are true."""
    members, n_owned = model.cover_.members, model.cover_.n_owned
    owned = np.concatenate([m[:n] for m, n in zip(members, n_owned)])
    assert_array_equal(np.sort(owned), np.unique(owned))
    assert len(owned) == n_rows == model.plan_.n_samples
    assert model.n_subdomains_ == len(members) == len(model.states_)
    for rows in members:
        assert len(np.unique(rows)) == len(rows) <= GROWN * model.subdomain_size_
        assert np.isin(rows, owned).all()


def check_states(model, X, Y, queries, weights=None):
    """Each state is that of a machine which got the same rows at once."""
    machine = model.machine_
    for state, rows, n_owned in zip(
        model.states_, model.cover_.members, model.cover_.n_owned
    ):
        w = None if weights is None else weights[rows]
        fresh = machine.fit_state(X[rows], Y[rows], w, n_owned)
        found, expected = (
            machine.answer(s, queries, machine.has_variance) for s in (state, fresh)
        )
        assert_allclose(found.mean, expected.mean, **CLOSE)
        if machine.has_variance:
            assert_allclose(found.variance, expected.variance, **CLOSE)


# -- learning --------------------------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_states_are_those_of_a_fit_on_the_same_rows(name, surface, queries):
    X, y = surface
    model = begun(surface, MACHINES[name])
    for start in (200, 230, 260):
        model.partial_fit(X[start : start + 30], y[start : start + 30])
    check_cover(model, 290)
    check_states(model, X, y[:, None], queries)


@settings(max_examples=8)
@given(st.lists(st.integers(1, 60), min_size=1, max_size=4), st.sampled_from([0, 0.7]))
def test_covers_stay_covers_however_rows_arrive(sizes, overlap):
    rng = np.random.default_rng(sum(sizes))
    X = rng.normal(size=(80 + sum(sizes), 2))
    model = make(subdomain_size=30, overlap=overlap).fit(X[:80], wave(X[:80]))
    start = 80
    for size in sizes:
        model.partial_fit(X[start : start + size], wave(X[start : start + size]))
        start += size
        check_cover(model, start)
    check_states(model, X, wave(X)[:, None], X[:5])
    assert_array_equal(model.cover_.rows(), np.arange(start))


def test_one_subdomain_is_the_full_model(surface, queries):
    X, y = surface
    model = begun(surface, n_rows=50, subdomain_size=400)
    model.partial_fit(X[50:120], y[50:120]).partial_fit(X[120:], y[120:])
    assert model.n_subdomains_ == 1 and model.subdomain_size_ == len(X)
    full = clone(FIXED).fit(X, y)
    for found, expected in zip(answers(model, queries), answers_alone(full, queries)):
        assert_allclose(found, expected, **CLOSE)


def answers_alone(machine, queries):
    return machine.predict(queries, return_std=True)


def test_a_full_model_that_outgrows_its_size_becomes_a_cover(surface, queries):
    X, y = surface
    model = begun(surface, n_rows=50)
    assert model.n_subdomains_ == 1
    model.partial_fit(X[50:], y[50:])
    at_once = make().fit(X, y)
    assert abs(model.n_subdomains_ - at_once.n_subdomains_) <= 2
    check_cover(model, 300)
    error = np.abs(model.predict(queries) - wave(queries)).mean()
    assert error < 1.1 * np.abs(at_once.predict(queries) - wave(queries)).mean()


def test_splits_happen_and_predictions_stay_as_good_as_at_once():
    rng = np.random.default_rng(0)
    X, Q = rng.uniform(-3, 3, (1200, 2)), rng.uniform(-3, 3, (300, 2))
    y = wave(X) + 0.05 * rng.normal(size=1200)
    model = make(overlap=0.8).fit(X[:300], y[:300])
    n_before = model.n_subdomains_
    for start in range(300, 1200, 150):
        model.partial_fit(X[start : start + 150], y[start : start + 150])
        check_cover(model, start + 150)
    assert model.n_subdomains_ > 2 * n_before
    at_once = make(overlap=0.8).fit(X, y)
    errors = [np.sqrt(np.mean((m.predict(Q) - wave(Q)) ** 2)) for m in (model, at_once)]
    assert errors[0] < 1.05 * errors[1]


def test_the_order_of_batches_does_not_matter(surface, queries):
    X, y = surface
    batches = [(X[i : i + 10], y[i : i + 10]) for i in (200, 210, 220)]
    models = []
    for order in ([0, 1, 2], [2, 0, 1]):
        models.append(begun(surface))
        for i in order:
            models[-1].partial_fit(*batches[i])
    together = begun(surface).partial_fit(X[200:230], y[200:230])
    for model in (models[1], together):
        assert model.n_subdomains_ == models[0].n_subdomains_  # no split
        assert_allclose(answers(model, queries), answers(models[0], queries), **CLOSE)


@pytest.mark.parametrize("router", ROUTERS)
def test_routers_follow_and_threads_do_not_matter(router, surface, queries):
    X, y = surface
    models = [begun(surface, router=router, n_jobs=n_jobs) for n_jobs in (1, 2)]
    for model in models:
        model.partial_fit(X[200:], y[200:])
    assert_array_equal(*(answers(model, queries) for model in models))
    model, means = models[0], []
    for rows in model.cover_.members:
        means.append((X[rows] / model.length_scales_).mean(axis=0))
    assert_allclose(model.router_.means, means)


def test_weights_keep_the_units_of_the_first_fit(surface, queries):
    X, y = surface
    weights = np.where(X[:, 0] > 0, 6.0, 2.0)
    model = make().fit(X[:200], y[:200], weights[:200])
    model.partial_fit(X[200:], y[200:], weights[200:])
    assert_allclose(model.weight_unit_ * np.unique(all_weights(model)), [2.0, 6.0])
    check_states(model, X, y[:, None], queries, weights / model.weight_unit_)


def all_weights(model):
    recalled = (model.machine_.recall(state).weights for state in model.states_)
    return np.concatenate(list(recalled)).round(9)


def test_equal_rows_of_a_batch_are_merged_and_numbers_go_on(surface):
    X, y = surface
    model = begun(surface)
    twice = np.r_[200:210, 200:210]
    model.partial_fit(X[twice], y[twice], np.r_[np.ones(19), 0.0])
    assert model.n_samples_seen_ == 220
    assert_array_equal(model.cover_.rows(), np.arange(210))
    assert 2.0 in all_weights(model)
    model.partial_fit(X[210:212], y[210:212])
    assert_array_equal(model.cover_.rows()[-2:], [220, 221])


def test_rows_that_others_contradict_are_recalled_with_their_weight(surface):
    X, y = surface
    y = y.copy()
    y[::40] += 5.0
    model = begun((X, y), GP(length_scale=1.5, noise=0.01, robust=True))
    assert min(state.weights.min() for state in model.states_) < 1e-10
    assert_array_equal(all_weights(model), 1.0)
    model.partial_fit(X[200:230], y[200:230])
    check_states(model, X, y[:, None], X[:5])


def test_groups_are_asked_for_where_there_were_some(surface):
    X, y = surface
    groups = np.arange(300) // 20
    model = make().fit(X[:200], y[:200], groups=groups[:200])
    with pytest.raises(ValueError, match=r"fitted with groups\. Give groups"):
        model.partial_fit(X[200:], y[200:])
    model.partial_fit(X[200:], y[200:], groups=groups[200:])
    assert_array_equal(model.groups_, groups)
    assert_array_equal(model.forget(np.arange(50)).groups_, groups[50:])
    with pytest.raises(ValueError, match=r"fitted without groups\. Leave groups"):
        begun(surface).partial_fit(X[200:], y[200:], groups=groups[200:])


def test_new_rows_are_weighed_like_those_of_the_targets(surface):
    X, y = surface
    machine = ImportanceWeightedTwinGP(1.5, 1.0, 0.01, 0.01)
    model = make(machine, overlap=0.3)
    model.fit(X[:200], y[:200], X_target=X[:200][X[:200, 0] > 1])
    model.partial_fit(X[200:], y[200:])
    k = next(k for k, rows in enumerate(model.cover_.members) if 250 in rows)
    weights = model.machine_.recall(model.states_[k]).weights
    rows = model.cover_.members[k]
    expected = np.maximum(model.machine_.importance_.predict(X[rows]), 1e-6)
    assert_allclose(weights, expected, rtol=1e-6)
    with pytest.raises(ValueError, match="fitted for X_target"):
        model.retune()


def test_tables_are_encoded_as_in_the_fit():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    table = pandas.DataFrame({"x": rng.normal(size=160)})
    table["word"] = np.where(rng.uniform(size=160) > 0.5, "left", "right")
    y = np.sin(table.x) + (table.word == "left")
    model = make().fit(table[:100], y[:100])
    encoder = model.encoder_
    model.partial_fit(table[100:], y[100:])
    assert np.abs(model.predict(table) - y).mean() < 0.05
    model.retune()
    assert model.encoder_ is encoder and model.n_features_in_ == 2
    assert np.abs(model.predict(table) - y).mean() < 0.05
    with pytest.raises(ValueError, match="word"):
        model.partial_fit(table[["x"]], y)


# -- forgetting, tuning again ----------------------------------------------------------


@pytest.mark.parametrize("name", MACHINES)
def test_forgetting_undoes_learning(name, surface, queries):
    X, y = surface
    model = begun(surface, MACHINES[name])
    before, n_subdomains = answers(model, queries), model.n_subdomains_
    model.partial_fit(X[200:220], y[200:220])
    assert model.n_subdomains_ == n_subdomains
    assert np.abs(answers(model, queries) - before).max() > 1e-4
    model.forget(np.arange(200, 220))
    assert_allclose(answers(model, queries), before, **CLOSE)
    assert model.n_samples_seen_ == 220


def test_subdomains_end_with_their_last_row_and_others_fill_up(surface, queries):
    X, y = surface
    model = begun(surface, n_rows=300)
    members, n_owned = model.cover_.members, model.cover_.n_owned
    gone = np.concatenate([members[0][: n_owned[0]], members[3][: n_owned[3]]])
    model.forget(gone)
    assert model.n_subdomains_ == len(members) - 2
    check_cover(model, 300 - len(gone))
    assert_array_equal(model.cover_.rows(), np.setdiff1d(np.arange(300), gone))
    check_states(model, X, y[:, None], queries)
    # Where most rows go, what is left borrows from farther away.
    model.forget(np.setdiff1d(model.cover_.rows()[20:], np.arange(0, 300, 2)))
    assert min(map(len, model.cover_.members)) > model.subdomain_size_ / GROWN - 1
    model.partial_fit(X[gone], y[gone])
    assert np.isfinite(answers(model, queries)).all()


def test_tuned_again_a_model_is_that_of_a_fit_on_all_rows(surface, queries):
    X, y = surface
    machine = GP(kernel="rbf", length_scale="auto", noise="auto", robust=False)
    model = begun(surface, machine).partial_fit(X[200:], y[200:])
    model.forget([7, 250]).retune()
    rows = np.setdiff1d(np.arange(300), [7, 250])
    at_once = make(machine).fit(X[rows], y[rows])
    assert_array_equal(model.cover_.rows(), rows)
    assert model.n_samples_seen_ == 300 and not hasattr(model, "promise_")
    assert_allclose(answers(model, queries), answers(at_once, queries), rtol=1e-4)


def test_advice_says_when_promises_are_broken(surface):
    X, y = surface
    model = begun(surface).partial_fit(X[200:], y[200:])
    assert model.promise_.n_rows == 100 and model.promise_.within > 0.85
    assert not any("retune" in str(finding) for finding in advise(model))
    model.partial_fit(X[:100] + 0.01, y[:100] + 1.0)
    assert any("model.retune()" in str(finding) for finding in advise(model))
    model.retune()
    assert not any("retune" in str(finding) for finding in advise(model))


def test_advice_says_when_there_are_many_more_rows(surface):
    X, y = surface
    tuned = OverlappingCoverRegressor(GP("rbf", robust=False), subdomain_size=60)
    for model, is_said in ((tuned, True), (make(), False)):
        model.fit(X[:150], y[:150]).partial_fit(X[150:290], y[150:290])
        assert not any("hyperparameters were" in str(f) for f in advise(model))
        model.partial_fit(X[290:], y[290:])
        said = [str(f) for f in advise(model) if "learned from 150 rows" in str(f)]
        assert len(said) == is_said
    assert tuned.retune().n_samples_tuned_ == 300
    assert not any("hyperparameters were" in str(f) for f in advise(tuned))


def test_advice_about_a_stream_fits_no_machines(surface, queries, monkeypatch):
    X, y = surface
    machine = GP("rbf", robust=False)
    model = begun(surface, machine, n_rows=120, overlap=0.2)
    model.partial_fit(X[120:], y[120:]).partial_fit(X[:100] + 0.01, y[:100] + 1.0)
    with monkeypatch.context() as patched:
        patched.setattr(GP, "fit_state", fail)
        waiting = advise(model)
    assert ["retune()" in str(finding) for finding in waiting] == [True, True]
    model.predict(queries)
    complete = advise(model)
    assert [f for f in complete if "retune()" in f.text] == waiting
    # Of the cover, too, and of rows.
    assert any("are borrowed" in finding.text for finding in complete)
    model.forget([5])
    assert any("are borrowed" in finding.text for finding in advise(model, y=y))


# -- failures, stores ------------------------------------------------------------------


def test_wrong_rows_are_refused_and_nothing_changes(surface, queries):
    model = begun(surface)
    before, known = answers(model, queries), dict(vars(model))
    for method, arguments, message in [
        ("partial_fit", (np.zeros((3, 5)), np.zeros(3)), "5 features"),
        ("partial_fit", (np.zeros((3, 2)), np.zeros(4)), "does not fit"),
        ("partial_fit", (np.zeros((3, 2)), np.zeros((3, 2))), "does not fit"),
        ("partial_fit", (np.full((3, 2), np.nan), np.zeros(3)), "X"),
        ("partial_fit", (np.zeros((3, 2)), np.array([0, 1, np.inf])), "y"),
        ("partial_fit", (np.zeros((3, 2)), None), "requires y"),
        ("forget", ([0, 500],), "has no row 500. It has 200 rows"),
        ("forget", ([-1],), "has no row -1"),
        ("forget", (np.arange(200),), "all 200 rows"),
        ("forget", ([0.5],), "integers"),
    ]:
        with pytest.raises(ValueError, match=message):
            getattr(model, method)(*arguments)
        assert vars(model) == known
        assert_array_equal(answers(model, queries), before)


def fail(*arguments):
    raise MemoryError("no more")


def test_a_failure_midway_leaves_all_as_it_was(surface, queries, monkeypatch):
    X, y = surface
    model = begun(surface)
    before = answers(model, queries)
    with monkeypatch.context() as patched, pytest.raises(MemoryError):
        patched.setattr(learning._ground.Ground, "add", fail)
        model.partial_fit(X[200:], y[200:] + 1.0)
    assert_array_equal(answers(model, queries), before)
    assert not hasattr(model, "borders_") and model.n_samples_seen_ == 200


@pytest.mark.parametrize(
    "where",
    [
        (learning._ground.Ground, "reshape"),
        (GP, "fit_state"),
        (GP, "calibrate"),
        (Cover, "renumbered"),
    ],
)
def test_what_fails_when_it_is_asked_for_can_be_asked_again(
    where, surface, queries, monkeypatch
):
    X, y = surface
    model = begun(surface).partial_fit(X[200:220], y[200:220])
    expected = answers(deepcopy(model), queries)
    with monkeypatch.context() as patched:
        patched.setattr(*where, fail)
        for _ in range(2):
            with pytest.raises(MemoryError):
                model.predict(queries)
        model.partial_fit(X[220:230], y[220:230])
    forgetful = deepcopy(model).forget(range(220, 230))
    assert_array_equal(answers(forgetful, queries), expected)
    together = begun(surface).partial_fit(X[200:230], y[200:230])
    assert_array_equal(answers(model, queries), answers(together, queries))


def test_batches_are_learned_together_when_something_is_asked(
    surface, queries, monkeypatch
):
    X, y = surface
    model, fitted, fit_state = begun(surface), [], GP.fit_state

    def counted(self, X, *arguments):
        fitted.append(len(X))
        return fit_state(self, X, *arguments)

    monkeypatch.setattr(GP, "fit_state", counted)
    for i in range(200, 240, 10):
        model.partial_fit(X[i : i + 10], y[i : i + 10])
    model.forget([3, 235])
    assert fitted == [] and model.n_samples_seen_ == 240
    # A copy knows as much.
    other = pickle.loads(pickle.dumps(model))
    assert other.n_subdomains_ == model.n_subdomains_ >= len(fitted) / 2
    assert_array_equal(answers(other, queries), answers(model, queries))
    check_states(model, X, y[:, None], queries)
    check_cover(model, 238)


def test_unfitted_models_are_fitted_and_others_say_so(surface, queries):
    X, y = surface
    model = make().partial_fit(X[:200], y[:200])
    assert_array_equal(answers(model, queries), answers(begun(surface), queries))
    for method in (make().retune, lambda: make().forget([0])):
        with pytest.raises(ValueError, match="not fitted"):
            method()


@pytest.mark.parametrize("router", ["variance", "neighbors"])
def test_saved_and_loaded_midway_nothing_changes(router, surface, queries, tmp_path):
    X, y = surface
    batches = [(X[i : i + 25], y[i : i + 25]) for i in range(200, 300, 25)]
    straight = begun(surface, router=router)
    begun(surface, router=router).save(tmp_path / "model.ocm")
    stored = overcover.load(tmp_path / "model.ocm")
    for batch in batches:
        straight.partial_fit(*batch)
        stored.partial_fit(*batch)
        stored.save(tmp_path / "model.ocm")  # over the files that it reads from
        assert_array_equal(answers(stored, queries), answers(straight, queries))
        if len(stored.cover_.rows()) == 250:
            stored = overcover.load(tmp_path / "model.ocm", max_open=1)
    overcover.store.verify(tmp_path / "model.ocm")
    fresh = overcover.load(tmp_path / "model.ocm")
    assert_array_equal(answers(fresh, queries), answers(straight, queries))
    assert_array_equal(fresh.forget([3]).cover_.rows(), np.delete(np.arange(300), 3))
    assert_array_equal(fresh.promise_.counts, straight.promise_.counts)


CHILD = """
import os, signal, sys
import numpy as np
import overcover

real, path = os.fsync, sys.argv[1]
rng = np.random.default_rng(5)
X = rng.uniform(-3, 3, (3, 2))
before = overcover.load(path)
asked = rng.uniform(-3, 3, (30, 2))
old = before.predict(asked)
new = before.partial_fit(X, np.ones(3)).predict(asked)

def save_until(after):
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > after:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(descriptor)

    model = overcover.load(path).partial_fit(X, np.ones(3))
    os.fsync = fsync
    model.save(path)

outcomes = []
for after in range(0, 100):
    child = os.fork()
    if child == 0:
        save_until(after)
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    found = overcover.load(path).predict(asked)
    is_old, is_new = (bool((found == wanted).all()) for wanted in (old, new))
    assert is_old != is_new
    assert status == signal.SIGKILL or is_new
    outcomes.append(is_new)
    if is_new:
        break
assert len(outcomes) > 10 and outcomes[-1] and not any(outcomes[:-1])
"""


def test_killed_at_any_moment_a_save_leaves_the_old_model_or_the_new(surface, tmp_path):
    begun(surface, n_rows=120).save(tmp_path / "model.ocm")
    environment = os.environ | {"PYTHONPATH": str(SOURCE)}
    command = [sys.executable, "-c", CHILD, str(tmp_path / "model.ocm")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    overcover.store.verify(tmp_path / "model.ocm")


def test_a_stored_model_that_lies_about_its_borders_is_refused(surface, tmp_path):
    X, y = surface
    model = begun(surface).partial_fit(X[200:], y[200:])
    lenders = model.borders_.lenders + model.n_subdomains_
    for name, value in {
        "borders_": model.borders_._replace(lenders=lenders),
        "promise_": model.borders_,
        "weight_unit_": -1.0,
        "n_samples_seen_": 3,
        "n_samples_tuned_": -1,
        "groups_": np.zeros(3, dtype=int),
    }.items():
        liar = clone(model)
        vars(liar).update(vars(model) | {name: value})
        liar.save(tmp_path / "liar.ocm")
        with pytest.raises(overcover.store.StoreError, match=r"model\.pack"):
            overcover.load(tmp_path / "liar.ocm")


def test_a_model_on_another_scale_learns_on_that_scale():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (360, 2))
    y = np.exp(3.0 * wave(X) + 0.1 * rng.normal(size=360))
    options = {"subdomain_size": 60, "random_state": 0}
    machine = GP(length_scale=2.0, noise=1e-2)
    model = OverlappingCoverRegressor(machine, target="log", **options)
    plain = OverlappingCoverRegressor(machine, **options)
    model.fit(X[:240], y[:240]).partial_fit(X[240:], y[240:])
    plain.fit(X[:240], np.log(y[:240])).partial_fit(X[240:], np.log(y[240:]))
    median = model.predict_quantile(X, 0.5)
    assert_allclose(median, np.exp(plain.predict_quantile(X, 0.5)))
    with pytest.raises(ValueError, match=r"y = 0 in row 1 .*scale 'log'"):
        model.partial_fit(X[:2], [1.0, 0.0])
    # Rows come back in their own units.
    again = OverlappingCoverRegressor(machine, target="log", **options).fit(X, y)
    assert_allclose(model.retune().predict(X), again.predict(X), rtol=1e-6)


def test_a_subdomain_that_lends_no_rows_may_be_forgotten(surface, queries):
    X, y = surface
    machine = GP(length_scale=1.5, noise=1e-2)
    options = {"subdomain_size": 60, "overlap": 0.0, "random_state": 0}
    model = OverlappingCoverRegressor(machine, **options).fit(X, y)
    n_before, last = model.n_subdomains_, model.cover_.members[-1]
    model.forget(last)
    assert model.n_subdomains_ == n_before - 1
    assert len(np.intersect1d(model.cover_.rows(), last)) == 0
    assert np.isfinite(model.predict(queries, return_std=True)).all()


def test_what_a_budget_has_chosen_stays(surface, monkeypatch, tmp_path):
    X, y = surface
    plan = overcover.plan(200, 2, subdomain_size=50, overlap=0.5)
    monkeypatch.setattr("overcover.choices.plan_within", lambda *_: plan)
    model = OverlappingCoverRegressor(FIXED, random_state=0)
    model.fit(X[:200], y[:200], budget="1h").save(tmp_path / "model.ocm")
    alike = make(subdomain_size=50, overlap=0.5).fit(X[:200], y[:200])
    alike.partial_fit(X[200:], y[200:])
    for other in (model, overcover.load(tmp_path / "model.ocm")):
        other.partial_fit(X[200:], y[200:])
        assert other.n_subdomains_ == alike.n_subdomains_ > 8
        assert other.subdomain_size_ == 50
    assert model.retune().n_subdomains_ == alike.retune().n_subdomains_ == 12
    assert not hasattr(model.fit(X, y), "budget_choice_") and model.n_subdomains_ == 1
