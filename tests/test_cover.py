"""Covers: everyone owns its cluster, borrows what is missing, from the nearest."""

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import reference
from overcover import GP, OverlappingCoverRegressor
from overcover.cover import (
    CoverShape,
    auto_size,
    count_lenders,
    count_subdomains,
    cover_partition,
    quotas,
)
from overcover.partition import Partition, partition_rows

quick = settings(deadline=None, max_examples=60)
OVERLAPS = (0.0, 0.1, 0.3, 0.5, 0.75, 0.9, 0.95)


@st.composite
def partitioned_rows(draw, least_clusters=2):
    """Rows and a partition of them into clusters of nearly equal size.

    Rows come from a few values now and then, so that rows, and even centres, coincide.
    """
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_clusters = draw(st.integers(least_clusters, 12))
    n_samples = draw(st.integers(n_clusters, 80))
    X = rng.normal(size=(n_samples, draw(st.integers(1, 4))))
    if draw(st.booleans()):
        X = np.round(X)
    labels = rng.permutation(np.arange(n_samples) % n_clusters)
    centers = np.array([X[labels == k].mean(axis=0) for k in range(n_clusters)])
    return X, Partition(labels, centers)


def check_cover(X, partition, size, overlap, spread):
    """A cover keeps the invariants of the method, whatever the rows."""
    cover = cover_partition(X, partition, size, overlap, spread)
    clusters = [
        np.flatnonzero(partition.labels == k) for k in range(len(cover.members))
    ]
    assert len(cover.members) == len(partition.centers)
    for members, n_owned, cluster in zip(cover.members, cover.n_owned, clusters):
        assert_array_equal(members[:n_owned], cluster, "the owned rows come first")
        assert len(np.unique(members)) == len(members), "no row twice"
        if overlap > 0:
            assert len(members) == max(min(size, len(X)), len(cluster))
    owned = [members[:n] for members, n in zip(cover.members, cover.n_owned)]
    assert_array_equal(np.sort(np.concatenate(owned)), np.arange(len(X)))
    return cover


# -- counts ---------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", OVERLAPS)
@pytest.mark.parametrize("n_samples", [1, 50, 799, 800, 801, 36_000])
def test_a_shape_is_decided_by_the_parameters_of_a_model(n_samples, overlap):
    model = OverlappingCoverRegressor(overlap=overlap, spread=2.0)
    shape = CoverShape.of(model, n_samples)
    assert shape == CoverShape.at(n_samples, 800, overlap, 2.0)
    assert shape.size == min(800, n_samples)
    assert shape.n_subdomains == count_subdomains(n_samples, 800, overlap)
    assert shape.n_lenders == count_lenders(overlap, 2.0, shape.n_subdomains)


@pytest.mark.parametrize("machine", [None, "tgp", GP(per_output=True)])
def test_a_shape_of_auto_is_that_of_the_rule(machine):
    model = OverlappingCoverRegressor(machine, subdomain_size="auto", overlap=0.75)
    shape = CoverShape.of(model, 10**5, 3)
    assert shape == CoverShape.at(10**5, auto_size(10**5, 3, 0.75, machine), 0.75)


@pytest.mark.parametrize("size", [40, 300, "auto"])
def test_a_fit_has_the_shape_that_was_decided(size):
    X = np.random.default_rng(0).normal(size=(150, 2))
    machine = GP(length_scale=1.0, noise=0.1)
    model = OverlappingCoverRegressor(machine, subdomain_size=size, overlap=0.5)
    shape = CoverShape.of(model, len(X))
    model.fit(X, X[:, 0])
    fitted = model.subdomain_size_, model.n_subdomains_, model.n_lenders_
    assert fitted == (shape.size, shape.n_subdomains, shape.n_lenders)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"subdomain_size": 0}, "subdomain_size=0 must be an integer >= 1"),
        ({"subdomain_size": "all"}, "subdomain_size='all' must be a number of rows"),
        ({"overlap": 1.0}, "overlap=1.0 must be at least 0 and below 1"),
        ({"spread": 0.5}, "spread=0.5 must be a number >= 1"),
    ],
)
def test_a_shape_that_makes_no_sense_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        CoverShape.of(OverlappingCoverRegressor(**options), 100)


@pytest.mark.parametrize(
    ("overlap", "spread", "expected"),
    [(0.9, 1, 9), (0.9, 2, 18), (0.8, 1, 4), (0.5, 1, 1), (0.95, 1, 19), (0.6, 1, 2)]
    + [(0.0, 3, 0), (0.99, 1, 99), (0.9, 1.5, 14)],
)
def test_the_ceiling_is_not_fooled_by_rounding(overlap, spread, expected):
    """0.9 / (1 - 0.9) is 9.000000000000002, and its ceiling is still 9."""
    assert count_lenders(overlap, spread, 10**6) == expected


@pytest.mark.parametrize("tenths", range(10))
def test_a_share_of_tenths_gives_the_exact_number_of_lenders(tenths):
    expected = -(-tenths // (10 - tenths))
    assert count_lenders(tenths / 10, 1.0, 10**6) == expected


def test_no_one_borrows_from_more_clusters_than_there_are():
    assert count_lenders(0.9, 2.0, 5) == 4
    assert count_lenders(0.9, 2.0, 1) == 0


@pytest.mark.parametrize("n_samples", [801, 8000, 36_000, 10**7])
@pytest.mark.parametrize("tenths", range(10))
def test_the_number_of_subdomains_is_the_exact_ceiling(n_samples, tenths):
    expected = -(-10 * n_samples // ((10 - tenths) * 800))
    assert count_subdomains(n_samples, 800, tenths / 10) == expected


@pytest.mark.parametrize("n_samples", [1, 799, 800])
def test_one_subdomain_holds_what_fits_into_it(n_samples):
    assert count_subdomains(n_samples, 800, 0.9) == 1


@given(st.integers(1, 500), st.integers(1, 500), st.floats(0, 0.999))
def test_no_cluster_is_empty_nor_larger_than_a_subdomain(n_samples, size, overlap):
    n_subdomains = count_subdomains(n_samples, size, overlap)
    assert 1 <= n_subdomains <= n_samples
    assert -(-n_samples // n_subdomains) <= size


# -- quotas ---------------------------------------------------------------------------


@st.composite
def loans(draw):
    distances = draw(st.lists(st.floats(0.01, 100), min_size=1, max_size=10))
    size = st.lists(
        st.integers(1, 30), min_size=len(distances), max_size=len(distances)
    )
    capacities = draw(size)
    wanted = draw(st.integers(0, sum(capacities)))
    return np.sort(distances), np.array(capacities), wanted


@quick
@given(loans())
def test_quotas_follow_the_literal_rule(loan):
    given_rows = quotas(*loan)
    distances, capacities, wanted = loan
    assert given_rows.sum() == wanted
    assert (given_rows >= 0).all() and (given_rows <= capacities).all()
    shares = wanted / distances / np.sum(1 / distances)
    # On an integer, rounding decides which side the floor falls.
    assume(np.abs(shares - np.round(shares)).min() > 1e-9)
    assert given_rows.tolist() == reference.lend(distances, capacities, wanted)


def test_equal_distances_lend_equally():
    assert quotas(np.ones(4), np.full(4, 10), 12).tolist() == [3, 3, 3, 3]


def test_what_rounding_left_goes_to_the_nearest():
    assert quotas(np.ones(4), np.full(4, 10), 14).tolist() == [4, 4, 3, 3]


def test_what_one_lacks_the_others_give_nearest_first():
    distances, capacities = np.array([1.0, 1.0, 1.0]), np.array([1, 10, 10])
    assert quotas(distances, capacities, 12).tolist() == [1, 7, 4]


@pytest.mark.parametrize("distances", [[0.0, 0.0], [0.0, 1.0], [1e-150, 1e150]])
def test_coincident_centres_still_lend_what_is_wanted(distances):
    given_rows = quotas(np.array(distances), np.array([6, 6]), 9)
    assert given_rows.sum() == 9
    assert given_rows.max() <= 6


# -- covers ---------------------------------------------------------------------------


@quick
@given(
    partitioned_rows(least_clusters=1),
    st.integers(1, 90),
    st.sampled_from(OVERLAPS),
    st.floats(1, 5),
)
def test_every_cover_keeps_the_invariants(rows, size, overlap, spread):
    check_cover(*rows, size, overlap, spread)


@quick
@given(partitioned_rows(), st.integers(1, 90))
def test_overlap_zero_gives_the_partition_back(rows, size):
    X, partition = rows
    cover = check_cover(X, partition, size, overlap=0.0, spread=1.0)
    for members, cluster in zip(cover.members, partition.clusters()):
        assert_array_equal(members, cluster)


@quick
@given(partitioned_rows(), st.integers(2, 90), st.sampled_from(OVERLAPS[1:]))
def test_the_cover_follows_the_literal_rule(rows, size, overlap):
    X, partition = rows
    # The slow rule divides by the distances of centres.
    assume(len(np.unique(partition.centers, axis=0)) == len(partition.centers))
    size = max(size, np.bincount(partition.labels).max())
    n_lenders = count_lenders(overlap, 1.0, len(partition.centers))
    expected = reference.cover(X, *partition, size, n_lenders)
    cover = cover_partition(X, partition, size, overlap, 1.0)
    for members, n_owned, (_, borrowed) in zip(cover.members, cover.n_owned, expected):
        differing = borrowed.symmetric_difference(members[n_owned:].tolist())
        # Only where two rows or two quotas tie in exact arithmetic may they differ.
        assume(not differing or not has_ties(X, partition))
        assert not differing


def has_ties(X, partition):
    """Whether rows or centres are equally far from a centre, but for rounding."""
    for center in partition.centers:
        for points in (X, partition.centers):
            distances = np.sort(np.linalg.norm(points - center, axis=1))
            if (np.diff(distances) <= 1e-9 * (1 + distances[:-1])).any():
                return True
    return False


@quick
@given(partitioned_rows(), st.integers(2, 90), st.sampled_from(OVERLAPS[1:]))
def test_lenders_lend_their_rows_nearest_to_the_borrower(rows, size, overlap):
    X, partition = rows
    cover = check_cover(X, partition, size, overlap, spread=1.0)
    for i, (members, n_owned) in enumerate(zip(cover.members, cover.n_owned)):
        distance = np.linalg.norm(X - partition.centers[i], axis=1)
        borrowed = np.zeros(len(X), bool)
        borrowed[members[n_owned:]] = True
        for j in set(partition.labels[borrowed]):
            lent = distance[borrowed & (partition.labels == j)]
            kept = distance[~borrowed & (partition.labels == j)]
            if len(kept):
                assert lent.max() <= kept.min() + 1e-9


@quick
@given(partitioned_rows(), st.integers(2, 40), st.sampled_from(OVERLAPS[1:]))
def test_lenders_are_the_nearest_clusters(rows, size, overlap):
    X, partition = rows
    cover = check_cover(X, partition, size, overlap, spread=1.0)
    sizes = np.bincount(partition.labels)
    for i, (members, n_owned) in enumerate(zip(cover.members, cover.n_owned)):
        distance = np.linalg.norm(partition.centers - partition.centers[i], axis=1)
        distance[i] = -1.0
        order = np.argsort(distance, kind="stable")[1:]
        wanted = len(members) - n_owned
        enough = 1 + int(np.searchsorted(np.cumsum(sizes[order]), wanted))
        n_lenders = max(count_lenders(overlap, 1.0, len(sizes)), enough)
        lenders = set(partition.labels[members[n_owned:]])
        farthest = distance[order[:n_lenders]].max(initial=0.0)
        assert all(distance[j] <= farthest + 1e-9 for j in lenders)


def test_more_spread_borrows_from_more_clusters():
    X = np.random.default_rng(0).normal(size=(400, 2))
    partition = partition_rows(X, 40, random_state=0)
    lenders = []
    for spread in (1.0, 3.0):
        cover = cover_partition(X, partition, 40, 0.75, spread)
        borrowed = [m[n:] for m, n in zip(cover.members, cover.n_owned)]
        lenders.append(np.mean([len(set(partition.labels[b])) for b in borrowed]))
    assert lenders[0] <= 3 < lenders[1]


def test_the_cover_does_not_depend_on_the_number_of_workers():
    X = np.random.default_rng(0).normal(size=(300, 2))
    partition = partition_rows(X, 30, random_state=0)
    one, two = (cover_partition(X, partition, 40, 0.75, 2.0, n) for n in (1, 2))
    for this, that in zip(one.members, two.members):
        assert_array_equal(this, that)


# -- degenerate rows ------------------------------------------------------------------

SQUARE = np.random.default_rng(0).uniform(size=(120, 2))
DEGENERATE = {
    "all rows equal": np.ones((120, 2)),
    "two values only": np.repeat([[0.0], [1.0]], 60, axis=0),
    "duplicate rows": np.repeat(SQUARE[:30], 4, axis=0),
    "a constant column": np.column_stack([SQUARE, np.full(120, 7.0)]),
    "a line": np.linspace(0, 1, 120)[:, None] * [1.0, 2.0],
    "far from the origin": SQUARE + 1e9,
    "tiny": SQUARE * 1e-12,
    "huge": SQUARE * 1e12,
}


@pytest.mark.parametrize("overlap", [0.0, 0.5, 0.9])
@pytest.mark.parametrize("X", DEGENERATE.values(), ids=DEGENERATE.keys())
def test_degenerate_rows_are_covered_all_the_same(X, overlap):
    n_subdomains = count_subdomains(len(X), 30, overlap)
    for method in ("kmeans", "rpc"):
        partition = partition_rows(X, n_subdomains, method, random_state=0)
        check_cover(X, partition, 30, overlap, spread=1.0)


@pytest.mark.parametrize("n_samples", [1, 2, 39, 40, 41, 44, 45])
def test_a_fitted_cover_is_full_however_many_rows(n_samples):
    X = np.random.default_rng(0).normal(size=(n_samples, 2))
    model = OverlappingCoverRegressor(
        GP(length_scale=1.0, noise=0.1), subdomain_size=40, random_state=0
    ).fit(X, X[:, 0])
    assert {len(members) for members in model.cover_.members} == {min(40, n_samples)}
    assert model.n_subdomains_ == (1 if n_samples <= 40 else -(-n_samples // 4))
    assert model.n_lenders_ == min(18, model.n_subdomains_ - 1)
