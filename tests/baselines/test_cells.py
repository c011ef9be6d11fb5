"""GPs on cells: one cell is the full GP, and borders are agreed upon."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from overcover import GP, DomainDecompositionGP, PatchworkGP, TwinGP

MACHINE = GP(kernel="rbf", length_scale=1.5, noise=0.02)
METHODS = [
    DomainDecompositionGP(MACHINE, cell_size=40),
    # More control points would make its shifts huge.
    DomainDecompositionGP(MACHINE, cell_size=40, n_control=1, extension="cosine"),
    PatchworkGP(MACHINE, cell_size=40),
]
each_method = pytest.mark.parametrize("method", METHODS, ids=repr)


def but(method, **options):
    """The method with other options."""
    return clone(method).set_params(**options)


def said_by(model, j, points):
    """Mean and variance of cell j at any points."""
    return model._answer(j, *model._in_units(points, model._grid.low))


def gaussian(P, Q):
    return np.exp(-0.5 * np.sum((P[:, None] - Q[None]) ** 2, axis=2) / 1.5**2)


@each_method
def test_one_cell_is_the_full_gp(method, surface, queries):
    X, y = surface
    model = but(method, cell_size=300).fit(X, y)
    assert model.n_cells_ == (1, 1) and not len(model.control_points_)
    mean, std = model.predict(queries, return_std=True)
    A, K_xq = gaussian(X, X) + 0.02 * np.eye(len(X)), gaussian(X, queries)
    centred = y - y.mean()
    assert_allclose(mean, y.mean() + K_xq.T @ np.linalg.solve(A, centred), atol=1e-8)
    amplitude_sq = centred @ np.linalg.solve(A, centred) / len(X)
    variance = 1.02 - np.sum(K_xq * np.linalg.solve(A, K_xq), axis=0)
    assert_allclose(std**2, amplitude_sq * variance, rtol=1e-8)


@each_method
def test_cells_agree_at_their_control_points(method, two_outputs):
    model = clone(method).fit(*two_outputs)
    assert len(model.cells_) > 4
    counts = np.zeros(len(model.control_points_), dtype=int)
    for j, cell in enumerate(model.cells_):
        mean, _ = said_by(model, j, model.control_points_[cell.control])
        # Relative to outputs of scale 1 and of scale 50.
        differences = (mean - model.control_values_[cell.control]) / [1.0, 50.0]
        assert np.abs(differences).max() < 1e-8
        counts[cell.control] += 1
    assert (counts == 2).all()


def jumps(model):
    """Differences across borders, away from control points too."""
    X = np.linspace(-2.9, 2.9, 41)
    differences = []
    for axis, count in enumerate(model.n_cells_):
        for i in range(1, count):
            border = model._grid.low[axis] + i / count * model._grid.width[axis]
            sides = []
            for nudge in (-1e-9, 1e-9):
                points = np.column_stack([X, X])
                points[:, axis] = border + nudge
                sides.append(model.predict(points))
            differences.append(np.abs(sides[0] - sides[1]))
    return np.concatenate(differences)


@pytest.mark.parametrize("class_", [DomainDecompositionGP, PatchworkGP])
def test_more_control_points_leave_smaller_jumps(class_, surface):
    X, y = surface
    few, many = (class_(MACHINE, cell_size=40, n_control=n).fit(X, y) for n in (1, 6))
    assert np.mean(jumps(many)) < 0.3 * np.mean(jumps(few))
    assert jumps(many).max() < 0.05  # the noise


@pytest.mark.parametrize("class_", [DomainDecompositionGP, PatchworkGP])
def test_the_full_gp_is_near(class_, surface, queries, rng):
    """In one and two dimensions; the noise of both problems is 0.05."""
    X = rng.uniform(0, 10, (300, 1))
    line = X, np.sin(X[:, 0]) + 0.05 * rng.normal(size=300)
    for (X, y), Q in ((surface, queries), (line, rng.uniform(0, 10, (100, 1)))):
        full = clone(MACHINE).fit(X, y).predict(Q)
        model = class_(MACHINE, cell_size=60).fit(X, y)
        assert np.prod(model.n_cells_) >= 4
        assert np.sqrt(np.mean((model.predict(Q) - full) ** 2)) < 0.025


@each_method
def test_it_learns(method, surface, queries):
    mean, std = clone(method).fit(*surface).predict(queries, return_std=True)
    truth = np.sin(queries[:, 0]) * np.cos(queries[:, 1])
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.1
    assert np.mean(np.abs(mean - truth) < 2 * std) > 0.9


@each_method
def test_an_empty_cell_and_queries_outside_are_answered(method, two_outputs):
    X, Y = two_outputs
    corner = (X[:, 0] > 0) & (X[:, 1] > 0)
    model = but(method, cell_size=10).fit(X[~corner], Y[~corner])
    assert min(len(cell.A) for cell in model.cells_) == 0
    mean, std = model.predict([[2.0, 2.0], [50.0, -80.0]], return_std=True)
    assert mean.shape == std.shape == (2, 2)
    assert np.isfinite(mean).all() and (std > 0).all()


@each_method
def test_threads_weights_and_copies_change_nothing(method, surface, queries):
    X, y = surface
    one, two = (but(method, n_jobs=n).fit(X, y) for n in (1, 2))
    said = one.predict(queries)
    assert_array_equal(two.predict(queries), said)
    assert_array_equal(pickle.loads(pickle.dumps(one)).predict(queries), said)
    weighted = clone(one).fit(X, y, sample_weight=np.ones(len(X)))
    assert_allclose(weighted.predict(queries), said, rtol=1e-10)


@each_method
@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_units_do_not_matter(scale, method, surface, queries):
    X, y = surface
    model = but(method, machine__length_scale=1.5 * scale)
    model.fit(X * scale + scale, y * scale)
    plain = clone(method).fit(X, y).predict(queries, return_std=True)
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
@each_method
def test_bad_options_are_refused(options, message, method, surface):
    with pytest.raises(ValueError, match=message):
        but(method, **options).fit(*surface)


@each_method
def test_wide_inputs_are_refused_with_the_reason(method):
    with pytest.raises(ValueError, match=r"X has 3 features, but .* at most 2"):
        clone(method).fit(np.zeros((5, 3)), np.zeros(5))
