"""A cover as a picture: its rows, one subdomain, and the rows that subdomains share."""

from itertools import pairwise

import numpy as np
from scipy.cluster.hierarchy import leaves_list, linkage
from scipy.sparse import csr_array
from scipy.spatial.distance import squareform
from sklearn.utils.validation import check_is_fitted

from .._drawing import (
    ACCENT,
    FAINT,
    INK,
    axes_for,
    light_map,
    plain,
    principal_points,
    thinned,
)
from .._validation import check_choice, check_queries
from ..explain import extent, names_of_features
from ..tables import near_names

KINDS = ("matrix", "graph", "sizes")
# Lines from one subdomain of a graph: to the others that share most rows with it.
N_LINES = 3


class CoverDisplay:
    """The rows of a cover in the plane; one subdomain with the rows it borrows.

    Parameters
    ----------
    points : ndarray of shape (n_samples, 2)
        Where to draw the rows.
    cover : Cover
    subdomain : int
        The one to show with the rows it borrows.
    labels : (str, str)
        Of the axes.
    n_rows : int, default=5000
        Largest number of rows of other subdomains to draw, evenly spaced.

    Attributes
    ----------
    owners : ndarray of shape (n_samples,)
        The subdomain that owns each row.
    shown : ndarray of int
        Rows drawn as owned by other subdomains.
    rows_, owned_, borrowed_, ax_, figure_
        Of matplotlib, after `plot`: rows of other subdomains, rows the subdomain owns,
        rows it borrows.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP, OverlappingCoverRegressor
    >>> from overcover.plots import CoverDisplay
    >>> X = np.random.default_rng(0).uniform(size=(400, 3))
    >>> model = OverlappingCoverRegressor(GP("rbf", 1.0, 0.1), subdomain_size=50)
    >>> model = model.fit(X, X[:, 0])
    >>> from matplotlib.figure import Figure
    >>> display = CoverDisplay.from_estimator(model, X, ax=Figure().subplots())
    >>> display.points.shape, len(display.borrowed_.get_offsets())
    ((400, 2), 45)
    """

    def __init__(self, points, cover, subdomain, labels, n_rows=5000):
        self.points = points
        self.cover = cover
        self.subdomain = subdomain
        self.labels = labels
        self.n_rows = n_rows
        self.owners = owners_of(cover)
        others = np.setdiff1d(np.arange(len(points)), cover.members[subdomain])
        self.shown = thinned(others, n_rows)

    @classmethod
    def from_estimator(
        cls, model, X, *, features=None, subdomain=None, n_rows=5000, ax=None, **style
    ):
        """Draw the cover of a fitted model over its training rows.

        Parameters
        ----------
        model : OverlappingCoverRegressor
        X : array-like of shape (n_samples, n_features)
            The rows it was fitted on, in their order.
        features : pair of int or str, default=None
            Columns to draw over. None draws over the first two principal components in
            the machine's metric: a column counts as much as it matters to the machine.
        subdomain : int, default=None
            None takes the one nearest to the middle.
        n_rows, ax, **style
            As for the class and in `plot`.
        """
        check_is_fitted(model)
        X = check_queries(model, X).astype(np.float64)
        display = cls._of_rows(model, X, features, subdomain, n_rows)
        return display.plot(ax=ax, **style)

    @classmethod
    def _of_rows(cls, model, X, features=None, subdomain=None, n_rows=5000):
        """`from_estimator` for checked rows, not drawn yet."""
        cover = model.cover_
        X, cover = X[cover.among(len(X))], cover.compact()
        if features is None:
            points, shares = principal_points(X / model.length_scales_)
            labels = tuple(
                f"{word} principal component ({share:.0%} of the spread)"
                for word, share in zip(("first", "second"), shares)
            )
        else:
            names = names_of_features(model)
            known = dict(zip(range(-len(names), 0), names)) | dict(enumerate(names))
            chosen = [known.get(feature, feature) for feature in features]
            if missing := [name for name in chosen if name not in names]:
                near = near_names(missing[0], names)
                raise ValueError(f"There is no feature {missing[0]!r}.{near}")
            if len(chosen) != 2:
                raise ValueError(f"features={features!r} must name two columns of X.")
            points = X[:, [names.index(name) for name in chosen]]
            labels = tuple(map(plain, chosen))
        if subdomain is None:
            offsets = model.router_.means - model.router_.means.mean(axis=0)
            subdomain = int(np.argmin(np.sum(offsets**2, axis=1)))
        if not 0 <= subdomain < len(cover.members):
            raise ValueError(
                f"subdomain={subdomain} must be at least 0 and below the number of "
                f"subdomains, {len(cover.members)}."
            )
        if len(labels) == 1:  # one feature: draw it along, the owners upwards
            points = np.column_stack([points[:, 0], owners_of(cover)])
            labels = (labels[0], "subdomain that owns the row")
        return cls(points, cover, subdomain, labels, n_rows)

    def plot(self, ax=None, **style):
        """Draw the rows on `ax`, or a new figure; `style` goes to ``ax.scatter``."""
        options = {"layout": "constrained", "figsize": (6.4, 5.6)}
        self.ax_ = axes_for(ax, "CoverDisplay", **options)
        self.figure_ = self.ax_.figure
        n_owned = self.cover.n_owned[self.subdomain]
        owned, borrowed = np.split(self.cover.members[self.subdomain], [n_owned])
        # Neighbouring subdomains often have neighbouring numbers: shuffled lightness
        # keeps them apart.
        n_subdomains = len(self.cover.members)
        lightness = np.random.default_rng(0).permutation(n_subdomains)
        look = {"s": 9, "lw": 0, "alpha": 0.8, "cmap": light_map(), "zorder": 1}
        self.rows_ = self.ax_.scatter(
            *self.points[self.shown].T,
            c=lightness[self.owners[self.shown]],
            vmin=0,
            vmax=max(n_subdomains - 1, 1),
            label="rows of other subdomains, a shade each",
            **{**look, **style},
        )
        look = {"s": 15, "fc": "white", "ec": INK, "lw": 0.8, "zorder": 2}
        look["label"] = f"{len(borrowed):,} rows it borrows"
        self.borrowed_ = self.ax_.scatter(*self.points[borrowed].T, **look)
        look = {"s": 20, "color": ACCENT, "ec": INK, "lw": 0.5, "zorder": 3}
        look |= {"label": f"{n_owned:,} rows it owns", "marker": "D"}
        self.owned_ = self.ax_.scatter(*self.points[owned].T, **look)
        self.ax_.set(xlabel=self.labels[0], ylabel=self.labels[1])
        self.ax_.set_title(f"Subdomain {self.subdomain} of {n_subdomains:,}")
        others = [self.rows_] if len(self.shown) else []
        self.ax_.legend(
            handles=[self.owned_, self.borrowed_, *others],
            loc="upper center",
            bbox_to_anchor=(0.5, -0.13),
            frameon=False,
            markerscale=1.4,
        )
        return self


def owners_of(cover):
    """The subdomain that owns each row, shape (n_samples,)."""
    owners = np.empty(cover.n_owned.sum(), dtype=np.intp)
    for k, (members, n_owned) in enumerate(zip(cover.members, cover.n_owned)):
        owners[members[:n_owned]] = k
    return owners


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
        held = csr_array((np.ones(len(rows), dtype=np.int64), rows, ends))
        display = cls(
            held @ held.T, cover.n_owned, held.sum(axis=0), model.router_.means
        )
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
    """Pairs of subdomains with many common rows, and shares of the smaller's rows."""
    strength = {}
    for i, (start, end) in enumerate(pairwise(shared.indptr)):
        columns, counts = shared.indices[start:end], shared.data[start:end]
        order = np.argsort(-counts, kind="stable")
        for j in order[columns[order] != i][:n_lines]:
            k = columns[j]
            strength[min(i, k), max(i, k)] = counts[j] / min(sizes[i], sizes[k])
    pairs = sorted(strength)
    return np.array(pairs, np.intp).reshape(-1, 2), np.array(
        [*map(strength.get, pairs)]
    )
