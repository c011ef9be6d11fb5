"""The bound of a sparse GP: its value, its gradient, and what climbing it does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from overcover import GP
from overcover.baselines import SparseGP
from overcover.baselines._bound import negative_bound
from overcover.tuning.likelihood import negative_log_likelihood
from reference import kernel_matrix

THETA = np.array([0.1, 0.3, -0.2, -2.0])
RULES = pytest.mark.parametrize("rule", ["fic", "vfe"])
NAMES = pytest.mark.parametrize("name", ["rbf", "matern12", "matern32", "matern52"])


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(70, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]), X[:, 1] * X[:, 2]])
    Y += 0.1 * rng.normal(size=Y.shape)
    return X, Y - Y.mean(axis=0), rng.integers(1, 4, 70).astype(float)


def slow(theta, rule, name, X, Y, Z):
    """Likelihood by its definition, every row of weight one."""
    scales, noise = np.exp(theta[:-1]), np.exp(theta[-1])
    K_zx = kernel_matrix(name, Z, X, scales)
    Q = K_zx.T @ np.linalg.solve(kernel_matrix(name, Z, Z, scales), K_zx)
    missed = 1.0 - np.diag(Q)
    C = Q + np.diag(noise + missed if rule == "fic" else np.full(len(X), noise))
    energy = np.diag(Y.T @ np.linalg.solve(C, Y))
    value = 0.5 * np.mean(np.log(energy / len(X)))
    value += 0.5 * np.linalg.slogdet(C)[1] / len(X)
    return value + (0.5 * missed.mean() / noise if rule == "vfe" else 0.0)


@NAMES
@RULES
def test_the_value_is_that_of_the_definition(rows, rule, name):
    X, Y, _ = rows
    found, _ = negative_bound(THETA, rule, name, X, Y, np.ones(70), X[:15] + 0.01)
    assert_allclose(found, slow(THETA, rule, name, X, Y, X[:15] + 0.01), rtol=1e-7)


@NAMES
@RULES
def test_the_gradient_is_the_slope(rows, rule, name):
    X, Y, weights = rows

    def value(theta):
        return negative_bound(theta, rule, name, X, Y, weights, X[:15] + 0.01)

    steps = 1e-5 * np.eye(4)
    slopes = [(value(THETA + s)[0] - value(THETA - s)[0]) / 2e-5 for s in steps]
    assert_allclose(value(THETA)[1], slopes, atol=1e-8)


@RULES
def test_rows_as_inducing_points_give_the_likelihood_of_the_full_gp(rows, rule):
    X, Y, weights = rows
    found = negative_bound(THETA, rule, "matern32", X, Y, weights, X)
    full = negative_log_likelihood(THETA, "matern32", X, Y, weights)
    assert_allclose(found[0], full[0], atol=1e-6)
    assert_allclose(found[1], full[1], atol=1e-6)


@given(
    theta=st.tuples(*4 * [st.floats(-2.0, 2.0)]),
    n_points=st.integers(1, 30),
    seed=st.integers(0, 99),
)
def test_the_variational_bound_is_a_bound(theta, n_points, seed):
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(30, 3)), rng.normal(size=(30, 1))
    theta, Y = np.array(theta), Y - Y.mean()
    Z = X[:n_points] + 0.1
    bound, _ = negative_bound(theta, "vfe", "matern32", X, Y, np.ones(30), Z)
    full, _ = negative_log_likelihood(theta, "matern32", X, Y)
    assert bound >= full - 1e-6


@pytest.mark.parametrize("method", ["fic", "dtc", "pic"])
def test_climbing_raises_the_likelihood_of_the_method(rows, method):
    X, Y, _ = rows
    points = X[:15] + 0.01
    options = {"method": method, "inducing": points, "random_state": 0}
    machine = GP("matern32")
    rule = "vfe" if method == "dtc" else "fic"

    def bound_of(tuning):
        theta = SparseGP(machine, tuning=tuning, **options).fit(X, Y).machine_.theta_[0]
        return negative_bound(theta, rule, "matern32", X, Y, np.ones(70), points)[0]

    assert bound_of("bound") < bound_of("local") - 0.01


def test_what_the_user_fixed_does_not_move(rows):
    X, Y, _ = rows
    machine = GP(length_scale=[1.0, 2.0, 0.5])
    options = {"method": "dtc", "n_inducing": 15, "random_state": 0}
    model = SparseGP(machine, tuning="bound", **options).fit(X, Y)
    assert_array_equal(model.length_scales_, [1.0, 2.0, 0.5])
    local = SparseGP(machine, **options).fit(X, Y)
    assert model.machine_.noise_ != local.machine_.noise_


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_workers_change_nothing(rows, n_jobs):
    X, Y, _ = rows
    model = SparseGP(tuning="bound", n_inducing=15, random_state=0, n_jobs=n_jobs)
    alone = SparseGP(tuning="bound", n_inducing=15, random_state=0).fit(X, Y)
    assert_array_equal(model.fit(X, Y).machine_.theta_, alone.machine_.theta_)


def test_constant_columns_and_outputs_are_left_out(rows):
    X, Y, _ = rows
    options = {"tuning": "bound", "n_inducing": 15, "random_state": 0}
    expected = SparseGP(**options).fit(X, Y).machine_.theta_[0]
    wide = np.column_stack([X, np.full(70, 5.0)])
    found = SparseGP(**options).fit(wide, np.column_stack([Y, np.full(70, 3.0)]))
    assert_allclose(found.machine_.theta_[0, [0, 1, 2, 4]], expected, atol=2e-3)
    assert np.isinf(found.machine_.theta_[0, 3])
