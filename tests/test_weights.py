"""Weights compare rows: a common factor means nothing, equal rows are one row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.linear_model import Ridge

from overcover import (
    GP,
    ImportanceWeightedTwinGP,
    OverlappingCoverRegressor,
    SharmaMittalTwinGP,
    TwinGP,
)
from overcover._weights import (
    comparable,
    first_of_equals,
    in_typical_units,
    used_rows,
)
from overcover.baselines import (
    CommitteeGP,
    DomainDecompositionGP,
    LocalProbabilisticRegression,
    MixtureGP,
    NeighborhoodRegressor,
    PatchworkGP,
    SparseGP,
    TreeGP,
)

few = settings(deadline=None, max_examples=30)
TWIN = {"input_length_scale": 1.0, "output_length_scale": 1.0}
TWIN |= {"input_noise": 0.01, "output_noise": 0.01}
ESTIMATORS = {
    "gp": GP(random_state=0),
    "tgp": TwinGP(random_state=0),
    "iwtgp": ImportanceWeightedTwinGP(**TWIN),
    "smtgp": SharmaMittalTwinGP(**TWIN),
    "cover": OverlappingCoverRegressor(subdomain_size=30, random_state=0),
    "ridge": OverlappingCoverRegressor(Ridge(), subdomain_size=30, random_state=0),
    "neighborhood": NeighborhoodRegressor(n_neighbors=20, random_state=0),
    "committee": CommitteeGP(expert_size=30, random_state=0),
    "domains": DomainDecompositionGP(cell_size=30, random_state=0),
    "patchwork": PatchworkGP(cell_size=30, random_state=0),
    "mixture": MixtureGP(expert_size=30, random_state=0),
    "tree": TreeGP(leaf_size=30, random_state=0),
    "modes": LocalProbabilisticRegression(n_neighbors=30, random_state=0),
    "fic": SparseGP(n_inducing=15, random_state=0),
    "vfe": SparseGP(method="dtc", n_inducing=15, tuning="bound", random_state=0),
}
each = pytest.mark.parametrize("name", ESTIMATORS)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    y = np.sin(2 * X[:, 0]) + 0.3 * X[:, 1] + 0.2 * rng.normal(size=60)
    return X, y, rng.integers(1, 4, 60).astype(float), rng.uniform(-2, 2, (15, 2))


def answers(name, X, y, weight, queries):
    """Mean and, where there is one, interval."""
    model = ESTIMATORS[name].fit(X, y, sample_weight=weight)
    if name == "ridge":
        return [model.predict(queries)]
    return [*model.predict(queries, return_std=True), *model.predict_interval(queries)]


@each
def test_multiplying_all_weights_changes_nothing(name, table):
    X, y, weight, queries = table
    before = answers(name, X, y, weight, queries)
    for factor in (1 / 60, 1e200) if name == "gp" else (1e4,):
        after = answers(name, X, y, factor * weight, queries)
        assert_allclose(after, before, rtol=1e-8, atol=1e-8)


@each
def test_equal_weights_are_no_weights(name, table):
    X, y, _, queries = table
    before = answers(name, X, y, None, queries)
    assert_array_equal(answers(name, X, y, np.full(60, 7.3), queries), before)


@each
def test_equal_rows_are_one_row_of_their_number(name, table):
    X, y, weight, queries = table
    n = weight.astype(int)
    before = answers(name, X, y, weight, queries)
    after = answers(name, X.repeat(n, axis=0), y.repeat(n), None, queries)
    assert_allclose(after, before, rtol=1e-8, atol=1e-8)


def test_one_huge_weight_leaves_the_other_rows_alone():
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (300, 1))
    y = np.sin(2 * X[:, 0]) + 0.2 * rng.normal(size=300)
    queries = rng.uniform(-2, 2, (500, 1))
    seen = np.sin(2 * queries[:, 0]) + 0.2 * rng.normal(size=500)
    weight = np.ones(300)
    weight[0] = 1e6
    low, high = GP().fit(X, y, sample_weight=weight).predict_interval(queries)
    assert 0.9 < np.mean((low <= seen) & (seen <= high)) < 0.99


def test_members_are_named_as_the_caller_names_them(table):
    X, y, _, _ = table
    X, y = np.vstack([X[:5], X]), np.append(y[:5], y)
    weight = np.ones(65)
    weight[10] = 0.0
    model = OverlappingCoverRegressor(
        GP(length_scale=1.0, noise=0.1), subdomain_size=20, random_state=0
    ).fit(X, y, sample_weight=weight)
    rows = model.cover_.rows()
    assert_array_equal(rows, [*range(5), *range(11, 65)])  # 5 to 9 equal 0 to 4
    for members, state in zip(model.cover_.members, model.states_):
        assert_allclose(model.machine_.recall(state).X, X[members])


# -- merging --------------------------------------------------------------------------


@few
@given(st.integers(0, 2**32 - 1), st.integers(1, 40), st.integers(1, 3))
def test_equal_rows_are_found_wherever_they_are(seed, n_rows, n_levels):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, n_levels, (n_rows, 2)) / 3.0
    Y = rng.integers(0, 2, (n_rows, 1)) - 0.0
    both = np.hstack([X, Y])
    expected = [np.flatnonzero((both == row).all(axis=1))[0] for row in both]
    assert_array_equal(first_of_equals(X, Y), expected)
    assert_array_equal(first_of_equals(X.astype(np.float32), -Y), expected)


def test_rows_that_differ_in_outputs_alone_stay():
    rows, weights, _ = comparable(np.ones((4, 1)), np.arange(4.0)[:, None], None)
    assert rows is None and weights is None


def test_weights_of_equal_rows_add_up():
    X = np.array([[1.0], [2.0], [1.0], [3.0], [2.0]])
    weights = np.array([1.0, 0.0, 1.0, 4.0, 2.0])
    rows, found, _ = comparable(X, np.zeros((5, 1)), weights)
    assert_array_equal(rows, [0, 1, 3])
    assert_allclose(found / found[0], [1.0, 1.0, 2.0])


@few
@given(st.lists(st.floats(1e-100, 1e100), min_size=2, max_size=30), st.integers(-9, 9))
def test_units_of_weights_do_not_matter(weights, power):
    weights = np.array(weights)
    before, after = in_typical_units(weights), in_typical_units(weights * 10.0**power)
    if before is None or after is None:
        assert np.ptp(weights) <= 2e-12 * weights.max()
    else:
        assert_allclose(after, before, rtol=1e-9)


def test_equal_rows_are_observations_where_outputs_often_differ():
    """Ratings repeat inputs with several outputs: those that agree are not copies."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 3, (200, 2)).astype(float)
    y = rng.integers(0, 2, 200).astype(float)[:, None]
    rows, weights = used_rows(X, y, None)
    assert rows is None and weights is None


def test_a_typical_weight_is_not_set_by_rows_that_count_for_nothing():
    weights = np.append(np.full(100, 1e-9), np.full(100, 2.0))
    assert_allclose(in_typical_units(weights)[100:], 1.0)


def test_rows_of_hardly_any_weight_change_nothing(table):
    X, y, _, queries = table
    rng = np.random.default_rng(1)
    both = (
        np.vstack([X, rng.uniform(-2, 2, X.shape)]),
        np.append(y, rng.normal(size=60)),
    )
    weight = np.append(np.ones(60), np.full(60, 1e-9))
    alone = GP("matern32", random_state=0).fit(X, y)
    together = GP("matern32", random_state=0).fit(*both, sample_weight=weight)
    mean, std = together.predict(queries, return_std=True)
    mean_alone, std_alone = alone.predict(queries, return_std=True)
    assert_allclose(mean, mean_alone, atol=0.01)
    assert_allclose(std, std_alone, rtol=0.25)
