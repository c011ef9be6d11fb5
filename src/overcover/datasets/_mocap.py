"""Human motion: joints of HumanEva and Human3.6M, in millimetres and one order."""

import re
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import Bunch

from .._validation import check_choice, check_count
from ..tables import check_path, near_names, read_npy, read_npz
from ._formats import read_cdf, read_h5, read_mat

# Readers of files by their ending, and the key of the joints; the preferred form first.
HUMAN36M = {
    # As published: S1/MyPoseFeatures/D3_Positions/*.cdf, also turned into *.cdf.mat.
    ".cdf": (read_cdf, "Pose"),
    ".mat": (read_mat, "data"),
    # Of 3d-pose-baseline: S1/MyPoses/3D_positions/*.h5.
    ".h5": (read_h5, "3D_positions"),
}
# Of VideoPose3D's MATLAB script: Train/S1/Walking_1.mat; lost frames are NaN.
HUMANEVA = {".mat": (read_mat, "poses_3d")}
# A folder of a subject, with the split before it if there is one.
SUBJECT = re.compile(r"(?<![^/])((Train/|Validate/|Test/)?S\d+)/")

UNITS = {"mm": 1.0, "cm": 10.0, "m": 1000.0}
# A person between crouching and jumping; anything else is a wrong unit.
LEAST_EXTENT, MOST_EXTENT = 200.0, 4000.0

HUMANEVA_JOINTS = (
    *("pelvis", "thorax", "left_shoulder", "left_elbow", "left_wrist"),
    *("right_shoulder", "right_elbow", "right_wrist", "left_hip", "left_knee"),
    *("left_ankle", "right_hip", "right_knee", "right_ankle", "head"),
)
# Of the 32 joints of Human3.6M the others are copies of these, or do not move.
MOVING = {0: "hip", 1: "right_hip", 2: "right_knee", 3: "right_foot", 6: "left_hip"}
MOVING |= {7: "left_knee", 8: "left_foot", 12: "spine", 13: "thorax", 14: "nose"}
MOVING |= {15: "head", 17: "left_shoulder", 18: "left_elbow", 19: "left_wrist"}
MOVING |= {25: "right_shoulder", 26: "right_elbow", 27: "right_wrist"}
N_HUMAN36M = 32
# Its video is damaged; VideoPose3D and its followers leave it out.
DAMAGED = ("S11", "Directions")


def load_humaneva(
    path,
    *,
    subjects=None,
    actions=None,
    every=1,
    root_relative=True,
    features=None,
    unit="auto",
    sha256=None,
):
    """Read joints of HumanEva-I in millimetres.

    Parameters
    ----------
    path : str or path-like
        ``data_3d_humaneva15.npz`` of VideoPose3D, or the folder of .mat files that its
        MATLAB script exports. Raw mocap files need HumanEva's own MATLAB code first.
    subjects, actions : list of str or None
        Only these, such as ``["Train/S1"]`` and ``["Walking 1"]``; None takes all. An
        action also stands for its chunks, ``"Walking 1 chunk0"``.
    every, root_relative, features, unit, sha256 :
        As in `load_human36m`; the origin is the pelvis.

    Returns
    -------
    Bunch
        As of `load_human36m`, without the frames that motion capture lost.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from overcover.datasets import load_humaneva
    >>> joints = np.random.default_rng(0).normal(scale=0.4, size=(5, 15, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "data_3d_humaneva15.npz"
    ...     np.savez(path, positions_3d={"Train/S1": {"Walking 1 chunk0": joints}})
    ...     humaneva = load_humaneva(path)
    >>> humaneva.joints.shape, humaneva.subject[:1].tolist(), humaneva.joint_names[:2]
    ((5, 15, 3), ['Train/S1'], ['pelvis', 'thorax'])
    """
    wanted = {"subject": subjects, "action": actions}
    options = every, root_relative, features, unit
    poses = _load(path, sha256, HUMANEVA, wanted, *options)
    if poses.joints.shape[1] == len(HUMANEVA_JOINTS):
        poses.joint_names = list(HUMANEVA_JOINTS)
    return poses


def load_human36m(
    path,
    *,
    subjects=None,
    actions=None,
    joints="moving",
    every=1,
    root_relative=True,
    features=None,
    unit="auto",
    sha256=None,
):
    """Read joints of Human3.6M in millimetres.

    Parameters
    ----------
    path : str or path-like
        ``data_3d_h36m.npz`` of VideoPose3D, or a folder with ``S1``, ``S5``, ... that
        hold .cdf, .cdf.mat or .h5 files of 3D positions. .cdf and .h5 need
        ``pip install 'overcover[data]'``.
    subjects, actions : list of str or None
        Only these, such as ``["S9", "S11"]`` and ``["Walking"]``; None takes all. An
        action also stands for its second take, ``"Walking 1"``.
    joints : {"moving", "all"}
        The 17 joints that move, which errors are reported on, or all 32.
    every : int, default=1
        Take every so many-th frame of a sequence.
    root_relative : bool, default=True
        Take the hip as the origin of each frame; it stays as a joint at zero.
    features : str, path-like, array of shape (n, n_features), or None
        Your own inputs: .npy, or .npz of one array; one row per frame of the chosen
        sequences, or per row of the result.
    unit : {"auto", "mm", "cm", "m"}
        Of the file; "auto" is metres for .npz and millimetres for the others.
    sha256 : str or None
        Refuse a file with another sum; see `file_checksum`.

    Returns
    -------
    Bunch
        joints of shape (n, n_joints, 3) in mm, in world coordinates; target, the same
        as (n, 3 * n_joints); subject, action, frame of shape (n,), the frame within its
        sequence; joint_names; data, with features. The damaged sequence
        "Directions" of S11 is left out in every form.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from overcover.datasets import load_human36m
    >>> joints = np.random.default_rng(0).normal(scale=0.4, size=(5, 32, 3))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "data_3d_h36m.npz"
    ...     np.savez(path, positions_3d={"S1": {"Walking": joints}})
    ...     human36m = load_human36m(path, every=2)
    >>> human36m.joints.shape, human36m.frame.tolist(), human36m.joint_names[0]
    ((3, 17, 3), [0, 2, 4], 'hip')
    """
    check_choice("joints", joints, ("moving", "all"))
    wanted = {"subject": subjects, "action": actions}
    options = every, root_relative, features, unit, joints == "moving"
    poses = _load(path, sha256, HUMAN36M, wanted, *options)
    n_joints = poses.joints.shape[1]
    if n_joints == len(MOVING):
        poses.joint_names = list(MOVING.values())
    elif n_joints == N_HUMAN36M:
        poses.joint_names = [MOVING.get(j, f"joint_{j}") for j in range(n_joints)]
    else:  # angles, perhaps, which are three a joint as well
        raise ValueError(
            f"{str(path)!r} holds {n_joints} joints; the positions of Human3.6M have "
            f"{N_HUMAN36M}, or {len(MOVING)} that move."
        )
    return poses


class Sequence(NamedTuple):
    """One recording."""

    subject: str
    action: str
    joints: Any  # (n_frames, n_joints, 3), rows of 3 * n_joints, or a reader of these


def _load(
    path, sha256, forms, wanted, every, root_relative, features, unit, moving=False
):
    """Joints of chosen sequences in mm, their origin, and features of the same rows."""
    path = check_path(path, sha256, folder=True)
    find = _in_folder if path.is_dir() else _in_archive
    sequences = _chosen(path, find(path, forms), wanted)
    check_count("every", every, advice="1 takes all frames.")
    check_choice("unit", unit, ("auto", *UNITS))
    if unit == "auto":
        unit = "mm" if path.is_dir() else "m"
    parts, frames, rows, n_frames = [], [], [], 0
    for sequence in sequences:
        joints = _read_joints(sequence, path)
        if moving and joints.shape[1] == N_HUMAN36M:
            joints = joints[:, list(MOVING)]
        kept = np.arange(0, len(joints), every)
        # Motion capture writes NaN where it lost a marker.
        kept = kept[np.isfinite(joints[kept]).all(axis=(1, 2))]
        parts.append(joints[kept])
        frames.append(kept)
        rows.append(n_frames + kept)
        n_frames += len(joints)
    counts = sorted({part.shape[1] for part in parts})
    if len(counts) > 1:
        raise ValueError(f"Sequences of {str(path)!r} differ in joints: {counts}.")
    joints = np.concatenate(parts) * UNITS[unit]
    if not len(joints):
        raise ValueError(f"No frame of the chosen sequences of {str(path)!r} is whole.")
    extent = float(np.median(np.ptp(joints, axis=1).max(axis=1)))
    if not LEAST_EXTENT <= extent <= MOST_EXTENT:
        raise ValueError(
            f"With unit={unit!r} the people in {str(path)!r} measure {extent:.3g} mm "
            "from end to end. Pass the unit of the file: 'mm', 'cm' or 'm'."
        )
    lengths = [len(part) for part in parts]
    poses = Bunch(
        joints=joints - joints[:, :1] if root_relative else joints,
        subject=np.repeat([s.subject for s in sequences], lengths),
        action=np.repeat([s.action for s in sequences], lengths),
        frame=np.concatenate(frames),
        joint_names=[f"joint_{j}" for j in range(counts[0])],
    )
    poses.target = poses.joints.reshape(len(joints), -1)
    if features is not None:
        poses.data = _read_features(features, np.concatenate(rows), n_frames)
    return poses


def _in_archive(path, _):
    """All sequences of an .npz of VideoPose3D."""
    if path.suffix.lower() != ".npz":
        raise ValueError(
            f"{str(path)!r} is neither an .npz nor a folder. Give the archive, or the "
            "folder in which the subjects' folders are."
        )
    positions = read_npz(path, "positions_3d", pickled=True)
    try:
        return [
            Sequence(str(subject), str(action), joints)
            for subject, actions in positions.items()
            for action, joints in actions.items()
        ]
    except AttributeError:
        raise ValueError(
            f"positions_3d in {str(path)!r} is not a dictionary from subject to action "
            "to joints, as VideoPose3D writes it."
        ) from None


def _in_folder(folder, forms):
    """Sequences of the first form of which there are files in subjects' folders."""
    for suffix, (read, key) in forms.items():
        sequences = []
        for file in sorted(folder.rglob(f"*{suffix}")):
            place = file.relative_to(folder).as_posix()
            subject = SUBJECT.search(place)
            # As VideoPose3D calls it.
            action = file.name.removesuffix(suffix).removesuffix(".cdf")
            action = action.replace("_", " ").replace("TakingPhoto", "Photo")
            action = action.replace("WalkingDog", "WalkDog")
            if subject:
                joints = partial(read, file, key)
                sequences.append((place, Sequence(subject[1], action, joints)))
        if sequences:
            break
    else:
        raise FileNotFoundError(
            f"{str(folder)!r} holds no folders S1, S2, ... with {', '.join(forms)} "
            f"files of joints.{near_names('S1', [p.name for p in folder.iterdir()])}"
        )
    # Beside the positions a subject has angles, camera views and other features.
    named = [(place, s) for place, s in sequences if "." not in s.action]
    inside = re.compile("(^|/)(d3|3d)_positions/", re.IGNORECASE)
    return [s for place, s in named if inside.search(place)] or [s for _, s in named]


def _chosen(path, sequences, choices):
    """Chosen sequences, in an order that does not depend on the form of the file."""
    sequences = [s for s in sequences if (s.subject, s.action) != DAMAGED]
    chosen = sequences
    for role, wanted in choices.items():
        if isinstance(wanted, str):
            raise ValueError(
                f"{role}s={wanted!r} must be a list, such as [{wanted!r}]."
            )
        names = {getattr(s, role) for s in sequences}
        for name in wanted or ():
            if not any(_stands_for(name, known) for known in names):
                raise ValueError(
                    f"{role}s has {name!r}, which {str(path)!r} does not hold."
                    f"{near_names(name, names)}"
                )
        if wanted is not None:
            known = {k for k in names if any(_stands_for(name, k) for name in wanted)}
            chosen = [s for s in chosen if getattr(s, role) in known]
    if not chosen:
        raise ValueError(
            f"{str(path)!r} holds none of these actions of these subjects."
        )
    return sorted(chosen, key=lambda s: (_natural(s.subject), _natural(s.action)))


def _stands_for(name, known):
    """Whether a known name is this name, or a take or chunk of it."""
    return re.fullmatch(re.escape(name) + r"( \d+)?( chunk\d+)?", known) is not None


def _natural(name):
    """A key that sorts S2 before S11."""
    return [(int(p), "") if p.isdigit() else (-1, p) for p in re.split(r"(\d+)", name)]


def _read_joints(sequence, path):
    """Joints of one sequence, shape (n_frames, n_joints, 3), float64."""
    joints = sequence.joints
    joints = np.asarray(joints() if callable(joints) else joints)
    if joints.ndim == 2 and joints.shape[1] % 3 == 0 and joints.shape[1]:
        joints = joints.reshape(len(joints), -1, 3)
    if joints.dtype.kind not in "iuf" or joints.ndim != 3 or joints.shape[2] != 3:
        raise ValueError(
            f"{sequence.subject} {sequence.action} in {str(path)!r} is an array of "
            f"{joints.dtype} and shape {joints.shape}; joints have "
            "(n_frames, n_joints, 3)."
        )
    return joints.astype(np.float64)


def _read_features(features, rows, n_frames):
    """The user's features of some rows among all frames."""
    if isinstance(features, str | Path):
        file = check_path(features)
        is_archive = file.suffix.lower() == ".npz"
        features = read_npz(file) if is_archive else read_npy(file)
    features = np.asarray(features)
    if features.dtype.kind not in "biuf" or features.ndim != 2:
        raise ValueError(
            f"features are an array of {features.dtype} and shape {features.shape}; "
            "needed are numbers, (n, n_features)."
        )
    if len(features) == n_frames:
        return features[rows]
    if len(features) == len(rows):
        return features
    raise ValueError(
        f"features have {len(features)} rows, but the chosen sequences have {n_frames} "
        f"frames, of which {len(rows)} are in the result. Give either number of rows, "
        "in the order of subject, action and frame of the result."
    )
