"""Seeds: where equal-size k-means starts, found by ordinary k-means on a sample."""

import warnings

import numpy as np
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from .._neighbors import nearest_centers

ROWS_PER_SEED = 256
"""Rows looked at for each seed; more do not move k-means noticeably."""

N_STARTS = 4
"""Starts of which the best is kept; with few seeds, a single one is often poor."""

MANY_SEEDS = 300
"""From this many seeds on, k-means within coarse cells replaces one k-means."""


def kmeans_seeds(X, n_clusters, rng, n_jobs=None):
    """Centres of ordinary k-means on at most ``ROWS_PER_SEED * n_clusters`` rows.

    With K = `n_clusters` of ``MANY_SEEDS`` or more, the sample is cut into sqrt(K)
    coarse cells, and each cell gets seeds in proportion to its rows: each row then
    meets 2 sqrt(K) centres instead of K.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
    n_clusters : int, at most n_samples
    rng : numpy RandomState
    n_jobs : int or None

    Returns
    -------
    seeds : ndarray of shape (n_clusters, n_features)
    """
    X = _sample(X, ROWS_PER_SEED * n_clusters, rng)
    if n_clusters < MANY_SEEDS:
        return _kmeans(X, n_clusters, rng, N_STARTS)
    n_cells = int(np.sqrt(n_clusters))
    coarse = _kmeans(_sample(X, ROWS_PER_SEED * n_cells, rng), n_cells, rng, N_STARTS)
    cells = nearest_centers(X, coarse, 1, n_jobs)[0][:, 0]
    shares = proportional_shares(np.bincount(cells, minlength=n_cells), n_clusters)
    return np.concatenate(
        [
            _kmeans(X[cells == cell], share, rng)
            for cell, share in enumerate(shares)
            if share > 0
        ]
    )


def proportional_shares(counts: np.ndarray, total: int) -> np.ndarray:
    """Split `total` in proportion to `counts`, by largest remainder.

    No share exceeds its count as long as `total` does not exceed the sum.

    Examples
    --------
    >>> proportional_shares(np.array([5, 3, 0]), 4).tolist()
    [3, 1, 0]
    """
    # Integers throughout, so that equal counts have exactly equal remainders.
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
    kmeans = KMeans(
        n_clusters,
        n_init=n_init,
        max_iter=100,
        random_state=rng.randint(np.iinfo(np.int32).max),
    )
    with warnings.catch_warnings():
        # Fewer distinct rows than clusters: coincident seeds are balanced like others.
        warnings.simplefilter("ignore", ConvergenceWarning)
        return kmeans.fit(X).cluster_centers_
