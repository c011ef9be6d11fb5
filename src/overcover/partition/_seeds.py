"""Seeds of equal-size k-means: centres of ordinary k-means on a sample."""

import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .._neighbors import nearest_centers

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
