"""Domain decomposition: one cell is the full GP, and borders are agreed upon."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from overcover import GP, DomainDecompositionGP, TwinGP

MACHINE = GP(kernel="rbf", length_scale=1.5, noise=0.02)


def decomposed(**options):
    return DomainDecompositionGP(MACHINE, **{"cell_size": 40, **options})


def gaussian(P, Q):
    return np.exp(-0.5 * np.sum((P[:, None] - Q[None]) ** 2, axis=2) / 1.5**2)


def test_one_cell_is_the_full_gp(surface, queries):
    X, y = surface
    model = decomposed(cell_size=300).fit(X, y)
    assert model.n_cells_ == (1, 1) and not len(model.control_points_)
    mean, std = model.predict(queries, return_std=True)
    A, K_xq = gaussian(X, X) + 0.02 * np.eye(len(X)), gaussian(X, queries)
    centred = y - y.mean()
    assert_allclose(mean, y.mean() + K_xq.T @ np.linalg.solve(A, centred), atol=1e-8)
    amplitude_sq = centred @ np.linalg.solve(A, centred) / len(X)
    variance = 1.02 - np.sum(K_xq * np.linalg.solve(A, K_xq), axis=0)
    assert_allclose(std**2, amplitude_sq * variance, rtol=1e-6)


def test_cells_agree_at_their_control_points(surface):
    model = decomposed().fit(*surface)
    assert len(model.cells_) > 4
    for k, point in enumerate(model.control_points_):
        said = [
            model._answer(cell, point[None])
            for cell in model.cells_
            if k in cell.control
        ]
        assert len(said) == 2
        for mean, variance in said:
            assert_allclose(mean[0], model.control_values_[k], atol=1e-5)
            assert_allclose(variance[0], model._spread[k, k], atol=1e-5)


def jumps(model):
    """Differences across borders, away from control points too."""
    X = np.linspace(-2.9, 2.9, 41)
    found = []
    for axis, count in enumerate(model.n_cells_):
        for i in range(1, count):
            border = model._low[axis] + i / count * model._width[axis]
            sides = []
            for nudge in (-1e-9, 1e-9):
                points = np.column_stack([X, X])
                points[:, axis] = border + nudge
                sides.append(model.predict(points))
            found.append(np.abs(sides[0] - sides[1]))
    return np.concatenate(found)


def test_more_control_points_leave_smaller_jumps(surface):
    X, y = surface
    few, many = (decomposed(n_control=n).fit(X, y) for n in (1, 6))
    assert np.mean(jumps(many)) < 0.3 * np.mean(jumps(few))
    assert jumps(many).max() < 0.02


def test_values_at_borders_weigh_cells_by_their_precision():
    """Two intervals, one control point: a precision-weighted mean."""
    rng = np.random.default_rng(0)
    X = rng.uniform(0, 10, (80, 1))
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=80)
    model = decomposed().fit(X, y)
    assert model.n_cells_ == (2,) and len(model.control_points_) == 1
    precision = [1 / cell.L_control[0, 0] ** 2 for cell in model.cells_]
    means = [cell.means[0, 0] for cell in model.cells_]
    expected = np.average(means, weights=precision)
    assert_allclose(model.control_values_[0, 0], expected, rtol=1e-8)
    assert_allclose(model._spread[0, 0], 1 / sum(precision), rtol=1e-8)


def test_it_learns_in_one_and_two_dimensions(surface, queries):
    mean, std = decomposed().fit(*surface).predict(queries, return_std=True)
    truth = np.sin(queries[:, 0]) * np.cos(queries[:, 1])
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.1
    assert np.mean(np.abs(mean - truth) < 2 * std) > 0.9


def test_an_empty_cell_and_queries_outside_are_answered(two_outputs):
    X, Y = two_outputs
    corner = (X[:, 0] > 0) & (X[:, 1] > 0)
    model = decomposed(cell_size=10).fit(X[~corner], Y[~corner])
    assert min(len(cell.A) for cell in model.cells_) == 0
    mean, std = model.predict([[2.0, 2.0], [50.0, -80.0]], return_std=True)
    assert mean.shape == std.shape == (2, 2)
    assert np.isfinite(mean).all() and (std > 0).all()


def test_threads_weights_and_copies_change_nothing(surface, queries):
    X, y = surface
    one, two = (decomposed(n_jobs=n).fit(X, y) for n in (1, 2))
    said = one.predict(queries)
    assert_array_equal(two.predict(queries), said)
    assert_array_equal(pickle.loads(pickle.dumps(one)).predict(queries), said)
    weighted = clone(one).fit(X, y, sample_weight=np.ones(len(X)))
    assert_allclose(weighted.predict(queries), said, rtol=1e-10)


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_do_not_matter(scale, surface, queries):
    X, y = surface
    machine = GP(kernel="rbf", length_scale=1.5 * scale, noise=0.02)
    model = DomainDecompositionGP(machine, cell_size=40)
    model.fit(X * scale + scale, y * scale)
    plain = decomposed().fit(X, y).predict(queries, return_std=True)
    said = model.predict(queries * scale + scale, return_std=True)
    for ours, theirs in zip(said, plain):
        assert_allclose(ours, theirs * scale, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"cell_size": 0}, "cell_size=0 must be an integer >= 1"),
        ({"n_control": 0}, "n_control=0 must be an integer >= 1"),
        ({"cell_size": 1, "n_control": 50}, "more than 5000"),
        ({"machine": TwinGP()}, "must be a GP whose hyperparameters"),
    ],
)
def test_bad_options_are_refused(options, message, surface):
    with pytest.raises(ValueError, match=message):
        clone(decomposed()).set_params(**options).fit(*surface)


def test_wide_inputs_are_refused_with_the_reason():
    with pytest.raises(ValueError, match=r"X has 3 features, but .* at most 2"):
        decomposed().fit(np.zeros((5, 3)), np.zeros(5))
