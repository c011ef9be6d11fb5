"""Mixtures and trees of GPs: one part is the full GP, and parts end at a jump."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal
from sklearn.gaussian_process.kernels import RBF

from overcover import GP, MixtureGP, TreeGP, TwinGP
from overcover.baselines.mixture import left_out_log_density
from overcover.baselines.tree import log_likelihood

FIXED = GP("rbf", length_scale=1.5, noise=0.02)
# One part, with options that could make more if they did anything.
ONE = {
    "mixture": MixtureGP(FIXED, expert_size=300),
    "soft mixture": MixtureGP(FIXED, expert_size=300, assignment="soft"),
    "tree": TreeGP(FIXED, leaf_size=300, random_state=0),
}
# Several parts.
MANY = {
    "mixture": MixtureGP(FIXED, expert_size=60, random_state=0),
    "soft mixture": MixtureGP(FIXED, expert_size=60, assignment="soft", random_state=0),
    "tree": TreeGP(FIXED, leaf_size=60, n_trees=2, random_state=0),
    "projections": TreeGP(
        FIXED, leaf_size=60, splits="projections", n_trees=1, random_state=0
    ),
}
each_one = pytest.mark.parametrize("model", ONE.values(), ids=ONE.keys())
each = pytest.mark.parametrize("model", MANY.values(), ids=MANY.keys())


def jump(X):
    """A smooth function, and a step where the first input is 0.3."""
    return np.sin(3.0 * X[:, 0]) + 3.0 * (X[:, 0] > 0.3)


@pytest.fixture(scope="module")
def step():
    """Rows on both sides of a jump, and queries: X, y, queries."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (200, 1))
    return X, jump(X) + 0.1 * rng.normal(size=200), rng.uniform(-2, 2, (500, 1))


def error(model, queries, truth):
    return np.sqrt(np.mean((model.predict(queries) - truth) ** 2))


@each_one
@pytest.mark.parametrize("is_weighted", [False, True])
def test_one_part_is_the_full_gp(model, is_weighted, two_outputs, queries):
    """In intervals and densities too: the same errors left out calibrate both."""
    X, Y = two_outputs
    weight = np.linspace(0.5, 2.0, len(X)) if is_weighted else None
    full = GP(**FIXED.get_params()).fit(X, Y, weight)
    model.fit(X, Y, weight)
    assert len(model.states_) == 1
    spread = Y.std(axis=0)
    mean, std = model.predict(queries, return_std=True)
    mean_full, std_full = full.predict(queries, return_std=True)
    assert_allclose(mean / spread, mean_full / spread, atol=1e-8)
    assert_allclose(std, std_full, rtol=1e-8)
    ends = zip(model.predict_interval(queries), full.predict_interval(queries))
    for ours, theirs in ends:
        assert_allclose(ours / spread, theirs / spread, atol=1e-8)


def test_one_part_is_the_full_gp_of_a_kernel_object(surface, queries):
    machine = GP(RBF(1.3, "fixed"), noise=0.02)
    expected = GP(**machine.get_params(deep=False)).fit(*surface).predict(queries)
    for model in (MixtureGP(machine, expert_size=300), TreeGP(machine)):
        assert_allclose(model.fit(*surface).predict(queries), expected, atol=1e-8)


@pytest.mark.parametrize(
    "model",
    [
        MixtureGP(GP("rbf", 0.7, 0.003), expert_size=100, random_state=0),
        TreeGP(GP("rbf", 0.7, 0.003), random_state=0),
        TreeGP(GP("rbf", 0.7, 0.003), splits="projections", random_state=0),
    ],
    ids=["mixture", "tree", "projections"],
)
def test_a_jump_is_a_border_and_not_a_wave(model, step):
    X, y, queries = step
    stationary = GP("rbf", 0.7, 0.003).fit(X, y)
    model.fit(X, y)
    assert len(model.states_) > 1
    truth = jump(queries)
    assert error(model, queries, truth) < 0.6 * error(stationary, queries, truth)
    away = np.abs(queries[:, 0] - 0.3) > 0.1
    ours, theirs = (error(m, queries[away], truth[away]) for m in (model, stationary))
    assert ours < 0.5 * theirs


@pytest.mark.parametrize("kind", [MixtureGP, TreeGP])
def test_parts_learn_their_own_hyperparameters(kind):
    """Waves on one side are short, on the other long."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (160, 1))
    y = np.where(X[:, 0] < 0, np.sin(40 * X[:, 0]), np.sin(3 * X[:, 0]))
    size = {"expert_size": 80} if kind is MixtureGP else {"leaf_size": 80}
    model = kind(GP("rbf", noise=1e-3, random_state=0), random_state=0, **size)
    model.fit(X, y)
    sides = {"short": [], "long": []}
    for state in model.states_:
        side = "short" if np.mean(state.X + state.center) < 0 else "long"
        sides[side].append(state.theta[0, 0])
    assert np.max(sides["short"]) < np.min(sides["long"]) - 0.5


def test_a_stationary_function_is_not_split(surface):
    assert len(TreeGP(FIXED, leaf_size=300, random_state=0).fit(*surface).states_) == 1


def test_leaves_are_no_larger_than_allowed_and_hold_every_row(surface):
    X, y = surface
    tree = TreeGP(FIXED, leaf_size=50, random_state=0).fit(X, y)
    for root in tree.trees_:
        leaves = root.leaves()
        assert max(len(leaf.rows) for leaf in leaves) <= 50
        rows = np.concatenate([leaf.rows for leaf in leaves])
        assert_array_equal(np.sort(rows), np.arange(300))
        numbers = root.leaf_numbers(X / tree.length_scales_)
        for number, leaf in enumerate(leaves):
            assert_array_equal(np.flatnonzero(numbers == number), leaf.rows)
    assert_allclose(tree.weights_.sum(), 1.0)
    assert (np.diff([root.evidence for root in tree.trees_]) <= 0).all()


def test_rounds_of_a_mixture_increase_the_density_of_rows_left_out(step):
    """By the definition: without rounds, the partition is kept."""
    X, y, queries = step
    options = {"expert_size": 100, "random_state": 0}
    before, after = (
        MixtureGP(GP("rbf", 0.7, 0.003), n_rounds=n, **options).fit(X, y)
        for n in (0, 5)
    )
    assert before.n_rounds_ == 0 < after.n_rounds_
    assert_array_equal(before.shares_.sum(axis=0), [100, 100])
    truth = jump(queries)
    assert error(after, queries, truth) < error(before, queries, truth)


def test_densities_of_rows_left_out_are_those_of_machines_without_them(rng):
    """Weights as in a soft mixture; the observation that is judged weighs one."""
    X, Y = rng.normal(size=(25, 2)), rng.normal(size=(25, 2))
    weights = rng.uniform(0.2, 1.0, 25)
    model = MixtureGP(FIXED).fit(X, Y, weights)
    state = model.states_[0]
    found = left_out_log_density(state, np.zeros(2))
    weights, scale = state.weights, np.exp(state.theta[0, 0])
    dist_sq = np.sum((X[:, None] - X) ** 2, axis=2) / scale**2
    K, noise = np.exp(-0.5 * dist_sq), np.exp(state.theta[0, -1])
    counts = np.minimum(weights, 1.0)
    amplitude = np.average(state.residuals_sq, axis=0, weights=counts)
    for i in range(25):
        rest = np.delete(np.arange(25), i)
        A = K[np.ix_(rest, rest)] + np.diag(noise / weights[rest])
        mean = np.average(Y[rest], axis=0, weights=weights[rest])
        solved = np.linalg.solve(A, np.column_stack([Y[rest] - mean, K[rest, i]]))
        errors = Y[i] - mean - K[i, rest] @ solved[:, :2]
        variance = amplitude * (1.0 + noise - K[i, rest] @ solved[:, 2])
        expected = -0.5 * np.sum(np.log(variance) + errors**2 / variance)
        assert_allclose(found[i], expected, rtol=1e-8)


def test_the_likelihood_of_a_node_is_that_of_a_gaussian(rng):
    """At the best amplitude, up to a constant for each row."""
    X, Y, theta = rng.normal(size=(30, 2)), rng.normal(size=(30, 1)), np.zeros(3)
    theta[-1] = np.log(0.1)
    value = log_likelihood("rbf", theta, X, Y, np.ones(30))
    A = np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=2)) + 0.1 * np.eye(30)
    y = Y[:, 0] - Y.mean()
    amplitude = y @ np.linalg.solve(A, y) / 30
    expected = multivariate_normal(cov=amplitude * A).logpdf(y)
    assert_allclose(value - 15 * (1 + np.log(2 * np.pi)), expected, rtol=1e-10)


@each
def test_many_parts_learn(model, surface, queries):
    mean, std = model.fit(*surface).predict(queries, return_std=True)
    assert len(model.states_) > 3
    truth = np.sin(queries[:, 0]) * np.cos(queries[:, 1])
    assert np.sqrt(np.mean((mean - truth) ** 2)) < 0.3 * truth.std()
    assert np.isfinite(std).all() and (std > 0).all()
    shares = model._shares(queries)
    assert_allclose(shares.sum(axis=1), 1.0)


@each
def test_many_outputs_have_shapes_of_their_own(model, two_outputs, queries):
    X, Y = two_outputs
    mean, std = model.fit(X, Y).predict(queries, return_std=True)
    assert mean.shape == std.shape == (40, 2)
    low, high = model.predict_interval(queries)
    assert ((low < mean) & (mean < high)).all()
    assert model.log_density(queries, mean).shape == (40, 2)


@each
def test_threads_change_nothing(model, surface, queries):
    one, two = (
        model.set_params(n_jobs=n).fit(*surface).predict(queries, return_std=True)
        for n in (1, 2)
    )
    assert_array_equal(one, two)


@pytest.mark.parametrize("model", ONE.values(), ids=ONE.keys())
def test_the_order_of_rows_does_not_matter_to_one_part(model, surface, queries, rng):
    X, y = surface
    order = rng.permutation(len(X))
    before = model.fit(X, y).predict(queries, return_std=True)
    after = model.fit(X[order], y[order]).predict(queries, return_std=True)
    assert_allclose(after, before, atol=1e-8)


def test_the_order_of_rows_does_not_matter_to_evidence(step, rng):
    X, y, queries = step
    order = rng.permutation(len(X))
    model = TreeGP(GP("rbf", 0.7, 0.003), leaf_size=200, random_state=0)
    before = model.fit(X, y).predict(queries, return_std=True)
    after = model.fit(X[order], y[order]).predict(queries, return_std=True)
    assert_allclose(after, before, rtol=1e-6, atol=1e-6)


@each
def test_units_do_not_matter(model, surface, queries):
    X, y = surface
    plain = model.fit(X, y).predict(queries, return_std=True)
    for scale in (1e-9, 1e9):
        machine = GP("rbf", length_scale=1.5 * scale, noise=0.02)
        other = type(model)(**model.get_params(deep=False) | {"machine": machine})
        other.fit(X * scale, y * scale)
        scaled = other.predict(queries * scale, return_std=True)
        assert_allclose(np.array(scaled) / scale, plain, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (MixtureGP(expert_size=0), "expert_size=0 must be an integer >= 1"),
        (MixtureGP(n_rounds=-1), "n_rounds=-1 must be an integer >= 0"),
        (MixtureGP(assignment="firm"), "assignment='firm' is not known"),
        (TreeGP(leaf_size=0), "leaf_size=0 must be an integer >= 1"),
        (TreeGP(n_trees=0), "n_trees=0 must be an integer >= 1"),
        (TreeGP(splits="curves"), "splits='curves' is not known"),
        (TreeGP(TwinGP()), "must be a GP whose hyperparameters"),
    ],
)
def test_bad_options_are_refused(model, message, surface):
    with pytest.raises(ValueError, match=message):
        model.fit(*surface)
