"""Patchwork kriging: what cells agree upon at their borders, and how certainly."""

import numpy as np
from numpy.testing import assert_allclose

from overcover import GP, PatchworkGP

MACHINE = GP(kernel="rbf", length_scale=1.5, noise=0.02)


def gaussian(P, Q):
    return np.exp(-0.5 * np.sum((P[:, None] - Q[None]) ** 2, axis=2) / 1.5**2)


def test_variances_agree_at_control_points(surface):
    model = PatchworkGP(MACHINE, cell_size=40).fit(*surface)
    for j, cell in enumerate(model.cells_):
        points = model.control_points_[cell.control]
        _, variance = model._answer(j, *model._in_units(points, model._grid.low))
        assert_allclose(variance, np.diag(model._spread)[cell.control], atol=1e-5)


def test_functions_of_two_cells_are_conditioned_to_be_equal(rng):
    """The joint Gaussian of both, with differences of zero as observations."""
    X = rng.uniform(0, 10, (40, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=40)
    model = PatchworkGP(MACHINE, cell_size=20).fit(X, y)
    assert model.n_cells_ == (2,)
    B, Q = model.control_points_, np.linspace(0.1, 9.9, 15)[:, None]
    side, side_Q = model._grid.cell_of(X), model._grid.cell_of(Q)
    same, same_Q = side[:, None] == side[None], side[:, None] == side_Q[None]
    sign, sign_Q = np.where(side == 0, 1.0, -1.0), np.where(side_Q == 0, 1.0, -1.0)
    K = np.zeros((41, 41))
    K[:40, :40] = gaussian(X, X) * same + 0.02 * np.eye(40)
    K[:40, 40:] = sign[:, None] * gaussian(X, B)
    K[40:, :40] = K[:40, 40:].T
    K[40, 40] = 2.0
    k = np.vstack([gaussian(X, Q) * same_Q, sign_Q * gaussian(B, Q)])
    weights = np.linalg.solve(K, k)
    mean, std = model.predict(Q, return_std=True)
    centred = y - y.mean()
    assert_allclose(mean, y.mean() + weights[:40].T @ centred, atol=1e-6)
    variance = 1.02 - np.sum(k * weights, axis=0)
    assert_allclose(std**2 / model.amplitude_sq_[0], variance, atol=1e-6)


def test_a_border_without_rows_has_half_of_the_prior_variance(rng):
    """Each cell has a prior of its own, so the border has two."""
    X = np.concatenate([rng.uniform(0, 1, (30, 1)), rng.uniform(99, 100, (30, 1))])
    model = PatchworkGP(MACHINE, cell_size=30).fit(X, np.sin(X[:, 0]))
    assert_allclose(model._spread, 0.5, rtol=1e-6)


def test_values_at_borders_weigh_cells_by_their_precision():
    """Two intervals, one control point: a precision-weighted mean."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (80, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    model = PatchworkGP(MACHINE, cell_size=40).fit(X, y)
    assert model.n_cells_ == (2,) and len(model.control_points_) == 1
    precision = [1 / L_control[0, 0] ** 2 for L_control in model._factors]
    means = [cell.means[0, 0] for cell in model.cells_]
    expected = np.average(means, weights=precision)
    assert_allclose(model.control_values_[0, 0], expected, rtol=1e-8)
    assert_allclose(model._spread[0, 0], 1 / sum(precision), rtol=1e-8)
