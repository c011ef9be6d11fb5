"""A damaged or hostile store is a clear error; writing is all or nothing."""

import errno
import hashlib
import json
import os
import pickle
import shutil
import subprocess
import sys
from copy import copy
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.cluster import OPTICS, AgglomerativeClustering

import overcover
from overcover import GP, OverlappingCoverRegressor, store
from overcover.store import _directory as directory
from overcover.store._codec import CLUSTERERS, encode
from overcover.store._pack import aligned


def small_model(noise=0.01):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (60, 2))
    machine = GP(length_scale=1.0, noise=noise)
    model = OverlappingCoverRegressor(machine, subdomain_size=15, overlap=0.5)
    return model.set_params(random_state=0).fit(X, np.sin(X[:, 0]))


@pytest.fixture(scope="module")
def model():
    return small_model()


@pytest.fixture(scope="module")
def asked():
    return np.random.default_rng(1).uniform(-2, 2, (40, 2))


@pytest.fixture
def path(model, tmp_path):
    model.save(tmp_path / "model.ocm")
    return tmp_path / "model.ocm"


def files_of(path):
    return sorted(f for f in path.rglob("*") if f.is_file())


def answers(path, asked):
    return np.array(overcover.load(path).predict(asked, return_std=True))


# -- damage ----------------------------------------------------------------------------


def check_damage(path, file, damaged, asked, expected):
    """A message that names the file, or the same answers."""
    whole = file.read_bytes()
    file.unlink()  # a mapped file that shrinks would end the process
    file.write_bytes(damaged)
    try:
        try:
            assert_array_equal(answers(path, asked), expected)
        except store.StoreError as error:
            assert file.name in str(error)
            return True
        return False
    finally:
        file.unlink()
        file.write_bytes(whole)


def test_no_flipped_byte_goes_unnoticed(model, path, asked):
    rng = np.random.default_rng(2)
    files = files_of(path)
    expected = np.array(model.predict(asked, return_std=True))
    noticed = {file.name: 0 for file in files}
    for i in range(200):
        file = files[i % len(files)]
        data = bytearray(file.read_bytes())
        data[rng.integers(len(data))] ^= 1 << rng.integers(8)
        noticed[file.name] += check_damage(path, file, data, asked, expected)
    # Only blanks between the manifest's entries may change and harm nobody.
    for name, count in noticed.items():
        assert count >= (1 if name == directory.MANIFEST else 200 // len(files))


def test_no_cut_file_goes_unnoticed(model, path, asked):
    rng = np.random.default_rng(3)
    files = files_of(path)
    expected = np.array(model.predict(asked, return_std=True))
    for i in range(100):
        file = files[i % len(files)]
        data = file.read_bytes()
        cut = data[: rng.integers(len(data))] if i >= len(files) else b""
        assert check_damage(path, file, cut, asked, expected)
        if i < len(files):
            longer = data + bytes(rng.integers(1, 256, 5, dtype=np.uint8))
            assert check_damage(path, file, longer, asked, expected)


def test_swapped_and_missing_files_are_named(path, asked):
    a, b = sorted(path.glob("data-*/0*.pack"))[:2]
    content = a.read_bytes()
    a.write_bytes(b.read_bytes())
    with pytest.raises(store.StoreError, match=f"{a.name}.*file that belongs here"):
        store.verify(path)
    a.unlink()
    with pytest.raises(store.StoreError, match=a.name):
        store.verify(path)
    a.write_bytes(content)
    store.verify(path)
    shutil.rmtree(a.parent)
    with pytest.raises(store.StoreError, match=a.parent.name):
        overcover.load(path)


def test_a_file_that_changes_after_it_was_checked_is_checked_again(path, asked):
    loaded = overcover.load(path, max_open=1)
    assert_array_equal(loaded.predict(asked), loaded.predict(asked))
    for file in path.glob("data-*/0*.pack"):
        data = bytearray(file.read_bytes())
        data[-100] ^= 1
        file.unlink()  # or what is mapped would change too
        file.write_bytes(data)
    with pytest.raises(store.StoreError, match=r"0\.pack|1\.pack|2\.pack"):
        loaded.predict(asked)


def test_a_store_that_was_overwritten_must_be_loaded_again(path, asked):
    loaded = overcover.load(path)
    small_model(noise=0.5).save(path)
    with pytest.raises(store.StoreError, match=r"pack.*overwritten.*Load it again"):
        loaded.predict(asked)


@pytest.mark.parametrize("kind", ["nothing", "empty", "foreign", "file", "half"])
def test_what_is_not_a_store_is_not_loaded(kind, path, tmp_path):
    place = tmp_path / kind
    if kind == "file":
        place.write_text("hello")
    elif kind != "nothing":
        place.mkdir()
    if kind == "foreign":
        (place / "manifest.json").write_text('{"format": "something else"}')
    if kind == "half":  # all the data, no manifest
        (data,) = path.glob("data-*")
        shutil.copytree(data, place / data.name)
    message = "nothing does not exist" if kind == "nothing" else kind
    for read in (overcover.load, store.inspect, store.verify):
        with pytest.raises(store.StoreError, match=message):
            read(place)


# -- malice ----------------------------------------------------------------------------


def forge(path, **changes):
    """A manifest that lies, with a checksum that fits."""
    file = path / directory.MANIFEST
    manifest = json.loads(file.read_text()) | changes
    manifest = {k: v for k, v in manifest.items() if v is not ...}
    manifest["checksum"] = directory.checksum_of(manifest)
    file.write_text(json.dumps(manifest))


def check_refused(path, match):
    for read in (overcover.load, store.verify):
        with pytest.raises(store.StoreError, match=match):
            read(path)


@pytest.mark.parametrize(
    "changes",
    [
        {"data": "../model.ocm/data-0123456789abcdef"},
        {"data": "/tmp"},
        {"data": "data-0123456789abcdef/.."},
        {"data": "data-0123456789abcdef"},
        {"data": 7},
        {"version": 5},
        {"version": 0},
        {"version": "1"},
        {"version": True},
        {"version": 1.0},
        {"format": "other"},
        {"format": ...},
        {"more": 1},
        {"summary": ...},
        {"summary": []},
        {"notes": []},
        {"written_by": None},
        {"written_by": [1]},
        {"fingerprint": None},
        {"dtype": "object"},
        {"files": {}},
        {"files": []},
        {"files": {"model": "x", "subdomains": []}},
        {"files": {"model": ["0" * 64, 10], "subdomains": {}}},
        {"files": {"model": ["0" * 64, -1], "subdomains": []}},
        {"files": {"model": ["0" * 64, 10], "subdomains": [["../x", 10]]}},
        {"files": {"model": ["0" * 64, 10], "subdomains": [["0" * 64]]}},
    ],
    ids=repr,
)
def test_hostile_manifests_are_refused(changes, path):
    forge(path, **changes)
    check_refused(path, r"manifest\.json|data-0123456789abcdef")


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"\xff\xfe", b"[" * 100_000, b'{"a": NaN}', b"null", b'{"version": 1'],
)
def test_manifests_that_are_no_json_objects_are_refused(text, path):
    (path / directory.MANIFEST).write_bytes(text)
    check_refused(path, r"manifest\.json")


@pytest.mark.parametrize("summary", [{}, {"@": "tuple", "items": [1]}, {"@": "array"}])
def test_a_summary_that_is_none_is_refused(summary, path):
    forge(path, summary=summary)
    with pytest.raises(store.StoreError, match=r"model\.ocm.*summary"):
        store.inspect(path)


def test_a_manifest_with_too_few_subdomains_is_refused(path):
    files = json.loads((path / directory.MANIFEST).read_text())["files"]
    forge(path, files=files | {"subdomains": files["subdomains"][:-1]})
    check_refused(path, r"model\.pack")


def test_links_and_pipes_are_refused(path, tmp_path):
    (data,) = path.glob("data-*")
    file = data / "000001.pack"
    shutil.move(file, tmp_path / "elsewhere")
    file.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(store.StoreError, match=file.name):
        store.verify(path)
    file.unlink()
    os.mkfifo(file)
    with pytest.raises(store.StoreError, match=file.name):
        store.verify(path)
    file.unlink()
    file.mkdir()
    with pytest.raises(store.StoreError, match=file.name):
        store.verify(path)
    shutil.move(data, tmp_path / "data")
    data.symlink_to(tmp_path / "data")
    check_refused(path, data.name)


def rewrite(path, name, change):
    """A file whose header was changed by `change(header)`, and all checksums fit."""
    (file,) = path.glob(f"data-*/{name}")
    data = file.read_bytes()
    length = int.from_bytes(data[8:16], "little")
    header = json.loads(data[16 : 16 + length])
    change(header)
    made = json.dumps(header).encode()
    body = data[:8] + len(made).to_bytes(8, "little") + made
    body += bytes(aligned(len(body)) - len(body)) + data[aligned(16 + length) : -32]
    file.write_bytes(body + hashlib.sha256(body).digest())
    manifest = json.loads((path / directory.MANIFEST).read_text())
    entry = [hashlib.sha256(body).hexdigest(), len(body) + 32]
    if name == directory.MODEL:
        manifest["files"]["model"] = entry
    else:
        manifest["files"]["subdomains"][int(name[:6])] = entry
    forge(path, files=manifest["files"])


def state_of(header):
    return dict(header["tree"]["items"])["state"]


def model_of(header):
    return dict(header["tree"]["items"])["model"]


def array_entry(header, field):
    return header["arrays"][state_of(header)["fields"][field]["index"]]


SPEC = ("dtype", "stored", "order", "shape", "offset")


def lie(field, **changes):
    """Tell something else about an array of the first subdomain."""

    def change(header):
        for key, value in changes.items():
            array_entry(header, field)[SPEC.index(key)] = value

    return change


@pytest.mark.parametrize(
    "change",
    [
        lie("X", dtype="|O", stored="|O"),
        lie("X", dtype=">f8", stored=">f8"),
        lie("X", dtype="<i8", stored="<i8"),
        lie("X", dtype="<f4"),
        lie("X", order="K"),
        lie("X", shape=[-1, 2]),
        lie("X", shape=[2**61, 2**61]),
        lie("X", shape=[2**40, 2]),
        lie("X", shape=[1] * 100),
        lie("X", shape=[15.0, 2]),
        lie("X", shape="15"),
        lie("X", shape=[3, 10]),
        lie("X", offset=-64),
        lie("X", offset=2**61),
        lie("X", offset=1),
        lie("factor", shape=[1, 3]),
        lie("weights", shape=[1]),
        lie("alpha", shape=[15]),
        lambda header: header.update(name="000001.pack"),
        lambda header: header.update(more=1),
        lambda header: header.pop("arrays"),
        lambda header: header.update(arrays=[[]]),
        lambda header: header.update(arrays=5),
        lambda header: header.update(tree=None),
        lambda header: header.update(tree={"@": "os.system", "items": ["true"]}),
        lambda header: header.update(tree={"@": "value_of", "items": []}),
        lambda header: header.update(tree={"@": ["dict"]}),
        lambda header: header["tree"]["items"].append(["more", 1]),
        lambda header: state_of(header)["fields"].pop("alpha"),
        lambda header: state_of(header)["fields"].update(more=1),
        lambda header: state_of(header)["fields"].update(alpha=None),
        lambda header: state_of(header)["fields"]["X"].update(index=99),
        lambda header: state_of(header)["fields"]["X"].update(index=-1),
        lambda header: state_of(header)["fields"]["X"].update(more=1),
        lambda header: state_of(header).update({"@": "TwinState"}),
        lambda header: state_of(header).update({"@": "GP"}),
    ],
)
def test_hostile_subdomains_are_refused(change, path):
    rewrite(path, "000000.pack", lambda header: None)
    store.verify(path)  # the forger's hand does not show
    rewrite(path, "000000.pack", change)
    with pytest.raises(store.StoreError, match=r"000000\.pack"):
        store.verify(path)


def in_machine(**changes):
    def change(header):
        machine = model_of(header)["fitted"]["machine_"]
        for key, value in changes.items():
            machine[key] = (
                machine[key] | value if isinstance(machine.get(key), dict) else value
            )

    return change


KERNEL = {"@": "kernel", "class": "RBF", "params": {}}
SUM = KERNEL | {"class": "Sum"}


@pytest.mark.parametrize(
    "change",
    [
        in_machine(**{"class": "AnyRegressor"}),
        in_machine(**{"class": "Kernel"}),
        in_machine(**{"class": "KMeans"}),
        in_machine(**{"class": "RelativeDensityRatio", "params": {}}),
        in_machine(params={"more": 1}),
        in_machine(params={"kernel": KERNEL | {"class": "Kernel"}}),
        in_machine(params={"kernel": KERNEL | {"params": {"more": 1}}}),
        in_machine(params={"kernel": "odd"}),
        in_machine(params={"kernel": KERNEL | {"params": {"length_scale": "odd"}}}),
        in_machine(params={"kernel": SUM | {"params": {"k1": 1, "k2": KERNEL}}}),
        in_machine(params={"keep_factors": "odd"}),
        in_machine(params={"noise": [1]}),
        in_machine(fitted={"theta_": 1}),
        in_machine(fitted={"predict": 1}),
        in_machine(fitted={"__class__": 1}),
        in_machine(fitted={"length_scale_": 1}),
        in_machine(fitted={"calibration_": None}),
        in_machine(more=1),
        lambda header: model_of(header).update({"class": "GP"}),
        lambda header: model_of(header)["fitted"].pop("router_"),
        lambda header: model_of(header)["fitted"].update(router_=None),
        lambda header: model_of(header)["fitted"].update(n_features_in_=3),
        lambda header: model_of(header)["fitted"].update(n_outputs_=2**40),
        lambda header: model_of(header)["fitted"].update(n_subdomains_=1),
        lambda header: model_of(header)["fitted"].update(length_scales_=None),
        lambda header: model_of(header)["fitted"].update(_y_ndim=3),
        lambda header: model_of(header)["fitted"].update(n_lenders_="odd"),
        lambda header: model_of(header)["fitted"].update(timings_=[1]),
        lambda header: model_of(header)["params"].update(router="odd"),
        lambda header: model_of(header)["params"].update(n_consulted=0),
        lambda header: model_of(header)["params"].update(n_jobs="odd"),
        lambda header: header["tree"]["items"].pop(),
        lambda header: header.update(tree=[]),
    ],
)
def test_hostile_models_are_refused(change, path):
    rewrite(path, directory.MODEL, change)
    check_refused(path, r"model\.pack")


CLUSTERER = {"@": "estimator", "class": "AgglomerativeClustering", "fitted": {}}


def partitioned_by(**record):
    """The parameter `partition` of a model is this clusterer."""

    def change(header):
        made = {"params": {}} | CLUSTERER | record
        model_of(header)["params"]["partition"] = made

    return change


class Payload:
    """Unpickled, it leaves a file."""

    def __init__(self, file):
        self.file = file

    def __reduce__(self):
        return Path.touch, (self.file,)


@pytest.mark.parametrize("clusterer", [AgglomerativeClustering(4), OPTICS(eps=5.0)])
def test_no_store_makes_a_clusterer_unpickle_a_cache(clusterer, path, tmp_path):
    X = np.random.default_rng(0).uniform(-2, 2, (60, 2))
    y, cache, left = np.sin(X[:, 0]), tmp_path / "cache", tmp_path / "it ran"
    # A cache as the clusterer would leave it, with something else in its place.
    partition = clone(clusterer).set_params(memory=str(cache))
    overcover.load(path).set_params(partition=partition).fit(X, y)
    planted = list(cache.rglob("output.pkl"))
    assert planted
    for file in planted:
        file.write_bytes(pickle.dumps(Payload(left)))
    params = {k: v for k, v in partition.get_params().items() if v != np.inf}
    change = partitioned_by(**{"class": type(clusterer).__name__, "params": params})
    rewrite(path, directory.MODEL, change)
    with pytest.raises(store.StoreError, match=r"model\.pack.*memory"):
        overcover.load(path).fit(X, y)
    assert not left.exists()


@pytest.mark.parametrize(
    "record",
    [
        {"params": {"memory": "."}},
        {"params": {"memory": {"@": "tuple", "items": ["."]}}},
        {"params": {"metric": ["."]}},
        {"params": {"connectivity": {"@": "strings", "items": ["."]}}},
        {"params": {"connectivity": {"@": "estimator", "class": "GP", "params": {},
                                     "fitted": {}}}},
        {"class": "OPTICS", "params": {"metric_params": {"@": "dict", "items": [
            ["file", "."]]}}},
        {"class": "FeatureAgglomeration"},
        {"class": "Birch", "params": {"n_clusters": CLUSTERER | {"params": {
            "memory": "."}}}},
        {"fitted": {"labels_": 1}},
    ],
)  # fmt: skip
def test_no_stored_clusterer_names_files_or_code(record, path):
    rewrite(path, directory.MODEL, partitioned_by(params={"n_clusters": 2}))
    store.verify(path)
    rewrite(path, directory.MODEL, partitioned_by(**record))
    check_refused(path, r"model\.pack")


def test_a_clusterer_with_a_cache_is_not_saved(model, tmp_path):
    clusterer = AgglomerativeClustering(memory=str(tmp_path / "cache"))
    cached = copy(model).set_params(partition=clusterer)
    with pytest.raises(store.StoreError, match=r"partition\.memory.*default, None"):
        cached.save(tmp_path / "model.ocm")
    with pytest.raises(store.StoreError, match=r"partition\.memory"):
        store.fit_into(cached, [[0.0], [1.0]], [0.0, 1.0], tmp_path / "model.ocm")
    assert not list(tmp_path.iterdir())


def test_no_parameter_that_takes_any_word_is_stored():
    """Of all classes of scikit-learn that a store can make: what can name a file."""
    n_refused = 0
    for kind in CLUSTERERS.values():
        for name, allowed in kind._parameter_constraints.items():
            if isinstance(allowed, list) and str in allowed:
                with pytest.raises(store.StoreError, match=name):
                    encode(kind(**{name: "folder"}))
                n_refused += 1
        encode(kind())  # as it comes
    assert n_refused >= 2


def test_records_nested_without_end_are_refused(path):
    def nest(header):
        for _ in range(400):
            header["tree"] = [header["tree"]]

    rewrite(path, directory.MODEL, nest)
    check_refused(path, r"model\.pack")


# -- writing ---------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "foreign", "manifest"])
def test_what_is_not_a_store_is_not_overwritten(kind, model, tmp_path):
    place = tmp_path / "mine"
    if kind == "file":
        place.write_text("precious")
    else:
        place.mkdir()
        name = "manifest.json" if kind == "manifest" else "notes.txt"
        (place / name).write_text('{"precious": 1}')
    before = [(f, f.read_text()) for f in files_of(tmp_path)]
    with pytest.raises(store.StoreError, match=r"mine exists and is not"):
        model.save(place)
    assert [(f, f.read_text()) for f in files_of(tmp_path)] == before


def test_an_empty_directory_and_parents_will_do(model, asked, tmp_path):
    (tmp_path / "empty").mkdir()
    for place in (tmp_path / "empty", tmp_path / "a" / "b"):
        model.save(place)
        assert_array_equal(overcover.load(place).predict(asked), model.predict(asked))


def test_overwriting_deletes_no_file_of_others(model, path):
    (path / "notes.txt").write_text("precious")
    (data,) = path.glob("data-*")
    (data / "notes.txt").write_text("precious")
    model.save(path)
    model.save(path)
    assert (path / "notes.txt").read_text() == "precious"
    assert [f.name for f in data.iterdir()] == ["notes.txt"]


def failing(monkeypatch, name, after, code):
    """Let a function of os fail from its n-th call on."""
    calls = []
    real = getattr(os, name)

    def fail(*args, **kwargs):
        calls.append(args)
        if len(calls) > after:
            raise OSError(code, os.strerror(code))
        return real(*args, **kwargs)

    monkeypatch.setattr(os, name, fail)
    return calls


@pytest.mark.parametrize("name", ["fsync", "replace"])
def test_a_full_disk_leaves_the_old_model_whole(name, model, path, asked, monkeypatch):
    expected = answers(path, asked)
    other = small_model(noise=0.3)
    afterwards = np.array(other.predict(asked, return_std=True))
    n_failed = 0
    while True:
        with monkeypatch.context() as patch:
            failing(patch, name, n_failed, errno.ENOSPC)
            try:
                other.save(path)
            except store.StoreError as error:
                assert "No space left" in str(error)
            else:
                break
        n_failed += 1
        # The last thing that can fail is to flush the folder with the new manifest.
        held = answers(path, asked)
        if n_failed <= 2 * model.n_subdomains_:
            assert_array_equal(held, expected)
        else:
            assert held.tolist() in [e.tolist() for e in (expected, afterwards)]
        assert len(list(path.iterdir())) == 2
    assert n_failed > model.n_subdomains_
    assert_array_equal(answers(path, asked), afterwards)


def test_a_disk_that_may_not_be_written_to_is_a_clear_error(
    model, path, asked, monkeypatch, tmp_path
):
    expected = answers(path, asked)
    with monkeypatch.context() as patch:
        failing(patch, "mkdir", 0, errno.EROFS)
        with pytest.raises(store.StoreError, match="Read-only file system"):
            model.save(path)
        with pytest.raises(store.StoreError, match="Read-only file system"):
            model.save(tmp_path / "new")
    assert not (tmp_path / "new").exists()
    (tmp_path / "file").write_text("")
    with pytest.raises(store.StoreError, match="could not be written"):
        model.save(tmp_path / "file" / "model.ocm")
    assert_array_equal(answers(path, asked), expected)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_directory_without_permission_is_a_clear_error(model, tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(store.StoreError, match="Permission denied"):
        model.save(tmp_path / "model.ocm")
    tmp_path.chmod(0o700)


WRITER = """
import sys
from overcover.store._directory import writing

with writing(sys.argv[1]):
    print("writing", flush=True)
    input()
"""


def test_two_writers_do_not_mix(model, path, asked):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    command = [sys.executable, "-c", WRITER, str(path)]
    other = subprocess.Popen(command, env=environment, **pipes)
    assert other.stdout.readline() == "writing\n"
    for _ in range(2):  # a refusal does not take the lock away
        with pytest.raises(store.StoreError, match=f"process {other.pid} on"):
            model.save(path)
    assert_array_equal(overcover.load(path).predict(asked), model.predict(asked))
    other.kill()
    other.communicate()
    assert (path / directory.LOCK).exists()
    model.save(path)  # its owner is dead
    assert not (path / directory.LOCK).exists()


def test_two_threads_do_not_mix(model, path):
    with directory.writing(path):
        with pytest.raises(store.StoreError, match=f"process {os.getpid()} on"):
            model.save(path)
        assert (path / directory.LOCK).exists()
    model.save(path)


@pytest.mark.parametrize(
    "text", [b"", b'{"pid": 1, "host": "elsewhere"}', b"\xff" * 300]
)
def test_a_lock_that_no_process_holds_is_stale_whatever_it_says(text, model, path):
    (path / directory.LOCK).write_bytes(text)
    model.save(path)
    assert not (path / directory.LOCK).exists()


@pytest.mark.parametrize("kind", ["pipe", "folder", "link"])
def test_a_lock_that_is_no_file_is_a_clear_error(kind, model, path):
    lock = path / directory.LOCK
    if kind == "pipe":
        os.mkfifo(lock)  # which to read would wait for ever
    elif kind == "folder":
        lock.mkdir()
    else:
        lock.symlink_to(path / directory.MANIFEST)
    with pytest.raises(store.StoreError, match=r"writer\.lock"):
        model.save(path)


def test_leftovers_of_a_dead_writer_are_cleared_away(model, path, asked):
    left = path / "data-0123456789abcdef"
    left.mkdir()
    (left / "000000.pack").write_bytes(b"half")
    (left / "000001.pack.0123abcd.unfinished").write_bytes(b"half")
    (path / "manifest.json.0123abcd.unfinished").write_bytes(b"half")
    assert_array_equal(overcover.load(path).predict(asked), model.predict(asked))
    model.save(path)
    assert not left.exists()
    assert len(list(path.iterdir())) == 2
