"""The result of `make_pose`: features, poses, and methods for drawings of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from ._scene import Rows, Scene
from ._skeleton import pose_body


@dataclass(frozen=True, eq=False, repr=False)
class PoseData:
    """Features of images, poses, and methods for drawings of them.

    Parameters
    ----------
    X_train, X_test : ndarray of shape (n_rows, n_features), float32
        Features of all cameras, side by side.
    Y_train, Y_test : ndarray of shape (n_rows, n_outputs), float32
        Either x, y, z of 20 joints, or flexion, abduction and twist of 18 joints; see
        `outputs` of `make_pose`.
    rows_train, rows_test : Rows
        Arrays `subject`, `motion`, `sequence` and `frame` of each row.
    joint_names, angle_names : tuple of 21 str, tuple of 18 str
        Names of the points that `joints` and `skeletons` return, the pelvis first; and
        of the joints that have angles.
    bones : tuple of pairs of int
        Points with a bone between them.
    cameras : tuple of Camera
    settings : dict
        Everything the data depend on.
    scene : Scene
        Generates frames again.

    Examples
    --------
    >>> from overcover.datasets import make_pose
    >>> data = make_pose("humaneva", n_frames=96, cache=False)
    >>> data
    PoseData(humaneva: 48 + 48 rows, 810 features -> 60 outputs)
    >>> data.silhouettes([0, 5], part="test").shape, data.joints(slice(0, 2)).shape
    ((2, 3, 96, 96), (2, 21, 3))
    >>> data.rows_test.motion[0]
    np.str_('walk')
    """

    X_train: np.ndarray
    Y_train: np.ndarray
    X_test: np.ndarray
    Y_test: np.ndarray
    rows_train: Rows
    rows_test: Rows
    joint_names: tuple[str, ...]
    angle_names: tuple[str, ...]
    bones: tuple[tuple[int, int], ...]
    cameras: tuple
    settings: dict[str, Any]
    scene: Scene

    def __repr__(self):
        """Preset and shapes."""
        n_train, n_test = len(self.X_train), len(self.X_test)
        return (
            f"PoseData({self.settings['preset']}: {n_train} + {n_test} rows, "
            f"{self.X_train.shape[1]} features -> {self.Y_train.shape[1]} outputs)"
        )

    def silhouettes(self, rows, part="train"):
        """Images of all cameras, with their damage: one inside, zero outside.

        Parameters
        ----------
        rows : index of rows
        part : "train" or "test"

        Returns
        -------
        ndarray of shape (n_rows, n_cameras, 96, 96), uint8
        """
        return self.scene.for_rows(part, rows, self.scene.silhouettes)

    def joints(self, rows, part="train"):
        """True positions in the world, for any kind of outputs.

        Parameters
        ----------
        rows : index of rows
        part : "train" or "test"

        Returns
        -------
        ndarray of shape (n_rows, 21, 3), mm; z up, the floor at zero
        """
        perform = self.scene.perform
        return self.scene.for_rows(part, rows, lambda s, frames: perform(s, frames)[1])

    def skeletons(self, Y, subject=0):
        """Points of outputs or predictions relative to the pelvis, ready to draw.

        Parameters
        ----------
        Y : array-like of shape (n_rows, n_outputs)
        subject : int
            Whose limbs the angles move; positions need none.

        Returns
        -------
        ndarray of shape (n_rows, 21, 3), mm
        """
        Y = np.asarray(Y, dtype=float)
        n_outputs = self.Y_train.shape[1]
        if Y.ndim != 2 or Y.shape[1] != n_outputs:
            raise ValueError(
                f"Y of shape {Y.shape} must have rows of {n_outputs} outputs, like "
                "Y_train."
            )
        triples = Y.reshape(len(Y), -1, 3)
        if self.settings["outputs"] == "angles":
            return pose_body(triples, self.scene.subjects[subject].offsets)
        return np.insert(triples, 0, 0.0, axis=1)
