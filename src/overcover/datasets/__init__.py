"""Data sets to try things on: people who move before cameras, made from a number."""

from ._camera import Camera
from ._scene import Rows
from .pose import PoseData, make_pose

__all__ = ["Camera", "PoseData", "Rows", "make_pose"]
