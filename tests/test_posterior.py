"""What a posterior says: covariances, samples, gradients, deviations without noise."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern, WhiteKernel
from sklearn.linear_model import Ridge

from overcover import GP, AnyRegressor, OverlappingCoverRegressor, TwinGP, load
from overcover.baselines import (
    CommitteeGP,
    DomainDecompositionGP,
    LocalProbabilisticRegression,
    MixtureGP,
    NeighborhoodRegressor,
    PatchworkGP,
    SparseGP,
    TreeGP,
)
from overcover.consult import consult, panel_of

FIXED = {"length_scale": [1.0, 1.5], "noise": 0.05}
KERNELS = {
    "rbf": RBF([1.0, 1.5]),
    "matern52": Matern([1.0, 1.5], nu=2.5),
    "matern32": Matern([1.0, 1.5], nu=1.5),
    "matern12": Matern([1.0, 1.5], nu=0.5),
}
OBJECT = RBF(1.0, "fixed") + WhiteKernel(0.1, "fixed")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (300, 2))
    Y = np.column_stack([np.sin(X[:, 0]) * X[:, 1], np.cos(X.sum(axis=1))])
    return X, Y + 0.2 * rng.normal(size=Y.shape)


@pytest.fixture(scope="module")
def queries():
    return np.random.default_rng(1).uniform(-3.5, 3.5, (30, 2))


@pytest.fixture(scope="module")
def cover(rows):
    machine = GP("matern52", **FIXED)
    model = OverlappingCoverRegressor(machine, subdomain_size=60, random_state=0)
    return model.fit(rows[0], rows[1][:, 0])


def full_gp(kernel, X, queries, row_noise, noise):
    """Posterior covariance on the kernel's scale, by the inverse of the textbook."""
    K_qx, A = kernel(queries, X), kernel(X) + np.diag(row_noise)
    return kernel(queries, queries) - K_qx @ np.linalg.inv(A) @ K_qx.T + noise


def correlation(C):
    std = np.sqrt(np.diag(C))
    return C / np.outer(std, std)


def differences(predict, queries, step=1e-5):
    """Central differences, shape (n_queries, n_features, ...)."""
    steps = step * np.eye(queries.shape[1])
    slopes = [(predict(queries + s) - predict(queries - s)) / (2 * step) for s in steps]
    return np.stack(slopes, axis=1)


# -- covariances -----------------------------------------------------------------------


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("kernel", KERNELS)
def test_correlations_of_a_machine_alone_are_those_of_the_full_gp(
    kernel, noise, rows, queries
):
    X, Y = rows
    weights = np.random.default_rng(2).uniform(0.5, 2.0, len(X))
    model = GP(kernel, **FIXED).fit(X, Y[:, 0], sample_weight=weights)
    row_noise = 0.05 / model.state_.weights
    own = 0.05 * np.eye(len(queries)) if noise else 0.0
    full = full_gp(KERNELS[kernel], X, queries, row_noise, own)
    _, cov = model.predict(queries, return_cov=True, noise=noise)
    assert_allclose(correlation(cov), correlation(full), atol=1e-8)


def test_covariances_are_those_of_the_full_gp_times_one_factor_of_calibration(rows):
    """Where no locality and no reach matter, calibration is one number."""
    X, Y = rows
    model = GP("rbf", **FIXED).fit(X, Y[:, 0])
    known = model.calibration_
    model.calibration_ = known._replace(locality=np.zeros(1, dtype=int))
    state = model.state_._replace(left_out=np.array([[1e-9, np.inf]]))
    model.state_ = state
    inside = np.random.default_rng(3).uniform(-1, 1, (20, 2))
    full = full_gp(KERNELS["rbf"], X, inside, np.full(300, 0.05), 0.0)
    _, cov = model.predict(inside, return_cov=True, noise=False)
    factor = known.factor[0] * state.residuals_sq_mean[0]
    assert_allclose(cov, factor * full, rtol=1e-8, atol=1e-10)


def test_white_noise_of_a_kernel_object_is_noise(rows, queries):
    X, Y = rows
    model = GP(OBJECT, noise=0.05).fit(X, Y[:, 0])
    full = full_gp(RBF(1.0), X, queries, np.full(300, 0.15), 0.0)
    _, std = model.predict(queries, return_std=True)
    _, std_of_function = model.predict(queries, return_std=True, noise=False)
    share = np.diag(full) / (np.diag(full) + 0.15)
    assert_allclose((std_of_function / std) ** 2, share, rtol=1e-7)
    _, cov = model.predict(queries, return_cov=True, noise=False)
    assert_allclose(correlation(cov), correlation(full), atol=1e-8)


@pytest.mark.parametrize("noise", [True, False])
@pytest.mark.parametrize("is_cover", [True, False])
def test_diagonals_are_squared_deviations_and_covariances_are_valid(
    is_cover, noise, rows, queries, cover
):
    X, Y = rows
    model = cover if is_cover else GP("matern32", **FIXED).fit(X, Y)
    queries = np.vstack([queries, queries[:5], X[:5]])
    mean, std = model.predict(queries, return_std=True, noise=noise)
    same_mean, cov = model.predict(queries, return_cov=True, noise=noise)
    assert_allclose(same_mean, mean, atol=1e-12)
    matrices = [cov] if cov.ndim == 2 else list(np.moveaxis(cov, -1, 0))
    for matrix, column in zip(matrices, std.reshape(len(std), -1).T):
        assert_allclose(np.diag(matrix), column**2, rtol=1e-12)
        assert_allclose(matrix, matrix.T, atol=1e-15)
        assert np.linalg.eigvalsh(matrix).min() > -1e-12 * column.max() ** 2


def test_shapes_are_those_of_scikit_learn(rows, queries):
    X, Y = rows
    theirs = GaussianProcessRegressor(optimizer=None, alpha=0.05)
    for y in (Y[:, 0], Y):
        ours, reference = GP(**FIXED).fit(X, y), theirs.fit(X, y)
        for name in ("return_std", "return_cov"):
            pairs = zip(
                *(m.predict(queries, **{name: True}) for m in (ours, reference))
            )
            assert all(a.shape == b.shape for a, b in pairs)
        shapes = [m.sample_y(queries, 3).shape for m in (ours, reference)]
        assert shapes[0] == shapes[1]


def test_a_cover_of_one_subdomain_says_what_the_machine_alone_says(rows, queries):
    X, Y = rows
    alone = GP("matern32", **FIXED).fit(X, Y)
    whole = OverlappingCoverRegressor(GP("matern32", **FIXED), subdomain_size=300)
    whole.fit(X, Y)
    for options in ({"return_cov": True}, {"return_std": True, "noise": False}):
        ours, theirs = (m.predict(queries, **options)[1] for m in (whole, alone))
        assert_allclose(ours, theirs, rtol=1e-7, atol=1e-10)
    assert_allclose(whole.gradient(queries), alone.gradient(queries), atol=1e-9)


@pytest.mark.parametrize("combine", ["certainty", "precision", "nearest"])
def test_covariances_of_a_cover_follow_their_formula(combine, rows, queries, cover):
    model = OverlappingCoverRegressor(
        cover.machine, subdomain_size=60, n_consulted=2, combine=combine, random_state=0
    ).fit(rows[0], rows[1][:, 0])
    found = consult(panel_of(model), queries, True)
    mean = model.predict(queries)
    slow = np.zeros((len(queries), len(queries)))
    for k in range(model.n_subdomains_):
        which = found.route.subdomains == k
        root = np.sqrt(np.where(which, found.weights[..., 0], 0.0).sum(axis=1))
        answer = model.machine_.answer(model.states_[k], queries, variance=True)
        std = np.sqrt(answer.variance[:, 0])
        C = model.machine_.correlations(model.states_[k], queries)[0]
        d = answer.mean[:, 0] - mean
        slow += np.outer(root, root) * (C * np.outer(std, std) + np.outer(d, d))
    _, cov = model.predict(queries, return_cov=True)
    assert_allclose(cov, slow, rtol=1e-6, atol=1e-9)


def test_factors_in_memory_do_not_matter(tmp_path, rows, queries, cover):
    _, expected = cover.predict(queries, return_cov=True)
    cover.save(tmp_path / "model")
    loaded = load(tmp_path / "model")
    assert_array_equal(loaded.predict(queries, return_cov=True)[1], expected)
    assert_array_equal(loaded.gradient(queries), cover.gradient(queries))
    options = {"keep_factors": False, "factor_dtype": "float64"}
    machine = GP("matern52", **FIXED, **options)
    other = OverlappingCoverRegressor(machine, subdomain_size=60, random_state=0)
    other.fit(rows[0], rows[1][:, 0])
    assert_allclose(other.predict(queries, return_cov=True)[1], expected, rtol=0.01)


def test_answers_do_not_depend_on_threads(rows, queries, cover):
    many = OverlappingCoverRegressor(**cover.get_params(deep=False)).set_params(
        n_jobs=2
    )
    many.fit(rows[0], rows[1][:, 0])
    for one, other in zip(
        cover.predict(queries, return_cov=True), many.predict(queries, return_cov=True)
    ):
        assert_array_equal(one, other)
    assert_array_equal(cover.gradient(queries), many.gradient(queries))
    assert_array_equal(cover.sample_y(queries, 2), many.sample_y(queries, 2))


def test_neighbouring_queries_hang_together(cover):
    """What covariances are for: the function at two close places is nearly one."""
    X = np.random.default_rng(5).uniform(-2.5, 2.5, (40, 2))
    pairs = np.vstack([X, X + 0.05])
    _, cov = cover.predict(pairs, return_cov=True, noise=False)
    correlations = correlation(cov)[np.arange(40), np.arange(40, 80)]
    assert np.median(correlations) > 0.95
    assert np.mean(correlations > 0.5) >= 0.9


# -- deviations without noise ----------------------------------------------------------


def test_the_function_is_more_certain_than_an_observation_by_the_noise(rows, queries):
    X, Y = rows
    model = GP("matern32", **FIXED).fit(X, Y)
    full = full_gp(KERNELS["matern32"], X, queries, np.full(300, 0.05), 0.0)
    _, std = model.predict(queries, return_std=True)
    _, std_of_function = model.predict(queries, return_std=True, noise=False)
    share = np.diag(full) / (np.diag(full) + 0.05)
    for j in range(2):
        assert_allclose((std_of_function / std)[:, j] ** 2, share, rtol=1e-7)


@pytest.mark.parametrize(
    "model",
    [
        NeighborhoodRegressor(GP(**FIXED), n_neighbors=50),
        SparseGP(GP(**FIXED), n_inducing=20),
        CommitteeGP(GP(**FIXED), expert_size=60),
        DomainDecompositionGP(GP(**FIXED), cell_size=100),
        PatchworkGP(GP(**FIXED), cell_size=100),
        MixtureGP(GP(**FIXED), expert_size=100),
        TreeGP(GP(**FIXED), leaf_size=100),
        LocalProbabilisticRegression(GP(**FIXED), n_neighbors=50),
    ],
    ids=lambda model: type(model).__name__,
)
def test_baselines_tell_the_noise_apart_and_have_no_covariances(model, rows, queries):
    X, Y = rows
    model.fit(X, Y[:, 0])
    _, std = model.predict(queries, return_std=True)
    _, std_of_function = model.predict(queries, return_std=True, noise=False)
    noise = std**2 - std_of_function**2
    assert (noise > 0).all()
    if hasattr(model, "amplitude_sq_"):
        assert_allclose(noise, 0.05 * model.amplitude_sq_[0], rtol=1e-6)
    with pytest.raises(ValueError, match=r"gives no covariances. Use return_std"):
        model.predict(queries, return_cov=True)


def test_other_machines_say_that_they_cannot(rows, queries):
    X, Y = rows
    twin = TwinGP(1.0, 1.0, input_noise=0.1, output_noise=0.1).fit(X[:50], Y[:50])
    ridge = OverlappingCoverRegressor(AnyRegressor(Ridge())).fit(X, Y)
    for model in (twin, ridge):
        for ask in (model.gradient, model.sample_y):
            with pytest.raises(ValueError, match="Use GP"):
                ask(queries)
    with pytest.raises(ValueError, match="no variances without noise: only Gaussian"):
        twin.predict(queries, return_std=True, noise=False)
    with pytest.raises(ValueError, match=r"both True. Give one"):
        twin.predict(queries, return_std=True, return_cov=True)


# -- samples ---------------------------------------------------------------------------


def test_samples_have_the_means_and_covariances_of_predictions(queries, cover):
    few = queries[:6]
    samples = cover.sample_y(few, 20_000, random_state=1)
    mean, cov = cover.predict(few, return_cov=True)
    std = np.sqrt(np.diag(cov))
    assert_allclose(samples.mean(axis=1), mean, atol=0.03 * std.max())
    assert_allclose(np.cov(samples) / np.outer(std, std), correlation(cov), atol=0.04)


def test_functions_are_drawn_at_equal_queries_without_a_warning(queries, cover):
    twice = np.vstack([queries, queries, queries + 1e-9])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        one, other, near = np.split(cover.sample_y(twice, 4, noise=False), 3)
    assert_allclose(one, other, atol=1e-3)
    assert_allclose(one, near, atol=1e-3)
    assert np.ptp(one, axis=1).min() > 1e-3


def test_samples_are_those_of_their_random_state(queries, cover):
    one, same, other = (cover.sample_y(queries, 2, random_state=r) for r in (0, 0, 1))
    assert_array_equal(one, same)
    assert (one != other).all()
    with pytest.raises(ValueError, match="n_samples=0 must be an integer >= 1"):
        cover.sample_y(queries, 0)


# -- gradients -------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", [*KERNELS, OBJECT], ids=str)
def test_gradients_are_those_of_differences(kernel, rows, queries):
    X, Y = rows
    options = {"noise": 0.05} if kernel is OBJECT else FIXED
    model = GP(kernel, **options).fit(X, Y)
    gradient = model.gradient(queries)
    assert gradient.shape == (30, 2, 2)
    assert_allclose(gradient, differences(model.predict, queries), atol=1e-6)


def test_each_output_has_the_gradient_of_its_own_kernel(rows, queries):
    X, Y = rows
    model = GP("rbf", per_output=True, random_state=0).fit(X[:80], Y[:80])
    slopes = differences(model.predict, queries)
    assert_allclose(model.gradient(queries), slopes, atol=1e-5)


def test_at_a_row_a_peak_has_the_mean_of_its_slopes(rows):
    X, Y = rows
    model = GP("matern12", **FIXED).fit(X, Y[:, 0])
    slopes = differences(model.predict, X[:20], step=1e-6)
    assert_allclose(model.gradient(X[:20]), slopes, atol=1e-4)


def test_the_gradient_of_a_cover_weighs_those_of_its_subdomains(queries, cover):
    found = consult(panel_of(cover), queries, False)
    slow = np.zeros(queries.shape)
    for i, query in enumerate(queries):
        for k, a in zip(found.route.subdomains[i], found.weights[i, :, 0]):
            if k >= 0:

                def mean_of_one(X, state=cover.states_[k]):
                    return cover.machine_.answer(state, X).mean[:, 0]

                slow[i] += a * differences(mean_of_one, query[None])[0]
    assert_allclose(cover.gradient(queries), slow, atol=1e-6)


def test_a_column_that_does_not_vary_has_no_slope(rows):
    X = np.column_stack([rows[0], np.ones(300)])
    model = GP("matern32", random_state=0).fit(X[:60], rows[1][:60, 0])
    assert_array_equal(model.gradient(X[:5])[:, 2], 0.0)
