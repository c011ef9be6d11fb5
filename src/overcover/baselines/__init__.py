"""Baselines: other methods, for comparison with a cover; one file each."""

from .committee import CommitteeGP
from .domain_decomposition import DomainDecompositionGP
from .neighborhood import NeighborhoodRegressor
from .patchwork import PatchworkGP
from .sparse_gp import SparseGP
from .structured import StructuredNeighbors

__all__ = ["CommitteeGP", "DomainDecompositionGP", "NeighborhoodRegressor"]
__all__ += ["PatchworkGP"]
__all__ += ["SparseGP", "StructuredNeighbors"]
