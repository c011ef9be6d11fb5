r"""The body: joints, bones of a subject, limits of joints, forward kinematics.

x ahead, y to the left, z up; mm and degrees. The 18 joints have three angles (flexion,
abduction, twist), zero for a person who stands; both sides share their signs. With the
rotation :math:`R_j` of joint j and its offset :math:`o_j` in the parent p(j),

.. math:: G_j = G_{p(j)} R_j, \quad x_j = x_{p(j)} + G_{p(j)} o_j .
"""

import numpy as np

_ARM = ("clavicle", "shoulder", "elbow", "wrist")
_LEG = ("hip", "knee", "ankle")

# The 18 joints that have angles.
JOINTS = (
    *("pelvis", "spine", "chest", "neck"),
    *(f"{side}_{part}" for side in ("left", "right") for part in _ARM + _LEG),
)
J = {name: j for j, name in enumerate(JOINTS)}

# Every point of the body and its parent joint.
_PARENTS = {"pelvis": "pelvis", "spine": "pelvis", "chest": "spine"}
_PARENTS |= {"neck": "chest", "head": "neck"}
for _side in ("left", "right"):
    _chain = ("chest", *(f"{_side}_{part}" for part in (*_ARM, "hand")))
    _PARENTS |= dict(zip(_chain[1:], _chain))
    _chain = ("pelvis", *(f"{_side}_{part}" for part in (*_LEG, "toe")))
    _PARENTS |= dict(zip(_chain[1:], _chain))

JOINT_NAMES = tuple(name for name in _PARENTS if "clavicle" not in name)
"""The 21 points of a pose, the pelvis first; clavicles turn where the neck is."""

P = {name: p for p, name in enumerate(JOINT_NAMES)}

BONES = tuple(
    (P["neck" if "clavicle" in parent else parent], P[name])
    for name, parent in _PARENTS.items()
    if name in P and name != "pelvis"
)
"""Pairs of points with a bone between them."""


def triples(text):
    """Names and three numbers of each part of a text such as "spine 0 0 60, ..."."""
    for part in filter(None, text.split(",")):
        name, *numbers = part.split()
        yield name, [float(number) for number in numbers]


# Offsets of a person 1 m tall, in mm, left side; the right side mirrors y.
_OFFSETS = dict(
    triples("""spine 0 0 60, chest -8 0 110, neck 4 0 125, head 14 0 165,
    clavicle 4 0 125, shoulder -2 99 -22, elbow 0 8 -170, wrist 4 0 -146, hand 6 0 -88,
    hip 0 52 -18, knee 6 4 -245, ankle -8 0 -243, toe 112 10 -32""")
)
SOLE = 40.0  # how far below the ankle the heel ends, per metre of height

# Lowest and highest flexion, abduction and twist.
_LIMITS = {
    "pelvis": ((-40, 60), (-25, 25), (-180, 180)),
    "spine": ((-20, 50), (-20, 20), (-25, 25)),
    "chest": ((-20, 35), (-20, 20), (-30, 30)),
    "neck": ((-40, 45), (-35, 35), (-70, 70)),
    "clavicle": ((-15, 25), (-10, 30), (-10, 10)),
    "shoulder": ((-60, 175), (-30, 160), (-90, 90)),
    "elbow": ((0, 150), (0, 0), (-90, 90)),
    "wrist": ((-70, 75), (-25, 35), (0, 0)),
    "hip": ((-30, 120), (-25, 50), (-45, 45)),
    "knee": ((0, 145), (0, 0), (-15, 15)),
    "ankle": ((-45, 30), (-20, 20), (-20, 20)),
}
LIMITS = np.array([_LIMITS[name.split("_")[-1]] for name in JOINTS], dtype=float)
LIMITS = LIMITS.transpose(2, 0, 1)  # lowest and highest, shape (2, 18, 3)

# Signs that turn (flexion, abduction, twist) into right-handed rotations about
# (y, x, z). What hangs down flexes forwards by a negative turn about y; knees, and what
# stands up (the trunk bows), by a positive one.
_SIGNS = np.ones((len(JOINTS), 3))
for _name, _j in J.items():
    _part = _name.split("_")[-1]
    if _part in (*_ARM, *_LEG) and _part != "knee":
        _SIGNS[_j, 0] = -1
    if _name.startswith("right"):
        _SIGNS[_j, 1:] = -1


def make_bodies(rng, n_subjects):
    """Heights in mm, and offsets (n_subjects, n_points, 3) of points in parents."""
    heights = rng.permutation(np.linspace(1560.0, 1900.0, n_subjects + 2)[1:-1])
    offsets = np.zeros((n_subjects, len(_PARENTS), 3))
    for s, height in enumerate(heights):
        factors = dict(zip(_OFFSETS, rng.uniform(0.96, 1.04, len(_OFFSETS))))
        factors["clavicle"] = factors["neck"]
        for p, name in enumerate(_PARENTS):
            part = name.split("_")[-1]
            if part == "pelvis":
                continue
            mirror = (1, -1, 1) if name.startswith("right") else (1, 1, 1)
            scale = height / 1000 * factors[part]
            offsets[s, p] = np.multiply(_OFFSETS[part], mirror) * scale
    return heights, offsets


def rotations(degrees):
    """Matrices Rx(abduction) Ry(flexion) Rz(twist) of right-handed degrees (..., 3)."""
    flexion, abduction, twist = np.moveaxis(np.deg2rad(degrees), -1, 0)
    cy, sy = np.cos(flexion), np.sin(flexion)
    cx, sx = np.cos(abduction), np.sin(abduction)
    cz, sz = np.cos(twist), np.sin(twist)
    rows = (
        (cy * cz, -cy * sz, sy),
        (cx * sz + sx * sy * cz, cx * cz - sx * sy * sz, -sx * cy),
        (sx * sz - cx * sy * cz, sx * cz + cx * sy * sz, cx * cy),
    )
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def pose_body(angles, offsets):
    """Points (n_frames, 21, 3) relative to the pelvis: forward kinematics."""
    local = rotations(angles * _SIGNS)
    # The pelvis leans first and faces its heading last: the inverse of the opposite.
    local[:, 0] = rotations(-angles[:, 0]).swapaxes(1, 2)
    turned, points = {}, {}
    for p, (name, parent) in enumerate(_PARENTS.items()):
        if name == "pelvis":
            turned[name], points[name] = local[:, 0], np.zeros((len(angles), 3))
            continue
        points[name] = points[parent] + turned[parent] @ offsets[p]
        if name in J:
            turned[name] = turned[parent] @ local[:, J[name]]
    return np.stack([points[name] for name in JOINT_NAMES], axis=1)
