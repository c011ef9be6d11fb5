"""What tuning takes, as counts: `overcover.plan` multiplies them by measured rates."""

from typing import NamedTuple

from .._linalg import dense_flops
from . import FEW_ROWS, LOCAL_SIZE, N_LOCAL_SETS
from ._judge import MOST_DISTANCES, N_HELD_OUT
from ._judge import N_NEIGHBORS as N_JUDGED_BY
from ._problem import FULL_WIDTH, LEAST_LOOKED_AT, MOST_SCALES
from ._search import N_ANCHORS, N_NEIGHBORS
from ._twin_sets import N_SETS, SET_SIZE
from .twin import N_ANCHORS as TWIN_ANCHORS

# Evaluations on most data: of the prediction loss (fewer where all columns share a
# length scale), of the judge, of the likelihood of each local set and of few rows.
LOSSES, SHARED_LOSSES, SCORES, LIKELIHOODS, FEW_LIKELIHOODS = 56, 14, 12, 16, 45
# Operations of a gradient for every entry of a kernel matrix and every column.
GRADIENT = 40
# Neighbours are sought in so many metrics; operations of one distance, and of a column.
METRICS, DISTANCE, DISTANCE_COLUMN = 4, 300, 3
# Trials of a Twin GP's hyperparameters on each set, and the share of a fit of each.
TRIALS, TRIAL = 150, 0.7
# Blocks of rows and kernel matrices of anchors; copies of all neighbours of anchors;
# square matrices of few rows.
BLOCK_BYTES, COPIES, SQUARES = 1e8, 4, 6


class TuningCost(NamedTuple):
    """What tuning takes."""

    flops: float = 0.0
    """Operations, see `dense_flops`."""

    n_fits: float = 0.0
    """Fits of one machine that take as long as all trials."""

    trial_size: int = 0
    """Rows of such a machine, at most those of a subdomain."""

    n_bytes: float = 0.0


def tuning_cost(n_samples, n_features, is_twin=False) -> TuningCost:
    """Operations and bytes of finding the hyperparameters of one machine.

    Parameters
    ----------
    n_samples, n_features : int
    is_twin : bool
        Whether a Twin GP is tuned, which tries hyperparameters on whole machines.

    Returns
    -------
    TuningCost

    Examples
    --------
    >>> few, many = tuning_cost(500, 8), tuning_cost(5000, 8)
    >>> few.flops < many.flops < 1.5 * tuning_cost(2000, 8).flops
    True
    """
    by_column = GRADIENT * n_features
    if n_samples <= FEW_ROWS and not is_twin:
        flops = FEW_LIKELIHOODS * dense_flops(n_samples, by_column)
        return TuningCost(flops, n_bytes=8.0 * SQUARES * n_samples**2)
    width = min(1.0, FULL_WIDTH / n_features)
    n_anchors = max(LEAST_LOOKED_AT, width * (TWIN_ANCHORS if is_twin else N_ANCHORS))
    n_held_out = max(
        LEAST_LOOKED_AT, min(width * N_HELD_OUT, MOST_DISTANCES / n_samples)
    )
    n_losses = LOSSES if 1 < n_features <= MOST_SCALES else SHARED_LOSSES
    flops = n_losses * n_anchors * dense_flops(N_NEIGHBORS + 1, by_column)
    distance = DISTANCE + DISTANCE_COLUMN * n_features
    flops += METRICS * (n_anchors + n_held_out) * n_samples * distance
    n_bytes = BLOCK_BYTES + 8 * COPIES * n_anchors * N_NEIGHBORS * n_features
    if is_twin:
        return TuningCost(flops, TRIALS * TRIAL * N_SETS, SET_SIZE, n_bytes)
    # Without a gradient, only the factor is made.
    flops += SCORES * n_held_out * dense_flops(N_JUDGED_BY + 1) / 2
    flops += LIKELIHOODS * N_LOCAL_SETS * dense_flops(LOCAL_SIZE, by_column)
    return TuningCost(flops, n_bytes=n_bytes)


def scales_to_find(n_features):
    """Length scales that rows must determine: wider inputs share a single one."""
    return n_features if n_features <= MOST_SCALES else 1
