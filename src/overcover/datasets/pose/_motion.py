r"""How people move: joint angles as smooth functions of time, and performances.

    skeleton -> [motion] -> camera -> silhouette -> features

Gaits are curves over the phase of a stride. Other motions pass through key poses
:math:`a_k` around phases :math:`\varphi_k`,

.. math:: a(\varphi) = \sum_k w_k a_k, \quad
    w_k \propto e^{\kappa \cos(\varphi - \varphi_k)} .

Angles depend on the time alone, so fewer frames of a sequence are a subset of the same
motion. Everything drifts slowly: the second half of a sequence is not the first.
"""

from typing import NamedTuple

import numpy as np

from ._camera import FIRST_AZIMUTH
from ._skeleton import JOINTS, LIMITS, SOLE, J, P, pose_body, triples

GAITS = ("walk", "jog")

# A pose is written as "joint flexion abduction twist, ..."; "both_" names the left and
# the right joint. Joints that are not named stay as in the stance, which holds for the
# whole motion; ankles follow from the rest, so that feet stay level.
_STANCE = "both_shoulder 3 9 0, both_elbow 14 0 0, both_hip 2 4 6"
_WALKING = """pelvis 2 0 0, spine 3 0 0, neck -4 0 0, both_shoulder 0 10 0,
    both_hip 0 2 5"""
_RUNNING = """pelvis 6 0 0, spine 9 0 0, neck -4 0 0, both_shoulder 0 10 18,
    both_hip 0 2 5"""
_SWINGING = "hip", "knee", "ankle", "shoulder", "elbow"
_GUARD = """spine 8 0 0, neck 6 0 0, both_shoulder 38 12 10, both_elbow 122 0 0,
    left_hip 24 6 8, left_knee 26 0 0, right_hip -4 8 14, right_knee 22 0 0"""
_SEATED = """pelvis -8 0 0, spine 10 0 0, both_hip 84 8 8, both_knee 86 0 0,
    both_shoulder 24 8 15, both_elbow 52 0 0"""
_RISING = """pelvis 18 0 0, spine 15 0 0, both_hip 78 8 8, both_knee 80 0 0,
    both_shoulder 30 8 0, both_elbow 20 0 0"""


_PUNCHES = {
    0.0: "",
    0.22: "left_shoulder 88 2 0, left_elbow 8 0 0, chest 4 0 -22, spine 10 0 -8",
    0.42: "",
    0.68: """right_shoulder 92 0 0, right_elbow 6 0 0, chest 6 0 28,
        spine 16 0 14, right_knee 34 0 0""",
}
_GESTURES = {
    0.0: "",
    0.16: "right_shoulder 15 112 70, right_elbow 35 0 0",
    0.29: "right_shoulder 20 98 80, right_elbow 95 0 0",
    0.42: "right_shoulder 15 115 70, right_elbow 30 0 0",
    0.58: "left_shoulder 62 5 10, left_elbow 25 0 0",
    0.70: "left_shoulder 42 8 10, left_elbow 118 0 0",
    0.84: "both_shoulder 42 28 -20, both_elbow 62 0 0, neck -8 0 0",
}
_THROWS = {
    0.0: "",
    0.18: "both_shoulder 78 4 -8, both_elbow 38 0 0, spine 6 0 0",
    0.33: "both_shoulder 28 6 -22, both_elbow 105 0 0",
    0.55: """right_shoulder 10 100 -75, right_elbow 95 0 0, spine -4 0 -14,
        left_shoulder 55 20 0, chest -6 0 -24, right_hip 4 10 8""",
    0.70: """right_shoulder 98 8 0, right_elbow 8 0 0, left_hip 32 6 6,
        left_shoulder -18 16 0, chest 12 0 22, spine 16 0 12, left_knee 34 0 0""",
}
_SITTINGS = {
    0.0: "",
    0.11: _RISING,
    0.24: _SEATED,
    0.40: f"{_SEATED}, right_shoulder 48 22 10, right_elbow 95 0 0, spine 2 0 8",
    0.55: f"""{_SEATED}, pelvis -16 0 0, both_hip 74 6 8, both_knee 68 0 0,
        both_shoulder 10 14 10""",
    0.70: f"{_SEATED}, left_shoulder 62 12 0, left_elbow 50 0 0, spine 24 0 -10",
    0.84: _SEATED,
    0.92: _RISING,
}


class Motion(NamedTuple):
    """Key poses of a motion that is not a gait."""

    seconds: float  # of one cycle
    sharpness: float  # kappa: how long a key pose is held
    stance: str
    keys: dict[float, str]  # poses by their phase, in cycles


_STANDING_READY = f"{_STANCE}, both_hip 10 8 8, both_knee 14 0 0"
KEYED = {
    "box": Motion(1.8, 5.0, _GUARD, _PUNCHES),
    "gesture": Motion(6.5, 14.0, _STANCE, _GESTURES),
    "throw_catch": Motion(4.0, 12.0, _STANDING_READY, _THROWS),
    "sit": Motion(11.0, 20.0, _STANCE, _SITTINGS),
}
MOTIONS = (*GAITS, *KEYED)  # in the order of the data


def wander(rng, n_signals, t, fastest=0.25):
    """Slow smooth noise of unit variance at times t, shape (n_frames, n_signals)."""
    shape = (n_signals, 5)
    rates = 2 * np.pi * np.exp(rng.uniform(*np.log([0.02, fastest]), shape))
    phases = rng.uniform(0, 2 * np.pi, shape)
    heights = rng.normal(size=shape)
    heights *= np.sqrt(2.0) / np.linalg.norm(heights, axis=1)[:, None]
    total = np.zeros((len(t), n_signals))
    for rate, phase, height in zip(rates.T, phases.T, heights.T):
        total += height * np.sin(np.outer(t, rate) + phase)
    return total


def _bump(phase, centre, sharpness):
    """A periodic bump of height one around a phase, in radians."""
    return np.exp(sharpness * (np.cos(phase - centre) - 1.0))


def _put(angles, pose):
    """Write the joints that a pose names into angles of shape (18, 3)."""
    for name, degrees in triples(pose):
        for side in ("left", "right"):
            angles[J[name.replace("both", side)]] = degrees
    return angles


def gait_angles(phase, running):
    """Angles (n_frames, 18, 3) of a stride; at phase 0 the left heel strikes."""
    stance = _put(np.zeros((len(JOINTS), 3)), _RUNNING if running else _WALKING)
    angles = np.tile(stance, (len(phase), 1, 1))
    for side, leg in (("left", phase), ("right", phase + np.pi)):
        ahead, lifted = np.cos(leg), 2 * np.pi * 0.73
        if running:
            hip, shoulder, elbow = 17 + 33 * ahead, -8 - 34 * ahead, 88 - 14 * ahead
            knee = 16 + 84 * _bump(leg, lifted, 2.2) + 22 * _bump(leg, 0.9, 3)
            ankle = 4 + 14 * _bump(leg, 0.9, 3) - 26 * _bump(leg, 3.3, 4)
        else:
            hip, shoulder, elbow = 6 + 24 * ahead, 2 - 22 * ahead, 24 - 13 * ahead
            knee = 5 + 56 * _bump(leg, lifted, 2.8) + 13 * _bump(leg, 0.8, 4)
            push_off = 20 * _bump(leg, 2 * np.pi * 0.62, 6)
            ankle = 2 + 9 * _bump(leg, 2.5, 3) - push_off
        parts = [J[f"{side}_{part}"] for part in _SWINGING]
        angles[:, parts, 0] = np.stack([hip, knee, ankle, shoulder, elbow], axis=1)
    twist = (7 if running else 4) * np.cos(phase)
    angles[:, J["pelvis"], 1] = 3 * np.sin(phase)
    angles[:, J["spine"], 2], angles[:, J["chest"], 2] = twist, 1.4 * twist
    return angles


def keyed_angles(motion, phase, liveliness):
    """Angles (n_frames, 18, 3); `liveliness` scales the way to each key pose."""
    stance = _put(np.zeros((len(JOINTS), 3)), motion.stance)
    keys = np.stack([_put(stance.copy(), pose) for pose in motion.keys.values()])
    centres = 2 * np.pi * np.array(list(motion.keys))
    weights = _bump(phase[:, None], centres, motion.sharpness)
    weights /= weights.sum(axis=1, keepdims=True)
    angles = np.tile(stance, (len(phase), 1, 1))
    # Summed one by one, a frame is the same bit by bit in any batch.
    for weight, way in zip((weights * liveliness).T, keys - stance):
        angles += weight[:, None, None] * way
    for side in ("left", "right"):
        knee, hip = angles[:, J[f"{side}_knee"], 0], angles[:, J[f"{side}_hip"], 0]
        angles[:, J[f"{side}_ankle"], 0] = knee - hip + angles[:, J["pelvis"], 0]
    return angles


# Seconds of a stride, and of a round in the scene.
_STRIDE = {"walk": 1.08, "jog": 0.74}
_ROUND = {"walk": 11.0, "jog": 7.0}
_RADIUS = {"walk": 1300.0, "jog": 1500.0}

# Standard deviations of drifts in degrees: of every angle, more where a body is loose.
_DRIFT = np.full((len(JOINTS), 3), 1.2)
_LOOSE = """neck 5 3 11, shoulder 5 4 6, elbow 7 0 4, wrist 8 4 0, hip 2 1.5 2.5,
    knee 2.5 0 1, ankle 2 1 1, spine 2.5 2 3, chest 2 1.5 2.5"""
for _name, _degrees in triples(_LOOSE):
    _DRIFT[[j for joint, j in J.items() if joint.endswith(_name)]] = _degrees


class Subject(NamedTuple):
    """A person: a body and a way of moving."""

    height: float  # in mm
    offsets: np.ndarray  # of every point in its parent, shape (n_points, 3)
    girth: float  # thickness relative to the usual
    amplitudes: np.ndarray  # factors of deviations from the mean angles, (18, 3)
    manner: np.ndarray  # added to the angles, in degrees, shape (18, 3)


def make_subject(rng, height, offsets):
    return Subject(
        height,
        offsets,
        rng.uniform(0.9, 1.12),
        rng.uniform(0.85, 1.15, (len(JOINTS), 3)),
        rng.normal(size=(len(JOINTS), 3)) * _DRIFT * 0.8,
    )


def perform(subject, motion, rng, t, variation=1.0, turn=30.0, rounds=True):
    """Angles (n_frames, 18, 3) and joints (n_frames, 21, 3) in the world at times t."""
    tempo = rng.uniform(0.92, 1.08)
    slow = wander(rng, 3, t) * variation
    # Seconds ahead or behind: slow enough that motions never run backwards.
    lag = 0.6 * wander(rng, 1, t, fastest=0.08)[:, 0] * variation
    drift = wander(rng, _DRIFT.size, t).reshape(-1, *_DRIFT.shape) * variation
    lively = 1.0 + 0.12 * wander(rng, 8, t) * variation
    start, sense = rng.uniform(-1, 1), rng.choice([-1.0, 1.0])
    spot = rng.uniform(-500, 500, 2)
    seconds = _STRIDE[motion] if motion in GAITS else KEYED[motion].seconds
    phase = 2 * np.pi * (t * tempo + lag) / seconds
    angles = _angles(motion, phase, lively)
    # A style exaggerates movement, not the posture around which it happens.
    cycle = np.linspace(0, 2 * np.pi, 64, endpoint=False)
    posture = _angles(motion, cycle, np.ones((64, 8))).mean(axis=0)
    angles = posture + (angles - posture) * subject.amplitudes
    angles += subject.manner + drift * _DRIFT
    gait = motion if rounds else None
    heading, path = _route(gait, start, sense, spot, t * tempo, slow, turn)
    angles[:, 0, 2] += heading
    angles[:, 0, 2] = (angles[:, 0, 2] + 180.0) % 360.0 - 180.0
    np.clip(angles, LIMITS[0], LIMITS[1], out=angles)
    joints = pose_body(angles, subject.offsets)
    sole = SOLE * subject.height / 1000
    feet = joints[:, [P["left_ankle"], P["right_ankle"]], 2] - sole
    toes = joints[:, [P["left_toe"], P["right_toe"]], 2] - sole / 4
    floor = np.minimum(feet.min(axis=1), toes.min(axis=1))
    joints[..., :2] += path[:, None]
    joints[..., 2] -= floor[:, None]
    return angles, joints


def _angles(motion, phase, liveliness):
    """Angles of a motion at phases, shape (n_frames, 18, 3)."""
    if motion in GAITS:
        return gait_angles(phase, motion == "jog") * liveliness[:, :1, None]
    keyed = KEYED[motion]
    return keyed_angles(keyed, phase, liveliness[:, : len(keyed.keys)])


def _route(gait, start, sense, spot, t, slow, turn):
    """Headings in degrees, and places on the floor in mm."""
    if gait not in GAITS:
        heading = FIRST_AZIMUTH + turn * (start + 0.7 * slow[:, 0])
        return heading, spot + 100.0 * slow[:, 1:]
    heading = 180.0 * start + sense * 360.0 * t / _ROUND[gait] + 14.0 * slow[:, 0]
    ahead = np.deg2rad(heading)
    # Going round: the place is a quarter turn behind the heading.
    around = sense * np.stack([np.sin(ahead), -np.cos(ahead)], axis=1)
    return heading, _RADIUS[gait] * (1 + 0.08 * slow[:, 1:2]) * around
