"""Baselines: the systems a cover is compared with, one file each."""

from .committee import CommitteeGP
from .neighborhood import NeighborhoodRegressor
from .structured import StructuredNeighbors

__all__ = ["CommitteeGP", "NeighborhoodRegressor", "StructuredNeighbors"]
