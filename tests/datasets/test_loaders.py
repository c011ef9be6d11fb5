"""Tables, SARCOS and OpenML: what was written is read, and errors say what to do."""

import gzip
import sys
from urllib.error import URLError

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal
from scipy.io import savemat
from sklearn.utils import Bunch

from overcover import datasets
from overcover.datasets import _openml, load_sarcos, load_table

NAMES = ["a", "b", "c", "height", "weight"]
TABLE = np.random.default_rng(0).normal(size=(7, 5))


def write_text(path, table=TABLE, names=NAMES, delimiter=",", opened=open):
    with opened(path, "wt", encoding="utf-8") as file:
        if names:
            file.write(delimiter.join(names) + "\n")
        for row in table:
            file.write(delimiter.join(map(repr, map(float, row))) + "\n")
    return path


def write_parquet(path, table=TABLE, names=NAMES):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    columns = dict(zip(names, np.transpose(table)))
    parquet.write_table(pyarrow.table(columns), path)
    return path


WRITERS = {
    "t.csv": write_text,
    "semicolon.csv": lambda path: write_text(path, delimiter=";"),
    "t.tsv": lambda path: write_text(path, delimiter="\t"),
    "blanks.txt": lambda path: write_text(path, delimiter=" "),
    "t.csv.gz": lambda path: write_text(path, opened=gzip.open),
    "t.parquet": write_parquet,
}


@pytest.fixture(params=WRITERS)
def table_file(request, tmp_path):
    return WRITERS[request.param](tmp_path / request.param)


# -- tables with names -----------------------------------------------------------------


def test_one_target_by_name(table_file):
    found = load_table(table_file, "height")
    assert_array_equal(found.data, TABLE[:, [0, 1, 2, 4]])
    assert_array_equal(found.target, TABLE[:, 3])
    assert found.feature_names == ["a", "b", "c", "weight"]
    assert found.target_names == ["height"]


def test_several_targets_and_chosen_inputs(table_file):
    found = load_table(table_file, ["weight", "height"], features=["c", 0])
    assert_array_equal(found.data, TABLE[:, [2, 0]])
    assert_array_equal(found.target, TABLE[:, [4, 3]])
    assert load_table(table_file, ["height"]).target.shape == (7, 1)


def test_positions_and_names_are_the_same_columns(table_file):
    by_name, by_position = (load_table(table_file, t) for t in ("weight", -1))
    assert_array_equal(by_name.data, by_position.data)
    assert by_name.target_names == by_position.target_names


def test_a_wrong_column_names_the_near_ones(table_file):
    with pytest.raises(KeyError, match=r"no column 'heights'.*mean 'height'.*'a', 'b'"):
        load_table(table_file, "heights")
    with pytest.raises(ValueError, match=r"target=5 is not .* one of the 5 columns"):
        load_table(table_file, 5)
    with pytest.raises(ValueError, match=r"Say which column"):
        load_table(table_file)
    with pytest.raises(ValueError, match=r"\['a'\] would be both"):
        load_table(table_file, "a", features=["a", "b"])
    with pytest.raises(ValueError, match="there are none"):
        load_table(table_file, NAMES)


# -- text ------------------------------------------------------------------------------


def test_text_without_names_has_positions(tmp_path):
    path = write_text(tmp_path / "t.csv", names=None)
    found = load_table(path, -1)
    assert_array_equal(found.data, TABLE[:, :4])
    assert found.target_names == ["c4"]


def test_names_that_are_numbers_can_be_said_to_be_names(tmp_path):
    path = write_text(tmp_path / "t.csv", names=["1", "2", "3", "4", "5"])
    assert len(load_table(path, 0).target) == 8
    found = load_table(path, "1", header=True)
    assert_array_equal(found.target, TABLE[:, 0])


def test_quotes_marks_of_encoding_and_empty_lines_do_no_harm(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text('\ufeff"a, long","b"\n1,2\n\n3,"4"\n', encoding="utf-8")
    found = load_table(path, "b")
    assert found.feature_names == ["a, long"]
    assert_array_equal(found.target, [2, 4])


@given(
    arrays(
        np.float64,
        st.tuples(st.integers(1, 5), st.integers(2, 4)),
        elements=st.floats(allow_nan=False, allow_infinity=False),
    )
)
def test_text_gives_every_number_back_exactly(tmp_path_factory, table):
    path = tmp_path_factory.mktemp("exact") / "t.csv"
    found = load_table(write_text(path, table, names=None), 0)
    assert_array_equal(found.target, table[:, 0])
    assert_array_equal(found.data, table[:, 1:])


def test_words_are_refused_where_they_count(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("name,x,y\nAda,1,2\nBob,3,4\n")
    with pytest.raises(
        ValueError, match=r"column 'name' holds 'Ada' in line 2.*features"
    ):
        load_table(path, "y")
    assert_array_equal(load_table(path, "y", features="x").data, [[1], [3]])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "does not begin with"),
        ("a,b\n", "holds no rows"),
        ("a,b\n1,2\n3\n", "line 3 has 1 cells, and the first line has 2"),
        ("a,b\n1,2\n3,4,5\nx,1,1\n", "line 3 has 3 cells, and the first line has 2"),
        ("a,b\n1,2,9\n3,4,9\n", "line 2 has 3 cells, and the first line has 2"),
        ('a,b\n\n"1",2\n3,4,\n', "line 4 has 3 cells, and the first line has 2"),
        ("a,a\n1,2\n", "has two columns called 'a'"),
        ("a\n1\n", "there are none"),
        ("a,b\n1,2\n3,4 # 5\n", "column 'b' holds '4 # 5' in line 3"),
    ],
)
def test_text_that_is_no_table_is_refused(tmp_path, text, message):
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        load_table(path, 0)


def test_bytes_that_are_no_text_are_refused(tmp_path):
    path = tmp_path / "t.csv"
    path.write_bytes(b"\xff\xfe\x00a")
    with pytest.raises(ValueError, match="is no text in UTF-8, first in line 1"):
        load_table(path, 0)
    packed = tmp_path / "t.csv.gz"
    packed.write_bytes(gzip.compress(b"a,b\n1,2\n" * 500)[:20])
    with pytest.raises(ValueError, match="cannot be read as text"):
        load_table(packed, 0)


# -- missing values --------------------------------------------------------------------


@pytest.fixture(params=["t.csv", "t.parquet", "t.npz", "t.npy"])
def gaps(request, tmp_path):
    """Rows 0, 1 and 4 lack a value, three of them in the third column."""
    table = TABLE.copy()
    table[[0, 1, 4], 2] = np.nan, np.inf, np.nan
    table[0, 4] = np.nan
    path = tmp_path / request.param
    if path.suffix == ".csv":
        path.write_text(
            write_text(path, table)
            .read_text()
            .replace("nan", "", 1)
            .replace("nan", "?")
        )
    elif path.suffix == ".parquet":
        write_parquet(path, table)
    elif path.suffix == ".npy":
        np.save(path, table)
    else:
        np.savez(path, X=table[:, :4], y=table[:, 4])
    return path, table


def target_of(path):
    return None if path.suffix == ".npz" else -1


def test_missing_values_are_counted(gaps):
    path, _ = gaps
    message = r"4 values .* in 3 of 7 rows: (c|c2|x2) \(3\), .*missing='drop'"
    with pytest.raises(ValueError, match=message):
        load_table(path, target_of(path))


def test_rows_with_missing_values_can_be_dropped_or_kept(gaps):
    path, table = gaps
    whole = load_table(path, target_of(path), missing="keep")
    assert_array_equal(np.column_stack([whole.data, whole.target]), table)
    some = load_table(path, target_of(path), missing="drop")
    full = np.isfinite(table).all(axis=1)
    assert_array_equal(np.column_stack([some.data, some.target]), table[full])
    with pytest.raises(ValueError, match="'refuse', 'drop', 'keep'"):
        load_table(path, target_of(path), missing="fill")


def test_nothing_left_is_an_error(tmp_path):
    np.save(tmp_path / "t.npy", np.full((3, 2), np.nan))
    with pytest.raises(ValueError, match="Every row"):
        load_table(tmp_path / "t.npy", 0, missing="drop")


# -- arrays ----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int16, bool, ">f8"])
@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_inputs_and_outputs_as_two_arrays(tmp_path, dtype, save):
    X, Y = (TABLE[:, :3] * 9).astype(dtype), TABLE[:, 3:].astype(np.float32)
    for i, (x, y) in enumerate(
        [("X", "Y"), ("X", "y"), ("x", "y"), ("data", "target")]
    ):
        path = tmp_path / f"{i}.npz"
        save(path, **{x: X, y: Y})
        found = load_table(path)
        assert_array_equal(found.data, X)
        assert_array_equal(found.target, Y)
        assert found.data.dtype == (np.float32 if dtype is np.float32 else np.float64)
        assert found.target_names == ["y0", "y1"]


def test_arrays_by_other_names(tmp_path):
    np.savez(
        tmp_path / "t.npz", X=TABLE[:, :1], inputs=TABLE[:, :3], torque=TABLE[:, 3]
    )
    found = load_table(tmp_path / "t.npz", "torque", features="inputs")
    assert_array_equal(found.data, TABLE[:, :3])
    assert_array_equal(found.target, TABLE[:, 3])
    with pytest.raises(
        KeyError, match=r"no 'torques'\. Did you mean 'torque'.*'X', 'i"
    ):
        load_table(tmp_path / "t.npz", "torques")
    with pytest.raises(KeyError, match=r"no 'Y' or 'y' or 'target'\. There are"):
        load_table(tmp_path / "t.npz")


def test_the_split_of_a_file_is_kept(tmp_path):
    parts = {"X_train": TABLE[:5, :3], "Y_train": TABLE[:5, 3:]}
    parts |= {"X_test": TABLE[5:, :3], "Y_test": TABLE[5:, 3:]}
    np.savez(tmp_path / "t.npz", **parts)
    found = load_table(tmp_path / "t.npz")
    assert_array_equal(found.data, parts["X_train"])
    assert_array_equal(found.target_test, parts["Y_test"])
    assert_array_equal(found.data_test, parts["X_test"])


@pytest.mark.parametrize("order", ["C", "F"])
def test_one_array_is_a_table(tmp_path, order):
    np.save(tmp_path / "t.npy", np.asarray(TABLE, order=order))
    np.savez(tmp_path / "t.npz", TABLE)
    for name in ("t.npy", "t.npz"):
        found = load_table(tmp_path / name, [1, -1])
        assert_array_equal(found.data, TABLE[:, [0, 2, 3]])
        assert_array_equal(found.target, TABLE[:, [1, 4]])


@pytest.mark.parametrize(
    ("array", "message"),
    [
        (np.array([[1, "a"]], dtype=object), "array of Python objects"),
        (np.array([["a", "b"]]), "not of numbers"),
        (np.zeros((2, 2), complex), "not of numbers"),
        (np.zeros(3, [("a", "f8"), ("b", "f8")]), "not of numbers"),
        (np.zeros(3, [("\u03b1", "f8")]), "array of records"),
        (np.zeros(3), "there are none"),
        (np.zeros((2, 2, 2)), "two dimensions"),
    ],
    ids=["objects", "text", "complex", "records", "greek", "vector", "cube"],
)
@pytest.mark.filterwarnings("ignore:Stored array in format 3.0")
def test_arrays_that_are_no_tables_are_refused(tmp_path, array, message):
    np.save(tmp_path / "t.npy", array)
    np.savez(tmp_path / "t.npz", t=array)
    for name in ("t.npy", "t.npz"):
        with pytest.raises(ValueError, match=message):
            load_table(tmp_path / name, 0)


def test_arrays_of_different_lengths_are_refused(tmp_path):
    np.savez(tmp_path / "t.npz", X=TABLE, Y=TABLE[:-1])
    with pytest.raises(
        ValueError, match=r"shape \(7, 5\) and outputs of shape \(6, 5\)"
    ):
        load_table(tmp_path / "t.npz")


class Evil:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("name", ["t.npy", "t.npz", "two.npz"])
def test_pickled_objects_are_refused_and_not_run(tmp_path, name):
    mark, objects = tmp_path / "ran", np.empty((2, 2), dtype=object)
    objects[:] = Evil(mark)
    if name == "t.npy":
        np.save(tmp_path / name, objects)
    else:
        extra = {"Y": TABLE[:2]} if name == "two.npz" else {}
        np.savez(tmp_path / name, X=objects, **extra)
    with pytest.raises(ValueError, match="can run any program"):
        load_table(tmp_path / name, None if "two" in name else 0)
    assert not mark.exists()


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6, 0.95])
@pytest.mark.parametrize("name", ["t.npz", "t.npy", "t.parquet"])
def test_files_cut_short_are_refused(tmp_path, name, share):
    path = tmp_path / name
    if name == "t.npy":
        np.save(path, TABLE)
    elif name == "t.npz":
        np.savez(path, X=TABLE, Y=TABLE)
    else:
        write_parquet(path)
    content = path.read_bytes()
    path.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="cannot be read as"):
        load_table(path, 0 if name != "t.npz" else None)


def test_a_changed_byte_in_an_archive_is_noticed(tmp_path):
    path = tmp_path / "t.npz"
    np.savez(path, X=TABLE, Y=TABLE)
    content = bytearray(path.read_bytes())
    content[300] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="cannot be read as"):
        load_table(path)


def test_parquet_of_words_and_of_other_types(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    columns = {"w": ["a", "b"], "n": [1, None], "t": [True, False], "y": [0.5, 1.5]}
    path = tmp_path / "t.parquet"
    __import__("pyarrow.parquet").parquet.write_table(pyarrow.table(columns), path)
    with pytest.raises(ValueError, match=r"column 'w' holds 'a' in row 0"):
        load_table(path, "y")
    found = load_table(path, "y", features=["n", "t"], missing="keep")
    assert_array_equal(found.data, [[1, 1], [np.nan, 0]])


def test_parquet_with_a_name_twice_is_refused(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    path = tmp_path / "t.parquet"
    table = pyarrow.table([[1.0], [2.0], [3.0]], names=["x", "y", "y"])
    __import__("pyarrow.parquet").parquet.write_table(table, path)
    with pytest.raises(ValueError, match="two columns called 'y'"):
        load_table(path, "y")


def test_parquet_without_its_extra_names_it(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "t.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(ImportError, match=r"needs pyarrow.*overcover\[cli\]"):
        load_table(path, 0)


# -- files -----------------------------------------------------------------------------


def test_missing_files_folders_and_unknown_forms(tmp_path):
    write_text(tmp_path / "heights.csv")
    with pytest.raises(FileNotFoundError, match=r"Did you mean 'heights.csv'"):
        load_table(tmp_path / "height.csv", 0)
    with pytest.raises(FileNotFoundError, match="There is no"):
        load_table(tmp_path / "nowhere" / "t.csv", 0)
    with pytest.raises(IsADirectoryError, match="give a file in it"):
        load_table(tmp_path, 0)
    for name in ("t.xlsx", "t", "t.npz.gz"):
        (tmp_path / name).write_bytes(b"x")
        with pytest.raises(ValueError, match=r"is known. Known are .csv"):
            load_table(tmp_path / name, 0)


def test_the_checksum_decides_before_anything_is_read(tmp_path):
    path = write_text(tmp_path / "t.csv")
    right = datasets.file_checksum(path)
    assert len(load_table(path, 0, sha256=right).target) == 7
    path.write_bytes(b"\xff")
    with pytest.raises(ValueError, match=f"not {right}: it is another file"):
        load_table(path, 0, sha256=right)


def test_checksums_of_arrays_are_of_their_values_and_shapes():
    one = datasets.array_checksum(TABLE, TABLE[:, 0])
    assert one == datasets.array_checksum(TABLE.astype(">f8"), list(TABLE[:, 0]))
    assert one == datasets.array_checksum(np.asfortranarray(TABLE), TABLE[:, 0])
    assert one != datasets.array_checksum(TABLE, TABLE[:, 1])
    assert one != datasets.array_checksum(TABLE.reshape(5, 7), TABLE[:, 0])


# -- SARCOS ----------------------------------------------------------------------------


@pytest.fixture
def sarcos(tmp_path):
    table = np.random.default_rng(0).normal(size=(12, 28))
    savemat(tmp_path / "sarcos_inv.mat", {"sarcos_inv": table[:9]})
    savemat(tmp_path / "sarcos_inv_test.mat", {"sarcos_inv_test": table[7:]})
    return tmp_path, table


def test_sarcos_is_split_into_states_and_torques(sarcos):
    folder, table = sarcos
    found = load_sarcos(folder / "sarcos_inv.mat")
    assert_array_equal(found.data, table[:9, :21])
    assert_array_equal(found.target, table[:9, 21:])
    assert len(found.feature_names) == 21 and len(found.target_names) == 7
    assert found.feature_names[7] == "velocity_1"
    assert "data_test" not in found


def test_test_rows_that_were_trained_on_are_marked(sarcos):
    folder, table = sarcos
    found = load_sarcos(folder / "sarcos_inv.mat", folder / "sarcos_inv_test.mat")
    assert_array_equal(found.data_test, table[7:, :21])
    assert_array_equal(found.target_test, table[7:, 21:])
    assert_array_equal(found.in_train, [True, True, False, False, False])


def test_sarcos_of_version_7_3_is_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    table, path = np.random.default_rng(0).normal(size=(5, 28)), tmp_path / "s.mat"
    with h5py.File(path, "w", userblock_size=512) as file:
        file["sarcos_inv"] = table.T
    with open(path, "r+b") as file:
        file.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    assert_array_equal(load_sarcos(path).target, table[:, 21:])


def test_files_that_are_not_sarcos_are_refused(sarcos):
    folder, table = sarcos
    path = folder / "other.mat"
    savemat(path, {"sarcos": table})
    with pytest.raises(KeyError, match=r"no 'sarcos_inv' or .*There are: 'sarcos'"):
        load_sarcos(path)
    savemat(path, {"sarcos_inv": table[:, :27]})
    with pytest.raises(ValueError, match=r"\(12, 27\).* 28 columns"):
        load_sarcos(path)
    table[3, 3] = np.nan
    savemat(path, {"sarcos_inv": table})
    with pytest.raises(ValueError, match="holds 1 values that are missing"):
        load_sarcos(path)
    savemat(path, {"sarcos_inv": [["a" * 28]]})
    with pytest.raises(ValueError, match=r"a table of <U28 .*SARCOS has numbers"):
        load_sarcos(path)
    path.write_bytes((folder / "sarcos_inv.mat").read_bytes()[:700])
    with pytest.raises(ValueError, match="cannot be read as a MATLAB file"):
        load_sarcos(path)
    with pytest.raises(ValueError, match="it is another file"):
        load_sarcos(folder / "sarcos_inv.mat", sha256="0" * 64)


# -- OpenML, never the network ---------------------------------------------------------

FETCHED = {
    datasets.fetch_kin8nm: ((8192, 8), {"data_id": 44980}),
    datasets.fetch_protein: ((45730, 9), {"data_id": 44963}),
}


@pytest.fixture(params=FETCHED, ids=lambda fetch: fetch.__name__)
def fetched(request, monkeypatch):
    """A fetcher, its set as OpenML would give it, and what OpenML was asked."""
    shape, which = FETCHED[request.param]
    data = np.zeros(shape)
    data[:, 0] = np.arange(shape[0])
    got = Bunch(data=data, target=np.linspace(0, 20, shape[0]).astype(object))
    got.feature_names, got.target_names = [f"x{i}" for i in range(shape[1])], ["y"]
    asked = {}

    def fetch_openml(**options):
        asked.update(options)
        return got

    monkeypatch.setattr(_openml, "fetch_openml", fetch_openml)
    return request.param, got, asked, which


def test_a_set_is_asked_for_by_its_number_or_name(fetched, tmp_path):
    fetch, got, asked, which = fetched
    found = fetch(data_home=tmp_path)
    assert which.items() <= asked.items()
    assert asked["data_home"] == tmp_path and asked["as_frame"] is False
    assert_array_equal(found.data, got.data)
    assert found.target.dtype == np.float64
    assert_allclose(found.target[-1], 20)
    assert len(found.feature_names) == found.data.shape[1]
    fetch(data_id=7)
    assert asked["data_id"] == 7


def test_another_set_is_refused(fetched):
    fetch, got, *_ = fetched
    whole = Bunch(**got)
    damage = {
        "data of shape": {"data": whole.data[:-1]},
        "targets, not": {"target": whole.target[:-1]},
        "missing or infinite": {"data": np.full_like(whole.data, np.nan)},
        "constant target": {"target": np.ones(len(whole.data))},
    }
    if fetch is datasets.fetch_protein:
        damage["outside"] = {"target": whole.target + 2}
    for message, change in damage.items():
        got.update(whole | change)
        with pytest.raises(ValueError, match=message):
            fetch()


def test_contents_can_be_pinned_by_their_checksum(fetched):
    fetch, got, *_ = fetched
    found = fetch()
    pinned = datasets.array_checksum(found.data, found.target)
    assert_array_equal(fetch(checksum=pinned).data, found.data)
    got.data[0, 1] += 1e-9
    with pytest.raises(ValueError, match=f"not {pinned}: the contents have changed"):
        fetch(checksum=pinned)


@pytest.mark.parametrize("error", [URLError("no route"), ValueError("unknown dataset")])
def test_without_an_answer_the_error_says_what_to_do(fetched, monkeypatch, error):
    def fetch_openml(**_):
        raise error

    monkeypatch.setattr(_openml, "fetch_openml", fetch_openml)
    with pytest.raises(
        OSError, match=r"download .* by hand and read it by .*load_table"
    ):
        fetched[0]()
