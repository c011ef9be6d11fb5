"""Cameras project, silhouettes hold the body, features see shape alone."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from overcover.datasets.pose._camera import Camera, make_cameras
from overcover.datasets.pose._features import (
    bag_of_shape_contexts,
    hog,
    learn_codebook,
    shape_contexts,
)
from overcover.datasets.pose._motion import MOTIONS, make_subject, perform
from overcover.datasets.pose._silhouette import (
    SIZE,
    draw_silhouettes,
    fit_to_image,
    image_seeds,
    limbs_seen,
)
from overcover.datasets.pose._skeleton import make_bodies


@pytest.fixture(scope="module")
def frames():
    """Joints of all motions, and their subject."""
    rng = np.random.default_rng(0)
    heights, offsets = make_bodies(rng, 1)
    subject = make_subject(rng, heights[0], offsets[0])
    times = np.linspace(0, 12, 15)
    joints = [perform(subject, motion, rng, times)[1] for motion in MOTIONS]
    return np.concatenate(joints), subject


def draw(frames, occlusion=0.0, noise=0.0, camera=0, seed=0):
    joints, subject = frames
    camera = make_cameras(3)[camera]
    limbs = limbs_seen(joints, camera, subject.height, subject.girth)
    seeds = image_seeds([seed, camera.focal > 0], np.arange(len(joints)))
    return draw_silhouettes(fit_to_image(limbs), seeds, occlusion, noise)


# -- cameras ---------------------------------------------------------------------------


def test_a_point_is_seen_where_a_hand_computes_it():
    """From x = 4 m, looking back along x: y is to the right, z is up."""
    axes = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, -1.0], [-1.0, 0.0, 0.0]])
    camera = Camera(np.array([4000.0, 0.0, 0.0]), axes, 800.0)
    pixels, depth = camera.project(np.array([2000.0, 500.0, 250.0]))
    assert depth == 2000.0
    assert_allclose(pixels, [200.0, -100.0])


def test_cameras_look_at_the_scene_from_all_around():
    cameras = make_cameras(4)
    middle = np.array([0.0, 0.0, 950.0])
    for camera in cameras:
        assert_allclose(camera.axes @ camera.axes.T, np.eye(3), atol=1e-12)
        assert_allclose(np.linalg.det(camera.axes), 1.0)
        assert_allclose(camera.project(middle)[0], 0.0, atol=1e-9)
        # What is higher is seen higher, that is, less far down.
        assert camera.project(middle + [0, 0, 300.0])[0][1] < -10
    centers = np.array([camera.center for camera in cameras])
    assert_allclose(centers[:, :2].sum(axis=0), 0.0, atol=1e-6)


# -- silhouettes -----------------------------------------------------------------------


def test_silhouettes_hold_all_joints(frames):
    joints, subject = frames
    for camera in make_cameras(3):
        limbs = limbs_seen(joints, camera, subject.height, subject.girth)
        fitted = fit_to_image(limbs)
        images = draw_silhouettes(fitted, np.zeros(len(joints), np.uint64), 0.0, 0.0)
        pixels = camera.project(joints)[0]
        # The same move and scale as the limbs had.
        scale = fitted[:, :1, 0, 2] / limbs[:, :1, 0, 2]
        shift = fitted[:, 0, 0, :2] - scale * limbs[:, 0, 0, :2]
        places = scale[..., None] * pixels + shift[:, None]
        x, y = np.floor(places).astype(int).transpose(2, 0, 1)
        inside = images[np.arange(len(joints))[:, None], y, x]
        # The head's point is its very top, where a pixel may be half covered.
        assert inside[:, np.arange(21) != 4].all()


def test_the_person_fills_the_image_and_stays_inside(frames):
    images = draw(frames)
    rows, columns = images.any(axis=2), images.any(axis=1)
    longer = np.maximum(rows.sum(axis=1), columns.sum(axis=1))
    assert np.all((longer >= SIZE - 18) & (longer <= SIZE - 15))
    for side in (rows[:, 0], rows[:, -1], columns[:, 0], columns[:, -1]):
        assert not side.any()


def test_a_capsule_covers_what_lies_within_its_radius():
    limb = np.array([[[[20.0, 30.0, 4.0], [60.0, 50.0, 9.0]]]])
    image = draw_silhouettes(limb, np.zeros(1, np.uint64), 0.0, 0.0)[0]
    a, b = np.array([20.0, 30.0]), np.array([60.0, 50.0])
    for y, x in np.ndindex(SIZE, SIZE):
        p = np.array([x + 0.5, y + 0.5])
        s = np.clip((p - a) @ (b - a) / ((b - a) @ (b - a)), 0, 1)
        assert image[y, x] == (np.linalg.norm(p - a - s * (b - a)) <= 4 + 5 * s)


def test_damage_grows_with_noise_and_is_the_same_for_the_same_seed(frames):
    clean = draw(frames)
    share = [np.mean(clean != draw(frames, noise=noise)) for noise in (0.0, 0.3, 1.0)]
    assert share[0] == 0
    assert 0.0005 < share[1] < share[2] < 0.1
    assert_array_equal(draw(frames, 0.5, 0.5), draw(frames, 0.5, 0.5))
    assert (draw(frames, 0.5, 0.5, seed=1) != draw(frames, 0.5, 0.5)).any()


def test_occlusion_hides_and_adds_nothing(frames):
    clean, hidden = draw(frames), draw(frames, occlusion=1.0)
    assert np.all(hidden <= clean)
    assert np.mean(hidden.sum(axis=(1, 2)) < clean.sum(axis=(1, 2))) > 0.7
    some = draw(frames, occlusion=0.3)
    hurt = (some != clean).any(axis=(1, 2)).mean()
    assert 0.05 < hurt < 0.6


def test_seeds_of_images_are_all_different():
    keys = [[0, s, c] for s in range(5) for c in range(3)]
    seeds = np.concatenate([image_seeds(key, np.arange(500)) for key in keys])
    assert len(np.unique(seeds)) == len(seeds)


# -- features --------------------------------------------------------------------------


def slow_hog(image, n_rows, n_columns):
    """One pixel at a time; slow and obviously right."""
    image = np.asarray(image, dtype=float)
    weights = np.outer([1, 4, 6, 4, 1], [1, 4, 6, 4, 1]) / 256
    padded = np.pad(image, 2)
    height, width = image.shape
    smooth = np.zeros_like(image)
    for y, x in np.ndindex(height, width):
        smooth[y, x] = np.sum(weights * padded[y : y + 5, x : x + 5])
    ys, xs = np.nonzero(image)
    top, bottom, left, right = ys.min(), ys.max() + 1, xs.min(), xs.max() + 1
    histogram = np.zeros((n_rows, n_columns, 9))
    for y in range(1, height - 1):
        for x in range(1, width - 1):
            gx = smooth[y, x + 1] - smooth[y, x - 1]
            gy = smooth[y + 1, x] - smooth[y - 1, x]
            size = np.hypot(gx, gy)
            if size == 0:
                continue
            row = int(np.clip((y - top) / (bottom - top), 0, 0.9999) * n_rows)
            column = int(np.clip((x - left) / (right - left), 0, 0.9999) * n_columns)
            degrees = np.rad2deg(np.arctan2(gy, gx)) % 180
            for k in range(9):
                away = abs((degrees - (20 * k + 10) + 90) % 180 - 90)
                histogram[row, column, k] += size * max(0.0, 1 - away / 20)
    return histogram.ravel() / np.linalg.norm(histogram)


def test_hog_agrees_with_the_slow_version(frames):
    images = np.zeros((2, 24, 20))
    images[0, 5:17, 4:13] = np.random.default_rng(0).uniform(0.1, 1, (12, 9))
    images[1, 6:18, 7:12] = 1.0
    for image, features in zip(images, hog(images, 3, 2)):
        assert_allclose(features, slow_hog(image, 3, 2), atol=1e-6)


@pytest.fixture(scope="module")
def codebook(frames):
    return learn_codebook(draw(frames), 0)


@pytest.fixture(params=["hog", "bosc"])
def encode(request, codebook):
    if request.param == "hog":
        return lambda images: hog(images, 6, 5)
    return lambda images: bag_of_shape_contexts(images, *codebook)


def test_neither_place_nor_brightness_matters(frames, encode):
    images = draw(frames)
    features = encode(images)
    assert_allclose(encode(np.roll(images, (3, -2), axis=(1, 2))), features, atol=1e-6)
    assert_allclose(encode(images * np.uint8(200)), features, atol=1e-6)


def test_shape_does_matter(frames, encode):
    features = encode(draw(frames))
    steps = np.linalg.norm(features[1:] - features[:-1], axis=1)
    assert steps.min() > 0
    assert np.median(steps) > 0.03


def test_an_empty_image_has_features_of_zero(encode):
    assert not encode(np.zeros((1, SIZE, SIZE), np.uint8)).any()


def test_contexts_count_the_other_points():
    image = np.zeros((SIZE, SIZE), np.uint8)
    image[20:60, 30:50] = 1
    contexts = shape_contexts(image)
    assert contexts.shape == (100, 60)
    assert np.all(contexts >= 0)
    assert_allclose(contexts.sum(axis=1), 1.0, atol=0.2)
    # Of a rectangle's upper left corner, all others lie to the right or below.
    directions = contexts[0].reshape(5, 12).sum(axis=0)
    assert_allclose(directions[6:10].sum(), directions.sum())


def test_bags_are_mean_votes(frames, codebook):
    words, width = codebook
    images = draw(frames)[:3]
    for image, bag in zip(images, bag_of_shape_contexts(images, words, width)):
        contexts = shape_contexts(image)
        dist_sq = ((contexts[:, None] - words) ** 2).sum(axis=2)
        votes = np.exp(-0.5 * dist_sq / width**2)
        votes /= votes.sum(axis=1, keepdims=True)
        assert_allclose(bag, votes.mean(axis=0), atol=1e-6)


def test_a_codebook_needs_border_points():
    with pytest.raises(ValueError, match="Raise n_frames"):
        learn_codebook(np.zeros((2, SIZE, SIZE), np.uint8), 0)
