"""Silhouette to 3-D pose: a procedural data set of people who move before cameras.

    skeleton -> motion -> camera -> silhouette -> features -> `make_pose`

It stands in for recorded data of the literature, which cannot be shipped.
"""

from ._camera import Camera
from ._make import PoseData, make_pose
from ._scene import Rows

__all__ = ["Camera", "PoseData", "Rows", "make_pose"]
