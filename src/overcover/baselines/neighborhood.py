r"""The NN scheme: a machine per query, fitted to the query's nearest rows.

Speed-ups are relative to this scheme, so it avoids all unnecessary work: with :math:`A
= K + \nu\,\mathrm{diag}(1/w) = L L^\top` on the neighbours and m their mean output, one
forward substitution :math:`[z_y, z_q] = L^{-1} [Y - m, k_q]` gives mean, variance and
amplitude. Importance weights need targets, inputs like those of queries: one density
ratio for all rows, or one for each query's nearest rows and nearest targets. The
paper's M is ``n_neighbors``, its M_tst ``n_targets``.
"""

import warnings
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from .._neighbors import BruteIndex
from .._notes import noted
from .._parallel import one_thread_per_worker
from .._validation import all_or_nothing, check_count, check_training_data
from ..machines import Prediction, make_machine
from ._shared import WithMachine, in_chunks

# Distances in memory per worker: 8 MB.
BLOCK_DISTANCES = 2**20
# Small tasks, so that workers finish at about the same time.
MOST_QUERIES = 64
# A tree is faster than brute force only for few features and many rows: with 400
# neighbours, it is 3 times faster for 300,000 x 2, and slower for 300,000 x 8.
MOST_TREE_FEATURES, LEAST_TREE_ROWS = 4, 100_000


class TreeIndex:
    """Nearest rows by a k-d tree, for many rows of few features."""

    def __init__(self, rows):
        from sklearn.neighbors import KDTree

        self.tree = KDTree(rows)

    def nearest(self, queries, n_neighbors):
        """As `BruteIndex.nearest`, but with ties in the order of the tree."""
        near = self.tree.query(
            queries, n_neighbors, return_distance=False, sort_results=False
        )
        return np.sort(near, axis=1)


def make_index(rows):
    """The faster of the two indices for these rows."""
    n_samples, n_features = rows.shape
    if n_features <= MOST_TREE_FEATURES and n_samples >= LEAST_TREE_ROWS:
        return TreeIndex(rows)
    return BruteIndex(rows)


class NearestRows(WithMachine):
    """Rows that are kept as they are; a subclass gives `_answer`, from the nearest."""

    n_neighbors: int

    def _keep(self, X, Y, weight):
        self.length_scales_ = self.machine_.length_scales(X)
        self._index = make_index(X / self.length_scales_)
        # Copies, because the user may change X and Y later.
        self._X, self._Y, self._weight = X.copy(), Y.copy(), weight

    def _predict_rows(self, X, return_std, noise=True):
        size = min(self.n_neighbors, len(self._X))

        def answer_one(query, near):
            weight = None if self._weight is None else self._weight[near]
            rows = self._X[near], self._Y[near], weight
            return self._answer(query[None], *rows, return_std)

        def answer_some(queries):
            near = self._index.nearest(queries / self.length_scales_, size)
            answers = list(map(answer_one, queries, near))
            mean = np.concatenate([answer.mean for answer in answers])
            if not return_std:
                return mean, None
            spread = [a.variance if noise else a.function for a in answers]
            return mean, np.sqrt(np.concatenate(spread))

        step = int(np.clip(BLOCK_DISTANCES // len(self._X), 1, MOST_QUERIES))
        return Prediction(*in_chunks(answer_some, X, step, self.n_jobs))


@dataclass(eq=False, repr=False)
class NeighborhoodRegressor(NearestRows):
    """A local machine for every query, on the query's nearest rows.

    The baseline for the speed-ups of `overcover.OverlappingCoverRegressor`. `fit` only
    tunes the machine. Every query needs a fit of a machine, O(M^3) for a `GP`.

    Parameters
    ----------
    machine, n_jobs, random_state
        As in `overcover.OverlappingCoverRegressor`.
    n_neighbors : int, default=800
        The paper's M: the number of rows that train one machine, nearest in its metric;
        all rows if there are fewer.
    n_targets : int or None, default=None
        The paper's M_tst, for a machine that weighs rows by the ``X_target`` of `fit`:
        every query weighs its neighbours by as many targets, those nearest to it; all
        targets if there are fewer. None is one ratio of densities for all rows, which
        takes much less time.

    Attributes
    ----------
    machine_ : Machine
        With its tuned hyperparameters.
    length_scales_ : ndarray of shape (n_features_in_,)
        The machine's metric: distances are those in ``X / length_scales_``.

    Notes
    -----
    The standard deviation of a GP is that of textbooks, with the amplitude of the
    neighbours' marginal likelihood; intervals are Gaussian. A cover calibrates its
    variances by leave-one-out residuals, which would need an inverse for every query.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP
    >>> from overcover.baselines import NeighborhoodRegressor
    >>> X = np.random.default_rng(0).uniform(-3, 3, (2000, 2))
    >>> y = np.sin(X[:, 0]) * np.cos(X[:, 1])
    >>> model = NeighborhoodRegressor(GP(length_scale=2.0, noise=1e-4), 100).fit(X, y)
    >>> mean, std = model.predict([[0.5, 0.5]], return_std=True)
    >>> bool(abs(mean[0] - np.sin(0.5) * np.cos(0.5)) < 0.01), mean.shape == std.shape
    (True, True)
    """

    counts = {"n_neighbors": 1}
    n_neighbors: int = 800
    n_targets: Any = field(default=None, kw_only=True)

    @all_or_nothing
    @one_thread_per_worker()
    def fit(self, X, y, sample_weight=None, X_target=None):
        """Tune the machine, copy the rows and index them.

        Memory: twice that of the rows. `predict` needs, per worker, 8 MB of distances,
        or those of one query if these are more, and the memory of a machine on
        `n_neighbors` rows.

        Parameters are those of `overcover.OverlappingCoverRegressor.fit`. A row of any
        weight is one neighbour.
        """
        machine = make_machine(self.machine)
        X, Y, weight, *_ = check_training_data(
            self, X, y, sample_weight, merge=machine.takes_weights
        )
        self._check_options(X.shape[1])
        if self.n_targets is not None:
            check_count("n_targets", self.n_targets, 1, "800 is the paper's, or None.")
        size = min(self.n_neighbors, len(X))
        rng = check_random_state(self.random_state)
        given = weight
        weight = machine.weigh(X, weight, X_target, rng)
        machine.tune(X, Y, weight, size, rng, self.n_jobs)
        self.machine_ = machine
        self._keep(X, Y, weight)
        self._targets = None
        if X_target is not None and self.n_targets is not None:
            self._targets = np.array(X_target, dtype=np.float64)
            self._target_index = make_index(self._targets / self.length_scales_)
            self._n_targets = min(self.n_targets, len(self._targets))
            self._weight = given  # queries weigh their own neighbours
        return self

    def _answer(self, query, X, Y, weight, variance):
        if self._targets is not None:
            scaled = query / self.length_scales_
            near = self._target_index.nearest(scaled, self._n_targets)[0]
            with warnings.catch_warnings(), noted():
                # The nearest targets of one query seldom resemble its neighbours.
                warnings.simplefilter("ignore", UserWarning)
                # A copy, so that the weights of the fit stay as they are.
                weight = copy(self.machine_).weigh(X, weight, self._targets[near], 0)
        return self.machine_.answer_once(X, Y, weight, query, variance)
