"""Arithmetic of sparse GPs, in the letters of `overcover.baselines.sparse_gp`."""

import warnings
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from .. import kernels
from .._linalg import (
    add_to_diagonal,
    cholesky,
    solve_cholesky,
    solve_lower,
    solve_lower_transposed,
)
from .._neighbors import nearest_centers
from .._parallel import one_thread_per_worker, run_tasks
from .._streams import without_far_cells

# Rows or queries in a chunk, unless there are more inducing points.
CHUNK = 2048
# Relative to the variance of the kernel. Inducing points may be close to each other;
# the rounding in K_mm must stay below this number on its diagonal, or Q would exceed K.
# With a smaller Lambda, rounding would dominate B.
LEAST_NOISE = 1e-10
# With more rows, k-means works in batches.
MANY_ROWS = 20_000
MOST_SEED = np.iinfo(np.int32).max


class Inducing(NamedTuple):
    """The inducing points, and the noise."""

    kernel: Any  # A name, or a scikit-learn kernel with its tuned hyperparameters
    A: np.ndarray  # points in units of the kernel, (m, n_features), as every A here
    L: np.ndarray  # Cholesky factor of their kernel matrix, shape (m, m)
    noise: float
    least_noise: float  # lower limit of the diagonal of Lambda

    def cross(self, A):
        """``K_nm``, shape (n, m)."""
        return kernels.cross(self.kernel, A, self.A)

    def whiten(self, K_nm):
        """V, shape (m, n), so that ``V.T @ V`` is Q."""
        return solve_lower(self.L, K_nm.T)

    def unwhiten(self, b):
        """``L^-T b``: ``K_nm`` times it is ``V.T @ b``."""
        return solve_lower_transposed(self.L, b)

    def missed(self, A, V):
        """``diag(K - Q)``, shape (n,)."""
        return kernels.diagonal(self.kernel, A) - squared_norms(V)

    @property
    def n_at_once(self):
        """Rows in a chunk: at least m, so that m x m sums do not dominate."""
        return max(len(self.A), CHUNK)

    def chunks(self, n_rows):
        """Slices of so many rows."""
        step = self.n_at_once
        return [slice(i, i + step) for i in range(0, n_rows, step)]


def squared_norms(A):
    """Squared norms of the columns."""
    return np.einsum("ij,ij->j", A, A)


def make_inducing(kernel, A, noise) -> Inducing:
    """Factorise the kernel matrix of the inducing points."""
    # With two arguments, a kernel object leaves out its white noise.
    is_object = kernels.is_object(kernel)
    K_mm = kernel(A, A) if is_object else kernels.gram(kernel, A)
    least = LEAST_NOISE * float(np.mean(np.diag(K_mm)))
    L, _ = cholesky(add_to_diagonal(K_mm, least), "K_mm, of the inducing points,")
    return Inducing(kernel, A, L, noise, least)


class Projected(NamedTuple):
    """fic, dtc, sor: the inducing points represent the rows; no row is kept."""

    inducing: Inducing
    L_B: np.ndarray  # shape (m, m)
    alpha: np.ndarray  # ``L^-T b``, shape (m, n_outputs)
    is_degenerate: bool  # whether the prior variance is that of Q, as in sor

    def answer(self, A, X_metric, variance):
        """Mean and variance of queries, before the amplitude."""
        K_qm = self.inducing.cross(A)
        if not variance:
            return K_qm @ self.alpha, None
        V = self.inducing.whiten(K_qm)
        eta = squared_norms(solve_lower(self.L_B, V)) + self.inducing.noise
        if not self.is_degenerate:
            eta += np.maximum(self.inducing.missed(A, V), 0.0)
        return K_qm @ self.alpha, eta


class Nystrom(NamedTuple):
    """nystrom: all rows, with the inverse of Q + Lambda."""

    inducing: Inducing
    L_B: np.ndarray
    A: np.ndarray
    lam: np.ndarray  # diagonal of Lambda, shape (n,)
    P: np.ndarray  # ``(Q + Lambda)^-1 Y``, shape (n, n_outputs)

    def answer(self, A, X_metric, variance):
        """Mean and variance of queries, before the amplitude; it may be negative."""
        inducing, chunks = self.inducing, self.inducing.chunks(len(self.A))
        mean = np.zeros((len(A), self.P.shape[1]))
        right = np.zeros((len(inducing.A), len(A)))
        for rows in chunks:
            K_rq = kernels.cross(inducing.kernel, self.A[rows], A)
            mean += K_rq.T @ self.P[rows]
            if variance:
                K_rq /= self.lam[rows, None]
                right += inducing.cross(self.A[rows]).T @ K_rq
        if not variance:
            return mean, None
        # k^T (Q + Lambda)^-1 k as a sum of squares, as for y in `fit_diagonal`.
        b = solve_cholesky(self.L_B, solve_lower(inducing.L, right))
        energy, alpha = squared_norms(b), inducing.unwhiten(b)
        for rows in chunks:
            misfit = kernels.cross(inducing.kernel, self.A[rows], A)
            misfit -= inducing.cross(self.A[rows]) @ alpha
            energy += squared_norms(misfit / np.sqrt(self.lam[rows, None]))
        return mean, kernels.diagonal(inducing.kernel, A) + inducing.noise - energy


class Block(NamedTuple):
    """pic: a block of rows with exact covariance."""

    A: np.ndarray
    L: np.ndarray  # Cholesky factor of its Lambda, shape (size, size)
    W: np.ndarray  # ``L_s^-1 V_s^T``, shape (size, m)
    P: np.ndarray  # ``p_s``, shape (size, n_outputs)
    alpha: np.ndarray  # ``L^-T (b - V_s p_s)``, shape (m, n_outputs)


class Blocked(NamedTuple):
    """pic: a block of rows near the query, and inducing points for the others."""

    inducing: Inducing
    L_B: np.ndarray
    blocks: list[Block]
    centers: np.ndarray  # means of the blocks in the metric, (n_blocks, n_features)

    def answer(self, A, X_metric, variance):
        """Mean and variance of queries, before the amplitude."""
        nearest = nearest_centers(X_metric, self.centers, 1, 1)[0][:, 0]
        mean = np.empty((len(A), self.blocks[0].P.shape[1]))
        eta = np.empty(len(A)) if variance else None
        for s in np.unique(nearest):
            here = nearest == s
            mean[here], eta_here = self._answer_one(self.blocks[s], A[here], variance)
            if eta is not None:
                eta[here] = eta_here
        return mean, eta

    def _answer_one(self, block, A, variance):
        K_qm = self.inducing.cross(A)
        K_sq = kernels.cross(self.inducing.kernel, block.A, A)
        mean = K_qm @ block.alpha + K_sq.T @ block.P
        if not variance:
            return mean, None
        V = self.inducing.whiten(K_qm)
        E = solve_lower(block.L, K_sq) - block.W @ V
        near = np.maximum(self.inducing.missed(A, V) - squared_norms(E), 0.0)
        far = squared_norms(solve_lower(self.L_B, V - block.W.T @ E))
        return mean, near + far + self.inducing.noise


def fit_diagonal(method, inducing, A, Y, weights, n_jobs):
    """A `Projected` or `Nystrom` for centred Y, and ``y^T (Q + Lambda)^-1 y``."""
    lam = np.full(len(A), inducing.noise)
    P = np.empty_like(Y)

    def condense(rows):
        V = inducing.whiten(inducing.cross(A[rows]))
        if method == "fic":
            lam[rows] += np.maximum(inducing.missed(A[rows], V), 0.0)
        lam[rows] = np.maximum(lam[rows] / weights[rows], inducing.least_noise)
        root = np.sqrt(lam[rows])[:, None]
        W = V.T / root
        return W.T @ W, W.T @ (Y[rows] / root)

    def settle(rows):
        misfit = Y[rows] - inducing.cross(A[rows]) @ alpha
        P[rows] = misfit / lam[rows, None]
        return np.einsum("ij,ij->j", misfit, P[rows])

    chunks = inducing.chunks(len(A))
    L_B, b = solve_condensed(run_tasks(condense, zip(chunks), n_jobs))
    alpha = inducing.unwhiten(b)
    # A sum of squares does not cancel; y^T Lambda^-1 y may be 1e7 times as large.
    energy = squared_norms(b) + sum(run_tasks(settle, zip(chunks), n_jobs))
    if method == "nystrom":
        return Nystrom(inducing, L_B, A, lam, P), energy
    return Projected(inducing, L_B, alpha, method == "sor"), energy


def fit_blocks(inducing, A, Y, weights, partition, n_jobs):
    """As `fit_diagonal`, with a block of Lambda for each cluster of a `Partition`."""

    def condense(s, rows):
        V = inducing.whiten(inducing.cross(A[rows]))
        lam = kernels.gram(inducing.kernel, A[rows]) - V.T @ V
        row_noise = np.maximum(inducing.noise / weights[rows], inducing.least_noise)
        L, _ = cholesky(add_to_diagonal(lam, row_noise), "Lambda of a block")
        W, z = solve_lower(L, V.T), solve_lower(L, Y[rows])
        factors[s] = L, W, z
        return W.T @ W, W.T @ z

    clusters, blocks = partition.clusters(), []
    factors: list[Any] = [None] * len(clusters)
    L_B, b = solve_condensed(run_tasks(condense, enumerate(clusters), n_jobs))
    energy = squared_norms(b)
    for rows, (L, W, z) in zip(clusters, factors):
        misfit = z - W @ b
        energy += squared_norms(misfit)
        P = solve_lower_transposed(L, misfit)
        alpha = inducing.unwhiten(b - W.T @ misfit)
        blocks.append(Block(A[rows], L, W, P, alpha))
    return Blocked(inducing, L_B, blocks, partition.centers), energy


def summed(parts):
    """Sums of the arrays of all parts, in their order; few parts exist at a time."""
    return reduce(lambda sums, part: tuple(map(np.add, sums, part)), parts)


def solve_condensed(parts):
    """``L_B`` and b from ``W^T W`` and ``W^T z`` of chunks."""
    gram, right = summed(parts)
    L_B, _ = cholesky(add_to_diagonal(gram, 1.0), "B = I + V Lambda^-1 V^T")
    return L_B, solve_cholesky(L_B, right)


def choose_inducing(how, X, scales, weights, n_inducing, rng):
    """Distinct points in the units of X; copies of rows make no difference."""
    from sklearn.cluster import KMeans, MiniBatchKMeans

    points = X if isinstance(how, str) else how
    rows, first, owner = np.unique(
        points / scales, axis=0, return_index=True, return_inverse=True
    )
    if len(rows) <= n_inducing:
        return points[np.sort(first)]
    if how == "random":
        return points[first[rng.choice(len(rows), n_inducing, replace=False)]]
    kind = KMeans if len(rows) <= MANY_ROWS else MiniBatchKMeans
    kmeans = kind(
        n_inducing, n_init=1, max_iter=50, random_state=rng.randint(MOST_SEED)
    )
    rows = np.asarray(without_far_cells(rows))
    mean = rows.mean(axis=0)
    with warnings.catch_warnings(), one_thread_per_worker():
        # Rows that nearly coincide may leave a centre without rows: one point fewer.
        warnings.simplefilter("ignore", ConvergenceWarning)
        kmeans.fit(rows - mean, sample_weight=np.bincount(owner.ravel(), weights))
    centers = np.unique(kmeans.cluster_centers_, axis=0) + mean
    ignored = np.isinf(scales)
    return np.where(ignored, X.mean(axis=0), centers * np.where(ignored, 1.0, scales))
