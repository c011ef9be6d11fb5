"""The prediction loss is that of machines that never saw the row they predict."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from overcover.kernels import NAMES
from overcover.tuning.prediction_loss import (
    ERROR_SHARE,
    _answer_anchors,
    prediction_loss,
    prediction_score,
)

THETA = np.log([0.8, 1.7, 0.05])
each_kernel = pytest.mark.parametrize("kernel", NAMES)


def make_sets(rng, n_sets=2, n_anchors=4, n=9, weighted=False):
    sets = []
    for _ in range(n_sets):
        X = rng.normal(size=(n_anchors, n, 2))
        Y = np.stack([np.sin(X[..., 0]), X[..., 0] * X[..., 1]], axis=-1)
        weights = np.ones((n_anchors, n))
        if weighted:
            weights = rng.uniform(0.3, 4.0, (n_anchors, n))
        sets.append((X, Y + 0.1 * rng.normal(size=Y.shape), weights))
    return sets


def brute_force(kernel, X, Y, weights):
    """Error and variance at row 0 of a GP fitted to the other rows."""
    lengths, noise = np.exp(THETA[:-1]), np.exp(THETA[-1])
    dense = reference.DenseGP(kernel, lengths, noise, weights[1:])
    dense.fit(X[1:], Y[1:], mean=Y[1:].mean(axis=0))
    mean, variance = dense.predict(X[:1])
    # `dense` speaks of an observation of weight one; the anchor has its own.
    return Y[0] - mean[0], variance[0] - noise + noise / weights[0]


@each_kernel
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_and_variances_are_those_of_a_gp_without_the_anchor(
    kernel, weighted, rng
):
    [(X, Y, weights)] = make_sets(rng, n_sets=1, weighted=weighted)
    errors, eta, *_ = _answer_anchors(THETA, kernel, X, Y, weights)
    for a in range(len(X)):
        error, variance = brute_force(kernel, X[a], Y[a], weights[a])
        assert_allclose(errors[a], error, rtol=1e-6)
        assert_allclose(eta[a], variance, rtol=1e-6)


@each_kernel
def test_the_loss_follows_its_definition(kernel, rng):
    sets = make_sets(rng)
    pairs = [brute_force(kernel, *anchor) for parts in sets for anchor in zip(*parts)]
    expected = 0.0
    for j in range(2):
        errors_sq = np.array([error[j] ** 2 for error, _ in pairs])
        eta = np.array([variance for _, variance in pairs])
        expected += 0.5 * ERROR_SHARE * np.log(errors_sq.mean())
        expected += 0.5 * np.log(np.mean(errors_sq / eta)) + 0.5 * np.log(eta).mean()
    assert_allclose(prediction_loss(THETA, kernel, sets)[0], expected / 2, rtol=1e-6)
    assert_allclose(
        prediction_score(THETA, kernel, iter(sets)), expected / 2, rtol=1e-6
    )


@each_kernel
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_matches_finite_differences(kernel, weighted, rng):
    sets = make_sets(rng, weighted=weighted)
    _, gradient = prediction_loss(THETA, kernel, sets)
    expected = reference.numerical_gradient(
        lambda theta: prediction_loss(theta, kernel, sets)[0], THETA
    )
    assert_allclose(gradient, expected, rtol=1e-5, atol=1e-8)


@each_kernel
def test_neighbours_that_nearly_coincide_do_not_spoil_the_gradient(kernel, rng):
    sets = make_sets(rng)
    theta = np.append(THETA[:-1], np.log(1e-5))
    for X, _, _ in sets:
        X[:, 2:6:2] = X[:, 1:5:2] + 1e-7 * rng.normal(size=(4, 2, 2))
    _, gradient = prediction_loss(theta, kernel, sets)
    expected = reference.numerical_gradient(
        lambda moved: prediction_loss(moved, kernel, sets)[0], theta
    )
    assert_allclose(gradient, expected, rtol=1e-3, atol=1e-6)


def test_neither_the_split_into_sets_nor_the_workers_matter(rng):
    [whole] = make_sets(rng, n_sets=1, n_anchors=6)
    parts = [tuple(a[i : i + 2] for a in whole) for i in (0, 2, 4)]
    value, gradient = prediction_loss(THETA, "matern32", [whole])
    for n_jobs in (1, 2):
        split = prediction_loss(THETA, "matern32", parts, n_jobs)
        assert_allclose(split[0], value)
        assert_allclose(split[1], gradient)


def test_a_perfect_prediction_has_a_finite_loss(rng):
    [(X, Y, weights)] = make_sets(rng, n_sets=1)
    value, gradient = prediction_loss(THETA, "rbf", [(X, np.zeros_like(Y), weights)])
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


@each_kernel
def test_an_anchor_that_repeats_its_neighbour_has_a_finite_gradient(kernel, rng):
    [(X, Y, weights)] = make_sets(rng, n_sets=1)
    X[:, 1] = X[:, 0]
    value, gradient = prediction_loss(THETA, kernel, [(X, Y, weights)])
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()
