"""Two levels: sizes that fit exactly, moves to neighbours alone, never all rows."""

import tracemalloc
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.spatial.distance import cdist

from overcover import GP, OverlappingCoverRegressor, _streams
from overcover.cover import CoverShape
from overcover.distributed import _worker
from overcover.fitting import Recipe
from overcover.partition import (
    EqualSizeKMeans,
    TwoLevelKMeans,
    partition_rows,
    resolve,
    shards,
)
from overcover.store import Draft, fit_into

quick = settings(deadline=None, max_examples=60)


def cloud(n_rows=3000, n_features=2, seed=0):
    return np.random.default_rng(seed).normal(size=(n_rows, n_features))


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 100 rows of two features, samples of 20 rows per shard."""
    monkeypatch.setattr(_streams, "BLOCK_NUMBERS", 2 * 100)
    monkeypatch.setattr(shards, "SAMPLED_ROWS", 20)


# The clusterer


@pytest.mark.parametrize("balance", ["refined", "ab", "imda"])
def test_one_shard_is_equal_size_kmeans(balance):
    X = cloud(500)
    options = {"n_clusters": 12, "balance": balance, "random_state": 3}
    alone = EqualSizeKMeans(**options).fit(X)
    for n_shards in (1, "auto"):
        sharded = TwoLevelKMeans(n_shards=n_shards, **options).fit(X)
        assert_array_equal(sharded.labels_, alone.labels_)
        assert_array_equal(sharded.cluster_centers_, alone.cluster_centers_)
        assert sharded.inertia_ == alone.inertia_


def test_inertia_is_about_that_of_one_level():
    X = cloud()
    alone = EqualSizeKMeans(100, random_state=0).fit(X).inertia_
    for n_shards in (2, 5):
        model = TwoLevelKMeans(100, n_shards=n_shards, random_state=0).fit(X)
        assert alone < model.inertia_ < 1.1 * alone


def test_threads_files_and_precision_change_nothing(small_blocks, tmp_path):
    X = cloud(1000).astype(np.float16)
    fit = partial(TwoLevelKMeans(37, n_shards=4, random_state=0).set_params)
    expected = fit(n_jobs=1).fit(X.astype(np.float64)).labels_
    assert_array_equal(fit(n_jobs=2).fit(X).labels_, expected)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert_array_equal(fit(n_jobs=2).fit(mapped).labels_, expected)


def test_a_fit_holds_less_than_its_rows(small_blocks, monkeypatch, tmp_path):
    X = cloud(4000, 128)
    np.save(tmp_path / "X.npy", X)
    monkeypatch.setattr(_streams, "BLOCK_NUMBERS", 2**15)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    model = TwoLevelKMeans(200, n_shards=10, balance="ab", random_state=0)
    model.fit(X[:800])  # compiles
    tracemalloc.start()
    model.fit(mapped)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.75 * X.nbytes  # a shard of several copies, or rows that may move


def test_on_a_line_all_clusters_are_intervals():
    """Rows move between neighbours alone, so shards do not mix."""
    X = np.sort(cloud(2000, 1), axis=0)
    model = TwoLevelKMeans(50, n_shards=5, random_state=1).fit(X)
    assert np.count_nonzero(np.diff(model.labels_)) == 49


@pytest.mark.parametrize("n_shards", [0, -1, 2.5, "many", None, [2]])
def test_a_number_of_shards_that_is_no_count_is_refused(n_shards):
    with pytest.raises(ValueError, match=r"n_shards=.* integer >= 1. Or 'auto'"):
        TwoLevelKMeans(2, n_shards=n_shards).fit(np.eye(3))


def test_what_is_not_finite_is_refused_in_whichever_block(small_blocks):
    X = cloud(500)
    X[450, 1] = np.nan
    with pytest.raises(ValueError, match="Input X contains NaN"):
        TwoLevelKMeans(20, n_shards=3).fit(X)


# Shares and moves


@st.composite
def counted_shards(draw):
    """Rows nearest to some centres, on a grid with coincident ones; clusters."""
    counts = draw(st.lists(st.integers(0, 60), min_size=1, max_size=9))
    if sum(counts) == 0:
        counts[0] = 1
    place = st.tuples(st.integers(0, 3), st.integers(0, 3))
    centers = draw(st.lists(place, min_size=len(counts), max_size=len(counts)))
    n_clusters = draw(st.integers(1, sum(counts)))
    return np.array(counts), np.array(centers, dtype=float), n_clusters


@quick
@given(problem=counted_shards())
def test_shares_fit_clusters_of_equal_size_and_moves_make_them(problem):
    counts, centers, n_clusters = problem
    n_given, sizes, moves = shards.share_clusters(counts, centers, n_clusters)
    least = counts.sum() // n_clusters
    assert n_given.sum() == n_clusters
    assert sizes.sum() == counts.sum()
    assert (n_given * least <= sizes).all()
    assert (sizes <= n_given * (least + 1)).all()
    held = counts.copy()
    for source, target, count in moves:
        assert 0 < count <= held[source]
        held[source] -= count
        held[target] += count
    assert_array_equal(held, sizes)


def test_an_edge_carries_about_a_cluster_at_most():
    rng = np.random.default_rng(0)
    for _ in range(20):
        counts = rng.integers(500, 1500, 60)
        n_clusters = int(counts.sum()) // 20
        moves = shards.share_clusters(counts, rng.normal(size=(60, 3)), n_clusters)[2]
        assert moves[:, 2].max() <= 1.5 * 20


@quick
@given(seed=st.integers(0, 99), n_centers=st.integers(1, 12))
def test_the_tree_is_the_shortest(seed, n_centers):
    centers = cloud(n_centers, 2, seed)
    order, parents = shards.spanning_tree(centers)
    assert sorted(order) == list(range(n_centers))
    assert parents[0] == -1
    assert all(order.index(parents[s]) < order.index(s) for s in order[1:])
    edges = [np.linalg.norm(centers[s] - centers[parents[s]]) for s in order[1:]]
    expected = minimum_spanning_tree(cdist(centers, centers)).sum()
    assert_allclose(np.sum(edges), expected)


def test_rows_that_lose_least_move_ties_by_number():
    """Centres 0 and 10: of 0, 4, 4, 1 and of 9, one of the fours must go over."""
    X = np.array([[0.0], [4.0], [4.0], [1.0], [9.0], [10.0]])
    centers = np.array([[0.0], [10.0]])
    homes, clusters = shards.assign_shards(X, centers, 2)
    assert shards.share_clusters(np.array([4, 2]), centers, 2)[2].tolist() == [
        [0, 1, 1]
    ]
    assert clusters.tolist() == [1, 1]
    assert homes.tolist() == [0, 1, 0, 0, 1, 1]


@pytest.mark.parametrize("moves", [[[0, 1, 4], [1, 2, 2]], [[0, 1, 2], [0, 2, 2]]])
def test_rows_that_all_want_the_same_are_enough_for_everyone(moves):
    """All rows are at 0, and pass through shard 1, or go both ways."""
    X = np.zeros((6, 1))
    centers = np.array([[0.0], [1.0], [2.0]])
    homes = np.zeros(6, dtype=int)
    shards.move_rows(X, centers, homes, np.array(moves))
    assert homes[4:].tolist() == [0, 0]
    assert np.bincount(homes).tolist() == [2, 2, 2]


# Rows that are never held at once


class Watched:
    """Rows that remember how many were looked at together, at most."""

    def __init__(self, X):
        self.X, self.shape, self.most = X, X.shape, 0

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        taken = self.X[rows]
        self.most = max(self.most, len(taken))
        return taken


def test_shards_are_assigned_looking_at_a_block_at_a_time(small_blocks):
    X = Watched(cloud(2000))
    rows, centers = shards.split_sample(X, 4, np.random.RandomState(0))
    assert X.most == 80
    homes, clusters = shards.assign_shards(rows, centers, 101)
    assert X.most <= 100
    n_rows, least = np.bincount(homes, minlength=4), 2000 // 101
    assert (clusters * least <= n_rows).all()
    assert (n_rows <= clusters * (least + 1)).all()


def test_tasks_look_at_a_shard_or_a_subdomain(small_blocks, monkeypatch, tmp_path):
    """The tasks of a cluster one after the other: the local fit, and never all rows."""
    X = cloud(1500)
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "y.npy", X[:, 0])
    machine = GP(length_scale=1.0, noise=0.1)
    clusterer = TwoLevelKMeans(n_shards=6)
    most = []

    getitem = _streams.Rows.__getitem__

    def watched(self, rows):
        most.append(len(self.X[rows]))
        return getitem(self, rows)

    monkeypatch.setattr(_streams.Rows, "__getitem__", watched)
    job = make_job(tmp_path, machine, clusterer, 30, 100, router="mahalanobis")
    _worker.run_stage(job, "tune")
    done = ["tune"]
    for stage in ("partition", "cover", "router"):
        for step, tasks in _worker.steps_of(job, stage, job.fit(*done)):
            for numbers in tasks:
                step(job, *numbers)
        done.append(stage)
    # Blocks have 100 rows, the sample 120, subdomains 30.
    largest_shard = np.diff(_worker.opened(job).shards.ends, prepend=0).max()
    assert max(most) == largest_shard < 500
    draft = Draft(job.folder)
    partition, cover = (draft.read(name)["value"] for name in ("partition", "cover"))
    _worker.forget()
    model = OverlappingCoverRegressor(
        machine,
        subdomain_size=30,
        overlap=0.5,
        partition=clusterer,
        random_state=0,
    )
    local = fit_into(model, X, X[:, 0], tmp_path / "local.ocm")
    for members, expected in zip(cover.members, local.cover_.members, strict=True):
        assert_array_equal(members, expected)
    rows, rng = X / machine.length_scale, np.random.RandomState(0)
    expected = partition_rows(rows, 100, clusterer, random_state=rng)
    assert_array_equal(partition.labels, expected.labels)
    assert_array_equal(partition.centers, expected.centers)


def make_job(tmp_path, machine, partition, size, n_subdomains, router="euclidean"):
    """A fit of X.npy and y.npy in a folder."""
    shape = CoverShape(size * n_subdomains // 2, size, 0.5, 3.0, n_subdomains)
    recipe = Recipe(machine, shape, partition, router, 0, None)
    inputs = _worker.Inputs(str(tmp_path / "X.npy"), str(tmp_path / "y.npy"))
    folder = tmp_path / "data-0123456789abcdef"
    folder.mkdir(exist_ok=True)
    return _worker.Job(str(folder), "float64", inputs, recipe)


def test_rows_of_one_shard_are_no_sharding(tmp_path):
    np.save(tmp_path / "X.npy", cloud(300))
    np.save(tmp_path / "y.npy", np.zeros(300))
    for partition in ("two-level", "kmeans", TwoLevelKMeans(n_shards=1)):
        job = make_job(tmp_path, GP(), partition, 20, 30)
        steps = _worker.steps_of(job, "partition", job.fit())
        assert steps == [(_worker.run_stage, [("partition",)])]
    job = make_job(tmp_path, GP(), TwoLevelKMeans(n_shards=3), 20, 30)
    steps = _worker.steps_of(job, "partition", job.fit())
    assert [len(tasks) for _, tasks in steps] == [1, 3, 1]


def test_very_many_clusters_are_made_in_two_levels(monkeypatch):
    """Not so where another way was asked for."""
    monkeypatch.setattr("overcover.partition.MANY_CLUSTERS", 20)
    for method, expected in (("kmeans", TwoLevelKMeans), ("ab", EqualSizeKMeans)):
        assert type(resolve(method, 21, None, None)) is expected
    assert type(resolve("kmeans", 20, None, None)) is EqualSizeKMeans
