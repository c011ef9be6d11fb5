"""The command line on models: what it writes is what Python answers, or nothing."""

import io
import json
import os
import re

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import mean_absolute_error, r2_score, root_mean_squared_error
from typer.testing import CliRunner

import overcover
from conftest import frames_of, wave
from overcover import GP, OverlappingCoverRegressor, TableEncoder, planning, store
from overcover.cli import make_app
from overcover.cli._errors import Mistake
from overcover.cli._stored import names_kept
from overcover.planning import Line, Rates
from overcover.planning.choice import plan_within
from overcover.tables import Table, TableError, open_table, writing_table
from overcover.tuning.cost import tuning_cost

# Given, so that fits take no time.
FIXED = GP(length_scale=1.0, noise=0.01)
NAMES = ["wide", "high, too", "deep"]


def run(*arguments, stdin=None):
    """What a command prints; it has to go well."""
    done = CliRunner().invoke(make_app(), list(map(str, arguments)), input=stdin)
    assert done.exit_code == 0, done.output
    return done.stdout


def refused(code, *arguments, stdin=None):
    """The one line that a command says in refusal."""
    done = CliRunner().invoke(make_app(), list(map(str, arguments)), input=stdin)
    assert done.exit_code == code, done.output
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (300, 3))
    table = pd.DataFrame(X, columns=NAMES)
    table["y"] = wave(X) + 0.01 * rng.normal(size=len(X))
    table["z"] = X[:, 2] ** 2
    return table


@pytest.fixture(scope="module")
def folder(frame, tmp_path_factory):
    """The table in all formats, and a model that the command line fitted on it."""
    folder = tmp_path_factory.mktemp("cli")
    frame.to_csv(folder / "data.csv", index=False)
    frame.to_csv(folder / "data.csv.gz", index=False)
    frame.to_csv(folder / "data.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "data.parquet", row_group_size=70)
    np.save(folder / "data.npy", frame[NAMES].to_numpy())
    np.savez(folder / "data.npz", X=frame[NAMES].to_numpy())
    said = run(
        *("fit", folder / "data.csv", "--target", "y,z", "--out", folder / "model.ocm"),
        *("--subdomain-size", 60, "--overlap", 0.5, "--seed", 3, "--json"),
    )
    (folder / "fit.json").write_text(said)
    return folder


@pytest.fixture(scope="module")
def model(folder):
    return overcover.load(folder / "model.ocm")


def test_a_fit_is_that_of_python(folder, frame, model):
    said = json.loads((folder / "fit.json").read_text())
    assert said["features"] == NAMES
    assert said["targets"] == ["y", "z"]
    assert (said["rows"], said["subdomain_size"], said["overlap"]) == (300, 60, 0.5)
    stages = {"scales", "tuning", "partition", "cover", "machines"}
    assert set(said["timings"]) == stages
    here = OverlappingCoverRegressor(
        "gp", subdomain_size=60, overlap=0.5, random_state=3, n_jobs=1
    ).fit(frame[NAMES], frame[["y", "z"]].to_numpy())
    assert_array_equal(here.predict(frame[NAMES]), model.predict(frame[NAMES]))
    notes = store.inspect(folder / "model.ocm")["notes"]
    assert notes["table"] == {"targets": ["y", "z"]}


def test_a_scale_of_the_outputs_is_that_of_python(folder, frame, tmp_path):
    table = frame.assign(y=np.exp(frame["y"]))
    table.to_csv(tmp_path / "positive.csv", index=False)
    out = tmp_path / "log.ocm"
    known = ("fit", tmp_path / "positive.csv", "--target", "y", "--drop", "z")
    said = json.loads(run(*known, "--out", out, "--scale", "log", "--json"))
    assert said["target"] == ["log"]
    model = overcover.load(out)
    ends = run("predict", out, tmp_path / "positive.csv", "--std", "--interval", 0.9)
    read = pd.read_csv(io.StringIO(ends))
    mean, std = model.predict(frame[NAMES], return_std=True)
    assert_allclose(read["y"], mean, rtol=1e-12)
    assert_allclose(read["y_std"], std, rtol=1e-12)
    low, high = model.predict_interval(frame[NAMES], 0.9)
    assert_allclose(read[["y_low", "y_high"]], np.column_stack([low, high]), rtol=1e-12)
    assert "scale of outputs  log" in run("inspect", out)
    scores = json.loads(run("evaluate", out, tmp_path / "positive.csv", "--json"))
    density = model.log_density(frame[NAMES], table["y"]).mean()
    assert_allclose(scores["scores"][0]["nlpd"], -density)


@pytest.mark.parametrize(
    "name",
    ["data.csv", "data.csv.gz", "data.tsv", "data.parquet", "data.npy", "data.npz"],
)
def test_answers_are_those_of_python_whatever_the_file(name, folder, frame, model):
    said = run(
        "predict", folder / "model.ocm", folder / name, "--std", "--interval", 0.9
    )
    read = pd.read_csv(io.StringIO(said))
    assert list(read) == [
        f"{t}{e}" for t in "yz" for e in ("", "_std", "_low", "_high")
    ]
    mean, std = model.predict(frame[NAMES], return_std=True)
    low, high = model.predict_interval(frame[NAMES], coverage=0.9)
    assert_array_equal(read[["y", "z"]], mean)
    assert_array_equal(read[["y_std", "z_std"]], std)
    assert_array_equal(read[["y_low", "z_low"]], low)
    assert_array_equal(read[["y_high", "z_high"]], high)


def test_quantiles_and_deviations_without_noise_are_those_of_python(
    folder, frame, model
):
    options = [
        "--std",
        "--no-noise",
        "--quantile",
        "0.9",
        "--quantile",
        "0.05",
        "--quantile",
        "0.9",
    ]
    said = run("predict", folder / "model.ocm", folder / "data.csv", *options)
    read = pd.read_csv(io.StringIO(said))
    endings = ("", "_std", "_q0.9", "_q0.05")
    assert list(read) == [f"{t}{e}" for t in "yz" for e in endings]
    _, std = model.predict(frame[NAMES], return_std=True, noise=False)
    assert_array_equal(read[["y_std", "z_std"]], std)
    for q in (0.05, 0.9):
        expected = model.predict_quantile(frame[NAMES], q)
        assert_array_equal(read[[f"y_q{q}", f"z_q{q}"]], expected)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".parquet", ".npy"])
def test_every_output_holds_the_same_numbers(ending, folder, frame, model, tmp_path):
    out = tmp_path / f"answers{ending}"
    said = run("predict", folder / "model.ocm", folder / "data.csv", "--out", out)
    assert said == f"300 rows -> {out}\n"
    assert os.listdir(tmp_path) == [out.name]
    expected = model.predict(frame[NAMES])
    if ending == ".npy":
        assert_array_equal(np.load(out), expected)
    elif ending == ".parquet":
        assert_array_equal(pd.read_parquet(out)[["y", "z"]], expected)
    else:
        separator = "\t" if ending == ".tsv" else ","
        assert_array_equal(pd.read_csv(out, sep=separator), expected)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
def test_standard_input_is_read_as_a_file(separator, folder, frame):
    text = frame.to_csv(index=False, sep=separator)
    said = run("predict", folder / "model.ocm", "-", stdin=text)
    assert said == run("predict", folder / "model.ocm", folder / "data.csv")


def test_columns_are_found_by_name(folder, frame, tmp_path):
    """Others stand between them, and their order is another."""
    mixed = frame[["z", "deep", "high, too", "wide"]].assign(id=range(300), more=1)
    mixed.to_parquet(tmp_path / "mixed.parquet")
    said = run(
        *("predict", folder / "model.ocm", tmp_path / "mixed.parquet", "--json"),
        *("--out", tmp_path / "a.csv", "--keep", "id,z"),
    )
    answers = pd.read_csv(tmp_path / "a.csv")
    straight = run("predict", folder / "model.ocm", folder / "data.csv")
    assert_array_equal(answers[["y", "z"]], pd.read_csv(io.StringIO(straight)))
    assert answers["id"].tolist() == list(range(300))
    assert_array_equal(answers["z_given"], frame["z"])
    assert json.loads(said) == {
        "rows": 300,
        "columns": ["id", "z_given", "y", "z"],
        "unused": ["more"],
        "unknown": {},
        "empty": 0,
        "out": str(tmp_path / "a.csv"),
    }


def test_kept_columns_are_copied_as_they_are_written(folder, frame, tmp_path):
    rows = frame[NAMES][:3].assign(id=["007", "NA", "1e3"], n=["1.50", "", "02"])
    rows = rows.assign(wide=["1.50", "2.0", "NA"])
    rows.to_csv(tmp_path / "rows.csv", index=False)
    answer = ("predict", folder / "model.ocm", tmp_path / "rows.csv")
    answer += ("--keep", "id,n,wide", "--missing", "empty")
    said = pd.read_csv(io.StringIO(run(*answer)), dtype=str, keep_default_na=False)
    assert said["id"].tolist() == ["007", "NA", "1e3"]
    assert said["n"].tolist() == ["1.50", "", "02"]
    assert said["wide"].tolist() == ["1.50", "2.0", "NA"]
    assert (said["y"] == "").tolist() == [False, False, True]
    # An array can hold only what they mean.
    run(*answer[:4], "n,wide", *answer[5:], "-o", tmp_path / "a.npy")
    assert_array_equal(
        np.load(tmp_path / "a.npy")[:, :2], [[1.5, 1.5], [np.nan, 2], [2, np.nan]]
    )


def test_no_answer_overwrites_a_kept_column(folder, frame, tmp_path):
    rows = frame[:3].assign(y_std=[7, 8, 9], z_std_given=1)
    rows.to_csv(tmp_path / "rows.csv", index=False)
    answer = ("predict", folder / "model.ocm", tmp_path / "rows.csv")
    said = pd.read_csv(io.StringIO(run(*answer, "--keep", "y_std", "--std")))
    assert list(said) == ["y_std_given", "y", "y_std", "z", "z_std"]
    assert said["y_std_given"].tolist() == [7, 8, 9]
    assert run(*answer, "--keep", "y_std").startswith("y_std,y,z\n")
    with pytest.raises(Mistake, match="two columns of answers would be called 'y_std'"):
        names_kept([], ["y", "y_std", "y_std", "y_std_std"])


@pytest.mark.parametrize("name", ["a.npy.gz", "a.parquet.gz", "a.npz.bz2", "a.gz"])
def test_only_text_is_packed(name, folder, tmp_path):
    answer = ("predict", folder / "model.ocm", folder / "data.csv")
    assert "and .csv.gz" in refused(2, *answer, "-o", tmp_path / name)
    (tmp_path / name).touch()
    assert "and .csv.gz" in refused(2, *answer[:2], tmp_path / name)
    page = tmp_path / "report.html.gz"
    assert "Known are .html, .htm." in refused(2, "report", answer[1], "-o", page)


def test_columns_that_lack_or_cannot_be_kept_are_named(folder, frame, tmp_path):
    frame.rename(columns={"deep": "Deep"}).to_csv(tmp_path / "a.csv", index=False)
    line = refused(1, "predict", folder / "model.ocm", tmp_path / "a.csv")
    assert "lacks 'deep'. Did you mean 'Deep'? There are: 'Deep', 'high, too'" in line
    answer = ("predict", folder / "model.ocm", folder / "data.csv")
    assert "no column 'id'" in refused(2, *answer, "--keep", "id")
    np.save(tmp_path / "a.npy", np.zeros((3, 2)))
    assert "lacks 'wide'" in refused(
        1, "predict", folder / "model.ocm", tmp_path / "a.npy"
    )


@pytest.mark.parametrize("name", ["data.csv", "data.parquet", "data.npy"])
def test_no_more_than_a_chunk_is_ever_read(name, folder, monkeypatch):
    """Frames come one by one, each of the size asked for, and none is kept."""
    monkeypatch.setattr("pandas.read_parquet", None)
    sizes, reached = [], []
    with open_table(str(folder / name)) as table:
        for part in table.frames(40):
            sizes.append(len(part))
            reached.append(table.done)
    assert sizes == [40] * 7 + [20]
    assert reached == sorted(reached)
    assert reached[-1] == table.total
    if name != "data.csv":  # text is read in blocks of its own
        assert reached[0] < 150


def test_a_file_is_answered_while_it_is_read(folder, model, monkeypatch):
    """The first answers are written before the last rows are read."""
    events = []
    monkeypatch.setattr("overcover.cli._commands.ROWS_AT_A_TIME", 70)
    frames = Table.frames

    def recorded(*arguments):
        return (events.append("read") or frame for frame in frames(*arguments))

    monkeypatch.setattr(Table, "frames", recorded)
    predict = OverlappingCoverRegressor.predict
    monkeypatch.setattr(
        OverlappingCoverRegressor,
        "predict",
        lambda self, X: events.append(len(X)) or predict(self, X),
    )
    run("predict", folder / "model.ocm", folder / "data.npy")
    assert events == ["read", 70] * 4 + ["read", 20]


def test_how_a_file_is_cut_changes_nothing(folder, frame):
    (whole,) = frames_of(str(folder / "data.parquet"), 1000)
    cut = pd.concat(frames_of(str(folder / "data.parquet"), 33))
    pd.testing.assert_frame_equal(whole, cut)
    pd.testing.assert_frame_equal(cut, frame, check_names=False)


def test_scores_are_those_of_scikit_learn(folder, frame, model):
    said = json.loads(
        run("evaluate", folder / "model.ocm", folder / "data.csv", "--json")
    )
    assert said["rows"] == 300
    X, Y = frame[NAMES], frame[["y", "z"]].to_numpy()
    mean = model.predict(X)
    density = model.log_density(X, Y)
    low, high = model.predict_interval(X)
    for j, score in enumerate(said["scores"]):
        assert score["output"] == "yz"[j]
        told = [score[name] for name in ("rmse", "mae", "r2", "nlpd", "held")]
        expected = [
            root_mean_squared_error(Y[:, j], mean[:, j]),
            mean_absolute_error(Y[:, j], mean[:, j]),
            r2_score(Y[:, j], mean[:, j]),
            -density[:, j].mean(),
            np.mean((low[:, j] <= Y[:, j]) & (Y[:, j] <= high[:, j])),
        ]
        assert_allclose(told, expected)


def test_outputs_may_be_called_otherwise(folder, frame, tmp_path):
    renamed = frame.rename(columns={"y": "a", "z": "b"})
    renamed.to_csv(tmp_path / "a.csv", index=False)
    judge = ("evaluate", folder / "model.ocm", tmp_path / "a.csv")
    assert "no column 'y' to compare" in refused(1, *judge)
    assert "has 2 outputs (y, z), --target names 1" in refused(2, *judge, "-t", "a")
    with_names = json.loads(run(*judge, "-t", "a,b", "--json"))
    straight = run("evaluate", folder / "model.ocm", folder / "data.csv", "--json")
    assert with_names["scores"] == json.loads(straight)["scores"]
    table = run(*judge, "-t", "a", "-t", "b")
    assert "RMSE" in table
    assert "300 rows" in table


def test_a_model_is_told(folder):
    said = run("inspect", folder / "model.ocm", "--verify")
    assert re.search(r"machine +GP\n", said)
    assert re.search(r"inputs +3: wide, high, too, deep\n", said)
    assert re.search(r"outputs +2: y, z\n", said)
    assert "all checksums agree" in said
    told = json.loads(run("inspect", folder / "model.ocm", "--json"))
    assert told == store.inspect(folder / "model.ocm") | {"verified": False}


def test_the_size_that_was_used_is_told(tmp_path):
    """Of 40 rows no subdomain has 800."""
    X = np.linspace(0, 1, 40)[:, None]
    model = OverlappingCoverRegressor(FIXED, subdomain_size=800).fit(X, X[:, 0])
    model.save(tmp_path / "m.ocm")
    said = run("inspect", tmp_path / "m.ocm")
    assert re.search(r"\nrows +40\n", said)
    assert re.search(r"\nrows of each +40\n", said)
    assert json.loads(run("inspect", tmp_path / "m.ocm", "--json"))["n_rows"] == 40


def test_notes_of_a_fit_are_told_again(folder, tmp_path):
    model, path = overcover.load(folder / "model.ocm"), tmp_path / "model.ocm"
    model.notes_ = ["warning: z is odd."]
    model.save(path, notes=store.inspect(folder / "model.ocm")["notes"])
    judge = ("evaluate", path, folder / "data.csv")
    assert "warning: z is odd.\n" in run(*judge)
    told = json.loads(run(*judge, "--json"))["findings"]
    assert {"severity": "warning", "text": "z is odd."} in told
    assert "warning: z is odd.\n" in run("inspect", path)


def test_what_is_infinite_is_null_in_json(frame, tmp_path):
    """The length scale of a column that never varies."""
    frame[:50].assign(same=1.0).to_csv(tmp_path / "a.csv", index=False)
    out = tmp_path / "m.ocm"
    arguments = ("fit", tmp_path / "a.csv", "-t", "y", "--drop", "z", "-o", out)
    said = json.loads(run(*arguments, "--json"))
    assert said["hyperparameters"]["length_scale"][-1] is None
    assert any("same never varied" in f["text"] for f in said["findings"])
    told = json.loads(run("inspect", out, "--json"))
    assert told["hyperparameters"] == said["hyperparameters"]
    run("inspect", out)
    run("evaluate", out, tmp_path / "a.csv", "--json")


def test_a_damaged_model_is_refused_by_name(folder, tmp_path):
    import shutil

    shutil.copytree(folder / "model.ocm", tmp_path / "bad.ocm")
    file = next(tmp_path.glob("bad.ocm/data-*/000000.pack"))
    data = bytearray(file.read_bytes())
    data[-50] ^= 1
    file.write_bytes(data)
    assert "000000.pack" in refused(1, "inspect", tmp_path / "bad.ocm", "--verify")
    assert "is not a store" in refused(1, "inspect", tmp_path)


def test_a_report_needs_no_training_rows(folder, frame, tmp_path):
    out = tmp_path / "report.html"
    arguments = ("report", folder / "model.ocm", folder / "data.parquet", "--out", out)
    assert json.loads(run(*arguments, "--json")) == {"out": str(out), "rows": 300}
    text = out.read_text(encoding="utf-8")
    for words in ("Report on model.ocm", "Training rows", "The cover", "high, too"):
        assert words in text
    # Means of the training rows, which only the model still holds.
    assert f"{frame['z'].mean():.4g}" in text
    assert "No test rows" not in text
    assert run("report", folder / "model.ocm", "-o", out) == f"{out}\n"
    text = out.read_text(encoding="utf-8")
    assert "Errors need test rows" in text
    assert "Nothing gives reason for concern" not in text
    assert "Not checked, for lack of test rows" in text
    assert ".html" in refused(2, "report", folder / "model.ocm", "-o", "a.pdf")


# -- tables that are not just numbers --------------------------------------------------


@pytest.fixture(scope="module")
def mixed():
    """Words, dates, numbers that are names, gaps."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(
        {
            "city": rng.choice(["Oslo", "Rome"], 80),
            "when": pd.date_range("2024-01-01", periods=80).astype(str),
            "month": rng.integers(1, 4, 80),
            "heat": rng.normal(size=80),
        }
    )
    table["y"] = table["heat"] + (table["city"] == "Rome") + 0.1 * table["month"]
    table.loc[[3, 40], "heat"] = np.nan
    return table


@pytest.fixture(scope="module")
def mixed_folder(mixed, tmp_path_factory):
    folder = tmp_path_factory.mktemp("mixed")
    mixed.to_csv(folder / "data.csv", index=False)
    mixed.to_parquet(folder / "data.parquet")
    said = run(
        *("fit", folder / "data.csv", "-t", "y", "--words", "month"),
        *("-o", folder / "model.ocm"),
    )
    assert "80 rows, 8 inputs, 1 output" in said
    return folder


def test_words_dates_and_gaps_are_read_as_in_python(mixed_folder, mixed):
    path = mixed_folder / "model.ocm"
    said = [
        run("predict", path, mixed_folder / name)
        for name in ("data.csv", "data.parquet")
    ]
    assert said[0] == said[1]
    encoder = TableEncoder(words=["month"])
    model = OverlappingCoverRegressor("gp", encoder=encoder, random_state=0)
    X = mixed.drop(columns="y")
    expected = model.fit(X, mixed["y"]).predict(X)
    assert_array_equal(pd.read_csv(io.StringIO(said[0]))["y"], expected)
    about = run("inspect", path)
    assert re.search("column city +2 words, a column of 0 and 1 for each", about)
    assert re.search("column when +date, in days since 1970", about)


def test_unknown_words_and_gaps_are_answered_and_counted(mixed_folder, mixed, tmp_path):
    rows = mixed[:4].assign(city=[mixed["city"][0], None, "Lima", "Lima"])
    rows.to_csv(tmp_path / "a.csv", index=False)
    answer = ("predict", mixed_folder / "model.ocm", tmp_path / "a.csv", "--std")
    said = json.loads(run(*answer, "--json", "-o", tmp_path / "b.csv"))
    assert (said["rows"], said["unknown"]) == (4, {"city": 3})
    made = pd.read_csv(tmp_path / "b.csv")
    mixed[:4].to_csv(tmp_path / "a.csv", index=False)
    known = pd.read_csv(io.StringIO(run(*answer)))
    assert (made["y_std"] > known["y_std"]).tolist() == [False, True, True, True]


def test_broken_numbers_are_refused(mixed_folder, mixed):
    answer = ("predict", mixed_folder / "model.ocm", "-", "--missing", "refuse")
    rows = mixed[:4].assign(heat=["1", "2", "warm", "3"])
    line = refused(1, *answer, stdin=rows.to_csv(index=False))
    assert "'heat' holds 'warm' in line 4, which is not a number" in line
    rows = mixed[:4].assign(heat=np.inf)
    assert "infinite value in line 2" in refused(
        1, *answer, stdin=rows.to_csv(index=False)
    )


def test_rows_with_gaps_are_refused_or_left_empty_by_a_model_of_numbers(folder, frame):
    rows = frame[:4].copy()
    rows.loc[2, "deep"] = np.nan
    answer = ("predict", folder / "model.ocm", "-")
    line = refused(1, *answer, "--missing", "refuse", stdin=rows.to_csv(index=False))
    assert "line 4 lacks a value of 'deep'" in line
    assert "--missing empty" in line
    said = run(*answer, stdin=rows.to_csv(index=False))
    answers = pd.read_csv(io.StringIO(said), skip_blank_lines=False)["y"]
    assert answers.isna().tolist() == [False, False, True, False]


def test_rows_to_judge_by_may_be_left_out(mixed_folder, mixed, tmp_path):
    mixed.assign(y=mixed["y"].where(mixed.index > 4)).to_csv(tmp_path / "a.csv")
    judge = ("evaluate", mixed_folder / "model.ocm", tmp_path / "a.csv")
    assert "(y 5), first in line 2." in refused(1, *judge)
    said = json.loads(run(*judge, "--missing", "drop", "--json"))
    assert (said["rows"], said["dropped"]) == (75, 5)


def test_an_infinite_output_is_refused_and_not_dropped(folder, frame, tmp_path):
    frame[:5].assign(y=[1.0, np.inf, 2.0, 3.0, 4.0]).to_csv(tmp_path / "a.csv")
    judge = ("evaluate", folder / "model.ocm", tmp_path / "a.csv")
    for options in ((), ("--missing", "drop")):
        assert "'y' holds an infinite value in line 3" in refused(1, *judge, *options)


# -- models of Python ------------------------------------------------------------------


def test_a_model_that_python_saved_answers_too(folder, frame, tmp_path):
    X, y = frame[NAMES], frame["y"]
    options = {"subdomain_size": 60, "random_state": 0}
    named = OverlappingCoverRegressor(FIXED, **options).fit(X, y)
    unnamed = OverlappingCoverRegressor(FIXED, **options).fit(X.to_numpy(), y)
    for model in (named, unnamed):
        model.save(tmp_path / "model.ocm")
        said = run("predict", tmp_path / "model.ocm", folder / "data.npy")
        assert_array_equal(pd.read_csv(io.StringIO(said))["y"], named.predict(X))
    X.to_csv(tmp_path / "inputs.csv", index=False)  # by position: no names are known
    again = run("predict", tmp_path / "model.ocm", tmp_path / "inputs.csv")
    assert again == said


@pytest.mark.parametrize(
    "notes",
    [
        {"target": ["y"]},
        {"targets": ["y", "z"]},
        {"targets": ["y"], "kinds": {"a": "number"}, "words": {}, "fill": {}},
        {"targets": ["y"], "kinds": {"a": "code"}, "words": {}, "fill": {}},
        {"targets": 3, "kinds": [], "words": None, "fill": {}},
        [],
    ],
)
def test_notes_that_do_not_fit_are_refused(notes, tmp_path):
    X = np.linspace(0, 1, 40)[:, None]
    model = OverlappingCoverRegressor(FIXED, subdomain_size=20).fit(X, X[:, 0])
    model.save(tmp_path / "model.ocm", notes={"table": notes})
    np.save(tmp_path / "a.npy", X)
    line = refused(1, "predict", tmp_path / "model.ocm", tmp_path / "a.npy")
    assert "cannot be used" in line


# -- what is refused, and what is left behind ------------------------------------------


def test_the_size_of_subdomains_may_be_left_to_the_number_of_rows(folder, tmp_path):
    options = ("-t", "y", "-o", tmp_path / "m.ocm", "--json")
    fit = ("fit", folder / "data.csv", *options, "--subdomain-size")
    said = json.loads(run(*fit, "auto"))
    assert said["subdomain_size"] == planning.auto_size(300, 1)
    assert "is neither auto nor a number" in told(2, *fit, "some")


def told(code, *arguments):
    """What a command says to a mistake of usage, in one line."""
    done = CliRunner().invoke(make_app(), list(map(str, arguments)))
    assert done.exit_code == code, done.output
    return " ".join(re.sub(r"[^\w ']", " ", done.stderr).split())


def test_wrong_usage(folder, tmp_path):
    model, data = folder / "model.ocm", folder / "data.csv"
    fit = ("fit", data, "-o", tmp_path / "m.ocm")
    assert "say what to predict" in refused(2, *fit)
    assert "Did you mean 'deep'?" in refused(2, *fit, "-t", "dep")
    assert "is no time" in refused(2, *fit, "-t", "y", "--budget", "soon")
    line = refused(2, *fit, "-t", "y", "--budget", "1m", "--subdomain-size", 9)
    assert "give one of them" in line
    assert "no columns are left" in refused(
        2, *fit, "-t", "y,z", "--drop", "wide", "--drop", "high, too", "--drop", "deep"
    )
    answer = ("predict", model, data)
    assert "no ending that is known" in refused(2, *answer, "-o", tmp_path / "a.doc")
    assert "is the table to read" in refused(2, *answer, "-o", data)
    assert "--json needs standard output" in refused(2, *answer, "--json")
    assert "is a folder" in refused(2, "predict", model, folder)
    assert "no model" in refused(2, "predict", tmp_path / "none.ocm", data)
    assert "no file" in refused(2, "predict", model, tmp_path / "none.csv")
    assert not os.listdir(tmp_path)


def test_places_that_cannot_be_written_to_are_refused_first(folder, tmp_path):
    answer = ("predict", folder / "model.ocm", folder / "data.csv", "-o")
    assert "there is no folder" in refused(1, *answer, tmp_path / "no" / "a.csv")
    (tmp_path / "file").write_text("precious")
    fit = ("fit", folder / "data.csv", "-t", "y", "-o")
    assert "not a directory" in refused(1, *fit, tmp_path / "file")
    assert "is not a store" in refused(1, *fit, folder)
    assert "could not be written" in refused(1, *fit, tmp_path / "file" / "m.ocm")
    assert (tmp_path / "file").read_text() == "precious"


@pytest.mark.parametrize(
    ("error", "seen"),
    [
        (KeyboardInterrupt, KeyboardInterrupt),
        (ValueError, ValueError),
        (OSError(28, "No space left on device"), TableError),
    ],
)
def test_a_failure_leaves_what_was_there(error, seen, tmp_path):
    out = tmp_path / "a.csv"
    out.write_text("precious")
    with pytest.raises(seen) as found, writing_table(str(out)) as write:
        write(pd.DataFrame({"a": [1.0]}))
        assert len(os.listdir(tmp_path)) == 2
        raise error
    assert os.listdir(tmp_path) == ["a.csv"]
    assert out.read_text() == "precious"
    if seen is TableError:
        assert str(found.value) == f"{out} cannot be written: No space left on device."


def test_words_do_not_go_into_arrays(mixed_folder, tmp_path):
    line = refused(
        1,
        *("predict", mixed_folder / "model.ocm", mixed_folder / "data.csv"),
        *("--keep", "city", "-o", tmp_path / "a.npy"),
    )
    assert (
        "'city' holds 'Oslo' in line" in line or "'city' holds 'Rome' in line" in line
    )
    assert "holds only numbers" in line
    assert not os.listdir(tmp_path)


def test_an_array_file_may_have_any_number_of_rows(tmp_path):
    """Its header is written before they are counted."""
    parts = [pd.DataFrame({"a": np.arange(n), "b": 0.5}) for n in (3, 100_000, 1)]
    with writing_table(str(tmp_path / "a.npy")) as write:
        for part in parts:
            write(part)
    assert_array_equal(np.load(tmp_path / "a.npy"), pd.concat(parts))


def test_an_unfinished_fit_goes_on(folder, tmp_path, monkeypatch):
    """Interrupted among the machines; the second run ends with the same model."""
    fit = ["fit", str(folder / "data.csv"), "-t", "y,z", "-o", str(tmp_path / "m.ocm")]
    fit += ["--subdomain-size", "60", "--overlap", "0.5", "--seed", "3"]
    made, fit_state = [], GP.fit_state

    def counted(self, X, *others, **options):
        if len(X) == 60:  # a subdomain; scales are chosen on other rows
            made.append(X)
        return fit_state(self, X, *others, **options)

    def interrupted(self, X, *others, **options):
        if len(made) == 4:
            raise KeyboardInterrupt
        return counted(self, X, *others, **options)

    monkeypatch.setattr(GP, "fit_state", interrupted)
    done = CliRunner().invoke(make_app(), fit)
    assert done.exit_code == 130
    assert done.stderr.splitlines()[-1] == "interrupted"
    assert "repeat the command" in done.stderr
    assert "--restart" in refused(1, *fit, "--seed", "4")
    assert "fit command again" in refused(1, "inspect", tmp_path / "m.ocm")
    monkeypatch.setattr(GP, "fit_state", counted)
    run(*fit)
    n_subdomains = store.inspect(tmp_path / "m.ocm")["n_subdomains"]
    assert len(made) == n_subdomains  # none was made twice
    files = sorted((tmp_path / "m.ocm").glob("data-*/0*"))
    twins = sorted((folder / "model.ocm").glob("data-*/0*"))
    assert [f.read_bytes() for f in files] == [f.read_bytes() for f in twins]


def test_a_finished_model_is_replaced_only_if_asked(folder, tmp_path, monkeypatch):
    out = tmp_path / "m.ocm"
    fit = ("fit", folder / "data.csv", "-t", "y", "--drop", "z", "-o", out)
    fit += ("--subdomain-size", 60, "--overlap", 0.5)
    run(*fit)
    manifest = (out / "manifest.json").read_bytes()
    for other in (("--seed", 1), ("--drop", "wide"), ("--seed", 1, "--restart")):
        assert "--replace" in refused(1, *fit, *other)
    with monkeypatch.context() as patch:
        patch.setattr(GP, "fit_state", None)  # nothing is fitted
        assert "already fitted" in run(*fit)
        assert "already fitted" in run(*fit, "--jobs", 2, "--replace")
        assert not json.loads(run(*fit, "--json"))["is_new"]
    assert (out / "manifest.json").read_bytes() == manifest
    assert json.loads(run(*fit, "--seed", 1, "--replace", "--json"))["is_new"]
    assert (out / "manifest.json").read_bytes() != manifest


# -- budgets ---------------------------------------------------------------------------


# Tuning takes 10 s whatever the size, a machine of 800 rows 0.5 s.
RATES = Rates(
    tuning=10.0 / tuning_cost(1890, 8).flops,
    partition=1e-12,
    cover=1e-12,
    machine=Line(0.0, 5e-10),
    visit=1e-4,
    question=Line(0.0, 1e-11),
    byte=1e-12,
    file=1e-5,
)


@pytest.fixture
def rates(monkeypatch):
    """What the operations of this computer cost, without measuring."""
    monkeypatch.setattr("overcover.planning.choice.measure", lambda *_: RATES)


@pytest.mark.parametrize("n_rows", [300, 1890, 20_000])
@pytest.mark.parametrize("seconds", [5, 12, 15, 20, 25, 60, 3600])
def test_a_budget_chooses_what_the_plan_recommends(n_rows, seconds, rates):
    made = plan_within(
        OverlappingCoverRegressor("gp"), (n_rows, 8, 1), seconds, into_store=True
    )
    limits = {"budget": seconds, "into_store": True, "rates": RATES}
    best = overcover.plan(n_rows, 8, 1, machine="gp", **limits)
    assert (made.subdomain_size, made.overlap) == (best.subdomain_size, best.overlap)
    # None that a fitted model is warned about: see `about_cover`.
    assert made.n_subdomains == 1 or 2 * made.subdomain_size <= n_rows
    assert made.overlap >= 0.5


@pytest.mark.parametrize("n_features", [60, 150, 300])
def test_no_budget_makes_subdomains_too_small_for_the_features(n_features, rates):
    made = plan_within(
        OverlappingCoverRegressor("gp"), (5000, n_features, 1), 1, into_store=True
    )
    n_scales = n_features if n_features <= 200 else 1
    assert made.subdomain_size >= 2 * n_scales
    assert not made.fits


def test_a_budget_leaves_an_overlap_as_it_was_given(rates):
    model = OverlappingCoverRegressor("gp", overlap=0.8)
    assert plan_within(model, (1890, 8, 1), 3600, into_store=True).overlap == 0.8


def test_a_fit_within_a_budget_is_that_of_the_size_it_chose(
    folder, frame, tmp_path, rates
):
    fit = ["fit", str(folder / "data.csv"), "-t", "y", "-o", str(tmp_path / "m.ocm")]
    fit += ["--budget", "5m"]
    done = CliRunner().invoke(make_app(), fit)
    assert done.exit_code == 0, done.output
    assert done.stderr.startswith("Planned: 300 x 4 rows, 1 output, GP: 1 subdomain of")
    assert re.search(r"\n +tuning +[\d.]+ s\n", done.stderr)
    assert "Fits in 5 min 0 s" in done.stderr
    assert store.inspect(tmp_path / "m.ocm")["subdomain_size"] == 300
    free = OverlappingCoverRegressor("gp", subdomain_size=300, random_state=0, n_jobs=1)
    table = frame[[*NAMES, "z"]]
    said = overcover.load(tmp_path / "m.ocm").predict(table)
    assert_array_equal(said, free.fit(table, frame["y"]).predict(table))
    # The same request is known again, although the computer may be busier now.
    assert "already fitted" in run(*fit)
    assert "--replace" in refused(1, *fit[:-1], "6m")


# -- trials ----------------------------------------------------------------------------


def test_the_demo_in_small(tmp_path, monkeypatch):
    from overcover.cli import _compare

    monkeypatch.setattr(_compare, "SIZE", 50)
    # Twin GPs and sixty pictures take their time; it is the same path.
    cover = OverlappingCoverRegressor
    monkeypatch.setattr(
        _compare, "OverlappingCoverRegressor", lambda _, **o: cover(FIXED, **o)
    )
    reported = []
    monkeypatch.setattr(
        _compare, "write_report", lambda *a, **_: reported.append(a) or a[1]
    )
    said = json.loads(run("demo", "--frames", 200, "--out", tmp_path, "--json"))
    assert said["report"] == str(tmp_path / "report.html")
    ((model, _, X, _, _, Y_test),) = reported
    assert len(X) == int(model.cover_.n_owned.sum())
    methods = ["5 nearest neighbours", "cover of GPs", "cover of Twin GPs"]
    assert [result["method"] for result in said["results"]] == methods
    # Joints are about a metre from the pelvis at most.
    assert all(10 < result["error"] < 1000 for result in said["results"])
    assert Y_test.shape == (100, 60)
