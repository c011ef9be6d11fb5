r"""Explain: why a model predicts what it predicts.

An explanation lists the subdomains that predict a query, their weights, and the nearest
training rows. With :math:`d(x)` the distance of a query, in the machine's metric, to
the nearest row of the subdomain D that has the largest weight, it lies *outside the
cover* if

.. math:: \text{remoteness}(x) = d(x) / \max_{i \in D} d_{D \setminus i}(x_i) > 1 .
"""

import warnings
from dataclasses import dataclass
from itertools import repeat
from typing import Any

import numpy as np

from ._markup import element, html_table, number, numbers, percent, some, text_table
from ._neighbors import nearest_centers
from ._validation import check_count, check_queries
from .consult import panel_of, rounds
from .machines import Prediction
from .routing import grouped

__all__ = ["Explanation"]

# Two rows nearer than this share of the largest coordinate count as one.
COINCIDENT = 1e-7
# Standard deviations up to which near rows may differ from a prediction by noise.
SMALL_GAP = 2.0


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """Why a model predicts what it predicts for one query; see `explain`.

    It prints as a page of text, and in a notebook as tables.

    Attributes
    ----------
    query : ndarray of shape (n_features,)
    names : list of str
        Names of the features.
    mean, std : ndarray of shape (n_outputs,)
        `std`, `stds` and `posterior_variances` are None if the machine has no
        variance.
    subdomains : ndarray of shape (n_answers,)
        Indices of the subdomains that predict the query.
    votes : ndarray of shape (n_answers, n_outputs)
        The weight of each subdomain; columns sum to one.
    distances : ndarray of shape (n_answers,)
        Distances of the subdomains, as the router measures them.
    measure : str
        The name of this distance.
    posterior_variances : ndarray of shape (n_answers,)
        Posterior variance of each subdomain, on the scale of the kernel: between the
        noise and one plus the noise for a named kernel. With `per_subdomain=True` and
        for `AnyRegressor`, it is on a scale common to all subdomains.
    means, stds : ndarray of shape (n_answers, n_outputs)
        The prediction of each subdomain, in units of the outputs. (With a `target`,
        the weights apply on the scale of the model.)
    neighbors, neighbor_distances : ndarray of shape (n_neighbors,)
        Indices of the nearest training rows, the nearest first, and their distances in
        length scales. Rows of weight zero are ignored. These and the next two are None
        if the machine keeps no rows.
    neighbor_targets : ndarray of shape (n_neighbors, n_outputs)
    neighbor_seen : ndarray of bool of shape (n_neighbors,)
        Whether a subdomain with weight holds the row.
    remoteness : float
        See the module's formula; NaN if the machine keeps no rows.
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
    std: Any = None  # this and the next are arrays, or None
    posterior_variances: Any = None
    stds: Any = None
    neighbors: Any = None
    neighbor_distances: Any = None
    neighbor_targets: Any = None
    neighbor_seen: Any = None

    @property
    def doubts(self):
        """Deprecated name of `posterior_variances`."""
        warnings.warn(
            "Explanation.doubts is now called posterior_variances. The old name will "
            "be removed in the next version.",
            FutureWarning,
            stacklevel=2,
        )
        return self.posterior_variances

    @property
    def outside(self):
        """Whether the query lies outside the cover; False where it is not known."""
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
            "its subdomain as the most isolated row there is from its nearest"
        )
        if self.outside:
            return (
                f"The query lies OUTSIDE the cover: {far}. The answer is extrapolated; "
                "do not rely on it."
            )
        return f"The query lies inside the cover: {far}."

    @property
    def agreement(self):
        """How far the nearest rows' targets are from the prediction, and why."""
        if self.neighbor_targets is None:
            return None
        off = np.sqrt(np.mean((self.neighbor_targets - self.mean) ** 2, axis=0))
        std = off if self.std is None else self.std
        j = int(np.argmax(off / np.maximum(std, np.finfo(float).tiny)))
        where = f" in output {j}, where they differ most" if len(off) > 1 else ""
        return (
            f"The targets of these rows are {number(off[j])} from the prediction on "
            f"average{where}: {self._reason(off[j], std[j])}"
        )

    def _reason(self, off, std):
        """Why the nearest rows differ from the prediction."""
        if self.outside:
            return (
                "the query lies outside the cover, where these rows have little "
                "weight, and the prediction returns to the mean of the subdomain."
            )
        if self.neighbor_distances[0] > 1:
            return (
                "none of them is within a length scale of the query, so many rows "
                "determine the prediction together."
            )
        if off <= SMALL_GAP * std:
            return (
                f"the standard deviation, {number(std)}, includes this difference. The "
                "machine treats such differences between near rows as noise."
            )
        return (
            f"more than the standard deviation, {number(std)}, because outputs change "
            "within these distances. The machine predicts the change from rows on all "
            "sides and farther away, some of them with negative weights."
        )

    def _parts(self):
        """Titles, and texts or tables (header, rows), that both renderings show."""
        pairs = zip(self.names, self.query)
        yield "Query", some([f"{name} = {number(x)}" for name, x in pairs], 6)
        yield "Prediction", in_words(self.mean, self.std)
        header = ["subdomain", "vote", "distance", "posterior variance", "answer"]
        none = repeat(None)
        answers = zip(
            map(str, self.subdomains),
            [percent(vote.mean()) for vote in self.votes],
            map(number, self.distances),
            map(number, none if self.std is None else self.posterior_variances),
            map(in_words, self.means, none if self.std is None else self.stds),
        )
        yield f"Answers ({self.measure})", (header, answers)
        if self.neighbors is not None:
            rows = zip(
                map(str, self.neighbors),
                map(number, self.neighbor_distances),
                map(numbers, self.neighbor_targets),
                np.where(self.neighbor_seen, "yes", "no"),
            )
            header = ["row", "distance", "target", "held by a voter"]
            yield "Nearest training rows (distance in length scales)", (header, rows)
            yield "Neighbours", self.agreement
        yield "Cover", self.verdict

    def __repr__(self):
        """A page of text."""
        return "\n".join(
            f"{title}: {content}"
            if isinstance(content, str)
            else f"{title}:\n{text_table(*content)}"
            for title, content in self._parts()
        )

    def _repr_html_(self):
        parts = (
            element("p", f"{title}: {content}")
            if isinstance(content, str)
            else html_table(content[0], content[1], title)
            for title, content in self._parts()
        )
        return f'<div class="overcover-explanation">{"".join(parts)}</div>'


class Explanations(tuple):
    """Explanations of several queries: a tuple that prints as a few pages."""

    __slots__ = ()

    def __repr__(self):
        """The pages, one after the other."""
        return "\n\n".join(f"[{i}] {page!r}" for i, page in enumerate(self))

    def _repr_html_(self):
        return "\n<hr>\n".join(page._repr_html_() for page in self)


def in_words(mean, std):
    """An answer in a few words."""
    if std is None:
        return numbers(mean)
    return some([f"{number(m)} +- {number(s)}" for m, s in zip(mean, std)], 3)


def explain(model, X, n_neighbors=5):
    """The work of `OverlappingCoverRegressor.explain`; reads every training row."""
    from .alone import as_cover  # which imports the regressor, and that this module

    model = as_cover(model)
    check_count("n_neighbors", n_neighbors, 1, "5 are enough to get an idea.")
    is_one = np.ndim(X) == 1
    if is_one:  # a row of a data frame keeps its names
        X = X.to_frame().T if hasattr(X, "to_frame") else np.reshape(X, (1, -1))
    X = check_queries(model, X).astype(np.float64)
    panel = panel_of(model)
    pages = [
        page
        for rows, consultation in rounds(panel, X, panel.machine.has_variance)
        for page in _pages(model, X[rows], consultation, n_neighbors)
    ]
    return pages[0] if is_one else Explanations(pages)


def _pages(model, X, consultation, n_neighbors):
    route, answers, weights, measure = consultation
    mean, std = model._outcomes(consultation.prediction()).moments()
    variances, near = answers.variance, nearest_rows(model, X, n_neighbors)
    remote = remoteness(model, X, consultation.homes())
    names = names_of_features(model)
    for q, x in enumerate(X):
        among = q, np.flatnonzero(route.subdomains[q] >= 0)
        subdomains, votes = route.subdomains[among], weights[among]
        stds = None if variances is None else np.sqrt(variances[among])
        means, stds = model._outcomes(Prediction(answers.mean[among], stds)).moments()
        neighbors = {}
        if near is not None:
            neighbors = {name: part[q] for name, part in near.items()}
            voters = subdomains[votes.max(axis=1) > 0]
            members = np.concatenate([model.cover_.members[k] for k in voters])
            neighbors["neighbor_seen"] = np.isin(neighbors["neighbors"], members)
        yield Explanation(
            query=x,
            names=names,
            mean=mean[q],
            std=None if std is None else std[q],
            subdomains=subdomains,
            votes=np.broadcast_to(votes, means.shape).copy(),
            distances=route.distances[among],
            measure=measure,
            posterior_variances=None if std is None else answers.posterior[among][:, 0],
            means=means,
            stds=stds,
            remoteness=float(remote[q]),
            **neighbors,
        )


def summary(model):
    """A fitted model in a line: subdomains, sizes, seconds."""
    cover = model.cover_
    sizes = [len(members) for members in cover.members]
    plural = "" if model.n_subdomains_ == 1 else "s"
    seconds = ", ".join(f"{name} {s:.1f} s" for name, s in model.timings_.items())
    return (
        f"{number(int(cover.n_owned.sum()))} rows in {number(model.n_subdomains_)} "
        f"subdomain{plural} of {extent(sizes)} rows, {extent(cover.n_owned)} of them "
        f"owned; {seconds}"
    )


def extent(counts):
    """Smallest to largest."""
    low, high = int(min(counts)), int(max(counts))
    return number(low) if low == high else f"{number(low)} to {number(high)}"


def names_of_features(model):
    """Names of the inputs: as encoded, or of the frame, or x0, x1; with their scale."""
    if hasattr(model, "encoder_"):
        names = model.encoder_.inputs
    else:
        plain = [f"x{i}" for i in range(model.n_features_in_)]
        names = list(getattr(model, "feature_names_in_", plain))
    if hasattr(model, "input_scales_"):
        pairs = zip(names, model.input_scales_.is_changed)
        return [f"asinh {name}" if changed else name for name, changed in pairs]
    return names


def remoteness(model, X, home):
    """How far out queries of such home subdomains are; NaN where no rows are kept."""
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
    """The nearest training rows, distances and outputs of queries; or None."""
    Z = X / model.length_scales_
    # Distance, row, subdomain, and place in it: of the nearest so far.
    nearest = np.empty((4, len(X), 0))
    for k, members in enumerate(model.cover_.members):
        rows, n_owned = rows_in_metric(model, k), model.cover_.n_owned[k]
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
        targets[where] = model.target_.inverse(recalled.outputs(places[where]))
    names = "neighbors", "neighbor_distances", "neighbor_targets"
    return dict(zip(names, (rows, nearest[0], targets)))
