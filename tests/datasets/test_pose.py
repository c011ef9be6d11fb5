"""Pose data are what was asked for, the same every time, from wherever they come."""

import json
from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from overcover._linalg import squared_distances
from overcover.datasets import PoseData, make_pose
from overcover.datasets.pose import _cache, _make
from overcover.datasets.pose._scene import PRESETS, Scene, choose_settings

ARRAYS = ("X_train", "Y_train", "X_test", "Y_test")


def small(preset="humaneva", **options):
    """A data set that is made in a moment."""
    least = {"human36m": 168}.get(preset, 120)
    return make_pose(preset, **{"n_frames": least, "cache": False} | options)


def check_equal(data, other):
    for name in ARRAYS:
        assert_array_equal(getattr(data, name), getattr(other, name))
    for rows, rows_again in zip(data.rows_train, other.rows_train):
        assert_array_equal(rows, rows_again)


# -- shapes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("preset", "n_features", "n_outputs"),
    [("humaneva", 810, 60), ("poser", 100, 54), ("human36m", 3060, 60)],
)
def test_presets_have_the_papers_shapes(preset, n_features, n_outputs):
    data = small(preset)
    assert data.X_train.shape[1] == data.X_test.shape[1] == n_features
    assert data.Y_train.shape[1] == data.Y_test.shape[1] == n_outputs
    for name in ARRAYS:
        array = getattr(data, name)
        assert array.dtype == np.float32
        assert np.isfinite(array).all()
        assert array.std() > 0


@pytest.mark.parametrize(
    ("preset", "n_train", "n_test"),
    [
        ("humaneva", 4800, 4800),
        ("poser", 1927, 418),
        ("human36m", 335_000, 165_000),
    ],
)
def test_presets_have_the_papers_sizes(preset, n_train, n_test):
    rows = Scene(choose_settings(preset, 0, {})).rows
    assert len(rows["train"].frame) == n_train
    assert len(rows["test"].frame) == n_test


@pytest.mark.parametrize("preset", PRESETS)
def test_every_frame_is_in_one_part(preset):
    data = small(preset, n_frames=331, n_subjects=4)
    found = [
        (s, f)
        for rows in (data.rows_train, data.rows_test)
        for s, f in zip(rows.sequence, rows.frame)
    ]
    assert len(found) == len(set(found)) == 331
    assert len(set(data.rows_train.subject)) == 4
    pairs = set(zip(data.rows_train.sequence, data.rows_train.motion))
    assert len(pairs) == len(data.scene.sequences)


def test_halves_of_sequences_are_held_out_by_turns():
    data = small()
    for s in range(20):
        train = data.rows_train.frame[data.rows_train.sequence == s]
        test = data.rows_test.frame[data.rows_test.sequence == s]
        assert len(train) == len(test) == 3
        assert (train.max() < test.min()) == (s % 2 == 0)


def test_poser_holds_out_short_blocks():
    data = small("poser", n_frames=2345, n_subjects=4, features="hog")
    sequence, frame = data.rows_test.sequence, data.rows_test.frame
    starts = (np.diff(frame) != 1) | (np.diff(sequence) != 0)
    assert starts.sum() + 1 == 24 * 3
    assert np.bincount(np.cumsum(starts)).max() < 10


def test_options_take_the_place_of_the_presets():
    data = small(
        n_frames=60,
        n_subjects=5,
        n_cameras=2,
        motions=["sit", "walk"],
        features="bosc",
        outputs="angles",
        occlusion=0.2,
        segmentation_noise=0,
    )
    assert data.X_train.shape == (30, 200)
    assert data.Y_train.shape == (30, 54)
    assert set(data.rows_test.motion) == {"walk", "sit"}
    assert set(data.rows_test.subject) == set(range(5))
    assert len(data.cameras) == 2
    assert data.settings["occlusion"] == 0.2
    assert np.all(np.abs(data.Y_train) <= 180)


# -- truths about the content ----------------------------------------------------------


def test_outputs_are_the_joints_relative_to_the_pelvis():
    data = small()
    joints = data.joints([3, 0, 59], part="test")
    relative = joints - joints[:, :1]
    assert_allclose(data.skeletons(data.Y_test[[3, 0, 59]]), relative, atol=1e-3)
    assert data.joint_names[0] == "pelvis"


def test_angles_of_a_subject_give_its_joints():
    data = small("poser")
    rows = np.flatnonzero(data.rows_train.subject == 2)[:5]
    joints = data.joints(rows)
    skeletons = data.skeletons(data.Y_train[rows], subject=2)
    assert_allclose(skeletons, joints - joints[:, :1], atol=1e-2)


def test_bones_are_as_long_in_every_frame_of_a_subject():
    data = small()
    ends = data.skeletons(data.Y_train)[:, np.array(data.bones)]
    lengths = np.linalg.norm(ends[:, :, 1] - ends[:, :, 0], axis=2)
    for subject in range(4):
        own = lengths[data.rows_train.subject == subject]
        assert_allclose(own, np.broadcast_to(own[0], own.shape), atol=0.01)


def test_features_are_those_of_the_silhouettes():
    data = small()
    images = data.silhouettes([5, 2], part="test")
    assert images.shape == (2, 3, 96, 96)
    assert set(np.unique(images)) == {0, 1}
    features = _make.hog(images.reshape(-1, 96, 96), 6, 5).reshape(2, -1)
    assert_array_equal(features, data.X_test[[5, 2]])


def test_rows_can_be_chosen_like_rows_of_an_array():
    data = small()
    everything = data.joints(slice(None))
    assert len(everything) == 60
    assert_array_equal(data.joints(7), everything[7:8])
    assert_array_equal(data.joints([9, 4, 9]), everything[[9, 4, 9]])
    assert_array_equal(data.joints(data.rows_train.subject == 1), everything[15:30])
    assert data.silhouettes([]).shape == (0, 3, 96, 96)
    with pytest.raises(IndexError):
        data.joints([60])


def nearest_others(X, sequence):
    """For each row the nearest of another sequence, and its distance."""
    dist_sq = squared_distances(X - X.mean(axis=0), X - X.mean(axis=0))
    dist_sq[sequence[:, None] == sequence] = np.inf
    return dist_sq.argmin(axis=1), np.sqrt(dist_sq.min(axis=1))


def test_silhouettes_of_one_camera_are_ambiguous():
    """Some look almost alike, nearer than most neighbours, and are far apart."""
    data = small(n_frames=1600, n_cameras=1, motions=["walk"], segmentation_noise=0)
    X, Y = data.X_train, data.skeletons(data.Y_train)
    nearest, distances = nearest_others(X, data.rows_train.sequence)
    apart = np.linalg.norm(Y - Y[nearest], axis=2).mean(axis=1)
    alike = distances < np.median(distances)
    assert np.mean(apart[alike] > 150) > 0.05
    # Left and right are what is mistaken: exchanged, many of those poses are close.
    names = data.joint_names
    swap = {"left": "right", "right": "left"}
    order = [
        names.index("_".join(swap.get(word, word) for word in name.split("_")))
        for name in names
    ]
    mistaken = alike & (apart > 150)
    exchanged = np.linalg.norm(Y[:, order] - Y[nearest], axis=2).mean(axis=1)
    assert np.mean(exchanged[mistaken] < apart[mistaken]) > 0.5


def test_more_cameras_resolve_ambiguity():
    mistaken = []
    for n_cameras in (1, 3):
        data = small(n_frames=800, n_cameras=n_cameras, motions="walk")
        nearest, _ = nearest_others(data.X_train, data.rows_train.sequence)
        Y = data.skeletons(data.Y_train)
        apart = np.linalg.norm(Y - Y[nearest], axis=2).mean(axis=1)
        mistaken.append(np.mean(apart > 150))
    assert mistaken[1] < 0.7 * mistaken[0]


# -- the same every time ---------------------------------------------------------------


@pytest.mark.parametrize("preset", ["humaneva", "poser"])
def test_data_do_not_depend_on_workers_or_chunks(preset, monkeypatch):
    monkeypatch.setattr("overcover.datasets.pose._features.MOST_CONTEXTS", 2000)
    options = {"segmentation_noise": 0.5, "occlusion": 0.3}
    data = small(preset, **options)
    check_equal(data, small(preset, **options))
    check_equal(data, small(preset, n_jobs=2, **options))
    monkeypatch.setattr(_make, "CHUNK", 7)
    check_equal(data, small(preset, n_jobs=2, **options))


def test_another_number_makes_other_people():
    assert np.abs(small().Y_train - small(random_state=1).Y_train).mean() > 20


def test_a_motion_is_the_same_whatever_is_made_beside_it():
    everything, alone = small().scene, small(n_frames=24, motions="box").scene
    frames = np.arange(6)
    for s, sequence in enumerate(everything.sequences):
        if sequence.motion == "box":
            other = sequence.subject
            assert_array_equal(
                everything.perform(s, frames)[1], alone.perform(other, frames)[1]
            )
            assert_array_equal(
                everything.silhouettes(s, frames), alone.silhouettes(other, frames)
            )


def test_fewer_frames_thin_the_same_sequences():
    many, few = small(n_frames=240), small(n_frames=120)
    first = many.joints(many.rows_train.sequence == 0)
    assert_allclose(first[::2], few.joints(few.rows_train.sequence == 0), atol=1e-9)


# -- on disk ---------------------------------------------------------------------------


@pytest.fixture
def fills(monkeypatch):
    """How often data were made."""
    made = []
    blocks = _make.row_blocks

    def counted(*args):
        made.append(args)
        return blocks(*args)

    monkeypatch.setattr(_make, "row_blocks", counted)
    return made


def test_a_cached_answer_equals_a_fresh_one(tmp_path, fills):
    fresh = small()
    first = small(cache=True, data_home=tmp_path)
    again = small(cache=True, data_home=tmp_path, n_jobs=2)
    assert len(fills) == 2
    check_equal(fresh, first)
    check_equal(fresh, again)
    assert type(again.X_train) is np.ndarray
    assert [p.name for p in tmp_path.iterdir()] == ["overcover"]


def test_what_data_depend_on_is_part_of_the_key(tmp_path, fills, monkeypatch):
    options = {"cache": True, "data_home": tmp_path}
    small(**options)
    small(**options, random_state=1)
    small(**options, segmentation_noise=0.1)
    small(**options, motions=["walk", "box"])
    small(**options, motions=("box", "walk"))
    assert len(fills) == 4
    monkeypatch.setattr(_make, "VERSION", -1)
    small(**options)
    assert len(fills) == 5
    kept = [json.loads(p.read_text()) for p in tmp_path.rglob("settings.json")]
    assert {made["version"] for made in kept} >= {-1, 1}


def test_memory_mapped_data_equal_those_in_memory(tmp_path, fills):
    mapped = small(folder=tmp_path / "new" / "folder")
    check_equal(mapped, small())
    for name in ARRAYS:
        assert isinstance(getattr(mapped, name), np.memmap)
        assert not getattr(mapped, name).flags.writeable
    assert len(fills) == 2
    check_equal(mapped, small(folder=tmp_path / "new" / "folder", cache=True))
    assert len(fills) == 2
    check_equal(mapped, small(folder=tmp_path / "new" / "folder"))
    assert len(fills) == 3
    assert len(list((tmp_path / "new" / "folder").iterdir())) == 1


def test_nothing_half_written_is_left_or_taken(tmp_path, monkeypatch):
    def fail(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(_make, "row_blocks", fail)
        with pytest.raises(KeyboardInterrupt):
            small(folder=tmp_path)
    assert not list(tmp_path.iterdir())
    check_equal(small(folder=tmp_path), small())


def test_a_damaged_file_is_named(tmp_path):
    small(folder=tmp_path)
    file = next(tmp_path.rglob("X_test.npy"))
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(OSError, match=r"X_test\.npy.*Delete the folder"):
        small(folder=tmp_path, cache=True)
    check_equal(small(folder=tmp_path), small())


def test_a_full_disk_and_a_place_that_is_a_file_are_said(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="cannot be written"):
        small(folder=tmp_path / "file" / "below")
    monkeypatch.setattr(_cache, "RESERVE", 2**62)
    with pytest.raises(OSError, match="lower n_frames"):
        small(folder=tmp_path)
    assert not list(tmp_path.glob(".pose*"))


# -- wrong arguments -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"preset": "cmu"}, "preset='cmu' is not known"),
        ({"n_frames": 39}, "n_frames=39 must be an integer >= 40"),
        ({"n_frames": 1e3}, "n_frames=1000.0 must be"),
        ({"n_subjects": 0}, "n_subjects=0"),
        ({"n_cameras": 1.5}, "n_cameras=1.5"),
        ({"motions": ["walk", "fly"]}, "'fly' is not known. Choose one of 'walk'"),
        ({"motions": []}, "number of motions=0"),
        ({"features": "sift"}, "Choose one of 'hog', 'bosc'"),
        ({"outputs": "mesh"}, "Choose one of 'positions', 'angles'"),
        ({"occlusion": 1.5}, "occlusion=1.5 must lie between 0 and 1"),
        ({"occlusion": "much"}, "occlusion='much'"),
        ({"segmentation_noise": -0.1}, "between 0 and 2"),
        ({"segmentation_noise": np.nan}, "between 0 and 2"),
        ({"random_state": None}, "random_state=None must be an integer"),
        ({"random_state": -1}, "random_state=-1"),
    ],
)
def test_wrong_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        small(**options)


def test_wrong_parts_and_poses_are_refused():
    data = small()
    for method in (data.joints, data.silhouettes):
        with pytest.raises(ValueError, match="part='all' is not known"):
            method([0], part="all")
    with pytest.raises(ValueError, match="rows of 60 outputs"):
        data.skeletons(np.zeros((2, 54)))


def test_data_cannot_be_reassigned():
    data = small()
    assert isinstance(data, PoseData)
    with pytest.raises(FrozenInstanceError):
        data.X_train = None
