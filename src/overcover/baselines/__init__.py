"""Baselines: the systems a cover is compared with, one file each."""

from .neighborhood import NeighborhoodRegressor

__all__ = ["NeighborhoodRegressor"]
