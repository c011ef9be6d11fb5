r"""Routing: which subdomains answer a query, and from how far away.

    X, Y -> metric -> partition -> cover -> machines -> [routing] -> combination
    -> prediction

Everything here happens in the machine's metric: rows divided by its length scales.
A subdomain is summarised by the mean (and covariance) of its members:

- "euclidean": :math:`\lVert x - \mu'_k \rVert` (the paper's mode 1);
- "mahalanobis": :math:`\lVert L_k^{-1} (x - \mu'_k) \rVert` with
  :math:`\Sigma'_k = L_k L_k^\top` shrunk (mode 3);
- "density": the same squared, plus :math:`\log |\Sigma'_k|`, so that a diffuse
  subdomain is not near to everything. The distance to a subdomain k that a query
  consults, out of the set C of all that it consults, is the root of
  :math:`\lVert L_k^{-1} (x - \mu'_k) \rVert^2 + \log |\Sigma'_k|
  - \min_{c \in C} \log |\Sigma'_c|`;
- "neighbors": the clusters that own most of the query's nearest rows (mode 2), of as
  many the owner of the nearest;
- "variance": of the nearest few, those least in doubt; the machines decide, see
  `most_certain`, and `overcover.combination.soft_choice` where one is wanted.

Notation: the paper's :math:`K'` is ``n_consulted``. Ties go to the lower index.
"""

from typing import Any, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.covariance import oas
from sklearn.neighbors import NearestNeighbors

from ._neighbors import nearest_centers
from ._parallel import run_tasks
from ._records import finite, record, whole
from ._streams import slices_of

NAMES = ("variance", "mahalanobis", "euclidean", "neighbors", "density")
# Candidates among which the variance decides: the nearest by Euclidean distance, as
# long as they are not much farther than the nearest of all. Three within a tenth are
# fewer than two on average: asking more costs more than it gains (docs/routing.md).
N_CANDIDATES, REACH = 3, 1.1
# Candidates by Euclidean distance for which a covariance is looked at.
SHORTLIST = 64
# Directions in which covariances are kept.
MOST_DIRECTIONS = 64
# Variance of members that all coincide: a millionth of a length scale, squared.
LEAST_VARIANCE = 1e-12
N_NEIGHBORS = 16
# Rows a principal subspace is found from.
PRINCIPAL_ROWS = 5000


class Route(NamedTuple):
    """For each query, the subdomains to consult, nearest first."""

    subdomains: np.ndarray
    """Subdomain indices, shape (n_queries, n_consulted); -1 for nobody."""

    distances: np.ndarray
    """Distances to those subdomains as the router measures them, same shape."""


@record(means=finite("K d"))
class EuclideanRouter(NamedTuple):
    """By distance to the subdomains' means."""

    means: np.ndarray
    """Shape (n_subdomains, n_features)."""

    @property
    def n_listed(self):
        """Candidates it looks at for each query."""
        return 1

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        """Nearest subdomains of each query; memory O(n_queries * n_consulted)."""
        ids, dist_sq = nearest_centers(X, self.means, n_consulted, n_jobs)
        return Route(ids, np.sqrt(dist_sq))


@record(means=finite("K d"))
class VarianceRouter(NamedTuple):
    """Candidates by distance to the means; their posterior variance decides later."""

    means: np.ndarray
    """Shape (n_subdomains, n_features)."""

    @property
    def n_listed(self):
        """Candidates it looks at for each query."""
        return N_CANDIDATES

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        """Subdomains worth asking: the nearest, and rivals within `REACH` of it.

        At least `n_consulted` of them; -1 stands for nobody.
        """
        n_listed = min(max(N_CANDIDATES, n_consulted), len(self.means))
        ids, dist_sq = nearest_centers(X, self.means, n_listed, n_jobs)
        distances = np.sqrt(dist_sq)
        too_far = distances > REACH * distances[:, :1]
        too_far[:, :n_consulted] = False
        return Route(np.where(too_far, -1, ids), distances)


@record(
    means=finite("K d"),
    directions=finite("d s"),
    whiteners=finite("K s s"),
    log_volumes=finite("K"),
)
class GaussianRouter(NamedTuple):
    """By each subdomain's own covariance, in a common principal subspace."""

    means: np.ndarray
    """Shape (n_subdomains, n_features)."""

    directions: np.ndarray
    """Orthonormal columns, shape (n_features, n_directions)."""

    whiteners: np.ndarray
    """``L_k^-1`` of the projected covariances, shape (K, n_directions, n_directions)"""

    log_volumes: np.ndarray
    """``log |Sigma_k|`` if it counts, else zeros; shape (n_subdomains,)."""

    @property
    def n_listed(self):
        """Candidates it looks at for each query."""
        return SHORTLIST

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


@record(rows=finite("N d"), labels=whole("N", 0, "K"), means=finite("K d"))
class NeighborsRouter:
    """By vote of the query's nearest rows over the clusters that own them."""

    # Candidates it looks at for each query, and the memory of their votes.
    n_listed = 4 * N_NEIGHBORS

    def __init__(self, rows, labels, means):
        self.rows, self.labels, self.means = rows, labels, means
        self.index = NearestNeighbors(n_neighbors=min(N_NEIGHBORS, len(rows)))
        self.index.fit(rows)

    def route(self, X, n_consulted, n_jobs=None) -> Route:
        """Most votes first; clusters without a vote follow by distance.

        Of as many votes the owner of the nearest row comes first.
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


ROUTERS: dict[str, Any] = {
    "variance": VarianceRouter,
    "mahalanobis": GaussianRouter,
    "euclidean": EuclideanRouter,
    "neighbors": NeighborsRouter,
    "density": GaussianRouter,
}
"""Every router, by the name that users give."""


def make_router(name, X, cover, labels, n_jobs=None, means=None):
    """Summarise the subdomains for the router called `name`.

    Parameters
    ----------
    name : one of `NAMES`
    X : ndarray of shape (n_samples, n_features)
        Training rows in the machine's metric; may be mapped.
    cover : Cover
    labels : ndarray of shape (n_samples,)
        The cluster that owns each row.
    n_jobs : int or None
    means : ndarray of shape (n_subdomains, n_features) or None
        What `subdomain_means` gives, if it is known.

    Returns
    -------
    an object with ``route(X, n_consulted, n_jobs) -> Route``
    """
    means = subdomain_means(X, cover.members) if means is None else means
    if hasattr(ROUTERS[name], "summarize"):
        return ROUTERS[name].summarize(X, cover, labels, means, n_jobs)
    if name == "variance":
        return VarianceRouter(means)
    if name == "euclidean":
        return EuclideanRouter(means)
    if name == "neighbors":
        return NeighborsRouter(np.asarray(X), labels, means)
    directions = principal_directions(X)
    tasks = ((X[members] @ directions,) for members in cover.members)
    shapes = list(run_tasks(_whitener, tasks, n_jobs))
    whiteners = np.array([whitener for whitener, _ in shapes])
    log_volumes = np.array([log_volume for _, log_volume in shapes])
    if name == "mahalanobis":
        log_volumes = np.zeros(len(means))
    return GaussianRouter(means, directions, whiteners, log_volumes)


def subdomain_means(X, members):
    """Mean of every subdomain's rows, shape (n_subdomains, n_features)."""
    return np.array([X[rows].mean(axis=0) for rows in members])


def principal_directions(X):
    """At most `MOST_DIRECTIONS` directions that hold most of the variance.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)

    Returns
    -------
    ndarray of shape (n_features, n_directions), orthonormal columns
    """
    if X.shape[1] <= MOST_DIRECTIONS:
        return np.eye(X.shape[1])
    step = max(1, len(X) // PRINCIPAL_ROWS)
    sample = X[::step] - X[::step].mean(axis=0)
    _, vectors = np.linalg.eigh(sample.T @ sample)
    return np.ascontiguousarray(vectors[:, ::-1][:, :MOST_DIRECTIONS])


def _whitener(Z):
    """``L^-1`` and ``log |Sigma|`` of the shrunk covariance of some rows."""
    n_directions = Z.shape[1]
    if len(Z) > 1:
        Sigma, _ = oas(Z)
    else:
        Sigma = np.zeros((n_directions, n_directions))
    # Members that all coincide have the same small volume everywhere. Relative to the
    # variance that rounding leaves them, it would differ from one place to the next.
    floor = LEAST_VARIANCE * max(1.0, np.trace(Sigma) / n_directions)
    Sigma.flat[:: n_directions + 1] += floor
    L = np.linalg.cholesky(Sigma)
    whitener = solve_triangular(L, np.eye(n_directions), lower=True)
    return whitener, 2.0 * np.log(np.diag(L)).sum()


def grouped(subdomains):
    """Queries of each subdomain, from a table of who consults whom.

    Parameters
    ----------
    subdomains : ndarray of shape (n_queries, n_consulted)

    Yields
    ------
    k, (queries, slots)
        Subdomain index; rows and columns of `subdomains` that name it, rows ascending.

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


def most_certain(route, doubts, n_consulted):
    """Of the candidates, those least in doubt.

    Parameters
    ----------
    route : Route
        Candidates, nearest first.
    doubts : ndarray of shape (n_queries, n_candidates, 1)
        Posterior input variance of each candidate; infinite for nobody.
    n_consulted : int

    Returns
    -------
    route : Route
        With the roots of `doubts` as distances.
    kept : ndarray of shape (n_queries, n_consulted, 1)
        Which candidates these are.
    """
    kept = np.argsort(doubts, axis=1, kind="stable")[:, :n_consulted]
    subdomains = np.take_along_axis(route.subdomains, kept[..., 0], axis=1)
    distances = np.sqrt(np.take_along_axis(doubts, kept, axis=1)[..., 0])
    return Route(subdomains, distances), kept
