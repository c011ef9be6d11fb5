"""overcover: kernel regression at scale on an overlapping domain cover.

    X, Y -> metric -> partition -> cover -> machines -> routing -> combination
    -> prediction

Each word is a module, in this order; `OverlappingCoverRegressor` is the path composed.
Beside the path: `overcover.plan` (what a fit will take), `overcover.metrics` (errors of
joints, angles and intervals) and `overcover.datasets` (loaders). Everything not named
here is private.
"""

from . import _interrupts, datasets, metrics  # noqa: F401, interrupts first
from .baselines import (
    CommitteeGP,
    DomainDecompositionGP,
    NeighborhoodRegressor,
    SparseGP,
    StructuredNeighbors,
)
from .density_ratio import RelativeDensityRatio
from .machines import (
    GP,
    AnyRegressor,
    ImportanceWeightedTwinGP,
    SharmaMittalTwinGP,
    TwinGP,
)
from .partition import EqualSizeKMeans, RecursiveProjection, TwoLevelKMeans
from .planning import plan
from .regressor import OverlappingCoverRegressor
from .store import load

__version__ = "0.1.0"

__all__ = [
    "GP",
    "AnyRegressor",
    "CommitteeGP",
    "DomainDecompositionGP",
    "EqualSizeKMeans",
    "ImportanceWeightedTwinGP",
    "NeighborhoodRegressor",
    "OverlappingCoverRegressor",
    "RecursiveProjection",
    "RelativeDensityRatio",
    "SharmaMittalTwinGP",
    "SparseGP",
    "StructuredNeighbors",
    "TwinGP",
    "TwoLevelKMeans",
    "datasets",
    "load",
    "metrics",
    "plan",
]
