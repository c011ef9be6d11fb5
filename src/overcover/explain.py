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

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import combination, routing
from ._explanation import Explanation, Explanations
from ._markup import number
from ._neighbors import nearest_centers
from ._validation import check_count, check_queries

__all__ = ["Explanation"]

# Two rows nearer than this share of the largest coordinate count as one.
COINCIDENT = 1e-7
# What the distances of a route are, by the kind of router.
MEASURES = {
    routing.EuclideanRouter: "distance to the mean of the subdomain",
    routing.VarianceRouter: "distance to the mean of the subdomain",
    routing.GaussianRouter: "distance by the subdomain's covariance",
    routing.NeighborsRouter: "distance: one over the votes of the nearest rows",
}


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
        told, distances = {}, route.distances[q, asked]
        if has_variance:
            told["std"] = prediction.std[q]
            told["doubts"] = answers.doubt[q, asked, 0]
            if is_measured_by_doubt(model):
                # An only candidate was not asked for its doubt before it answered.
                known = distances > 0
                distances = np.where(known, distances, np.sqrt(told["doubts"]))
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
                distances=distances,
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


def is_measured_by_doubt(model):
    """Whether the distances of a route are the roots of doubts."""
    return isinstance(model.router_, routing.VarianceRouter) and (
        model.machine_.doubts_first or model.n_consulted > 1
    )


def measure_of(model):
    """What the distances of a route are."""
    if is_measured_by_doubt(model):
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
