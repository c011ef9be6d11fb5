"""Silhouette to 3-D pose: a procedural data set of people who move before cameras.

    skeleton -> motion -> camera -> silhouette -> features -> [make_pose]

The recorded data of the literature (Poser, HumanEva, Human3.6M) cannot be shipped; this
stands in for it, with its sizes and its difficulties: from silhouettes alone, left and
right or front and back are often hard to tell apart, segmentation is faulty, and the
poses to be predicted lie beside, not among, those that were seen.
"""

from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any

import numpy as np

from .._parallel import run_tasks
from .._progress import open_bar
from .._validation import check_choice, check_count
from ._features import hog
from ._motion import MOTIONS
from ._pose_store import stored
from ._scene import Rows, Scene, Settings
from ._shape_contexts import N_WORDS, bag_of_shape_contexts, learn_codebook
from ._silhouette import SIZE
from ._skeleton import BONES, JOINT_NAMES, JOINTS, pose_body

VERSION = 1
"""Of the generator: raised when it makes other data, so that caches are made anew."""

CHUNK = 256
"""Frames made at once by each worker."""

CODEBOOK_FRAMES = 400
"""Training frames from which a codebook is learned, at most."""

_HUMANEVA = Settings(
    preset="humaneva",
    n_frames=9600,
    n_subjects=4,
    n_cameras=3,
    motions=("walk", "jog", "box", "gesture", "throw_catch"),
    features="hog",
    outputs="positions",
    occlusion=0.0,
    segmentation_noise=0.4,
    random_state=0,
    n_cells=(6, 5),
    seconds=30.0,
    n_takes=1,
    n_test=4800,
    n_blocks=1,
    variation=0.8,
    turn=20.0,
    rounds=True,
)
PRESETS = {
    "humaneva": _HUMANEVA,
    "poser": replace(
        _HUMANEVA,
        preset="poser",
        n_frames=2345,
        n_cameras=1,
        motions=MOTIONS,
        features="bosc",
        outputs="angles",
        segmentation_noise=0.5,
        seconds=20.0,
        n_test=418,
        n_blocks=3,
        variation=1.1,
        turn=75.0,
        rounds=False,
    ),
    "human36m": replace(
        _HUMANEVA,
        preset="human36m",
        n_frames=500_000,
        n_subjects=7,
        n_cameras=4,
        motions=MOTIONS,
        n_cells=(17, 5),
        seconds=120.0,
        n_takes=2,
        n_test=165_000,
        variation=1.0,
        turn=120.0,
    ),
}


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

        def draw(s, frames):
            return self.scene.silhouettes(s, frames, self.scene.perform(s, frames)[1])

        return self.scene.for_rows(part, rows, draw)

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


def _checked(preset, random_state, given):
    """Settings of a preset with what was given in place of its own."""
    check_choice("preset", preset, tuple(PRESETS))
    base = PRESETS[preset]
    given = {name: value for name, value in given.items() if value is not None}
    if "motions" in given:
        motions = given["motions"]
        motions = (motions,) if isinstance(motions, str) else tuple(motions)
        for motion in motions:
            check_choice("motions", motion, MOTIONS)
        # In the order of the data and once each: equal sets are equal settings.
        given["motions"] = tuple(m for m in MOTIONS if m in motions)
        check_count("The number of motions", len(motions))
    check_count("random_state", random_state, 0, "Data are made from a number.")
    settings = replace(base, random_state=int(random_state), **given)
    check_count("n_subjects", settings.n_subjects)
    check_count("n_cameras", settings.n_cameras)
    check_choice("features", settings.features, ("hog", "bosc"))
    check_choice("outputs", settings.outputs, ("positions", "angles"))
    n_sequences = settings.n_subjects * len(settings.motions) * settings.n_takes
    least = 2 * n_sequences
    advice = f"There are {n_sequences} sequences, and each needs two frames."
    check_count("n_frames", settings.n_frames, least, advice)
    for name, most in (("occlusion", 1.0), ("segmentation_noise", 2.0)):
        value = getattr(settings, name)
        if not isinstance(value, Real) or not 0 <= float(value) <= most:
            raise ValueError(f"{name}={value!r} must lie between 0 and {most:g}.")
    return replace(
        settings,
        n_frames=int(settings.n_frames),
        n_subjects=int(settings.n_subjects),
        n_cameras=int(settings.n_cameras),
        occlusion=float(settings.occlusion),
        segmentation_noise=float(settings.segmentation_noise),
        n_test=round(settings.n_frames * base.n_test / base.n_frames),
    )


def _n_features(settings):
    rows, columns = settings.n_cells
    width = 9 * rows * columns if settings.features == "hog" else N_WORDS
    return settings.n_cameras * width


def _encoder(scene):
    """A function from silhouettes to features."""
    settings = scene.settings
    if settings.features == "hog":
        return lambda images: hog(images, *settings.n_cells)
    n_train = settings.n_frames - settings.n_test
    rows = np.unique(np.linspace(0, n_train - 1, CODEBOOK_FRAMES).astype(int))

    def draw(s, frames):
        return scene.silhouettes(s, frames, scene.perform(s, frames)[1])

    images = scene.for_rows("train", rows, draw).reshape(-1, SIZE, SIZE)
    words, width = learn_codebook(images, settings.random_state)
    return lambda images: bag_of_shape_contexts(images, words, width)


def _fill(scene, arrays, n_jobs, verbose):
    """Write all rows into arrays, chunk by chunk."""
    encode = _encoder(scene)
    chunks = [
        (part, start, min(start + CHUNK, len(scene.rows[part].frame)))
        for part in ("train", "test")
        for start in range(0, len(scene.rows[part].frame), CHUNK)
    ]

    def make(part, start, stop):
        X, Y = arrays[f"X_{part}"], arrays[f"Y_{part}"]
        where = scene.rows[part]
        sequence = where.sequence[start:stop]
        for s in np.unique(sequence):
            inside = start + np.flatnonzero(sequence == s)
            rows = slice(inside[0], inside[-1] + 1)
            frames = where.frame[rows]
            angles, joints = scene.perform(s, frames)
            images = scene.silhouettes(s, frames, joints)
            X[rows] = encode(images.reshape(-1, SIZE, SIZE)).reshape(len(frames), -1)
            if scene.settings.outputs == "angles":
                Y[rows] = angles.reshape(len(frames), -1)
            else:
                Y[rows] = (joints[:, 1:] - joints[:, :1]).reshape(len(frames), -1)

    bar = open_bar("frames", len(chunks)) if verbose else None
    try:
        for _ in run_tasks(make, chunks, n_jobs):
            if bar is not None:
                bar.advance()
    finally:
        if bar is not None:
            bar.close()


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
    given = dict(
        n_frames=n_frames,
        n_subjects=n_subjects,
        n_cameras=n_cameras,
        motions=motions,
        features=features,
        outputs=outputs,
        occlusion=occlusion,
        segmentation_noise=segmentation_noise,
    )
    settings = _checked(preset, random_state, given)
    scene = Scene(settings)
    n_outputs = 3 * (len(JOINTS) if settings.outputs == "angles" else len(BONES))
    shapes = {}
    for part, where in scene.rows.items():
        shapes[f"X_{part}"] = (len(where.frame), _n_features(settings))
        shapes[f"Y_{part}"] = (len(where.frame), n_outputs)

    def fill(arrays):
        _fill(scene, arrays, n_jobs, verbose)

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
