r"""Trees of GPs: the inputs are split where that makes the outputs more probable.

A split sends a row x left or right of a threshold, :math:`v^\top x \le t`. With the
evidence :math:`E(S)`, the log marginal likelihood of a GP of its own on the rows S less
:math:`\tfrac12 \log |S|` for each of its numbers, a split of S into L and R needs
:math:`E(L) + E(R) > E(S)`; a node of more than M rows is split in any case. The best of
several random splits moves to the best threshold nearby. Trees are mixed with weights
:math:`\propto \exp(E_T / \text{number of leaves})`: else the best one alone would
answer. See docs/methods.md; Gramacy and Lee (2008) sample trees instead.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import softmax

from .. import kernels
from .._linalg import solve_cholesky
from .._parallel import run_tasks
from .._streams import center_of
from .._weights import evidence_of
from ._shared import PartsGP, factor_of, log_evidence, own_theta

# Random splits of a node that are compared, and steps towards the best threshold nearby
# as shares of the node's rows.
N_CANDIDATES, STEPS = 12, (1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128)
# Neither side of a split has fewer rows: evidence is little worth for a handful. Sides
# of a node that is too large have this share of it.
LEAST_ROWS, FORCED_SHARE = 20, 0.25
# An amplitude is no smaller than this share of the variance of all outputs.
LEAST_AMPLITUDE = 1e-10
# A tree with less weight does not answer.
LEAST_WEIGHT = 1e-3


class Split(NamedTuple):
    """Rows with ``Z @ direction <= threshold`` go left."""

    direction: np.ndarray  # in units of the length scales, shape (n_features,)
    threshold: float

    def goes_left(self, Z):
        """Which rows go left, shape (n_rows,)."""
        return Z @ self.direction <= self.threshold


class Node(NamedTuple):
    """A leaf, or a split and what is on its sides."""

    rows: np.ndarray  # numbers, ascending
    theta: np.ndarray  # log hyperparameters of a leaf
    evidence: float  # the sum over all leaves below
    split: Split | None = None
    sides: tuple = ()

    def leaves(self):
        """All leaves below, from left to right."""
        return [leaf for side in self.sides for leaf in side.leaves()] or [self]

    def leaf_numbers(self, Z):
        """The number of each row's leaf in the order of `leaves`, shape (n_rows,)."""
        numbers = np.zeros(len(Z), dtype=np.intp)
        if self.split is not None:
            is_left = self.split.goes_left(Z)
            left, right = self.sides
            numbers[is_left] = left.leaf_numbers(Z[is_left])
            numbers[~is_left] = right.leaf_numbers(Z[~is_left]) + len(left.leaves())
        return numbers


class Grower:
    """Grows random trees on the same rows, with a tuned machine."""

    def __init__(self, X, Y, weights, machine, leaf_size, splits):
        # A kernel object may care where the origin is; a named one does not.
        center = 0.0 if kernels.is_object(machine.used_kernel_) else center_of(X)
        self.X, self.Y, self.weights, self.machine = X - center, Y, weights, machine
        self.leaf_size, self.splits = leaf_size, splits
        self.Z = X / machine.length_scales(X)
        spread = np.average((Y - Y.mean(axis=0)) ** 2, axis=0)
        self.least = LEAST_AMPLITUDE * spread + 1e-300
        self.n_free = int(np.isnan(machine.fixed_theta(X.shape[1])).sum())

    def grow(self, seed) -> Node:
        """A random tree."""
        rows = np.arange(len(self.X))
        return self.divide(self.leaf(rows), np.random.RandomState(seed))

    def leaf(self, rows) -> Node:
        """A leaf; of more than `leaf_size` rows it has no evidence."""
        if len(rows) > self.leaf_size:
            return Node(rows, self.machine.theta_[0], -np.inf)
        weights = None if self.weights is None else self.weights[rows]
        theta = own_theta(self.machine, self.X[rows], self.Y[rows], weights)
        return Node(rows, theta, self.evidence(rows, theta))

    def divide(self, node, rng) -> Node:
        """The node as it is, or the tree below it."""
        split = self.best_split(node, rng)
        if split is None:
            if np.isfinite(node.evidence):
                return node
            # Rows of equal inputs cannot be divided, however many they are.
            return node._replace(evidence=self.evidence(node.rows, node.theta))
        is_left = split.goes_left(self.Z[node.rows])
        sides = self.leaf(node.rows[is_left]), self.leaf(node.rows[~is_left])
        is_better = sum(side.evidence for side in sides) > node.evidence
        if not is_better and np.isfinite(node.evidence):
            return node
        left, right = (self.divide(side, rng) for side in sides)
        total = left.evidence + right.evidence
        return Node(node.rows, node.theta, total, split, (left, right))

    def best_split(self, node, rng) -> Split | None:
        """The most probable of some random splits, moved to a better threshold."""
        rows, is_forced = node.rows, not np.isfinite(node.evidence)
        if is_forced:  # a sample is enough to compare splits
            rows = np.sort(rng.permutation(rows)[: self.leaf_size])
        least = max(1, int(FORCED_SHARE * len(rows))) if is_forced else LEAST_ROWS
        if len(rows) < max(2, 2 * least):
            return None
        Z, scores = self.Z[rows], {}

        def try_split(direction, place):
            place = int(np.clip(place, least, len(rows) - least))
            values = np.sort(Z @ direction)
            split = Split(direction, float(values[place - 1 : place + 1].mean()))
            is_left = split.goes_left(Z)
            if least <= is_left.sum() <= len(rows) - least:
                both = rows[is_left], rows[~is_left]
                score = sum(self.evidence(side, node.theta) for side in both)
                scores[score] = split, place

        for direction in self.directions(Z, rng):
            try_split(direction, rng.uniform(least, len(rows) - least))
        for step in STEPS if scores else ():
            split, place = scores[max(scores)]
            for sign in (-1, 1):
                try_split(split.direction, place + sign * max(1, step * len(rows)))
        return scores[max(scores)][0] if scores else None

    def directions(self, Z, rng):
        """Random axes along which rows vary, or random directions between rows."""
        ranges = np.ptp(Z, axis=0)
        if not ranges.any():
            return np.empty((0, len(ranges)))
        if self.splits == "axes":
            shares = ranges / ranges.max()
            shares /= shares.sum()
            return np.eye(len(ranges))[rng.choice(len(ranges), N_CANDIDATES, p=shares)]
        directions = rng.normal(size=(N_CANDIDATES, len(ranges)))
        return directions * (ranges > 0)

    def evidence(self, rows, theta):
        """The evidence of some rows at some hyperparameters."""
        weights = np.ones(len(rows)) if self.weights is None else self.weights[rows]
        kernel, X, Y = self.machine.used_kernel_, self.X[rows], self.Y[rows]
        value = log_likelihood(kernel, theta, X, Y, weights, self.least)
        n_numbers = self.n_free + 2 * Y.shape[1]
        return value - 0.5 * n_numbers * np.log(max(1.0, evidence_of(weights).sum()))


def log_likelihood(kernel, theta, X, Y, weights, least=0.0):
    """Log marginal likelihood at the best amplitudes, summed over outputs."""
    kernel, A = kernels.in_units(kernel, theta, X)
    L = factor_of(kernel, A, np.exp(theta[-1]) / weights)
    Y = Y - np.average(Y, axis=0, weights=weights)
    energy = np.einsum("ij,ij->j", Y, solve_cholesky(L, Y))
    amplitude_sq = np.maximum(energy / evidence_of(weights).sum(), least)
    return log_evidence(L, amplitude_sq, weights, theta[-1])


@dataclass(eq=False, repr=False, kw_only=True)
class TreeGP(PartsGP):
    """Trees that split the inputs, and a GP with its own hyperparameters on each leaf.

    A baseline for comparisons. Choose it if the function jumps, or changes its length
    scales, at a value of one input. Predictions jump at all borders between leaves; a
    cover is more accurate if the function is smooth.

    Training costs :math:`O(N M^2)` for every tree, a query :math:`O(M^2)` for every
    tree with weight. Memory is O(N M) for every tree.

    Parameters
    ----------
    machine : GP or None, default=None
        Its hyperparameters are the initial ones of every leaf; numbers are fixed for
        all leaves. None is ``GP()``.
    leaf_size : int, default=400
        The most rows of a leaf. Smaller leaves need evidence.
    splits : {"axes", "projections"}, default="axes"
        Whether a split compares one input with a threshold, or a projection of all
        inputs on a random direction.
    n_trees : int, default=4
        Random trees.
    n_jobs, random_state
        As in `overcover.OverlappingCoverRegressor`.

    Attributes
    ----------
    machine_ : GP
        With the hyperparameters where leaves start, and the calibration.
    trees_ : list of Node
        Those with weight, the most probable first.
    weights_ : ndarray of shape (n_trees_used,)
        Of the trees, from their evidence.
    states_ : list of GPState
        The leaves of all trees; ``theta`` holds the log hyperparameters of each.
    length_scales_ : ndarray of shape (n_features_in_,)
        The units of splits.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP
    >>> from overcover.baselines import TreeGP
    >>> X = np.linspace(-1, 1, 80)[:, None]
    >>> y = np.sin(3 * X[:, 0]) + 5 * (X[:, 0] > 0.2)
    >>> model = TreeGP(GP("rbf", 0.5, 1e-4), random_state=0).fit(X, y)
    >>> model.predict([[0.15], [0.25]]).round(1).tolist()
    [0.4, 5.7]
    """

    counts = {"leaf_size": 1, "n_trees": 1}
    choices = {"splits": ("axes", "projections")}
    leaf_size: int = 400
    splits: str = "axes"
    n_trees: int = 4

    def _fit(self, X, Y, weights):
        rng, _ = self._tune(X, Y, weights, self.leaf_size)
        self.length_scales_ = self.machine_.length_scales(X)
        grower = Grower(X, Y, weights, self.machine_, self.leaf_size, self.splits)
        seeds = rng.randint(2**31, size=self.n_trees)
        trees = list(run_tasks(grower.grow, zip(seeds), self.n_jobs))
        trees.sort(key=lambda tree: -tree.evidence)
        evidence = np.array([tree.evidence for tree in trees])
        shares = softmax(evidence / len(trees[0].leaves()))
        n_used = int(np.sum(shares >= LEAST_WEIGHT * shares[0]))
        if trees[0].split is None:  # one leaf is the same in all trees
            n_used = 1
        self.trees_ = trees[:n_used]
        self.weights_ = shares[:n_used] / shares[:n_used].sum()
        leaves = [leaf for tree in self.trees_ for leaf in tree.leaves()]
        owns = [None if weights is None else weights[leaf.rows] for leaf in leaves]
        parts = [(leaf.rows, own, leaf.theta) for leaf, own in zip(leaves, owns)]
        self._fit_parts(X, Y, parts)

    def _shares(self, X):
        Z = X / self.length_scales_
        shares = np.zeros((len(Z), len(self.states_)))
        first, each = 0, np.arange(len(Z))
        for tree, weight in zip(self.trees_, self.weights_):
            shares[each, first + tree.leaf_numbers(Z)] = weight
            first += len(tree.leaves())
        return shares
