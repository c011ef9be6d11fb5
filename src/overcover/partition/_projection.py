"""Recursive projection: `RecursiveProjection` and the split behind it."""

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state

from .._parallel import one_thread_per_worker
from .._validation import check_rows
from ._arrays import cluster_means, inertia, standardize
from ._kmeans import check_n_clusters


def split_recursively(X, n_clusters, rng):
    """Split the rows by rank along random lines until every part is one cluster."""
    labels = np.empty(len(X), dtype=np.intp)
    parts = [(np.arange(len(X)), 0, n_clusters)]
    while parts:
        rows, first, n_parts = parts.pop()
        if n_parts == 1:
            labels[rows] = first
            continue
        n_left = n_parts // 2
        size, n_larger = divmod(len(rows), n_parts)
        cut = n_left * size + n_left * n_larger // n_parts
        part = X[rows]
        # From a random row to another one with other values, if there is any.
        start = part[rng.randint(len(part))]
        others = np.flatnonzero((start != part).any(axis=1))
        end = part[others[rng.randint(len(others))]] if len(others) else start
        ranked = np.argsort(part @ (end - start), kind="stable")
        parts.append((np.sort(rows[ranked[cut:]]), first + n_left, n_parts - n_left))
        parts.append((np.sort(rows[ranked[:cut]]), first, n_left))
    return labels


class RecursiveProjection(ClusterMixin, BaseEstimator):
    """Equal-size clusters by recursive splits along random lines (RPC).

    Choose it over `EqualSizeKMeans` if the partition must be fast; it takes
    O(n_samples log n_clusters), and its clusters are less compact. Each split projects
    the rows on the line through two random rows and halves them by rank.

    Parameters
    ----------
    n_clusters : int, default=8
        At most the number of rows; not only powers of two.
    random_state : int, RandomState or None, default=None
        Determines the lines. With an int, fits are equal bit by bit.

    Attributes
    ----------
    labels_, cluster_centers_, inertia_
        As in `EqualSizeKMeans`.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover.partition import RecursiveProjection
    >>> X = np.array([[5.0], [1.0], [4.0], [0.0], [3.0], [2.0]])
    >>> labels = RecursiveProjection(n_clusters=3, random_state=0).fit_predict(X)
    >>> sorted(sorted(X[labels == k].ravel().tolist()) for k in range(3))
    [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]
    """

    def __init__(self, n_clusters=8, *, random_state=None):
        self.n_clusters = n_clusters
        self.random_state = random_state

    def fit(self, X, y=None):
        """Partition the rows of X, shape (n_samples, n_features); y is ignored."""
        X = check_rows(self, X, reset=True)
        check_n_clusters(self.n_clusters, len(X))
        rng = check_random_state(self.random_state)
        rows, mean, scale = standardize(X)
        with one_thread_per_worker():
            self.labels_ = split_recursively(rows, self.n_clusters, rng)
        centers = cluster_means(rows, self.labels_, self.n_clusters)
        self.cluster_centers_ = centers * scale + mean
        self.inertia_ = inertia(rows, self.labels_, centers) * scale**2
        return self
