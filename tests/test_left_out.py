"""Groups left out in closed form are what a GP without them predicts."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
from overcover._left_out import leave_groups_out


@pytest.fixture
def problem():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(24, 2)), rng.normal(size=(24, 2))
    weights = rng.uniform(0.5, 2.0, 24)
    return X, Y - np.average(Y, axis=0, weights=weights), weights


def closed_form(X, Y, weights, groups, noise=0.1):
    A = reference.kernel_matrix("matern32", X, X, 1.0) + np.diag(noise / weights)
    L = np.linalg.cholesky(A)
    one = np.ones(len(X))
    solved = np.linalg.solve(A, np.column_stack([Y, one]))
    return leave_groups_out(
        np.linalg.inv(L), solved[:, :-1], solved[:, -1], Y, weights, groups
    )


def slow(X, Y, weights, groups, noise=0.1):
    """A GP fitted again without each group, its mean too."""
    errors, variances = np.empty_like(Y), np.empty(len(X))
    for group in np.unique(groups):
        out = groups == group
        model = reference.DenseGP("matern32", 1.0, noise, weights[~out])
        mean, variance = model.fit(X[~out], Y[~out]).predict(X[out])
        errors[out] = Y[out] - mean
        variances[out] = variance - noise + noise / weights[out]
    return errors, variances


@pytest.mark.parametrize("size", [1, 2, 5, 12])
def test_groups_left_out_are_those_of_a_gp_without_them(problem, size):
    groups = np.random.default_rng(1).permutation(24) // size
    for fast, expected in zip(closed_form(*problem, groups), slow(*problem, groups)):
        assert_allclose(fast, expected, rtol=1e-8, atol=1e-10)


def test_no_groups_are_groups_of_one(problem):
    for one, two in zip(
        closed_form(*problem, None), closed_form(*problem, np.arange(24))
    ):
        assert_allclose(one, two, rtol=1e-12)


def test_one_group_of_all_rows_is_left_out_row_by_row(problem):
    """Without any row there is nothing to predict from."""
    errors, _ = closed_form(*problem, np.zeros(24, int))
    variances = closed_form(*problem, None)[1]
    assert np.isfinite(errors).all()
    assert_allclose(closed_form(*problem, np.zeros(24, int))[1], variances)
