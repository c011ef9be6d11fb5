"""Two-level k-means: `TwoLevelKMeans`, shards first and clusters within each."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._numbers import ANY_NUMBER
from .._parallel import run_tasks
from .._validation import check_count, check_rows
from ._kmeans import EqualSizeKMeans, check_n_clusters
from .shards import Shards, count_shards, divide_rows


@dataclass(eq=False, repr=False, kw_only=True)
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
    rows. In addition, 20 bytes per row of X, and a sample of 256 rows per shard. X is
    read in blocks of 16 MB; it may be mapped and have any type of numbers.

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

    n_shards: Any = "auto"

    def fit(self, X, y=None):
        """Partition the rows of X, which may be mapped from a file; y is ignored."""
        X = check_rows(self, X, reset=True, dtypes=ANY_NUMBER, order=None)
        if self.count_shards(*X.shape) == 1:
            return super().fit(X)
        return self.fit_rows(X)

    def fit_rows(self, X):
        """`fit` without input checks, for two shards or more; X may also be `Rows`."""
        shards = self.divide(X, check_random_state(self.random_state))
        tasks = ((X, shards, s) for s in range(len(shards.ends)))
        parts = run_tasks(self.fit_shard, tasks, self.n_jobs)
        self.labels_, self.cluster_centers_, *rest = shards.join(parts)
        self.inertia_, self.n_iter_ = rest
        return self

    def divide(self, X, rng) -> Shards:
        """The rows of all shards."""
        n_shards = self.count_shards(*X.shape)
        return divide_rows(X, n_shards, self.n_clusters, rng, self.n_jobs)

    def count_shards(self, n_samples, n_features):
        """The number of shards for data of this shape; refuses wrong parameters."""
        check_n_clusters(self.n_clusters, n_samples)
        self._check_options()
        if not (isinstance(self.n_shards, str) and self.n_shards == "auto"):
            advice = "Or 'auto', for shards of about 50,000 rows."
            check_count("n_shards", self.n_shards, 1, advice)
        return count_shards(self.n_shards, n_samples, n_features, self.n_clusters)

    def fit_shard(self, X, shards, s):
        """Labels, centres, J and iterations of one shard's rows; on one thread."""
        rows = X[shards.rows(s)]
        if not len(rows):
            return np.empty(0, dtype=np.intp), rows, 0.0, 0
        kmeans = EqualSizeKMeans(
            int(shards.n_clusters[s]),
            balance="ab" if self.balance == "assign" else self.balance,
            max_iter=self.max_iter,
            n_jobs=1,
            random_state=int(shards.seeds[s]),
        ).fit(rows)
        fitted = kmeans.labels_, kmeans.cluster_centers_, kmeans.inertia_
        return *fitted, kmeans.n_iter_
