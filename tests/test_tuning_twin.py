"""Tuning of Twin GPs: held-out error falls, what is given stays, always the same."""

from threading import Thread

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from overcover import (
    ImportanceWeightedTwinGP,
    OverlappingCoverRegressor,
    SharmaMittalTwinGP,
    TwinGP,
)
from overcover.tuning import _sets, _twin_sets, twin
from overcover.tuning._twin_sets import (
    LeaveOneOut,
    LocalSet,
    make_sets,
    median_distance,
    merge_duplicates,
    random_cell,
)
from overcover.tuning.twin import FACTOR_BOUNDS, NOISE_BOUNDS, metric_of

FEW, MANY, SIZE = 80, 400, 100
each_size = pytest.mark.parametrize("n_samples", [FEW, MANY])
FOUND = (
    "input_length_scale_",
    "output_length_scale_",
    "input_noise_",
    "output_noise_",
)


@pytest.fixture(autouse=True)
def small_searches(monkeypatch):
    """Two neighbourhoods instead of four, and fewer rows held out."""
    monkeypatch.setattr(_twin_sets, "N_SETS", 2)
    monkeypatch.setattr(_twin_sets, "N_HELD_OUT", 40)


def make_data(n_samples, seed=0):
    """Two inputs, three outputs of different scales."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-2, 2, (n_samples, 2))
    Y = np.column_stack([np.sin(2 * X[:, 0]), np.cos(X[:, 1]), X[:, 0] * X[:, 1]])
    return X, (Y + 0.05 * rng.normal(size=Y.shape)) * [1.0, 10.0, 0.1]


def tune(n_samples, seed=0, n_jobs=None, kind=TwinGP, weights=None, **options):
    X, Y = make_data(n_samples)
    machine = kind(**options)
    machine.tune(X, Y, weights, SIZE, np.random.RandomState(seed), n_jobs)
    return machine


def relative_error(model, X, Y):
    return np.sqrt(np.mean(((model.predict(X) - Y) / Y.std(axis=0)) ** 2))


# -- what is found --------------------------------------------------------------------


def test_auto_beats_bad_hyperparameters_and_does_well():
    X, Y = make_data(MANY)
    Xq, Yq = make_data(300, seed=1)
    errors = [
        relative_error(TwinGP(*options, random_state=0).fit(X, Y), Xq, Yq)
        for options in (
            (),
            (0.1, [1, 10, 0.1], 1e-3, 1e-3),
            (5, [1, 10, 0.1], 0.1, 0.1),
        )
    ]
    assert errors[0] < 0.12
    assert errors[0] < 0.5 * min(errors[1:])


def test_auto_does_well_in_a_cover():
    X, Y = make_data(MANY)
    Xq, Yq = make_data(300, seed=1)
    model = OverlappingCoverRegressor(TwinGP(), subdomain_size=SIZE, random_state=0)
    assert relative_error(model.fit(X, Y), Xq, Yq) < 0.15
    assert model.machine_.tuning_scores_


@pytest.mark.parametrize("kind", [ImportanceWeightedTwinGP, SharmaMittalTwinGP])
def test_relatives_are_tuned_too(kind):
    machine = tune(FEW, kind=kind)
    assert machine.tuning_scores_[0]["error"] < 0.2


@each_size
def test_scores_are_sorted_and_attributes_belong_to_the_best(n_samples):
    machine = tune(n_samples)
    errors = [trial["error"] for trial in machine.tuning_scores_]
    assert len(errors) > 50
    assert errors == sorted(errors)
    best = machine.tuning_scores_[0]
    assert set(best) == {*twin.Point._fields, "error"}
    assert machine.input_noise_ == best["input_noise"]
    assert machine.output_noise_ == best["output_noise"]
    assert machine.input_length_scale_.shape == (2,)
    assert machine.output_length_scale_.shape == (3,)
    points = {tuple(trial.values())[:-1] for trial in machine.tuning_scores_}
    assert len(points) == len(errors), "no point is tried twice"
    for trial in machine.tuning_scores_:
        for side in ("input", "output"):
            assert NOISE_BOUNDS[0] <= trial[f"{side}_noise"] <= NOISE_BOUNDS[1]
            assert FACTOR_BOUNDS[0] <= trial[f"{side}_factor"] <= FACTOR_BOUNDS[1]


@each_size
@pytest.mark.parametrize(
    "given_options",
    [
        {"input_length_scale": [0.7, 1.3]},
        {"output_length_scale": 0.9, "input_noise": 0.0123},
        {"output_noise": 0.0456},
    ],
    ids=str,
)
def test_what_was_given_stays_exactly_and_the_rest_is_found(given_options, n_samples):
    machine = tune(n_samples, **given_options)
    for name, value in given_options.items():
        found = getattr(machine, name + "_")
        assert_array_equal(found, np.broadcast_to(value, np.shape(found)))
    assert len(machine.tuning_scores_) > 10


def test_with_everything_given_nothing_is_tried():
    options = dict(zip((name[:-1] for name in FOUND), (0.5, [1, 10, 0.1], 0.02, 0.03)))
    machine = tune(MANY, **options)
    for name, value in options.items():
        found = getattr(machine, name + "_")
        assert_array_equal(found, np.broadcast_to(value, np.shape(found)))
    assert machine.tuning_scores_ == [] and machine.variance_inflation_ == 1.0


# -- always the same ------------------------------------------------------------------


@each_size
def test_tuning_depends_on_the_seed_and_not_on_the_workers(n_samples):
    first, again = (tune(n_samples, seed=3, n_jobs=n) for n in (1, 2))
    for name in FOUND:
        assert_array_equal(getattr(again, name), getattr(first, name))
    assert again.tuning_scores_ == first.tuning_scores_
    assert again.variance_inflation_ == first.variance_inflation_
    if n_samples == MANY:
        assert tune(n_samples, seed=4).tuning_scores_ != first.tuning_scores_


def test_constant_columns_are_ignored():
    X, Y = make_data(FEW)
    machine = TwinGP()
    X, Y = np.insert(X, 1, 5.0, axis=1), np.insert(Y, 0, -3.0, axis=1)
    machine.tune(X, Y, None, SIZE, np.random.RandomState(0), None)
    assert_array_equal(np.isinf(machine.input_length_scale_), [False, True, False])
    assert_array_equal(np.isinf(machine.output_length_scale_), [True] + 3 * [False])
    expected = tune(FEW)
    assert_allclose(
        machine.input_length_scale_[[0, 2]], expected.input_length_scale_, rtol=1e-3
    )


def test_an_integer_weight_is_that_many_equal_rows():
    X, Y = make_data(FEW)
    weights = 1 + np.arange(FEW) % 2
    weighted, repeated = TwinGP(), TwinGP()
    rng = np.random.RandomState
    weighted.tune(X, Y, weights.astype(float), SIZE, rng(0), None)
    X, Y = np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0)
    repeated.tune(X, Y, None, SIZE, rng(0), None)
    for name in FOUND:
        these, those = getattr(weighted, name), getattr(repeated, name)
        # Deviations, the units of the search, count rows and not their weights.
        assert_allclose(these, those, rtol=0.05)


# -- metrics --------------------------------------------------------------------------

ONES = np.ones(2)
TRUTH = np.array([[0.0, 0, 0, 0, 0, 0], [1, 1, 1, 1, 1, 1]])
SAID = TRUTH + [[3, 4, 0, 0, 0, 1], [0, 0, 2, 0, 0, 0]]


def test_joints_are_judged_by_their_mean_distance():
    metric = metric_of("joint", TRUTH)
    assert_allclose(metric(TRUTH, SAID, ONES), (5 + 1 + 2 + 0) / 4)
    assert_allclose(metric(TRUTH, SAID, np.array([3.0, 1.0])), (3 * 6 + 2) / 8)


def test_angles_are_judged_modulo_360():
    truth = np.array([[0.0, 10.0], [359.0, -90.0]])
    said = np.array([[350.0, 10.0 + 720.0], [1.0, 100.0]])
    metric = metric_of("angle", truth)
    assert_allclose(metric(truth, said, ONES), (10 + 0 + 2 + 170) / 4)
    assert_allclose(metric(truth, said, np.array([1.0, 3.0])), (5 + 3 * 86) / 4)
    assert_allclose(metric(truth, truth + 360.0, ONES), 0.0, atol=1e-10)


def test_errors_are_judged_in_deviations_of_outputs_that_vary():
    Y = np.array([[0.0, 5.0, 10.0], [2.0, 5.0, 50.0]])  # deviations 1, none, 20
    metric = metric_of("rmse", Y)
    said = Y + [[1.0, 100.0, 20.0], [0.0, 0.0, 0.0]]
    assert_allclose(metric(Y, said, ONES), np.sqrt(0.5))
    assert_allclose(metric(Y, said, np.array([3.0, 1.0])), np.sqrt(0.75))


def test_a_callable_is_asked_for_its_opinion():
    metric = metric_of(lambda truth, said: np.abs(truth - said).max(), TRUTH)
    assert metric(TRUTH, SAID, ONES) == 4.0


@pytest.mark.parametrize("metric", ["joint", "angle", "callable"])
def test_the_metric_decides_what_is_best(metric):
    """Errors of tuning are those of the metric; the largest output dominates here."""
    asked = []

    def largest(truth, said):
        asked.append(len(truth))
        return np.abs(said - truth).max()

    machine = tune(FEW, metric=largest if metric == "callable" else metric)
    error = machine.tuning_scores_[0]["error"]
    assert 0.1 < error < 10.0, "in units of the outputs, not in deviations"
    if metric == "callable":
        assert len(asked) == len(machine.tuning_scores_)


# -- sets -----------------------------------------------------------------------------


@settings(max_examples=20, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 30))
def test_merging_duplicates_keeps_all_weight_once(seed, n):
    rng = np.random.default_rng(seed)
    X, Y = rng.integers(0, 2, (n, 2)) * 1.0, rng.integers(0, 2, (n, 1)) * 1.0
    weights = rng.uniform(0.5, 2.0, n)
    X_once, Y_once, summed = merge_duplicates(X, Y, weights)
    expected: dict[tuple, float] = {}
    for x, y, w in zip(X, Y, weights):
        key = (*x, *y)
        expected[key] = expected.get(key, 0.0) + w
    found = {(*x, *y): w for x, y, w in zip(X_once, Y_once, summed)}
    assert len(found) == len(summed)
    assert found.keys() == expected.keys()
    assert_allclose([found[key] for key in expected], list(expected.values()))


def test_merged_rows_come_in_an_order_of_their_own():
    X, Y = make_data(30)
    order = np.random.default_rng(0).permutation(30)
    once = merge_duplicates(X, Y, np.arange(30.0))
    again = merge_duplicates(X[order], Y[order], np.arange(30.0)[order])
    for this, that in zip(once, again):
        assert_array_equal(this, that)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 1000), st.integers(1, 200), st.integers(1, 50))
def test_a_cell_has_at_most_its_size_and_more_than_half(seed, n, size):
    rng = np.random.RandomState(seed)
    rows = np.sort(rng.permutation(300)[:n])
    cell = random_cell(rng.normal(size=(300, 2)), rows, size, rng)
    assert len(cell) == len(set(cell.tolist())) <= size
    assert len(cell) >= min(n, (size + 1) // 2)
    assert set(cell.tolist()) <= set(rows.tolist())
    assert_array_equal(cell, np.sort(cell))


def test_every_row_is_in_a_cell_about_as_often_as_any_other():
    rng = np.random.RandomState(0)
    A, rows = rng.normal(size=(64, 2)), np.arange(64)
    counts = np.zeros(64)
    for _ in range(2000):
        counts[random_cell(A, rows, 16, rng)] += 1
    # Binomial, with a deviation of 4 % of the mean.
    assert_allclose(counts, 2000 * 16 / 64, rtol=0.16)


def test_the_rows_of_a_cell_lie_together():
    rng = np.random.RandomState(0)
    A = rng.normal(size=(400, 2))
    cells = [random_cell(A, np.arange(400), 50, rng) for _ in range(20)]
    assert np.mean([A[cell].std(axis=0) for cell in cells]) < 0.75


def sets_of(n_samples, size=SIZE):
    """Sets on rows that are their own number, to be recognised."""
    X = np.column_stack([np.arange(n_samples), np.zeros(n_samples)]) * 1.0
    units = {"plain": np.array([1.0, 1.0])}
    rng = np.random.RandomState(0)
    return make_sets(X, X[:, :1], np.ones(n_samples), units, size, rng, None)["plain"]


def test_rows_are_held_out_in_runs():
    sets = sets_of(800)
    learned = {int(x) for local in sets for x in local.X[:, 0]}
    held = {int(x) for local in sets for x in local.X_held[:, 0]}
    assert len(sets) == _twin_sets.N_SETS
    assert not learned & held
    length = min(_sets.RUN_LENGTH, 800 // 50)
    assert length == 16
    for row in held:
        run = set(range(row - row % length, row - row % length + length))
        assert not run & learned, "a neighbour in time would give it away"


def test_sets_are_as_large_as_a_subdomain_and_near_what_they_are_asked():
    for local in sets_of(2000):
        assert len(local.X) == len(local.Y) == len(local.weights) == SIZE
        assert len(local.X_held) <= _twin_sets.N_HELD_OUT
        assert local.X[:, 0].min() <= local.X_held[:, 0].mean() <= local.X[:, 0].max()


def test_few_rows_are_left_out_one_by_one():
    [alone] = sets_of(_twin_sets.FEW_ROWS)
    assert isinstance(alone, LeaveOneOut)
    assert not isinstance(sets_of(_twin_sets.FEW_ROWS + 1)[0], LeaveOneOut)
    assert alone.excess(None, 0.95).size == 0


def test_the_median_distance_is_that_of_pairs():
    rows = np.array([[0.0, 0.0], [3.0, 4.0], [6.0, 8.0]])
    assert_allclose(median_distance(rows, np.ones(2)), 5.0)
    assert_allclose(median_distance(rows, np.array([1.0, np.inf])), 3.0)
    assert median_distance(np.ones((5, 2)), np.ones(2)) == 1.0
    assert median_distance(np.ones((1, 2)), np.ones(2)) == 1.0
    mostly_equal = np.array([[0.0]] * 9 + [[1.0]])
    assert 0 < median_distance(mostly_equal, np.ones(1)) < 1


def test_alignment_is_one_for_kernels_that_are_alike():
    X, _ = make_data(50)
    alone = LeaveOneOut(X, X, np.ones(50))
    scales = twin.Scales(np.ones(2), np.ones(2), 0.1, 0.1, True)
    assert_allclose(alone.alignment(scales), 1.0)
    other = alone.alignment(scales._replace(outputs=np.full(2, 0.05)))
    assert other < 0.5


def local_set(offset):
    """A neighbourhood, and held-out rows whose outputs are off by so much."""
    X, Y = make_data(160)
    ones, held = np.ones(120), np.ones(40)
    return LocalSet(X[:120], Y[:120], ones, X[120:], Y[120:] + offset, held)


def test_excess_is_errors_over_half_widths():
    X, Y = make_data(160)
    scales = twin.Scales(np.ones(2), np.array([1.0, 10.0, 0.1]), 0.1, 0.1, True)
    local = local_set(0.0)
    excess = local.excess(TwinGP().with_scales(scales), 0.95)
    alone = TwinGP(1.0, [1.0, 10.0, 0.1], 0.1, 0.1).fit(X[:120], Y[:120])
    low, high = alone.predict_interval(X[120:], 0.95)
    expected = np.abs(Y[120:] - (low + high) / 2) / ((high - low) / 2)
    # A trial is searched with less precision.
    assert_allclose(excess, expected, atol=0.05)


def test_variances_are_inflated_until_held_out_rows_are_covered():
    scales = twin.Scales(np.ones(2), np.array([1.0, 10.0, 0.1]), 0.1, 0.1, True)
    machine = TwinGP().with_scales(scales)
    _, Y = make_data(160)
    for offset in (0.0, 1.0, 3.0):
        sets = [local_set(offset * Y.std(axis=0)), local_set(-offset * Y.std(axis=0))]
        inflation = twin.variance_inflation(machine, sets)
        excess = np.concatenate([local.excess(machine, 0.95) for local in sets])
        covered = np.mean(excess <= np.sqrt(inflation))
        assert covered == pytest.approx(0.95, abs=0.01) or inflation == 1.0
        assert (inflation > 1.5) == (offset > 0)


def test_rows_left_out_one_by_one_inflate_nothing():
    X, Y = make_data(40)
    machine = TwinGP()
    assert twin.variance_inflation(machine, [LeaveOneOut(X, Y, np.ones(40))]) == 1.0


def test_inflation_reaches_the_standard_deviations():
    X, Y = make_data(MANY)
    model = TwinGP(random_state=0).fit(X, Y)
    _, std = model.predict(X[:9], return_std=True)
    expected = model.calibration_.factor / model.variance_inflation_
    model.variance_inflation_ = 4.0
    model.calibrate([model.state_])
    assert_allclose(model.calibration_.factor, 4.0 * expected)
    _, wider = model.predict(X[:9], return_std=True)
    assert (wider > std).all()


def test_threads_may_share_what_is_kept(monkeypatch):
    """One wants to keep something just while another makes room."""
    monkeypatch.setattr(_twin_sets, "MOST_KEPT", 1)
    rows = _twin_sets.LeaveOneOut(np.zeros((3, 1)), np.zeros((3, 1)), np.ones(3))
    others = []

    class Busy(dict):
        def __iter__(self):
            looking = super().__iter__()
            if not others:
                others.append(Thread(target=rows.kept, args=("c", lambda: 3)))
                others[0].start()
                others[0].join(timeout=0.1)
            yield from looking

    rows._made = Busy()
    assert rows.kept("a", lambda: 1) == 1
    assert rows.kept("b", lambda: 2) == 2
    others[0].join()
    assert rows._made == {"c": 3}
