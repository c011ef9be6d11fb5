"""Kernels agree with a double loop over the textbook's formulas."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel

import reference
from overcover import kernels

LENGTHS = np.array([0.5, 2.0, 7.0])
THETA = np.append(np.log(LENGTHS), np.log(0.1))
each_kernel = pytest.mark.parametrize("name", kernels.NAMES)


@pytest.fixture
def rows(rng):
    return rng.normal(size=(12, 3)), rng.normal(size=(7, 3))


@each_kernel
def test_kernel_matrices_match_the_double_loop(name, rows):
    A, B = (kernels.in_units(name, THETA, X)[1] for X in rows)
    expected = reference.kernel_matrix(name, *rows, LENGTHS)
    assert_allclose(kernels.cross(name, A, B), expected, rtol=1e-7)
    expected = reference.kernel_matrix(name, rows[0], rows[0], LENGTHS)
    assert_allclose(kernels.gram(name, A), expected, rtol=1e-7)
    assert_array_equal(kernels.diagonal(name, A), np.ones(len(A)))


@each_kernel
@pytest.mark.parametrize("gap", [0.0, 1e-8, 1e-5])
@pytest.mark.parametrize("d", [3, 15])
def test_rows_that_nearly_coincide_match_the_double_loop(name, d, gap, rng):
    """Where Matern 1/2 has a kink, a rounded distance would be felt at its root."""
    A = rng.normal(size=(10, d))
    A = np.vstack([A, A + gap * rng.normal(size=A.shape)])
    expected = reference.kernel_matrix(name, A, A, np.ones(d))
    assert_allclose(kernels.gram(name, A), expected, rtol=0, atol=1e-14)
    assert_allclose(kernels.cross(name, A, A), expected, rtol=0, atol=1e-14)


@each_kernel
def test_sums_over_pairs_that_nearly_coincide_match_the_double_loop(name, rng):
    A = rng.normal(size=(10, 3))
    A = np.vstack([A, A + 1e-8 * rng.normal(size=A.shape)])
    Q = rng.normal(size=(20, 20))
    offsets_sq = (A[:, None] - A[None]) ** 2
    _, slopes = kernels.apply_with_slope(name, offsets_sq.sum(axis=2))
    expected = np.einsum("ab,ab,abf->f", Q, slopes, offsets_sq)
    found = kernels.weighted_differences(Q, slopes.copy(), A, A)
    assert_allclose(found, expected, atol=1e-12)


@each_kernel
@pytest.mark.parametrize("n", [3, kernels.BLOCK + 5])
def test_lower_triangles_hold_values_and_slopes_of_all_pairs(name, n, rng):
    A = rng.normal(size=(n, 3))
    offsets_sq = (A[:, None] - A[None]) ** 2
    values, slopes = kernels.apply_with_slope(name, offsets_sq.sum(axis=2))
    K_xx, found = kernels.gram_with_slope_lower(name, A)
    assert_allclose(np.tril(K_xx), np.tril(values), atol=1e-14)
    assert_allclose(found, np.tril(slopes, -1), rtol=1e-10, atol=1e-12)


@each_kernel
def test_a_row_is_exactly_like_itself(name, rng):
    A = 1e4 * rng.normal(size=(20, 3))
    assert_array_equal(np.diag(kernels.gram(name, A)), np.ones(20))


@each_kernel
def test_kernel_matrices_are_positive_definite(name, rows):
    assert np.linalg.eigvalsh(kernels.gram(name, rows[0])).min() > 0


@each_kernel
@given(s=st.floats(1e-4, 100))
def test_the_slope_is_the_derivative(name, s):
    at = np.array([s])
    value, slope = kernels.apply_with_slope(name, at)
    assert_allclose(value, kernels.apply(name, at.copy()), rtol=1e-12)
    step = 1e-4 * s
    ahead, behind = (kernels.apply(name, at + h) for h in (step, -step))
    assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-12)


@each_kernel
def test_zero_distance_has_value_one_and_a_finite_slope(name):
    value, slope = kernels.apply_with_slope(name, np.zeros(1))
    assert value[0] == 1
    assert np.isfinite(slope[0])


@each_kernel
def test_similarity_falls_with_distance_to_zero(name):
    values = kernels.apply(name, np.append(np.linspace(0, 30, 200) ** 2, 1e300))
    assert values[0] == 1 and values[-1] == 0
    assert (np.diff(values) < 0).all()


@each_kernel
def test_an_infinite_length_scale_ignores_its_column(name, rows):
    A, B = rows
    theta = np.append(np.log(LENGTHS), 0.0)
    theta[1] = np.inf
    units_a, units_b = (kernels.in_units(name, theta, X)[1] for X in rows)
    expected = reference.kernel_matrix(name, A[:, ::2], B[:, ::2], LENGTHS[::2])
    assert_allclose(kernels.cross(name, units_a, units_b), expected, rtol=1e-7)


@pytest.mark.parametrize(
    "kernel",
    [RBF(2.0), 3.0 * Matern([1.0, 2.0, 3.0], nu=1.5) + WhiteKernel(0.1)],
    ids=str,
)
def test_a_kernel_object_is_used_as_it_is(kernel, rows):
    A, B = rows
    theta = np.append(kernel.theta + 0.3, 0.0)
    moved, units = kernels.in_units(kernel, theta, A)
    assert_array_equal(units, A)
    assert_allclose(moved.theta, theta[:-1])
    assert_array_equal(kernels.cross(moved, A, B), moved(A, B))
    assert_array_equal(kernels.gram(moved, A), moved(A))
    assert_array_equal(kernels.diagonal(moved, A), moved.diag(A))


def test_similarity_is_free_of_the_amplitude(rows):
    A, B = rows
    kernel = ConstantKernel(40.0) * RBF(2.0)
    similar = kernels.similarity(kernel, kernel(A, B), A, B)
    assert_allclose(similar, RBF(2.0)(A, B))
    named = kernels.cross("rbf", A, B)
    assert kernels.similarity("rbf", named, A, B) is named
