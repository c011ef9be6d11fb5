"""Baselines: other methods, for comparison with a cover; one file each."""

from .committee import CommitteeGP
from .domain_decomposition import DomainDecompositionGP
from .local_probabilistic import LocalProbabilisticRegression
from .mixture import MixtureGP
from .neighborhood import NeighborhoodRegressor
from .patchwork import PatchworkGP
from .sparse_gp import SparseGP
from .structured import StructuredNeighbors
from .tree import TreeGP

__all__ = ["CommitteeGP", "DomainDecompositionGP", "LocalProbabilisticRegression"]
__all__ += ["MixtureGP", "NeighborhoodRegressor", "PatchworkGP", "SparseGP"]
__all__ += ["StructuredNeighbors", "TreeGP"]
