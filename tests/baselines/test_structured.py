"""Structured predictors: their objectives, and that they find an output that suits."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from overcover import StructuredNeighbors
from overcover.baselines.structured import (
    METHODS,
    centered_column,
    hsic,
    kta,
    pairwise_sq,
)

each_method = pytest.mark.parametrize("method", METHODS)


@pytest.fixture
def neighborhoods(rng):
    """Five queries, seven neighbours each: their inputs, outputs, and similarities."""
    A, Z = rng.normal(size=(5, 7, 3)), rng.normal(size=(5, 7, 2))
    B = rng.normal(size=(5, 3))
    k_x = np.exp(-0.5 * np.sum((A - B[:, None]) ** 2, axis=2))
    return A, Z, k_x


def gaussian(P, Q):
    return np.exp(-0.5 * np.sum((P[:, None] - Q[None]) ** 2, axis=2))


def joint(K, k):
    """A kernel matrix with the query as its last row and column."""
    return np.block([[K, k[:, None]], [k[None], np.ones((1, 1))]])


def objectives(neighborhoods):
    A, Z, k_x = neighborhoods
    K_xx, K_yy = np.exp(-0.5 * pairwise_sq(A)), np.exp(-0.5 * pairwise_sq(Z))
    c_0 = 1 + np.sum(K_xx * K_yy, axis=(1, 2))
    c_1 = 1 + np.sum(K_yy**2, axis=(1, 2))
    return [hsic(Z, centered_column(K_xx, k_x)), kta(Z, k_x, c_0, c_1)]


def test_gradients_are_those_of_finite_differences(neighborhoods, rng):
    points, everyone, step = rng.normal(size=(5, 2)), np.arange(5), 1e-6
    for objective in objectives(neighborhoods):
        _, gradients = objective(points, everyone)
        for j in range(2):
            move = np.zeros(2)
            move[j] = step
            up, down = (objective(points + s * move, everyone)[0] for s in (1, -1))
            assert_allclose(gradients[:, j], (up - down) / (2 * step), atol=1e-8)


def test_kta_is_the_alignment_of_the_joint_matrices(neighborhoods, rng):
    A, Z, k_x = neighborhoods
    _, kta = objectives(neighborhoods)
    ratios = []
    for point in rng.normal(size=(4, 2)):
        K_x = joint(gaussian(A[0], A[0]), k_x[0])
        K_y = joint(gaussian(Z[0], Z[0]), gaussian(Z[0], point[None])[:, 0])
        slow = np.sum(K_x * K_y) / np.linalg.norm(K_y)
        # The diagonals of joint matrices count too: c_0 has 1, c_1 has 1 for them.
        ratios.append(kta(point[None], np.array([0]))[0][0] / slow)
    assert_allclose(ratios, ratios[0], rtol=1e-12)
    assert ratios[0] < 0


def test_hsic_weighs_by_the_centred_column(neighborhoods):
    A, _, k_x = neighborhoods
    K = joint(gaussian(A[0], A[0]), k_x[0])
    H = np.eye(8) - 1 / 8
    K_xx = np.exp(-0.5 * pairwise_sq(A))
    assert_allclose(centered_column(K_xx, k_x)[0], (H @ K @ H)[:-1, -1], atol=1e-12)


def test_knn_weighs_by_inverse_squared_distance(surface, queries):
    X, y = surface
    scale = [1.5, 0.5]
    model = StructuredNeighbors("knn", n_neighbors=5, input_length_scale=scale)
    for query, said in zip(queries, model.fit(X, y).predict(queries)):
        dist_sq = np.sum(((X - query) / scale) ** 2, axis=1)
        near = np.argsort(dist_sq)[:5]
        weights = 1 / dist_sq[near]
        assert_allclose(said, np.sum(weights * y[near]) / weights.sum())


def test_knn_returns_a_training_row_it_is_asked(surface):
    X, y = surface
    assert_allclose(StructuredNeighbors().fit(X, y).predict(X), y)


@each_method
def test_every_method_learns(method, two_outputs, queries):
    X, Y = two_outputs
    model = StructuredNeighbors(method, random_state=0).fit(X, Y)
    truth = np.sin(queries[:, 0]) * np.cos(queries[:, 1])
    error = np.sqrt(np.mean((model.predict(queries)[:, 0] - truth) ** 2))
    assert error < 0.5 * truth.std()


@each_method
def test_batches_and_threads_change_nothing(method, two_outputs, queries):
    X, Y = two_outputs
    one, two = (
        StructuredNeighbors(method, n_jobs=n, random_state=0).fit(X, Y) for n in (1, 2)
    )
    assert_array_equal(one.predict(queries), two.predict(queries))
    alone = np.vstack([one.predict(query[None]) for query in queries[:5]])
    assert_allclose(alone, one.predict(queries)[:5], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
@each_method
def test_units_do_not_matter(method, scale, two_outputs, queries):
    X, Y = two_outputs
    plain = StructuredNeighbors(method, random_state=0).fit(X, Y).predict(queries)
    scaled = StructuredNeighbors(method, random_state=0).fit(X * scale, Y * scale)
    said = scaled.predict(queries * scale)
    assert_allclose(said, plain * scale, rtol=1e-4, atol=1e-4 * scale)


@pytest.mark.parametrize("inputs", [1e-9, 1.0, 1e6])
@pytest.mark.parametrize("outputs", [1e-6, 1.0, 1e6])
@each_method
def test_answers_stay_near_the_outputs_at_any_scale(
    method, inputs, outputs, two_outputs, queries
):
    X, Y = two_outputs
    model = StructuredNeighbors(
        method, input_length_scale=inputs, output_length_scale=outputs
    )
    said = model.fit(X, Y).predict(queries)
    low, high = Y.min(axis=0), Y.max(axis=0)
    margin = 0.5 * (high - low)
    assert ((said >= low - margin) & (said <= high + margin)).all()


@each_method
def test_one_row_and_constant_columns_are_answered(method):
    alone = StructuredNeighbors(method).fit([[1.0, 2.0]], [[3.0, 4.0]])
    assert_allclose(alone.predict([[5.0, 6.0]]), [[3.0, 4.0]])
    X = np.column_stack([np.arange(9.0), np.full(9, 7.0)])
    flat = StructuredNeighbors(method).fit(X, np.column_stack([X[:, 0], np.ones(9)]))
    said = flat.predict([[4.2, 7.0]])
    assert_allclose(said[:, 1], 1.0)
    assert np.isfinite(said).all()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "vote"}, "method='vote' is not known"),
        ({"n_neighbors": 0}, "n_neighbors=0 must be an integer >= 1"),
        ({"input_length_scale": -1.0}, "input_length_scale=-1.0 must be 'auto'"),
        ({"output_length_scale": [1.0, 2.0]}, "must be 'auto', a positive number"),
    ],
)
def test_bad_options_are_refused(options, message, surface):
    with pytest.raises(ValueError, match=message):
        StructuredNeighbors(**options).fit(*surface)
