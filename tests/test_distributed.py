"""On a cluster a fit is the local fit, whatever happens to workers, and moves no array.

One cluster of two processes for the whole file.
"""

import os
import pickle
import signal
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import overcover
from overcover import GP, OverlappingCoverRegressor, TwinGP, TwoLevelKMeans, store
from overcover import distributed as on_cluster
from overcover.consult import panel_of

pytest.importorskip("distributed", reason="needs pip install 'overcover[dask]'")
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster


@pytest.fixture(scope="module")
def cluster():
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": ":0"}
    with LocalCluster(**options, silence_logs=50) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def client(cluster):
    with Client(cluster) as client:
        yield client


# A machine that need not be tuned.
KNOWN = GP(length_scale=1.0, noise=0.1)


def data(n_rows=240):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (n_rows, 2))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]])
    return X, Y + 0.05 * rng.normal(size=Y.shape)


def make_model(machine=None, **options):
    # Scales are chosen before the stages, and again when a fit goes on.
    few = {"subdomain_size": 20, "overlap": 0.5, "random_state": 0}
    options = few | {"target": "identity"} | options
    machine = GP(noise=0.01) if machine is None else machine
    return OverlappingCoverRegressor(machine, **options)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ocm"


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The local fit, in a store, and its path."""
    path = tmp_path_factory.mktemp("local") / "local.ocm"
    return store.fit_into(make_model(), *data(), path), path


def check_equal_stores(path, other):
    """Same files but for the seconds that stages took, and nothing else there."""
    store.verify(path)
    manifests = [store._directory.read_manifest(p) for p in (path, other)]
    first, second = ([d for d, _ in m["files"]["subdomains"]] for m in manifests)
    assert first == second
    a, b = overcover.load(path), overcover.load(other)
    X = data()[0]
    assert_array_equal(a.predict(X, return_std=True), b.predict(X, return_std=True))
    assert_array_equal(a.router_.means, b.router_.means)
    (folder,) = (entry for entry in Path(path).iterdir() if entry.is_dir())
    assert len(list(Path(path).iterdir())) == 2
    assert len(list(folder.iterdir())) == a.n_subdomains_ + 1


# -- the fit ------------------------------------------------------------------------


def test_a_fit_on_a_cluster_is_the_local_fit(client, expected, path):
    model = make_model(n_jobs=2)
    assert on_cluster.fit(model, *data(), path, client) is model
    check_equal_stores(path, expected[1])
    assert model.n_jobs == 2
    stages = {"scales", "tuning", "partition", "cover", "machines"}
    assert set(model.timings_) == stages
    # Known again by its fingerprint, on a cluster or not.
    (folder,) = (entry for entry in path.iterdir() if entry.is_dir())
    for again in (on_cluster.fit, store.fit_into):
        again(make_model(), *data(), path)
        assert folder.exists()


@pytest.mark.parametrize("partition", ["kmeans", TwoLevelKMeans(n_shards=2)])
def test_sizes_by_the_rule_of_auto_are_the_local_ones(
    partition, client, path, tmp_path
):
    options = {"subdomain_size": "auto", "overlap": 0.0, "partition": partition}
    model = make_model(GP(length_scale=1.0, noise=0.01), **options)
    X, Y = data(850)
    on_cluster.fit(model, X, Y, path, client)
    assert (model.subdomain_size_, model.n_subdomains_) == (400, 3)
    store.fit_into(model, X, Y, tmp_path / "local.ocm")
    check_equal_stores(path, tmp_path / "local.ocm")


def test_outputs_go_to_another_scale_on_the_workers_too(client, path, tmp_path):
    X, Y = data()
    Y = np.exp(Y)
    model = make_model(GP("rbf", noise=0.01), target="auto")
    on_cluster.fit(model, X, Y, path, client)
    assert "log" in model.target_.names
    local = store.fit_into(
        make_model(model.machine, target="auto"), X, Y, tmp_path / "l"
    )
    check_equal_stores(path, tmp_path / "l")
    means = on_cluster.predict(model, X, client, return_std=True)
    assert_array_equal(means, local.predict(X, return_std=True))
    of_function = {"return_std": True, "noise": False}
    means = on_cluster.predict(model, X, client, **of_function)
    assert_array_equal(means, local.predict(X, **of_function))


@pytest.mark.parametrize("router", ["variance", "neighbors"])
def test_twin_gps_with_weights_and_targets_too(router, client, path, tmp_path):
    X, Y = data(120)
    machine = overcover.ImportanceWeightedTwinGP(0.9, 0.9, 0.02, 0.02)
    if router == "variance":
        machine = TwinGP(0.9, 0.9, 0.02, 0.02)
    weight = np.linspace(0, 2, len(X)).round(1)
    assert (weight == 0).any()
    arguments = {"sample_weight": weight}
    if router == "neighbors":
        arguments["X_target"] = X[:40] * 0.5
    model = make_model(machine, router=router)
    store.fit_into(model, X, Y, tmp_path / "local.ocm", **arguments)
    on_cluster.fit(model, X, Y, path, client, **arguments)
    check_equal_stores(path, tmp_path / "local.ocm")


def test_groups_are_held_out_together_on_a_cluster_too(client, tmp_path):
    """In memory, into a store and on a cluster the model is the same."""
    X, Y = data(120)
    X[7], Y[7] = X[3], Y[3]  # equal rows are merged
    groups = np.arange(len(X)) % 12
    np.save(tmp_path / "groups.npy", groups)
    words = np.array([f"patient {i:02d}" for i in groups])
    weight = np.where(groups == 1, 0.0, 1.0)
    known = {"sample_weight": weight}
    memory = make_model(GP()).fit(X, Y, groups=words, **known)
    local = tmp_path / "local.ocm"
    stored = store.fit_into(make_model(GP()), X, Y, local, groups=words, **known)
    assert_array_equal(stored.predict(X, True), memory.predict(X, True))
    for i, given in enumerate((words, tmp_path / "groups.npy", da.from_array(groups))):
        path = tmp_path / str(i)
        on_cluster.fit(make_model(GP()), X, Y, path, client, groups=given, **known)
        check_equal_stores(path, local)
    with pytest.raises(ValueError, match="groups has shape"):
        on_cluster.fit(make_model(), X, Y, tmp_path / "x", client, groups=groups[:-1])
    assert not (tmp_path / "x").exists()


def test_what_a_worker_warns_of_is_noted(client, path):
    X, Y = data(120)
    machine = overcover.ImportanceWeightedTwinGP(0.9, 0.9, 0.02, 0.02)
    model = make_model(machine)
    on_cluster.fit(model, X, Y, path, client, X_target=X[:20] + 50.0)
    (note,) = model.notes_
    assert note.startswith("Training and target rows hardly overlap")
    assert overcover.load(path).notes_ == model.notes_


def test_files_frames_and_dask_collections_give_the_same_model(client, tmp_path):
    X, Y = data(120)
    local = store.fit_into(make_model(KNOWN), X, Y, tmp_path / "local.ocm")
    for name, array in (("X", X), ("Y", Y), ("F", np.asfortranarray(X))):
        np.save(tmp_path / f"{name}.npy", array)
    frame = pd.DataFrame(X, columns=["a", "b"])
    table = dd.from_pandas(frame, npartitions=3)
    outputs = dd.from_pandas(pd.DataFrame(Y), npartitions=2)
    for i, (rows, targets) in enumerate(
        [
            (tmp_path / "X.npy", str(tmp_path / "Y.npy")),
            (tmp_path / "F.npy", Y.tolist()),
            (da.from_array(X, (50, 1)), da.from_array(Y, (100, 2))),
            (frame, Y),
            (table, outputs),
            (table.to_dask_array(), outputs.to_dask_array()),
        ]
    ):
        path = tmp_path / f"{i}.ocm"
        model = on_cluster.fit(make_model(KNOWN), rows, targets, path, client)
        named = hasattr(rows, "columns")
        assert list(getattr(model, "feature_names_in_", [])) == ["a", "b"] * named
        asked = frame if named else X
        assert_array_equal(model.predict(asked), local.predict(X))
        if not named:
            check_equal_stores(path, tmp_path / "local.ocm")
    assert_array_equal(np.load(tmp_path / "X.npy"), X)


def test_one_output_and_single_precision(client, path, tmp_path):
    X, Y = data()
    y = da.from_array(Y[:, 0], 70)
    on_cluster.fit(make_model(KNOWN), X, y, path, client, dtype="float32")
    store.fit_into(make_model(KNOWN), X, Y[:, 0], tmp_path / "x", dtype="float32")
    check_equal_stores(path, tmp_path / "x")


# -- faults -------------------------------------------------------------------------


def test_a_killed_worker_costs_its_work_and_changes_nothing(
    client, cluster, path, tmp_path
):
    X, Y = data(1500)
    # About 10 ms each, 120 of them: the kill comes while they are fitted.
    options = {"subdomain_size": 100, "overlap": 0.875, "router": "euclidean"}
    machine = TwinGP(0.9, 0.9, 0.02, 0.02)
    pids = client.run(os.getpid)
    killed = []

    def kill_midway():
        while not killed:
            if len(list(path.glob("data-*/0*.pack"))) >= 3:
                before = {p.name for p in path.glob("data-*/0*.pack")}
                os.kill(next(iter(pids.values())), signal.SIGKILL)
                killed.append(before)
            time.sleep(0.002)

    killer = threading.Thread(target=kill_midway, daemon=True)
    killer.start()
    model = on_cluster.fit(make_model(machine, **options), X, Y, path, client)
    killer.join(10)
    assert 3 <= len(killed[0]) < model.n_subdomains_
    store.fit_into(make_model(machine, **options), X, Y, tmp_path / "local.ocm")
    check_equal_stores(path, tmp_path / "local.ocm")
    client.wait_for_workers(2)
    assert set(client.run(os.getpid).values()) != set(pids.values())


def test_an_interrupted_fit_is_taken_up_by_whoever_comes(client, expected, path):
    """On the cluster, or on one computer; what is there is not done again."""
    write = store._subdomains.write_tree

    def stop(*args):
        raise KeyboardInterrupt

    def stop_after_three(path, *args, **options):
        if path.name == "000003.pack":
            raise KeyboardInterrupt
        return write(path, *args, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("overcover.store._fit.write_tree", stop_after_three)
        with pytest.raises(KeyboardInterrupt):
            store.fit_into(make_model(), *data(), path)
    files = [*path.glob("data-*/00000[0-2].pack"), *path.glob("data-*/cover.pack")]
    assert len(files) == 4
    times = [file.stat().st_mtime_ns for file in files]
    with pytest.raises(store.StoreError, match="unfinished fit of other data"):
        on_cluster.fit(make_model(random_state=1), *data(), path, client)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("overcover.store._fit.commit", stop)
        with pytest.raises(KeyboardInterrupt):
            on_cluster.fit(make_model(), *data(), path, client)
    assert [file.stat().st_mtime_ns for file in files] == times
    n_subdomains = expected[0].n_subdomains_
    assert len(list(path.glob("data-*/0*.pack"))) == n_subdomains
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(GP, "fit_state", None)  # would fail if it were called
        store.fit_into(make_model(), *data(), path)
    check_equal_stores(path, expected[1])


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda X, Y: (np.where(X > 1.9, np.nan, X), Y), "NaN"),
        (lambda X, Y: (X, Y[:-1]), "inconsistent numbers of samples"),
        (lambda X, Y: (X[:, 0], Y), "2D array"),
        (lambda X, Y: (da.from_array(X.astype(str)), Y), "not of numbers"),
        (lambda X, Y: ("nowhere.npy", Y), "nowhere.npy cannot be mapped"),
    ],
)
def test_wrong_data_are_refused_and_leave_nothing(change, match, client, path):
    model = make_model()
    with pytest.raises(ValueError, match=match):
        on_cluster.fit(model, *change(*data()), path, client)
    assert not path.exists()
    assert not hasattr(model, "states_")


def test_wrong_models_and_paths_are_refused(client, path, tmp_path):
    (tmp_path / "foreign").mkdir()
    (tmp_path / "foreign" / "thesis.txt").touch()
    for model, target, match in [
        (make_model(overlap=2.0), path, "overlap=2.0"),
        (make_model(overcover.AnyRegressor()), path, "pickl"),
        (make_model(TwinGP(metric=lambda a, b: 0.0)), path, "function"),
        (make_model(), tmp_path / "foreign", "is not a store"),
    ]:
        with pytest.raises(ValueError, match=match):
            on_cluster.fit(model, *data(), target, client)
    with pytest.raises(store.StoreError, match=r"is not in a store.*model\.save"):
        on_cluster.predict(make_model().fit(*data()), data()[0], client)
    assert [entry.name for entry in tmp_path.iterdir()] == ["foreign"]


def test_a_path_that_a_worker_cannot_see_is_refused(client, path, monkeypatch):
    first = os.getpid()
    monkeypatch.setattr("os.access", lambda *of: os.getpid() == first)
    with pytest.raises(store.StoreError, match=r"2 of 2 workers \(tcp.*share"):
        on_cluster.fit(make_model(), *data(), path, client)
    assert not path.exists()


def test_a_client_is_needed_that_is_open(cluster, path):
    with Client(cluster, set_as_default=False) as closed:
        pass
    with pytest.raises(ValueError, match="is closed"):
        on_cluster.fit(make_model(), *data(), path, closed)
    with pytest.raises(TypeError, match=r"must be a distributed\.Client"):
        on_cluster.fit(make_model(), *data(), path, "tcp://scheduler:8786")
    assert not path.exists()


def test_without_dask_the_error_names_the_extra(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)  # as if not installed
    with pytest.raises(ImportError, match=r"pip install 'overcover\[dask\]'"):
        on_cluster.fit(make_model(), *data(), path)
    assert not path.exists()


# -- what moves ---------------------------------------------------------------------


class Ledger:
    """Of a scheduler: the bytes of all tasks and of all results."""

    def __init__(self, scheduler):
        from distributed.diagnostics.plugin import SchedulerPlugin

        ledger = self
        self.tasks, self.results = {}, {}

        class Plugin(SchedulerPlugin):
            def transition(self, key, start, finish, *args, **kwargs):
                task = scheduler.tasks.get(key)
                # Not tasks of other tests, which are being forgotten.
                if finish == "processing":
                    ledger.tasks[key] = len(pickle.dumps(task.run_spec))
                if finish == "memory":
                    ledger.results[key] = task.nbytes

        self.scheduler, self.plugin = scheduler, Plugin()

    def __enter__(self):
        self.scheduler.add_plugin(self.plugin, name="ledger")
        return self

    def __exit__(self, *error):
        self.scheduler.remove_plugin("ledger")


def test_the_scheduler_sees_paths_and_numbers_however_many_rows(
    client, cluster, tmp_path
):
    largest = []
    for n_rows in (200, 1200):
        X, Y = data(n_rows)
        size = n_rows // 10  # the same number of subdomains
        # What a machine has learned elsewhere stays where it is.
        machine = GP(length_scale=1.0, noise=0.1).fit(X, Y)
        model = make_model(machine, subdomain_size=size)
        path = tmp_path / f"{n_rows:04d}.ocm"
        with Ledger(cluster.scheduler) as ledger:
            on_cluster.fit(model, X, Y, path, client)
            on_cluster.predict(path, X, client, return_std=True)
        n_machines = sum("fit_subdomains" in key for key in ledger.tasks)
        assert n_machines == model.n_subdomains_ == 20
        # Besides: fingerprint and used rows, four stages (the cover in two steps), and
        # one range of queries.
        assert len(ledger.tasks) == n_machines + 7
        largest.append([max(ledger.tasks.values()), max(ledger.results.values())])
    assert_allclose(*largest, atol=8)  # a larger number has more digits
    assert np.max(largest) < 2000


def test_many_subdomains_are_fitted_in_few_tasks(client, cluster, path):
    X, Y = data(1500)
    model = make_model(KNOWN, router="euclidean")
    with Ledger(cluster.scheduler) as ledger:
        on_cluster.fit(model, X, Y, path, client)
    assert model.n_subdomains_ == 150
    assert sum("fit_subdomains" in key for key in ledger.tasks) <= 20


# -- shards -------------------------------------------------------------------------


def make_sharded(machine=None, n_shards=4, **options):
    machine = KNOWN if machine is None else machine
    return make_model(machine, partition=TwoLevelKMeans(n_shards=n_shards), **options)


@pytest.mark.parametrize("router", ["density", "neighbors"])
def test_a_sharded_fit_is_the_local_fit(router, client, path, tmp_path):
    X, Y = data(400)
    weight = np.linspace(0, 2, len(X)).round(1)
    options = {"router": router, "overlap": 0.0 if router == "neighbors" else 0.75}
    local = tmp_path / "local.ocm"
    store.fit_into(make_sharded(**options), X, Y, local, sample_weight=weight)
    model = make_sharded(**options)
    on_cluster.fit(model, X, Y, path, client, sample_weight=weight)
    check_equal_stores(path, local)
    stages = {"scales", "tuning", "partition", "cover", "machines"}
    assert set(model.timings_) == stages


def test_wide_rows_are_sharded_alike(client, path, tmp_path):
    """Distances are products then, whose rounding depends on the blocks."""
    X = np.random.default_rng(1).normal(size=(500, 14))
    models = [make_sharded(random_state=4) for _ in range(2)]
    local = store.fit_into(models[0], X, X[:, 0], tmp_path / "local.ocm")
    result = on_cluster.fit(models[1], X, X[:, 0], path, client)
    assert_array_equal(result.router_.means, local.router_.means)
    assert_array_equal(result.predict(X), local.predict(X))


def test_a_worker_killed_while_rows_are_sharded_changes_nothing(
    client, cluster, path, tmp_path
):
    X, Y = data(1200)
    client.wait_for_workers(2)
    pids = client.run(os.getpid)
    killed = []

    def kill_midway():
        while not killed:
            if list(path.glob("data-*/shard-00000[0-3].pack")):
                os.kill(next(iter(pids.values())), signal.SIGKILL)
                killed.append(list(path.glob("data-*/partition.pack")))
            time.sleep(0.001)

    killer = threading.Thread(target=kill_midway, daemon=True)
    killer.start()
    on_cluster.fit(make_sharded(n_shards=8), X, Y, path, client)
    killer.join(10)
    assert killed == [[]]
    store.fit_into(make_sharded(n_shards=8), X, Y, tmp_path / "local.ocm")
    check_equal_stores(path, tmp_path / "local.ocm")


def test_an_interrupted_sharded_fit_is_taken_up_by_whoever_comes(
    client, path, tmp_path, monkeypatch
):
    X, Y = data(600)
    runner = on_cluster._fit.OnCluster
    do = runner.do
    kept = {}
    for last, names in [("lend", "shard"), ("join_loans", "loans")]:

        def do_until(self, function, *args, last=last):
            if function.__name__ == last:
                raise KeyboardInterrupt
            return do(self, function, *args)

        with monkeypatch.context() as patch:
            patch.setattr(runner, "do", do_until)
            with pytest.raises(KeyboardInterrupt):
                on_cluster.fit(make_sharded(), X, Y, path, client)
        # What is there is not done again.
        for file, changed in kept.items():
            assert not file.exists() or file.stat().st_mtime_ns == changed
        files = list(path.glob(f"data-*/{names}-*.pack"))
        assert len(files) == {"shard": 4, "loans": 1}[names]
        kept |= {file: file.stat().st_mtime_ns for file in files}
    with monkeypatch.context() as patch:
        patch.setattr(TwoLevelKMeans, "fit", None)  # would fail if it were called
        store.fit_into(make_sharded(), X, Y, path)
    store.fit_into(make_sharded(), X, Y, tmp_path / "local.ocm")
    check_equal_stores(path, tmp_path / "local.ocm")


@pytest.mark.parametrize("stage", ["cover_partition", "make_router"])
def test_a_cluster_goes_on_where_one_computer_left_a_sharded_fit(
    stage, client, path, tmp_path, monkeypatch
):
    def stop(*args):
        raise KeyboardInterrupt

    X, Y = data(400)
    with monkeypatch.context() as patch:
        patch.setattr(f"overcover.fitting.{stage}", stop)
        with pytest.raises(KeyboardInterrupt):
            store.fit_into(make_sharded(), X, Y, path)
    on_cluster.fit(make_sharded(), X, Y, path, client)
    store.fit_into(make_sharded(), X, Y, tmp_path / "local.ocm")
    check_equal_stores(path, tmp_path / "local.ocm")


def test_tasks_of_shards_carry_paths_and_numbers_too(client, cluster, tmp_path):
    largest = []
    for n_rows in (400, 1600):
        X, Y = data(n_rows)
        model = make_sharded(subdomain_size=n_rows // 20, router="euclidean")
        with Ledger(cluster.scheduler) as ledger:
            on_cluster.fit(model, X, Y, tmp_path / f"{n_rows:04d}.ocm", client)
        assert model.n_subdomains_ == 40
        names = Counter(key.rsplit("-", 5)[0] for key in ledger.tasks)
        # Four shards, one range of clusters.
        several = {"cluster_shard": 4, "fit_subdomains": names["fit_subdomains"]}
        several["run_stage"] = 2  # tuning and the router
        alone = ("prepare", "divide", "join_shards", "lend", "join_loans")
        assert names == dict.fromkeys(alone, 1) | several
        largest.append([max(ledger.tasks.values()), max(ledger.results.values())])
    assert_allclose(*largest, atol=16)
    assert np.max(largest) < 2000


# -- predictions --------------------------------------------------------------------


@pytest.mark.parametrize("return_std", [False, True])
def test_predictions_are_those_of_the_model(
    return_std, client, expected, tmp_path, monkeypatch
):
    model, path = expected
    monkeypatch.setattr("overcover.consult.ROUND_BYTES", 10**5)
    assert panel_of(model).rows_per_round < 1000
    rng = np.random.default_rng(3)
    X = rng.uniform(-2, 2, (1500, 2)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    wanted = model.predict(X, return_std=return_std)
    for asked, queries in ((path, X), (str(path), tmp_path / "X.npy"), (model, X)):
        result = on_cluster.predict(asked, queries, client, return_std=return_std)
        assert_array_equal(result, wanted)
    assert os.listdir(path.parent) == [path.name]


def test_dask_arrays_are_answered_lazily_and_block_by_block(client, expected):
    model, path = expected
    X = np.random.default_rng(3).uniform(-2, 2, (500, 2))
    blocks = [X[:200], X[200:400], X[400:]]
    wanted = [model.predict(block, return_std=True) for block in blocks]
    lazy = da.from_array(X, (200, 1))
    mean, std = on_cluster.predict(path, lazy, return_std=True)
    assert isinstance(mean, da.Array)
    assert (mean.shape, mean.chunks) == ((500, 2), ((200, 200, 100), (2,)))
    assert_array_equal(mean.compute(), np.vstack([m for m, _ in wanted]))
    assert_array_equal(std.compute(), np.vstack([s for _, s in wanted]))
    result = on_cluster.predict(model, lazy).compute()
    assert_allclose(result, model.predict(X), rtol=1e-9, atol=1e-9)


def test_dask_frames_keep_their_index(client, tmp_path):
    X, Y = data()
    index = np.arange(1000, 1000 + len(X))
    frame = pd.DataFrame(X, columns=["a", "b"], index=index)
    lazy = dd.from_pandas(frame, npartitions=3)
    for name, targets in (("one", Y[:, 0]), ("two", Y)):
        model = make_model(KNOWN).fit(frame, targets)
        model.save(tmp_path / name)
        mean, std = on_cluster.predict(tmp_path / name, lazy, return_std=True)
        alone = on_cluster.predict(tmp_path / name, lazy)
        assert type(mean) is type(alone)
        wanted = model.predict(frame, return_std=True)
        for part, values in ((mean, wanted[0]), (std, wanted[1]), (alone, wanted[0])):
            result = part.compute()
            assert_array_equal(result.index, index)
            assert_allclose(result, values, rtol=1e-9, atol=1e-9)
    assert list(mean.columns) == ["mean_0", "mean_1"]
    assert list(std.columns) == ["std_0", "std_1"]
    with pytest.raises(ValueError, match=r"columns b, a, and .* fitted to a, b"):
        on_cluster.predict(tmp_path / "two", lazy[["b", "a"]])


def test_options_of_prediction_are_those_of_the_model_that_is_given(client, expected):
    X = data()[0]
    model = overcover.load(expected[1]).set_params(n_consulted=3, combine="precision")
    result = on_cluster.predict(model, X, client)
    assert_array_equal(result, model.predict(X))
    assert not np.array_equal(result, expected[0].predict(X))


def test_an_overwritten_store_is_noticed(client, path):
    X, Y = data()
    make_model(GP(length_scale=1.0, noise=0.1)).fit(X, Y).save(path)
    model = overcover.load(path)
    on_cluster.predict(model, X, client)
    other = make_model(GP(length_scale=0.5, noise=0.1)).fit(X, Y)
    other.save(path)
    with pytest.raises(store.StoreError, match="overwritten meanwhile"):
        on_cluster.predict(model.set_params(n_consulted=2), X, client)
    assert_array_equal(on_cluster.predict(path, X, client), other.predict(X))


def test_queries_of_another_width_are_refused(client, expected):
    X = data()[0]
    for queries in (X[:, :1], da.from_array(X[:, :1]), da.from_array(X[:, 0])):
        with pytest.raises(ValueError, match=r"1 feature|1 columns|2D|2 columns"):
            on_cluster.predict(expected[1], queries, client)
