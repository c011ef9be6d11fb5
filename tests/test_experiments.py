"""The experiments run, record what they did, and their claims can fail."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="module")
def command(tmp_path_factory):
    """The command's main function, with caches and missing files of its own."""
    patch = pytest.MonkeyPatch()
    patch.syspath_prepend(str(ROOT))
    patch.syspath_prepend(str(ROOT / "benchmarks"))  # as importing the package does
    patch.setenv("SCIKIT_LEARN_DATA", str(tmp_path_factory.mktemp("made")))
    patch.setenv("OVERCOVER_DATA", str(tmp_path_factory.mktemp("no_data")))
    before = set(sys.modules)
    path = list(sys.path)
    from experiments.__main__ import main

    yield main
    sys.path[:] = path
    for name in set(sys.modules) - before:
        if name.split(".")[0] == "experiments":
            del sys.modules[name]
    patch.undo()


@pytest.fixture(scope="module")
def results(command, tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    command(["all", "--scale", "tiny", "--results", str(folder)])
    return folder


def rows_of(results, name):
    return json.loads((results / f"{name}.json").read_text())["rows"]


def test_every_experiment_leaves_its_rows_and_pictures(results):
    from experiments.__main__ import EXPERIMENTS

    assert {path.stem for path in results.glob("*.json")} == set(EXPERIMENTS)
    pictures = {path.stem for path in results.glob("*.png")}
    assert {"parameters-gp-20", "parameters-tgp-20", "consulted", "speed"} <= pictures
    assert {"clusters-5", "clusters-57", "components", "lemma"} <= pictures
    for path in results.glob("*.json"):
        run = json.loads(path.read_text())["run"]
        assert run["command"] == f"python -m experiments {path.stem} --scale tiny"
        assert str(ROOT) not in path.read_text()


def test_the_table_has_the_papers_rows(results):
    from experiments import paper

    rows = rows_of(results, "table")
    found = {(r["data"], r["machine"], r["system"]) for r in rows}
    assert set(paper.TABLE) <= found
    assert ("poser", "smtgp", "NN") in found
    assert ("humaneva", "smtgp", "NN") not in found  # one set is enough
    errors = [r["error"] for r in rows]
    assert np.isfinite(errors).all() and min(errors) > 0


def test_weighted_rows_are_the_papers_and_one_more(results):
    from experiments import paper

    rows = rows_of(results, "weighted")
    for name, theirs in paper.WEIGHTED.items():
        mine = {r["system"]: r for r in rows if r["data"] == name}
        assert set(mine) == {*theirs, "NN, one ratio"}
        assert mine["NN"]["M_tst"] > 1
        assert mine["NN"]["error"] != mine["NN, one ratio"]["error"]


def test_readings_differ_where_several_answer_only(results):
    rows = rows_of(results, "readings")
    errors = {(r["machine"], r["p"], r["K'"], r["router"]): r["error"] for r in rows}
    for (kind, p, k, router), error in errors.items():
        if router == "mahalanobis":
            other = errors[kind, p, k, "mahalanobis-squared"]
            assert (error == other) == (k == 1)


def test_overlap_and_more_consulted_are_asked_for(results):
    rows = rows_of(results, "parameters")
    assert {r["K'"] for r in rows} == {1, 2, 3}
    assert {r["p"] for r in rows} == {0.0, 0.5}
    # A cover without overlap has as few subdomains as there can be.
    assert len({r["K"] for r in rows if r["p"] == 0.0}) == 1


def test_the_page_gives_a_verdict_on_every_claim(results, tmp_path):
    from experiments.claims import CLAIMS
    from experiments.page import SECTIONS, write_page

    page = write_page(results, tmp_path / "page.md").read_text()
    assert page.count("| holds |") + page.count("| **does not hold** |") == len(CLAIMS)
    assert page.count("\n## ") == len(SECTIONS) + 1


def test_the_page_says_what_was_not_run(results, tmp_path):
    from experiments.page import write_page

    (tmp_path / "lemma.json").write_text((results / "lemma.json").read_text())
    page = write_page(tmp_path, tmp_path / "page.md").read_text()
    assert page.count("not run") == 11


@pytest.mark.parametrize("count", [1, 2, 3])
def test_asking_once_for_all_numbers_of_consulted_is_predicting(command, count):
    from experiments.definitions import SCALES
    from experiments.machinery import cover_of, load, means_by_consulted, tuned

    scale = SCALES["tiny"]
    problem = load("humaneva", scale)
    model = cover_of(tuned(problem, scale, "gp"), 20, overlap=0.5, partition="ab")
    model.fit(problem.X_train, problem.Y_train)
    found = means_by_consulted(model, problem.X_test, (1, 2, 3))[count]
    model.set_params(n_consulted=count)
    assert_allclose(found, model.predict(problem.X_test), rtol=1e-9, atol=1e-9)


def test_claims_can_fail(command):
    from experiments.claims import size_helps, speed_grows, twin_beats_gp

    def speeds(kind, *values):
        return [
            {"machine": kind, "M": 100 * i, "speed_up": v, "error": 1 / v, "unit": "mm"}
            for i, v in enumerate(values, 1)
        ]

    good = {"speed": speeds("gp", 2.0, 3.0) + speeds("tgp", 4.0, 8.0)}
    bad = {"speed": speeds("gp", 2.0, 3.0) + speeds("tgp", 8.0, 4.0)}
    for claim in (size_helps, speed_grows):
        assert claim(good).holds and not claim(bad).holds
    table = [
        {"data": "a", "machine": k, "system": "ODC ab p=0.9", "error": e, "unit": "mm"}
        for k, e in (("gp", 2.0), ("tgp", 1.0))
    ]
    assert twin_beats_gp({"table": table}).holds
    table[0]["error"] = 0.5
    assert not twin_beats_gp({"table": table}).holds


def test_an_unknown_experiment_is_refused(command, capsys):
    with pytest.raises(SystemExit):
        command(["tables"])
    assert "no experiment 'tables'; choose among parameters" in capsys.readouterr().err
