"""The marginal likelihood matches the textbook, its gradient finite differences."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern

import reference
from overcover import kernels
from overcover.kernels import NAMES
from overcover.tuning.likelihood import negative_log_likelihood

THETA = np.log([0.8, 1.7, 0.05])
OBJECT = ConstantKernel(1.3) * RBF([0.8, 1.7]) + 0.4 * Matern(1.1, nu=1.5)
CASES = [(name, THETA) for name in NAMES]
CASES += [(OBJECT, np.append(OBJECT.theta, np.log(0.05)))]
each_case = pytest.mark.parametrize(("kernel", "theta"), CASES, ids=str)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(25, 2))
    Y = np.column_stack([np.sin(X[:, 0]), 30 * X[:, 0] * X[:, 1]])
    Y = Y + 0.1 * rng.normal(size=Y.shape)
    return X, Y - Y.mean(axis=0)


@pytest.fixture
def weights(rng):
    return rng.uniform(0.3, 4.0, 25)


def noisy_kernel(kernel, theta, X):
    if isinstance(kernel, str):
        K_xx = reference.kernel_matrix(kernel, X, X, np.exp(theta[:-1]))
    else:
        K_xx = kernel.clone_with_theta(theta[:-1])(X)
    return K_xx + np.exp(theta[-1]) * np.eye(len(X))


@each_case
def test_the_value_matches_the_textbook(kernel, theta, data):
    """Per number observed, up to a constant that depends on no hyperparameter."""
    X, Y = data
    value, _ = negative_log_likelihood(theta, kernel, X, Y)
    log_p = [
        reference.profile_log_likelihood(noisy_kernel(kernel, theta, X), y) for y in Y.T
    ]
    constant = 0.5 * (np.log(2 * np.pi) + 1)
    assert_allclose(value + constant, -np.sum(log_p) / Y.size)


@each_case
@pytest.mark.parametrize("weighted", [False, True])
def test_the_gradient_matches_finite_differences(
    kernel, theta, weighted, data, weights
):
    X, Y = data
    weights = weights if weighted else None

    def value_at(moved):
        return negative_log_likelihood(moved, kernel, X, Y, weights)[0]

    _, gradient = negative_log_likelihood(theta, kernel, X, Y, weights)
    expected = reference.numerical_gradient(value_at, theta)
    assert_allclose(gradient, expected, rtol=1e-5, atol=1e-7)


@each_case
def test_a_weight_divides_the_noise_of_its_row(kernel, theta, data):
    X, Y = data
    weights = np.linspace(0.2, 3.0, len(X))
    unit, A = kernels.in_units(kernel, theta, X)
    K = kernels.gram(unit, A) + np.diag(np.exp(theta[-1]) / weights)

    def slow(theta):
        return negative_log_likelihood(theta, kernel, X, Y, weights)[0]

    value, gradient = negative_log_likelihood(theta, kernel, X, Y, weights)
    # A light row counts as its weight, a heavy one as one observation.
    counts = np.minimum(weights, 1.0)
    n = counts.sum()
    densities = []
    for y in Y.T:
        amplitude_sq = y @ np.linalg.solve(K, y) / n
        densities.append(-0.5 * (n * np.log(amplitude_sq) + np.linalg.slogdet(K)[1]))
    missing = 0.5 * (n - len(X)) * theta[-1]
    assert_allclose(value, (missing - np.mean(densities)) / n, rtol=1e-6)
    slopes = reference.numerical_gradient(slow, theta)
    assert_allclose(gradient, slopes, rtol=1e-4, atol=1e-6)


def test_rows_of_hardly_any_weight_say_nothing_of_the_noise(data):
    X, Y = data
    theta = np.zeros(X.shape[1] + 1)
    theta[-1] = np.log(0.1)
    ignored = np.random.default_rng(1).normal(size=(len(X), X.shape[1]))
    weights = np.append(np.ones(len(X)), np.full(len(X), 1e-10))
    both = np.vstack([X, ignored]), np.vstack([Y, Y[::-1]])
    alone = negative_log_likelihood(theta, "matern32", X, Y)
    together = negative_log_likelihood(theta, "matern32", *both, weights)
    assert_allclose(together[1], alone[1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", NAMES)
def test_rows_that_nearly_coincide_spoil_neither_value_nor_gradient(kernel, data, rng):
    X, Y = (np.vstack([A, A]) for A in data)
    X[25:] += 1e-6 * rng.normal(size=(25, 2))
    theta = np.append(THETA[:-1], np.log(1e-5))
    value, gradient = negative_log_likelihood(theta, kernel, X, Y)
    K_xx = noisy_kernel(kernel, theta, X)
    log_p = [reference.profile_log_likelihood(K_xx, y) for y in Y.T]
    constant = 0.5 * (np.log(2 * np.pi) + 1)
    assert_allclose(value + constant, -np.sum(log_p) / Y.size, rtol=1e-8)
    expected = reference.numerical_gradient(
        lambda moved: negative_log_likelihood(moved, kernel, X, Y)[0], theta
    )
    assert_allclose(gradient, expected, rtol=1e-4, atol=1e-6)


def test_weights_of_one_change_nothing(data):
    X, Y = data
    plain = negative_log_likelihood(THETA, "rbf", X, Y)
    weighted = negative_log_likelihood(THETA, "rbf", X, Y, np.ones(len(X)))
    assert_allclose(weighted[0], plain[0])
    assert_allclose(weighted[1], plain[1])


def test_the_scale_of_outputs_moves_the_value_by_a_constant(data):
    X, Y = data
    value, gradient = negative_log_likelihood(THETA, "matern32", X, Y)
    scaled, scaled_gradient = negative_log_likelihood(THETA, "matern32", X, 1e6 * Y)
    assert_allclose(scaled - value, np.log(1e6))
    assert_allclose(scaled_gradient, gradient, rtol=1e-9)


def test_outputs_are_averaged(data):
    X, Y = data
    together, _ = negative_log_likelihood(THETA, "matern52", X, Y)
    alone = [
        negative_log_likelihood(THETA, "matern52", X, Y[:, [j]])[0] for j in (0, 1)
    ]
    assert_allclose(together, np.mean(alone))
