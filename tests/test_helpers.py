"""Small functions by example: words, tables, cells, blocks of rows, records."""

import signal

import numpy as np
import pytest

pytest.importorskip("typer")

from overcover import _markup as markup
from overcover import advice, explain
from overcover._numbers import numbers_of
from overcover.baselines import committee, local_probabilistic, mixture
from overcover.cli import _columns, _compare, _errors, _show, _stored
from overcover.partition import clusters_of
from overcover.report import _model
from overcover.tables import _cells, _text


def test_numbers_and_lists_in_words():
    assert markup.some(["a", "b"]) == "a, b"
    assert markup.some(["a", "b", "c", "d"], 3) == "a, b, c, ... (1 more)"
    shares = [markup.percent(0.1234), markup.percent(1.0, 0), markup.percent(None)]
    assert shares == ["12.3 %", "100 %", "-"]
    times = [markup.duration(seconds) for seconds in (4.21, 75, 7260)]
    assert times == ["4.2 s", "1 min 15 s", "2 h 1 min"]
    sizes = [markup.size_of(n) for n in (12, 1234, 5_600_000)]
    assert sizes == ["12 bytes", "1.2 kB", "5.6 MB"]
    table = markup.text_table(["row", "target"], [["7", "0.5"]])
    assert table == "row  target\n  7     0.5"
    assert markup.element("p", "1 < 2", id="note") == '<p id="note">1 &lt; 2</p>'
    assert advice.listed(["a", "b", "c"], np.array([True, False, True])) == "a and c"
    assert (
        advice.listed(list("abcdefgh"), np.ones(8, bool)) == "a, b, c, d, e and 3 more"
    )
    assert explain.in_words(np.array([0.5]), np.array([0.1])) == "0.5 +- 0.1"
    assert explain.in_words(np.array([1.0]), None) == "1"
    assert explain.extent([79, 80]) == "79 to 80" and explain.extent([80, 80]) == "80"
    in_days = [True, False]
    assert _model.dates([17531.5, 2.5], in_days) == ["2017-12-31", 2.5]
    assert _model.days([30.0, 2.5], in_days) == ["30 days", "2.5"]
    assert advice.worst_of(0.1, advice.OUTSIDE) == "warning"
    assert advice.worst_of(0.001, advice.OUTSIDE) is None


def test_what_commands_print():
    names = _columns.split_names(["a,b", "c, d"], ["a", "b", "c, d"])
    assert names == ["a", "b", "c, d"]
    ended = _errors.Ended(signal.SIGTERM)
    assert _errors.code_and_word(KeyboardInterrupt()) == (130, "interrupted")
    assert _errors.code_and_word(ended) == (143, "terminated")
    plain = _show.finite_or_none({"a": [1.5, float("inf")], "b": "nan"})
    assert plain == {"a": [1.5, None], "b": "nan"}
    assert (_show.count(1, "row"), _show.count(2000, "row")) == ("1 row", "2,000 rows")
    kept = _stored.names_kept(["id", "y_std"], ["y", "y_std"])
    assert kept == {"id": "id", "y_std": "y_std_given"}
    tests = [test.tolist() for _, test in _compare.splits_of(7, 2, 2, seed=0)]
    assert tests == [[4, 5, 6], [0, 1, 2, 3]]
    assert _compare.mean_or_none([1.0, np.nan]) == 1.0
    assert _compare.mean_or_none([]) is None


def test_cells_and_lines_of_text():
    dates = "1970-01-03 12:00", "1970/01/02", "1970-02", "May"
    assert [_cells._day(date) for date in dates] == [2.5, 1.0, 31.0, None]
    assert [_cells._day(d) for d in ("2.1.1970", "02.01.1970 12:00")] == [1.0, 1.5]
    strange = _cells.strange_cell(np.array(["1/2/2024", "3/4/2024", None], object))
    assert strange[0] == 0 and "the day or the month" in strange[1]
    rows = _text.Rows(["a,b\n", "1,2\n", "\n", "3,4\n"])
    assert (rows.names, list(rows)) == (["a", "b"], ["1,2\n", "3,4\n"])
    assert list(rows.next_lines(2)) == [2, 4]
    with pytest.raises(ValueError, match="1 of 3 places, first in row 2"):
        numbers_of([1, "2", None], "y")


def test_parts_of_baselines():
    means, variances = np.ones((2, 1, 1)), np.full((2, 1), 0.5)
    assert committee.combine("poe", means, variances, np.ones(1))[1] == [0.25]
    Y = np.array([[0.0], [9.0], [1.0], [8.0]])
    assert local_probabilistic.clusters_in(Y, 2).tolist() == [0, 1, 0, 1]
    shares = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    scores = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 1.0]])
    moved = mixture.moved_shares(scores, shares, np.full(3, True), 2)
    assert moved.argmax(axis=1).tolist() == [0, 1, 1]
    clusters = clusters_of(np.array([1, 0, 1, 2]), 3)
    assert [rows.tolist() for rows in clusters] == [[1], [0, 2], [3]]
