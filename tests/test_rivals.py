"""Contenders of other packages run on tiny data; mixed results are refused."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
# Modules that a contender needs beyond those of this package.
NEEDED = {
    "GPyTorch SVGP": "gpytorch",
    "GPyTorch SGPR": "gpytorch",
    "GPBoost Vecchia": "gpboost",
    "MuyGPyS": "MuyGPyS",
    "LightGBM": "lightgbm",
    "CatBoost": "catboost",
    "MAPIE + LightGBM": "mapie",
}
NAMES = ("overcover", "scikit-learn GP", "nearest neighbours", "Bayesian ridge")


@pytest.fixture
def benchmark_module(monkeypatch):
    """Import a benchmark as its own command would see it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def rivals(benchmark_module):
    return benchmark_module("rivals")


@pytest.fixture
def waves(rivals):
    """Two outputs, nearly linear, so that even a plane predicts them."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    Y = np.column_stack([X[:, 0] + 0.2 * np.sin(X[:, 1]), X[:, 1] - X[:, 2]])
    Y += 0.1 * rng.normal(size=Y.shape)
    return rivals._common.Data("waves", X[:200], Y[:200], X[200:], Y[200:])


@pytest.fixture
def files(waves, tmp_path, monkeypatch):
    """The same data in a file, for processes that read it themselves."""
    arrays = {key: getattr(waves, key) for key in ("X_train", "X_test")}
    constant = {"Y_train": np.zeros((200, 1)), "Y_test": np.zeros((100, 1))}
    for key, column in constant.items():
        arrays[key] = np.hstack([column, getattr(waves, key)])
    np.savez(tmp_path / "waves.npz", **arrays)
    monkeypatch.setenv("OVERCOVER_DATA", str(tmp_path))
    return tmp_path


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*NAMES, *NEEDED])
def test_a_contender_predicts_with_intervals(rivals, waves, name):
    if name in NEEDED:
        pytest.importorskip(NEEDED[name])
    make = rivals.peers.CONTENDERS[name]
    assert make.settings.endswith(".") and make.packages
    contender = make(n_threads=1, seed=0)
    contender.fit(waves.X_train, waves.Y_train)
    row = rivals.scores(contender.predict(waves.X_test), waves.Y_test)
    assert row["rmse"] < 0.8
    assert 0.5 < row["coverage_95"] <= 1  # some are far too sure on 200 rows
    assert 0.2 < row["width"] < 5


def test_scores_match_their_definitions(rivals):
    Y, mean = np.array([[0.0], [2.0]]), np.array([[0.0], [0.0]])
    std = np.ones((2, 1))
    row = rivals.scores((mean, std, None, None), Y)
    assert_allclose(row["width"], 2 * 1.959964, rtol=1e-6)
    assert row["coverage_95"] == 0.5
    assert_allclose(row["nlpd"], 0.5 * np.log(2 * np.pi) + 1.0)
    row = rivals.scores((mean, None, mean - 3, mean + 3), Y)
    assert row["nlpd"] is None and row["coverage_95"] == 1.0 and row["width"] == 6.0
    with pytest.raises(FloatingPointError, match="not finite"):
        rivals.scores((mean * np.nan, None, None, None), Y)


def test_contenders_run_in_processes_and_become_tables(
    rivals, benchmark_module, files, capsys
):
    only = "nearest neighbours,Bayesian ridge"
    options = ["--quick", "--data", "waves", "--results", str(files)]
    rivals.main([*options, "--only", only])
    record = json.loads((files / "peers.json").read_text())
    for row in record["rows"]:
        assert "reason" not in row
        assert row["n_outputs"] == 2  # not the constant one
        assert row["peak_mb"] > 10 and row["fit_cpu_s"] >= 0
        assert row["versions"]["scikit-learn"]
    errors = {row["method"]: row["rmse"] for row in record["rows"]}
    best = min(errors, key=errors.get)
    tables = benchmark_module("_peer_tables")
    number = tables.number(errors[best])
    assert f"| {best} | **{number}** |" in tables.full(record)
    assert "`BayesianRidge` with its defaults." in tables.settings(record)
    assert "Every method ran" in tables.missing(record)
    assert "waves, one thread" in capsys.readouterr().out


def test_a_contender_that_is_too_slow_or_fails_says_so(rivals, files):
    settings = rivals.QUICK._replace(n_train=200, budget=1)
    row = rivals.in_own_process("nowhere", "Bayesian ridge", settings, 1)
    assert "There is no nowhere.npz" in row["reason"]
    # Twenty length scales on 800 rows take far more than a second.
    big = np.random.default_rng(0).normal(size=(4000, 20))
    arrays = {"X_train": big, "Y_train": big[:, :1], "X_test": big[:10]}
    np.savez(files / "big.npz", **arrays, Y_test=big[:10, :1])
    settings = rivals.QUICK._replace(n_train=None, budget=1)
    row = rivals.in_own_process("big", "scikit-learn GP", settings, 1)
    assert row["reason"] == "over its budget of 1 processor s"


def test_an_unknown_contender_is_refused(rivals, capsys):
    with pytest.raises(SystemExit):
        rivals.main(["--only", "magic"])
    assert "choose among overcover" in capsys.readouterr().err


def record_of(commit, source, dirty=False):
    return json.dumps({"run": {"commit": commit, "source": source, "dirty": dirty}})


@pytest.fixture
def publish(benchmark_module, tmp_path, monkeypatch):
    """The command, with folders of its own and no page."""
    publish = benchmark_module("publish")
    for name in ("RESULTS", "EXPERIMENTS"):
        monkeypatch.setattr(publish, name, tmp_path / name)
        (tmp_path / name).mkdir()
    monkeypatch.setattr(publish, "PAGES", ())
    return publish


def test_results_of_different_sources_are_refused(publish, tmp_path, capsys):
    ours, theirs = tmp_path / "RESULTS" / "peers.json", tmp_path / "EXPERIMENTS"
    (theirs / "table.json").write_text(record_of("a" * 40, "1" * 40))
    ours.write_text(record_of("b" * 40, "1" * 40))
    # Two commits with the same package belong together.
    assert publish.objection() is None
    ours.write_text(record_of("b" * 40, "2" * 40))
    message = publish.objection()
    assert "table.json (commit aaaaaaa)" in message
    assert "peers.json (commit bbbbbbb)" in message and "--mixed" in message
    assert publish.main([]) == 2
    said = capsys.readouterr().err
    assert "different versions" in said
    assert "not measured: " in said and "gp_nn.json" in said
    assert "peers.json" not in said.splitlines()[0]
    ours.write_text(record_of("b" * 40, "1" * 40, dirty=True))
    assert "changed checkouts: peers.json" in publish.objection()


def test_large_results_may_be_of_another_commit(publish, tmp_path):
    for name in ("peers", *publish.LARGE):
        path = tmp_path / "RESULTS" / f"{name}.json"
        path.write_text(record_of("a" * 40, str(len(name)) * 40, dirty=name != "peers"))
    assert publish.objection() is None


def test_a_run_names_the_source_of_the_package(benchmark_module):
    common = benchmark_module("_common")
    run = common.describe_run()
    if run["commit"] is None:
        pytest.skip("this is no git checkout")
    # An old record without a source is traced by its commit.
    assert common.source_of({"commit": run["commit"]}) == run["source"]
