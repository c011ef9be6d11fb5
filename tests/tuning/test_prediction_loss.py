"""The prediction loss and its gradient agree with a slow GP for every held-out row."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from overcover.kernels import NAMES
from overcover.tuning.prediction_loss import (
    ERROR_SHARE,
    HeldOut,
    LocalSet,
    measure,
    predict_held_out,
    prediction_loss,
    standard_error,
    tied_loss,
)

THETA = np.log([0.8, 1.5, 3.0, 0.05])
LIMITS = np.array([0.4, 10.0])
each_kernel = pytest.mark.parametrize("kernel", NAMES)


@pytest.fixture(scope="module")
def sets():
    rng = np.random.default_rng(0)
    groups = np.array([0, 1, 2, 3]), np.array([5, 5, 2, 2, 2, 7, 5])
    return [
        LocalSet(
            rng.normal(size=(30, 3)),
            rng.normal(size=(30, 2)),
            rng.uniform(0.5, 2.0, 30),
            numbers,
            rng.uniform(0.5, 2.0, len(numbers)),
        )
        for numbers in groups
    ]


def slow(theta, kernel, sets, limits=np.inf):
    """Errors, variances and loss, one GP without the group of every row held out."""
    scales, noise = np.exp(theta[:-1]), np.exp(theta[-1])
    errors, variances = [], []
    for local in sets:
        n_learned = len(local.X) - len(local.groups)
        groups = np.append(np.full(n_learned, -1), local.groups)
        mean = np.average(
            local.Y[:n_learned], axis=0, weights=local.weights[:n_learned]
        )
        for i, weight in enumerate(local.weights_held, n_learned):
            rest = groups != groups[i]
            X, Y = local.X[rest], local.Y[rest] - mean
            A = reference.kernel_matrix(kernel, X, X, scales)
            inverse = np.linalg.inv(A + np.diag(noise / local.weights[rest]))
            k = reference.kernel_matrix(kernel, local.X[i : i + 1], X, scales)[0]
            errors.append(local.Y[i] - mean - k @ inverse @ Y)
            variances.append(1.0 + noise / weight - k @ inverse @ k)
    errors, variances = np.array(errors), np.array(variances)
    squares = np.minimum(np.abs(errors), limits) ** 2
    loss = ERROR_SHARE * np.log(squares.mean(axis=0))
    loss += np.log((squares / variances[:, None]).mean(axis=0))
    return errors, variances, 0.5 * (loss.mean() + np.log(variances).mean())


def measured(sets):
    return [measure(local, np.exp(THETA[:-1])) for local in sets]


@each_kernel
def test_errors_and_variances_are_those_of_one_gp_per_row(kernel, sets):
    held_out = predict_held_out(kernel, 1.0, np.exp(THETA[-1]), measured(sets))
    errors, variances, _ = slow(THETA, kernel, sets)
    assert_allclose(held_out.errors, errors, rtol=1e-7, atol=1e-9)
    assert_allclose(held_out.variances, variances, rtol=1e-7)
    assert held_out.sets.tolist() == [0] * 4 + [1] * 7


@each_kernel
def test_the_loss_is_its_formula(kernel, sets):
    *_, expected = slow(THETA, kernel, sets, LIMITS)
    value, _ = prediction_loss(THETA, kernel, sets, LIMITS)
    assert_allclose(value, expected, rtol=1e-9)
    held_out = predict_held_out(kernel, 1.0, np.exp(THETA[-1]), measured(sets))
    assert_allclose(held_out.sums(LIMITS).losses().mean(), expected, rtol=1e-9)
    tied, _ = tied_loss(0.0, THETA[-1], kernel, measured(sets), LIMITS)
    assert_allclose(tied, expected, rtol=1e-9)


@each_kernel
def test_the_gradient_agrees_with_finite_differences(kernel, sets):
    def value(theta):
        return prediction_loss(theta, kernel, sets, LIMITS)[0]

    _, gradient = prediction_loss(THETA, kernel, sets, LIMITS)
    slopes = reference.numerical_gradient(value, THETA)
    assert_allclose(gradient, slopes, rtol=1e-4, atol=1e-6)


@each_kernel
def test_a_common_factor_moves_all_length_scales(kernel, sets):
    step = 0.3
    moved = THETA + np.append(np.full(3, step), 0.0)
    value, gradient = prediction_loss(moved, kernel, sets, LIMITS)
    tied, slopes = tied_loss(step, THETA[-1], kernel, measured(sets), LIMITS)
    assert_allclose(tied, value, rtol=1e-9)
    assert_allclose(slopes, [gradient[:-1].sum(), gradient[-1]], rtol=1e-6)


def test_outputs_are_judged_apart(sets):
    held_out = predict_held_out("rbf", 1.0, 0.05, measured(sets))
    alone = [local.of_outputs([1]) for local in sets]
    one = predict_held_out("rbf", 1.0, 0.05, measured(alone))
    losses = held_out.sums(np.inf).losses()
    assert_allclose(losses[1], one.sums(np.inf).losses().mean(), rtol=1e-9)


def test_the_workers_do_not_matter(sets):
    one, two = (prediction_loss(THETA, "rbf", sets, np.inf, n)[1] for n in (1, 2))
    assert (one == two).all()


def test_the_standard_error_is_that_of_the_jackknife():
    rng = np.random.default_rng(0)
    number = np.repeat(np.arange(20), 5)
    first, second = (
        HeldOut(rng.normal(size=(100, 1)), np.ones(100), number).sums(np.inf)
        for _ in range(2)
    )

    def difference(kept):
        return (
            sum(
                sign * np.log(part.squares[kept].sum() / part.counts[kept].sum())
                for sign, part in ((1, first), (-1, second))
            )
            * 0.5
            * (ERROR_SHARE + 1.0)
        )

    each = np.array([difference(np.arange(20) != k) for k in range(20)])
    expected = np.sqrt(19 / 20 * np.sum((each - each.mean()) ** 2))
    assert_allclose(standard_error(first, second), expected, rtol=1e-6)
    assert standard_error(first, first) == 0.0
