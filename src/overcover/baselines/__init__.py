"""Baselines: the systems a cover is compared with, one file each."""

from .committee import CommitteeGP
from .neighborhood import NeighborhoodRegressor

__all__ = ["CommitteeGP", "NeighborhoodRegressor"]
