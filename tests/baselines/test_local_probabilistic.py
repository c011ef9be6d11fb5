"""Local probabilistic regression: one mode is the NN scheme, several are kept apart."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from overcover import GP, LocalProbabilisticRegression, NeighborhoodRegressor, TwinGP
from overcover.baselines.local_probabilistic import clusters_in

FIXED = GP("rbf", length_scale=1.5, noise=0.02)


def s_curve(y):
    """Three outputs for every input in the middle."""
    return y + 0.3 * np.sin(2 * np.pi * y)


@pytest.fixture(scope="module")
def ambiguous():
    """Rows of the curve, and queries where three outputs are possible."""
    rng = np.random.default_rng(0)
    y = rng.uniform(0, 1, 300)
    X = (s_curve(y) + 0.01 * rng.normal(size=300))[:, None]
    return X, y, np.linspace(0.35, 0.65, 40)[:, None]


def off_curve(X, y):
    """How far away the input is at which the curve has these outputs."""
    return np.abs(s_curve(y) - X[:, 0])


@pytest.mark.parametrize("is_weighted", [False, True])
def test_one_mode_of_all_rows_is_the_full_gp(is_weighted, two_outputs, queries):
    """In the mean; the std has the amplitude of textbooks and is not calibrated, which
    is that of the NN scheme."""
    X, Y = two_outputs
    weight = np.linspace(0.5, 2.0, len(X)) if is_weighted else None
    model = LocalProbabilisticRegression(FIXED, 10**6, n_modes=1).fit(X, Y, weight)
    mean, std = model.predict(queries, return_std=True)
    full = GP(**FIXED.get_params()).fit(X, Y, weight).predict(queries)
    spread = Y.std(axis=0)
    assert_allclose(mean / spread, full / spread, atol=1e-8)
    nearest = NeighborhoodRegressor(FIXED, 10**6).fit(X, Y, weight)
    assert_allclose(std, nearest.predict(queries, return_std=True)[1], rtol=1e-8)


@pytest.mark.parametrize("noise", [True, False])
def test_one_mode_is_the_nn_scheme(noise, two_outputs, queries):
    X, Y = two_outputs
    models = (
        LocalProbabilisticRegression(FIXED, 50, n_modes=1),
        NeighborhoodRegressor(FIXED, 50),
    )
    ours, theirs = (
        m.fit(X, Y).predict(queries, return_std=True, noise=noise) for m in models
    )
    assert_allclose(ours[0], theirs[0], rtol=1e-8, atol=1e-8)
    assert_allclose(ours[1], theirs[1], rtol=1e-6)


def test_a_branch_is_predicted_where_a_gp_predicts_their_mean(ambiguous):
    X, y, queries = ambiguous
    machine = GP("rbf", length_scale=0.1, noise=0.05)
    mean = LocalProbabilisticRegression(machine, 50).fit(X, y).predict(queries)
    average = GP("rbf", length_scale=0.1, noise=0.05).fit(X, y).predict(queries)
    # The middle branch falls; a GP that averages rises, and meets it once.
    assert np.mean(off_curve(queries, mean) < 0.06) > 0.9
    assert np.mean(off_curve(queries, average) < 0.06) < 0.6


def test_the_std_is_that_of_the_mode(ambiguous):
    X, y, queries = ambiguous
    machine = GP("rbf", length_scale=0.1, noise=0.05)
    modes, one = (
        LocalProbabilisticRegression(machine, 50, n_modes=n)
        .fit(X, y)
        .predict(queries, return_std=True)[1]
        for n in (3, 1)
    )
    assert np.median(modes) < 0.5 * np.median(one)


def test_two_outputs_share_their_modes(rng):
    """All outputs are of one mode: never one of the first, one of the second."""
    X = rng.uniform(0, 1, (120, 1))
    side = np.where(np.arange(120) % 3 == 0, -1.0, 1.0)
    Y = side[:, None] * [1.0, -200.0] + 0.01 * rng.normal(size=(120, 2))
    model = LocalProbabilisticRegression(GP(length_scale=0.5, noise=0.1), 60).fit(X, Y)
    mean = model.predict(np.linspace(0.1, 0.9, 20)[:, None])
    assert_allclose(mean, np.tile([1.0, -200.0], (20, 1)), rtol=0.05)


def test_a_cloud_of_noise_is_one_mode(rng):
    X, y = rng.uniform(0, 1, (400, 1)), rng.normal(size=400)
    machine, queries = GP(length_scale=0.5, noise=1.0), np.linspace(0, 1, 50)[:, None]
    three, one = (
        LocalProbabilisticRegression(machine, 100, n_modes=n).fit(X, y).predict(queries)
        for n in (3, 1)
    )
    assert_array_equal(three, one)


def test_a_steep_function_is_one_mode(rng):
    """Its outputs differ as much as those of branches, but inputs explain them."""
    X = rng.uniform(0, 1, (400, 1))
    y = np.tanh(8.0 * (X[:, 0] - 0.5)) + 0.02 * rng.normal(size=400)
    machine, queries = GP("rbf", 0.15, 1e-3), np.linspace(0.1, 0.9, 40)[:, None]
    mean = LocalProbabilisticRegression(machine, 100).fit(X, y).predict(queries)
    assert_allclose(mean, np.tanh(8.0 * (queries[:, 0] - 0.5)), atol=0.05)


def test_clusters_are_those_of_outputs_apart(rng):
    truth = rng.integers(0, 3, 60)
    Y = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 5.0]])[truth] + rng.normal(size=(60, 2))
    labels = clusters_in(Y * [1.0, 1.0], 3)
    pairs = {(a, b) for a, b in zip(truth, labels)}
    assert len(pairs) <= 5 and len(set(labels)) == 3


def test_equal_outputs_are_one_mode(queries):
    X = np.random.default_rng(0).normal(size=(50, 2))
    mean, std = (
        LocalProbabilisticRegression(FIXED, 30)
        .fit(X, np.full(50, 3.0))
        .predict(queries, return_std=True)
    )
    assert_allclose(mean, 3.0)
    assert np.isfinite(std).all()


def test_threads_and_the_order_of_rows_change_nothing(ambiguous, rng):
    X, y, queries = ambiguous
    machine = GP("rbf", length_scale=0.1, noise=0.05)
    one, two = (
        LocalProbabilisticRegression(machine, 50, n_jobs=n)
        .fit(X, y)
        .predict(queries, return_std=True)
        for n in (1, 2)
    )
    assert_array_equal(one, two)
    order = rng.permutation(len(X))
    model = LocalProbabilisticRegression(machine, 50).fit(X[order], y[order])
    assert_allclose(model.predict(queries, return_std=True), one, atol=1e-8)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 must be an integer >= 1"),
        ({"n_modes": 0}, "n_modes=0 must be an integer >= 1"),
        ({"machine": TwinGP()}, "must be a GP whose hyperparameters"),
    ],
)
def test_bad_options_are_refused(options, message, surface):
    with pytest.raises(ValueError, match=message):
        LocalProbabilisticRegression(**options).fit(*surface)
