"""Dense linear algebra for all machines: distances, Cholesky, packed factors.

Matrices are float64; packed factors may be float32. ``n`` is the number of training
rows of one machine, ``n_queries`` that of a batch of queries.
"""

import numpy as np
from scipy.linalg import blas, lapack

from ._compiled import compiled, compiled_loosely, read_only

# Values to try on the diagonal, relative to its mean. The first is about the rounding
# of a kernel matrix with n = 1000; one beyond the last would change the model.
JITTERS = (0.0, 1e-12, 1e-10, 1e-8, 1e-6, 1e-4)

# Rows per block of a packed triangular factor: small enough that little of the zero
# half is stored (1 / 12 of the triangle at n = 800), large enough for full GEMM speed.
BLOCK = 64
# A product that reads the factor once beats BLAS up to this many columns, or up to this
# many rows (a third faster at n = 800, equal at n = 3000); in float32 it always does.
FEW_COLUMNS, FEW_ROWS = 60, 2000
# This many columns fit in cache beside four rows of the factor.
CACHED_COLUMNS = 128

# Up to this many rows LAPACK inverts a triangle faster than products of its halves.
SMALL_TRIANGLE = 128

# From this many columns on, a matrix product is faster than differences.
WIDE = 12
# From this many on, half of it is worth a function call for rows with themselves.
VERY_WIDE = 100
# Below this share of both squared norms, squared distances have lost ten digits.
CLOSE = 1e-6
# Products with this number, and with its square root, fit float64.
FARTHEST_SQ = 1e300


def squared_distances(A, B):
    """Squared Euclidean distances between the rows of A and of B.

    For few columns, these are squared differences; for many, a matrix product, ``|a|^2
    + |b|^2 - 2 a.b``. The product cancels where rows nearly coincide, or lie much
    farther from the origin than from each other: such pairs are computed again as
    differences. Callers centre A and B on a common point, so that such pairs are few.
    Distances are never negative, and 0 between equal rows.
    """
    if A.shape[1] < WIDE:
        return squared_differences(A, B)
    with np.errstate(over="ignore"):
        norms_A, norms_B = (np.einsum("ij,ij->i", rows, rows) for rows in (A, B))
    farthest_sq = max(norms_A.max(initial=0.0), norms_B.max(initial=0.0))
    if float(farthest_sq) > 0.1 * FARTHEST_SQ:
        return squared_differences(A, B)
    if A is B and A.shape[1] >= VERY_WIDE:
        # Half the product is enough, and its input needs no copy.
        dist_sq = blas.dsyrk(-2.0, A.T, trans=1).T
        dist_sq += norms_A
        dist_sq += norms_A[:, None]
        lower = np.tril(dist_sq)
        dist_sq = lower + np.tril(lower, -1).T
        rows = read_only(np.ascontiguousarray(A))
        _recompute_close(rows, rows, CLOSE * norms_A, CLOSE * norms_A, dist_sq)
        return dist_sq
    # With the norms as two more columns, one product is enough.
    lifted_A = np.empty((len(A), A.shape[1] + 2))
    np.multiply(A, -2.0, out=lifted_A[:, :-2])
    lifted_A[:, -2] = norms_A
    lifted_A[:, -1] = 1.0
    lifted_B = np.empty((len(B), B.shape[1] + 2))
    lifted_B[:, :-2] = B
    lifted_B[:, -2] = 1.0
    lifted_B[:, -1] = norms_B
    dist_sq = lifted_A @ lifted_B.T
    rows = read_only(np.ascontiguousarray(A)), read_only(np.ascontiguousarray(B))
    _recompute_close(*rows, CLOSE * norms_A, CLOSE * norms_B, dist_sq)
    return dist_sq


@compiled_loosely
def _recompute_close(A, B, close_A, close_B, dist_sq):
    """Squared differences, for the pairs whose `squared_distances` cancelled."""
    for i in range(len(A)):
        row = dist_sq[i]
        for j in range(len(row)):
            if row[j] < close_A[i] + close_B[j]:
                row[j] = 0.0
                for f in range(A.shape[1]):
                    difference = A[i, f] - B[j, f]
                    row[j] += difference * difference


def squared_differences(A, B):
    """Squared Euclidean distances as squared differences: for few columns.

    Nothing cancels, and no entry depends on the others. Distances that would not fit
    float64 become `FARTHEST_SQ`, so that every function of distances has a value. The
    longer axis of the result is contiguous.
    """
    if len(A) > len(B):
        return squared_differences(B, A).T
    dist_sq = np.empty((len(A), len(B)))
    # One order of memory, so that one version is compiled.
    _fill_squared_differences(
        read_only(np.ascontiguousarray(A)),
        read_only(np.ascontiguousarray(B.T)),
        dist_sq,
    )
    return dist_sq


@compiled_loosely
def _fill_squared_differences(A, B_t, dist_sq):
    """`squared_differences`; columns of B are contiguous, for vector instructions."""
    for i in range(len(A)):
        row = dist_sq[i]
        row[:] = 0.0
        for f in range(len(B_t)):
            a, column = A[i, f], B_t[f]
            for j in range(len(row)):
                difference = a - column[j]
                row[j] += difference * difference
        for j in range(len(row)):
            row[j] = min(row[j], FARTHEST_SQ)


def add_to_diagonal(A, values):
    """Add a scalar or a vector to the diagonal of a square matrix, in place."""
    A.flat[:: len(A) + 1] += values
    return A


def cholesky(A, name="The kernel matrix"):
    """Lower Cholesky factor of A, and the jitter: the smallest with which it exists.

    The jitter, nearly always 0, is added to the diagonal. Only the lower triangle of A
    is read; `name` is its name in the error message.
    """
    scale = float(A.trace() / len(A)) if len(A) else 0.0
    if np.isfinite(scale) and scale > 0:
        for step in JITTERS:
            jitter = step * scale
            loaded = add_to_diagonal(A.copy(), jitter) if jitter else A
            # LAPACK expects contiguous columns. The upper triangle of the transpose is
            # the lower triangle of A, so no copy is needed.
            U, info = lapack.dpotrf(loaded.T, lower=0, clean=1, overwrite_a=0)
            if info == 0:
                return U.T, jitter
    raise np.linalg.LinAlgError(
        f"{name} of shape {A.shape} is not positive definite, even with "
        f"{JITTERS[-1]:g} of its mean diagonal ({scale:g}) added. The inputs may hold "
        "many near-duplicate rows or the kernel may not be a valid one: raise `noise`, "
        "shorten `length_scale`, or remove duplicates."
    )


def cholesky_in_place(A, remake):
    """The L of `cholesky` in the memory of A, which `remake` makes again if need be."""
    U, info = lapack.dpotrf(A.T, lower=0, clean=1, overwrite_a=1)
    return U.T if info == 0 else cholesky(remake())[0]


def solve_cholesky(L, B):
    """Solve ``L L^T x = b`` for every column of B."""
    x, _ = lapack.dpotrs(L.T, B, lower=0)
    return x


def solve_lower(L, B):
    """Solve ``L x = b`` for every column of B; L is lower triangular."""
    x, _ = lapack.dtrtrs(L.T, B, lower=0, trans=1)
    return x


def solve_lower_transposed(L, B):
    """Solve ``L^T x = b`` for every column of B; L is lower triangular."""
    x, _ = lapack.dtrtrs(L.T, B, lower=0)
    return x


def lower_inverse(L):
    """``(L L^T)^-1`` on and below the diagonal, zeros above, for gradients."""
    # LAPACK writes one triangle, and those of L beyond it are zeros.
    return lapack.dlauum(inverse_factor(L).T, lower=0, overwrite_c=1)[0].T


def inverse_from_cholesky(L):
    """``(L L^T)^-1`` with both triangles."""
    inverse = lower_inverse(L)
    inverse += np.tril(inverse, -1).T
    return inverse


def inverse_factor(L, overwrite=False):
    """``L^-1`` of a lower triangular L; its columns give ``diag((L L^T)^-1)``.

    Machines keep it instead of L: its columns give the leave-one-out variances, and a
    product with its packed blocks is as fast as a triangular solve, with half the
    bytes. It may take the place of L.
    """
    if len(L) <= SMALL_TRIANGLE:
        return lapack.dtrtri(L.T, lower=0)[0].T
    U = L.T if overwrite else L.T.copy(order="F")
    _invert_upper(U)
    return U.T


def _invert_upper(U):
    """Invert an upper triangle in place, by products of its halves.

    Those come near the rate of a large matrix product; LAPACK's ``trtri`` reaches half
    of it.
    """
    n = len(U)
    if n <= SMALL_TRIANGLE:
        U[:] = lapack.dtrtri(U, lower=0)[0]
        return
    half = n // 2
    left, corner, right = U[:half, :half], U[:half, half:], U[half:, half:]
    _invert_upper(left)
    _invert_upper(right)
    product = blas.dtrmm(-1.0, left, corner)
    corner[:] = blas.dtrmm(1.0, right, product, side=1, overwrite_b=1)


def pack_lower(A, dtype=np.float64):
    """The lower triangle of A as one vector of row blocks.

    Block b holds rows ``b * BLOCK`` onwards, up to its last column on the diagonal:
    ``n^2 / 2 + n * BLOCK / 2`` numbers at most instead of ``n^2``. The dtype is float64
    or float32.
    """
    packed = np.empty(packed_size(len(A)), dtype)
    for rows, bottom, block in _packed_blocks(packed, len(A)):
        block[:] = A[rows, :bottom]
    return packed


def packed_size(n):
    """Length of the result of :func:`pack_lower` for an ``n x n`` matrix."""
    tops = np.arange(0, n, BLOCK)
    bottoms = np.minimum(tops + BLOCK, n)
    return int(np.sum((bottoms - tops) * bottoms))


def _packed_blocks(packed, n):
    """Yield the rows of each block, the end of its columns, and a view of it."""
    start = 0
    for top in range(0, n, BLOCK):
        bottom = min(top + BLOCK, n)
        stop = start + (bottom - top) * bottom
        yield slice(top, bottom), bottom, packed[start:stop].reshape(-1, bottom)
        start = stop


@compiled_loosely
def _eight_products(a, b, c, d, x, y, n, zero):
    """Products of four rows with two columns, each over their first n entries."""
    s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = zero
    for k in range(n):
        s0 += a[k] * x[k]
        t0 += a[k] * y[k]
        s1 += b[k] * x[k]
        t1 += b[k] * y[k]
        s2 += c[k] * x[k]
        t2 += c[k] * y[k]
        s3 += d[k] * x[k]
        t3 += d[k] * y[k]
    return s0, s1, s2, s3, t0, t1, t2, t3


@compiled
def _few_column_norms_sq(packed, n, block, columns, norms_sq):
    """`packed_column_norms_sq` for few columns, which are the rows of `columns`.

    Four rows of A times two columns of B keep eight sums in registers. A matrix product
    would first copy A, which costs more than the product with a few columns. The result
    of one column does not depend on the others.
    """
    # Not `compiled_loosely`: LLVM would add the squares in an order that depends on
    # what the process has compiled before.
    n_columns, start, zero = len(columns), 0, packed.dtype.type(0)
    for top in range(0, n, block):
        bottom = min(top + block, n)
        for i in range(top, bottom, 4):
            # If fewer than four rows are left, the last one stands in for the rest.
            last = min(3, bottom - i - 1)
            a, b = packed[start:], packed[start + min(1, last) * bottom :]
            c, d = (
                packed[start + min(2, last) * bottom :],
                packed[start + last * bottom :],
            )
            start += (last + 1) * bottom
            for q in range(0, n_columns, 2):
                x, y = columns[q], columns[min(q + 1, n_columns - 1)]
                # Beyond the diagonal, the rest is zero.
                products = _eight_products(a, b, c, d, x, y, i + last + 1, zero)
                s0, s1, s2, s3, t0, t1, t2, t3 = products
                if last < 1:
                    s1 = t1 = zero
                if last < 2:
                    s2 = t2 = zero
                if last < 3:
                    s3 = t3 = zero
                norms_sq[q] += np.float64(s0) ** 2 + np.float64(s1) ** 2
                norms_sq[q] += np.float64(s2) ** 2 + np.float64(s3) ** 2
                if q + 1 < n_columns:
                    norms_sq[q + 1] += np.float64(t0) ** 2 + np.float64(t1) ** 2
                    norms_sq[q + 1] += np.float64(t2) ** 2 + np.float64(t3) ** 2


def packed_column_norms_sq(packed, B):
    """Squared norms of the columns of ``A @ B`` for a packed lower triangular A.

    With ``A = L^-1`` and ``B = K_xq`` this is the variance that the data explain,
    ``k_q^T (L L^T)^-1 k_q``, shape (n_queries,). Products have the precision of A; sums
    of squares are in float64. It is fastest if the columns of B are contiguous.
    """
    n, n_columns = B.shape
    norms_sq = np.zeros(n_columns)
    if packed.dtype == np.float32 or n_columns <= FEW_COLUMNS or n <= FEW_ROWS:
        columns = np.ascontiguousarray(B.T, dtype=packed.dtype)
        for i in range(0, n_columns, CACHED_COLUMNS):
            some = slice(i, i + CACHED_COLUMNS)
            few = read_only(columns[some])
            _few_column_norms_sq(read_only(packed), n, BLOCK, few, norms_sq[some])
        return norms_sq
    for _, bottom, block in _packed_blocks(packed, n):
        product = block @ B[:bottom]
        norms_sq += np.einsum("ij,ij->j", product, product)
    return norms_sq


def lower_column_norms_sq(A, B):
    """`packed_column_norms_sq` of a lower triangular A that is not packed."""
    norms_sq = np.zeros(B.shape[1])
    for top in range(0, len(A), 2 * BLOCK):
        bottom = min(top + 2 * BLOCK, len(A))
        product = A[top:bottom, :bottom] @ B[:bottom]
        norms_sq += np.einsum("ij,ij->j", product, product)
    return norms_sq


def packed_product(packed, B):
    """``A @ B`` for a packed lower triangular A, in the precision of A."""
    blocks = _packed_blocks(packed, len(B))
    return np.concatenate([block @ B[:bottom] for _, bottom, block in blocks])


# Operations of a matrix product that take as long as one entry of a kernel matrix.
ENTRY_FLOPS = 1000


def dense_flops(n_rows, by_entry=0):
    """Operations of a kernel matrix, its factor and its inverse.

    One operation is one of a large matrix product. An entry of a kernel matrix, which
    is read and written several times, counts as many, and as `by_entry` more.
    """
    return n_rows**2 * (n_rows + float(ENTRY_FLOPS) + by_entry)
