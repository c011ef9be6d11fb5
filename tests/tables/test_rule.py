"""One rule: a file means the same to datasets, command line and store."""

import sys

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal

from conftest import read_frame
from overcover import TableEncoder
from overcover.cli._columns import read_table
from overcover.datasets import load_table
from overcover.store import parquet_to_npy
from overcover.tables import TableError

GAPS = [
    "",
    "?",
    "NA",
    "na",
    "N/A",
    "#N/A",
    "<NA>",
    "NaN",
    "nan",
    "-nan",
    "NULL",
    "None",
]
GAPS += ["none", "1.#IND", " "]


def as_text(folder, columns, name="t.csv", separator=","):
    path = folder / name
    rows = zip(*columns.values())
    lines = [separator.join(columns), *(separator.join(row) for row in rows)]
    path.write_text("\n".join(lines) + "\n")
    return path


def check_same(path, expected):
    """Both readers give these columns: the last is the target."""
    *inputs, target = expected
    table = load_table(path, target, missing="keep")
    assert table.feature_names == inputs
    values = np.column_stack([table.data, table.target])
    assert_array_equal(values, np.column_stack(list(expected.values())))
    X, Y, _ = read_table(str(path), [target])
    assert [*X, *Y] == list(expected)
    X = TableEncoder().learn(X, Y)[inputs]
    assert_array_equal(np.column_stack([X, Y]), values)


@pytest.mark.parametrize("gap", GAPS)
def test_the_same_words_mean_that_a_value_is_missing(tmp_path, gap):
    path = as_text(tmp_path, {"a": ["1.5", gap], "y": ["1", "2"]})
    assert np.isnan(load_table(path, "y", missing="keep").data[1, 0])
    X, _, _ = read_table(str(path), ["y"], missing="drop")
    assert X["a"].tolist() == [1.5]


def test_kinds_of_columns_are_the_same(tmp_path):
    text = {"b": ["true", "False"], "d": ["1970-01-03 12:00", "1970/01/02"]}
    text |= {"m": ["1970-02", "1970-03"], "n": ["1e-3", "+2."], "y": ["1", "2"]}
    numbers = {"b": [1.0, 0.0], "d": [2.5, 1.0], "m": [31.0, 59.0], "n": [1e-3, 2.0]}
    check_same(as_text(tmp_path, text), numbers | {"y": [1.0, 2.0]})


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.txt", "t.csv.xz", "t.parquet"])
def test_forms_mean_the_same(tmp_path, name):
    frame = pd.DataFrame({"a": [0.1, 0.2], "b": [3.0, 4.0], "y": [5.0, 6.0]})
    path = tmp_path / name
    if name == "t.parquet":
        frame.to_parquet(path)
    else:
        separator = {"t.tsv": "\t", "t.txt": " "}.get(name, ",")
        frame.to_csv(path, sep=separator, index=False)
    check_same(path, {name: frame[name].tolist() for name in frame})


def test_columns_without_a_name_have_the_same_ones(tmp_path):
    path = as_text(tmp_path, {"": ["1", "2"], "y": ["3", "4"]})
    check_same(path, {"c0": [1.0, 2.0], "y": [3.0, 4.0]})
    np.save(tmp_path / "t.npy", np.eye(3))
    assert load_table(tmp_path / "t.npy", -1).feature_names == ["c0", "c1"]
    assert list(read_frame(str(tmp_path / "t.npy"))) == ["c0", "c1", "c2"]
    np.savez(tmp_path / "t.npz", X=np.eye(2), y=[1, 2])
    assert load_table(tmp_path / "t.npz").feature_names == ["x0", "x1"]
    assert list(read_frame(str(tmp_path / "t.npz"))) == ["x0", "x1", "y0"]


@pytest.mark.parametrize("cell", ["1,5", "1_000", "0x10", "five", "1.2.3"])
def test_what_is_no_number_is_named_by_its_line(tmp_path, cell):
    columns = {"a": ["1", "2", cell, "4"], "y": ["1", "2", "3", "4"]}
    path = as_text(tmp_path, columns, separator=";")
    message = f"column 'a' holds '{cell}' in line 4, which is not a number"
    if cell == "1,5":
        message += r" \(a decimal mark is a point, not a comma\)"
    with pytest.raises(TableError, match=message):
        load_table(path, "y")
    with pytest.raises(Exception, match=message):
        read_table(str(path), ["y"])


def test_a_store_takes_the_kinds_that_a_table_has(tmp_path):
    when = pd.to_datetime(["1970-01-02", "1970-01-03 12:00"], format="ISO8601")
    frame = pd.DataFrame({"when": when, "b": [True, False], "text": ["1.5", "2"]})
    path = tmp_path / "t.parquet"
    frame.to_parquet(path)
    numbers = parquet_to_npy(path, tmp_path / "out.npy")
    assert_array_equal(numbers, [[1.0, 1.0, 1.5], [2.5, 0.0, 2.0]])
    assert_array_equal(load_table(path, "text").data, numbers[:, :2])


def test_arrays_need_no_extra_and_text_names_its_own(tmp_path, monkeypatch):
    path = as_text(tmp_path, {"a": ["1", "2"], "y": ["3", "4"]})
    np.save(tmp_path / "t.npy", np.eye(3))
    for module in ("pandas", "pyarrow"):
        monkeypatch.setitem(sys.modules, module, None)
    assert_array_equal(load_table(tmp_path / "t.npy", -1).target, [0.0, 0.0, 1.0])
    with pytest.raises(ImportError, match=r"needs pandas.*overcover\[cli\]"):
        load_table(path, "y")


def test_blanks_around_names_and_cells_do_not_count(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a , b, y\n1 , 2 , 3\n4,5, 6 \n")
    check_same(path, {"a": [1.0, 4.0], "b": [2.0, 5.0], "y": [3.0, 6.0]})


def test_only_chosen_columns_have_to_be_numbers(tmp_path):
    path = as_text(tmp_path, {"a": ["1", "2"], "w": ["x", "y"], "y": ["3", "4"]})
    assert_array_equal(load_table(path, "y", features=["a"]).data, [[1.0], [2.0]])
