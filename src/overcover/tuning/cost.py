"""The cost of tuning, as counts that `overcover.plan` multiplies by measured rates."""

from typing import NamedTuple

from .._linalg import dense_flops
from ._judge import FEW_ROWS
from ._judge import N_HELD as N_HELD_JUDGED
from ._judge import N_SPOTS as N_JUDGED
from ._judge import SET_SIZE as JUDGED_SIZE
from ._outputs import MOST_ALONE
from ._problem import MOST_SCALES
from ._search import N_HELD, N_SPOTS, SET_SIZE
from ._sets import MOST_DISTANCES
from ._twin_sets import N_SETS
from ._twin_sets import SET_SIZE as TRIAL_SIZE

# Evaluations on most data: of the prediction loss along columns and along a common
# factor, of the judge, and of the likelihood of few rows.
LOSSES, TIED_LOSSES, SCORES, FEW_LIKELIHOODS = 45, 24, 28, 90
# Operations of a gradient for every entry of a kernel matrix and every column.
GRADIENT = 40
# Neighbours are sought in so many metrics; operations of one distance, and of a column.
METRICS, DISTANCE, DISTANCE_COLUMN = 50, 150, 3
# Trials of a Twin GP's hyperparameters on each set, and the share of a fit of each.
TRIALS, TRIAL = 150, 0.42
# What finding out which outputs share takes, for each that is tried alone.
ALONE = 1.25
# Blocks of rows and kernel matrices of spots; square matrices of few rows.
BLOCK_BYTES, SQUARES = 1e8, 6


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

    A Twin GP tries hyperparameters on whole machines.

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
    n_losses = LOSSES if 1 < n_features <= MOST_SCALES else 0
    flops = n_losses * N_SPOTS * dense_flops(SET_SIZE, by_column)
    flops += TIED_LOSSES * N_SPOTS * dense_flops(SET_SIZE, GRADIENT)
    distance = DISTANCE + DISTANCE_COLUMN * n_features
    n_queries = N_HELD * N_SPOTS, N_HELD_JUDGED * N_JUDGED
    n_distances = sum(min(n * n_samples, MOST_DISTANCES) for n in n_queries) / 2
    flops += METRICS * n_distances * distance
    n_bytes = BLOCK_BYTES + 8.0 * N_JUDGED * JUDGED_SIZE * (JUDGED_SIZE + n_features)
    if is_twin:
        return TuningCost(flops / 4, TRIALS * TRIAL * N_SETS, TRIAL_SIZE, n_bytes)
    # Without a gradient, only the factor is made.
    flops += SCORES * N_JUDGED * dense_flops(JUDGED_SIZE) / 2
    return TuningCost(flops, n_bytes=n_bytes)


def searches_for(n_outputs):
    """Searches that take as long as deciding which of the outputs share.

    >>> [searches_for(n) for n in (1, 2, 5, 50)]
    [1.0, 3.5, 7.25, 7.25]
    """
    return 1.0 + (ALONE * min(n_outputs, MOST_ALONE) if n_outputs > 1 else 0.0)


def scales_to_find(n_features):
    """Length scales that rows must determine: wider inputs share a single one."""
    return n_features if n_features <= MOST_SCALES else 1
