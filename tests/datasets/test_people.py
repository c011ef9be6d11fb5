"""Bodies keep their bones, joints their limits, motions their manners."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from overcover.datasets.pose._motion import (
    GAITS,
    MOTIONS,
    make_subject,
    perform,
    wander,
)
from overcover.datasets.pose._skeleton import (
    BONES,
    JOINT_NAMES,
    JOINTS,
    LIMITS,
    J,
    P,
    make_bodies,
    pose_body,
    rotations,
)

SIDES = ("left", "right")
# Every motion for 20 seconds, 50 frames a second.
TIMES = np.arange(0, 20, 0.02)


@pytest.fixture(scope="module")
def subjects():
    rng = np.random.default_rng(3)
    return [make_subject(rng, *body) for body in zip(*make_bodies(rng, 4))]


@pytest.fixture(scope="module")
def performances(subjects):
    """(angles, joints) by motion, by several subjects in turn."""
    return {
        motion: perform(subjects[m % 4], motion, np.random.default_rng(m), TIMES)
        for m, motion in enumerate(MOTIONS)
    }


def bone_lengths(joints):
    ends = joints[:, np.array(BONES)]
    return np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=-1)


def test_there_are_18_joints_with_angles_and_21_points():
    assert len(JOINTS) == 18
    assert len(JOINT_NAMES) == 21
    assert JOINT_NAMES[0] == "pelvis"
    assert sorted(end for _, end in BONES) == list(range(1, 21))


def test_rotations_are_the_product_of_turns_about_the_axes():
    flexion, abduction, twist = np.deg2rad([20.0, -35.0, 50.0])

    def turn(angle, i, j):
        R = np.eye(3)
        R[i, i] = R[j, j] = np.cos(angle)
        R[j, i], R[i, j] = np.sin(angle), -np.sin(angle)
        return R

    expected = turn(abduction, 1, 2) @ turn(flexion, 2, 0) @ turn(twist, 0, 1)
    assert_allclose(rotations(np.array([20.0, -35.0, 50.0])), expected, atol=1e-12)


def test_a_body_at_rest_stands_upright(subjects):
    body = pose_body(np.zeros((1, 18, 3)), subjects[0].offsets)[0]
    top, ankle = body[P["head"], 2], body[P["left_ankle"], 2]
    assert 0.85 < (top - ankle) / subjects[0].height < 1.0
    assert body[P["left_hip"], 1] > 0 > body[P["right_hip"], 1]
    assert body[P["left_toe"], 0] > body[P["left_ankle"], 0]


def test_exchanging_left_and_right_mirrors_a_pose(subjects):
    angles = np.random.default_rng(0).uniform(-40, 40, (5, 18, 3))
    angles[:, [J["pelvis"], J["spine"], J["chest"], J["neck"]], 1:] = 0.0
    swapped = angles.copy()
    for joint, j in J.items():
        if joint.startswith("left"):
            k = J[joint.replace("left", "right")]
            swapped[:, [j, k]] = angles[:, [k, j]]
    body = pose_body(angles, subjects[0].offsets)
    mirrored = pose_body(swapped, subjects[0].offsets) * [1, -1, 1]
    for point, p in P.items():
        other = (
            point.replace("left", "x").replace("right", "left").replace("x", "right")
        )
        assert_allclose(mirrored[:, P[other]], body[:, p], atol=1e-9)


def test_the_heading_turns_the_whole_body(subjects):
    angles = np.random.default_rng(0).uniform(-20, 20, (1, 18, 3))
    turned = angles.copy()
    turned[:, 0, 2] += 90.0
    body = pose_body(angles, subjects[0].offsets)
    quarter = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]])
    assert_allclose(pose_body(turned, subjects[0].offsets), body @ quarter.T, atol=1e-9)


def test_limbs_bend_the_way_they_do(subjects):
    angles = np.zeros((1, 18, 3))
    for part in ("knee", "elbow", "shoulder"):
        angles[0, J[f"left_{part}"], 0] = 40.0
    angles[0, J["right_shoulder"], 1] = 90.0
    body = pose_body(angles, subjects[0].offsets)[0]
    rest = pose_body(np.zeros((1, 18, 3)), subjects[0].offsets)[0]
    assert body[P["left_ankle"], 0] < rest[P["left_ankle"], 0] - 100
    assert body[P["left_wrist"], 0] > rest[P["left_wrist"], 0] + 100
    assert body[P["right_wrist"], 1] < rest[P["right_wrist"], 1] - 300


def test_subjects_differ_in_height_and_proportion():
    heights, offsets = make_bodies(np.random.default_rng(0), 4)
    assert np.ptp(heights) > 150
    lengths = np.linalg.norm(offsets, axis=2)[:, 1:] / heights[:, None]
    assert np.all(np.ptp(lengths, axis=0) > 0)
    assert np.all(np.ptp(lengths, axis=0) < 0.1 * lengths.mean(axis=0))


@pytest.mark.parametrize("motion", MOTIONS)
def test_bones_keep_the_subjects_lengths(subjects, performances, motion):
    offsets = subjects[MOTIONS.index(motion) % 4].offsets
    lengths = bone_lengths(performances[motion][1])
    at_rest = bone_lengths(pose_body(np.zeros((1, 18, 3)), offsets))
    assert_allclose(lengths, np.broadcast_to(at_rest, lengths.shape), rtol=1e-9)


@pytest.mark.parametrize("motion", MOTIONS)
def test_joints_keep_their_limits(performances, motion):
    angles = performances[motion][0]
    assert np.all(angles >= LIMITS[0])
    assert np.all(angles <= LIMITS[1])
    for side in SIDES:
        assert angles[:, J[f"{side}_knee"], 0].min() >= 0
        assert angles[:, J[f"{side}_elbow"], 0].min() >= 0


@pytest.mark.parametrize("motion", MOTIONS)
def test_motions_are_smooth(performances, motion):
    """No angle turns faster than a boxer's elbow, some 1,500 degrees per second."""
    angles = performances[motion][0]
    steps = (np.diff(angles, axis=0) + 180.0) % 360.0 - 180.0
    assert np.abs(steps).max() < 0.02 * 1500
    assert np.abs(steps).max() > 0.02 * 20


@pytest.mark.parametrize("motion", MOTIONS)
def test_somebody_always_stands_on_the_floor(performances, motion):
    joints = performances[motion][1]
    lowest = joints[..., 2].min(axis=1)
    assert np.all((lowest >= 0) & (lowest < 120))


@pytest.mark.parametrize("motion", GAITS)
def test_feet_alternate_and_arms_swing_against_the_legs(performances, motion):
    angles = performances[motion][0]
    left, right = (angles[:, J[f"{side}_hip"], 0] for side in SIDES)
    assert np.corrcoef(left, right)[0, 1] < -0.7
    for leg, side in ((left, "left"), (right, "right")):
        assert np.corrcoef(leg, angles[:, J[f"{side}_shoulder"], 0])[0, 1] < -0.5


def test_who_walks_goes_ahead_and_round(performances):
    angles, joints = performances["walk"]
    way = np.diff(joints[:, 0, :2], axis=0)
    heading = np.deg2rad(angles[1:, 0, 2])
    ahead = np.stack([np.cos(heading), np.sin(heading)], axis=1)
    along = np.sum(way * ahead, axis=1) / np.linalg.norm(way, axis=1)
    assert np.median(along) > 0.9
    assert np.ptp(angles[:, 0, 2]) > 300


def test_who_sits_sits(performances):
    joints = performances["sit"][1]
    height = joints[:, 0, 2]
    assert height.min() < 0.68 * height.max()
    seated = joints[height < 0.7 * height.max()]
    thighs = seated[:, P["left_knee"]] - seated[:, P["left_hip"]]
    level = np.linalg.norm(thighs[:, :2], axis=1) / np.linalg.norm(thighs, axis=1)
    assert np.median(level) > 0.8


def test_a_frame_depends_on_its_time_alone(subjects):
    for motion in MOTIONS:
        every = perform(subjects[0], motion, np.random.default_rng(0), TIMES)
        some = perform(subjects[0], motion, np.random.default_rng(0), TIMES[7::30])
        for all_frames, few in zip(every, some):
            assert_array_equal(all_frames[7::30], few)


def test_performances_of_a_motion_differ(subjects):
    first, again = (
        perform(subjects[0], "walk", np.random.default_rng(seed), TIMES)[0]
        for seed in (0, 1)
    )
    assert np.abs(first - again).mean() > 2


def test_slow_noise_is_smooth_and_of_unit_size():
    values = wander(np.random.default_rng(0), 100, np.arange(0, 1000, 0.1))
    assert_allclose(values.std(axis=0).mean(), 1.0, atol=0.02)
    assert np.abs(np.diff(values, axis=0)).max() < 0.1 * 2 * np.pi * 0.25 * 3.2
