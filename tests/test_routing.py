"""Routers agree with their definitions, one query and one subdomain at a time."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import OAS

import reference
from overcover import routing
from overcover.combination import weights_of
from overcover.cover import Cover, cover_partition
from overcover.partition import Partition, partition_rows

quick = settings(deadline=None, max_examples=40)


@pytest.fixture
def covered(rng):
    """Clustered rows, their labels and their cover, in 3 dimensions."""
    X = rng.normal(size=(160, 3)) * [1.0, 3.0, 0.3]
    partition = partition_rows(X, 10, random_state=0)
    return X, partition.labels, cover_partition(X, partition, 40, 0.6, 1.0)


@pytest.fixture
def asked(rng):
    return rng.normal(size=(25, 3)) * [1.0, 3.0, 0.3]


def slow_distances(name, X, cover, query):
    """The distance of a query to every subdomain, by definition."""
    distances = []
    for members in cover.members:
        offset = query - X[members].mean(axis=0)
        if name == "euclidean":
            distances.append(np.sqrt(offset @ offset))
            continue
        Sigma = OAS().fit(X[members]).covariance_
        dist_sq = offset @ np.linalg.inv(Sigma) @ offset
        if name == "density":
            dist_sq += np.log(np.linalg.det(Sigma))
        distances.append(np.sqrt(dist_sq) if name == "mahalanobis" else dist_sq)
    return np.array(distances)


@pytest.mark.parametrize(
    "name", ["euclidean", "mahalanobis", "mahalanobis-squared", "density"]
)
@pytest.mark.parametrize("n_consulted", [1, 4, 10])
def test_routers_match_their_definition(name, n_consulted, covered, asked):
    X, labels, cover = covered
    router = routing.make_router(name, X, cover, labels)
    route = router.route(asked, n_consulted)
    assert route.subdomains.shape == route.distances.shape == (25, n_consulted)
    for query, subdomains, distances in zip(asked, *route):
        slow = slow_distances(name, X, cover, query)
        assert subdomains.tolist() == reference.nearest_by(slow, n_consulted)
        if name == "density":
            # Counted from the least log volume of those consulted.
            slow = np.sqrt(slow - router.log_volumes[subdomains].min())
        assert_allclose(distances, slow[subdomains], rtol=1e-6)


def test_the_squared_router_gives_the_weights_that_the_paper_prints(covered, asked):
    """a_i = L_i / sum L, with L = 1 / D and D the squared Mahalanobis form."""
    X, labels, cover = covered
    root, squared = (
        routing.make_router(name, X, cover, labels).route(asked, 3)
        for name in ("mahalanobis", "mahalanobis-squared")
    )
    assert_array_equal(squared.subdomains, root.subdomains)
    a = weights_of("inverse-distance", squared.distances)[..., 0]
    for query, subdomains, weights in zip(asked, squared.subdomains, a):
        D = slow_distances("mahalanobis-squared", X, cover, query)[subdomains]
        assert_allclose(weights, (1 / D) / np.sum(1 / D), rtol=1e-6)
    # The nearest counts more than with the root.
    assert (a[:, 0] >= weights_of("inverse-distance", root.distances)[:, 0, 0]).all()


@pytest.mark.parametrize("name", routing.ROUTERS)
def test_distances_ascend_and_no_one_is_asked_twice(name, covered, asked):
    X, labels, cover = covered
    route = routing.make_router(name, X, cover, labels).route(asked, 10)
    assert (np.diff(route.distances, axis=1) >= 0).all()
    assert (route.distances >= 0).all()
    assert_array_equal(np.sort(route.subdomains, axis=1), [np.arange(10)] * 25)


@pytest.mark.parametrize("name", routing.ROUTERS)
def test_routes_do_not_depend_on_the_number_of_workers(name, covered, asked):
    X, labels, cover = covered
    one, two = (
        routing.make_router(name, X, cover, labels, n).route(asked, 3, n)
        for n in (1, 2)
    )
    assert_array_equal(one.subdomains, two.subdomains)
    assert_array_equal(one.distances, two.distances)


def symmetric_subdomains():
    """Four equal squares around the origin."""
    square = np.array([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
    corners = np.array([[4.0, 0.0], [0.0, 4.0], [-4.0, 0.0], [0.0, -4.0]])
    X = np.vstack([square + corner for corner in corners])
    labels = np.repeat(np.arange(4), 4)
    return X, labels, cover_partition(X, Partition(labels, corners), 4, 0.0, 1.0)


@pytest.mark.parametrize("name", ["euclidean", "mahalanobis", "density", "neighbors"])
def test_ties_go_to_the_lower_index(name):
    X, labels, cover = symmetric_subdomains()
    route = routing.make_router(name, X, cover, labels).route(np.zeros((1, 2)), 4)
    assert route.subdomains.tolist() == [[0, 1, 2, 3]]
    assert np.ptp(route.distances) <= 1e-9


# -- what a router says of itself -----------------------------------------------------


@pytest.mark.parametrize("name", routing.ROUTERS)
def test_a_router_is_made_of_the_arrays_that_it_names(name, covered, asked):
    """A store writes these, and nothing else."""
    X, labels, cover = covered
    router = routing.make_router(name, X, cover, labels)
    fields = {field: getattr(router, field) for field in router.shapes}
    for field, letters in router.shapes.items():
        assert fields[field].ndim == len(letters.split())
    expected, route = (r.route(asked, 3) for r in (router, type(router)(**fields)))
    assert_array_equal(route.subdomains, expected.subdomains)
    assert_array_equal(route.distances, expected.distances)
    assert "distance" in router.measure


@pytest.mark.parametrize("name", routing.ROUTERS)
def test_a_route_has_more_columns_than_are_consulted_only_where_certainty_decides(
    name, covered, asked
):
    X, labels, cover = covered
    router = routing.make_router(name, X, cover, labels)
    n_columns = router.route(asked, 2).subdomains.shape[1]
    assert n_columns == (router.n_listed if router.certainty_decides else 2)


# -- neighbors ------------------------------------------------------------------------


def slow_votes(X, labels, query):
    nearest = np.argsort(np.linalg.norm(X - query, axis=1), kind="stable")
    return np.bincount(labels[nearest[: routing.N_NEIGHBORS]], minlength=10)


def test_most_votes_of_the_nearest_rows_win(covered, asked):
    X, labels, cover = covered
    route = routing.make_router("neighbors", X, cover, labels).route(asked, 2)
    for query, subdomains, distances in zip(asked, *route):
        votes = slow_votes(X, labels, query)
        assert votes[subdomains[0]] == votes.max()
        assert votes[subdomains[1]] == np.sort(votes)[-2]
        voted = votes[subdomains] > 0
        assert_allclose(distances[voted], 1.0 / votes[subdomains[voted]])


def test_of_as_many_votes_the_owner_of_the_nearest_row_comes_first(rng):
    """Every row a cluster: all that are asked have one vote."""
    X = rng.normal(size=(30, 2))
    members = [np.array([i]) for i in range(30)]
    cover = Cover(members, np.ones(30, dtype=int))
    router = routing.make_router("neighbors", X, cover, np.arange(30))
    queries = X + 1e-3
    expected = np.argsort(np.linalg.norm(queries[:, None] - X, axis=2), axis=1)
    assert_array_equal(router.route(queries, 3).subdomains, expected[:, :3])


def test_clusters_without_a_vote_follow_by_distance(rng):
    """Five far apart clusters on a line; a query deep in the last one."""
    centers = np.array([0.0, 100.0, 200.0, 300.0, 400.0])
    X = (centers[:, None] + rng.normal(size=(5, 20))).reshape(-1, 1)
    labels = np.repeat(np.arange(5), 20)
    partition = Partition(labels, centers[:, None])
    cover = cover_partition(X, partition, 20, 0.0, 1.0)
    router = routing.make_router("neighbors", X, cover, labels)
    route = router.route(np.array([[400.0]]), 3)
    assert route.subdomains.tolist() == [[4, 3, 2]]


# -- covariances ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ["mahalanobis", "density"])
@pytest.mark.parametrize("n_features", [30, 60])
def test_subdomains_with_more_columns_than_rows_have_a_sound_covariance(
    name, n_features, rng
):
    X = rng.normal(size=(60, n_features))
    partition = partition_rows(X, 6, random_state=0)
    cover = cover_partition(X, partition, 20, 0.5, 1.0)
    router = routing.make_router(name, X, cover, partition.labels)
    for members, whitener in zip(cover.members, router.whiteners):
        Sigma = OAS().fit(X[members]).covariance_
        assert_allclose(whitener @ Sigma @ whitener.T, np.eye(n_features), atol=1e-6)
    route = router.route(X, 6)
    assert np.isfinite(route.distances).all()


def test_wide_inputs_are_measured_in_their_principal_subspace(rng):
    """Ten strong directions in 200 columns; the weak ones decide nothing."""
    basis = np.linalg.qr(rng.normal(size=(200, 10)))[0]
    strong = rng.normal(size=(300, 10)) * 10
    X = strong @ basis.T + 1e-3 * rng.normal(size=(300, 200))
    directions = routing.principal_directions(X)
    assert directions.shape == (200, routing.MOST_DIRECTIONS)
    gram = directions.T @ directions
    assert_allclose(gram, np.eye(routing.MOST_DIRECTIONS), atol=1e-10)
    assert_allclose(directions @ (directions.T @ basis), basis, atol=1e-4)
    partition = partition_rows(X, 6, random_state=0)
    cover = cover_partition(X, partition, 100, 0.5, 1.0)
    for name in routing.ROUTERS:
        router = routing.make_router(name, X, cover, partition.labels)
        route = router.route(X[:20], 2)
        assert np.isfinite(route.distances).all()


def test_narrow_inputs_are_measured_as_they_are(rng):
    X = rng.normal(size=(50, routing.MOST_DIRECTIONS))
    assert_array_equal(routing.principal_directions(X), np.eye(X.shape[1]))


def test_a_diffuse_subdomain_is_near_to_everything_but_not_dense(rng):
    """Why "density" exists: the log volume holds a wide covariance to account."""
    tight, wide = rng.normal(size=(200, 2)), 30 * rng.normal(size=(200, 2)) + [40, 0]
    X, labels = np.vstack([tight, wide]), np.repeat([0, 1], 200)
    centers = np.array([tight.mean(axis=0), wide.mean(axis=0)])
    cover = cover_partition(X, Partition(labels, centers), 200, 0.0, 1.0)
    query = np.array([[2.5, 0.0]])
    by_shape = routing.make_router("mahalanobis", X, cover, labels).route(query, 1)
    by_density = routing.make_router("density", X, cover, labels).route(query, 1)
    assert by_shape.subdomains.item() == 1
    assert by_density.subdomains.item() == 0


@pytest.mark.parametrize("name", routing.ROUTERS)
def test_a_pile_far_away_changes_no_distance(name, covered, asked):
    """Equal rows have next to no volume, which is nothing to queries elsewhere."""
    X, labels, cover = covered
    expected = routing.make_router(name, X, cover, labels).route(asked, 3)
    pile = np.full((40, 3), 500.0)
    members = [*cover.members, len(X) + np.arange(40)]
    more = Cover(members, np.append(cover.n_owned, 40))
    labels = np.append(labels, np.full(40, 10))
    router = routing.make_router(name, np.vstack([X, pile]), more, labels)
    route = router.route(asked, 3)
    assert_array_equal(route.subdomains, expected.subdomains)
    assert_array_equal(route.distances, expected.distances)


def test_one_consulted_by_density_is_as_far_as_by_its_covariance(covered, asked):
    X, labels, cover = covered
    dense = routing.make_router("density", X, cover, labels).route(asked, 1)
    near = routing.make_router("mahalanobis", X, cover, labels).route(asked, 10)
    which = near.subdomains == dense.subdomains
    assert_allclose(dense.distances[:, 0], near.distances[which], rtol=1e-9)


@pytest.mark.parametrize("name", ["mahalanobis", "density"])
def test_piles_of_equal_rows_are_as_near_as_they_lie(name):
    """Rounding leaves some piles a variance of 1e-34, others none at all."""
    places = np.array([[0.25], [0.3], [0.7], [0.1]])
    labels = np.repeat(np.arange(4), 20)
    members = [np.flatnonzero(labels == k) for k in range(4)]
    cover = Cover(members, np.full(4, 20))
    router = routing.make_router(name, places[labels], cover, labels)
    near = places + 0.01
    route = router.route(near, 4)
    order = np.argsort(np.abs(near - places.T), axis=1)
    assert_array_equal(route.subdomains, order)
    expected = np.take_along_axis(np.abs(near - places.T), order, axis=1)
    assert_allclose(route.distances, expected * 1e6, rtol=1e-6)


@pytest.mark.parametrize("n_subdomains", [70, 200])
def test_a_long_list_is_shortened_by_euclidean_distance(n_subdomains, rng):
    X = rng.normal(size=(2 * n_subdomains, 2))
    partition = partition_rows(X, n_subdomains, random_state=0)
    cover = cover_partition(X, partition, 8, 0.75, 1.0)
    router = routing.make_router("mahalanobis", X, cover, partition.labels)
    near = routing.EuclideanRouter(router.means).route(X, routing.SHORTLIST).subdomains
    for listed, chosen in zip(near, router.route(X, 5).subdomains):
        assert set(chosen) <= set(listed)


# -- groups and candidates ------------------------------------------------------------


@quick
@given(
    arrays(
        int,
        st.tuples(st.integers(1, 12), st.integers(1, 4)),
        elements=st.integers(-1, 5),
    )
)
def test_groups_hold_every_question_once(subdomains):
    table = np.full(subdomains.shape, -1)
    names = []
    for k, (queries, slots) in routing.grouped(subdomains):
        names.append(k)
        assert (np.diff(queries) >= 0).all()
        assert (table[queries, slots] == -1).all()
        table[queries, slots] = k
    assert_array_equal(table, subdomains)
    assert names == sorted(set(names) - {-1})


@quick
@given(arrays(float, (6, 5), elements=st.floats(0, 10)), st.integers(1, 5))
def test_the_most_certain_have_the_smallest_variances(variances, n_consulted):
    subdomains = np.tile(np.arange(10, 15), (6, 1))
    route = routing.Route(subdomains, np.ones((6, 5)))
    certain, kept = routing.most_certain(route, variances[..., None], n_consulted)
    for q in range(6):
        expected = reference.nearest_by(variances[q], n_consulted)
        assert kept[q, :, 0].tolist() == expected
        assert certain.subdomains[q].tolist() == [10 + k for k in expected]
        assert_allclose(certain.distances[q], np.sqrt(variances[q][expected]))


@pytest.mark.parametrize("n_consulted", [1, 3, 10])
def test_candidates_are_the_nearest_and_those_nearly_as_near(
    n_consulted, covered, asked
):
    X, labels, cover = covered
    router = routing.make_router("variance", X, cover, labels)
    route = router.route(asked, n_consulted)
    for query, subdomains in zip(asked, route.subdomains):
        slow = slow_distances("euclidean", X, cover, query)
        order = reference.nearest_by(slow, max(n_consulted, routing.N_CANDIDATES))
        near = [k for k in order if slow[k] <= routing.REACH * slow.min()]
        expected = order[: max(n_consulted, len(near))]
        assert subdomains[subdomains >= 0].tolist() == expected
