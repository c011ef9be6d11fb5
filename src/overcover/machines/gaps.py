r"""Blocks of rows left out: how errors grow where rows are missing.

Rows that are left out one by one are near to others, and do not show errors in a gap.
If the function has almost no noise, errors in a gap are larger than the posterior
variance. So blocks of neighbouring rows are left out, in closed form, at several sizes.
The increase of squared errors over variances, compared with rows left out alone,
:math:`z_B^2 - z_i^2`, is averaged in classes of u: with :math:`\eta - \nu` the
unexplained variance and :math:`\eta_r` the reach (see `calibration`),

.. math:: u = \log\frac{\eta - \nu}{\eta_r - \nu} \Big/
    \log\frac{\eta_0 - \nu}{\eta_r - \nu}

is 0 at the reach and 1 far from all rows. The range between is divided into `N_STEPS`.
Noise, and its outliers, cancel in the difference.
"""

import numpy as np

from .._left_out import leave_block_out

N_STEPS = 8
# Blocks hold these shares of a subdomain's rows, and no more rows than this.
SHARES, MOST_ROWS = (1 / 64, 1 / 16, 1 / 8, 1 / 4), 500
# Fewer rows say nothing of a step; it is then as the one before.
LEAST_COUNT = 20
# Growth begins at this share of a step before the reach.
RAMP = 0.25
# Where growth is known: it is one at the first of these, and then that of each step.
PLACES = np.array([-RAMP, *range(N_STEPS)])
# Less is rounding.
LEAST_UNEXPLAINED = 1e-15


def steps_of(unexplained, reach_unexplained, prior):
    """u of the queries times `N_STEPS`; negative within the reach of the rows.

    Examples
    --------
    >>> steps_of(np.array([1e-4, 1e-2, 1.0]), 1e-4, 1.0).tolist()
    [0.0, 4.0, 8.0]
    """
    least = np.minimum(np.maximum(reach_unexplained, LEAST_UNEXPLAINED), 0.5 * prior)
    u = np.log(np.maximum(unexplained, LEAST_UNEXPLAINED) / least)
    return N_STEPS * u / np.log(prior / least)


def blocks_of(similarity):
    """Rows of every block: the nearest to owned rows here and there.

    Similarity of shape (size, n_owned). Blocks of each size have about as many rows in
    all as the subdomain owns; fewer where it borrows many rows, as there are many
    subdomains then, and what they say is averaged.
    """
    n_rows, n_owned = similarity.shape
    wanted = n_owned * np.sqrt(n_owned / n_rows)
    # Between 0 and 1, as good as random; the order of the rows does not matter.
    chance = (1e4 * similarity.mean()) % 1.0
    # From lonely rows to crowded ones: neither order nor units of rows matter.
    order = np.argsort(similarity.sum(axis=0), kind="stable")
    for share in SHARES:
        size = min(int(share * n_rows), MOST_ROWS)
        if size < 2:
            continue
        n_blocks = int(wanted / size + chance)
        places = (np.arange(n_blocks) + chance) * n_owned / max(1, n_blocks)
        for anchor in order[places.astype(int)]:
            yield np.argpartition(-similarity[:, anchor], size)[:size]


def excess_by_steps(blocks, solved, Y, weights, residuals_sq, noise, reach, prior):
    """Counts of rows and sums of ``z_B^2 - z_i^2`` by steps, (2, N_STEPS, n_outputs).

    `solved` from `solve_all`; residuals_sq, shape (size, n_outputs), of rows left out
    alone; prior of shape (size,), without noise. Memory: the columns of a block.
    """
    result = np.zeros((2, N_STEPS, Y.shape[1]))
    for rows in blocks:
        L_inv, alpha, alpha_one = solved
        errors, variances = leave_block_out(L_inv, alpha, alpha_one, Y, weights, rows)
        unexplained = variances - noise / weights[rows]
        step = np.floor(steps_of(unexplained, reach - noise, prior[rows])).astype(int)
        # Rows of small weight vary by their own noise.
        beyond = (step >= 0) & (weights[rows] > 0.1)
        step = np.minimum(step[beyond], N_STEPS - 1)
        excess = (errors**2 / variances[:, None] - residuals_sq[rows])[beyond]
        np.add.at(result[0], step, 1.0)
        np.add.at(result[1], step, excess)
    return result


def growth_of(excess, residuals_sq_mean):
    """How many times the average of squared residuals they are at each step.

    excess of shape (n_states, 2, N_STEPS, n_outputs) and residuals_sq_mean of shape
    (n_states, n_outputs); the result, of shape (N_STEPS, n_outputs), is at least one
    and does not fall.

    Examples
    --------
    >>> excess = np.zeros((1, 2, N_STEPS, 1))
    >>> excess[0, :, 2] = [[50.0], [150.0]]
    >>> growth_of(excess, np.ones((1, 1))).ravel().tolist()
    [1.0, 1.0, 4.0, 4.0, 4.0, 4.0, 4.0, 4.0]
    """
    counts, sums = excess[:, 0], excess[:, 1].sum(axis=0)
    expected = np.sum(counts * residuals_sq_mean[:, None], axis=0)
    is_known = (counts.sum(axis=0) >= LEAST_COUNT) & (expected > 0)
    growth = np.divide(sums, expected, out=np.zeros_like(sums), where=is_known)
    return np.maximum.accumulate(1.0 + np.maximum(growth, 0.0), axis=0)


def growth_at(steps, growth):
    """Growth at queries, shape (n_queries, n_outputs), from one before the reach on.

    steps of shape (n_queries,), growth of shape (N_STEPS, n_outputs).

    Examples
    --------
    >>> growth = np.array([[2.0]] * 4 + [[8.0]] * 4)
    >>> growth_at(np.array([-1.0, 0.0, 3.5, 9.0]), growth).ravel().round(6).tolist()
    [1.0, 2.0, 4.0, 8.0]
    """
    logs = np.empty((len(steps), growth.shape[1]))
    for j, column in enumerate(np.log(growth).T):
        logs[:, j] = np.interp(steps, PLACES, [0.0, *column])
    return np.exp(logs, out=logs)
