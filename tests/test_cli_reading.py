"""The command line on tables as people have them: what is read, named or set aside."""

import gzip
import io
import json
import re
import sys
import warnings
from datetime import datetime

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

from overcover import GP, OverlappingCoverRegressor
from overcover.cli import make_app
from overcover.cli._columns import read_table
from overcover.cli._errors import Cannot
from overcover.cli._show import warnings_as_notes
from overcover.tables import Spelling, as_numbers, kind_and_trouble

# Given, so that fits take no time.
FIXED = GP(length_scale=1.0, noise=0.01)
DAYS = pd.date_range("2024-01-01", periods=40, freq="37h")


def run(code, *arguments, stdin=None):
    """What a command prints, and what it says beside that."""
    done = CliRunner().invoke(make_app(), list(map(str, arguments)), input=stdin)
    assert done.exit_code == code, done.output
    return done.stdout, done.stderr


def read(tmp_path, text, *targets, **options):
    path = tmp_path / "t.csv"
    path.write_text(text)
    return read_table(str(path), targets or ["y"], **options)


def column(values):
    """A text with this column, and a target."""
    rows = "\n".join(f"{value};{i}" for i, value in enumerate(values))
    return f"a;y\n{rows}\n"


# -- dates and numbers -----------------------------------------------------------------


@pytest.mark.parametrize(
    "form",
    [
        *("%Y-%m-%d %H:%M", "%Y/%m/%d %H:%M:%S", "%Y.%m.%d %H:%M", "%d.%m.%Y %H:%M"),
        *("%Y-%m-%dT%H:%M:%SZ", "%Y-%m-%d %H:%M UTC", "%Y-%m-%d %I:%M %p"),
        *("%b %d %Y %H:%M", "%B %d, %Y, %H:%M", "%d %b %Y %I:%M%p", "%d-%b-%Y %H:%M"),
        *("%a, %d %b %Y %H:%M:%S GMT", "%Y-%b-%d %H:%M"),
    ],
)
def test_a_date_that_is_clear_is_read(form):
    cells = pd.Series(DAYS.strftime(form), dtype=object)
    assert kind_and_trouble(cells) == ("date", None)
    assert_array_equal(as_numbers(cells), as_numbers(DAYS.to_series()))
    if "%d" in form:  # nor are noughts needed
        bare = cells.str.replace(r"(?<!:)\b0(\d)(?=[-/. ,])", r"\1", regex=True)
        assert_array_equal(as_numbers(bare), as_numbers(cells))


def test_a_zone_counts():
    cells = pd.Series(["2024-01-01T01:30+02:00", "2024-01-01 01:30 -0530"])
    expected = [datetime.fromisoformat(cell) for cell in cells]
    assert_array_equal(as_numbers(cells), [d.timestamp() / 86400 for d in expected])


@pytest.mark.parametrize(("order", "other"), [("dmy", "mdy"), ("mdy", "dmy")])
@pytest.mark.parametrize("mark", ["/", "-"])
def test_an_option_says_whether_the_day_or_the_month_is_first(
    order, other, mark, tmp_path
):
    form = f"%{order[0]}{mark}%{order[1]}{mark}%Y %H:%M"
    text = column(DAYS.strftime(form))
    said = "may be the day or the month.*--dates dmy or --dates mdy"
    for spelling in (Spelling(), Spelling(".", other)):
        with pytest.raises(Cannot, match=said):
            read(tmp_path, text, spelling=spelling)
    X, _, _ = read(tmp_path, text, spelling=Spelling(".", order))
    assert_array_equal(as_numbers(X["a"]), as_numbers(DAYS.to_series()))


@pytest.mark.parametrize("order", ["dmy", "mdy"])
def test_dots_mean_that_the_day_is_first_whatever_the_option(order, tmp_path):
    text = column(DAYS.strftime("%d.%m.%Y %H:%M"))
    X, _, _ = read(tmp_path, text, spelling=Spelling(".", order))
    assert_array_equal(as_numbers(X["a"]), as_numbers(DAYS.to_series()))


@pytest.mark.parametrize(
    ("cells", "what"),
    [
        (DAYS.strftime("%d.%m.%y"), "'01.01.24' in line 2, a date whose year has two"),
        (DAYS.strftime("%d-%b-%y"), "'01-Jan-24' in line 2, a date whose year has two"),
        (DAYS.strftime("%m.%d.%Y"), "'01.01.2024' in line 2, a date .* not read"),
        (DAYS.strftime("%Y-%d-%m"), "'2024-01-01' in line 2, a date .* not read"),
        (DAYS.strftime("%m/%Y"), "'01/2024' in line 2, a date .* not read"),
        (DAYS.strftime("%H:%M"), "'00:00' in line 2, a date or time .* not read"),
        (["1,5", "2", "x", "3,5e3"], "'1,5' in line 2, .*comma.* --decimal-comma"),
        (["1,234", "2,345"], "'1,234' in line 2, .* sets thousands apart"),
        (["1.234,5", "2.345,5"], "'1.234,5' in line 2, .* thousands are set apart"),
        (["1,234.5", "2,345.5"], "'1,234.5' in line 2, .* thousands are set apart"),
        (["1 234", "2 345"], "'1 234' in line 2, .* thousands are set apart"),
        (["5 %", "6%"], "'5 %' in line 2, a number with a sign beside it"),
        (["$ 1,234.50", "€5", "\u22127"], r"'\$ 1,234.50' in line 2, a number with a"),
    ],
)
def test_what_looks_like_no_word_is_not_taken_for_one(cells, what, tmp_path):
    with pytest.raises(Cannot, match=f"'a' holds {what}.*--words a"):
        read(tmp_path, column(cells))
    X, _, words = read(tmp_path, column(cells), words=["a"])
    assert (list(X), words) == (["a"], ["a"])


def test_a_point_among_decimal_commas_is_not_taken_for_one(tmp_path):
    comma = Spelling(",")
    X, _, _ = read(tmp_path, column(["1,5", "-2,5e-1", ",5", "4"]), spelling=comma)
    assert_array_equal(as_numbers(X["a"]), [1.5, -0.25, 0.5, 4.0])
    for cells in (["1,5", "1.234", "2,5", "3"], ["1.234", "2.345"]):
        with pytest.raises(Cannot, match=r"'a' holds '1.234 \(with a point\)' in line"):
            read(tmp_path, column(cells), spelling=comma)
    X, _, _ = read(tmp_path, column(["v1", "v2", "1.2", "v3"]), spelling=comma)
    assert X["a"].tolist() == ["v1", "v2", "1.2", "v3"]  # words are left alone


def test_a_target_that_holds_no_numbers_is_shown_with_its_line(tmp_path):
    text = "a;y;z;w\n1;2,5;no;2024-01-01\n2;3,5;yes;2024-01-02\n"
    said = (
        "'y' holds '2,5' in line 2.*comma.*'z' holds 'no' in line 2, which is not a "
        "number.*'w' holds '2024-01-01' in line 2, which is not a number"
    )
    with pytest.raises(Cannot, match=said) as error:
        read(tmp_path, text, "y", "z", "w")
    assert "--decimal-comma" in str(error.value)
    assert "--words" not in str(error.value)  # a target cannot be words


def test_columns_without_a_cell_can_only_be_left_out(tmp_path):
    with pytest.raises(Cannot, match=r"'b' is empty.*'c' is empty") as error:
        read(tmp_path, "y,a,b,c\n1,1,,\n2,2,,\n")
    assert str(error.value).endswith(". Leave out what is empty, --drop b,c.")


@pytest.mark.parametrize("packed", [False, True])
def test_lines_count_as_in_an_editor_after_breaks_in_cells(packed, tmp_path):
    text = '\ny,a,note\n1,1,"two\nlines"\n\n2,2,\n3,x,"a ""b"""\n4,4,c\n'
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
    with pytest.raises(Cannot, match="'a' holds 'x' in line 7,"):
        read_table(str(path), ["y"])


@pytest.mark.parametrize("packed", [False, True])
def test_other_encodings_are_refused_with_the_line_and_a_remedy(packed, tmp_path):
    content = "soil,y\nclay,1\nröck,2\n".encode("latin-1")
    path = tmp_path / ("t.csv.gz" if packed else "t.csv")
    path.write_bytes(gzip.compress(content) if packed else content)
    with pytest.raises(ValueError, match=r"no text in UTF-8, first in line 3.*iconv"):
        read_table(str(path), ["y"])


# -- rows that cannot be answered ------------------------------------------------------


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    size = rng.uniform(-1, 1, (80, 2)).round(3)
    when = pd.date_range("2024-01-01", periods=80).strftime("%d/%m/%Y")
    table = pd.DataFrame({"a": size[:, 0], "b": size[:, 1], "when": when})
    return table.assign(y=size.sum(axis=1))


@pytest.fixture(scope="module")
def folder(table, tmp_path_factory):
    """A model of numbers, and one of numbers and dates."""
    folder = tmp_path_factory.mktemp("reading")
    dated = table.assign(when=pd.to_datetime(table["when"], dayfirst=True))
    for name, X in (("numbers", table[["a", "b"]]), ("dates", dated[["a", "when"]])):
        model = OverlappingCoverRegressor(FIXED, subdomain_size=40, random_state=0)
        model.fit(X, table["y"]).save(folder / f"{name}.ocm")
    return folder


def answers_of(text):
    return pd.read_csv(io.StringIO(text), skip_blank_lines=False)["y"]


@pytest.mark.parametrize("cell", ["", "NA", "12m", "inf", "1,5", "2024-01-01"])
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_no_cell_costs_the_answers_of_other_rows(cell, ending, table, folder, tmp_path):
    rows = table[:6].astype(object)
    whole = answers_of(
        run(0, "predict", folder / "numbers.ocm", "-", stdin=rows.to_csv())[0]
    )
    rows.loc[3, "b"] = cell
    if ending == ".csv":
        rows.to_csv(tmp_path / "q.csv", index=False)
    else:
        rows.astype(str).to_parquet(tmp_path / "q.parquet")
    query = ("predict", folder / "numbers.ocm", tmp_path / f"q{ending}")
    out, err = run(0, *query)
    made = answers_of(out)
    assert made.isna().tolist() == [False] * 3 + [True] + [False] * 2
    assert_array_equal(made.drop(3), whole.drop(3))
    where = "line 5" if ending == ".csv" else "row 3"
    assert re.search(rf"answers of 1 row are empty: .*{where}", err)
    assert "'b'" in err
    told = json.loads(run(0, *query, "--json", "-o", tmp_path / "o.npy")[0])
    assert (told["rows"], told["empty"]) == (6, 1)
    assert where in run(1, *query, "--missing", "refuse")[1]


def test_a_table_that_is_spelled_otherwise_is_refused_with_the_option(table, folder):
    query = ("predict", folder / "numbers.ocm", "-")
    text = table.to_csv(sep=";", decimal=",")
    line = run(1, *query, stdin=text)[1]
    assert "no row can be answered. Give --decimal-comma" in line
    expected = run(0, *query, stdin=table.to_csv())[0]
    assert run(0, *query, "--decimal-comma", stdin=text)[0] == expected


def test_every_command_reads_dates_as_it_is_told(table, folder, tmp_path):
    table.to_csv(tmp_path / "t.csv", index=False)
    model = folder / "dates.ocm"
    assert "--dates dmy" in run(1, "predict", model, tmp_path / "t.csv")[1]
    options = (tmp_path / "t.csv", "--dates", "dmy")
    out, err = run(0, "predict", model, *options, "--keep", "when")
    made = pd.read_csv(io.StringIO(out))
    assert (made["when"].tolist(), err) == (table["when"].tolist(), "")
    dated = table.assign(when=pd.to_datetime(table["when"], dayfirst=True))
    iso = run(0, "predict", model, "-", stdin=dated.to_csv())[0]
    assert_array_equal(answers_of(iso), made["y"])
    scores = run(0, "evaluate", model, *options, "-t", "y", "--json")[0]
    assert json.loads(scores)["rows"] == 80
    mean = ("-t", "y", "--method", "mean", "--json")
    assert json.loads(run(0, "compare", *options, *mean)[0])["rows"] == 80


def test_the_size_of_subdomains_may_be_left_open_in_a_comparison(table, tmp_path):
    table.drop(columns="when").to_csv(tmp_path / "t.csv", index=False)
    compare = ("compare", tmp_path / "t.csv", "-t", "y", "--subdomain-size")
    said = run(0, *compare, "auto", "--method", "odc-tgp", "--json")[0]
    assert [s["method"] for s in json.loads(said)["scores"]] == ["odc-tgp"]
    assert "neither auto nor a number" in " ".join(run(2, *compare, "0")[1].split())


def test_warnings_are_told_in_a_line_and_once():
    said = io.StringIO()
    with pytest.MonkeyPatch.context() as patch, warnings_as_notes():
        patch.setattr(sys, "stderr", said)
        warnings.simplefilter("always")
        for text in ("rows are odd", "rows are odd", "rows are even"):
            warnings.warn(text, stacklevel=1)
    assert said.getvalue() == "note: rows are odd\nnote: rows are even\n"


def test_a_saved_index_is_noticed(tmp_path):
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": rng.normal(size=40), "y": rng.normal(size=40)})
    with pytest.warns(UserWarning, match=r"'c0' numbers the rows.* --drop c0"):
        read(tmp_path, table.to_csv())
    read(tmp_path, table.to_csv(), drop=["c0"])
    read(tmp_path, table.to_csv(index=False))  # a warning would be an error
