"""Plots: pictures of a fitted model, as scikit-learn draws them.

A display holds the numbers of a picture, which can be read, kept and drawn again: make
one with ``from_estimator`` or ``from_predictions``, draw it with ``plot(ax=...)``.
Drawing needs the extra ``plot`` (matplotlib). All pictures are legible in greyscale:
markers, line styles and lightness tell things apart, colour only helps.
"""

from ._calibration import CalibrationDisplay
from ._cover import CoverDisplay, OverlapDisplay
from ._skeleton import SkeletonDisplay

__all__ = ["CalibrationDisplay", "CoverDisplay", "OverlapDisplay", "SkeletonDisplay"]
