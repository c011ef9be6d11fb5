"""Silhouette to 3-D pose: a procedural data set of people who move before cameras.

    skeleton -> motion -> camera -> silhouette -> features -> `make_pose`

The recorded data of the literature (Poser, HumanEva, Human3.6M) cannot be shipped.
This stands in for them, with their sizes and difficulties: from silhouettes alone,
left and right or front and back are often hard to tell apart, segmentation is faulty,
and test poses lie beside, not among, the training poses.
"""

from ._camera import Camera
from ._make import PoseData, make_pose
from ._scene import Rows

__all__ = ["Camera", "PoseData", "Rows", "make_pose"]
