"""Linear algebra: packed is dense, jitter is the least that will do."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from overcover import _linalg
from overcover._linalg import (
    BLOCK,
    VERY_WIDE,
    add_to_diagonal,
    cholesky,
    cholesky_in_place,
    inverse_factor,
    inverse_from_cholesky,
    lower_column_norms_sq,
    pack_lower,
    packed_column_norms_sq,
    packed_size,
    solve_cholesky,
    squared_differences,
    squared_distances,
)

SIZES = [1, 2, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 5]
each_size = pytest.mark.parametrize("n", SIZES)


def positive_definite(n, rng):
    A = rng.normal(size=(n, n))
    return A @ A.T + n * np.eye(n)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 8), st.integers(1, 6))
def test_squared_distances_match_the_double_loop(seed, n, d):
    rng = np.random.default_rng(seed)
    A, B = rng.normal(size=(n, d)), rng.normal(size=(n + 2, d))
    expected = [[np.sum((a - b) ** 2) for b in B] for a in A]
    assert_allclose(squared_distances(A, B), expected, atol=1e-12)
    assert (squared_distances(A, A) >= 0).all()
    assert_allclose(squared_differences(A, B), expected, atol=1e-12)
    assert (np.diag(squared_differences(A, A)) == 0).all()


@pytest.mark.parametrize("shift", [0.0, 1e3])
@pytest.mark.parametrize("gap", [0.0, 1e-12, 1e-8, 1e-4, 1.0])
@pytest.mark.parametrize("d", [2, 11, 12, 40])
def test_distances_of_rows_that_nearly_coincide_are_not_rounding(d, gap, shift, rng):
    A = rng.normal(size=(20, d)) + shift
    B = np.vstack([A + gap * rng.normal(size=A.shape), rng.normal(size=A.shape)])
    expected = np.array([[np.sum((a - b) ** 2) for b in B] for a in A])
    assert_allclose(squared_distances(A, B), expected, rtol=1e-8)
    assert_array_equal(np.diag(squared_distances(A, A)), 0.0)


@pytest.mark.parametrize("value", [1e4, 1e9, 1e30, 1e200])
def test_a_far_row_leaves_the_distances_of_the_others_alone(value, rng):
    A = rng.normal(size=(30, 20))
    expected = squared_distances(A, A)
    far = A.copy()
    far[7, 3] = value
    others = np.arange(30) != 7
    found = squared_distances(far, far)
    assert_allclose(found[others][:, others], expected[others][:, others], atol=1e-12)
    assert_allclose(found[7, others], min(value, 1e150) ** 2, rtol=0.01)
    # As if the mean of the rows had been subtracted, which the far one has pulled.
    found = squared_distances(far - value / 1e5, far - value / 1e5)
    if value < 1e10:
        assert_allclose(found[0, 1:5], expected[0, 1:5], rtol=1e-6)


@each_size
def test_the_cholesky_factor_multiplies_back(n, rng):
    A = positive_definite(n, rng)
    before = A.copy()
    L, jitter = cholesky(A)
    assert jitter == 0
    assert_array_equal(A, before)
    assert_array_equal(L, np.tril(L))
    assert_allclose(L @ L.T, A)


def test_only_the_lower_triangle_is_read(rng):
    A = positive_definite(9, rng)
    nonsense = np.tril(A) + np.triu(np.full((9, 9), 1e3), 1)
    assert_array_equal(cholesky(nonsense)[0], cholesky(A)[0])
    assert_array_equal(cholesky(np.asfortranarray(nonsense))[0], cholesky(A)[0])


@each_size
def test_factors_solve_and_invert(n, rng):
    A, B = positive_definite(n, rng), rng.normal(size=(n, 3))
    L, _ = cholesky(A)
    assert_allclose(solve_cholesky(L, B), np.linalg.solve(A, B))
    assert_allclose(inverse_from_cholesky(L), np.linalg.inv(A), atol=1e-12)
    L_inv = inverse_factor(L)
    assert_allclose(L_inv @ L, np.eye(n), atol=1e-12)
    assert_allclose(np.sum(L_inv**2, axis=0), np.diag(np.linalg.inv(A)))


@each_size
def test_a_packed_factor_answers_as_the_dense_one(n, rng):
    A = np.tril(rng.normal(size=(n, n)))
    packed = pack_lower(A)
    assert packed.shape == (packed_size(n),)
    B = rng.normal(size=(n, 7))
    expected = np.sum((A @ B) ** 2, axis=0)
    assert_allclose(packed_column_norms_sq(packed, B), expected)


@each_size
@pytest.mark.parametrize("n_columns", [1, 2, 61, 300])
def test_a_packed_factor_in_single_precision_answers_nearly_so(n, n_columns, rng):
    A, B = np.tril(rng.normal(size=(n, n))), rng.normal(size=(n, n_columns))
    packed = pack_lower(A, np.float32)
    assert packed.dtype == np.float32
    found = packed_column_norms_sq(packed, B)
    assert found.dtype == np.float64
    assert_allclose(found, np.sum((A @ B) ** 2, axis=0), rtol=1e-5)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_column_s_norm_does_not_depend_on_its_company(dtype, rng):
    packed = pack_lower(np.tril(rng.normal(size=(150, 150))), dtype)
    B = rng.normal(size=(150, 40))
    alone = [packed_column_norms_sq(packed, B[:, [q]])[0] for q in range(40)]
    assert_array_equal(packed_column_norms_sq(packed, B), alone)


@each_size
def test_packing_keeps_at_most_half_and_a_block_per_row(n):
    assert n * (n + 1) / 2 <= packed_size(n) <= n**2 / 2 + n * BLOCK / 2


def test_the_explained_variance_is_a_quadratic_form(rng):
    A, K_xq = positive_definite(100, rng), rng.normal(size=(100, 5))
    packed = pack_lower(inverse_factor(cholesky(A)[0]))
    expected = [k @ np.linalg.inv(A) @ k for k in K_xq.T]
    assert_allclose(packed_column_norms_sq(packed, K_xq), expected)


def test_the_diagonal_grows_in_place(rng):
    A = np.zeros((3, 3))
    assert add_to_diagonal(A, np.array([1.0, 2.0, 3.0])) is A
    assert_array_equal(A, np.diag([1.0, 2.0, 3.0]))


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
@pytest.mark.parametrize("deficit", [1e-11, 1e-9, 1e-7, 1e-5])
def test_jitter_escalates_just_far_enough(deficit, scale):
    """An eigenvalue of minus `deficit` needs the next step above it."""
    A = scale * np.diag([1.0, 1.0, 1.0, -deficit])
    L, jitter = cholesky(A)
    steps = np.array(_linalg.JITTERS) * np.mean(np.diag(A))
    expected = steps[steps > scale * deficit][0]
    assert jitter == pytest.approx(expected)
    assert_allclose(L @ L.T, A + jitter * np.eye(4), atol=1e-12 * scale)


def test_a_singular_matrix_is_factorised_with_a_little_jitter():
    L, jitter = cholesky(np.ones((50, 50)))
    assert 0 < jitter <= 1e-8
    assert np.isfinite(L).all()


@pytest.mark.parametrize(
    "A",
    [
        np.diag([1.0, -1.0, 5.0]),
        np.zeros((3, 3)),
        -np.eye(3),
        np.full((3, 3), np.nan),
        np.diag([np.inf, 1.0, 1.0]),
    ],
    ids=["indefinite", "zero", "negative", "nan", "inf"],
)
def test_a_matrix_beyond_help_is_an_error_that_says_what_to_try(A):
    with pytest.raises(np.linalg.LinAlgError, match=r"raise `noise`, shorten `length"):
        cholesky(A)
    with pytest.raises(np.linalg.LinAlgError, match=r"The thing of shape \(3, 3\)"):
        cholesky(A, name="The thing")


def test_distances_of_rows_with_themselves_are_those_of_two_sets():
    A = np.random.default_rng(0).normal(size=(90, VERY_WIDE))
    A[1], A[2] = A[0], A[0] + 1e-9
    A *= np.geomspace(1e-3, 1e3, A.shape[1])
    together, apart = squared_distances(A, A), squared_distances(A, A.copy())
    assert_allclose(together, apart, rtol=1e-9)
    assert_array_equal(together, together.T)
    assert together[0, 1] == 0 and np.all(np.diag(together) == 0)


def test_cholesky_in_place_is_cholesky_also_where_it_fails_at_first():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 30))
    A = A @ A.T + np.eye(30)
    expected, _ = cholesky(A)
    assert_array_equal(cholesky_in_place(A.copy(), A.copy), expected)
    ones = np.ones((30, 30))
    assert_array_equal(cholesky_in_place(ones.copy(), ones.copy), cholesky(ones)[0])


@pytest.mark.parametrize("n", [1, 100, 300])
def test_norms_of_a_lower_triangle_read_nothing_above_it(n):
    rng = np.random.default_rng(n)
    A, B = np.tril(rng.normal(size=(n, n))), rng.normal(size=(n, 3))
    assert_allclose(lower_column_norms_sq(A, B), np.sum((A @ B) ** 2, axis=0))
