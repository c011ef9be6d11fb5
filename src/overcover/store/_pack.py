"""One file of a store: a tree of plain values and the arrays it refers to.

    magic, 8 bytes | length of the header, 8 bytes | header, JSON | arrays | SHA-256

Arrays keep their order in memory, so that results are equal bit by bit.
"""

import errno
import hashlib
import json
import math
import mmap
import os
import secrets
import stat
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MAGIC = b"OVERCOV1"
ALIGNMENT = 64
DIGEST_SIZE = 32
UNFINISHED = ".unfinished"
# Read as they are; no pointers, no records, no other byte order.
DTYPES = {
    np.dtype(name).str: np.dtype(name)
    for name in ("?", "i1", "u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8")
    + ("<f4", "<f8")
}
# More than the header of a subdomain, or of a model, will ever need.
MOST_HEADER = 2**26
HEADER_KEYS = {"name", "arrays", "tree"}
# Only in what a fit wrote into a draft: the fingerprint of its data and parameters.
OF_DRAFT = "draft"


RESTORE = "Restore it from a copy, or save the model again."


class StoreError(ValueError):
    """A store that cannot be read, or a model that cannot be stored."""


# What content that makes no sense may raise; a StoreError is a ValueError.
NONSENSE: tuple[type[Exception], ...] = (AttributeError, LookupError, OverflowError)
NONSENSE += (RecursionError, TypeError, ValueError)


@contextmanager
def refusing(where):
    """Make what content without sense raises a `StoreError` that says where it is."""
    try:
        yield
    except NONSENSE as error:
        raise StoreError(f"{where} {error}") from error


class ArraySpec(NamedTuple):
    """Where an array lies in its file."""

    dtype: str  # in memory
    stored: str  # on disk: "<f4" where a "<f8" was narrowed
    order: str  # "C" or "F"
    shape: list[int]
    offset: int  # from the start of the file's first array


class Pack(NamedTuple):
    """An open file."""

    tree: Any  # plain values; arrays by their number
    arrays: list[np.ndarray]  # mapped; writing changes memory alone
    digest: str
    identity: tuple  # changes when the file does

    @property
    def n_bytes(self):
        """Memory that the arrays take once they have been read."""
        return sum(array.nbytes for array in self.arrays)


def aligned(offset):
    """The next multiple of `ALIGNMENT`."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def write_pack(path, tree, arrays, stored, draft="") -> str:
    """Write a file, whole or not at all; returns its digest as hexadecimal digits."""
    specs, offset = list[ArraySpec](), 0
    for array, kind in zip(arrays, stored):
        order = "C" if array.flags.c_contiguous or not array.flags.f_contiguous else "F"
        shape = [int(n) for n in array.shape]
        specs.append(ArraySpec(array.dtype.str, kind, order, shape, offset))
        offset = aligned(offset + array.size * np.dtype(kind).itemsize)
    content = {"name": path.name, "arrays": specs, "tree": tree}
    content |= {OF_DRAFT: draft} if draft else {}
    header = json.dumps(content, allow_nan=False, separators=(",", ":")).encode()
    with new_file(path) as file:
        hashing = hashlib.sha256()

        def put(data):
            """Write data, and zeros up to the next multiple of `ALIGNMENT`."""
            for part in (data, bytes(aligned(len(data)) - len(data))):
                hashing.update(part)
                file.write(part)

        put(MAGIC + len(header).to_bytes(8, "little") + header)
        for spec, array in zip(specs, arrays):
            values = array.astype(spec.stored, order="K", copy=False)
            # The transpose of a Fortran array is the same memory in C order.
            rows = values.T if spec.order == "F" else values
            put(np.ascontiguousarray(rows).reshape(-1).view(np.uint8).data)
        file.write(hashing.digest())
    return hashing.hexdigest()


@contextmanager
def new_file(path, must_last=True):
    """A file that gets its name when all is written, flushed if it must last."""
    # The temporary name is unique: of two that write the same file, the last one wins.
    temporary = Path(f"{path}.{secrets.token_hex(4)}{UNFINISHED}")
    try:
        with open(temporary, "wb") as file:
            yield file
            if must_last:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
        if must_last:  # the new name must survive a power cut, too
            folder = os.open(Path(path).parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def open_regular(path) -> tuple[int, os.stat_result]:
    """Open a regular file, no link and no pipe, for reading: descriptor and status."""
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags)
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {_reason(error)}.") from error
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a regular file.")
    return descriptor, status


def read_json(path, most):
    """The object in a regular file of JSON, of which at most so many bytes are read."""
    with open(open_regular(path)[0], "rb") as file:
        return parse_json(file.read(most))


def most_files() -> int:
    """How many files this process may hold open."""
    import resource  # which only POSIX systems have

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return sys.maxsize if soft == resource.RLIM_INFINITY else soft


def _reason(error):
    """Why a file could not be opened, and what to do if too many are."""
    if getattr(error, "errno", None) not in (errno.EMFILE, errno.ENFILE):
        return getattr(error, "strerror", None) or error
    return (
        f"{error.strerror}. This process may hold {most_files()} files open: allow it "
        "more (ulimit -n 4096), close files of its own, or load models with a smaller "
        "max_open"
    )


def identity_of(status: os.stat_result) -> tuple:
    """What changes when a file is written to, or replaced."""
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns)


def open_pack(path, digest=None, known=None, draft=None) -> Pack:
    """Map a file, checked by digest, content and draft; `known` content is not read."""
    descriptor, status = open_regular(path)
    size, identity = status.st_size, identity_of(status)
    try:
        mapped = mmap.mmap(descriptor, size, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:  # an empty file is a ValueError
        raise StoreError(f"{path} cannot be mapped: {_reason(error)}.") from error
    finally:
        os.close(descriptor)
    if size < ALIGNMENT + DIGEST_SIZE:
        raise StoreError(f"{path} is damaged: {size} bytes cannot hold anything.")
    end = size - DIGEST_SIZE
    written = mapped[end:].hex()
    if digest is not None and written != digest:
        raise StoreError(
            f"{path} is damaged, or not the file that belongs here: its checksum is "
            f"not the one that was recorded. {RESTORE} If the store was overwritten "
            "meanwhile, load it again."
        )
    is_new = identity != known
    if is_new and hashlib.sha256(memoryview(mapped)[:end]).hexdigest() != written:
        text = f"{path} is damaged: its content does not fit its checksum. {RESTORE}"
        raise StoreError(text)
    with refusing(f"{path} has a header that makes no sense."):
        content, arrays = _parse(path.name, mapped, end)
    if draft is not None and content.get(OF_DRAFT, "") != draft:
        raise StoreError(f"{path} is part of a fit of other data or parameters.")
    return Pack(content["tree"], arrays, written, identity)


def _parse(name, mapped, end):
    """The header and the arrays of a mapped file, distrusting every number."""
    length = int.from_bytes(mapped[8:16], "little")
    if mapped[:8] != MAGIC or length > min(end - 16, MOST_HEADER):
        raise StoreError("It is not a file of an overcover store.")
    content = parse_json(mapped[16 : 16 + length])
    if set(content) - {OF_DRAFT} != HEADER_KEYS or content["name"] != name:
        named = content.get("name")
        raise StoreError(f"It is that of {named!r}, and holds {sorted(content)}.")
    start = aligned(16 + length)
    specs = [ArraySpec(*entry) for entry in content["arrays"]]
    return content, [_array(mapped, spec, start, end) for spec in specs]


def _array(mapped, spec, start, end):
    """One array of a mapped file, whose arrays lie between two offsets."""
    dtype, stored = DTYPES.get(spec.dtype), DTYPES.get(spec.stored)
    is_narrowed = (spec.dtype, spec.stored) == ("<f8", "<f4")
    numbers = [*spec.shape, spec.offset]
    if (
        dtype is None
        or stored is None
        or (dtype != stored and not is_narrowed)
        or spec.order not in ("C", "F")
        or not all(type(n) is int and 0 <= n < 2**62 for n in numbers)
    ):
        raise StoreError(f"An array is of an unknown kind: {spec}.")
    count, first = math.prod(spec.shape), start + spec.offset
    if spec.offset % ALIGNMENT or first + count * stored.itemsize > end:
        raise StoreError(f"The file is too short for an array: {spec}.")
    values = np.empty(0, dtype)  # at the very end there is nothing to map
    if count:
        values = np.frombuffer(mapped, stored, count, first).astype(dtype, copy=False)
    if spec.order == "F":
        return values.reshape(spec.shape[::-1]).T
    return values.reshape(spec.shape)


def parse_json(data):
    """An object from JSON bytes."""
    content = json.loads(data)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content
