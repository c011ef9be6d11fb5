r"""Cover: every cluster borrows rows from its neighbours to become a subdomain.

    X, Y -> metric -> partition -> [cover] -> machines -> routing -> combination
    -> prediction

Cluster :math:`C_i` and what it borrows, :math:`O_i`, make subdomain
:math:`D_i = C_i \cup O_i` of M rows, a share p of them borrowed. The
:math:`r = \lceil t\,p / (1-p) \rceil` clusters with the nearest centres lend, each in
proportion to the inverse distance of its centre, its rows nearest to :math:`\mu_i`.

`CoverShape` decides M, p, t, K and r, for every kind of fit and before any work.

Notation: M is ``size``, p ``overlap``, t ``spread``, r ``n_lenders``, K
``n_subdomains``.
"""

from collections.abc import Sequence
from numbers import Real
from typing import NamedTuple

import numpy as np

from ._neighbors import distance_flops, nearest_centers
from ._parallel import run_tasks
from ._records import record, whole
from ._validation import check_count
from .partition import Partition

DEFAULT_SIZE, DEFAULT_OVERLAP, DEFAULT_SPREAD = 800, 0.9, 3.0
# 0.9 / (1 - 0.9) is 9.000000000000002 in floating point, and its ceiling 10.
CEILING_GUARD = 1e-9
# Sizes to choose among.
SIZES = (100, 150, 200, 300, 400, 600, 800, 1200, 1600)
# "auto": multiply-adds of all machines (a minute or two of one core); the size below
# which a local machine is too inaccurate; and the size up to which, times the root of
# 1 / (1 - p), the full model takes no more work than a cover.
AUTO_WORK, LEAST_AUTO, WHOLE = 1e12, 400, 800
# Bytes of the factors of all subdomains together that a fit may keep unless told to.
KEPT_BYTES = 4 * 2**30


class CoverShape(NamedTuple):
    """All sizes of a cover, known before it is made."""

    n_samples: int
    size: int  # M: rows of a subdomain, at most n_samples
    overlap: float  # p: share of a subdomain's rows that other clusters own
    spread: float  # t: how many times the least number of neighbouring clusters lend
    n_subdomains: int  # K

    @property
    def n_lenders(self) -> int:
        """The paper's r."""
        return count_lenders(self.overlap, self.spread, self.n_subdomains)

    @classmethod
    def of(cls, model, n_samples, n_outputs=1) -> "CoverShape":
        """The shape that the parameters of a regressor decide; refuses wrong ones.

        Examples
        --------
        >>> from overcover import OverlappingCoverRegressor
        >>> CoverShape.of(OverlappingCoverRegressor(), 36_000)[1:]
        (800, 0.9, 3.0, 450)
        """
        size, overlap, spread = model.subdomain_size, model.overlap, model.spread
        check_cover_options(size, overlap, spread)
        if isinstance(size, str):
            size = auto_size(n_samples, n_outputs, overlap, model.machine)
        return cls.at(n_samples, size, overlap, spread)

    @classmethod
    def at(cls, n_samples, size, overlap=DEFAULT_OVERLAP, spread=DEFAULT_SPREAD):
        """The shape of a cover whose size is a number."""
        n_subdomains = count_subdomains(n_samples, size, overlap)
        return cls(n_samples, min(size, n_samples), overlap, spread, n_subdomains)


def check_cover_options(subdomain_size, overlap, spread=DEFAULT_SPREAD):
    """Refuse an M, p or t that makes no sense."""
    if not isinstance(subdomain_size, str):
        check_count("subdomain_size", subdomain_size, 1, "Or give 'auto'.")
    elif subdomain_size != "auto":
        raise ValueError(
            f"subdomain_size={subdomain_size!r} must be a number of rows such as "
            f"{DEFAULT_SIZE}, or 'auto'."
        )
    if not isinstance(overlap, Real) or not 0 <= float(overlap) < 1:
        raise ValueError(
            f"overlap={overlap!r} must be at least 0 and below 1: the share of a "
            "subdomain's rows that other clusters own. 0.9 is accurate, 0 a plain "
            "partition."
        )
    if not isinstance(spread, Real) or not 1 <= float(spread) < np.inf:
        raise ValueError(
            f"spread={spread!r} must be a number >= 1: 1 borrows from as few "
            "neighbouring clusters as can lend enough."
        )


def auto_size(n_samples, n_outputs=1, overlap=DEFAULT_OVERLAP, machine=None) -> int:
    r"""The size of subdomains that ``subdomain_size="auto"`` stands for.

    A rule of counts alone, so that it is the same on every computer:

    1. all rows, :math:`M = N`, while the full model takes no more work than a cover of
       subdomains of 800, :math:`N \le 800 / \sqrt{1 - p}`;
    2. else the largest of 400, 600, 800, 1200, 1600 for which the machines take at most
       :math:`10^{12}` multiply-adds, :math:`G N M^2 / (1 - p)`, and their factors at
       most 4 GiB, :math:`4 G N M / (1 - p)` bytes;
    3. 400 where none does; factors that take more than 4 GiB are then not kept (see
       `GP`), unless ``keep_factors=True``, with which M falls to 100 if need be.

    G is one, or the number of outputs with ``GP(per_output=True)``.

    Examples
    --------
    >>> [auto_size(n) for n in (2000, 10_000, 100_000, 1_000_000)]
    [2000, 1600, 800, 400]
    """
    n_groups = n_outputs if getattr(machine, "per_output", False) else 1
    members = n_groups * n_samples / (1.0 - overlap)
    if n_samples * np.sqrt(1.0 - overlap) <= WHOLE:
        return max(1, int(n_samples))
    must_keep = getattr(machine, "keep_factors", "auto") is True
    allowed = [
        size
        for size in SIZES
        if (members * size**2 <= AUTO_WORK or size <= LEAST_AUTO)
        and (4 * members * size <= KEPT_BYTES or (size <= LEAST_AUTO and not must_keep))
        and 2 * size <= n_samples
    ]
    return max(allowed, default=SIZES[0])


@record(
    members=[whole("n", 0, "N")],
    n_owned=whole("K", 1),
)
class Cover(NamedTuple):
    """Which rows each subdomain holds."""

    members: Sequence[np.ndarray]
    """Row indices of every subdomain, the owned ones first, without duplicates."""

    n_owned: np.ndarray
    """How many of its members each subdomain owns, shape (n_subdomains,)."""

    @property
    def overlap(self) -> float:
        """The share of the subdomains' rows that other subdomains own."""
        return 1.0 - float(self.n_owned.sum()) / sum(map(len, self.members))

    def renumbered(self, rows):
        """The same cover where row i is called ``rows[i]``; None changes nothing."""
        if rows is None:
            return self
        return Cover([rows[members] for members in self.members], self.n_owned)

    def rows(self):
        """The numbers of all rows, ascending.

        Some may be missing: of equal rows the first stands for all, and rows of weight
        zero are left out.
        """
        pairs = zip(self.members, self.n_owned)
        return np.sort(np.concatenate([rows[:n_owned] for rows, n_owned in pairs]))

    def among(self, n_rows):
        """Which of `n_rows` rows this is a cover of, an array of int.

        These are all rows of the fit's X, or only those that it used.
        """
        rows = self.rows()
        if n_rows == len(rows):
            return np.arange(n_rows)
        if n_rows <= rows[-1]:
            raise ValueError(
                f"X has {n_rows} rows, the cover {len(rows)}. Give the rows the model "
                "was fitted on."
            )
        return rows

    def compact(self):
        """The same cover with its rows numbered from zero, none missing."""
        rows = self.rows()
        if rows[-1] == len(rows) - 1:
            return self
        return Cover([np.searchsorted(rows, m) for m in self.members], self.n_owned)


def count_subdomains(n_samples, size, overlap):
    """K = ceil(N / ((1 - p) M)), or 1 if one subdomain can hold everything."""
    if n_samples <= size:
        return 1
    owned = max(1.0, (1.0 - overlap) * size)
    return int(np.ceil(n_samples / owned - CEILING_GUARD))


def count_lenders(overlap, spread, n_subdomains):
    """r = ceil(t p / (1 - p)), at most all other clusters."""
    r = int(np.ceil(spread * overlap / (1.0 - overlap) - CEILING_GUARD))
    return min(r, n_subdomains - 1)


def quotas(distances, capacities, wanted):
    """How many rows each lender gives, nearest lender first; the sum is `wanted`.

    Shares are in proportion to the inverse of `distances` (ascending), rounded down;
    the nearest lenders give one more each for the rest. A lender gives at most its
    capacity; the others give the excess, nearest first.

    Examples
    --------
    >>> quotas(np.array([1.0, 2.0]), np.array([50, 50]), 10).tolist()
    [7, 3]
    >>> quotas(np.array([1.0, 2.0]), np.array([4, 50]), 10).tolist()
    [4, 6]
    """
    # Coincident centres: infinitely near is as good as very near, and finite.
    least = 1e-9 * distances[-1] if distances[-1] > 0 else 1.0
    share = 1.0 / np.maximum(distances, least)
    counts = np.floor(wanted * share / share.sum()).astype(np.intp)
    counts[: wanted - counts.sum()] += 1
    counts = np.minimum(counts, capacities)
    spare, n_missing = capacities - counts, wanted - counts.sum()
    return counts + np.clip(n_missing - (np.cumsum(spare) - spare), 0, spare)


def lenders_of(i, centers, sizes, wanted, lenders):
    """The lenders, more if they have too few rows, and their distances."""
    if sizes[lenders].sum() < wanted:
        dist_sq = np.sum((centers - centers[i]) ** 2, axis=1)
        order = np.argsort(dist_sq, kind="stable")
        order = order[order != i]
        n_enough = 1 + int(np.searchsorted(np.cumsum(sizes[order]), wanted))
        lenders = order[: max(len(lenders), n_enough)]
    return lenders, np.sqrt(np.sum((centers[lenders] - centers[i]) ** 2, axis=1))


def extend_clusters(X, clusters, centers, size, overlap, spread, which, n_jobs=None):
    """Row numbers of the subdomains of the clusters `which`, as a list.

    `clusters` are row numbers of X, which may be mapped. Ranges that begin at multiples
    of ``block_rows(n_clusters)`` (see `overcover._neighbors`) give what all clusters at
    once give. Memory: one lender's rows per worker, `n_lenders` numbers per cluster.
    """
    if overlap == 0 or len(clusters) == 1:
        return [clusters[i] for i in which]
    sizes = np.array([len(rows) for rows in clusters])
    size, n_lenders = min(size, sizes.sum()), count_lenders(overlap, spread, len(sizes))
    # One more than lend, because every cluster is nearest to itself.
    nearest, _ = nearest_centers(centers[which], centers, n_lenders + 1, n_jobs)

    def extend(i, listed):
        own, wanted = clusters[i], size - sizes[i]
        if wanted <= 0:
            return own
        # Among coincident centres a cluster may be missing from its own list.
        others = listed[listed != i][:n_lenders]
        lenders, distances = lenders_of(i, centers, sizes, wanted, others)
        counts = quotas(distances, sizes[lenders], wanted)
        loans = [
            nearest_rows(X, clusters[lender], centers[i], count)
            for lender, count in zip(lenders, counts)
        ]
        return np.concatenate([own, *loans])

    return list(run_tasks(extend, zip(which, nearest), n_jobs))


def nearest_rows(X, numbers, center, count):
    """Numbers of the `count` rows nearest to a centre, in the order they had."""
    if count == len(numbers):
        return numbers
    dist_sq = np.sum((X[numbers] - center) ** 2, axis=1)
    return numbers[np.sort(np.argsort(dist_sq, kind="stable")[:count])]


def cover_partition(X, partition: Partition, size, overlap, spread, n_jobs=None):
    """Extend every cluster to a subdomain of `size` rows; returns a `Cover`.

    With ``overlap=0`` the cover is the partition. Memory: the members, `size` indices
    per subdomain; rows are read one cluster at a time, so X may be mapped.

    Examples
    --------
    >>> X = np.arange(8.0)[:, None]
    >>> halves = Partition(np.repeat([0, 1], 4), np.array([[1.5], [5.5]]))
    >>> [rows.tolist() for rows in cover_partition(X, halves, 6, 0.5, 1.0).members]
    [[0, 1, 2, 3, 4, 5], [4, 5, 6, 7, 2, 3]]
    """
    clusters, which = partition.clusters(), np.arange(len(partition.centers))
    known = X, clusters, partition.centers, size, overlap, spread
    members = extend_clusters(*known, which, n_jobs)
    return Cover(members, np.array([len(rows) for rows in clusters]))


def cover_flops(shape: CoverShape, n_features):
    """Operations of a cover, see `overcover._linalg.dense_flops`.

    Distances between centres, and those of lenders' rows, which are sorted.
    """
    sorted_row = 75_000.0 + 150.0 * n_features
    n_members = shape.n_subdomains * shape.size
    return n_members * sorted_row + shape.n_subdomains**2 * distance_flops(n_features)
