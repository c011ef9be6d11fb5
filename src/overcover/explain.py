r"""Explain: why a model predicts what it predicts.

Beside the end of the path: which subdomains answered a query, with which weights, and
which training rows are near it. The model keeps nothing for this: rows come back from
the states of the machines (`Machine.recall`).

How far out a query is: with :math:`d(x)` its distance, in the machine's metric, to the
nearest row of the subdomain D that has the largest weight,

.. math:: \text{remoteness}(x) = d(x) / \max_{i \in D} d_{D \setminus i}(x_i) .

Above one, the query is farther from every row of D than any of these rows is from the
others: it lies *outside the cover*. Of queries that have the distribution of the rows,
hardly one in M does.
"""

from typing import Any

import numpy as np

from ._explanation import Explanation, Explanations
from ._markup import number
from ._neighbors import nearest_centers
from ._validation import check_count, check_queries
from .consult import panel_of, rounds
from .routing import grouped

__all__ = ["Explanation"]

# Two rows nearer than this share of the largest coordinate count as one.
COINCIDENT = 1e-7


def explain(model, X, n_neighbors=5):
    """Take predictions apart; the work of `OverlappingCoverRegressor.explain`.

    Reads every training row once: O(n_samples) per query. Memory beyond the result:
    O(n_queries * subdomain_size).

    Parameters
    ----------
    model : OverlappingCoverRegressor or Machine
        Fitted.
    X : array-like of shape (n_queries, n_features) or (n_features,)
    n_neighbors : int, default=5
        Training rows to list.

    Returns
    -------
    Explanation if X is one row without a second axis, else a tuple of them
    """
    from .alone import as_cover  # which imports the regressor, and that this module

    model = as_cover(model)
    check_count("n_neighbors", n_neighbors, 1, "5 are enough to get an idea.")
    alone = np.ndim(X) == 1
    if alone:  # a row of a data frame keeps its names
        X = X.to_frame().T if hasattr(X, "to_frame") else np.reshape(X, (1, -1))
    X = check_queries(model, X).astype(np.float64)
    panel = panel_of(model)
    pages = [
        page
        for rows, consultation in rounds(panel, X, panel.machine.has_variance)
        for page in _pages(model, X[rows], consultation, n_neighbors)
    ]
    return pages[0] if alone else Explanations(pages)


def _pages(model, X, consultation, n_neighbors):
    """An explanation of each query of one round."""
    route, answers, weights, measure = consultation
    mean, std = consultation.prediction()
    near = nearest_rows(model, X, n_neighbors)
    remote = remoteness(model, X, consultation.homes())
    names = names_of_features(model)
    for q, x in enumerate(X):
        candidates = np.flatnonzero(route.subdomains[q] >= 0)
        subdomains, votes = route.subdomains[q, candidates], weights[q, candidates]
        means = answers.mean[q, candidates]
        page: dict[str, Any] = {
            "query": x,
            "names": names,
            "mean": mean[q],
            "subdomains": subdomains,
            "votes": np.broadcast_to(votes, means.shape).copy(),
            "distances": route.distances[q, candidates],
            "measure": measure,
            "means": means,
            "remoteness": float(remote[q]),
        }
        if std is not None:
            page["std"] = std[q]
            page["stds"] = np.sqrt(answers.variance[q, candidates])
            page["posterior_variances"] = answers.posterior[q, candidates, 0]
        if near is not None:
            rows, distances, targets = (part[q] for part in near)
            voters = subdomains[votes.max(axis=1) > 0]
            members = np.concatenate([model.cover_.members[k] for k in voters])
            page |= {"neighbors": rows, "neighbor_seen": np.isin(rows, members)}
            page |= {"neighbor_distances": distances, "neighbor_targets": targets}
        yield Explanation(**page)


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
    """Names of the input columns: as in the data frame, else x0, x1, ..."""
    names = getattr(model, "feature_names_in_", None)
    return [f"x{i}" for i in range(model.n_features_in_)] if names is None else [*names]


def remoteness(model, X, home):
    """How far out queries are, as in the module's formula.

    Memory: one subdomain's rows at a time, and a block of distances.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Fitted.
    X : ndarray of shape (n_queries, n_features)
    home : ndarray of int of shape (n_queries,)
        The subdomain with the largest weight.

    Returns
    -------
    ndarray of shape (n_queries,), NaN where the machine keeps no rows
    """
    remote = np.full(len(X), np.nan)
    for k, (queries, _) in grouped(home[:, None]):
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
    recalled = model.machine_.recall(model.states_[k])
    return None if recalled is None else recalled.X / model.length_scales_


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
    # Distance, row, subdomain, and place in it: of the nearest so far.
    nearest = np.empty((4, len(X), 0))
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
        nearest = np.concatenate([nearest, near], axis=2)
        order = np.lexsort((nearest[1], nearest[0]))[:, :n_neighbors]
        nearest = np.take_along_axis(nearest, order[None], axis=2)
    rows, owners, places = nearest[1:].astype(np.intp)
    targets = np.empty((*rows.shape, model.n_outputs_))
    for k, where in grouped(owners):
        recalled = model.machine_.recall(model.states_[k])
        targets[where] = recalled.outputs(places[where])
    return rows, nearest[0], targets
