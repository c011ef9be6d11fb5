"""overcover: Gaussian-process regression on an overlapping domain cover.

    X, Y -> metric -> partition -> cover -> machines -> routing -> combination
    -> prediction

These are the stages of a fit and of a prediction. `OverlappingCoverRegressor` runs all
of them. `overcover.plan` estimates the cost of a fit, `overcover.metrics` measures
errors of joints, angles and intervals, and `overcover.datasets` has loaders.
docs/api.md lists all public names.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from . import _interrupts  # noqa: F401, first of all

if TYPE_CHECKING:
    from . import datasets, metrics
    from .baselines import (
        CommitteeGP,
        DomainDecompositionGP,
        LocalProbabilisticRegression,
        MixtureGP,
        NeighborhoodRegressor,
        PatchworkGP,
        SparseGP,
        StructuredNeighbors,
        TreeGP,
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
    from .tables import TableEncoder

__version__ = "0.1.0"

__all__ = ["OverlappingCoverRegressor", "datasets", "load", "metrics", "plan"]
__all__ += ["GP", "AnyRegressor", "ImportanceWeightedTwinGP", "SharmaMittalTwinGP"]
__all__ += ["EqualSizeKMeans", "RecursiveProjection", "TwinGP", "TwoLevelKMeans"]
__all__ += ["CommitteeGP", "RelativeDensityRatio", "SparseGP", "TableEncoder"]
__all__ += ["DomainDecompositionGP", "NeighborhoodRegressor", "StructuredNeighbors"]
__all__ += ["LocalProbabilisticRegression", "MixtureGP", "PatchworkGP", "TreeGP"]
# Where the names come from, those first that need the others least.
_HOMES: tuple[str, ...] = ("tables", "partition", "machines", "density_ratio")
_HOMES += ("regressor", "planning", "store", "baselines")


def __getattr__(name: str) -> Any:
    # scikit-learn takes a second to import, so it waits until a name is used.
    if not name.startswith("_") and find_spec(f"{__name__}.{name}"):
        return import_module(f"{__name__}.{name}")
    if name in __all__:
        homes = (import_module(f"{__name__}.{home}") for home in _HOMES)
        return next(getattr(home, name) for home in homes if hasattr(home, name))
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
