"""How subdomains overlap, as a picture: shared rows, and sizes."""

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from .._drawing import FAINT, INK, axes_for, principal_points
from .._validation import check_choice
from ..explain import extent

KINDS = ("matrix", "graph", "sizes")
# Lines from one subdomain of a graph: to the others that share most rows with it.
N_LINES = 3


class OverlapDisplay:
    """Rows that subdomains share.

    Parameters
    ----------
    shared : sparse array of shape (n_subdomains, n_subdomains)
        How many rows two subdomains have in common; sizes on the diagonal.
    n_owned : ndarray of shape (n_subdomains,)
    holders : ndarray of shape (n_samples,)
        How many subdomains hold each row.
    means : ndarray of shape (n_subdomains, n_features)
        Mean rows of the subdomains in the machine's metric, for the graph.

    Attributes
    ----------
    sizes : ndarray of shape (n_subdomains,)
        Rows of each subdomain.
    order_ : ndarray of shape (n_subdomains,)
        Order of the subdomains in a matrix: similar ones side by side; only after
        ``plot("matrix")``.
    artist_, ax_, figure_
        Of matplotlib, after `plot`: the picture, the lines or the bars.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from overcover import GP, OverlappingCoverRegressor
    >>> from overcover.plots import OverlapDisplay
    >>> X = np.random.default_rng(0).uniform(size=(400, 3))
    >>> model = OverlappingCoverRegressor(GP("rbf", 1.0, 0.1), subdomain_size=50)
    >>> model = model.fit(X, X[:, 0])
    >>> display = OverlapDisplay.from_estimator(model, ax=Figure().subplots())
    >>> display.sizes.min(), display.sizes.max()
    (np.int64(50), np.int64(50))
    """

    def __init__(self, shared, n_owned, holders, means):
        self.shared = shared
        self.n_owned = n_owned
        self.holders = holders
        self.means = means
        self.sizes = shared.diagonal()

    @classmethod
    def from_estimator(cls, model, *, kind="matrix", ax=None):
        """Draw how the subdomains of a fitted model overlap; see `plot`."""
        check_is_fitted(model)
        cover = model.cover_.compact()
        rows = np.concatenate(cover.members)
        ends = np.cumsum([0, *map(len, cover.members)])
        n_samples = int(cover.n_owned.sum())
        held = csr_array(
            (np.ones(len(rows), dtype=np.int64), rows, ends),
            shape=(len(cover.members), n_samples),
        )
        holders = np.bincount(rows, minlength=n_samples)
        shared = (held @ held.T).tocsr()
        display = cls(shared, cover.n_owned, holders, model.router_.means)
        return display.plot(kind, ax=ax)

    def plot(self, kind="matrix", ax=None):
        """Draw one of three pictures.

        Parameters
        ----------
        kind : {"matrix", "graph", "sizes"}, default="matrix"
            "matrix": shared rows as a share of a subdomain, dark where many; memory
            O(n_subdomains^2). "graph": subdomains at their means, in the plane where
            these spread most, with lines to those they share most rows with, thick
            where many. "sizes": how many rows are held by how many subdomains.
        ax : matplotlib Axes, default=None
            Where to draw; None makes a new figure.
        """
        check_choice("kind", kind, KINDS)
        self.ax_ = axes_for(ax, "OverlapDisplay", layout="constrained")
        self.figure_ = self.ax_.figure
        {"matrix": self._matrix, "graph": self._graph, "sizes": self._sizes}[kind]()
        return self

    def _matrix(self):
        share = self.shared.toarray() / np.maximum(self.sizes, 1)[:, None]
        self.order_ = similar_first(share)
        self.artist_ = self.ax_.imshow(
            share[np.ix_(self.order_, self.order_)],
            cmap="Greys",
            vmin=0,
            vmax=1,
            interpolation="nearest" if len(share) < 300 else "antialiased",
        )
        bar = self.figure_.colorbar(self.artist_, ax=self.ax_, shrink=0.85)
        bar.set_label("share of a subdomain's rows")
        self.ax_.set(
            xlabel="held by this subdomain too",
            ylabel="subdomain, similar ones side by side",
            title=f"Rows shared by {len(share):,} subdomains",
            xticks=[],
            yticks=[],
        )

    def _graph(self):
        from matplotlib.collections import LineCollection

        points, _ = principal_points(self.means)
        if points.shape[1] == 1:
            points = np.column_stack([points, np.zeros(len(points))])
        pairs, share = strongest_pairs(self.shared, self.sizes, N_LINES)
        self.artist_ = LineCollection(
            points[pairs],
            linewidths=0.3 + 3.0 * share,
            colors=[str(0.75 - 0.65 * s) for s in share],
            zorder=1,
        )
        self.ax_.add_collection(self.artist_)
        self.ax_.scatter(*points.T, s=20, fc="white", ec=INK, lw=1, zorder=2)
        self.ax_.autoscale_view()
        self.ax_.set(
            xlabel="first principal component of the means",
            ylabel="second",
            title=f"Thick dark lines: many shared rows\n(to {N_LINES} each, at most)",
        )

    def _sizes(self):
        counts = np.bincount(self.holders)[1:]
        at = np.arange(1, len(counts) + 1)
        self.artist_ = self.ax_.bar(at, counts, color=FAINT, ec=INK, lw=0.6, width=0.9)
        self.ax_.axvline(self.holders.mean(), color=INK, ls="--", lw=1.4)
        self.ax_.set(
            xlabel="subdomains that hold a row (dashed: mean)",
            ylabel="rows",
            title=f"Subdomains of {extent(self.sizes)} rows,\n"
            f"{extent(self.n_owned)} of them owned",
        )


def similar_first(share):
    """An order in which subdomains that share many rows stand side by side."""
    if len(share) < 3:
        return np.arange(len(share))
    apart = 1.0 - 0.5 * (share + share.T)
    np.fill_diagonal(apart, 0.0)
    return leaves_list(linkage(squareform(np.maximum(apart, 0.0)), "average"))


def strongest_pairs(shared, sizes, n_lines):
    """Pairs of subdomains with many common rows, and shares of the smaller's rows.

    From each subdomain to `n_lines` others at most.
    """
    strength = {}
    for i in range(len(sizes)):
        row = shared[[i]].tocoo()
        others = row.coords[1] != i
        columns, counts = row.coords[1][others], row.data[others]
        for j in np.argsort(-counts, kind="stable")[:n_lines]:
            k = int(columns[j])
            strength[min(i, k), max(i, k)] = counts[j] / min(sizes[i], sizes[k])
    pairs = np.array(sorted(strength), dtype=np.intp).reshape(-1, 2)
    return pairs, np.array([strength[i, k] for i, k in pairs])
