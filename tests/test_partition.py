"""Partitions: equal sizes always, the greedy rules as written, nothing left to gain."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.preprocessing import StandardScaler
from threadpoolctl import threadpool_limits

import reference_partition as reference
from overcover import _neighbors
from overcover.partition import (
    EqualSizeKMeans,
    Partition,
    RecursiveProjection,
    TwoLevelKMeans,
    _balance,
    _kmeans,
    clusters_of,
    partition_rows,
)
from overcover.partition._kmeans import BALANCES
from overcover.partition._projection import split_recursively

CLUSTERERS = [
    EqualSizeKMeans(random_state=0),
    EqualSizeKMeans(balance="ab", random_state=0),
    EqualSizeKMeans(balance="imda", random_state=0),
    RecursiveProjection(random_state=0),
    TwoLevelKMeans(n_shards=3, random_state=0),
]
each_clusterer = pytest.mark.parametrize("clusterer", CLUSTERERS, ids=str)
# No deadline: the first example compiles.
quick = settings(deadline=None, max_examples=40)

ROUNDING = 1e-9


def check_equal_sizes(labels, n_samples, n_clusters):
    """Every row has a label, every cluster floor or ceil of N/K rows."""
    assert labels.shape == (n_samples,)
    sizes = np.bincount(labels, minlength=n_clusters)
    assert len(sizes) == n_clusters
    assert sizes.max() - sizes.min() <= 1


def check_partition(clusterer, X, n_clusters):
    """A fitted clusterer keeps every promise of its docstring."""
    model = clusterer.set_params(n_clusters=n_clusters).fit(X)
    labels, centers = model.labels_, model.cluster_centers_
    check_equal_sizes(labels, len(X), n_clusters)
    assert labels.dtype == np.intp
    assert centers.dtype == np.float64
    # Means of rows far from zero are rounded; so is what is computed from them.
    X = np.asarray(X, dtype=np.float64)
    slack = ROUNDING * max(np.abs(X).max(), np.finfo(float).tiny)
    means = [X[labels == k].mean(axis=0) for k in range(n_clusters)]
    assert_allclose(centers, means, rtol=0, atol=slack)
    J = sum(((X[labels == k] - means[k]) ** 2).sum() for k in range(n_clusters))
    # Below the smallest normal number few digits are left.
    slack = max(slack**2 * X.size, np.finfo(float).tiny)
    assert_allclose(model.inertia_, J, rtol=ROUNDING, atol=slack)


small_integers = st.integers(-5, 5)


@st.composite
def problems(draw, max_rows=40, elements=small_integers):
    """Rows on a small grid, so ties and duplicates abound, and a number of clusters."""
    n_rows = draw(st.integers(1, max_rows))
    n_features = draw(st.integers(1, 3))
    X = draw(arrays(np.float64, (n_rows, n_features), elements=elements))
    return X, draw(st.integers(1, n_rows))


@st.composite
def problems_with_centers(draw):
    X, n_clusters = draw(problems(max_rows=14))
    shape = (n_clusters, X.shape[1])
    return X, draw(arrays(np.float64, shape, elements=small_integers))


@pytest.fixture
def cloud():
    return np.random.default_rng(0).normal(size=(200, 3))


# The promises of every partition


@each_clusterer
@quick
@given(problem=problems())
def test_promises_hold_on_grids_with_ties_and_duplicates(clusterer, problem):
    check_partition(clusterer, *problem)


@each_clusterer
@quick
@given(problem=problems(elements=st.floats(-1e12, 1e12)))
def test_promises_hold_on_any_numbers(clusterer, problem):
    check_partition(clusterer, *problem)


@each_clusterer
@pytest.mark.parametrize("scale", [1e-200, 1e-12, 1e12, 1e100])
def test_the_unit_of_the_columns_does_not_matter(clusterer, scale, cloud):
    model = clusterer.set_params(n_clusters=7)
    expected = model.fit(cloud).labels_
    # A power of two changes no mantissa, so not even rounding differs.
    scale = 2.0 ** np.round(np.log2(scale))
    assert_array_equal(model.fit(cloud * scale).labels_, expected)


@each_clusterer
def test_promises_hold_in_float32_and_far_from_zero(clusterer, cloud):
    check_partition(clusterer, cloud.astype(np.float32), 9)
    check_partition(clusterer, cloud + 1e6, 9)


@each_clusterer
def test_identical_rows_are_split_all_the_same(clusterer):
    check_partition(clusterer, np.full((25, 2), 3.0), 7)


@each_clusterer
def test_a_constant_column_changes_nothing(clusterer, cloud):
    model = clusterer.set_params(n_clusters=6)
    with_constant = np.column_stack([cloud * 1e-3, np.full(len(cloud), 1e12 + 1 / 3)])
    check_partition(model, with_constant, 6)
    assert_array_equal(model.labels_, model.fit(cloud * 1e-3).labels_)


@each_clusterer
def test_as_many_clusters_as_rows_gives_each_row_its_own(clusterer, cloud):
    check_partition(clusterer, cloud[:30], 30)
    assert clusterer.inertia_ == 0.0


@each_clusterer
def test_one_cluster_holds_everything(clusterer, cloud):
    check_partition(clusterer, cloud, 1)
    assert_allclose(clusterer.inertia_, ((cloud - cloud.mean(axis=0)) ** 2).sum())


@each_clusterer
def test_input_is_not_modified(clusterer, cloud):
    before = cloud.copy()
    clusterer.set_params(n_clusters=4).fit(cloud)
    assert_array_equal(cloud, before)


# Equal for every number of threads


@pytest.mark.parametrize("n_features", [2, 14])
@pytest.mark.parametrize("balance", BALANCES)
def test_workers_and_blas_threads_change_no_bit(balance, n_features, monkeypatch):
    monkeypatch.setattr(_neighbors, "BLOCK_ELEMENTS", 2**12)
    X = np.random.default_rng(1).normal(size=(1500, n_features))

    def fit(n_jobs, n_threads):
        with threadpool_limits(n_threads):
            return EqualSizeKMeans(
                12, balance=balance, n_jobs=n_jobs, random_state=3
            ).fit(X)

    alone, together = fit(1, 1), fit(2, 2)
    assert_array_equal(alone.labels_, together.labels_)
    assert_array_equal(alone.cluster_centers_, together.cluster_centers_)
    assert alone.inertia_ == together.inertia_


# The greedy rules


@quick
@given(problem=problems_with_centers())
def test_assign_and_balance_follows_its_rule(problem):
    X, centers = problem
    expected = reference.assign_and_balance(X.tolist(), centers.tolist())
    assert _balance.assign_and_balance(X, centers).tolist() == expected


@quick
@given(problem=problems_with_centers())
def test_fill_nearest_pairs_follows_its_rule(problem):
    X, centers = problem
    expected = reference.fill_nearest_pairs(X.tolist(), centers.tolist())
    assert _balance.fill_nearest_pairs(X, centers).tolist() == expected


@pytest.mark.parametrize("rule", ["assign_and_balance", "fill_nearest_pairs"])
@pytest.mark.parametrize("n_candidates", [1, 2, 5])
def test_short_candidate_lists_give_the_same_partition(
    rule, n_candidates, cloud, monkeypatch
):
    centers = cloud[:23] * 0.3
    expected = getattr(_balance, rule)(cloud, centers)
    monkeypatch.setattr(_balance, "MOST_CANDIDATES", n_candidates)
    assert_array_equal(getattr(_balance, rule)(cloud, centers), expected)


@pytest.mark.parametrize("rule", ["assign_and_balance", "fill_nearest_pairs"])
def test_permuting_rows_permutes_labels(rule, cloud):
    cloud = cloud[:198]  # equal sizes, so no tie between counts decides
    centers = cloud[:9]
    order = np.random.default_rng(5).permutation(len(cloud))
    labels = getattr(_balance, rule)(cloud, centers)
    assert_array_equal(getattr(_balance, rule)(cloud[order], centers), labels[order])


# Exchanges


@quick
@given(problem=problems_with_centers())
def test_refining_is_never_worse_than_assigning_from_the_same_centers(problem):
    X, centers = problem
    costs = {
        name: reference.inertia(X.tolist(), BALANCES[name](X, centers).tolist())
        for name in ("ab", "refined")
    }
    assert costs["refined"] <= costs["ab"] + ROUNDING


@quick
@given(problem=problems(max_rows=25, elements=st.floats(-3, 3)), seed=st.integers(0, 9))
def test_exchanges_keep_sizes_and_never_raise_inertia(problem, seed):
    X, n_clusters = problem
    labels = np.random.default_rng(seed).permutation(np.arange(len(X)) % n_clusters)
    before = reference.inertia(X.tolist(), labels.tolist())
    for _ in range(4):
        labels, _ = _balance.exchange(X, labels, n_clusters, max_sweeps=1)
        check_equal_sizes(labels, len(X), n_clusters)
        after = reference.inertia(X.tolist(), labels.tolist())
        assert after <= before + ROUNDING
        before = after


@quick
@given(problem=problems(max_rows=25, elements=st.floats(-3, 3)))
def test_no_improving_exchange_is_left(problem):
    X, n_clusters = problem
    model = EqualSizeKMeans(n_clusters, random_state=0).fit(X)
    found = X.tolist(), model.labels_.tolist(), model.cluster_centers_.tolist()
    assert reference.best_exchange_gain(*found) <= ROUNDING
    assert reference.best_gift_gain(*found) <= ROUNDING


def test_refined_beats_assign_beats_imda_on_the_disc():
    rng = np.random.default_rng(0)
    angle, radius = rng.uniform(0, 2 * np.pi, 3000), np.sqrt(rng.uniform(size=3000))
    X = np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])
    refined, assign, imda = (
        EqualSizeKMeans(20, balance=balance, random_state=0).fit(X).inertia_
        for balance in ("refined", "ab", "imda")
    )
    assert refined < assign < imda


# Distances and seeds


@pytest.mark.parametrize("n_features", [1, 5, 40])
def test_nearest_centers_match_a_full_sort(n_features, monkeypatch):
    monkeypatch.setattr(_neighbors, "BLOCK_ELEMENTS", 500)
    rng = np.random.default_rng(2)
    X, centers = rng.normal(size=(90, n_features)), rng.normal(size=(31, n_features))
    full = ((X[:, None] - centers) ** 2).sum(axis=2)
    order = np.argsort(full, axis=1, kind="stable")[:, :4]
    ids, dist_sq = _neighbors.nearest_centers(X, centers, 4, n_jobs=2)
    assert_array_equal(ids, order)
    assert_allclose(dist_sq, np.take_along_axis(full, order, axis=1))
    some = np.array([7, 3, 80])
    assert_array_equal(
        _neighbors.nearest_centers(X, centers, 4, rows=some)[0], ids[some]
    )


def test_wide_distances_survive_an_offset():
    X = np.random.default_rng(3).normal(size=(50, 20))
    near, _ = _neighbors.nearest_centers(X, X, 2)
    far, dist_sq = _neighbors.nearest_centers(X + 1e7, X + 1e7, 2)
    assert_array_equal(far, near)
    assert_allclose(dist_sq[:, 0], 0, atol=1e-6)


@quick
@given(counts=st.lists(st.integers(0, 50), min_size=1), share=st.floats(0, 1))
def test_shares_add_up_and_stay_within_their_counts(counts, share):
    counts = np.array(counts)
    if counts.sum() == 0:
        return
    total = int(share * counts.sum())
    shares = _kmeans.proportional_shares(counts, total)
    assert shares.sum() == total
    assert (shares <= counts).all()
    assert (np.abs(shares - counts * total / counts.sum()) < 1).all()


def test_two_level_seeding_gives_as_many_seeds(monkeypatch):
    monkeypatch.setattr(_kmeans, "MANY_SEEDS", 20)
    monkeypatch.setattr(_kmeans, "ROWS_PER_SEED", 4)
    X = np.random.default_rng(4).normal(size=(500, 2))
    seeds = _kmeans.kmeans_seeds(X, 61, np.random.RandomState(0))
    assert seeds.shape == (61, 2)
    assert len(np.unique(seeds, axis=0)) == 61
    check_partition(EqualSizeKMeans(random_state=0), X, 61)


def test_more_clusters_than_neighbors_tried_still_balance(monkeypatch, cloud):
    monkeypatch.setattr(_balance, "MOST_NEIGHBORS", 3)
    check_partition(EqualSizeKMeans(random_state=0), cloud, 30)


# Projection


def test_projection_on_a_line_gives_intervals():
    X = np.random.default_rng(6).permutation(50.0 * np.arange(50))[:, None]
    labels = split_recursively(X, 7, np.random.RandomState(0))
    check_equal_sizes(labels, 50, 7)
    changes = np.diff(labels[np.argsort(X[:, 0])]) != 0
    assert changes.sum() == 6


# Predicting and composing


def test_predict_gives_the_nearest_center(cloud):
    model = EqualSizeKMeans(5, random_state=0).fit(cloud)
    queries = np.random.default_rng(7).normal(size=(40, 3))
    expected = reference.nearest_labels(queries, model.cluster_centers_)
    assert model.predict(queries).tolist() == expected


@pytest.mark.parametrize(
    ("name", "clusterer"),
    [
        ("kmeans", EqualSizeKMeans(4, balance="refined", random_state=1)),
        ("ab", EqualSizeKMeans(4, balance="ab", random_state=1)),
        ("imda", EqualSizeKMeans(4, balance="imda", random_state=1)),
        ("rpc", RecursiveProjection(4, random_state=1)),
        ("two-level", TwoLevelKMeans(4, random_state=1)),
    ],
)
def test_names_stand_for_clusterers(name, clusterer, cloud):
    by_name = partition_rows(cloud, 4, name, n_jobs=1, random_state=1)
    by_instance = partition_rows(cloud, 4, clusterer, random_state=99)
    assert isinstance(by_name, Partition)
    assert_array_equal(by_name.labels, clusterer.fit_predict(cloud))
    assert_array_equal(by_name.centers, clusterer.cluster_centers_)
    assert_array_equal(by_instance.labels, by_name.labels)


def test_a_clusterer_is_cloned_and_told_how_many(cloud):
    given_clusterer = EqualSizeKMeans(2)
    partition = partition_rows(cloud, 6, given_clusterer, random_state=0)
    assert len(partition.centers) == 6
    assert given_clusterer.n_clusters == 2
    assert not hasattr(given_clusterer, "labels_")


@pytest.mark.parametrize(
    "clusterer", [KMeans(n_init=1), AgglomerativeClustering(), DBSCAN(eps=0.5)], ids=str
)
def test_foreign_labels_become_consecutive(clusterer, cloud):
    labels, centers = partition_rows(cloud, 5, clusterer, random_state=0)
    assert_array_equal(np.unique(labels), np.arange(len(centers)))
    for rows, center in zip(clusters_of(labels, len(centers)), centers):
        assert_allclose(center, cloud[rows].mean(axis=0))


@quick
@given(labels=st.lists(st.integers(0, 6), min_size=1))
def test_clusters_own_every_row_once_in_ascending_order(labels):
    clusters = clusters_of(np.array(labels), 7)
    assert len(clusters) == 7
    for k, rows in enumerate(clusters):
        assert rows.tolist() == [i for i, label in enumerate(labels) if label == k]


# What is refused


@each_clusterer
def test_more_clusters_than_rows_is_refused(clusterer):
    with pytest.raises(ValueError, match=r"n_samples=3 should be >= n_clusters=8.*Low"):
        clusterer.set_params(n_clusters=8).fit(np.eye(3))


@each_clusterer
@pytest.mark.parametrize("n_clusters", [0, -1, 2.5, "8", None])
def test_a_number_of_clusters_that_is_no_count_is_refused(clusterer, n_clusters):
    with pytest.raises(ValueError, match="must be an integer between 1 and"):
        clusterer.set_params(n_clusters=n_clusters).fit(np.eye(3))


def test_unknown_options_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="'ab', 'imda', 'refined'"):
        EqualSizeKMeans(2, balance="best").fit(np.eye(3))
    with pytest.raises(ValueError, match="max_iter=0 must be an integer >= 1"):
        EqualSizeKMeans(2, max_iter=0).fit(np.eye(3))


@pytest.mark.parametrize("method", ["voronoi", None, StandardScaler()], ids=str)
def test_an_unknown_partition_is_refused_with_the_known_ones(method):
    with pytest.raises(ValueError, match="'kmeans', 'ab', 'imda', 'rpc', 'two-level'"):
        partition_rows(np.eye(3), 2, method)


def test_the_old_word_for_assign_and_balance_warns_and_works():
    X = np.random.default_rng(0).normal(size=(40, 2))
    labels = EqualSizeKMeans(4, balance="ab", random_state=0).fit(X).labels_
    with pytest.warns(DeprecationWarning, match='balance="ab"'):
        old = EqualSizeKMeans(4, balance="assign", random_state=0).fit(X)
    assert_array_equal(old.labels_, labels)
