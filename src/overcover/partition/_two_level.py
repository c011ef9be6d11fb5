"""Two-level k-means: `TwoLevelKMeans`, shards first and clusters within each."""

import numpy as np
from sklearn.utils import check_random_state

from .._numbers import ANY_NUMBER
from .._parallel import one_thread_per_worker, run_tasks
from .._streams import slices_of
from .._validation import check_count, check_rows
from ._arrays import clusters_of
from ._kmeans import EqualSizeKMeans, check_n_clusters
from .shards import (
    count_shards,
    least_losses,
    movers_of,
    nearest_shards,
    settle,
    share_clusters,
    split_sample,
)


def assign_shards(X, coarse, n_clusters, n_jobs=None):
    """Every row to a shard, such that equal-size clusters fill all shards.

    Parameters
    ----------
    X : array of shape (n_samples, n_features)
        Read in blocks, twice.
    coarse : Coarse
    n_clusters : int
    n_jobs : int or None

    Returns
    -------
    shards : ndarray of shape (n_samples,)
    shares : Shares
    """
    blocks = list(slices_of(*X.shape))
    shards = np.empty(len(X), dtype=np.int32)
    for block in blocks:
        shards[block] = nearest_shards(X[block], coarse, n_jobs)
    n_shards = len(coarse.centers)
    counts = np.bincount(shards, minlength=n_shards)
    shares = share_clusters(counts, coarse.centers, n_clusters)

    def movers(block):
        groups = clusters_of(shards[block], n_shards)

        def group(s):
            rows = block.start + groups[s]
            return rows, X[rows]

        return movers_of(group, coarse, shares)

    lists = map(movers, blocks)
    rows, new = settle(X, least_losses(lists, shares), coarse, shares)
    shards[rows] = new
    return shards, shares


class TwoLevelKMeans(EqualSizeKMeans):
    r"""Equal-size k-means of more rows than memory holds: shards, then clusters.

    Choose it over `EqualSizeKMeans` when X is mapped from a file and too large, or on
    a cluster of computers, where every shard is a task; its J is a few percent higher
    at most. A sample is split by equal-size k-means into shards; every row goes to the
    shard with the nearest centre, but for a few that even out the numbers; then
    equal-size k-means of each shard's rows alone makes its share of the clusters. The
    sizes of all clusters differ by at most one. One shard is `EqualSizeKMeans`.

    Memory: per thread a shard as `EqualSizeKMeans` needs it, two copies in float64 and
    200 bytes for every row; besides it 20 bytes for every row of X, a sample of 256
    rows per shard, and the rows that may move, some clusters per shard. X itself is
    read in blocks of 16 MB, and may be mapped, of any type of numbers.

    Parameters
    ----------
    n_clusters : int, default=8
        At most the number of rows.
    n_shards : "auto" or int, default="auto"
        "auto" makes shards of about 50,000 rows, or 256 MB if they are wide, but at
        least 8 clusters. At most one for every cluster is made.
    balance : {"refined", "ab", "imda"}, default="refined"
        As in `EqualSizeKMeans`, within every shard.
    max_iter : int, default=20
        As in `EqualSizeKMeans`.
    n_jobs : int or None, default=None
        Threads, each at work on a shard; as in joblib. Results do not depend on it.
    random_state : int, RandomState or None, default=None
        Decides the sample and all seeds. With an int, fits are equal bit by bit.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; clusters of one shard have successive numbers.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Means of the clusters.
    inertia_ : float
        J, the sum of squared distances of the rows to their cluster's mean.
    n_iter_ : int
        Iterations run in the shard that needed most.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, when X was a data frame with string column names.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover.partition import TwoLevelKMeans
    >>> X = np.random.default_rng(0).uniform(size=(1000, 2))
    >>> model = TwoLevelKMeans(30, n_shards=4, random_state=0).fit(X)
    >>> sorted(set(np.bincount(model.labels_).tolist()))
    [33, 34]
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        n_shards="auto",
        balance="refined",
        max_iter=20,
        n_jobs=None,
        random_state=None,
    ):
        super().__init__(
            n_clusters,
            balance=balance,
            max_iter=max_iter,
            n_jobs=n_jobs,
            random_state=random_state,
        )
        self.n_shards = n_shards

    def fit(self, X, y=None):
        """Partition the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Mapped from a file, ``np.load(name, mmap_mode="r")``, it is never read into
            memory as a whole.
        y : ignored

        Returns
        -------
        self
        """
        X = check_rows(self, X, reset=True, dtypes=ANY_NUMBER, order=None)
        if self.count_shards(*X.shape) == 1:
            return super().fit(X)
        return self.fit_rows(X)

    def fit_rows(self, X):
        """`fit` of rows in two shards or more that are known to be finite.

        Parameters
        ----------
        X : array of shape (n_samples, n_features)
            In memory, mapped, or `overcover._streams.Rows`.

        Returns
        -------
        self
        """
        n_shards = self.count_shards(*X.shape)
        rng = check_random_state(self.random_state)
        with one_thread_per_worker():
            coarse = split_sample(X, n_shards, rng, self.n_jobs)
            shards, shares = assign_shards(X, coarse, self.n_clusters, self.n_jobs)
        order = np.argsort(shards, kind="stable")
        ends = np.cumsum(shares.sizes)
        self.labels_ = np.empty(len(X), dtype=np.intp)
        self.cluster_centers_ = np.empty((self.n_clusters, X.shape[1]))
        self.inertia_, self.n_iter_ = 0.0, 0

        def fit_one(s):
            rows = order[ends[s] - shares.sizes[s] : ends[s]]
            asked = shares.n_clusters[s], coarse.seeds[s]
            return s, rows, self.fit_shard(X[rows], *asked)

        tasks = ((int(s),) for s in np.flatnonzero(shares.n_clusters))
        for s, rows, found in run_tasks(fit_one, tasks, self.n_jobs):
            first = shares.first_clusters[s]
            self.labels_[rows] = first + found.labels_
            last = first + shares.n_clusters[s]
            self.cluster_centers_[first:last] = found.cluster_centers_
            self.inertia_ += found.inertia_
            self.n_iter_ = max(self.n_iter_, found.n_iter_)
        return self

    def count_shards(self, n_samples, n_features):
        """How many shards so many rows are split into; refuses wrong parameters."""
        check_n_clusters(self.n_clusters, n_samples)
        self._check_options()
        if not (isinstance(self.n_shards, str) and self.n_shards == "auto"):
            advice = "Or 'auto', for shards of about 50,000 rows."
            check_count("n_shards", self.n_shards, 1, advice)
        return count_shards(self.n_shards, n_samples, n_features, self.n_clusters)

    def fit_shard(self, rows, n_clusters, seed):
        """Cluster the rows of one shard.

        Parameters
        ----------
        rows : array of shape (n_rows, n_features)
            By ascending number.
        n_clusters : int
        seed : int

        Returns
        -------
        EqualSizeKMeans
            Fitted, on one thread.
        """
        alone = EqualSizeKMeans(
            int(n_clusters),
            balance="ab" if self.balance == "assign" else self.balance,
            max_iter=self.max_iter,
            n_jobs=1,
            random_state=int(seed),
        )
        return alone.fit(rows)
