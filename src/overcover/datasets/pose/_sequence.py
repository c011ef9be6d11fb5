"""Sequences: a subject performs a motion, in a style, and everything drifts slowly."""

from typing import NamedTuple

import numpy as np

from ._camera import FIRST_AZIMUTH
from ._motion import GAITS, KEYED, gait_angles, keyed_angles, wander
from ._skeleton import JOINTS, LIMITS, SOLE, J, P, pose_body, triples

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
    """A person with this body."""
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
