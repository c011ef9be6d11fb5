"""Rows in blocks: the same answers as with all of them in memory, and less memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils import check_random_state

from overcover import GP, OverlappingCoverRegressor, _neighbors, partition
from overcover._neighbors import nearest_rows
from overcover._streams import (
    Rows,
    center_of,
    moments_of,
    slices_of,
    typical_moments_of,
    without_far_cells,
)
from overcover.partition import partition_rows
from overcover.tuning import twin
from overcover.tuning._twin_sets import make_sets


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr("overcover._streams.BLOCK_NUMBERS", 64)


def draw(*shape, seed=0):
    return np.random.default_rng(seed).normal(size=shape)


def nearest_by_sorting(A, B, n_neighbors):
    """The slow, obvious version."""
    dist_sq = np.sum((B[:, None] - A) ** 2, axis=2)
    return np.sort(np.argsort(dist_sq, axis=1, kind="stable")[:, :n_neighbors])


@given(st.integers(0, 200), st.integers(1, 100))
def test_slices_hold_every_row_once(n_rows, n_columns):
    found = [np.arange(n_rows)[block] for block in slices_of(n_rows, n_columns)]
    assert_array_equal(np.concatenate([[], *found]), np.arange(n_rows))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_moments_are_those_of_all_rows(dtype, small_blocks):
    X = (1e3 + draw(100, 3)).astype(dtype)
    X[:, 1] = 1e9
    mean, deviation, is_constant = moments_of(X)
    assert_allclose(mean, X.mean(axis=0, dtype=float), rtol=1e-12)
    assert_allclose(deviation, X.std(axis=0, dtype=float), rtol=1e-9, atol=1e-6)
    assert_array_equal(is_constant, [False, True, False])


def test_a_view_shows_what_the_formula_says():
    X, scale, shift = draw(20, 4), np.array([1.0, 2.0, np.inf, 4.0]), draw(4, seed=1)
    columns = np.array([True, False, True, True])
    rows, expected = Rows(X, scale, shift, columns), ((X - shift) / scale)[:, columns]
    assert rows.shape == expected.shape and len(rows) == 20
    for asked in (slice(3, 9), [4, 4, 1], np.array([[0, 1], [2, 3]]), 7):
        assert_array_equal(rows[asked], expected[asked])
    assert_array_equal(np.asarray(rows), expected)
    assert Rows(X.astype(np.float32))[:].dtype == np.float64


@pytest.mark.parametrize("n_neighbors", [1, 5, 40])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_nearest_rows_are_those_of_sorting(n_neighbors, n_jobs, small_blocks):
    X, queries, scale = draw(50, 3), draw(7, 3, seed=1), np.array([1.0, 0.1, np.inf])
    rows = np.sort(np.random.default_rng(2).permutation(50)[:41])
    found = nearest_rows(X, queries, n_neighbors, n_jobs, rows, scale)
    near = nearest_by_sorting(X[rows] / scale, queries / scale, n_neighbors)
    assert_array_equal(found, near)


@pytest.mark.parametrize("order", ["chance", "nearest in the sample"])
def test_nearest_of_many_rows_are_those_of_sorting(order):
    # The guess how near they are is good, or much too near.
    n, queries = 5000, draw(3, 2, seed=1)
    X = draw(n, 2)
    if order != "chance":
        X = 3.0 + np.abs(X)
        sample = np.linspace(0, n - 1, _neighbors.SAMPLE).astype(int)
        X[sample[::5]] = queries[0] + 1e-3 * draw(len(sample[::5]), 2)
    found = nearest_rows(X, queries, 200)
    assert_array_equal(found, nearest_by_sorting(X, queries, 200))


def test_among_coincident_rows_the_first_are_nearest(small_blocks):
    X = np.ones((90, 2))
    found = [nearest_rows(X, X[:2], 5, n_jobs) for n_jobs in (1, 2, 4)]
    for near in found:
        assert_array_equal(near, [np.arange(5)] * 2)


@pytest.fixture
def mapped(tmp_path):
    """Rows in a file."""

    def make(n_rows, n_columns):
        X = draw(n_rows, n_columns).astype(np.float32)
        np.save(tmp_path / "X.npy", X)
        return np.load(tmp_path / "X.npy", mmap_mode="r")

    return make


def peak_of(call, *args):
    """Most bytes that a call held at once; mapped files do not count."""
    tracemalloc.start()
    call(*args)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak


class Watched:
    """Rows that count how many of them are taken at once."""

    def __init__(self, X):
        self.X, self.shape, self.most_taken = X, X.shape, 0

    def __len__(self):
        return len(self.X)

    def __getitem__(self, rows):
        taken = self.X[rows]
        self.most_taken = max(self.most_taken, taken.size // self.shape[1])
        return taken


def tune_gp(X, y):
    GP(length_scale=1.0).tune(X, y, None, 60, check_random_state(0), None)


def choose_twin_sets(X, y):
    ones, rng = np.ones(len(y)), check_random_state(0)
    make_sets(X, y, ones, twin.units(X), 60, rng, None)


@pytest.mark.parametrize("look", [tune_gp, choose_twin_sets])
def test_tuning_takes_no_more_rows_of_more(look, monkeypatch):
    monkeypatch.setattr("overcover._streams.BLOCK_NUMBERS", 2**10)
    monkeypatch.setattr("overcover.tuning._judge.SET_SIZE", 40)
    most_taken = []
    for n_rows in (2400, 4800):
        X = Watched(draw(n_rows, 2))
        look(X, np.sin(X.X[:, :1]))
        most_taken.append(X.most_taken)
    assert most_taken[1] <= most_taken[0]


def test_wide_rows_are_partitioned_in_bounded_memory(mapped, monkeypatch):
    monkeypatch.setattr("overcover._streams.BLOCK_NUMBERS", 2**16)
    monkeypatch.setattr("overcover.partition._arrays.SAMPLED_ROWS", 500)
    X = mapped(3000, 1200)
    found = []
    peak = peak_of(lambda: found.append(partition_rows(X, 7, "rpc", None, 0)))
    assert peak < X.nbytes
    sizes = np.bincount(found[0].labels)
    assert sizes.max() - sizes.min() <= 1


def test_principal_components_lose_little_of_a_partition(monkeypatch):
    """Rows that vary in a few directions and a little in all."""
    X = draw(400, 5) @ draw(5, 50, seed=1) + 0.05 * draw(400, 50, seed=2)

    def spread(found):
        groups = zip(found.clusters(), found.centers)
        return sum(np.sum((X[rows] - center) ** 2) for rows, center in groups)

    full = spread(partition_rows(X, 8, random_state=0))
    monkeypatch.setattr(partition, "MOST_COLUMNS", 20)
    monkeypatch.setattr("overcover.partition._arrays.N_COMPONENTS", 10)
    assert spread(partition_rows(X, 8, random_state=0)) < 1.02 * full


def test_float32_rows_give_the_model_of_their_values():
    """They are kept as they are, and converted where they are looked at."""
    X = draw(300, 2).astype(np.float32)
    y = np.sin(X[:, 0]).astype(float)
    model = OverlappingCoverRegressor(subdomain_size=60, random_state=0)
    narrow = model.fit(X, y).predict(X, return_std=True)
    assert_array_equal(
        narrow, model.fit(X.astype(float), y).predict(X, return_std=True)
    )


ORDINARY = {
    "normal": draw(500, 3),
    "heavy tails": draw(500, 3) ** 5,
    "lognormal": np.exp(2.0 * draw(500, 3)),
    "one in fifty": (draw(500, 3) > 2.0).astype(float),
    "a single one": np.eye(500, 3),
    "far from zero": 1e9 + draw(500, 3),
    "two groups": np.sign(draw(500, 3)) * 1e6 + draw(500, 3),
    "few rows": draw(9, 3),
    "two rows": draw(2, 3),
    "powers of ten": 10.0 ** np.arange(-3, 3)[:, None],
}


@pytest.mark.parametrize("X", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_columns_are_measured_with_all_their_cells(X):
    for typical, plain in zip(typical_moments_of(X), moments_of(X)):
        assert_array_equal(typical, plain)
    assert_array_equal(center_of(X), X.mean(axis=0))
    assert without_far_cells(X) is X


@pytest.mark.parametrize("value", [1e4, 1e6, -1e9, 1e100])
@pytest.mark.parametrize("n_samples", [20, 500, 5000])
def test_one_cell_does_not_outweigh_all_others(value, n_samples, small_blocks):
    X = draw(n_samples, 3)
    expected = moments_of(X)
    far = X.copy()
    far[n_samples // 2, 1] = value
    mean, deviation, is_constant = typical_moments_of(far)
    assert_array_equal(deviation[[0, 2]], expected.deviation[[0, 2]])
    assert_allclose(deviation[1], expected.deviation[1], rtol=0.2)
    assert_allclose(mean[1], expected.mean[1], atol=0.2)
    assert not is_constant.any()
    near = without_far_cells(far)[:]
    assert np.abs(near).max() < 20
    assert_array_equal(near != far, far == value)
