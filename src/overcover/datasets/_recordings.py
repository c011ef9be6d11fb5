"""Recordings of human motion: an archive of VideoPose3D in m, or folders in mm."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ..tables import near_names, read_npz
from ._formats import read_cdf, read_h5, read_mat

# Readers of files by their ending, the preferred form first.
HUMAN36M = {
    # As published: S1/MyPoseFeatures/D3_Positions/*.cdf, also turned into *.cdf.mat.
    ".cdf": lambda file: read_cdf(file, "Pose"),
    ".mat": lambda file: read_mat(file, "data"),
    # Of 3d-pose-baseline: S1/MyPoses/3D_positions/*.h5.
    ".h5": lambda file: read_h5(file, "3D_positions").T,
}
# Of VideoPose3D's MATLAB script: Train/S1/Walking_1.mat; lost frames are NaN.
HUMANEVA = {".mat": lambda file: read_mat(file, "poses_3d")}


class Sequence(NamedTuple):
    """One recording, not yet read."""

    subject: str
    action: str
    read: Callable[[], Any]  # (n_frames, n_joints, 3), or rows of 3 * n_joints


def sequences_of(path, readers):
    """All sequences of an .npz of VideoPose3D, or of a folder of files."""
    if path.is_dir():
        return _files(path, readers)
    if path.suffix.lower() != ".npz":
        raise ValueError(
            f"{str(path)!r} is neither an .npz nor a folder. Give the archive, or the "
            "folder in which the subjects' folders are."
        )
    positions = read_npz(path, "positions_3d", pickled=True)
    if not isinstance(positions, dict) or not all(
        isinstance(part, dict) for part in positions.values()
    ):
        raise ValueError(
            f"positions_3d in {str(path)!r} is not a dictionary from subject to action "
            "to joints, as VideoPose3D writes it."
        )
    return [
        Sequence(str(subject), str(action), partial(lambda joints: joints, joints))
        for subject, actions in positions.items()
        for action, joints in actions.items()
    ]


def _files(folder, readers):
    """Sequences of the first form of which there are files in subjects' folders."""
    for suffix in readers:
        files = sorted(f for f in folder.rglob(f"*{suffix}") if _subject(folder, f))
        if files:
            break
    else:
        raise FileNotFoundError(
            f"{str(folder)!r} holds no folders S1, S2, ... with {', '.join(readers)} "
            f"files of joints.{near_names('S1', [p.name for p in folder.iterdir()])}"
        )
    # Beside the positions a subject has angles, camera views and other features.
    files = [f for f in files if "." not in _action(f)]
    places = {"d3_positions", "3d_positions"}
    inside = [f for f in files if places & {p.lower() for p in f.parts}]
    files, read = inside or files, readers[suffix]
    return [Sequence(_subject(folder, f), _action(f), partial(read, f)) for f in files]


def _action(file):
    """The action in the name of a file, as VideoPose3D calls it."""
    action = file.name.removesuffix(file.suffix).removesuffix(".cdf").replace("_", " ")
    return action.replace("TakingPhoto", "Photo").replace("WalkingDog", "WalkDog")


def _subject(folder, file):
    """The subject in a path, with the split before it if there is one."""
    parts = file.relative_to(folder).parts[:-1]
    for i, part in enumerate(parts):
        if re.fullmatch(r"S\d+", part):
            split = i and parts[i - 1] in ("Train", "Validate", "Test")
            return "/".join(parts[i - 1 : i + 1]) if split else part
    return None
