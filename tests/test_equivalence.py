"""Truths across modules: two ways to the same answer."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from overcover import GP, AnyRegressor, OverlappingCoverRegressor
from overcover.consult import panel_of

FIXED = {"length_scale": 1.5, "noise": 0.01}
SMALL = {"subdomain_size": 60, "overlap": 0.7, "random_state": 0}
ROUNDING = 1e-8


def small_cover(machine=None, **changes):
    machine = GP(**FIXED) if machine is None else machine
    return OverlappingCoverRegressor(machine, **{**SMALL, **changes})


def check_equal(these, those, rtol=ROUNDING):
    """Two predictions with standard deviations agree."""
    for this, that in zip(these, those):
        assert this.shape == that.shape
        assert_allclose(this, that, rtol=rtol, atol=rtol * np.abs(that).max())


class Quadrants(ClusterMixin, BaseEstimator):
    """Clusters by the signs of the first two columns, whatever the order of rows."""

    def fit(self, X, y=None):
        self.labels_ = 2 * (X[:, 0] > 0) + (X[:, 1] > 0)
        return self


MACHINES = [
    GP(**FIXED),
    GP(per_output=True, **FIXED),
    GP(),
    GP(kernel="rbf", length_scale=[1.0, 2.0], noise=0.1),
]


@pytest.mark.parametrize("machine", MACHINES, ids=str)
def test_one_subdomain_is_the_full_model(machine, two_outputs, queries):
    X, Y = two_outputs
    cover = OverlappingCoverRegressor(machine, random_state=0).fit(X, Y)
    assert cover.n_subdomains_ == 1
    full = clone(machine).fit(X, Y)
    check_equal([cover.predict(queries)], [full.predict(queries)])
    # Without noise, unexplained variances of 1e-7 decide how deviations grow in gaps.
    check_equal(
        cover.predict(queries, return_std=True),
        full.predict(queries, return_std=True),
        rtol=1e-6,
    )
    check_equal(
        cover.predict_interval(queries, 0.8),
        full.predict_interval(queries, 0.8),
        rtol=1e-6,
    )


def test_one_subdomain_of_any_regressor_is_that_regressor(surface, queries):
    X, y = surface
    cover = OverlappingCoverRegressor(SVR(C=5.0)).fit(X, y)
    assert_allclose(cover.predict(queries), SVR(C=5.0).fit(X, y).predict(queries))


def test_no_overlap_is_independent_machines_on_the_clusters(surface, queries):
    X, y = surface
    model = small_cover(overlap=0.0, partition="rpc", router="euclidean").fit(X, y)
    clusters = model.cover_.members
    assert len(clusters) == model.n_subdomains_ == 5
    assert_array_equal(np.sort(np.concatenate(clusters)), np.arange(len(X)))
    experts = [GP(**FIXED).fit(X[rows], y[rows]) for rows in clusters]
    centers = np.array([X[rows].mean(axis=0) for rows in clusters])
    for query, answered in zip(queries, model.predict(queries)):
        nearest = np.argmin(np.linalg.norm(centers - query, axis=1))
        assert_allclose(answered, experts[nearest].predict([query])[0], rtol=ROUNDING)


@pytest.mark.parametrize("router", ["variance", "euclidean", "mahalanobis"])
def test_consulting_one_subdomain_makes_the_combination_irrelevant(
    router, surface, queries
):
    """But for "certainty", by which all candidates answer."""
    model = small_cover(router=router, combine="nearest").fit(*surface)
    expected = model.predict(queries, return_std=True)
    for rule in ("precision", "inverse-distance"):
        model.set_params(combine=rule)
        check_equal(model.predict(queries, return_std=True), expected, rtol=0)


@pytest.mark.parametrize("dtype, rounding", [("float64", ROUNDING), ("auto", 1e-4)])
@pytest.mark.parametrize("router", ["variance", "euclidean", "density"])
def test_the_order_of_rows_does_not_matter(
    router, dtype, rounding, two_outputs, queries
):
    X, Y = two_outputs
    order = np.random.default_rng(3).permutation(len(X))
    model = small_cover(
        GP(factor_dtype=dtype, **FIXED),
        partition=Quadrants(),
        router=router,
        n_consulted=2,
        subdomain_size=150,
    )
    expected = model.fit(X, Y).predict(queries, return_std=True)
    assert model.n_subdomains_ == 4
    shuffled = model.fit(X[order], Y[order]).predict(queries, return_std=True)
    check_equal(shuffled, expected, rounding)


@pytest.mark.parametrize(
    "model",
    [
        small_cover(),
        small_cover(router="mahalanobis", n_consulted=3),
        small_cover(router="neighbors", n_consulted=2, combine="precision"),
        small_cover(GP(per_subdomain=True, **FIXED)),
        small_cover(AnyRegressor()),
    ],
    ids=str,
)
def test_results_do_not_depend_on_the_number_of_workers(model, two_outputs, queries):
    one, two = (clone(model).set_params(n_jobs=n).fit(*two_outputs) for n in (1, 2))
    for this, that in zip(one.cover_.members, two.cover_.members):
        assert_array_equal(this, that)
    assert_array_equal(one.predict(queries), two.predict(queries))
    if one.machine_.has_variance:
        these, those = (m.predict(queries, return_std=True) for m in (one, two))
        assert_array_equal(these[1], those[1])


def test_single_precision_input_answers_nearly_the_same(surface, queries):
    X, y = surface
    model = small_cover(partition=Quadrants(), subdomain_size=150)
    expected = model.fit(X, y).predict(queries, return_std=True)
    single = model.fit(X.astype(np.float32), y.astype(np.float32)).predict(
        queries.astype(np.float32), return_std=True
    )
    assert single[0].dtype == np.float64
    check_equal(single, expected, rtol=1e-4)


@pytest.mark.parametrize("router", ["variance", "mahalanobis", "neighbors"])
def test_a_batch_of_queries_is_its_queries_one_by_one(router, two_outputs, queries):
    model = small_cover(router=router, n_consulted=2).fit(*two_outputs)
    one_by_one = [model.predict(query[None], return_std=True) for query in queries]
    expected = [np.vstack(parts) for parts in zip(*one_by_one)]
    check_equal(model.predict(queries, return_std=True), expected)


def test_answering_in_chunks_changes_nothing(surface, queries, monkeypatch):
    model = small_cover().fit(*surface)
    expected = model.predict(queries, return_std=True)
    monkeypatch.setattr("overcover.consult.ROUND_QUERIES", 1)
    assert panel_of(model).rows_per_round < len(queries)
    check_equal(model.predict(queries, return_std=True), expected)
    monkeypatch.setattr("overcover.consult.ROUND_BYTES", 2000)
    check_equal(model.predict(queries, return_std=True), expected)
    monkeypatch.setattr("overcover.machines.gp.BLOCK_VALUES", 1)
    check_equal(model.predict(queries, return_std=True), expected)


@pytest.mark.parametrize(
    "router",
    [
        "variance",
        "mahalanobis",
        "mahalanobis-squared",
        "euclidean",
        "neighbors",
        "density",
    ],
)
def test_a_pickled_model_answers_as_before(router, surface, queries):
    model = small_cover(router=router).fit(*surface)
    copied = pickle.loads(pickle.dumps(model))
    check_equal(
        copied.predict(queries, return_std=True),
        model.predict(queries, return_std=True),
        rtol=0,
    )


def test_a_clone_fits_to_the_same_model(surface, queries):
    model = small_cover().fit(*surface)
    again = clone(model).fit(*surface)
    assert_array_equal(again.predict(queries), model.predict(queries))


def test_fitting_leaves_the_given_machine_alone(surface):
    machine = GP(**FIXED)
    small_cover(machine).fit(*surface)
    assert not [name for name in vars(machine) if name.endswith("_")]


@pytest.mark.parametrize("machine", [GP(**FIXED), AnyRegressor()], ids=str)
def test_one_output_may_be_a_vector_or_a_column(machine, surface, queries):
    X, y = surface
    flat = small_cover(machine).fit(X, y)
    column = small_cover(machine).fit(X, y[:, None])
    assert flat.predict(queries).shape == (len(queries),)
    assert_array_equal(flat.predict(queries)[:, None], column.predict(queries))
    if flat.machine_.has_variance:
        these, those = (m.predict_interval(queries) for m in (flat, column))
        assert_array_equal(these[0][:, None], those[0])
        assert_array_equal(these[1][:, None], those[1])


def test_outputs_keep_their_own_scale(two_outputs, queries):
    X, Y = two_outputs
    together = small_cover().fit(X, Y)
    mean, std = together.predict(queries, return_std=True)
    for j in range(2):
        alone = small_cover().fit(X, Y[:, j]).predict(queries, return_std=True)
        check_equal((mean[:, j], std[:, j]), alone)


@pytest.mark.parametrize("n_consulted", [1, 2])
def test_subdomains_with_nothing_to_learn_share_their_hyperparameters(
    n_consulted, two_outputs, queries
):
    shared, own = (
        small_cover(
            GP(per_subdomain=per_subdomain, **FIXED), n_consulted=n_consulted
        ).fit(*two_outputs)
        for per_subdomain in (False, True)
    )
    these, those = (m.predict(queries, return_std=True) for m in (shared, own))
    check_equal(these, those, rtol=0)


def test_scaling_and_shifting_outputs_scales_and_shifts_the_answers(surface, queries):
    X, y = surface
    mean, std = small_cover().fit(X, y).predict(queries, return_std=True)
    scaled = small_cover().fit(X, 100.0 - 1e6 * y).predict(queries, return_std=True)
    check_equal(scaled, (100.0 - 1e6 * mean, 1e6 * std))


def test_scaling_inputs_and_length_scales_together_changes_nothing(surface, queries):
    X, y = surface
    factors = np.array([1e-3, 60.0])
    fixed = {"partition": Quadrants(), "subdomain_size": 150}
    expected = small_cover(**fixed).fit(X, y).predict(queries, return_std=True)
    machine = GP(length_scale=1.5 * factors, noise=FIXED["noise"])
    scaled = small_cover(machine, **fixed).fit(X * factors, y)
    check_equal(scaled.predict(queries * factors, return_std=True), expected)


def test_data_frames_are_taken_and_remembered(surface, queries):
    X, y = surface
    expected = small_cover().fit(X, y).predict(queries)
    names = ["east", "north"]
    model = small_cover().fit(pd.DataFrame(X, columns=names), pd.Series(y))
    assert_array_equal(model.feature_names_in_, names)
    assert_array_equal(model.predict(pd.DataFrame(queries, columns=names)), expected)
    with pytest.raises(ValueError, match="feature names"):
        model.predict(pd.DataFrame(queries, columns=names[::-1]))


def test_a_pipeline_is_searched_over_nested_parameters(surface, queries):
    X, y = surface
    pipeline = make_pipeline(StandardScaler(), small_cover())
    grid = {"overlappingcoverregressor__machine__noise": [1e-3, 100.0]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, y)
    assert search.best_params_ == {"overlappingcoverregressor__machine__noise": 1e-3}
    assert search.predict(queries).shape == (len(queries),)


def test_a_pipeline_may_hand_tables_from_step_to_step(surface, queries):
    X, y = surface
    table = pd.DataFrame(X, columns=["a", "b"])
    plain = make_pipeline(StandardScaler(), small_cover()).fit(X, y)
    pipeline = make_pipeline(StandardScaler(), small_cover())
    pipeline.set_output(transform="pandas").fit(table, y)
    assert list(pipeline[-1].feature_names_in_) == ["a", "b"]
    rows = pd.DataFrame(queries, columns=table.columns)
    for options in ({}, {"return_std": True}):
        answers = plain.predict(queries, **options)
        assert_allclose(pipeline.predict(rows, **options), answers, rtol=ROUNDING)


def test_nested_parameters_reach_the_machines(surface, queries):
    X, y = surface
    nested = small_cover().set_params(machine__noise=0.5, overlap=0.5)
    direct = small_cover(GP(length_scale=1.5, noise=0.5), overlap=0.5)
    assert nested.get_params()["machine__noise"] == 0.5
    assert_array_equal(
        nested.fit(X, y).predict(queries), direct.fit(X, y).predict(queries)
    )


@pytest.mark.parametrize("name", [None, "gp"])
def test_the_default_machine_is_the_gp(name, surface, queries):
    named = OverlappingCoverRegressor(name, random_state=0).fit(*surface)
    given = OverlappingCoverRegressor(GP(), random_state=0).fit(*surface)
    assert_array_equal(named.predict(queries), given.predict(queries))


def test_a_bare_regressor_becomes_a_machine(surface, queries):
    bare = small_cover(SVR()).fit(*surface)
    wrapped = small_cover(AnyRegressor(SVR())).fit(*surface)
    assert_array_equal(bare.predict(queries), wrapped.predict(queries))


def test_overlap_lowers_the_error(surface, queries):
    X, y = surface
    truth = np.sin(queries[:, 0]) * np.cos(queries[:, 1])
    errors = [
        np.mean((small_cover(overlap=p).fit(X, y).predict(queries) - truth) ** 2)
        for p in (0.0, 0.9)
    ]
    assert errors[1] < errors[0]
