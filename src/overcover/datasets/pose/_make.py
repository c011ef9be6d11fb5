"""Make pose data: settings, a scene, and arrays from memory or from the cache."""

from dataclasses import asdict

import numpy as np

from ._cache import stored
from ._data import PoseData
from ._presets import choose_settings
from ._rows import fill_rows, shapes_of
from ._scene import Scene
from ._skeleton import BONES, JOINT_NAMES, JOINTS

VERSION = 1
"""Of the generator: raised when it generates other data, so that caches are renewed."""


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

    All data follow from `random_state` and the options, whatever `n_jobs`.

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
