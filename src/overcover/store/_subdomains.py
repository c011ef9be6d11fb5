"""Subdomains that stay on the disk until a query needs them; a few stay open."""

from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple
from weakref import WeakSet

from ..cover import KEPT_BYTES
from ..machines.base import memory_of_computer
from ._codec import decode, encode
from ._directory import file_of, read_manifest
from ._pack import StoreError, most_files, open_pack, refusing, write_pack
from ._shapes import check_state

# Each open file holds a descriptor, and 1024 is what most systems allow a process.
MOST_OPEN = 512
# The subdomains of all models of this process, and the lock on what they keep open.
_everyone: "WeakSet[Subdomains]" = WeakSet()
_lock = Lock()


class Subdomain(NamedTuple):
    """What one file holds."""

    members: Any  # rows of the training data, the owned ones first, shape (size,)
    state: Any  # what its machine has precomputed


def write_tree(path, tree, dtype="float64", draft="") -> str:
    """Write a tree, named by its file in errors; returns the digest of the file."""
    return write_pack(path, *encode(tree, path.stem, dtype), draft)


def decode_pack(path, digest=None, known=None, draft=None):
    """The tree in a file, and the open file; errors name it."""
    pack = open_pack(path, digest, known, draft)
    with refusing(f"{path} cannot be understood."):
        return decode(pack.tree, pack.arrays), pack


class Subdomains:
    """The subdomains of a store: files with known digests, some of them open."""

    def __init__(
        self, folder, digests, machine, sizes, max_open=MOST_OPEN, max_bytes=None
    ):
        self.folder, self.digests = Path(folder), digests
        self.machine, self.sizes, self.max_open = machine, sizes, max_open
        most = min(KEPT_BYTES, memory_of_computer() // 4)
        self.max_bytes = most if max_bytes is None else max_bytes
        self.checked: dict[int, tuple] = {}
        self.open: OrderedDict[int, tuple[Subdomain, int]] = OrderedDict()
        with _lock:
            _everyone.add(self)

    def __reduce__(self):
        # What is open belongs to this process: a copy, or another process, opens anew.
        known = self.folder, self.digests, self.machine, self.sizes
        return Subdomains, (*known, self.max_open, self.max_bytes)

    def __len__(self):
        return len(self.digests)

    def __getitem__(self, k) -> Subdomain:
        if not 0 <= k < len(self):
            raise IndexError(f"There are {len(self)} subdomains, and no number {k}.")
        with _lock:
            if k in self.open:
                self.open.move_to_end(k)
                return self.open[k][0]
        # Not under the lock: threads open different files at the same time.
        opened = self._read(k)
        with _lock:
            self.open.setdefault(k, opened)
            while len(self.open) > 1 and (
                len(self.open) > self.max_open
                or sum(n_bytes for _, n_bytes in self.open.values()) > self.max_bytes
            ):
                self.open.popitem(last=False)
            _close_some(self)
        return opened[0]

    def _read(self, k):
        path, is_overwritten = self.folder / file_of(k), False
        known = self.checked.get(k)
        try:
            tree, pack = decode_pack(path, self.digests[k], known)
        except StoreError as error:
            with suppress(StoreError):
                data = read_manifest(self.folder.parent)["data"]
                is_overwritten = data != self.folder.name
            if not is_overwritten:
                raise
            raise StoreError(
                f"{path} is not there any more: {self.folder.parent} was overwritten, "
                "and holds another model. Load it again."
            ) from error
        if type(tree) is not dict or set(tree) != set(Subdomain._fields):
            raise StoreError(f"{path} does not hold a subdomain.")
        subdomain = Subdomain(**tree)
        # Values of a file that is the same have been looked at.
        is_new = pack.identity != known
        check_state(self.machine, *subdomain, self.sizes, str(path), is_new)
        self.checked[k] = pack.identity
        return subdomain, sum(array.nbytes for array in pack.arrays)


def _close_some(last):
    """Keep to half of the files that this process may open; `last` keeps one."""
    # Each model holds one more file, of what its subdomains share.
    n_open = sum(1 + len(model.open) for model in _everyone)
    for _ in range(n_open - most_files() // 2):
        model = max(_everyone, key=lambda m: len(m.open) - (m is last))
        if len(model.open) - (model is last) <= 0:
            return
        model.open.popitem(last=False)


class Part(Sequence):
    """One field of all subdomains; `places` are their numbers, or values instead."""

    def __init__(self, subdomains, field, places=None):
        self.subdomains, self.field = subdomains, field
        self.places = range(len(subdomains)) if places is None else places

    def __len__(self):
        return len(self.places)

    def __getitem__(self, k):
        if isinstance(k, slice):
            return [self[i] for i in range(*k.indices(len(self)))]
        place = self.places[k]
        is_stored = isinstance(place, int)
        return getattr(self.subdomains[place], self.field) if is_stored else place

    def __repr__(self):
        return f"<{self.field} of {len(self)} subdomains in {self.subdomains.folder}>"

    def replaced(self, places):
        """Others at these places: numbers are those of values here."""
        places = [self.places[p] if isinstance(p, int) else p for p in places]
        return Part(self.subdomains, self.field, places)


def folder_of(model):
    """The folder of data that a model reads all its subdomains from."""
    states = getattr(model, "states_", None)
    if isinstance(states, Part) and isinstance(states.places, range):
        return states.subdomains.folder
    raise StoreError(
        f"{model!r} is not in a store, where workers could read it. Save it with "
        "model.save(path) to a path that they share, and give the path."
    )
