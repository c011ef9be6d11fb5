"""Every form of a set of human motion gives the same joints; bad files say why not."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat

from overcover.datasets import file_checksum, load_human36m, load_humaneva
from overcover.datasets._mocap import MOVING

cdfwrite = pytest.importorskip("cdflib.cdfwrite")
h5py = pytest.importorskip("h5py")


def motion(seed, n_frames=4, n_joints=32):
    """Joints of a person in mm."""
    rng = np.random.default_rng(seed)
    body = rng.uniform(-500, 500, (n_joints, 3)) + [0, 0, 900]
    return body + rng.normal(scale=30, size=(n_frames, n_joints, 3))


@pytest.fixture(scope="module")
def recordings():
    """Subject to action to joints in mm, named as Human3.6M names its files."""
    return {
        "S1": {
            "Walking": motion(0),
            "Walking 1": motion(1, 3),
            "TakingPhoto": motion(2),
        },
        "S9": {"Eating": motion(3, 5)},
        "S11": {"Directions": motion(4), "Directions 1": motion(5)},
    }


USUAL = {"TakingPhoto": "Photo"}


def write_archive(root, recordings, name="data_3d_h36m.npz"):
    in_metres = {
        subject: {USUAL.get(a, a): joints / 1000 for a, joints in actions.items()}
        for subject, actions in recordings.items()
    }
    np.savez_compressed(root / name, positions_3d=in_metres)
    return root / name


def write_files(root, recordings, folder, suffix, write):
    for subject, actions in recordings.items():
        (root / subject / folder).mkdir(parents=True)
        for action, joints in actions.items():
            write(root / subject / folder / f"{action}{suffix}", joints)
    return root


def write_cdf(path, joints):
    table = joints.reshape(1, len(joints), -1)
    file = cdfwrite.CDF(str(path))
    spec = {"Variable": "Pose", "Data_Type": 45, "Num_Elements": 1, "Rec_Vary": True}
    file.write_var(spec | {"Dim_Sizes": list(table.shape[1:])}, var_data=table)
    file.close()


def write_h5(path, joints):
    with h5py.File(path, "w") as file:
        file["3D_positions"] = joints.reshape(len(joints), -1).T


def write_cell(path, joints):
    cell = np.empty((1, 1), dtype=object)
    cell[0, 0] = joints.reshape(len(joints), -1)
    savemat(path, {"data": cell})


def write_mat73(path, joints):
    """As MATLAB does: axes reversed, a cell as a reference; h5py can read it."""
    with h5py.File(path, "w", userblock_size=512) as file:
        group = file.create_group("#refs#")
        group["a"] = joints.reshape(len(joints), -1).T
        cell = file.create_dataset("data", (1, 1), dtype=h5py.ref_dtype)
        cell[0, 0] = group["a"].ref
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")


FORMS = {
    "npz": write_archive,
    "cdf": lambda root, r: write_files(
        root, r, "MyPoseFeatures/D3_Positions", ".cdf", write_cdf
    ),
    "flat cdf": lambda root, r: write_files(root, r, ".", ".cdf", write_cdf),
    "cdf.mat": lambda root, r: write_files(
        root, r, "MyPoseFeatures/D3_Positions", ".cdf.mat", write_cell
    ),
    "mat 7.3": lambda root, r: write_files(
        root, r, "MyPoseFeatures/D3_Positions", ".cdf.mat", write_mat73
    ),
    "h5": lambda root, r: write_files(root, r, "MyPoses/3D_positions", ".h5", write_h5),
}


@pytest.fixture(scope="module")
def archive(tmp_path_factory, recordings):
    return write_archive(tmp_path_factory.mktemp("archive"), recordings)


# -- Human3.6M -------------------------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_joints_that_were_written(tmp_path, recordings, form):
    found = load_human36m(
        FORMS[form](tmp_path, recordings), joints="all", root_relative=False
    )
    order = [("S1", "TakingPhoto"), ("S1", "Walking"), ("S1", "Walking 1")]
    order += [("S9", "Eating"), ("S11", "Directions 1")]
    parts = [recordings[subject][action] for subject, action in order]
    assert_allclose(found.joints, np.concatenate(parts))
    lengths = [len(p) for p in parts]
    assert_array_equal(found.subject, np.repeat([s for s, _ in order], lengths))
    usual = [USUAL.get(a, a) for _, a in order]
    assert_array_equal(found.action, np.repeat(usual, lengths))
    assert_array_equal(found.frame, np.concatenate([np.arange(n) for n in lengths]))


def test_positions_are_told_from_angles_and_views(tmp_path, recordings):
    root = FORMS["cdf"](tmp_path, recordings)
    for folder, name in (
        ("D3_Angles", "Walking"),
        ("D3_Positions_mono", "Walking.54138969"),
        ("D3_Positions", "Walking.54138969"),
    ):
        (root / "S1/MyPoseFeatures" / folder).mkdir(exist_ok=True)
        write_cdf(root / "S1/MyPoseFeatures" / folder / f"{name}.cdf", motion(9, 2, 26))
    found = load_human36m(root, subjects=["S1"], joints="all", root_relative=False)
    assert len(found.joints) == 11
    only = {"S1": {"Walking": motion(9, 2, 26)}}
    angles = write_files(tmp_path / "angles", only, "D3_Angles", ".cdf", write_cdf)
    with pytest.raises(ValueError, match="holds 26 joints"):
        load_human36m(angles)


def test_the_joints_that_move_are_the_default(archive):
    everything = load_human36m(archive, joints="all")
    found = load_human36m(archive)
    assert found.joints.shape[1] == len(found.joint_names) == 17
    assert_array_equal(found.joints, everything.joints[:, list(MOVING)])
    assert [everything.joint_names[j] for j in MOVING] == found.joint_names


def test_the_hip_is_the_origin_and_the_target_is_the_joints_in_a_row(archive):
    absolute = load_human36m(archive, root_relative=False)
    found = load_human36m(archive)
    assert_array_equal(found.joints[:, 0], 0)
    moved = found.joints + absolute.joints[:, :1]
    assert_allclose(moved, absolute.joints)
    assert_array_equal(found.target.reshape(found.joints.shape), found.joints)


def test_chosen_sequences_and_frames_are_rows_of_the_whole(archive):
    whole = load_human36m(archive)
    some = load_human36m(archive, subjects=["S1", "S9"], actions=["Walking"], every=2)
    rows = (whole.subject == "S1") & np.isin(whole.action, ["Walking", "Walking 1"])
    rows &= whole.frame % 2 == 0
    assert_array_equal(some.joints, whole.joints[rows])
    assert_array_equal(some.frame, [0, 2, 0, 2])
    assert set(load_human36m(archive, actions=["Walking 1"]).action) == {"Walking 1"}


@pytest.mark.parametrize("as_file", [None, ".npy", ".npz"])
def test_features_follow_their_frames(archive, tmp_path, as_file):
    whole = load_human36m(archive, subjects=["S1"])
    features = np.column_stack([whole.frame, np.arange(len(whole.frame))])
    given = features
    if as_file:
        given = tmp_path / f"features{as_file}"
        np.save(given, features) if as_file == ".npy" else np.savez(given, f=features)
    found = load_human36m(archive, subjects=["S1"], every=2, features=given)
    assert_array_equal(found.data[:, 0], found.frame)
    of_result = load_human36m(archive, subjects=["S1"], every=2, features=found.data)
    assert_array_equal(of_result.data, found.data)


def test_features_that_do_not_fit_are_refused(archive, tmp_path):
    with pytest.raises(ValueError, match=r"7 rows, .* 20 frames, of which 11 are"):
        load_human36m(archive, features=np.ones((7, 2)), every=2)
    with pytest.raises(ValueError, match=r"\(n, n_features\)"):
        load_human36m(archive, features=np.ones(20))
    np.savez(tmp_path / "two.npz", a=np.ones((20, 1)), b=np.ones(3))
    with pytest.raises(ValueError, match="one array"):
        load_human36m(archive, features=tmp_path / "two.npz")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"subjects": ["S5"]}, r"'S5', which .* There are: 'S1', 'S11', 'S9'"),
        ({"actions": ["walking"]}, r"Did you mean 'Walking'"),
        ({"subjects": "S1"}, r"must be a list, such as \['S1'\]"),
        ({"subjects": ["S9"], "actions": ["Walking"]}, "none of these actions"),
        ({"joints": "some"}, "'moving', 'all'"),
        ({"every": 0}, "every=0 must be an integer >= 1"),
        ({"unit": "inch"}, "'mm', 'cm', 'm'"),
        ({"unit": "mm"}, "mm from end to end. Pass the unit"),
        ({"sha256": "0" * 64}, "it is another file, or damaged"),
    ],
)
def test_bad_choices_say_what_is_allowed(archive, options, message):
    with pytest.raises(ValueError, match=message):
        load_human36m(archive, **options)


def test_the_unit_can_be_said(tmp_path, archive):
    whole = load_human36m(archive, joints="all", root_relative=False)
    path = tmp_path / "in_mm.npz"
    np.savez(path, positions_3d={"S1": {"Walking": whole.joints}})
    again = load_human36m(path, joints="all", root_relative=False, unit="mm")
    assert_array_equal(again.joints, whole.joints)


def test_the_right_checksum_is_accepted(archive):
    assert len(load_human36m(archive, sha256=file_checksum(archive).upper()).frame)
    with pytest.raises(ValueError, match="is a folder"):
        load_human36m(archive.parent, sha256=file_checksum(archive))


# -- HumanEva --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def humaneva(tmp_path_factory):
    """The folder of .mat files, a lost frame among them, and the joints."""
    root = tmp_path_factory.mktemp("humaneva")
    joints = {
        ("Train/S1", "Walking_1"): motion(0, 6, 15),
        ("Validate/S2", "Box_1"): motion(1, 4, 15),
    }
    joints["Train/S1", "Walking_1"][2, 5, 1] = np.nan
    for (subject, action), poses in joints.items():
        (root / subject).mkdir(parents=True)
        savemat(root / subject / f"{action}.mat", {"poses_3d": poses, "poses_2d": [0]})
    return root, joints


def test_frames_that_motion_capture_lost_are_left_out(humaneva):
    root, joints = humaneva
    found = load_humaneva(root, root_relative=False)
    walking = joints["Train/S1", "Walking_1"]
    assert_array_equal(found.frame, [0, 1, 3, 4, 5, 0, 1, 2, 3])
    assert_array_equal(found.joints[:5], walking[[0, 1, 3, 4, 5]])
    assert_array_equal(found.subject[[0, -1]], ["Train/S1", "Validate/S2"])
    assert_array_equal(found.action[[0, -1]], ["Walking 1", "Box 1"])
    assert found.joint_names[0] == "pelvis" and len(found.joint_names) == 15
    data = load_humaneva(root, features=np.arange(10)[:, None]).data
    assert_array_equal(data[:, 0], [0, 1, 3, 4, 5, 6, 7, 8, 9])


def test_the_archive_of_humaneva_gives_the_same_joints(humaneva, tmp_path):
    root, joints = humaneva
    walking = joints["Train/S1", "Walking_1"]
    chunks = {"Walking 1 chunk0": walking[:2], "Walking 1 chunk2": walking[3:]}
    recordings = {"Validate/S2": {"Box 1 chunk0": joints["Validate/S2", "Box_1"]}}
    path = write_archive(tmp_path, recordings | {"Train/S1": chunks}, "eva.npz")
    assert_allclose(load_humaneva(path).joints, load_humaneva(root).joints)
    walks = load_humaneva(path, actions=["Walking 1"])
    assert_array_equal(walks.frame, [0, 1, 0, 1, 2])


# -- files that are not what they should be --------------------------------------------


@pytest.mark.parametrize("load", [load_humaneva, load_human36m])
def test_missing_files_and_empty_folders_are_named(load, tmp_path):
    (tmp_path / "data_3d.npz").write_bytes(b"")
    with pytest.raises(FileNotFoundError, match=r"Did you mean 'data_3d.npz'"):
        load(tmp_path / "data_3b.npz")
    with pytest.raises(FileNotFoundError, match=r"no folders S1, S2"):
        load(tmp_path)
    (tmp_path / "poses.pkl").write_bytes(b"")
    with pytest.raises(ValueError, match=r"neither an .npz nor a folder"):
        load(tmp_path / "poses.pkl")


@pytest.mark.parametrize("form", ["cdf", "cdf.mat", "h5"])
def test_files_without_joints_list_what_they_hold(tmp_path, form, recordings):
    root = FORMS[form](tmp_path, {"S1": {"Walking": motion(0)}})
    (file,) = (f for f in root.rglob("Walking*"))
    if form == "h5":
        with h5py.File(file, "w") as opened:
            opened["3D_position"] = [1.0]
    elif form == "cdf.mat":
        savemat(file, {"datum": [1.0]})
    else:
        file.unlink()
        wrong = cdfwrite.CDF(str(file.with_suffix("")))
        spec = {"Variable": "Posed", "Data_Type": 45, "Num_Elements": 1}
        wrong.write_var(
            spec | {"Rec_Vary": True, "Dim_Sizes": [2]}, var_data=np.ones((1, 2))
        )
        wrong.close()
    with pytest.raises(
        KeyError, match=r"holds no '.*Did you mean '(3D_position|datum|Posed)'"
    ):
        load_human36m(root)


@pytest.mark.parametrize("form", [f for f in FORMS if f != "flat cdf"])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_files_cut_short_are_refused(tmp_path, form, share):
    path = FORMS[form](tmp_path, {"S1": {"Walking": motion(0, 60)}})
    file = path if path.is_file() else next(path.rglob("Walking*"))
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="cannot be read as"):
        load_human36m(path)


@pytest.mark.parametrize(
    "content",
    [
        {"S1": motion(0)},
        {"S1": {"Walking": motion(0)[:, :, :2]}},
        {"S1": {"Walking": [motion(0), motion(1, 3)]}},
        {"S1": {"Walking": "far"}},
        motion(0),
    ],
    ids=["no actions", "flat", "ragged", "words", "an array"],
)
def test_archives_of_another_shape_are_refused(tmp_path, content):
    path = tmp_path / "odd.npz"
    np.savez(path, positions_3d=content)
    with pytest.raises(
        ValueError, match=r"not a dictionary from subject|joints have|inhomo"
    ):
        load_human36m(path)


def test_other_numbers_of_joints_within_a_set_are_refused(tmp_path):
    parts = {"S1": {"Walking": motion(0), "Eating": motion(1, 4, 17)}}
    with pytest.raises(ValueError, match=r"differ in joints: \[17, 32\]"):
        load_human36m(write_archive(tmp_path, parts), joints="all")


def test_an_archive_without_positions_lists_its_keys(tmp_path):
    np.savez(tmp_path / "d.npz", positions_2d=np.ones(2))
    with pytest.raises(
        KeyError, match=r"no 'positions_3d'\. Did you mean 'positions_2d'"
    ):
        load_human36m(tmp_path / "d.npz")


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("load", [load_humaneva, load_human36m])
def test_a_hostile_archive_is_refused_and_not_run(load, tmp_path):
    mark = tmp_path / "ran"
    path = tmp_path / "hostile.npz"
    np.savez(path, positions_3d={"S1": {"Walking": motion(0), "Eating": Evil(mark)}})
    with pytest.raises(ValueError, match=r"open'.*can run any program"):
        load(path)
    assert not mark.exists()


@pytest.mark.parametrize(("form", "module"), [("cdf", "cdflib"), ("h5", "h5py")])
def test_without_the_extra_the_error_names_it(tmp_path, monkeypatch, form, module):
    root = FORMS[form](tmp_path, {"S1": {"Walking": motion(0)}})
    monkeypatch.setitem(__import__("sys").modules, module, None)
    with pytest.raises(ImportError, match=rf"needs {module}.*overcover\[data\]"):
        load_human36m(root)
