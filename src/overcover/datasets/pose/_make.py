"""`make_pose`: all rows of a pose data set, in memory or in the cache; `PoseData`."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..._parallel import run_tasks
from ..._progress import bar
from ._cache import stored
from ._features import (
    N_ORIENTATIONS,
    N_WORDS,
    bag_of_shape_contexts,
    hog,
    learn_codebook,
)
from ._scene import Rows, Scene, choose_settings
from ._silhouette import SIZE
from ._skeleton import BONES, JOINT_NAMES, JOINTS, pose_body


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
    cameras : tuple of Camera
    settings : dict
        Everything the data depend on.
    scene : Scene
        Generates frames again.

    Attributes
    ----------
    joint_names, angle_names : tuple of 21 str, tuple of 18 str
        Names of the points that `joints` and `skeletons` return, the pelvis first; and
        of the joints that have angles.
    bones : tuple of pairs of int
        Points with a bone between them.

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
    cameras: tuple
    settings: dict[str, Any]
    scene: Scene
    # The same in all data.
    joint_names, angle_names, bones = JOINT_NAMES, JOINTS, BONES

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


VERSION = 1  # raised when other data are generated, so that caches are renewed
CHUNK = 256  # frames that each worker generates at once
CODEBOOK_FRAMES = 400  # the most training frames from which a codebook is learned


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
    """Make poses of people in front of cameras, and features of their silhouettes.

    All data follow from `random_state` and the options, whatever `n_jobs`.

    Parameters
    ----------
    preset : "humaneva", "poser" or "human36m"
        Values of the other options where they are None:

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
        Where to keep the arrays as .npy files; the result's are then memory-mapped.
        Memory beyond the files: 256 frames for each worker, some 20 MB.
    cache : bool
        Whether to read the data of an earlier equal call, from `folder` or else from
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
    options = {
        "n_frames": n_frames,
        "n_subjects": n_subjects,
        "n_cameras": n_cameras,
        "motions": motions,
        "features": features,
        "outputs": outputs,
        "occlusion": occlusion,
        "segmentation_noise": segmentation_noise,
    }
    settings = choose_settings(preset, random_state, options)
    scene = Scene(settings)
    shapes = _shapes_of(scene)

    def blocks():
        return row_blocks(scene, shapes, n_jobs, verbose)

    if cache or folder is not None:
        key = {"version": VERSION, **asdict(settings)}
        arrays = stored(key, shapes, blocks, folder, data_home, anew=not cache)
    else:
        arrays = {name: np.empty(s, np.float32) for name, s in shapes.items()}
        for start, block in blocks():
            for name, rows in block.items():
                arrays[name][start : start + len(rows)] = rows
    return PoseData(
        **arrays,
        rows_train=scene.rows["train"],
        rows_test=scene.rows["test"],
        cameras=scene.cameras,
        settings=asdict(settings),
        scene=scene,
    )


def _shapes_of(scene):
    settings = scene.settings
    n_bins = math.prod(settings.n_cells) * N_ORIENTATIONS
    n_features = settings.n_cameras * (
        n_bins if settings.features == "hog" else N_WORDS
    )
    n_outputs = 3 * (len(JOINTS) if settings.outputs == "angles" else len(BONES))
    return {
        f"{letter}_{part}": (len(where.frame), width)
        for part, where in scene.rows.items()
        for letter, width in (("X", n_features), ("Y", n_outputs))
    }


def _encoder(scene):
    """A function from silhouettes to features."""
    settings = scene.settings
    if settings.features == "hog":
        return lambda images: hog(images, *settings.n_cells)
    n_train = settings.n_frames - settings.n_test
    rows = np.unique(np.linspace(0, n_train - 1, CODEBOOK_FRAMES).astype(int))
    images = scene.for_rows("train", rows, scene.silhouettes).reshape(-1, SIZE, SIZE)
    words, width = learn_codebook(images, settings.random_state)
    return lambda images: bag_of_shape_contexts(images, words, width)


def row_blocks(scene, shapes, n_jobs, verbose):
    """The first row of each chunk, and its arrays by name, in the order of the rows."""
    encode = _encoder(scene)

    def make_rows(s, frames):
        """Features and outputs of frames of sequence s, side by side."""
        angles, joints = scene.perform(s, frames)
        images = scene.silhouettes(s, frames, joints).reshape(-1, SIZE, SIZE)
        positions = joints[:, 1:] - joints[:, :1]
        outputs = angles if scene.settings.outputs == "angles" else positions
        n = len(frames)
        return np.hstack([encode(images).reshape(n, -1), outputs.reshape(n, -1)])

    def make_block(part, start):
        rows = scene.for_rows(part, slice(start, start + CHUNK), make_rows)
        X, Y = np.hsplit(rows.astype(np.float32), [shapes[f"X_{part}"][1]])
        return start, {f"X_{part}": X, f"Y_{part}": Y}

    chunks = [
        (part, start)
        for part, where in scene.rows.items()
        for start in range(0, len(where.frame), CHUNK)
    ]
    with bar("frames", len(chunks), is_shown=verbose) as advance:
        for start, block in run_tasks(make_block, chunks, n_jobs):
            yield start, block
            advance()
