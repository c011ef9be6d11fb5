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
    """The shard of every row, and the `Shares`; X is read in blocks, twice."""
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
    r"""Equal-size k-means for more rows than fit in memory: shards, then clusters.

    Choose it over `EqualSizeKMeans` if X is mapped from a file and too large for
    memory, or on a cluster of computers, where every shard is a task. Its J is at most
    a few per cent higher. Equal-size k-means of a sample gives the centres of shards.
    Every row goes to the shard with the nearest centre, except a few rows that move so
    that numbers come out even. Then equal-size k-means divides each shard into its
    clusters. The sizes of all clusters differ by at most one. With one shard, it is
    `EqualSizeKMeans`.

    Memory: per thread, two copies of a shard in float64 and 200 bytes for each of its
    rows. In addition, 20 bytes per row of X, a sample of 256 rows per shard, and the
    rows that may move, some clusters per shard. X is read in blocks of 16 MB; it may be
    mapped and have any type of numbers.

    Parameters
    ----------
    n_clusters, balance, max_iter, n_jobs, random_state
        As in `EqualSizeKMeans`.
    n_shards : "auto" or int, default="auto"
        "auto" chooses shards of about 50,000 rows, or 256 MB if rows are wide, and at
        least 8 clusters. There is at most one shard per cluster.

    Attributes
    ----------
    labels_, cluster_centers_, inertia_, n_iter_
        As in `EqualSizeKMeans`. Clusters of one shard have consecutive numbers; the
        iterations are those of the shard that needed most.

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
        options = {"balance": balance, "max_iter": max_iter, "n_jobs": n_jobs}
        super().__init__(n_clusters, random_state=random_state, **options)
        self.n_shards = n_shards

    def fit(self, X, y=None):
        """Partition the rows of X, shape (n_samples, n_features); y is ignored.

        X may be mapped from a file, ``np.load(name, mmap_mode="r")``; memory then never
        holds all of it.
        """
        X = check_rows(self, X, reset=True, dtypes=ANY_NUMBER, order=None)
        if self.count_shards(*X.shape) == 1:
            return super().fit(X)
        return self.fit_rows(X)

    def fit_rows(self, X):
        """`fit` without input checks, for two shards or more; X may also be `Rows`."""
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
            kmeans = self.fit_shard(X[rows], shares.n_clusters[s], coarse.seeds[s])
            return s, rows, kmeans

        tasks = ((int(s),) for s in np.flatnonzero(shares.n_clusters))
        for s, rows, kmeans in run_tasks(fit_one, tasks, self.n_jobs):
            first = shares.first_clusters[s]
            self.labels_[rows] = first + kmeans.labels_
            last = first + shares.n_clusters[s]
            self.cluster_centers_[first:last] = kmeans.cluster_centers_
            self.inertia_ += kmeans.inertia_
            self.n_iter_ = max(self.n_iter_, kmeans.n_iter_)
        return self

    def count_shards(self, n_samples, n_features):
        """The number of shards for data of this shape; refuses wrong parameters."""
        check_n_clusters(self.n_clusters, n_samples)
        self._check_options()
        if not (isinstance(self.n_shards, str) and self.n_shards == "auto"):
            advice = "Or 'auto', for shards of about 50,000 rows."
            check_count("n_shards", self.n_shards, 1, advice)
        return count_shards(self.n_shards, n_samples, n_features, self.n_clusters)

    def fit_shard(self, rows, n_clusters, seed):
        """An `EqualSizeKMeans` of a shard's rows, which are in order; on one thread."""
        kmeans = EqualSizeKMeans(
            int(n_clusters),
            balance="ab" if self.balance == "assign" else self.balance,
            max_iter=self.max_iter,
            n_jobs=1,
            random_state=int(seed),
        )
        return kmeans.fit(rows)
