"""Calibrated cameras around the scene: perspective projection.

A camera at c with axes (right, down, ahead) as the rows of R and focal length f sees
:math:`p = R (x - c)` at :math:`(u, v) = f (p_1, p_2) / p_3` from the image's middle.
"""

from typing import NamedTuple

import numpy as np

DISTANCE, HEIGHT, TARGET, FOCAL = 5200.0, 1500.0, 950.0, 900.0
FIRST_AZIMUTH = 20.0  # of the first camera from the middle of the scene, in degrees


class Camera(NamedTuple):
    """A pinhole camera."""

    center: np.ndarray
    """Its position, mm, shape (3,)."""
    axes: np.ndarray
    """Rows: right, down and ahead of the camera in the world, shape (3, 3)."""
    focal: float
    """Focal length in pixels."""

    def project(self, points):
        """Image coordinates and depth of points of the world.

        Parameters
        ----------
        points : ndarray of shape (..., 3), mm

        Returns
        -------
        pixels : ndarray of shape (..., 2)
            To the right and down from the middle of the image.
        depth : ndarray of shape (...)
            Distance along the view, mm.

        Examples
        --------
        >>> camera = make_cameras(1)[0]
        >>> pixels, depth = camera.project(camera.center + 2000.0 * camera.axes[2])
        >>> np.abs(pixels).round(6).tolist(), float(depth.round())
        ([0.0, 0.0], 2000.0)
        """
        local = (np.asarray(points) - self.center) @ self.axes.T
        return self.focal * local[..., :2] / local[..., 2:], local[..., 2]


def make_cameras(n_cameras):
    """Cameras evenly around the scene, looking at its middle."""
    cameras = []
    for i in range(n_cameras):
        azimuth = np.deg2rad(FIRST_AZIMUTH + 360.0 * i / n_cameras)
        place = DISTANCE * np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
        center = place + [0.0, 0.0, HEIGHT]
        ahead = np.array([0.0, 0.0, TARGET]) - center
        ahead /= np.linalg.norm(ahead)
        right = np.cross(ahead, [0.0, 0.0, 1.0])
        right /= np.linalg.norm(right)
        axes = np.stack([right, np.cross(ahead, right), ahead])
        cameras.append(Camera(center, axes, FOCAL))
    return tuple(cameras)
