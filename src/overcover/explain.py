r"""Explain: why a model says what it says of a query.

Beside the end of the path: what routing, machines and combination did for a query, and
which training rows are near it. Nothing is computed twice and nothing is kept for it:
rows come back from the states of the machines (`Machine.recall_inputs`).

How far out a query is: with :math:`d(x)` its distance, in the machine's metric, to the
nearest row of the subdomain D that has most say,

.. math:: \text{remoteness}(x) = d(x) / \max_{i \in D} d_{D \setminus i}(x_i) .

Above one it is farther from every row than any row is from the others, and *outside the
cover*. Of queries that come from where the rows come from, hardly one in M does so.
"""

from dataclasses import dataclass

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import combination, routing
from ._markup import element, html_table, number, numbers, percent, text_table
from ._neighbors import nearest_centers
from ._validation import check_count, check_queries

# Two rows nearer than this share of the largest coordinate count as one.
COINCIDENT = 1e-7
# What the distances of a route are, by the kind of router.
MEASURES = {
    routing.EuclideanRouter: "distance to the mean of the subdomain",
    routing.VarianceRouter: "distance to the mean of the subdomain",
    routing.GaussianRouter: "distance by the subdomain's covariance",
    routing.NeighborsRouter: "distance: one over the votes of the nearest rows",
}


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """Why a model says what it says of one query; see `explain`.

    Printed, it is a page of text; in a notebook, a few tables.

    Attributes
    ----------
    query : ndarray of shape (n_features,)
    names : list of str
        Of the features.
    mean : ndarray of shape (n_outputs,)
    std : ndarray of shape (n_outputs,) or None
        None where the machine has no variance.
    subdomains : ndarray of shape (n_asked,)
        Who was asked, by index.
    votes : ndarray of shape (n_asked, n_outputs)
        What the answer of each counts; columns sum to one.
    distances : ndarray of shape (n_asked,)
        As the router measures them.
    measure : str
        What these distances are.
    doubts : ndarray of shape (n_asked,) or None
        How much each doubts: posterior variance on the kernel's own scale, between the
        noise and one plus the noise for a named kernel.
    means : ndarray of shape (n_asked, n_outputs)
        What each says.
    stds : ndarray of shape (n_asked, n_outputs) or None
    neighbors : ndarray of shape (n_neighbors,) or None
        The nearest of all training rows, by index, nearest first; None where the
        machine keeps no rows. (Rows of weight zero were never there, and not counted.)
    neighbor_distances : ndarray of shape (n_neighbors,) or None
        In the machine's metric, that is in length scales.
    neighbor_targets : ndarray of shape (n_neighbors, n_outputs) or None
    neighbor_seen : ndarray of bool of shape (n_neighbors,) or None
        Whether a subdomain that has a say holds the row.
    remoteness : float
        Distance to the nearest row of the subdomain with most say, over the widest gap
        between its rows; NaN where the machine keeps no rows.
    """

    query: np.ndarray
    names: list[str]
    mean: np.ndarray
    subdomains: np.ndarray
    votes: np.ndarray
    distances: np.ndarray
    measure: str
    means: np.ndarray
    remoteness: float
    std: np.ndarray | None = None
    doubts: np.ndarray | None = None
    stds: np.ndarray | None = None
    neighbors: np.ndarray | None = None
    neighbor_distances: np.ndarray | None = None
    neighbor_targets: np.ndarray | None = None
    neighbor_seen: np.ndarray | None = None

    @property
    def outside(self):
        """Whether the query lies outside the cover; False where nobody can tell."""
        return bool(self.remoteness > 1)

    @property
    def verdict(self):
        """Inside or outside the cover, and what that means, in a sentence."""
        if np.isnan(self.remoteness):
            return (
                "Whether the query lies outside the cover is not known: this machine "
                "keeps no training rows."
            )
        far = (
            f"it is {number(self.remoteness, 3)} times as far from the nearest row of "
            "its subdomain as the loneliest row there is from its nearest"
        )
        if self.outside:
            return (
                f"The query lies OUTSIDE the cover: {far}. The answer is extrapolated; "
                "do not rely on it, nor on its standard deviation."
            )
        return f"The query lies inside the cover: {far}."

    def _asked(self):
        """Header and rows of the table of those who were asked."""
        header = ["subdomain", "vote", "distance", "doubt", "says"]
        rows = []
        for i, k in enumerate(self.subdomains):
            doubt = "-" if self.doubts is None else number(self.doubts[i])
            std = None if self.stds is None else self.stds[i]
            vote = percent(self.votes[i].mean())
            says = said(self.means[i], std)
            rows.append([str(k), vote, number(self.distances[i]), doubt, says])
        return header, rows

    def _near(self):
        """Header and rows of the table of training rows."""
        header = ["row", "distance", "target", "seen by those with a say"]
        columns: tuple = (
            self.neighbors,
            self.neighbor_distances,
            self.neighbor_targets,
            self.neighbor_seen,
        )
        return header, [
            [str(i), number(distance), numbers(target), "yes" if seen else "no"]
            for i, distance, target, seen in zip(*columns)
        ]

    def _parts(self):
        """Title, text or table, by turns: what both renderings show."""
        pairs = zip(self.names[:6], self.query)
        query = ", ".join(f"{name} = {number(value)}" for name, value in pairs)
        if len(self.query) > 6:
            query += f", ... ({len(self.query) - 6} more)"
        yield "Query", query
        yield "Prediction", said(self.mean, self.std)
        yield f"Asked ({self.measure})", self._asked()
        if self.neighbors is not None:
            yield "Nearest training rows (distance in length scales)", self._near()
        yield "Cover", self.verdict

    def __repr__(self):
        """A page of text."""
        lines = []
        for title, content in self._parts():
            if isinstance(content, str):
                lines.append(f"{title}: {content}")
            else:
                lines += [f"{title}:", text_table(*content)]
        return "\n".join(lines)

    def _repr_html_(self):
        parts = []
        for title, content in self._parts():
            if isinstance(content, str):
                parts.append(element("p", f"{title}: {content}"))
            else:
                header, rows = content
                parts.append(html_table(header, rows, title))
        return f'<div class="overcover-explanation">{"".join(parts)}</div>'


class Explanations(tuple):
    """Explanations of several queries: a tuple that prints as a few pages."""

    __slots__ = ()

    def __repr__(self):
        """The pages, one after the other."""
        return "\n\n".join(f"[{i}] {page!r}" for i, page in enumerate(self))

    def _repr_html_(self):
        return "\n<hr>\n".join(page._repr_html_() for page in self)


def said(mean, std):
    """An answer in a few words.

    Examples
    --------
    >>> said(np.array([0.5]), np.array([0.1])), said(np.array([1.0, 2.0]), None)
    ('0.5 +- 0.1', '1, 2')
    """
    if std is None:
        return numbers(mean)
    pairs = [f"{number(m)} +- {number(s)}" for m, s in zip(mean[:3], std)]
    rest = len(mean) - 3
    return ", ".join(pairs) + (f", ... ({rest} more)" if rest > 0 else "")


def explain(model, X, n_neighbors=5):
    """Why a model says what it says; the work of `OverlappingCoverRegressor.explain`.

    Looks at every training row once: O(n_samples) per query. Memory beyond the result:
    O(n_queries * subdomain_size).

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Fitted.
    X : array-like of shape (n_queries, n_features) or (n_features,)
    n_neighbors : int, default=5
        Training rows to list.

    Returns
    -------
    Explanation if X is one row without a second axis, else a tuple of them
    """
    check_is_fitted(model)
    check_count("n_neighbors", n_neighbors, 1, "5 are enough to get an idea.")
    alone = np.ndim(X) == 1
    if alone:  # a row of a data frame keeps its names
        X = X.to_frame().T if hasattr(X, "to_frame") else np.reshape(X, (1, -1))
    X = check_queries(model, X).astype(np.float64)
    has_variance = model.machine_.has_variance
    route, answers, weights = model._consult(X, has_variance)
    prediction = combination.mixture(weights, answers.mean, answers.variance)
    near = nearest_rows(model, X, n_neighbors)
    remote = remoteness(model, X, homes(route, weights))
    names = names_of_features(model)
    pages = []
    for q, x in enumerate(X):
        asked = np.flatnonzero(route.subdomains[q] >= 0)
        subdomains, votes = route.subdomains[q, asked], weights[q, asked]
        means = answers.mean[q, asked]
        told = {}
        if has_variance:
            told["std"] = prediction.std[q]
            told["doubts"] = answers.doubt[q, asked, 0]
            told["stds"] = np.sqrt(answers.variance[q, asked])
        if near is not None:
            rows, told["neighbor_distances"], told["neighbor_targets"] = (
                part[q] for part in near
            )
            voters = subdomains[votes.max(axis=1) > 0]
            held = np.concatenate([model.cover_.members[k] for k in voters])
            told |= {"neighbors": rows, "neighbor_seen": np.isin(rows, held)}
        pages.append(
            Explanation(
                query=x,
                names=names,
                mean=prediction.mean[q],
                subdomains=subdomains,
                votes=np.broadcast_to(votes, means.shape).copy(),
                distances=route.distances[q, asked],
                measure=measure_of(model),
                means=means,
                remoteness=float(remote[q]),
                **told,
            )
        )
    return pages[0] if alone else Explanations(pages)


def summary(model):
    """A fitted model in a line: subdomains, sizes, seconds.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Fitted.

    Returns
    -------
    str
    """
    cover = model.cover_
    sizes = [len(members) for members in cover.members]
    one = model.n_subdomains_ == 1
    seconds = ", ".join(f"{name} {s:.1f} s" for name, s in model.timings_.items())
    return (
        f"{number(int(cover.n_owned.sum()))} rows in {number(model.n_subdomains_)} "
        f"subdomain{'' if one else 's'} of {extent(sizes)} rows, "
        f"{extent(cover.n_owned)} of them owned; {seconds}"
    )


def extent(counts):
    """Smallest to largest.

    Examples
    --------
    >>> extent([79, 80]), extent([80, 80])
    ('79 to 80', '80')
    """
    low, high = int(min(counts)), int(max(counts))
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def names_of_features(model):
    """What the columns are called: as in the data frame, else x0, x1, ..."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(model.n_features_in_)] if names is None else [*names]


def measure_of(model):
    """What the distances of a route are."""
    if isinstance(model.router_, routing.VarianceRouter) and (
        model.machine_.doubts_first or model.n_consulted > 1
    ):
        return "distance: root of the doubt"
    return MEASURES.get(type(model.router_), "distance as the router measures it")


def homes(route, weights):
    """The subdomain with most say, for every query.

    Parameters
    ----------
    route : Route
    weights : ndarray of shape (n_queries, n_consulted, 1 or n_outputs)

    Returns
    -------
    ndarray of int of shape (n_queries,)
    """
    best = np.argmax(weights.mean(axis=2), axis=1)[:, None]
    return np.take_along_axis(route.subdomains, best, axis=1)[:, 0]


def remoteness(model, X, home):
    """How far out queries are, as in the module's formula.

    Memory: one subdomain's rows at a time, and a block of distances.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Fitted.
    X : ndarray of shape (n_queries, n_features)
    home : ndarray of int of shape (n_queries,)
        The subdomain with most say.

    Returns
    -------
    ndarray of shape (n_queries,), NaN where the machine keeps no rows
    """
    remote = np.full(len(X), np.nan)
    for k, (queries, _) in routing.grouped(home[:, None]):
        rows = rows_in_metric(model, k)
        if rows is None:
            return remote
        near = nearest_centers(X[queries] / model.length_scales_, rows, 1)[1]
        # The nearest row of a row is itself: the second is its neighbour.
        gaps = nearest_centers(rows, rows, 2)[1][:, 1] if len(rows) > 1 else [np.inf]
        floor = COINCIDENT * np.abs(rows).max() + np.finfo(float).tiny
        remote[queries] = np.sqrt(near[:, 0]) / max(np.sqrt(np.max(gaps)), floor)
    return remote


def rows_in_metric(model, k):
    """Rows of subdomain k in the machine's metric; None where they are not kept."""
    X = model.machine_.recall_inputs(model.states_[k])
    return None if X is None else X / model.length_scales_


def nearest_rows(model, X, n_neighbors):
    """The training rows nearest to each query, out of the states of the machines.

    Every row is owned by one subdomain, so owned rows are all rows, once.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Fitted.
    X : ndarray of shape (n_queries, n_features)
    n_neighbors : int

    Returns
    -------
    rows, distances : ndarray of shape (n_queries, n_neighbors), nearest first
    targets : ndarray of shape (n_queries, n_neighbors, n_outputs)
        All of it None where the machine keeps no rows.
    """
    Z = X / model.length_scales_
    # Distance, row, subdomain, and place in it: of the nearest found so far.
    found = np.empty((4, len(X), 0))
    for k, (members, n_owned) in enumerate(
        zip(model.cover_.members, model.cover_.n_owned)
    ):
        rows = rows_in_metric(model, k)
        if rows is None:
            return None
        owned = rows[:n_owned]
        places, _ = nearest_centers(Z, owned, min(n_neighbors, n_owned))
        # Measured again, because large products cancel badly for coincident points.
        distances = np.linalg.norm(owned[places] - Z[:, None], axis=2)
        near = [distances, members[places], np.full(places.shape, k), places]
        found = np.concatenate([found, near], axis=2)
        order = np.lexsort((found[1], found[0]))[:, :n_neighbors]
        found = np.take_along_axis(found, order[None], axis=2)
    rows, owners, places = found[1:].astype(np.intp)
    targets = np.empty((*rows.shape, model.n_outputs_))
    for k, where in routing.grouped(owners):
        state = model.states_[k]
        targets[where] = model.machine_.recall_outputs(state, places[where])
    return rows, found[0], targets
