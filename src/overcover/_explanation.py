"""The explanation of a prediction: plain values, and how they are printed.

`overcover.explain.explain` computes the values.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from ._markup import element, html_table, number, numbers, percent, text_table

# Standard deviations up to which near rows may differ from a prediction by noise.
SMALL_GAP = 2.0


@dataclass(frozen=True, repr=False, eq=False)
class Explanation:
    """Why a model predicts what it predicts for one query; see `explain`.

    Printed, it is a page of text; in a notebook, a few tables.

    Attributes
    ----------
    query : ndarray of shape (n_features,)
    names : list of str
        Of the features.
    mean : ndarray of shape (n_outputs,)
    std : ndarray of shape (n_outputs,) or None
        None where the machine has no variance.
    subdomains : ndarray of shape (n_answers,)
        The subdomains that answered, by index.
    votes : ndarray of shape (n_answers, n_outputs)
        The weight of each answer; columns sum to one.
    distances : ndarray of shape (n_answers,)
        As the router measures them.
    measure : str
        What these distances are.
    posterior_variances : ndarray of shape (n_answers,) or None
        Of each subdomain, on the kernel's own scale: between the noise and one plus the
        noise for a named kernel. Where subdomains learn hyperparameters of their own,
        and for `AnyRegressor`, on a common scale instead.
    means : ndarray of shape (n_answers, n_outputs)
        The answers.
    stds : ndarray of shape (n_answers, n_outputs) or None
        Standard deviations of the answers.
    neighbors : ndarray of shape (n_neighbors,) or None
        The nearest of all training rows, by index, nearest first; None where the
        machine keeps no rows. Rows of weight zero are not among them.
    neighbor_distances : ndarray of shape (n_neighbors,) or None
        In the machine's metric, that is in length scales.
    neighbor_targets : ndarray of shape (n_neighbors, n_outputs) or None
    neighbor_seen : ndarray of bool of shape (n_neighbors,) or None
        Whether a subdomain whose answer has weight holds the row.
    remoteness : float
        Distance to the nearest row of the subdomain with the largest weight, over the
        widest gap between its rows; NaN where the machine keeps no rows.
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
    posterior_variances: np.ndarray | None = None
    stds: np.ndarray | None = None
    neighbors: np.ndarray | None = None
    neighbor_distances: np.ndarray | None = None
    neighbor_targets: np.ndarray | None = None
    neighbor_seen: np.ndarray | None = None

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
            "its subdomain as the loneliest row there is from its nearest"
        )
        if self.outside:
            return (
                f"The query lies OUTSIDE the cover: {far}. The answer is extrapolated; "
                "do not rely on it."
            )
        return f"The query lies inside the cover: {far}."

    @property
    def agreement(self):
        """How far the nearest rows' targets are from the prediction, and why.

        About the output where they are farthest, in standard deviations; None where
        the machine keeps no rows.
        """
        if self.neighbor_targets is None or self.neighbor_distances is None:
            return None
        off = np.sqrt(np.mean((self.neighbor_targets - self.mean) ** 2, axis=0))
        std = off if self.std is None else self.std
        j = int(np.argmax(off / np.maximum(std, np.finfo(float).tiny)))
        where = f" in output {j}, where they differ most" if len(off) > 1 else ""
        return (
            f"The targets of these rows are {number(off[j])} from the prediction on "
            f"average{where}: {self._why(off[j], std[j])}"
        )

    def _why(self, off, std):
        """The reason for a difference between the nearest rows and the prediction."""
        if self.outside:
            return (
                "the query lies outside the cover, where these rows decide little, and "
                "the answer returns to the mean of the subdomain."
            )
        assert self.neighbor_distances is not None
        if self.neighbor_distances[0] > 1:
            return (
                "none of them is within a length scale of the query, so many rows "
                "decide together."
            )
        if off <= SMALL_GAP * std:
            return (
                f"the standard deviation, {number(std)}, allows for that. The machine "
                "takes such differences between near rows for noise, and averages them."
            )
        return (
            f"more than the standard deviation, {number(std)}, since outputs change "
            "within these distances. The machine follows the change by rows on all "
            "sides and farther away, some of which count negatively."
        )

    def _answers(self):
        """Header and rows of the table of answers."""
        header = ["subdomain", "vote", "distance", "posterior variance", "answer"]
        variances, rows = self.posterior_variances, []
        for i, k in enumerate(self.subdomains):
            variance = "-" if variances is None else number(variances[i])
            std = None if self.stds is None else self.stds[i]
            vote = percent(self.votes[i].mean())
            answer = in_words(self.means[i], std)
            rows.append([str(k), vote, number(self.distances[i]), variance, answer])
        return header, rows

    def _near(self):
        """Header and rows of the table of training rows."""
        header = ["row", "distance", "target", "held by a voter"]
        columns: tuple = (
            self.neighbors,
            self.neighbor_distances,
            self.neighbor_targets,
            self.neighbor_seen,
        )
        return header, [
            [str(i), number(distance), numbers(target), "yes" if is_held else "no"]
            for i, distance, target, is_held in zip(*columns)
        ]

    def _parts(self):
        """Title, text or table, by turns: what both renderings show."""
        pairs = zip(self.names[:6], self.query)
        query = ", ".join(f"{name} = {number(value)}" for name, value in pairs)
        if len(self.query) > 6:
            query += f", ... ({len(self.query) - 6} more)"
        yield "Query", query
        yield "Prediction", in_words(self.mean, self.std)
        yield f"Answers ({self.measure})", self._answers()
        if self.neighbors is not None:
            yield "Nearest training rows (distance in length scales)", self._near()
            yield "Neighbours", self.agreement
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


def in_words(mean, std):
    """An answer in a few words.

    Examples
    --------
    >>> in_words(np.array([0.5]), np.array([0.1])), in_words(np.array([1.0]), None)
    ('0.5 +- 0.1', '1')
    """
    if std is None:
        return numbers(mean)
    pairs = [f"{number(m)} +- {number(s)}" for m, s in zip(mean[:3], std)]
    rest = len(mean) - 3
    return ", ".join(pairs) + (f", ... ({rest} more)" if rest > 0 else "")
