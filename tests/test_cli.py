"""The command line: tables become numbers, or are refused in a line."""

import io
import json
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.impute import SimpleImputer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from conftest import frames_of, read_frame, wave
from overcover import OverlappingCoverRegressor, TableEncoder
from overcover.cli import main
from overcover.cli._columns import read_table
from overcover.cli._compare import compare, splits_of
from overcover.cli._errors import Mistake
from overcover.tables import Spelling, TableError, as_numbers

REFUSALS = (Mistake, TableError, ValueError)


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (90, 2))
    return pd.DataFrame({"wide": X[:, 0], "high, too": X[:, 1], "y": wave(X)})


@pytest.fixture
def csv(frame, tmp_path):
    path = tmp_path / "data.csv"
    frame.to_csv(path, index=False)
    return str(path)


def run(capsys, *arguments):
    """Exit code and what was printed, to people and as errors."""
    with pytest.raises(SystemExit) as end:
        main(list(arguments))
    printed = capsys.readouterr()
    return end.value.code or 0, printed.out, printed.err


def refused(capsys, *arguments):
    """The error in a line, exit code 2 and nothing printed."""
    return failed(capsys, 2, *arguments)


def failed(capsys, expected, *arguments):
    """The error in a line, the expected exit code and nothing printed."""
    code, out, err = run(capsys, *arguments)
    assert code == expected
    assert out == ""
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    return err


def written(frame, folder, suffix):
    path = folder / f"data{suffix}"
    if suffix.startswith(".tsv"):
        frame.to_csv(path, sep="\t", index=False)
    elif suffix.startswith(".csv"):
        frame.to_csv(path, index=False)
    else:
        frame.to_parquet(path)
    return str(path)


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz", ".tsv", ".parquet"])
def test_every_format_gives_the_same_table(frame, tmp_path, suffix):
    read = read_frame(written(frame, tmp_path, suffix))
    pd.testing.assert_frame_equal(read.reset_index(drop=True), frame)


@pytest.mark.parametrize("separator", [",", "\t"])
def test_standard_input_may_be_either_kind_of_text(frame, monkeypatch, separator):
    text = frame.to_csv(sep=separator, index=False)
    monkeypatch.setattr("sys.stdin", io.StringIO(text))
    pd.testing.assert_frame_equal(read_frame("-").reset_index(drop=True), frame)


def test_arrays_have_columns_with_names(frame, tmp_path):
    values = frame.to_numpy()
    np.save(tmp_path / "a.npy", values)
    X, Y, _ = read_table(str(tmp_path / "a.npy"), ["c2"])
    assert list(X) == ["c0", "c1"]
    assert_allclose(Y["c2"], values[:, 2])
    np.savez(tmp_path / "a.npz", X=values[:, :2], y=values[:, 2])
    X, Y, _ = read_table(str(tmp_path / "a.npz"), [])  # the targets are known
    assert (list(X), list(Y)) == (["x0", "x1"], ["y0"])
    np.savez(tmp_path / "b.npz", A=values)  # one array is a table
    assert list(read_frame(str(tmp_path / "b.npz"))) == ["c0", "c1", "c2"]
    np.savez(tmp_path / "b.npz", A=values, B=values)
    with pytest.raises(KeyError, match=r"no 'X' or 'x' or 'data'.*'A', 'B'"):
        read_frame(str(tmp_path / "b.npz"))


def test_an_archive_without_inputs_is_refused_in_a_line(capsys, tmp_path):
    np.savez(tmp_path / "b.npz", A=np.eye(3), B=np.eye(3))
    line = failed(capsys, 1, "compare", str(tmp_path / "b.npz"))
    assert "holds no 'X' or 'x' or 'data'. There are: 'A', 'B'." in line


def test_a_pickle_in_an_array_file_is_not_opened(tmp_path):
    np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(REFUSALS, match="cannot be read"):
        read_frame(str(tmp_path / "a.npy"))


def test_dates_become_days_whatever_they_came_as(tmp_path):
    days = pd.to_datetime(["1970-01-02 00:00", "1970-01-03 12:00"])
    text = pd.DataFrame({"when": ["1970-01-02", "1970-01-03 12:00"]})
    for table in (text, pd.DataFrame({"when": days})):
        learned = TableEncoder().learn(table, [1.0, 2.0])
        assert_allclose(learned["when"], [1.0, 2.5])
    far = pd.Series(["9999-12-31", "0005-01-01"])
    assert_allclose(as_numbers(far), [2932896, -717701])


def test_numbers_may_be_words(tmp_path):
    path = tmp_path / "codes.csv"
    path.write_text("code,y\n01,1\n1,2\n01,3\n")
    assert read_table(str(path), ["y"])[0]["code"].tolist() == [1, 1, 1]
    X, _, words = read_table(str(path), ["y"], words=["code"])
    assert X["code"].tolist() == ["01", "1", "01"]
    assert words == ["code"]


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_truth_values_with_gaps_are_numbers_with_gaps(ending, tmp_path):
    table = pd.DataFrame({"b": [True, None, False], "y": [1.0, 2.0, 3.0]})
    path = written(table, tmp_path, ending)
    with pytest.raises(REFUSALS, match=r"values are missing \(b 1\)"):
        read_table(path, ["y"], missing="refuse")
    X, Y, _ = read_table(path, ["y"])
    encoder = TableEncoder()
    assert encoder.learn(X, Y)["b"].tolist() == [1.0, 0.5, 0.0]
    assert encoder.columns_[0]["kind"] == "number"


# -- cells that are at fault -----------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,y\n1,2,3\n4,5,6\n", "line 2 has 3 cells, and the first line has 2"),
        ("a,y\n1,2,\n4,5,\n", "line 2 has 3 cells, and the first line has 2"),
        ("a,y\n1,2\n3,4\n5,6,7\n", "line 4 has 3 cells"),
        ("a,y\n1,2\n\n3\n", "line 4 has 1 cells"),
        ('a,y\n"1\n",2\n"3,4"\n', "line 4 has 1 cells"),
        ("a;y\n1;2\n3;4;5\n", "line 3 has 3 cells"),
        ("a,y,y\n1,2,3\n", "two columns called 'y'"),
        ("a,y.1,y.1\n1,2,3\n", "two columns called 'y.1'"),
        (",,y\n1,2,3\n", None),
    ],
)
def test_a_row_of_another_length_or_a_name_twice_is_refused(text, words, tmp_path):
    """pandas would shift the columns, or call the second one otherwise."""
    path = tmp_path / "a.csv"
    path.write_text(text)
    if words is None:
        assert list(read_frame(str(path))) == ["c0", "c1", "y"]
        return
    with pytest.raises(REFUSALS, match=words):
        read_frame(str(path))
    with pytest.raises(REFUSALS, match=words):
        list(frames_of(str(path), 1))


def test_a_name_twice_is_refused_in_parquet_and_frames(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as parquet

    path = str(tmp_path / "a.parquet")
    parquet.write_table(pa.table([[1.0], [2.0], [3.0]], names=["a", "y", "y"]), path)
    for read in (read_frame, lambda path: list(frames_of(path, 1))):
        with pytest.raises(REFUSALS, match="two columns called 'y'"):
            read(path)
    X = pd.DataFrame(np.eye(5), columns=["a", "b", "c", "d", "a"])
    with pytest.raises(ValueError, match="X has two columns called 'a'"):
        OverlappingCoverRegressor().fit(X, X["b"])


def test_lines_are_those_of_an_editor(tmp_path):
    """Empty lines and cells of several lines count too."""
    path = tmp_path / "a.csv"
    path.write_text('a,b\n\n1,2\n"3\n",4\n5,6\n   \n7,8\n')
    assert read_frame(str(path)).index.tolist() == [3, 4, 6, 8]
    chunks = [frame.index.tolist() for frame in frames_of(str(path), 3)]
    assert chunks == [[3, 4, 6], [8]]


def test_one_bad_cell_among_numbers_is_named(tmp_path):
    path = tmp_path / "a.csv"
    lines = [f"{i / 7:.2f},{i}" for i in range(3000)]
    lines[2500] = "1.2.3,7"
    path.write_text("\n".join(["a,y", *lines]))
    said = r"'1.2.3' in line 2502, which is not a number \(bad cells: 1 of 3000\)"
    with pytest.raises(REFUSALS, match=said):
        read_table(str(path), ["y"])
    with pytest.raises(REFUSALS, match=r"'a' holds '1.2.3' in line 2502"):
        read_table(str(path), ["a"])
    encoder = TableEncoder()
    encoder.learn(pd.DataFrame({"a": [1.5, 2.0], "y": [2.0, np.nan]}), [0.0, 1.0])
    with pytest.raises(ValueError, match=r"'a' holds '1.2.3' in line 2502"):
        for frame in frames_of(str(path), 1000):
            encoder.encode(frame)


def test_all_bad_columns_are_told_at_once(tmp_path):
    path = tmp_path / "a.csv"
    rows = [f"{i},{i}.5,{i}," for i in range(8)]
    rows[2], rows[5] = "2,2.5,two,", "5,much,5,"
    path.write_text("\n".join(["y,a,b,c", *rows]))
    said = r"'a' holds 'much' in line 7.*'b' holds 'two' in line 4.*'c' is empty"
    with pytest.raises(REFUSALS, match=said):
        read_table(str(path), ["y"])


def test_decimal_commas_are_named_with_the_option_that_reads_them(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("a;b;y\n1,5;1;1\n2,5;2;2\n3,5;3;3,5\n")
    said = (
        r"'a' holds '1,5' in line 2, a number with a decimal comma.*'y' holds '3,5' in"
    )
    with pytest.raises(REFUSALS, match=said + ".*--decimal-comma"):
        read_table(str(path), ["y"])
    X, Y, _ = read_table(str(path), ["y"], spelling=Spelling(","))
    assert X.to_numpy().tolist() == [[1.5, 1], [2.5, 2], [3.5, 3]]
    assert Y["y"].tolist() == [1, 2, 3.5]


def test_a_word_among_decimal_commas_is_what_the_error_names(tmp_path):
    path = tmp_path / "commas.csv"
    path.write_text("a;y\n1,5;3,5\n2,5;.\nx;4,5\n3,5;1\n")
    with pytest.raises(REFUSALS, match="column 'a' holds 'x' in line 4"):
        read_table(str(path), ["y"], spelling=Spelling(","))


def test_dates_that_do_not_tell_what_is_first_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("when,y\n1/2/2024,1\n3/4/2024,2\n")
    with pytest.raises(
        REFUSALS, match=r"'1/2/2024' in line 2, a date.*: write 2024-01-31"
    ):
        read_table(str(path), ["y"])
    path.write_text("when,y\n1.2.1970,1\n03.02.1970 12:00,2\n")
    X, Y, _ = read_table(str(path), ["y"])
    assert TableEncoder().learn(X, Y)["when"].tolist() == [31.0, 33.5]


def test_numbers_in_text_keep_all_their_digits():
    values = np.random.default_rng(0).normal(size=300) * 10.0 ** np.arange(-150, 150)
    column = pd.Series([repr(value) for value in values.tolist()])
    assert_array_equal(as_numbers(column), values)


def test_missing_values_are_kept_dropped_or_counted(tmp_path):
    table = pd.DataFrame(
        {"a": [1.0, np.nan, 3.0, 8.0], "b": [np.nan, np.nan, 1, 2], "y": [1, 2, 3, 4]}
    )
    path = written(table, tmp_path, ".csv")
    with pytest.raises(REFUSALS, match=r"\(a 1, b 2\), first in line 2"):
        read_table(path, ["y"], missing="refuse")
    X, Y, _ = read_table(path, ["y"], missing="drop")
    assert X.to_numpy().tolist() == [[3, 1], [8, 2]]
    assert Y["y"].tolist() == [3, 4]
    pd.testing.assert_frame_equal(read_table(path, ["y"])[0], table[["a", "b"]])


def test_rows_without_a_target_are_left_out(tmp_path):
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "y": [1.0, np.nan, 3.0]})
    X, _, _ = read_table(written(table, tmp_path, ".csv"), ["y"])
    assert X["a"].tolist() == [1.0, 3.0]
    assert X.attrs["dropped"] == 1


def test_rows_that_are_left_out_are_told(capsys, frame, tmp_path):
    gaps = frame.assign(y=frame["y"].where(frame.index > 6))
    path = written(gaps, tmp_path, ".csv")
    options = ("compare", path, "-t", "y", "--method", "mean", "--missing", "drop")
    assert "7 rows left out, for lack of values." in run(capsys, *options)[1]


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"a": [1.0, np.inf], "y": [1, 2]}, "'a' holds an infinite value in row 1"),
        ({"a": [1.0, 2.0], "y": ["high", "low"]}, "'y' holds 'high' in row 0"),
        ({"a": [np.nan, np.nan], "y": [1, 2]}, "'a' is empty"),
        ({"y": [1, 2]}, "no columns are left"),
    ],
)
def test_tables_that_cannot_be_learned_from_are_refused(table, words, tmp_path):
    path = written(pd.DataFrame(table), tmp_path, ".parquet")
    with pytest.raises(REFUSALS, match=words):
        read_table(path, ["y"])


def test_mistakes_are_told_in_a_line(capsys, csv, tmp_path):
    assert "no column 'wied'. Did you mean 'wide'" in refused(
        capsys, "compare", csv, "-t", "wied"
    )
    assert "say what to predict" in refused(capsys, "compare", csv)
    assert "no file 'nothing.csv'" in refused(capsys, "compare", "nothing.csv")
    assert "no method 'magic'" in refused(
        capsys, "compare", csv, "-t", "y", "--method", "magic"
    )
    assert "too few" in refused(capsys, "compare", csv, "-t", "y", "--folds", "50")
    odd = tmp_path / "data.doc"
    odd.write_text("x")
    assert "no ending that is known" in refused(capsys, "compare", str(odd))
    broken = tmp_path / "data.parquet"
    broken.write_text("x")
    assert "cannot be read" in failed(capsys, 1, "compare", str(broken), "-t", "y")
    empty = tmp_path / "empty.csv"
    empty.write_text("a,y\n")
    assert "holds no rows" in failed(capsys, 1, "compare", str(empty), "-t", "y")
    empty.write_text("")
    assert "cannot be read" in failed(capsys, 1, "compare", str(empty), "-t", "y")


def test_an_unknown_option_is_an_error_of_use(capsys, csv):
    code, _, err = run(capsys, "compare", csv, "--tarket", "y")
    assert code == 2
    assert "--tarket" in err


def scores_of(capsys, *arguments):
    """What ``compare`` says, by method."""
    code, out, _ = run(capsys, "compare", *arguments, "--json")
    assert code == 0
    answer = json.loads(out)
    return answer, {score["method"]: score for score in answer["scores"]}


def test_scores_are_those_of_cross_validation(capsys, csv, frame):
    options = (csv, "-t", "y", "--method", "ridge", "--method", "mean", "--seed", "3")
    answer, scores = scores_of(capsys, *options)
    assert answer["features"] == ["wide", "high, too"]
    assert answer["targets"] == ["y"]
    X, y = frame[["wide", "high, too"]].to_numpy(), frame["y"].to_numpy()
    folds = KFold(3, shuffle=True, random_state=3)
    model = make_pipeline(StandardScaler(), RidgeCV(np.logspace(-4, 4, 17)))
    error = y - cross_val_predict(model, X, y, cv=folds)
    errors = [np.sqrt(np.mean(error[test] ** 2)) for _, test in folds.split(X)]
    ridge = scores["ridge"]
    assert_allclose(ridge["rmse"], np.sqrt(np.mean(np.square(errors))))
    assert_allclose(ridge["rmse_of_outputs"], [ridge["rmse"]])
    assert_allclose(ridge["rmse_spread"], np.std(errors, ddof=1))
    assert_allclose(ridge["mae"], np.mean(np.abs(error)))
    r2 = [1 - e**2 / y[test].var() for e, (_, test) in zip(errors, folds.split(X))]
    assert_allclose(ridge["r2"], np.mean(r2))
    assert ridge["held"] is None and ridge["nlpd"] is None
    assert scores["mean"]["r2"] <= 0


def test_errors_are_in_units_of_an_output_or_in_deviations_of_many(csv, frame):
    X, y = frame[["wide", "high, too"]].to_numpy(), frame[["y"]].to_numpy()
    cover = {"subdomain_size": 30, "random_state": 0}
    names = ["odc-gp", "ridge"]
    small, large = (
        {score.method: score for score in compare(X, scale * y, names, 2, cover)}
        for scale in (1.0, 1000.0)
    )
    for name in names:
        assert_allclose(large[name].rmse, 1000 * small[name].rmse, rtol=1e-6)
        assert_allclose(large[name].mae, 1000 * small[name].mae, rtol=1e-6)
        assert_allclose(large[name].r2, small[name].r2, rtol=1e-6)
    # A density per unit: a thousandth of it, if units are a thousand times smaller.
    more = np.log(1000)
    assert_allclose(large["odc-gp"].nlpd, small["odc-gp"].nlpd + more, rtol=1e-6)
    (both,) = compare(X, np.hstack([y, 1000 * y]), ["ridge"], 2, cover)
    assert_allclose(both.rmse, small["ridge"].rmse / y.std(), rtol=1e-6)


def test_an_output_that_does_not_vary_counts_for_nothing(frame):
    X, y = frame[["wide", "high, too"]].to_numpy(), frame[["y"]].to_numpy()
    Y = np.hstack([y, X[:, :1] ** 2])
    same = np.full_like(y, 7.0)
    cover = {"random_state": 0, "subdomain_size": 30}
    names = ["odc-gp", "ridge"]
    without, beside = (
        {score.method: score for score in compare(X, outputs, names, 3, cover)}
        for outputs in (Y, np.hstack([Y, same]))
    )
    for name in names:
        assert beside[name].r2_of_outputs[2] is None
        for field in ("rmse", "rmse_spread", "r2", "nlpd", "held"):
            expected = getattr(without[name], field)
            if name == "ridge":
                assert getattr(beside[name], field) == pytest.approx(expected)
            elif expected is not None:  # its hyperparameters are shared by all outputs
                assert getattr(beside[name], field) == pytest.approx(expected, abs=0.3)
    (alone,) = compare(X, same, ["ridge"], 3, cover)
    assert alone.r2 is None and alone.rmse == pytest.approx(0, abs=1e-9)


def test_medians_are_those_of_the_training_rows(capsys, frame, tmp_path):
    """What test rows hold must not reach a fit, not even through a median."""
    table = frame.assign(half=frame["wide"].where(np.arange(len(frame)) % 2 == 0))
    path = tmp_path / "gaps.csv"
    table.to_csv(path, index=False)
    options = (str(path), "-t", "y", "--method", "ridge")
    _, scores = scores_of(capsys, *options)
    X, y = table[["wide", "high, too", "half"]].to_numpy(), table["y"].to_numpy()
    model = make_pipeline(
        SimpleImputer(strategy="median", add_indicator=True),
        StandardScaler(),
        RidgeCV(np.logspace(-4, 4, 17)),
    )
    folds = KFold(3, shuffle=True, random_state=0)
    error = y - cross_val_predict(model, X, y, cv=folds)
    squares = [np.mean(error[test] ** 2) for _, test in folds.split(X)]
    assert_allclose(scores["ridge"]["rmse"], np.sqrt(np.mean(squares)))


def test_every_method_sees_the_gaps_themselves():
    rng = np.random.default_rng(0)
    value = rng.normal(size=(400, 1))
    is_missing = rng.random((400, 1)) < 0.5
    X = np.where(is_missing, np.nan, value)
    Y = np.where(is_missing, 3.0, 0.0)  # the gap is all there is to know
    table = pd.DataFrame(X, columns=["a"])
    for score in compare(table, Y, ["boosting", "knn"], 2, {"random_state": 0}):
        assert score.rmse < 0.1, score.method


@given(n_rows=st.integers(20, 90), n_folds=st.integers(2, 4), block=st.integers(1, 5))
def test_folds_share_no_rows_and_part_no_block(n_rows, n_folds, block):
    splits = list(splits_of(n_rows, n_folds, block, seed=0))
    assert_array_equal(np.sort(np.concatenate([t for _, t in splits])), range(n_rows))
    for train, test in splits:
        assert_array_equal(np.sort([*train, *test]), range(n_rows))
        assert not set(train // block) & set(test // block)


def test_a_series_is_too_easy_unless_it_is_parted_in_blocks(capsys, tmp_path):
    path = tmp_path / "series.csv"
    walk = np.cumsum(np.random.default_rng(0).normal(size=(300, 2)), axis=0)
    series = pd.DataFrame(walk, columns=["a", "y"]).assign(t=range(300))
    series.to_csv(path, index=False)
    options = (str(path), "-t", "y", "--method", "knn")
    _, apart = scores_of(capsys, *options)
    _, together = scores_of(capsys, *options, "--block", "50")
    assert together["knn"]["rmse"] > 2 * apart["knn"]["rmse"]
    assert "--block 200" in refused(capsys, "compare", *options, "--block", "200")


def test_all_methods_stand_in_one_table_the_best_first(capsys, csv):
    options = ("compare", csv, "-t", "y", "-t", "wide", "--folds", "2")
    code, out, _ = run(capsys, *options, "--subdomain-size", "30", "--json")
    assert code == 0
    scores = json.loads(out)["scores"]
    names = {score["method"] for score in scores}
    assert names == {"odc-gp", "odc-tgp", "knn", "ridge", "boosting", "mean"}
    errors = [score["rmse"] for score in scores]
    assert errors == sorted(errors)
    assert {s["method"] for s in scores if s["held"] is not None} == {
        "odc-gp",
        "odc-tgp",
    }


def test_people_get_a_table(capsys, csv):
    code, out, _ = run(
        capsys, "compare", csv, "-t", "y", "--method", "knn", "--method", "ridge"
    )
    assert code == 0
    for word in ("knn", "ridge", "RMSE", "90 rows, 2 columns, 3 folds", "units of y"):
        assert word in out
    code, out, _ = run(capsys, "compare", csv, "-t", "y,wide", "--method", "ridge")
    assert code == 0
    for word in ("of each", "wide", "deviations of the outputs"):
        assert word in out


def test_the_version_is_told(capsys):
    import overcover

    assert run(capsys, "--version")[:2] == (0, f"overcover {overcover.__version__}\n")


def test_without_the_extra_the_error_names_it():
    code = """
import sys
sys.modules["typer"] = None
from overcover import OverlappingCoverRegressor, TableEncoder
from overcover.cli import main
from overcover.cli._columns import read_table
main(["--version"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 2
    assert "overcover[cli]" in done.stderr
    assert "Traceback" not in done.stderr
