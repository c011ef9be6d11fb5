"""Every benchmark runs, on tiny data, so that none of them rots."""

import importlib
import json
import mmap
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


@pytest.fixture
def benchmark_module(monkeypatch):
    """Import a benchmark as its own command would see it."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module


@pytest.fixture
def common(benchmark_module):
    return benchmark_module("_common")


@pytest.fixture
def driver(benchmark_module):
    """The command that runs all others."""
    return benchmark_module("everything")


@pytest.fixture
def data_file(monkeypatch, tmp_path_factory):
    """Write a data file where benchmarks look for it; without one there are none."""
    folder = tmp_path_factory.mktemp("data")
    monkeypatch.setenv("OVERCOVER_DATA", str(folder))

    def write(name, X, Y, n_train):
        arrays = {"X_train": X[:n_train], "Y_train": Y[:n_train]}
        arrays |= {"X_test": X[n_train:], "Y_test": Y[n_train:]}
        np.savez(folder / f"{name}.npz", **arrays)

    return write


@pytest.fixture
def tiny_data(data_file):
    """Stands in for the data files: two outputs, smooth and nearly free of noise."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(160, 3))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1] + X[:, 2]])
    Y += 0.05 * rng.normal(size=Y.shape)
    names = ("tiny", "kin40k", "protein", "sarcos_small", "poserlike", "rf1")
    for name in names:
        data_file(name, X, Y, 120)


def sections(folder):
    """What a benchmark has written, by name."""
    return {path.stem: json.loads(path.read_text()) for path in folder.glob("*.json")}


def test_gp_sections_run_and_leave_a_record(
    benchmark_module, tiny_data, tmp_path, capsys
):
    gp = benchmark_module("gp")
    gp.main(["--quick", "--data", "tiny", "--results", str(tmp_path)])
    written = sections(tmp_path)
    assert set(written) == {f"gp_{name}" for name in gp.SECTIONS}
    for record in written.values():
        assert {"commit", "dirty", "seed", "command", "cpu"} <= set(record["run"])
        assert record["rows"]
    for row in written["gp_routers"]["rows"]:
        assert row["rmse"] < 0.3 and 0.8 < row["coverage_95"] <= 1
    assert written["gp_nn"]["rows"][0]["speed_up"] > 0
    assert "Routers" in capsys.readouterr().out


def test_single_precision_is_held_against_double(
    benchmark_module, tiny_data, tmp_path, capsys
):
    precision = benchmark_module("precision")
    precision.main(["--quick", "--results", str(tmp_path)])
    written = sections(tmp_path)
    rows = written["precision_factors"]["rows"]
    assert [row["data"] for row in rows] == list(precision.NAMES)
    for row in rows:
        assert 0.5 <= row["size_ratio"] <= 1
        assert row["std_relative_max"] < 0.05
    for row in written["precision_store"]["rows"]:
        assert row["noise"] < 1e-2 or row["std_relative_max"] < 1e-4
    said = capsys.readouterr().out
    assert "float64" in said and "Single precision" in said


def test_plans_are_held_against_fits(benchmark_module, tmp_path, capsys):
    planning = benchmark_module("planning")
    planning.main(["--quick", "--results", str(tmp_path)])
    rows = sections(tmp_path)["planning"]["rows"]
    assert [row["into_store"] for row in rows] == [True]
    for row in rows:
        # Factors are planned for in float64, and may do in float32.
        assert 0.8 < row["disk_ratio"] < 2.2
        assert row["seconds_planned"] > 0 and row["seconds_seen"] > 0
    assert "Planned over seen" in capsys.readouterr().out
    planning.main(["--quick", "--budgets", "--results", str(tmp_path)])
    (row,) = sections(tmp_path)["planning_budgets"]["rows"]
    assert row["size"] <= 400 and row["ratio"] > 0


def test_a_cluster_is_simulated(benchmark_module, tmp_path, capsys):
    simulate = benchmark_module("simulate")
    simulate.main(["--quick", "--results", str(tmp_path)])
    rows = sections(tmp_path)["simulate"]["rows"]
    assert [row["n"] for row in rows] == [10**8, 10**9]
    assert rows[1]["total"] > rows[0]["total"] > 0
    # Equal tasks, four times as many as cores: four rounds, and what their times vary.
    cluster, rng = simulate.Cluster(16), np.random.default_rng(0)
    assert 3.6 < cluster.run(512, 1.0, rng) < 5.5
    more = simulate.Cluster(64).run(512, 1.0, rng)
    assert 1.0 < more < 2.1
    # With many short tasks the scheduler decides.
    assert_allclose(cluster.run(10_000, 1e-4, rng), 10.0, rtol=0.01)
    assert "Seconds of the stages" in capsys.readouterr().out


def test_twin_sections_run_and_leave_a_record(
    benchmark_module, tiny_data, tmp_path, capsys
):
    twin = benchmark_module("twin")
    twin.main(["--quick", "--results", str(tmp_path)])
    written = sections(tmp_path)
    assert set(written) == {f"twin_{name}" for name in twin.SECTIONS}
    for row in written["twin_search"]["rows"]:
        assert row["above_loop"] < 1e-6
        assert row["converged"] == 1
    for row in written["twin_cover"]["rows"]:
        assert row["rmse_ratio"] < 2.0
    assert "Covariate shift" in capsys.readouterr().out


def test_the_posterior_is_judged_together_and_tail_by_tail(
    benchmark_module, data_file, tmp_path
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(221, 2))
    flows = np.exp(X[:, :1] + 0.1 * rng.normal(size=(221, 6)))
    data_file("rf1", X, flows, 220)
    posterior = benchmark_module("posterior")
    posterior.KINDS = {"skewed": posterior.KINDS["skewed"]}
    posterior.main(["--quick", "--results", str(tmp_path)])
    written = sections(tmp_path)
    for row in written["posterior_together"]["rows"]:
        assert row["together"] > row["independent"]
    for row in written["posterior_tails"]["rows"]:
        assert {"below", "above", "below_equal", "above_equal"} <= set(row)
    rows = written["posterior_targets"]["rows"]
    assert {row["target"] for row in rows} == {"identity", "auto"}
    assert {row["outputs"] for row in rows} == {"skewed", "river"}
    table = benchmark_module("_posterior_tables").targets(written["posterior_targets"])
    assert table.count("| auto |") == len(rows) / 2


def test_all_systems_run_side_by_side(benchmark_module, tiny_data, tmp_path, capsys):
    options = ["--quick", "--results", str(tmp_path)]
    # The section left out needs GPy.
    benchmark_module("systems").main([*options, "--section", "table,learned,special"])
    benchmark_module("boundaries").main(options)
    written = sections(tmp_path)
    errors = {row["method"]: row["rmse"] for row in written["systems_table"]["rows"]}
    assert errors["cover, p=.9"] < 0.3 and errors["FIC"] < 0.3
    assert {"mixture of GPs", "tree of GPs", "LPR"} < set(errors)
    assert {row["tuning"] for row in written["systems_learned"]["rows"]} == {
        "local",
        "bound",
    }
    special = {row["method"]: row for row in written["systems_special"]["rows"]}
    for name in ("mixture of GPs", "tree of GPs"):
        at_jump = special[name]["rmse_at_jump"]
        assert at_jump < 0.8 * special["full GP"]["rmse_at_jump"]
    for name in ("LPR", "TwinGP"):
        assert special[name]["on_curve"] > 0.9 > special["full GP"]["on_curve"]
    rows = written["boundaries_jumps"]["rows"]
    jumps = {row["method"]: row["mean_jump"] for row in rows}
    assert jumps["full GP"] < 1e-3 < jumps["cover, p=0, RPC (Local-RPC)"]
    assert jumps["cover, p=.9"] < jumps["cover, p=.9, hard"]
    assert jumps["patchwork kriging"] < jumps["cover, p=0, RPC (Local-RPC)"]
    tables = benchmark_module("_system_tables")
    contrast = tables.contrast(written["systems_table"], written["boundaries_jumps"])
    assert contrast.count("\n| ") == len(tables.FACTS)
    assert "| - |" not in contrast  # nothing is left unmeasured
    assert len(written["boundaries_field"]["rows"]) == 12
    for row in written["boundaries_field"]["rows"]:
        assert row["patchwork"] > 0.9 and row["domain_decomposition"] < row["separate"]
    assert tables.boundaries_field(written["boundaries_field"]).count("\n| ") == 4
    for row in written["boundaries_gap"]["rows"]:
        assert abs(row["patchwork"] - row["two_priors"]) < 1e-6
        assert row["two_priors"] < row["one_prior"]
    assert "All systems" in capsys.readouterr().out


def test_a_comparison_runs_and_leaves_a_record(
    benchmark_module, data_file, tmp_path, capsys
):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(151, 3))
    Y = np.column_stack([X[:, 0] - X[:, 1], X[:, 1] + X[:, 2], X[:, 2]])
    Y += 0.1 * rng.normal(size=Y.shape)
    for name in ("kin40k", "poserlike"):
        data_file(name, X, Y, 150)
    benchmark_module("compare").main(["--quick", "--results", str(tmp_path)])
    written = sections(tmp_path)
    assert set(written) == {"compare_kin40k", "compare_poserlike"}
    for record in written.values():
        errors = {row["method"]: row["rmse"] for row in record["rows"]}
        assert errors["ridge"] < 0.2 < errors["mean"]
        assert benchmark_module("_tables").comparison(record).count("\n| ") == 6
    assert "Methods on poserlike" in capsys.readouterr().out


def test_constants_are_settled_without_test_rows(
    benchmark_module, tiny_data, tmp_path, capsys
):
    constants = benchmark_module("constants")
    constants.main(["--quick", "--data", "tiny", "--results", str(tmp_path)])
    rows = sections(tmp_path)["constants"]["rows"]
    choices = len(constants.CANDIDATES) * len(constants.SHARPNESSES)
    assert len(rows) == len(constants.SPREADS) * choices
    assert "held out" in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore:The rows look like a sequence")  # frames are one
def test_pose_runs_and_leaves_a_record(benchmark_module, tmp_path, capsys):
    pose = benchmark_module("pose")
    pose.main(["--quick", "--preset", "humaneva", "--results", str(tmp_path)])
    errors = {r["method"]: r["error"] for r in sections(tmp_path)["pose"]["rows"]}
    assert set(errors) == set(pose.contenders(60))
    assert errors["TwinGP"] < 0.8 * errors["mean"]
    assert "Error of poses" in capsys.readouterr().out


def test_defaults_are_tried_on_unfamiliar_data(
    benchmark_module, tiny_data, tmp_path, capsys
):
    trust = benchmark_module("trust")
    # Poses and kernels take as long as everything else together.
    names = [name for name in trust.SECTIONS if name not in ("pose", "kernels")]
    options = ["--quick", "--results", str(tmp_path), "--section", ",".join(names)]
    kinds = "GP,cover of GP,SparseGP,one hot,many outputs,AR(.9)"
    kinds += ",sine 1-D without noise,kin40k"
    trust.main([*options, "--kinds", kinds])
    written = sections(tmp_path)
    assert set(written) == {f"trust_{name}" for name in names}
    for row in written["trust_weights"]["rows"]:
        changes = [row[key] for key in row if key.startswith(("times", "constant"))]
        assert max(changes, default=0.0) < 1e-8
    pair = written["trust_outputs"]["rows"][0]
    assert pair["r2_free"] > 0.95
    publish = benchmark_module("publish")
    for name, record in written.items():
        tables = [t for t in publish.TABLES.values() if t[0] == name]
        for _, write in tables:
            assert "trust.py --section" in write(record)
    assert "Surprises" in capsys.readouterr().out


def test_partition_runs(benchmark_module, monkeypatch, tmp_path, capsys):
    partition = benchmark_module("partition")
    if find_spec("k_means_constrained") is None:
        refined = partition.CONTENDERS["refined"]
        monkeypatch.setitem(partition.CONTENDERS, "flow", refined)
    partition.main(["--quick", "--results", str(tmp_path)])
    assert "refined" in capsys.readouterr().out
    rows = sections(tmp_path)["partition"]["rows"]
    assert rows["scale"][0]["sizes"] == [35, 36] and rows["two_level"]


def test_a_quick_run_writes_nothing_unless_asked(
    benchmark_module, common, tiny_data, monkeypatch, tmp_path
):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    benchmark_module("gp").main(["--quick", "--data", "tiny", "--section", "memory"])
    assert not list(tmp_path.iterdir())


def test_a_section_that_fails_or_takes_too_long_stops_no_other(
    driver, monkeypatch, tmp_path, capsys
):
    scripts = {"well": "pass", "ill": "1 / 0", "slow": "import time; time.sleep(60)"}
    for name, text in scripts.items():
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(driver.Section, "limit", 2)
    made = {n: driver.Section(f"{tmp_path}/{n}.py", 1) for n in scripts}
    monkeypatch.setattr(driver, "BESIDE", {"slow": made["slow"], "ill": made["ill"]})
    monkeypatch.setattr(driver, "ALONE", {"well": made["well"]})
    assert driver.main(["--results", str(tmp_path), "--logs", str(tmp_path)]) == 1
    said = capsys.readouterr().out
    assert "over its limit of 2 s" in said
    assert "failed (exit code 1)" in said and "Not done: slow, ill." in said
    assert "python benchmarks/everything.py --only slow,ill" in said
    assert "ZeroDivisionError" in (tmp_path / "ill.log").read_text()


def test_what_runs_beside_other_work_reads_the_processors_clock(driver):
    code = "import time, _common; "
    code += "print(time.perf_counter is time.process_time, "
    code += "_common.describe_run()['clock'])"
    for options, said in ((driver.ONE_THREAD, "True processor"), ({}, "False wall")):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)} | options
        command = [sys.executable, "-c", code]
        child = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert child.stdout.strip() == said, child.stderr


def test_everything_takes_no_more_than_fifty_minutes(driver, monkeypatch, capsys):
    names = [*driver.BESIDE, *driver.ALONE]
    assert driver.expected(names, driver.BESIDE | driver.ALONE) <= 50 * 60
    assert driver.expected(["peers"], driver.ALONE) == driver.ALONE["peers"].seconds
    # Nothing starts where a result would be missing in the end.
    monkeypatch.setattr(driver, "refusal", lambda: "not installed: gpboost")
    with pytest.raises(SystemExit):
        driver.main([])
    assert "not installed: gpboost" in capsys.readouterr().err


def test_every_section_of_every_benchmark_is_run(driver, benchmark_module):
    sections = [*driver.ALONE.items(), *driver.BESIDE.items(), *driver.LARGE.items()]
    assert len(dict(sections)) == len(sections)
    run: dict[str, set] = {}
    for _, section in sections:
        script, *options = section.command.removeprefix("-m ").split()
        names = options[-1].split(",") if options and options[-1][:2] != "--" else []
        run.setdefault(Path(script).stem, set()).update(names)
    commands = {p.stem for p in FOLDER.glob("*.py") if "def main(" in p.read_text()}
    assert commands | {"experiments"} == set(run) | {"publish", "everything"}
    for script, names in run.items():
        if names and script != "experiments":
            assert names == set(benchmark_module(script).SECTIONS)
    pages = benchmark_module("publish").experiments.page.SECTIONS
    assert run["experiments"] == set(pages)


def test_an_unknown_section_is_refused(benchmark_module, capsys):
    with pytest.raises(SystemExit):
        benchmark_module("gp").main(["--section", "speed"])
    assert "choose among nn, routers" in capsys.readouterr().err


def test_missing_data_say_where_to_look(common, monkeypatch, tmp_path):
    monkeypatch.setenv("OVERCOVER_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(FileNotFoundError, match="Set OVERCOVER_DATA"):
        common.load("kin40k")
    monkeypatch.setenv("OVERCOVER_DATA", str(tmp_path))
    with pytest.raises(FileNotFoundError, match=r"There is no kin40k.npz"):
        common.load("kin40k")


@pytest.mark.parametrize("is_split", [True, False])
def test_data_are_standardised_by_their_training_rows(
    common, monkeypatch, tmp_path, is_split
):
    rng = np.random.default_rng(0)
    X, Y = 5 + 3 * rng.normal(size=(50, 2)), rng.normal(size=(50, 1))
    X[:, 1] = 7  # a constant column stays finite
    rows = np.random.default_rng(0).permutation(50)
    train, test = rows[:40], rows[40:]
    arrays = {"X": X, "Y": Y}
    if is_split:
        arrays = {"X_train": X[train], "Y_train": Y[train]}
        arrays |= {"X_test": X[test], "Y_test": Y[test]}
    np.savez(tmp_path / "mine.npz", **arrays)
    monkeypatch.setenv("OVERCOVER_DATA", str(tmp_path))
    data = common.load("mine")
    mean, deviation = X[train, 0].mean(), X[train, 0].std()
    assert_allclose(data.X_train[:, 0].std(), 1)
    assert_allclose(data.X_test[:, 0], (X[test, 0] - mean) / deviation)
    assert_allclose(data.X_test[:, 1], 0, atol=1e-12)


def test_scale_runs_and_leaves_a_record(
    benchmark_module, tmp_path, monkeypatch, capsys
):
    monkeypatch.setenv("OVERCOVER_SCRATCH", str(tmp_path))
    scale = benchmark_module("scale")
    scale.main(["--quick", "--results", str(tmp_path)])
    written = sections(tmp_path)
    assert set(written) == {f"scale_{name}" for name in scale.SECTIONS}
    cover = written["scale_million"]["rows"][0]
    assert 0 < cover["rmse_of_f"] < cover["rmse"] < 3
    [pose] = written["scale_pose"]["rows"]
    assert pose["total_s"] >= pose["fit_s"] and pose["error_mm"] < 400
    assert {row["way"] for row in written["scale_store"]["rows"]} == {
        "overcover.load",
        "joblib.load",
    }


def test_metrics_match_their_definitions(common):
    Y, mean = np.array([[1.0], [3.0]]), np.array([[0.0], [3.0]])
    std = np.ones((2, 1))
    assert_allclose(common.rmse(Y, mean), [np.sqrt(0.5)])
    assert_allclose(common.nlpd(Y, mean, std), 0.5 * np.log(2 * np.pi) + 0.25)
    assert common.interval_coverage(Y, mean - 0.5, mean + 0.5) == 0.5


def test_memory_of_a_block_is_seen(common):
    piece = bytes(2**20)
    size = 150 * len(piece)
    if not hasattr(mmap, "MAP_PRIVATE"):
        pytest.skip("this system maps no private memory")
    with common.watched_memory() as used:
        # Pages of its own: an array may be given what the process has freed.
        pages = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        for start in range(0, size, len(piece)):
            pages[start : start + len(piece)] = piece
    if used.peak:  # else this system has no /proc
        assert used.peak - used.start > 0.5 * size


def test_tables_are_encoded_as_well_as_by_a_pipeline(
    benchmark_module, tmp_path, capsys, monkeypatch
):
    frames = benchmark_module("frames")
    names = ["cover, table as it is", "cover, target codes"]
    names += [name for name in ("LightGBM", "CatBoost") if find_spec(name.lower())]
    makers = frames.contenders(60)
    monkeypatch.setattr(
        frames, "contenders", lambda size: {name: makers[name] for name in names}
    )
    frames.main(["--quick", "--results", str(tmp_path)])
    record = sections(tmp_path)["frames_table"]
    assert [row["method"] for row in record["rows"]] == names
    assert record["rows"][0]["rmse"] < 1.0
    _, write = benchmark_module("publish").TABLES["frames"]
    assert "150 training rows, 60 test rows" in write(record)
    assert "A table as it is" in capsys.readouterr().out


def test_compilations_of_a_first_fit_are_listed(benchmark_module, tmp_path):
    benchmark_module("first_use").main(["--quick", "--results", str(tmp_path)])
    (row,) = sections(tmp_path)["first_use"]["rows"]
    assert row["compiled"]["_sweep_pairs"] > 0 and row["compiled_again"] == 0
    _, write = benchmark_module("publish").TABLES["first-use"]
    assert "`_sweep_pairs`" in write(sections(tmp_path)["first_use"])


def test_a_stream_is_learned(benchmark_module, data_file, tmp_path, capsys):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (600, 2))
    Y = np.sin(X[:, :1]) + 0.1 * rng.normal(size=(600, 1))
    data_file("kin40k", X, Y, 400)
    sizes = ["--rows", "400", "--first", "200"]
    benchmark_module("stream").main(["--quick", *sizes, "--results", str(tmp_path)])
    (row,) = sections(tmp_path)["stream"]["rows"]
    assert len(row["batches"]) == 2
    # The model has twice the rows of its first fit just before the end.
    assert row["summary"]["n_retuned"] <= 1
    assert row["batches"][-1]["rows"] == 398
    assert row["summary"]["same"] is True
    assert row["summary"]["error_ratio"] < 1.2
    assert "Learned on against at once" in capsys.readouterr().out
