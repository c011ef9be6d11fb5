"""The output side sees all it must see: exactly with every row, nearly with pivots."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from overcover import TwinGP, kernels
from overcover.machines import twin_output
from overcover.machines.twin_output import (
    make_output_side,
    pivoted_cholesky,
    solved_output_side,
)
from reference_twin import gaussian, gram

NOISE = 1e-3
seeds = st.integers(0, 10_000)


def smooth_outputs(seed, n, d):
    """Rows whose kernel matrix has a low rank: few latent variables, then smooth."""
    rng = np.random.default_rng(seed)
    latent = rng.uniform(-1, 1, (n, 1))
    return np.sin(latent * rng.uniform(0.5, 2.0, d) + rng.normal(size=d))


def by_hand(Z, outputs):
    """B of all rows, or the identity where all are pivots."""
    return outputs.B if len(outputs.B) else np.eye(len(Z))


def some_weights(n):
    return np.linspace(0.2, 4.0, n)


# -- the factorisation ----------------------------------------------------------------


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(1, 40), st.integers(1, 4))
def test_a_pivoted_factor_leaves_no_more_than_it_says(seed, n, d):
    K = gram(smooth_outputs(seed, n, d))
    R, order, unseen = pivoted_cholesky(K.copy(), 1e-5)
    remainder = K[np.ix_(order, order)] - R.T @ R
    assert_array_equal(np.sort(order), np.arange(n))
    assert_array_equal(R, np.triu(R))
    assert unseen <= 1e-5
    assert_allclose(max(0.0, np.diag(remainder).max()), unseen, atol=1e-12)
    assert np.linalg.eigvalsh(remainder).min() > -1e-10


def test_the_rank_is_bounded_when_asked():
    K = gram(smooth_outputs(0, 60, 3))
    free = pivoted_cholesky(K.copy(), 1e-8)
    assert 5 < len(free.R) < 60
    bounded = pivoted_cholesky(K.copy(), 1e-8, most=5)
    assert len(bounded.R) == 5
    assert bounded.unseen > free.unseen
    assert_allclose(bounded.R, free.R[:5])


def test_gaussian_similarities_are_those_of_the_definition():
    Z = smooth_outputs(1, 20, 3)
    assert_allclose(kernels.cross("rbf", Z, Z), gram(Z), rtol=1e-12)
    assert_array_equal(np.diag(kernels.cross("rbf", Z, Z)), 1.0)


# -- what queries see -----------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(seeds, st.integers(2, 40), st.integers(1, 4), st.sampled_from(["auto", 1, 3, 9]))
def test_similarities_hang_on_the_pivots_within_the_bound(seed, n, d, rank):
    Z = smooth_outputs(seed, n, d)
    outputs, _ = make_output_side(Z, NOISE, np.ones(n), rank)
    B, pivots = by_hand(Z, outputs), outputs.pivots
    rng = np.random.default_rng(seed)
    for z in [*(Z[:3] + 0.1 * rng.normal(size=(len(Z[:3]), d))), 3 * np.ones(d), Z[-1]]:
        k_r = gaussian(z, pivots)
        unseen_of_z = 1.0 - k_r @ np.linalg.solve(gram(pivots), k_r)
        bound = np.sqrt(outputs.unseen * max(unseen_of_z, 0.0))
        error = np.abs(gaussian(z, Z) - B @ k_r).max()
        assert error <= bound + 1e-9


def test_the_bound_is_nearly_reached():
    """Or the test above would hold for a bound of any size."""
    Z = smooth_outputs(3, 40, 2)
    outputs, _ = make_output_side(Z, NOISE, np.ones(40), 4)
    errors, bounds = [], []
    for z in Z:
        k_r = gaussian(z, outputs.pivots)
        unseen = 1.0 - k_r @ np.linalg.solve(gram(outputs.pivots), k_r)
        errors.append(np.abs(gaussian(z, Z) - outputs.B @ k_r).max())
        bounds.append(np.sqrt(outputs.unseen * max(unseen, 0.0)))
    assert max(errors) > 0.5 * max(bounds) > 1e-4


@settings(max_examples=25, deadline=None)
@given(seeds, st.integers(2, 40), st.integers(1, 4), st.sampled_from(["auto", 3, 9]))
def test_c_and_what_is_taken_back_match_the_dense_formula(seed, n, d, rank):
    """With the kernel matrix that the pivots stand for, ``B K_rr B^T``."""
    Z, weights = smooth_outputs(seed, n, d), some_weights(n)
    left = np.arange(0, n, 2)
    outputs, taken = make_output_side(Z, NOISE, weights, rank, left)
    B = by_hand(Z, outputs)
    seen = B @ gram(outputs.pivots) @ B.T
    P = np.linalg.inv(seen + np.diag(NOISE / weights))
    scale = np.abs(B.T @ P @ B).max()
    assert_allclose(outputs.C, B.T @ P @ B, atol=1e-7 * scale)
    assert_array_equal(outputs.C, outputs.C.T)
    expected = (B.T @ P[:, left] / np.sqrt(np.diag(P)[left])).T
    assert_allclose(taken, expected, atol=1e-7 * np.abs(expected).max())


def test_with_every_row_nothing_is_approximated():
    Z, weights = smooth_outputs(0, 30, 3), some_weights(30)
    left = np.array([4, 0, 17])
    outputs, taken = make_output_side(Z, NOISE, weights, "full", left)
    P = np.linalg.inv(gram(Z) + np.diag(NOISE / weights))
    assert outputs.pivots is Z and outputs.unseen == 0.0
    assert_allclose(outputs.C, P, rtol=1e-8, atol=1e-8 * np.abs(P).max())
    assert_allclose(taken, (P[:, left] / np.sqrt(np.diag(P)[left])).T, atol=1e-8)


def test_solves_multiply_as_the_inverse_does(rng):
    Z, weights = smooth_outputs(0, 30, 3), some_weights(30)
    inverse, _ = make_output_side(Z, NOISE, weights, "full")
    solved, K = solved_output_side(Z, NOISE, weights), rng.uniform(size=(5, 30))
    assert_allclose(solved.C(K), K @ inverse.C, rtol=1e-8, atol=1e-8)


def test_outputs_that_differ_a_lot_take_the_exact_path():
    Z = 10.0 * np.random.default_rng(0).normal(size=(50, 5))
    outputs, _ = make_output_side(Z, NOISE, np.ones(50), "auto")
    assert outputs.pivots is Z and outputs.unseen == 0.0


@pytest.mark.parametrize("noise", [1e-2, 1e-4])
def test_less_noise_calls_for_more_pivots(noise):
    Z = smooth_outputs(0, 100, 3)
    outputs, _ = make_output_side(Z, noise, np.ones(100), "auto")
    less, _ = make_output_side(Z, noise / 100, np.ones(100), "auto")
    assert outputs.unseen <= twin_output.UNSEEN_SHARE * noise
    assert len(outputs.pivots) < len(less.pivots) < 90


# -- predictions ----------------------------------------------------------------------


@pytest.mark.parametrize("noise", [1e-1, 1e-2, 1e-3])
def test_pivots_move_predictions_by_less_than_a_thousandth_of_a_deviation(noise):
    rng = np.random.default_rng(0)
    X, Xq = rng.uniform(-2, 2, (400, 2)), rng.uniform(-2, 2, (100, 2))
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1]), X[:, 0] * X[:, 1]])
    Y += 0.02 * rng.normal(size=Y.shape)
    exact, quick = (
        TwinGP(0.8, 1.0, noise, noise, rank=rank).fit(X, Y) for rank in ("full", "auto")
    )
    assert len(exact.state_.core.pivots) == 400
    assert len(quick.state_.core.pivots) < 200
    moved = (quick.predict(Xq) - exact.predict(Xq)) / Y.std(axis=0)
    assert 0 < np.sqrt(np.mean(moved**2)) < 1e-3
    these, those = (m.predict(Xq, return_std=True)[1] for m in (quick, exact))
    assert_allclose(these, those, rtol=0.01)


@pytest.mark.parametrize("scale", [10.0, 100.0, 1e4])
@pytest.mark.parametrize("noise", [1e-1, 1e-3])
def test_pivots_hold_outputs_that_are_narrow_beside_their_scale(scale, noise):
    rng = np.random.default_rng(0)
    X, Xq = rng.uniform(-2, 2, (150, 2)), rng.uniform(-2, 2, (50, 2))
    Y = np.column_stack([np.sin(X[:, 0]), 1e-2 * X[:, 0] * X[:, 1], np.ones(150)])
    Y[:, :2] += 0.02 * Y[:, :2].std(axis=0) * rng.normal(size=(150, 2))
    scales = scale * np.append(Y.std(axis=0)[:2], 1.0)
    scales[1] *= 3.0
    exact, quick = (
        TwinGP(0.8, scales, noise, noise, rank=rank).fit(X, Y)
        for rank in ("full", "auto")
    )
    moved = (quick.predict(Xq) - exact.predict(Xq))[:, :2] / Y.std(axis=0)[:2]
    assert np.abs(moved).mean() < 1e-3


def test_answers_are_bounded_by_the_range_of_all_rows():
    """Not by that of a few pivots, which says little of the outputs."""
    rng = np.random.default_rng(0)
    X, Y = rng.uniform(-2, 2, (100, 1)), rng.uniform(-1, 1, (100, 2))
    model = TwinGP(0.5, 1.0, 0.1, 0.1, rank=1).fit(X, Y)
    core, rows = model.state_.core, model.state_.rows
    assert len(core.pivots) == 1
    looks = model.make_search().look(core, rows.similarities(X), rows.Z)
    looks = looks._replace(
        means=1e3 * np.ones_like(looks.means), unexplained=np.ones(100)
    )
    low, high = rows.Z.min(axis=0), rows.Z.max(axis=0)
    points = model.make_search().points(core, looks, rows.Z)
    assert_allclose(points, np.tile(high + 0.5 * (high - low), (100, 1)))


def test_fewer_pivots_than_needed_are_less_accurate_but_sane():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 1))
    Y = np.column_stack([np.sin(2 * X[:, 0]), np.cos(2 * X[:, 0])])
    truth = TwinGP(0.5, 0.7, 1e-3, 1e-3, rank="full").fit(X, Y).predict(X)
    errors = [
        np.abs(
            TwinGP(0.5, 0.7, 1e-3, 1e-3, rank=rank).fit(X, Y).predict(X) - truth
        ).max()
        for rank in (3, 10, 30)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[0] < 3 and errors[2] < 1e-3
