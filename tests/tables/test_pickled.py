"""Pickles of arrays are read as numpy reads them; any other is refused and not run."""

import contextlib
import io
import os
import pickle
from collections import OrderedDict

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

from overcover.tables._pickled import RefusedPickle, read_pickle

PROTOCOLS = (2, 3, 4, 5)


def read(content):
    return read_pickle(io.BytesIO(content))


class Evil:
    """Runs a command when unpickled the usual way."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.system, (f"touch {self.path}",)


# -- what is read ----------------------------------------------------------------------

ARRAYS = {
    "float32": np.arange(6, dtype="<f4").reshape(2, 3),
    "big-endian": np.arange(6, dtype=">f8").reshape(3, 2),
    "by columns": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "integers": np.array([-1, 2], dtype=np.int16),
    "booleans": np.array([True, False]),
    "half": np.array([1.5], dtype=np.float16),
    "empty": np.empty((0, 4)),
    "one number": np.array(3.0),
    "strided": np.arange(20.0)[::3],
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("array", ARRAYS.values(), ids=ARRAYS)
def test_arrays_come_back_as_they_were(array, protocol):
    back = read(pickle.dumps({"S1": {"Walking": array}}, protocol))["S1"]["Walking"]
    assert_array_equal(back, array)
    assert back.dtype == array.dtype
    back.flags.writeable = True  # it is the caller's own


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_arrays_of_objects_come_as_their_parts(protocol):
    one = np.array({"a": np.ones(2)}, dtype=object)
    several = np.array([{"a": 1}, "b"], dtype=object)
    assert_array_equal(read(pickle.dumps(one, protocol))["a"], [1, 1])
    assert read(pickle.dumps(several, protocol)) == [{"a": 1}, "b"]


def test_files_of_numpy_1_and_of_python_2_are_read():
    modern = pickle.dumps(np.arange(3.0), 2)
    old = modern.replace(b"numpy._core.multiarray", b"numpy.core.multiarray")
    assert_array_equal(read(old), np.arange(3.0))
    # Python 2 wrote bytes as its str, which Python 3 never does.
    raw = b"U\x18" + np.arange(3.0).tobytes()
    state = b"(K\x01K\x03\x85cnumpy\ndtype\nU\x02f8K\x00K\x01\x87R(K\x03U\x01<NNNJ"
    state += b"\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89" + raw + b"tb."
    start = b"\x80\x02cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85"
    python2 = start + b"U\x01b\x87R" + state
    assert_array_equal(pickle.loads(python2, encoding="latin1"), np.arange(3.0))
    assert_array_equal(read(python2), np.arange(3.0))


def test_shared_parts_are_read_once_and_cycles_are_refused():
    part = np.ones(3)
    back = read(pickle.dumps({"a": part, "b": part}))
    assert back["a"] is back["b"]
    wide: list = [[0.0]]
    for _ in range(5):
        wide = [wide] * 1000  # 10^15 parts, if each were made
    assert len(read(pickle.dumps(wide))) == 1000
    loop: list = []
    loop.append(loop)
    with pytest.raises(RefusedPickle, match="nested deeper"):
        read(pickle.dumps(loop))


@given(
    st.recursive(
        st.text() | st.integers() | st.booleans() | st.none(),
        lambda part: (
            st.lists(part, max_size=3) | st.dictionaries(st.text(), part, max_size=3)
        ),
        max_leaves=8,
    ),
    st.sampled_from(PROTOCOLS),
)
def test_plain_content_is_what_pickle_says_or_is_refused_for_depth(content, protocol):
    pickled = pickle.dumps(content, protocol)
    try:
        assert read(pickled) == content
    except RefusedPickle as error:
        assert "nested deeper" in str(error)


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_hostile_object_is_refused_and_not_run(tmp_path, protocol):
    mark = tmp_path / "ran"
    for content in (Evil(mark), {"S1": Evil(mark)}, np.array([Evil(mark)], object)):
        hostile = pickle.dumps(content, protocol)
        with pytest.raises(RefusedPickle, match=r"system'.*can run any program"):
            read(hostile)
        assert not mark.exists()
    pickle.loads(hostile)
    assert mark.exists(), "the pickle was not hostile"


HOSTILE = {
    "eval": b"cbuiltins\neval\n(S'1/0'\ntR.",
    "getattr": b"cbuiltins\ngetattr\n(cnumpy\ndtype\nS'__class__'\ntR.",
    "attribute of an allowed name": b"\x80\x04\x8c\x05numpy\x8c\x0adtype.base\x93.",
    "other numpy": b"cnumpy\nload\n(S'x'\ntR.",
    "scalar": b"cnumpy._core.multiarray\nscalar\n.",
    "instance": b"(S'ls'\nios\nsystem\n.",
    "new object": b"\x80\x02cnumpy\nndarray\n)\x81.",
    "keyed new object": b"\x80\x04\x8c\x02os\x8c\x06system\x93)}\x92.",
    "change of a reader": b"\x80\x02cnumpy\ndtype\n}U\x04makeNsb.",
    "change by slots": b"\x80\x02cnumpy\ndtype\nN}U\x04makeNs\x86b.",
    "outside reference": b"\x80\x02U\x01aQ.",
    "extension": b"\x80\x02\x82\x01.",
    "set": pickle.dumps({1, 2}),
    "bytes": pickle.dumps(b"raw"),
    "complex": pickle.dumps(1j),
    "ordered dictionary": pickle.dumps(OrderedDict(a=1)),
    "key that is a tuple": pickle.dumps({(1, 2): 3}),
    "array of text": pickle.dumps(np.array(["a"])),
    "array of records": pickle.dumps(np.zeros(2, [("a", "f8"), ("b", "O")])),
    "array of times": pickle.dumps(np.zeros(2, "M8[s]")),
    "array of complex": pickle.dumps(np.zeros(2, complex)),
    "numpy scalar": pickle.dumps(np.float64(1)),
    "class": pickle.dumps(Evil),
    "a type by itself": pickle.dumps(np.dtype("f8")),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_everything_else_is_refused(content):
    with pytest.raises(ValueError, match=r"Allowed are dict|damaged"):
        read(content)


@pytest.mark.parametrize("how", ["change of a reader", "change by slots"])
def test_a_pickle_cannot_change_what_reads_it(how):
    with pytest.raises(RefusedPickle, match="a change to a reader"):
        read(HOSTILE[how])


def test_a_forged_type_cannot_turn_bytes_into_pointers():
    """An array whose bytes are said to be objects, or are fewer than its shape says."""
    honest = pickle.dumps(np.arange(3.0), 2)
    for forged in (
        honest.replace(b"X\x02\x00\x00\x00f8", b"X\x02\x00\x00\x00O8"),
        honest.replace(b"X\x02\x00\x00\x00f8", b"X\x02\x00\x00\x00V8"),
        honest.replace(b"K\x03\x85", b"K\x09\x85"),
    ):
        assert forged != honest
        with pytest.raises(ValueError, match=r"Allowed are dict|damaged"):
            read(forged)


def test_every_cut_of_a_pickle_is_refused():
    whole = pickle.dumps({"S1": {"Walking": np.arange(4.0)}})
    for length in range(len(whole)):
        with pytest.raises(ValueError, match=r"damaged|Allowed are dict"):
            read(whole[:length])


@given(st.data())
def test_a_damaged_pickle_never_fails_otherwise(data):
    whole = bytearray(pickle.dumps({"S1": {"Walking": np.arange(4.0)}}))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(whole) - 1))
        whole[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ValueError):
        read(bytes(whole))
