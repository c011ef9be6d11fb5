"""Equal-size k-means: `EqualSizeKMeans`, the loop behind it, and its seeds."""

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from .._neighbors import nearest_centers
from .._parallel import one_thread_per_worker
from .._validation import check_choice, check_count, check_queries, check_rows
from ._arrays import cluster_means, inertia, standardize
from ._balance import assign_and_balance, exchange, fill_nearest_pairs

# Rows in the sample for each seed; more hardly change the centres.
ROWS_PER_SEED = 256
# Runs of k-means, of which the best is kept; with few seeds, one run is often poor.
N_STARTS = 4
# From this many seeds on, k-means runs within coarse cells.
MANY_SEEDS = 300


def kmeans_seeds(X, n_clusters, rng, n_jobs=None):
    """Centres of k-means on a sample; from `MANY_SEEDS` on, within coarse cells."""
    X = _sample(X, ROWS_PER_SEED * n_clusters, rng)
    if n_clusters < MANY_SEEDS:
        return _kmeans(X, n_clusters, rng, N_STARTS)
    n_cells = int(np.sqrt(n_clusters))
    coarse = _kmeans(_sample(X, ROWS_PER_SEED * n_cells, rng), n_cells, rng, N_STARTS)
    cells = nearest_centers(X, coarse, 1, n_jobs)[0][:, 0]
    shares = proportional_shares(np.bincount(cells, minlength=n_cells), n_clusters)
    used = np.flatnonzero(shares)
    return np.concatenate([_kmeans(X[cells == c], shares[c], rng) for c in used])


def proportional_shares(counts: np.ndarray, total: int) -> np.ndarray:
    """Split `total` in proportion to `counts`, by largest remainder."""
    # With integers, equal counts have exactly equal remainders.
    shares, remainders = np.divmod(counts * total, counts.sum())
    n_left = total - int(shares.sum())
    shares[np.argsort(-remainders, kind="stable")[:n_left]] += 1
    return shares


def _sample(X, n_rows, rng):
    if n_rows >= len(X):
        return X
    return X[np.sort(rng.choice(len(X), n_rows, replace=False))]


def _kmeans(X, n_clusters, rng, n_init=1):
    if n_clusters == len(X):
        return X
    from sklearn.cluster import KMeans

    seed = rng.randint(np.iinfo(np.int32).max)
    kmeans = KMeans(n_clusters, n_init=n_init, max_iter=100, random_state=seed)
    with warnings.catch_warnings():
        # With fewer distinct rows than clusters some seeds coincide, which is allowed.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kmeans.fit(X).cluster_centers_


# The loop stops after so many iterations without a better J, where better means by at
# least this share.
PATIENCE, LEAST_GAIN = 3, 1e-4
# Sweeps of exchanges in each iteration, where more do not lower J, and on the best
# labels at the end, where more gain little.
SWEEPS_PER_ITERATION, MOST_SWEEPS = 5, 100


def _assign_and_exchange(X, centers, n_jobs=None):
    labels = assign_and_balance(X, centers, n_jobs)
    return exchange(X, labels, len(centers), SWEEPS_PER_ITERATION, n_jobs)[0]


BALANCES: dict[str, Any] = {
    "ab": assign_and_balance,
    "imda": fill_nearest_pairs,
    "refined": _assign_and_exchange,
}


class _Run(NamedTuple):
    labels: np.ndarray
    centers: np.ndarray
    inertia: float
    n_iter: int


def equal_size_kmeans(X, centers, balance, max_iter, n_jobs=None) -> _Run:
    """Alternate balanced assignment and moves of centres; keep the lowest J."""
    best = _Run(np.empty(0, dtype=np.intp), centers, np.inf, 0)
    stale = 0
    for n_iter in range(1, max_iter + 1):
        run = _measure(X, BALANCES[balance](X, centers, n_jobs), len(centers), n_iter)
        stale = 0 if run.inertia < (1 - LEAST_GAIN) * best.inertia else stale + 1
        if run.inertia < best.inertia:
            best = run
        if stale == PATIENCE or run.inertia == 0.0:
            break
        centers = run.centers
    if balance == "refined":
        labels, _ = exchange(X, best.labels, len(centers), MOST_SWEEPS, n_jobs)
        best = _measure(X, labels, len(centers), run.n_iter)
    return best._replace(n_iter=run.n_iter)


def _measure(X, labels, n_clusters, n_iter):
    centers = cluster_means(X, labels, n_clusters)
    return _Run(labels, centers, inertia(X, labels, centers), n_iter)


@dataclass(eq=False, repr=False)
class EqualSizeKMeans(ClusterMixin, BaseEstimator):
    r"""K-means with clusters of equal size: sizes differ by at most one.

    Choose it over `RecursiveProjection` if compact clusters matter more than time: its
    J, the sum of squared distances to the cluster means, is far lower. It starts from
    the centres of ordinary k-means, the best of four runs on a sample of the rows. It
    then assigns rows, balances sizes and moves centres, until J has not improved for
    three iterations.

    Memory: two copies of X in float64, some 200 bytes per row, and 2 MB per thread.

    Parameters
    ----------
    n_clusters : int, default=8
        At most the number of rows.
    balance : {"refined", "ab", "imda"}, default="refined"
        How assignments get equal sizes:

        - "ab" (assign and balance): assign every row to its nearest centre, then move
          rows from clusters that are too large to those that are too small, smallest
          distance first;
        - "imda": assign the pair of a row and a centre with the smallest distance,
          again and again, until clusters are full;
        - "refined": as "ab", then exchange rows between pairs of clusters while
          this lowers J. It has the lowest J, in little more time than "ab".
    max_iter : int, default=20
        Limit on the iterations of assigning, balancing and moving.
    n_jobs : int or None, default=None
        Threads for the distances; as in joblib. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Determines the seeds. With an int, fits are equal bit by bit.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters.
    inertia_ : float
        J, the sum of squared distances of the rows to their cluster's mean.
    n_iter_ : int

    Notes
    -----
    `predict` returns the nearest centre. On training rows it may differ from
    ``labels_``, because balancing moves some rows to other clusters.

    Examples
    --------
    Six rows near 0 and two far away: equal sizes divide the six.

    >>> import numpy as np
    >>> from overcover.partition import EqualSizeKMeans
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0], [4.0], [5.0], [20.0], [21.0]])
    >>> model = EqualSizeKMeans(n_clusters=2, random_state=0).fit(X)
    >>> sorted(model.cluster_centers_.ravel().tolist())
    [1.5, 12.5]
    """

    n_clusters: int = 8
    _: KW_ONLY
    balance: str = "refined"
    max_iter: int = 20
    n_jobs: Any = None
    random_state: Any = None

    def fit(self, X, y=None):
        """Partition the rows of X, shape (n_samples, n_features); y is ignored."""
        X = check_rows(self, X, reset=True)
        check_n_clusters(self.n_clusters, len(X))
        balance = self._check_options()
        rng = check_random_state(self.random_state)
        rows, mean, scale = standardize(X)
        with one_thread_per_worker():
            seeds = kmeans_seeds(rows, self.n_clusters, rng, self.n_jobs)
            run = equal_size_kmeans(rows, seeds, balance, self.max_iter, self.n_jobs)
        self.labels_ = run.labels
        self.cluster_centers_ = run.centers * scale + mean
        self.inertia_ = run.inertia * scale**2
        self.n_iter_ = run.n_iter
        return self

    def predict(self, X):
        """Nearest cluster centre of each row, shape (n_samples,)."""
        check_is_fitted(self)
        X = check_queries(self, X)
        centers, mean, scale = standardize(self.cluster_centers_)
        nearest, _ = nearest_centers((X - mean) / scale, centers, 1, self.n_jobs)
        return nearest[:, 0].astype(np.intp)

    def _check_options(self):
        """Refuse unknown options; returns the present word for `balance`."""
        balance = self.balance
        if balance == "assign":
            balance = "ab"
            warnings.warn(
                'balance="assign" is now called balance="ab", as partition="ab" is. '
                "The old word will go.",
                DeprecationWarning,
                stacklevel=3,
            )
        check_choice("balance", balance, BALANCES)
        check_count("max_iter", self.max_iter, 1, "20 suits most data.")
        return balance


def check_n_clusters(n_clusters, n_samples):
    """Refuse a number of clusters that is no positive integer, or exceeds the rows."""
    if not isinstance(n_clusters, Integral) or n_clusters < 1:
        raise ValueError(
            f"n_clusters={n_clusters!r} must be an integer between 1 and the number "
            f"of rows, n_samples={n_samples}."
        )
    if n_samples < n_clusters:
        raise ValueError(
            f"n_samples={n_samples} should be >= n_clusters={n_clusters}: every "
            "cluster needs a row. Lower n_clusters, or give more rows."
        )
