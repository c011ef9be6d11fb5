"""Silhouette to 3-D pose: a procedural data set of people who move before cameras.

    skeleton -> motion -> camera -> silhouette -> features -> [make_pose]

The recorded data of the literature (Poser, HumanEva, Human3.6M) cannot be shipped; this
stands in for it, with its sizes and its difficulties: from silhouettes alone, left and
right or front and back are often hard to tell apart, segmentation is faulty, and the
poses to be predicted lie beside, not among, those that were seen.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from .._validation import check_choice
from ._making import fill_rows, shapes_of
from ._pose_store import stored
from ._presets import choose_settings
from ._scene import Rows, Scene
from ._skeleton import BONES, JOINT_NAMES, JOINTS, pose_body

VERSION = 1
"""Of the generator: raised when it makes other data, so that caches are made anew."""


@dataclass(frozen=True, eq=False, repr=False)
class PoseData:
    """Images' features and poses, and what drawings of them need.

    Parameters
    ----------
    X_train, X_test : ndarray of shape (n_rows, n_features), float32
        Features of all cameras, side by side.
    Y_train, Y_test : ndarray of shape (n_rows, n_outputs), float32
        Either 20 joints relative to the pelvis, in mm, x, y, z of each in turn; or the
        flexion, abduction and twist of 18 joints, in degrees within [-180, 180).
    rows_train, rows_test : Rows
        Arrays `subject`, `motion`, `sequence` and `frame` of each row.
    joint_names : tuple of 21 str
        Of the points that `joints` and `skeletons` return, the pelvis first.
    angle_names : tuple of 18 str
        Of the joints that have angles.
    bones : tuple of pairs of int
        Points with a bone between them.
    cameras : tuple of Camera
        Calibrated: `center`, `axes`, `focal`, `project(points)`.
    settings : dict
        Everything the data depend on.
    scene : Scene
        Makes frames again.

    Examples
    --------
    >>> from overcover.datasets import make_pose
    >>> data = make_pose("humaneva", n_frames=96, cache=False)
    >>> data
    PoseData(humaneva: 48 + 48 rows, 810 features -> 60 outputs)
    >>> data.silhouettes([0, 5], part="test").shape
    (2, 3, 96, 96)
    >>> data.joints(slice(0, 2)).shape
    (2, 21, 3)
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
        """What the cameras saw, with all damage: one inside, zero outside.

        Parameters
        ----------
        rows : index of rows
        part : "train" or "test"

        Returns
        -------
        ndarray of shape (n_rows, n_cameras, 96, 96), uint8
        """
        check_choice("part", part, ("train", "test"))
        return self.scene.for_rows(part, rows, self.scene.silhouettes)

    def joints(self, rows, part="train"):
        """True positions in the world, whatever the outputs are.

        Parameters
        ----------
        rows : index of rows
        part : "train" or "test"

        Returns
        -------
        ndarray of shape (n_rows, 21, 3), mm
            z up, the floor at zero.
        """
        check_choice("part", part, ("train", "test"))
        return self.scene.for_rows(
            part, rows, lambda s, frames: self.scene.perform(s, frames)[1]
        )

    def skeletons(self, Y, subject=0):
        """Points of poses relative to the pelvis: predictions, ready to draw.

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
        if self.settings["outputs"] == "angles":
            offsets = self.scene.subjects[subject].offsets
            return pose_body(Y.reshape(len(Y), -1, 3), offsets)
        return np.insert(Y.reshape(len(Y), -1, 3), 0, 0.0, axis=1)


def make_pose(
    preset="humaneva",
    *,
    n_frames=None,
    n_subjects=None,
    n_cameras=None,
    motions=None,
    features=None,
    outputs=None,
    occlusion=None,
    segmentation_noise=None,
    folder=None,
    cache=True,
    data_home=None,
    n_jobs=None,
    random_state=0,
    verbose=0,
):
    """People who move before cameras: features of silhouettes, and their poses.

    Everything is made from `random_state` and the options, whatever `n_jobs`.

    Parameters
    ----------
    preset : "humaneva", "poser" or "human36m"
        What the other options are where they are None:

        - "humaneva": 4,800 rows to train and 4,800 to test, one half of every sequence
          each; 3 cameras times 270 "hog" features to 60 "positions".
        - "poser": 1,927 and 418 rows, short blocks held out of every sequence; one
          camera, 100 "bosc" features to 54 "angles"; people face the camera's side.
        - "human36m": 335,000 and 165,000 rows, one third of every sequence held out; 4
          cameras times 765 "hog" features to 60 "positions"; 6 GB, so choose
          `n_frames`, or a `folder`.
    n_frames : int
        Rows to train and to test together. Fewer take every so many frames of the same
        sequences.
    n_subjects : int
    n_cameras : int
        Evenly around the scene.
    motions : str or list of str
        Of "walk", "jog", "box", "gesture", "throw_catch", "sit".
    features : "hog" or "bosc"
        Histograms of oriented gradients, 9 in each cell of the bounding box; or bags of
        shape contexts, 100 words learned from training silhouettes.
    outputs : "positions" or "angles"
        20 joints relative to the pelvis, in mm; or three angles of 18 joints, in
        degrees within [-180, 180).
    occlusion : float in [0, 1]
        Probability that a bar or rectangle hides part of an image.
    segmentation_noise : float in [0, 2]
        Strength of faulty segmentation: lost limbs, blobs at the border, speckle.
    folder : path-like
        Where to keep the arrays as .npy files; the answer's are then memory-mapped.
        Memory beyond the files: 256 frames for each worker, some 20 MB.
    cache : bool
        Whether to take what an equal call made before, from `folder` or else from
        ``data_home/overcover``, and to leave it there.
    data_home : path-like
        As in :func:`sklearn.datasets.get_data_home`.
    n_jobs : int
        Threads; None for one, -1 for all cores.
    random_state : int
    verbose : int
        Shows a bar if positive.

    Returns
    -------
    PoseData

    Examples
    --------
    >>> data = make_pose("poser", n_frames=120, cache=False)
    >>> data.X_train.shape, data.Y_train.shape, data.X_test.shape
    ((99, 100), (99, 54), (21, 100))
    """
    given = {
        "n_frames": n_frames,
        "n_subjects": n_subjects,
        "n_cameras": n_cameras,
        "motions": motions,
        "features": features,
        "outputs": outputs,
        "occlusion": occlusion,
        "segmentation_noise": segmentation_noise,
    }
    settings = choose_settings(preset, random_state, given)
    scene = Scene(settings)
    shapes = shapes_of(scene)

    def fill(arrays):
        fill_rows(scene, arrays, n_jobs, verbose)

    if cache or folder is not None:
        described = {"version": VERSION, **asdict(settings)}
        arrays = stored(described, shapes, fill, folder, data_home, anew=not cache)
    else:
        arrays = {name: np.empty(s, np.float32) for name, s in shapes.items()}
        fill(arrays)
    return PoseData(
        **arrays,
        rows_train=scene.rows["train"],
        rows_test=scene.rows["test"],
        joint_names=JOINT_NAMES,
        angle_names=JOINTS,
        bones=BONES,
        cameras=scene.cameras,
        settings=asdict(settings),
        scene=scene,
    )
