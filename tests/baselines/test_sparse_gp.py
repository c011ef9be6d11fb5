"""Sparse GPs agree with their definitions, and with the full GP where they must."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import norm
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.gaussian_process.kernels import RBF, DotProduct, WhiteKernel

from overcover import GP, TwinGP
from overcover._weights import in_typical_units
from overcover.baselines import _sparse
from overcover.baselines.sparse_gp import METHODS, SparseGP
from reference import DenseGP, kernel_matrix

SCALES, NOISE = np.array([1.0, 2.0, 0.5]), 0.01
# What is added to the diagonal of K_mm, over the noise, is 1e-8.
CLOSE = {"rtol": 1e-6, "atol": 1e-6}


class Stripes(BaseEstimator):
    """A clusterer with a will of its own: stripes along the first column."""

    def __init__(self, edges=()):
        self.edges = edges

    def fit_predict(self, X):
        return np.searchsorted(self.edges, X[:, 0])


STRIPES = Stripes((-0.5, 0.5))


def gp(**options):
    return GP(**{"length_scale": SCALES, "noise": NOISE, **options})


def sparse(method="fic", **options):
    options = {"n_inducing": 12, "partition": STRIPES, "random_state": 0, **options}
    return SparseGP(options.pop("machine", gp()), method=method, **options)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = np.column_stack([np.sin(2 * X[:, 0]), 5 + X[:, 1] * X[:, 2]])
    return X, Y + 0.05 * rng.normal(size=Y.shape), rng.normal(size=(15, 3))


def answers(model, queries):
    return model.predict(queries), model.predict_variance(queries)


def n_counted(weights):
    """A light row counts as its weight, a heavy one as one observation."""
    return np.minimum(weights, 1.0).sum()


def full_gp(X, Y, queries, weights=None, name="matern32", scales=SCALES, noise=NOISE):
    """The full GP with the amplitude of its marginal likelihood."""
    dense = DenseGP(name, scales, noise, weights).fit(X, Y)
    mean, doubt = dense.predict(queries)
    y, n = Y - dense.mean, len(X) if weights is None else n_counted(weights)
    return mean, np.outer(doubt, np.diag(y.T @ dense.A_inv @ y) / n)


def block_of(X, scales=SCALES):
    return STRIPES.fit_predict(X / scales)


def slow(method, X, Y, queries, Z, weights=None, name="matern32"):
    """The definitions, with n x n matrices and explicit inverses."""
    weights = np.ones(len(X)) if weights is None else weights

    def k(A, B):
        return kernel_matrix(name, A, B, SCALES)

    project = np.linalg.inv(k(Z, Z)) @ k(Z, X)
    K, Q = k(X, X), k(X, Z) @ project
    Q_star, Q_self = k(queries, Z) @ project, k(queries, Z) @ np.linalg.inv(k(Z, Z))
    Q_self = np.einsum("ij,ij->i", Q_self, k(queries, Z))
    Lambda, K_star, k_self = np.diag(NOISE / weights), Q_star, np.ones(len(queries))
    if method == "fic":
        Lambda = np.diag((np.diag(K - Q) + NOISE) / weights)
    if method == "sor":
        k_self = Q_self
    if method == "nystrom":
        K_star = k(queries, X)
    if method == "pic":
        blocks = block_of(X)
        means = np.array([(X / SCALES)[blocks == s].mean(axis=0) for s in range(3)])
        far = np.sum((queries[:, None] / SCALES - means) ** 2, axis=2)
        same = np.argmin(far, axis=1)[:, None] == blocks
        Lambda = Lambda + np.where(blocks[:, None] == blocks, K - Q, 0.0)
        K_star = np.where(same, k(queries, X), Q_star)
    inverse = np.linalg.inv(Q + Lambda)
    Y_mean = np.average(Y, axis=0, weights=weights)
    y = Y - Y_mean
    amplitude_sq = np.diag(y.T @ inverse @ y) / n_counted(weights)
    doubt = k_self + NOISE - np.einsum("ij,ij->i", K_star @ inverse, K_star)
    return Y_mean + K_star @ inverse @ y, np.outer(doubt, amplitude_sq)


def assert_same(found, expected, **tolerance):
    for f, e in zip(found, expected):
        assert_allclose(f, e, **{**CLOSE, **tolerance})


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", ["matern32", "rbf"])
@pytest.mark.parametrize("method", METHODS)
def test_answers_match_the_dense_formulas(rows, method, name, weighted):
    X, Y, queries = rows
    Z = np.random.default_rng(1).normal(size=(9, 3))
    weights = in_typical_units(np.linspace(0.5, 2.0, len(X))) if weighted else None
    model = sparse(method, machine=gp(kernel=name), inducing=Z).fit(X, Y, weights)
    assert_array_equal(model.inducing_points_, Z)
    assert_same(answers(model, queries), slow(method, X, Y, queries, Z, weights, name))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_rows_as_inducing_points_give_the_full_gp(rows, method, weighted):
    X, Y, queries = rows
    weights = in_typical_units(np.linspace(0.5, 2.0, len(X))) if weighted else None
    model = sparse(method, n_inducing=len(X)).fit(X, Y, weights)
    assert_array_equal(model.inducing_points_, X)
    found, full = answers(model, queries), full_gp(X, Y, queries, weights)
    assert_allclose(found[0], full[0], **CLOSE)
    if method == "sor":  # its prior variance is still that of Q
        assert np.all(found[1] < full[1])
    else:
        assert_allclose(found[1], full[1], **CLOSE)


@pytest.mark.parametrize("n_inducing", [1, 5])
def test_pic_with_one_block_is_the_full_gp(rows, n_inducing):
    X, Y, queries = rows
    model = sparse("pic", n_inducing=n_inducing, partition=Stripes()).fit(X, Y)
    assert len(model.state_.blocks) == 1
    assert_same(answers(model, queries), full_gp(X, Y, queries))


def test_pic_with_a_row_to_a_block_trains_as_fic(rows):
    X, Y, _ = rows
    edges = tuple(np.sort(X[:, 0] / SCALES[0])[1:] - 1e-9)
    pic = sparse("pic", partition=Stripes(edges), inducing=X[:9]).fit(X, Y)
    fic = sparse("fic", inducing=X[:9]).fit(X, Y)
    assert len(pic.state_.blocks) == len(X)
    assert_allclose(pic.amplitude_sq_, fic.amplitude_sq_, rtol=1e-8)


def test_a_kernel_object_is_the_kernel_it_names(rows):
    X, Y, queries = rows
    kernel = RBF(SCALES, "fixed")
    for method in METHODS:
        named = sparse(method, inducing=X[:9], machine=gp(kernel="rbf"))
        given = sparse(method, inducing=X[:9], machine=gp(kernel=kernel))
        given.partition = Stripes(tuple(np.array(STRIPES.edges) / X[:, 0].std()))
        found = answers(given.fit(X, Y), queries)
        # Blocks of pic have their means in another metric.
        last = -1 if method != "pic" else 0
        expected = answers(named.fit(X, Y), queries)
        assert_same(found[: last + 2], expected[: last + 2])
        assert_allclose(given.amplitude_sq_, named.amplitude_sq_, rtol=1e-6)


def test_white_noise_in_a_kernel_object_is_noise_to_fic_and_pic(rows):
    X, Y, queries = rows
    for method in ("fic", "pic"):
        white = RBF(1.0, "fixed") + WhiteKernel(0.006, "fixed")
        split = sparse(method, inducing=X[:9], machine=gp(kernel=white, noise=0.004))
        plain = sparse(method, inducing=X[:9], machine=gp(kernel=RBF(1.0, "fixed")))
        expected = answers(plain.fit(X, Y), queries)
        assert_same(answers(split.fit(X, Y), queries), expected)


def test_a_kernel_of_low_rank_needs_few_points(rows):
    X, _, queries = rows
    kernel = DotProduct(1.0, "fixed")
    model = sparse(machine=gp(kernel=kernel, noise=1e-4), inducing="random")
    slope = np.array([1.0, 2.0, 3.0])
    mean = model.fit(X, X @ slope).predict(queries)
    assert_allclose(mean, queries @ slope, atol=1e-4)


def test_variances_away_from_the_data(rows):
    X, Y, _ = rows
    far = np.full((1, 3), 1e3)
    for method in METHODS:
        model = sparse(method).fit(X, Y)
        prior = NOISE if method == "sor" else 1 + NOISE
        expected = prior * model.amplitude_sq_[None]
        assert_allclose(model.predict_variance(far), expected, rtol=1e-8)


def test_negative_variances_of_nystrom_are_reported(rows):
    X, Y, queries = rows
    queries = np.vstack([queries, np.full(3, 1e3)])  # the last one is harmless
    model = sparse("nystrom", inducing=X[:3]).fit(X, Y)
    raw = model.predict_variance(queries)
    assert_allclose(raw, slow("nystrom", X, Y, queries, X[:3])[1], **CLOSE)
    assert_array_equal(raw < 0, np.arange(16)[:, None] < [15, 15])
    with pytest.warns(UserWarning, match="15 of 16 queries"):
        mean, std = model.predict(queries, return_std=True)
    assert_allclose(std, np.sqrt(np.maximum(raw, 0.0)), rtol=1e-12)
    assert_array_equal(mean, model.predict(queries))  # and says nothing
    with pytest.warns(UserWarning, match="negative variance"):
        assert np.isfinite(model.predict_interval(queries)).all()


def test_intervals_are_gaussian(rows):
    X, Y, queries = rows
    model = sparse().fit(X, Y)
    mean, std = model.predict(queries, return_std=True)
    assert_allclose(std**2, model.predict_variance(queries), rtol=1e-12)
    low, high = model.predict_interval(queries, 0.9)
    assert_allclose(high - mean, norm.ppf(0.95) * std)
    assert_allclose(mean - low, norm.ppf(0.95) * std)
    y = mean + std
    assert_allclose(model.log_density(queries, y), norm.logpdf(y, mean, std))


@pytest.mark.parametrize("method", METHODS)
def test_chunks_and_workers_change_nothing(rows, method, monkeypatch):
    X, Y, _ = rows
    whole = sparse(method).fit(X, Y)
    monkeypatch.setattr(_sparse, "CHUNK", 1)  # 12 rows, as many as points
    one, two = (sparse(method, n_jobs=n_jobs).fit(X, Y) for n_jobs in (1, 2))
    assert len(one.state_.inducing.chunks(len(X))) == 5
    assert_same(answers(one, X), answers(whole, X), rtol=1e-9, atol=1e-9)
    for a, b in zip(answers(one, X), answers(two, X)):
        assert_array_equal(a, b)


@pytest.mark.parametrize("inducing", ["kmeans", "random"])
@pytest.mark.parametrize("method", METHODS)
def test_the_order_of_rows_does_not_matter(rows, method, inducing):
    X, Y, queries = rows
    shuffled = np.random.default_rng(3).permutation(len(X))
    model = sparse(method, inducing=inducing)
    found = answers(clone(model).fit(X[shuffled], Y[shuffled]), queries)
    assert_same(found, answers(model.fit(X, Y), queries))


@pytest.mark.parametrize("inducing", ["kmeans", "random"])
@pytest.mark.parametrize("method", METHODS)
def test_a_weight_of_two_is_a_row_twice(rows, method, inducing):
    X, Y, queries = rows
    counts = np.arange(len(X)) % 3
    model = sparse(method, inducing=inducing)
    twice = clone(model).fit(np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0))
    assert_same(answers(twice, queries), answers(model.fit(X, Y, counts), queries))


@pytest.mark.parametrize("method", METHODS)
def test_outputs_do_not_see_each_other(rows, method):
    X, Y, queries = rows
    both = answers(sparse(method).fit(X, Y), queries)
    for j in range(2):
        alone = answers(sparse(method).fit(X, Y[:, j]), queries)
        assert alone[0].shape == alone[1].shape == (len(queries),)
        assert_same(alone, [part[:, j] for part in both], rtol=1e-9)


@pytest.mark.parametrize("inducing", ["kmeans", "random"])
def test_inducing_points_are_the_random_states(rows, inducing):
    X, Y, _ = rows
    one, same, other = (
        sparse(inducing=inducing, random_state=seed).fit(X, Y).inducing_points_
        for seed in (0, 0, 1)
    )
    assert one.shape == (12, 3)
    assert_array_equal(one, same)
    assert np.any(one != other)
    in_rows = (one[:, None] == X).all(axis=2).any(axis=1)
    assert in_rows.all() == (inducing == "random")


def test_kmeans_works_in_the_machines_metric(rows):
    X, Y, _ = rows
    scales = np.array([1e-3, 1e6, 1e6])  # only the first column is far apart
    found = sparse(machine=gp(length_scale=scales)).fit(X, Y).inducing_points_
    means = KMeans(12, n_init=20, random_state=0).fit(X[:, :1])
    inertia = np.min((X[:, :1] - found[:, 0]) ** 2, axis=1).sum()
    assert inertia < 2 * means.inertia_


def test_many_rows_are_clustered_in_batches(rows, monkeypatch):
    X, Y, queries = rows
    monkeypatch.setattr(_sparse, "MANY_ROWS", 30)
    one, two = (sparse(n_inducing=20).fit(X, Y).predict(queries) for _ in range(2))
    assert_array_equal(one, two)
    assert np.mean((one - full_gp(X, Y, queries)[0]) ** 2) < np.mean(Y.var(axis=0))


@pytest.mark.parametrize("method", METHODS)
def test_more_points_approach_the_full_gp(rows, method):
    X, Y, queries = rows
    full = full_gp(X, Y, queries)[0]
    errors = [
        np.abs(sparse(method, n_inducing=m).fit(X, Y).predict(queries) - full).mean()
        for m in (5, 55)
    ]
    assert errors[1] < 0.3 * errors[0]


def test_hyperparameters_are_those_of_the_gp(rows):
    X, Y, _ = rows
    model = SparseGP(n_inducing=20, random_state=0).fit(X, Y)
    shared = GP(per_output=False, random_state=0).fit(X, Y)
    assert_array_equal(model.machine_.theta_, shared.theta_)


@pytest.mark.parametrize("method", METHODS)
def test_float32_is_read_as_what_it_is(rows, method):
    X, Y, queries = (part.astype(np.float32) for part in rows)
    single = answers(sparse(method).fit(X, Y), queries)
    wide = answers(sparse(method).fit(*map(np.float64, (X, Y))), np.float64(queries))
    assert single[0].dtype == np.float64
    assert_same(single, wide, rtol=1e-12)


@pytest.mark.parametrize("noise", [0.0, 1e-7, 0.1])
@pytest.mark.parametrize("method", METHODS)
def test_duplicates_have_an_answer(method, noise):
    X = np.repeat(np.arange(5.0), 8)[:, None]
    machine = GP(length_scale=1.0, noise=noise)
    model = SparseGP(machine, method=method, n_inducing=20, random_state=0)
    mean, variance = answers(model.fit(X, X[:, 0]), [[1.0]])
    assert_array_equal(model.inducing_points_[:, 0], np.arange(5.0))
    assert_allclose(mean, [1.0], atol=0.1)
    assert np.all(np.abs(variance) < 0.3)


@pytest.mark.parametrize("method", METHODS)
def test_constant_columns_and_outputs_are_harmless(rows, method):
    X, Y, queries = rows
    model = SparseGP(method=method, n_inducing=20, random_state=0)
    expected = answers(clone(model).fit(X, Y), queries)
    X, queries = (np.column_stack([x, np.full(len(x), 1e9)]) for x in (X, queries))
    found = answers(model.fit(X, np.column_stack([Y, np.full(len(Y), 7.0)])), queries)
    assert_allclose(model.inducing_points_[:, 3], 1e9)
    assert_allclose(found[0][:, 2], 7.0)
    assert_allclose(found[1][:, 2], 0.0, atol=1e-20)
    assert_same([part[:, :2] for part in found], expected, rtol=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_one_row_answers_with_its_output(method):
    model = SparseGP(method=method).fit([[1.0, 2.0]], [3.0])
    mean, std = model.predict([[0.0, 0.0], [1.0, 2.0]], return_std=True)
    assert_allclose(mean, 3.0)
    assert_allclose(std, 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(model.log_density([[1.0, 2.0]], [3.0])).all()


UNITS = pytest.mark.parametrize(("unit", "height"), [(1e-9, 1e9), (1e9, 1e-9)])


@UNITS
@pytest.mark.parametrize("method", METHODS)
def test_units_do_not_matter(rows, method, unit, height):
    X, Y, queries = rows
    mean, variance = answers(sparse(method).fit(X, Y), queries)
    scaled = sparse(method, machine=gp(length_scale=unit * SCALES))
    found = answers(scaled.fit(unit * X, height * Y), unit * queries)
    assert_same(found, (mean * height, variance * height**2), atol=0)


@UNITS
def test_units_do_not_matter_to_what_is_learned(rows, unit, height):
    X, Y, queries = rows
    model = SparseGP(n_inducing=20, inducing="random", random_state=0)
    mean, variance = answers(clone(model).fit(X, Y), queries)
    found = answers(model.fit(unit * X, height * Y), unit * queries)
    # Logarithms of what is learned are kept to three decimals.
    assert_allclose(found[0] / height, mean, atol=0.01)
    assert_allclose(found[1] / height**2, variance, rtol=0.01)


def test_a_far_origin_does_not_matter(rows):
    X, Y, queries = rows
    near = answers(sparse(inducing=X[:12]).fit(X, Y), queries)
    far = answers(sparse(inducing=X[:12] + 1e6).fit(X + 1e6, Y), queries + 1e6)
    assert_same(far, near)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "vfe"}, "method='vfe' is not known. Choose one of 'fic'"),
        ({"n_inducing": 0}, "n_inducing=0 must be an integer >= 1"),
        ({"n_inducing": 2.5}, r"n_inducing=2\.5 must be an integer"),
        ({"inducing": "grid"}, "inducing='grid' is not known. .* or an array"),
        ({"inducing": np.ones((4, 2))}, r"shape \(4, 2\) must have 3 columns"),
        ({"inducing": np.full((4, 3), np.nan)}, "inducing contains NaN"),
        ({"inducing": np.ones(3)}, "2D array"),
        ({"tuning": "vfe"}, "tuning='vfe' is not known. Choose one of 'local'"),
        ({"tuning": "bound", "machine": GP(RBF())}, "needs a named kernel"),
        ({"method": "pic", "partition": "dbscan"}, "partition='dbscan' is not known"),
        ({"machine": GP(per_output=True)}, "all rows and outputs share"),
        ({"machine": GP(per_subdomain=True)}, "all rows and outputs share"),
        ({"machine": TwinGP()}, "must be a GP"),
        ({"machine": "svr"}, "machine='svr' is not known"),
    ],
)
def test_bad_options_are_refused(rows, options, message):
    X, Y, _ = rows
    with pytest.raises(ValueError, match=message):
        sparse(**options).fit(X, Y)
