"""A fit into a store: the same model as without, however often it was interrupted."""

import os
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.utils import check_random_state

import overcover
from overcover import GP, OverlappingCoverRegressor, TwinGP, store

SOURCE = Path(overcover.__file__).parent.parent


def data():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (120, 2))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 0] * X[:, 1]])
    return X, Y + 0.05 * rng.normal(size=Y.shape)


def make_model(machine=None, **options):
    options = {"subdomain_size": 20, "overlap": 0.5, "random_state": 0} | options
    machine = GP(noise=0.01) if machine is None else machine
    return OverlappingCoverRegressor(machine, **options)


@pytest.fixture(scope="module")
def expected():
    return make_model().fit(*data())


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.ocm"


def check_same(model, expected):
    X = data()[0]
    assert_array_equal(
        model.predict(X, return_std=True), expected.predict(X, return_std=True)
    )
    for a, b in zip(model.states_, expected.states_, strict=True):
        for part, other in zip(a, b):
            if isinstance(part, np.ndarray):
                assert_array_equal(part, other)
    for a, b in zip(model.cover_.members, expected.cover_.members, strict=True):
        assert_array_equal(a, b)


def check_whole(path, expected):
    """The store holds this model and nothing besides."""
    store.verify(path)
    check_same(overcover.load(path), expected)
    (folder,) = (entry for entry in path.iterdir() if entry.is_dir())
    assert len(list(path.iterdir())) == 2
    assert len(list(folder.iterdir())) == expected.n_subdomains_ + 1


@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_fit_into_a_store_is_the_fit_that_is_saved(n_jobs, expected, path):
    model = make_model(n_jobs=n_jobs)
    assert store.fit_into(model, *data(), path) is model
    check_same(model, expected)
    check_whole(path, expected)
    stages = {"scales", "tuning", "partition", "cover", "machines"}
    assert set(model.timings_) == stages


@pytest.mark.parametrize("router", ["neighbors", "density"])
def test_weights_targets_and_routers_are_kept_too(router, path):
    X, Y = data()
    machine = overcover.ImportanceWeightedTwinGP(0.9, 0.9, 0.02, 0.02)
    arguments = {"sample_weight": np.linspace(0, 2, len(X)), "X_target": X[:40] * 0.5}
    model = make_model(machine, router=router)
    expected = make_model(machine, router=router).fit(X, Y, **arguments)
    interrupt(12, model, X, Y, path, **arguments)
    store.fit_into(model, X, Y, path, **arguments)
    check_whole(path, expected)


@pytest.mark.parametrize("is_mapped", [False, True])
def test_groups_are_held_out_together_in_a_store_too(is_mapped, path, tmp_path):
    X, Y = data()
    X[7], Y[7] = X[3], Y[3]  # equal rows are merged
    words = np.array([f"patient {i % 12}" for i in range(len(X))])
    expected = make_model(GP()).fit(X, Y, groups=words)
    rows = X
    if is_mapped:
        np.save(tmp_path / "rows.npy", X)
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    assert interrupt(12, make_model(GP()), rows, Y, path, groups=words)
    with pytest.raises(store.StoreError, match="unfinished fit of other data"):
        store.fit_into(make_model(GP()), rows, Y, path, groups=np.arange(len(X)) % 9)
    store.fit_into(make_model(GP()), rows, Y, path, groups=words)
    check_whole(path, expected)
    alone = make_model(GP()).fit(X, Y)
    assert (alone.predict(X, True)[1] != expected.predict(X, True)[1]).any()


def test_groups_that_do_not_fit_the_rows_are_refused(path):
    with pytest.raises(ValueError, match="groups has shape"):
        store.fit_into(make_model(), *data(), path, groups=[1, 2])
    assert not path.exists()


def test_single_precision_is_that_of_save(expected, path, tmp_path):
    expected.save(tmp_path / "saved", "float32")
    store.fit_into(make_model(), *data(), path, dtype="float32")
    check_whole(path, overcover.load(tmp_path / "saved"))


class Interrupted(BaseException):
    """Stands for whatever ends a process."""


def interrupt(after, model, *args, **kwargs):
    """Fit into a store, and stop when something is flushed to the disk for the n-th
    time; tells whether it came to that."""
    real, calls = os.fsync, []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > after:
            raise Interrupted
        return real(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        try:
            store.fit_into(model, *args, **kwargs)
        except Interrupted:
            return True
    return False


def test_interrupted_anywhere_a_fit_is_resumed_and_the_old_model_stays(
    expected, tmp_path
):
    old = make_model(GP(length_scale=1.0, noise=0.3)).fit(*data())
    n_interrupted, after = 0, 0
    while True:
        path = tmp_path / str(after)
        old.save(path)
        stopped = interrupt(after, make_model(), *data(), path)
        held = overcover.load(path)
        check_same(held, old if held.machine_.noise == 0.3 else expected)
        store.fit_into(make_model(), *data(), path)
        check_whole(path, expected)
        if not stopped:
            break
        n_interrupted += 1
        after += 5  # files and folders are flushed in turn
    assert n_interrupted > 5


def test_only_what_is_missing_is_done_again(expected, path, monkeypatch):
    fitted = []
    real = GP.fit_state

    def fit_state(self, *args):
        fitted.append(args)
        return real(self, *args)

    monkeypatch.setattr(GP, "fit_state", fit_state)
    # A stage, or a subdomain, is flushed twice.
    assert interrupt(4 * 2 + 3 * 2, make_model(), *data(), path)
    n_before = len(fitted)
    monkeypatch.setattr(GP, "tune", None)  # would fail if it were called
    monkeypatch.setattr("overcover.fitting.partition_rows", None)
    store.fit_into(make_model(), *data(), path)
    assert n_before == 4  # the last of these was not written
    assert len(fitted) - n_before == expected.n_subdomains_ - 3
    check_whole(path, expected)
    # And where nothing is missing, nothing is done.
    again = store.fit_into(make_model(n_jobs=2), *data(), path)
    assert len(fitted) == expected.n_subdomains_ + 1
    assert again.n_jobs == 2
    check_same(again, expected)


def test_without_a_seed_nobody_elses_random_numbers_are_touched(path):
    model = make_model(random_state=None)
    assert interrupt(12, model, *data(), path)
    numpys_own = check_random_state(None)
    numpys_own.random_sample(2000)
    before = numpys_own.get_state()
    store.fit_into(model, *data(), path)
    assert_array_equal(numpys_own.get_state()[1], before[1])
    check_whole(path, model)


def test_damaged_parts_of_a_draft_are_made_again(expected, path):
    assert interrupt(4 * 2 + 3 * 2, make_model(), *data(), path)
    for name in ("cover.pack", "000001.pack"):
        (file,) = path.glob(f"data-*/{name}")
        file.write_bytes(file.read_bytes()[:-40])
    store.fit_into(make_model(), *data(), path)
    check_whole(path, expected)


def test_files_of_another_draft_are_made_again(expected, path, tmp_path):
    X, Y = data()
    drafts = [(path, Y), (tmp_path / "other.ocm", Y[::-1])]
    for place, outputs in drafts:
        assert interrupt(4 * 2 + 3 * 2, make_model(), X, outputs, place)
    for name in ("tune", "partition", "cover", "router", "000001"):
        mine, other = (next(p.glob(f"data-*/{name}.pack")) for p, _ in drafts)
        mine.write_bytes(other.read_bytes())
    store.fit_into(make_model(), X, Y, path)
    check_whole(path, expected)


def test_a_draft_under_another_name_is_not_resumed(path):
    assert interrupt(12, make_model(), *data(), path)
    (folder,) = (file.parent for file in path.glob("data-*/tune.pack"))
    folder.rename(path / "data-0123456789abcdef")
    with pytest.raises(store.StoreError, match="unfinished fit of other data"):
        store.fit_into(make_model(), *data(), path)
    assert (path / "data-0123456789abcdef" / "tune.pack").exists()


def test_a_finished_fit_is_done_again_if_it_must_not_be_resumed(expected, path):
    store.fit_into(make_model(), *data(), path)
    (before,) = path.glob("data-*")
    assert interrupt(12, make_model(), *data(), path, resume=False)
    check_same(overcover.load(path), expected)
    store.fit_into(make_model(), *data(), path, resume=False)
    assert [*path.glob("data-*")] != [before]
    check_whole(path, expected)


def test_what_a_fit_killed_after_its_commit_left_is_cleared_away(
    expected, path, monkeypatch
):
    tidy = store._directory.tidy

    def stop(place, *keep):
        if (place / "manifest.json").exists():
            raise Interrupted
        tidy(place, *keep)

    with monkeypatch.context() as patch:
        patch.setattr("overcover.store._directory.tidy", stop)
        with pytest.raises(Interrupted):
            store.fit_into(make_model(), *data(), path)
    check_same(overcover.load(path), expected)
    assert list(path.glob("data-*/tune.pack"))
    # An unfinished fit beside it is not what it left.
    unfinished = path / "data-0123456789abcdef"
    unfinished.mkdir()
    (unfinished / "tune.pack").write_bytes(b"")
    store.fit_into(make_model(), *data(), path)
    assert [file.name for file in unfinished.iterdir()] == ["tune.pack"]
    (unfinished / "tune.pack").unlink()
    unfinished.rmdir()
    check_whole(path, expected)


def test_other_data_or_parameters_do_not_resume(expected, path):
    X, Y = data()
    assert interrupt(12, make_model(), X, Y, path)
    with pytest.raises(store.StoreError, match="no manifest"):
        overcover.load(path)
    others = [
        (make_model(), X, Y + 1.0, {}),
        (make_model(), X * 1.5, Y, {}),
        (make_model(), X, Y[:, 0], {}),
        (make_model(), X, Y, {"sample_weight": np.full(len(X), 2.0)}),
        (make_model(overlap=0.25), X, Y, {}),
        (make_model(random_state=1), X, Y, {}),
        (make_model(GP(noise=0.02)), X, Y, {}),
        (make_model(), X, Y, {"dtype": "float32"}),
    ]
    for model, X_other, Y_other, arguments in others:
        with pytest.raises(store.StoreError, match="unfinished fit of other data"):
            store.fit_into(model, X_other, Y_other, path, **arguments)
        assert not hasattr(model, "states_")
    # How much is worked at a time makes no difference.
    store.fit_into(make_model(n_jobs=2, verbose=0), X, Y, path)
    check_whole(path, expected)
    # A finished model is replaced, like by save.
    store.fit_into(make_model(random_state=1), X, Y, path)
    check_whole(path, make_model(random_state=1).fit(X, Y))


def test_what_is_unfinished_can_be_discarded(expected, path):
    assert interrupt(16, make_model(random_state=1), *data(), path)
    store.fit_into(make_model(), *data(), path, resume=False)
    check_whole(path, expected)


def test_a_fit_that_fails_before_anything_is_done_leaves_nothing(tmp_path, path):
    X, Y = data()
    for model, match in [
        (make_model(overlap=2.0), "overlap=2.0"),
        (make_model(GP(noise=-1.0)), "noise"),
        (make_model(overcover.AnyRegressor()), "pickl"),
        (make_model(TwinGP(metric=lambda a, b: 0.0)), "function"),
    ]:
        with pytest.raises(ValueError, match=match):
            store.fit_into(model, X, Y, path)
        assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "changed",
    [
        lambda X: X,
        np.asfortranarray,
        lambda X: X.astype(np.float32),
        lambda X: np.round(10 * X).astype(np.int16),
    ],
)
def test_mapped_arrays_give_the_same_model(changed, path, tmp_path, monkeypatch):
    X, Y = data()
    X = changed(X)
    for name, array in zip("XY", (X, Y)):
        np.save(tmp_path / f"{name}.npy", array)
    mapped = [np.load(tmp_path / f"{name}.npy", mmap_mode="r") for name in "XY"]
    monkeypatch.setattr("overcover._streams.BLOCK_NUMBERS", 25)
    assert interrupt(14, make_model(), *mapped, path)
    store.fit_into(make_model(), *mapped, path)
    check_whole(path, make_model().fit(X, Y))


def test_mapped_rows_are_not_read_into_memory(path, tmp_path, monkeypatch):
    """Neither checking nor scaling nor hashing them takes a copy."""
    X = np.random.default_rng(0).normal(size=(20_000, 20)).astype(np.float32)
    np.save(tmp_path / "X.npy", X)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    monkeypatch.setattr("overcover._streams.BLOCK_NUMBERS", 2**13)

    def stop(*args):
        raise Interrupted

    monkeypatch.setattr("overcover.fitting.partition_rows", stop)
    model = make_model(GP(length_scale=1.0, noise=0.1))
    monkeypatch.setattr(GP, "tune", lambda self, *args: setattr(
        self, "theta_", np.zeros((1, 21))))  # fmt: skip
    tracemalloc.start()
    with pytest.raises(Interrupted):
        store.fit_into(model, mapped, X[:, 0], path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 0.6 * X.nbytes


def test_parquet_files_become_a_mapped_array(tmp_path, monkeypatch):
    pa = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X = data()[0]
    table = pa.table(
        {"a": X[:, 0], "b": X[:, 1], "n": np.arange(120), "w": ["x"] * 120}
    )
    parquet.write_table(table, tmp_path / "all.parquet", row_group_size=50)
    parquet.write_table(table.slice(0, 30), tmp_path / "first.parquet")
    monkeypatch.setattr("overcover.store._rows.BATCH", 17)

    def read(name, *args, **kwargs):
        sources = [tmp_path / n for n in name]
        return store.parquet_to_npy(sources, tmp_path / "out.npy", *args, **kwargs)

    both = read(["all.parquet", "first.parquet"], ["b", "a"])
    assert isinstance(both, np.memmap)
    assert_array_equal(both, np.vstack([X, X[:30]])[:, ::-1])
    counts = read(["all.parquet"], "n", "float32")
    assert (counts.dtype, counts.shape) == (np.float32, (120,))
    assert_array_equal(counts, np.arange(120))
    with pytest.raises(store.StoreError, match="'w' holds 'x' in row 0"):
        read(["all.parquet"])
    with pytest.raises(store.StoreError, match=r"no column 'z'\. There are: 'a', 'b'"):
        read(["all.parquet"], ["z"])
    holes = pa.table({"a": pa.array([1.0, None])})
    parquet.write_table(holes, tmp_path / "holes.parquet")
    with pytest.raises(store.StoreError, match="'a' lacks 1 values"):
        read(["holes.parquet"])
    assert_array_equal(np.load(tmp_path / "out.npy"), np.arange(120))


CHILD = """
import os, signal, sys
from test_store_resume import data, make_model
from overcover import store

real = os.fsync

def fit_until(after):
    calls = []

    def fsync(descriptor):
        calls.append(descriptor)
        if len(calls) > after:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(descriptor)

    os.fsync = fsync
    store.fit_into(make_model(n_jobs=2), *data(), sys.argv[1])

for after in map(int, sys.argv[2:]):
    child = os.fork()
    if child == 0:
        fit_until(after)
        os._exit(1)
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
    assert os.path.exists(sys.argv[1] + "/writer.lock")
"""


def test_killed_again_and_again_a_fit_ends_as_if_nothing_had_happened(expected, path):
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join([str(SOURCE), str(Path(__file__).parent)])
    }
    command = [sys.executable, "-c", CHILD, str(path), *map(str, (1, 5, 7, 12, 6))]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with pytest.raises(store.StoreError, match="not a store"):
        overcover.load(path)
    store.fit_into(make_model(), *data(), path)
    check_whole(path, expected)
