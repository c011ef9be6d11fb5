"""The NN scheme: every query has a machine of its own, on its nearest rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.gaussian_process.kernels import RBF
from sklearn.linear_model import LinearRegression

from overcover import (
    GP,
    AnyRegressor,
    ImportanceWeightedTwinGP,
    RelativeDensityRatio,
    TwinGP,
    _neighbors,
)
from overcover.baselines import NeighborhoodRegressor, neighborhood

SCALES, NOISE = np.array([1.0, 2.0, 0.5]), 0.01


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]])
    return X, Y + 0.05 * rng.normal(size=Y.shape), rng.normal(size=(20, 3))


def gp(**options):
    return GP(length_scale=SCALES, noise=NOISE, **options)


def reference(X, Y, q, n_neighbors, scales, noise):
    """The textbook GP on the nearest rows of one query; slow and obviously right."""

    def matern32(A, B):
        r = np.sqrt(3 * np.sum(((A[:, None] - B) / scales) ** 2, axis=2))
        return (1 + r) * np.exp(-r)

    near = np.argsort(np.sum(((X - q) / scales) ** 2, axis=1))[:n_neighbors]
    X, Y = X[near], Y[near]
    inverse = np.linalg.inv(matern32(X, X) + noise * np.eye(len(X)))
    k_q, y = matern32(X, q[None])[:, 0], Y - Y.mean(axis=0)
    amplitude_sq = np.diag(y.T @ inverse @ y) / len(y)
    eta = 1 + noise - k_q @ inverse @ k_q
    return Y.mean(axis=0) + k_q @ inverse @ y, np.sqrt(amplitude_sq * eta)


def test_predictions_match_the_textbook_formula(rows):
    X, Y, queries = rows
    model = NeighborhoodRegressor(gp(), n_neighbors=40).fit(X, Y)
    mean, std = model.predict(queries, return_std=True)
    # As they are after fit: the logarithms are kept to three decimals.
    scales, noise = model.machine_.length_scale_, model.machine_.noise_
    for q, m, s in zip(queries, mean, std):
        m_slow, s_slow = reference(X, Y, q, 40, scales, noise)
        assert_allclose(m, m_slow, rtol=1e-9, atol=1e-10)
        assert_allclose(s, s_slow, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["rbf", "matern12", RBF(1.3)])
@pytest.mark.parametrize("per_output", [False, True])
def test_all_rows_as_neighbors_give_the_mean_of_the_full_gp(rows, kernel, per_output):
    X, Y, queries = rows
    machine = GP(kernel, length_scale=1.0, noise=0.01, per_output=per_output)
    weight = np.linspace(0.5, 2.0, len(X))
    model = NeighborhoodRegressor(machine, n_neighbors=10**6, random_state=0)
    full = GP(**machine.get_params(deep=False)).set_params(random_state=0)
    near = model.fit(X, Y, weight).predict(queries)
    assert_allclose(near, full.fit(X, Y, weight).predict(queries), atol=1e-8)


def test_one_query_is_answered_as_in_a_batch(rows):
    X, Y, queries = rows
    model = NeighborhoodRegressor(gp(), n_neighbors=30).fit(X, Y)
    batch = model.predict(queries, return_std=True)
    alone = [model.predict(q[None], return_std=True) for q in queries]
    assert_allclose(np.vstack([m for m, _ in alone]), batch[0], atol=1e-10)
    assert_allclose(np.vstack([s for _, s in alone]), batch[1], atol=1e-10)


def test_workers_do_not_change_the_result(rows):
    X, Y, _ = rows
    one, two = (
        NeighborhoodRegressor(gp(), 30, n_jobs=n_jobs).fit(X, Y).predict(X)
        for n_jobs in (1, 2)
    )
    assert_array_equal(one, two)


def test_outputs_predicted_together_or_alone_are_the_same(rows):
    X, Y, queries = rows
    both = NeighborhoodRegressor(gp(), 30).fit(X, Y).predict(queries)
    for j in range(Y.shape[1]):
        alone = NeighborhoodRegressor(gp(), 30).fit(X, Y[:, j]).predict(queries)
        assert alone.shape == (len(queries),)
        assert_allclose(alone, both[:, j], atol=1e-10)


def test_any_regressor_sees_the_nearest_rows(rows):
    X, Y, queries = rows
    machine = AnyRegressor(LinearRegression())
    mean = NeighborhoodRegressor(machine, n_neighbors=25).fit(X, Y).predict(queries)
    for q, m in zip(queries, mean):
        near = np.argsort(np.sum(((X - q) / X.std(axis=0)) ** 2, axis=1))[:25]
        expected = LinearRegression().fit(X[near], Y[near]).predict(q[None])[0]
        assert_allclose(m, expected, atol=1e-10)


def test_a_machine_without_variance_says_so(rows):
    X, Y, queries = rows
    model = NeighborhoodRegressor(LinearRegression(), 25).fit(X, Y)
    with pytest.raises(ValueError, match="Predict without return_std"):
        model.predict(queries, return_std=True)


def test_intervals_are_gaussian(rows):
    X, Y, queries = rows
    model = NeighborhoodRegressor(gp(), 30).fit(X, Y)
    mean, std = model.predict(queries, return_std=True)
    low, high = model.predict_interval(queries, 0.9)
    assert_allclose(high - mean, norm.ppf(0.95) * std)
    assert_allclose(mean - low, norm.ppf(0.95) * std)


def test_refined_hyperparameters_are_each_neighborhoods_own(rows):
    X, Y, queries = rows
    shared, refined = (
        NeighborhoodRegressor(GP(per_subdomain=per_subdomain), 40, random_state=0)
        .fit(X, Y)
        .predict(queries)
        for per_subdomain in (False, True)
    )
    assert np.isfinite(refined).all()
    assert np.any(refined != shared)


def test_duplicate_rows_without_noise_still_have_an_answer():
    X = np.repeat(np.arange(4.0), 10)[:, None]
    model = NeighborhoodRegressor(GP(length_scale=1.0, noise=0.0), 20).fit(X, X[:, 0])
    assert_allclose(model.predict([[1.0]]), [1.0], atol=1e-2)


@pytest.mark.parametrize("n_neighbors", [0, -3, 2.5, True])
def test_fewer_than_one_neighbor_is_refused(rows, n_neighbors):
    X, Y, _ = rows
    with pytest.raises(ValueError, match=r"n_neighbors=.* must be an integer >= 1"):
        NeighborhoodRegressor(gp(), n_neighbors).fit(X, Y)


@pytest.mark.parametrize("n_features", [2, 9])
@pytest.mark.parametrize("index", [_neighbors.BruteIndex, neighborhood.TreeIndex])
def test_indices_find_the_nearest_rows(index, n_features):
    rng = np.random.default_rng(0)
    A, B = rng.normal(size=(500, n_features)) + 100, rng.normal(size=(7, n_features))
    near = index(A).nearest(B + 100, 20)
    dist_sq = np.sum((B[:, None] + 100 - A) ** 2, axis=2)
    assert_array_equal(near, np.sort(np.argsort(dist_sq, axis=1)[:, :20], axis=1))


@pytest.mark.parametrize("n_smallest", [1, 3, 40, 199, 200])
def test_the_lower_of_equal_columns_is_taken(n_smallest):
    values = np.random.default_rng(0).integers(0, 5, (30, 200)).astype(float)
    expected = np.argsort(values, axis=1, kind="stable")[:, :n_smallest]
    found = _neighbors.smallest_columns(values, n_smallest)
    assert_array_equal(found, np.sort(expected, axis=1))


@pytest.mark.parametrize("distance", [1e6, 1e12, 1e100])
def test_a_far_query_gets_the_mean_and_spoils_no_other(rows, distance):
    X, Y, queries = rows
    model = NeighborhoodRegressor(gp(kernel="rbf"), n_neighbors=40).fit(X, Y)
    far = np.vstack([queries, [[distance, 0.0, 0.0]]])
    mean, std = model.predict(far, return_std=True)
    assert_allclose(mean[:-1], model.predict(queries), rtol=1e-9, atol=1e-12)
    near = np.argsort(-X[:, 0])[:40]
    assert_allclose(mean[-1], Y[near].mean(axis=0))
    assert np.isfinite(std).all()


def test_a_far_row_does_not_change_who_is_near(rows):
    X, Y, queries = rows
    far = np.vstack([X, [[0.0, 1e13, 0.0]]])
    model = NeighborhoodRegressor(gp(), n_neighbors=40).fit(X, Y)
    with_far = NeighborhoodRegressor(gp(), n_neighbors=40).fit(
        far, np.vstack([Y, Y[:1]])
    )
    assert_allclose(with_far.predict(queries), model.predict(queries), rtol=1e-9)


# -- importance weights from the targets nearest to a query ----------------------------

TWIN = {"input_length_scale": 1.0, "output_length_scale": 1.0}
TWIN |= {"input_noise": 0.01, "output_noise": 0.01}


def weighted(n_targets, **options):
    machine = ImportanceWeightedTwinGP(**TWIN, **options)
    return NeighborhoodRegressor(machine, 40, n_targets=n_targets, random_state=0)


def test_every_query_weighs_its_neighbours_by_its_nearest_targets(rows):
    """The scheme by definition: neighbours, their ratio, a Twin GP with weights."""
    X, Y, queries = rows
    X_target = np.random.default_rng(3).normal(0.5, 0.5, (90, 3))
    model = weighted(30).fit(X, Y, X_target=X_target)
    mean = model.predict(queries[:6])
    scales = model.length_scales_
    for q, said in zip(queries, mean):
        near, few = (
            np.sort(np.argsort(np.sum(((A - q) / scales) ** 2, axis=1))[:n])
            for A, n in ((X, 40), (X_target, 30))
        )
        ratio = RelativeDensityRatio(random_state=0).fit(X[near], X_target[few])
        weights = np.maximum(ratio.weights_, 1e-6)
        machine = NeighborhoodRegressor(TwinGP(**TWIN), 40, random_state=0)
        machine.fit(X[near], Y[near])
        slow = machine.machine_.answer_once(X[near], Y[near], weights, q[None])
        assert_allclose(said, slow.mean[0], rtol=1e-6, atol=1e-8)


def test_targets_change_predictions_only_through_the_nearest(rows):
    X, Y, queries = rows
    X_target = np.random.default_rng(3).normal(0.5, 0.5, (60, 3))
    far = np.vstack([X_target, X_target + 100.0])
    expected = weighted(60).fit(X, Y, X_target=X_target).predict(queries[:5])
    assert_array_equal(
        weighted(60).fit(X, Y, X_target=far).predict(queries[:5]), expected
    )
    one_ratio = weighted(None).fit(X, Y, X_target=X_target).predict(queries[:5])
    assert np.abs(one_ratio - expected).max() > 1e-6


def test_weights_of_queries_do_not_depend_on_the_batch_or_on_workers(rows):
    X, Y, queries = rows
    model = weighted(20).fit(X, Y, X_target=queries)
    batch = model.predict(queries[:4])
    assert_allclose(model.predict(queries[1:2])[0], batch[1], rtol=1e-12)
    assert_array_equal(model.set_params(n_jobs=2).predict(queries[:4]), batch)


def test_a_bad_number_of_targets_is_refused(rows):
    with pytest.raises(ValueError, match="n_targets=0 must be an integer >= 1"):
        weighted(0).fit(*rows[:2])
