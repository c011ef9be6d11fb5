"""Plots: pictures of a fitted model, as scikit-learn draws them.

A display holds the numbers of a picture: make it with ``from_estimator`` or
``from_predictions``, draw it with ``plot(ax=...)``. Drawing needs matplotlib.
"""

from ._calibration import CalibrationDisplay
from ._cover import CoverDisplay, OverlapDisplay
from ._skeleton import SkeletonDisplay

__all__ = ["CalibrationDisplay", "CoverDisplay", "OverlapDisplay", "SkeletonDisplay"]
