r"""Routing: the subdomains that predict a query, and their distances.

    X, Y -> metric -> partition -> cover -> machines -> [routing] -> combination
    -> prediction

All distances are in the machine's metric: rows divided by its length scales. A
subdomain is summarised by the mean (and the covariance) of its members:

- "euclidean": :math:`\lVert x - \mu'_k \rVert` (the paper's mode 1);
- "mahalanobis": :math:`\lVert L_k^{-1} (x - \mu'_k) \rVert` with
  :math:`\Sigma'_k = L_k L_k^\top` shrunk (mode 3);
- "mahalanobis-squared": the square of this distance, as the paper prints it. The same
  subdomains answer, but weights 1/distance prefer the nearest more;
- "density": the squared distance plus :math:`\log |\Sigma'_k|`, so that a diffuse
  subdomain is not near to everything. The distance to a subdomain k that a query
  consults, out of the set C of all that it consults, is the root of
  :math:`\lVert L_k^{-1} (x - \mu'_k) \rVert^2 + \log |\Sigma'_k|
  - \min_{c \in C} \log |\Sigma'_c|`;
- "neighbors": the clusters that own most of the query's nearest rows (mode 2); of
  clusters with equally many, the owner of the nearest row;
- "variance": the nearest few are candidates, and the posterior variances of their
  machines decide between them; see `most_certain` and `overcover.consult`.

Notation: the paper's :math:`K'` is ``n_consulted``. Ties go to the lower index.
"""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from ._neighbors import nearest_centers
from ._parallel import run_tasks
from ._streams import slices_of

# Candidates among which the variance decides: the nearest by Euclidean distance, as
# long as they are not much farther than the nearest of all. Three within a tenth are
# fewer than two on average: asking more costs more than it gains (docs/routing.md).
N_CANDIDATES, REACH = 3, 1.1
# Candidates by Euclidean distance whose covariances are compared; directions in which
# covariances are kept, and rows that decide these.
SHORTLIST, MOST_DIRECTIONS, PRINCIPAL_ROWS = 64, 64, 5000
# Variance of members that all coincide: a millionth of a length scale, squared.
LEAST_VARIANCE = 1e-12
N_NEIGHBORS = 16


class Route(NamedTuple):
    """For each query, the subdomains to consult, nearest first."""

    subdomains: np.ndarray
    """Subdomain indices, shape (n_queries, n_consulted); -1 for no candidate."""

    distances: np.ndarray
    """Distances to those subdomains as the router measures them, same shape."""


class Router:
    """Base of all routers. To add one, write a subclass with a name in `ROUTERS`."""

    # The arguments of its constructor, arrays that a store keeps, and their shapes: K
    # subdomains, N rows, d features, s directions.
    shapes: ClassVar[dict[str, str]]
    # Mean of the rows of every subdomain, shape (n_subdomains, n_features).
    means: np.ndarray
    # What its distances are, in a few words for people.
    measure: ClassVar[str] = "distance as the router measures it"
    # Whether it lists candidates, of which the most certain answer.
    certainty_decides: ClassVar[bool] = False
    # Candidates that it compares for each query, at least `n_consulted`: decides how
    # much memory a query takes.
    n_listed: ClassVar[int] = 1

    @classmethod
    def summarize(cls, X, cover, labels, means, n_jobs=None) -> "Router":
        """Make a router of training rows; parameters as in `make_router`."""
        raise NotImplementedError

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        """Subdomains for each row of X, which is in the machine's metric.

        The route has `n_consulted` columns; if certainty decides, at least as many.
        """
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class EuclideanRouter(Router):
    """By distance to the subdomains' means."""

    means: np.ndarray

    shapes = {"means": "K d"}
    measure = "distance to the mean of the subdomain"

    @classmethod
    def summarize(cls, X, cover, labels, means, n_jobs=None):
        return cls(means)

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        """Nearest subdomains of each query; memory O(n_queries * n_consulted)."""
        ids, dist_sq = nearest_centers(X, self.means, n_consulted, n_jobs)
        return Route(ids, np.sqrt(dist_sq))


class VarianceRouter(EuclideanRouter):
    """Candidates by distance to the means; their posterior variances decide later."""

    certainty_decides = True
    n_listed = N_CANDIDATES

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        """Candidates: the nearest subdomain, and others within `REACH` of it.

        At least `n_consulted` of them; -1 stands for no candidate.
        """
        n_listed = min(max(N_CANDIDATES, n_consulted), len(self.means))
        route = super().route(X, n_listed, n_jobs)
        too_far = route.distances > REACH * route.distances[:, :1]
        too_far[:, :n_consulted] = False
        return Route(np.where(too_far, -1, route.subdomains), route.distances)


@dataclass(frozen=True, eq=False)
class GaussianRouter(Router):
    """By each subdomain's own covariance, in a common principal subspace."""

    means: np.ndarray
    directions: np.ndarray  # orthonormal columns
    whiteners: np.ndarray  # ``L_k^-1`` of the projected covariances
    log_volumes: np.ndarray  # ``log |Sigma_k|`` if it counts, else zeros

    shapes = {"means": "K d", "directions": "d s"}
    shapes |= {"whiteners": "K s s", "log_volumes": "K"}
    measure = "distance by the subdomain's covariance"
    n_listed = SHORTLIST
    counts_volumes: ClassVar[bool] = False

    @classmethod
    def summarize(cls, X, cover, labels, means, n_jobs=None):
        directions = principal_directions(X)
        tasks = ((X[members] @ directions,) for members in cover.members)
        whiteners, volumes = map(np.array, zip(*run_tasks(_whitener, tasks, n_jobs)))
        if not cls.counts_volumes:
            volumes = np.zeros(len(means))
        return cls(means, directions, whiteners, volumes)

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        """Nearest of a Euclidean shortlist; memory O(n_queries * shortlist)."""
        n_listed = min(max(SHORTLIST, n_consulted), len(self.means))
        listed, _ = nearest_centers(X, self.means, n_listed, n_jobs)
        listed = np.sort(listed, axis=1)  # so that ties go to the lower index
        blocks = [X[block] @ self.directions for block in slices_of(*X.shape)]
        Z, mu = np.concatenate(blocks), self.means @ self.directions
        measured = np.empty(listed.shape)
        for k, (queries, slots) in grouped(listed):
            offset = (Z[queries] - mu[k]) @ self.whiteners[k].T
            dist_sq = np.einsum("ij,ij->i", offset, offset)
            measured[queries, slots] = dist_sq + self.log_volumes[k]
        order = np.argsort(measured, axis=1, kind="stable")[:, :n_consulted]
        nearest = np.take_along_axis(measured, order, axis=1)
        consulted = np.take_along_axis(listed, order, axis=1)
        # A log density has no zero. It is measured from the smallest volume of those
        # consulted, never of a subdomain far away.
        least = self.log_volumes[consulted].min(axis=1, keepdims=True)
        return Route(consulted, np.sqrt(nearest - least))


class SquaredRouter(GaussianRouter):
    """By each subdomain's covariance; its distances are squared."""

    measure = "squared distance by the subdomain's covariance"

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        route = super().route(X, n_consulted, n_jobs)
        return route._replace(distances=route.distances**2)


class DensityRouter(GaussianRouter):
    """By each subdomain's covariance and volume: a wide one is not near everything."""

    measure = "distance by the subdomain's covariance and volume"
    counts_volumes = True


class NeighborsRouter(Router):
    """By vote of the query's nearest rows over the clusters that own them."""

    shapes = {"rows": "N d", "labels": "N", "means": "K d"}
    measure = "distance: one over the votes of the nearest rows"
    n_listed = 4 * N_NEIGHBORS  # their votes take memory too

    def __init__(self, rows, labels, means):
        from sklearn.neighbors import NearestNeighbors

        self.rows, self.labels, self.means = rows, labels, means
        self.index = NearestNeighbors(n_neighbors=min(N_NEIGHBORS, len(rows))).fit(rows)

    @classmethod
    def summarize(cls, X, cover, labels, means, n_jobs=None):
        return cls(np.asarray(X), labels, means)

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        """Most votes first; clusters without a vote follow by distance.

        Of clusters with equally many, the owner of the nearest row comes first.
        """
        blocks = [self.index.kneighbors(X[block]) for block in slices_of(*X.shape)]
        row_distances, near = (np.concatenate(parts) for parts in zip(*blocks))
        n_listed = min(max(N_NEIGHBORS, n_consulted), len(self.means))
        listed, _ = nearest_centers(X, self.means, n_listed, n_jobs)
        owners = self.labels[near]
        # Every owner is a candidate, so are the nearest clusters: enough to consult.
        candidates = np.concatenate([owners, listed], axis=1)
        votes = np.sum(candidates[:, :, None] == owners[:, None, :], axis=2)
        nearest = np.full(candidates.shape, np.inf)
        nearest[:, : near.shape[1]] = row_distances
        subdomains = np.empty((len(X), n_consulted), dtype=np.int32)
        distances = np.empty((len(X), n_consulted))
        for q in range(len(X)):
            distinct, first = np.unique(candidates[q], return_index=True)
            count = votes[q, first]
            # Voters as near tie by index; others stand in order of distance already.
            place = np.where(count > 0, distinct, first)
            order = np.lexsort((place, nearest[q, first], -count))[:n_consulted]
            subdomains[q] = distinct[order]
            # Inverse distances are then in proportion to votes.
            distances[q] = 1.0 / np.maximum(count[order], 0.1)
        return Route(subdomains, distances)


# Every router, by the name that users give.
ROUTERS: dict[str, type[Router]] = {
    "variance": VarianceRouter,
    "mahalanobis": GaussianRouter,
    "mahalanobis-squared": SquaredRouter,
    "euclidean": EuclideanRouter,
    "neighbors": NeighborsRouter,
    "density": DensityRouter,
}


def make_router(name, X, cover, labels, n_jobs=None) -> Router:
    """Summarise the subdomains for the router called `name`, one of `ROUTERS`.

    X are the training rows in the machine's metric, `labels` the clusters that own
    them.
    """
    means = np.array([X[rows].mean(axis=0) for rows in cover.members])
    return ROUTERS[name].summarize(X, cover, labels, means, n_jobs)


def router_for(name, machine) -> str:
    """`name`, or "euclidean" if certainty should decide without any variances."""
    needs_variance = ROUTERS[name].certainty_decides
    return "euclidean" if needs_variance and not machine.has_variance else name


def principal_directions(X):
    """Directions of most variance, shape (n_features, at most `MOST_DIRECTIONS`)."""
    if X.shape[1] <= MOST_DIRECTIONS:
        return np.eye(X.shape[1])
    step = max(1, len(X) // PRINCIPAL_ROWS)
    sample = X[::step] - X[::step].mean(axis=0)
    if len(sample) < X.shape[1]:
        vectors = np.linalg.svd(sample, full_matrices=False)[2].T
    else:
        vectors = np.linalg.eigh(sample.T @ sample)[1][:, ::-1]
    return np.ascontiguousarray(vectors[:, :MOST_DIRECTIONS])


def _whitener(Z):
    """``L^-1`` and ``log |Sigma|`` of the shrunk covariance of some rows."""
    from sklearn.covariance import oas

    n_directions = Z.shape[1]
    Sigma = oas(Z)[0] if len(Z) > 1 else np.zeros((n_directions, n_directions))
    # Members that all coincide have the same small volume everywhere. Relative to the
    # variance that rounding leaves them, it would differ from one place to the next.
    floor = LEAST_VARIANCE * max(1.0, np.trace(Sigma) / n_directions)
    Sigma.flat[:: n_directions + 1] += floor
    L = np.linalg.cholesky(Sigma)
    whitener = solve_triangular(L, np.eye(n_directions), lower=True)
    return whitener, 2.0 * np.log(np.diag(L)).sum()


def grouped(subdomains):
    """Yield ``k, (queries, slots)``: a subdomain, and where `subdomains` names it.

    `subdomains` has shape (n_queries, n_consulted); queries are its rows, ascending,
    and slots its columns.

    Examples
    --------
    >>> for k, (queries, slots) in grouped(np.array([[1, 0], [1, 2]])):
    ...     print(k, queries.tolist(), slots.tolist())
    0 [0] [1]
    1 [0, 1] [0, 0]
    2 [1] [1]
    """
    flat = subdomains.ravel()
    order = np.argsort(flat, kind="stable")
    names, starts = np.unique(flat[order], return_index=True)
    for k, where in zip(names, np.split(order, starts[1:])):
        if k >= 0:
            yield int(k), np.divmod(where, subdomains.shape[1])


def most_certain(route, variances, n_consulted):
    """The candidates with the smallest posterior variances, and their old columns.

    `variances` has shape (n_queries, n_candidates, 1), infinite for no candidate. The
    distances of the new route are posterior standard deviations.
    """
    columns = np.argsort(variances, axis=1, kind="stable")[:, :n_consulted]
    subdomains = np.take_along_axis(route.subdomains, columns[..., 0], axis=1)
    distances = np.sqrt(np.take_along_axis(variances, columns, axis=1)[..., 0])
    return Route(subdomains, distances), columns
