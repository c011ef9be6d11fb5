"""Domain decomposition: Lagrange multipliers solve the constrained problems."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone

from overcover import GP, DomainDecompositionGP

NOISE = 0.02
MACHINE = GP(kernel="rbf", length_scale=1.5, noise=NOISE)


def gaussian(P, Q):
    return np.exp(-0.5 * np.sum((P[:, None] - Q[None]) ** 2, axis=2) / 1.5**2)


def minimise(H, g, C, d):
    """The u of least ``u^T H u - 2 g^T u`` with ``C u = d``: a dense KKT system."""
    zeros = np.zeros((len(C), len(C)))
    system = np.block([[2.0 * H, C.T], [C, zeros]])
    return np.linalg.solve(system, np.concatenate([2.0 * g, d]))[: len(g)]


class Part:
    """One cell in full: its rows, its control points, and the plain matrices."""

    def __init__(self, model, X, y, j):
        here = model._grid.cell_of(X) == j
        self.X, self.y = X[here], y[here] - y.mean()
        self.A = gaussian(self.X, self.X) + NOISE * np.eye(len(self.X))
        _, sides = model._grid.control_points(model.n_control)
        self.control = np.flatnonzero((sides == j).any(axis=1))
        self.B = model.control_points_[self.control]


@pytest.fixture
def line(rng):
    """Three cells of a line."""
    X = rng.uniform(0, 10, (45, 1))
    return X, np.sin(X[:, 0]) + 0.1 * rng.normal(size=45)


@pytest.fixture
def plane(rng):
    """Two by two cells of few rows."""
    X = rng.uniform(-3, 3, (60, 2))
    return X, np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=60)


@pytest.fixture(params=["line", "plane"])
def problem(request):
    X, y = request.getfixturevalue(request.param)
    model = DomainDecompositionGP(MACHINE, cell_size=15, n_control=2).fit(X, y)
    n_cells = int(np.prod(model.n_cells_))
    assert n_cells in (3, 4)
    return model, X, y, [Part(model, X, y, j) for j in range(n_cells)]


def test_values_at_borders_make_the_errors_of_both_cells_least(problem):
    """Both cells' weights as one unknown, with equal predictions as the constraint."""
    model, _, _, parts = problem
    _, sides = model._grid.control_points(model.n_control)
    for b, pair, value in zip(model.control_points_, sides, model.control_values_):
        left, right = (parts[j] for j in pair)
        n = len(left.X)
        H = np.zeros((n + len(right.X),) * 2)
        H[:n, :n], H[n:, n:] = left.A, right.A
        g = np.vstack([gaussian(part.X, b[None]) for part in (left, right)])[:, 0]
        equal = np.concatenate([left.y, -right.y])[None]
        u = minimise(H, g, equal, np.zeros(1))
        assert_allclose(u[:n] @ left.y, u[n:] @ right.y, atol=1e-10)
        assert_allclose(value[0], u[:n] @ left.y, atol=1e-8)


def test_queries_solve_the_constrained_problem_with_the_control_points(problem, rng):
    """Errors at a query and at the control points, measured by their covariance."""
    model, X, y, parts = problem
    Q = rng.uniform(X.min(axis=0), X.max(axis=0), (12, X.shape[1]))
    mean, std = model.predict(Q, return_std=True)
    for q, j, mu, s in zip(Q, model._grid.cell_of(Q), mean, std):
        part = parts[j]
        n, points = len(part.X), np.vstack([q[None], part.B])
        K = gaussian(part.X, points)
        C = gaussian(points, points) - K.T @ np.linalg.solve(part.A, K)
        metric = np.linalg.inv(C)
        # Unknowns: the weights for the query, then those for every control point.
        H = np.kron(metric, part.A)
        g = (K @ metric).T.ravel()
        constraints = np.kron(np.eye(len(points))[1:], part.y)
        u = minimise(H, g, constraints, model.control_values_[part.control, 0])[:n]
        assert_allclose(mu, y.mean() + u @ part.y, atol=1e-6)
        error = 1.0 + NOISE + u @ (part.A @ u) - 2.0 * u @ K[:, 0]
        assert_allclose(s**2 / model.amplitude_sq_[0], error, atol=1e-6)


def test_cosines_extend_the_multipliers_of_the_control_points(problem, rng):
    model, X, y, parts = problem
    model = clone(model).set_params(extension="cosine").fit(X, y)
    Q = rng.uniform(X.min(axis=0), X.max(axis=0), (12, X.shape[1]))
    mean, std = model.predict(Q, return_std=True)
    for q, j, mu, s in zip(Q, model._grid.cell_of(Q), mean, std):
        part = parts[j]
        k, K_B = gaussian(part.X, q[None])[:, 0], gaussian(part.X, part.B)
        h = np.linalg.solve(part.A, part.y)
        units = K_B / np.linalg.norm(K_B, axis=0)
        wanted = model.control_values_[part.control, 0] - K_B.T @ h
        cosines = units.T @ k / np.linalg.norm(k)
        shift = cosines @ np.linalg.solve(units.T @ units, wanted)
        # The u of least error that predicts this much more.
        u = minimise(part.A, k, part.y[None], np.array([k @ h + shift]))
        assert_allclose(mu, y.mean() + u @ part.y, atol=1e-6)
        error = 1.0 + NOISE + u @ (part.A @ u) - 2.0 * u @ k
        assert_allclose(s**2 / model.amplitude_sq_[0], error, atol=1e-6)


def test_shifts_by_cosines_are_huge_with_many_control_points(surface, queries):
    X, y = surface
    full = clone(MACHINE).fit(X, y).predict(queries)
    posterior, cosine = (
        DomainDecompositionGP(MACHINE, cell_size=60, extension=name).fit(X, y)
        for name in ("posterior", "cosine")
    )
    near, far = (
        np.sqrt(np.mean((model.predict(queries) - full) ** 2))
        for model in (posterior, cosine)
    )
    assert near < 0.05 and far > 1.0


@pytest.mark.parametrize("extension", ["posterior", "cosine"])
def test_the_neighbour_decides_where_a_cell_has_no_rows(extension, rng):
    X = np.concatenate([rng.uniform(0, 3, (20, 1)), [[9.0]]])
    y = np.sin(X[:, 0])
    model = DomainDecompositionGP(MACHINE, cell_size=7, extension=extension).fit(X, y)
    assert [len(cell.A) for cell in model.cells_] == [20, 0, 1]
    assert_allclose(model.control_values_[0], model.cells_[0].means[0], rtol=1e-10)
    b = model.control_points_[0]
    left, right = model.predict([b - 1e-7, b + 1e-7])
    assert_allclose(left, right, atol=1e-5)


def test_constant_outputs_stay_constant(rng):
    X = rng.uniform(0, 10, (40, 1))
    mean, std = (
        DomainDecompositionGP(MACHINE, cell_size=10)
        .fit(X, np.full(40, 7.0))
        .predict(X, return_std=True)
    )
    assert_allclose(mean, 7.0) and np.isfinite(std).all()


def test_rows_that_occur_twice_count_in_cosines_as_rows_of_weight_two(line):
    X, y = line
    twice = np.arange(45) % 3 == 0
    model = DomainDecompositionGP(MACHINE, cell_size=15, extension="cosine")
    weighted = clone(model).fit(X, y, sample_weight=1.0 + twice)
    rows = np.concatenate([np.arange(45), np.flatnonzero(twice)])
    model.fit(X[rows], y[rows])
    assert model.n_cells_ == weighted.n_cells_
    Q = np.linspace(0.1, 9.9, 30)[:, None]
    assert_allclose(weighted.predict(Q), model.predict(Q), rtol=1e-6)


def test_an_unknown_extension_is_refused(line):
    with pytest.raises(ValueError, match="extension='prior'"):
        DomainDecompositionGP(MACHINE, extension="prior").fit(*line)


def test_two_cells_agree_at_their_control_points(problem):
    """From either side, and by prediction: to 1e-8."""
    model, _, y, _ = problem
    _, sides = model._grid.control_points(model.n_control)
    kernel, B = model._in_units(model.control_points_, model._grid.low)
    for b, pair, value in zip(B, sides, model.control_values_):
        for j in pair:
            assert_allclose(model._answer(j, kernel, b[None])[0][0], value, atol=1e-8)
    at_points = model.predict(model.control_points_)
    assert_allclose(at_points, y.mean() + model.control_values_[:, 0], atol=1e-8)


@pytest.mark.parametrize("n_features", [1, 2])
def test_equal_borders_bring_separate_cells_closer_to_the_full_gp(n_features, rng):
    """A draw from the prior: less than twice the squared error of the full GP."""
    X, Q = rng.uniform(0, 12 / n_features, (2, 400, n_features))
    waves = rng.normal(size=(n_features, 500)) / 1.5
    phases, amplitudes = rng.uniform(0, 2 * np.pi, 500), rng.normal(size=500)

    def function(P):
        return np.cos(P @ waves + phases) @ amplitudes * np.sqrt(2 / 500)

    y, truth = function(X) + np.sqrt(NOISE) * rng.normal(size=400), function(Q)
    model = DomainDecompositionGP(MACHINE, cell_size=100).fit(X, y)
    own, asked = model._grid.cell_of(X), model._grid.cell_of(Q)
    separate = np.empty(400)
    for j in range(4):
        alone = clone(MACHINE).fit(X[own == j], y[own == j])
        separate[asked == j] = alone.predict(Q[asked == j])
    predictions = clone(MACHINE).fit(X, y).predict(Q), model.predict(Q), separate
    full, tied, apart = (np.mean((mean - truth) ** 2) for mean in predictions)
    assert full < tied < 2 * full and tied < apart
