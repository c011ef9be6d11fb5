"""One file of a store: a tree of plain values and the arrays it refers to.

    magic, 8 bytes | length of the header, 8 bytes | header, JSON | arrays | SHA-256

Arrays keep their order in memory, so that results are equal bit by bit.
"""

import errno
import hashlib
import json
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
DTYPES = {"|b1", "|i1", "|u1", "<i2", "<u2", "<i4", "<u4", "<i8", "<u8"}
DTYPES |= {"<f4", "<f8"}
NARROWED = ("<f8", "<f4")
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


class Pack(NamedTuple):
    """An open file."""

    tree: Any  # plain values; arrays by their number
    arrays: list[np.ndarray]  # mapped; writing changes memory alone
    digest: str
    identity: tuple  # changes when the file does


def aligned(offset):
    """The next multiple of `ALIGNMENT`."""
    return -(-offset // ALIGNMENT) * ALIGNMENT


def write_pack(path, tree, arrays, stored, draft="") -> str:
    """Write a file, whole or not at all; returns its digest as hexadecimal digits."""
    entries, offset = [], 0
    for array, kind in zip(arrays, stored):
        order = "C" if array.flags.c_contiguous or not array.flags.f_contiguous else "F"
        entries.append((array.dtype.str, kind, order, array.shape, offset))
        offset = aligned(offset + array.size * np.dtype(kind).itemsize)
    content = {"name": path.name, "arrays": entries, "tree": tree}
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
        for (_, kind, order, *_), array in zip(entries, arrays):
            values = array.astype(kind, order="K", copy=False)
            # The transpose of a Fortran array is the same memory in C order.
            rows = values.T if order == "F" else values
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


def open_regular(path, flags=os.O_RDONLY) -> int:
    """The descriptor of a regular file, no link and no pipe."""
    try:
        flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(path, flags, 0o644)
    except OSError as error:
        raise StoreError(f"{path} cannot be opened: {_reason(error)}.") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise StoreError(f"{path} is not a regular file.")
    return descriptor


def read_json(path, most):
    """The object in a regular file of JSON, of which at most so many bytes are read."""
    with open(open_regular(path), "rb") as file:
        return parse_json(file.read(most))


def parse_json(data):
    """An object from JSON bytes."""
    content = json.loads(data)
    if not isinstance(content, dict):
        raise ValueError("not an object")
    return content


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


def open_pack(path, digest=None, known=None, draft=None) -> Pack:
    """Map a file, checked by digest, content and draft; `known` content is not read."""
    descriptor = open_regular(path)
    try:
        status = os.fstat(descriptor)
        mapped = mmap.mmap(descriptor, status.st_size, access=mmap.ACCESS_COPY)
    except (OSError, ValueError) as error:  # an empty file is a ValueError
        raise StoreError(f"{path} cannot be mapped: {_reason(error)}.") from error
    finally:
        os.close(descriptor)
    identity = status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns
    end = len(mapped) - DIGEST_SIZE
    if end < ALIGNMENT:
        raise StoreError(f"{path} is damaged: {len(mapped)} bytes hold nothing.")
    written = mapped[end:].hex()
    if digest not in (None, written):
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
        length = int.from_bytes(mapped[8:16], "little")
        if mapped[:8] != MAGIC or length > min(end - 16, MOST_HEADER):
            raise StoreError("It is not a file of an overcover store.")
        content = parse_json(mapped[16 : 16 + length])
        if set(content) - {OF_DRAFT} != HEADER_KEYS or content["name"] != path.name:
            named = content.get("name")
            raise StoreError(f"It is that of {named!r}, and holds {sorted(content)}.")
        start = aligned(16 + length)
        arrays = [_array(mapped, start, end, *entry) for entry in content["arrays"]]
    if draft not in (None, content.get(OF_DRAFT, "")):
        raise StoreError(f"{path} is part of a fit of other data or parameters.")
    return Pack(content["tree"], arrays, written, identity)


def _array(mapped, start, end, dtype, stored, order, shape, offset):
    """One array of a mapped file, whose arrays lie between two offsets."""
    if (
        not {dtype, stored} <= DTYPES
        or (dtype != stored and (dtype, stored) != NARROWED)
        or order not in ("C", "F")
        or offset < 0
        or offset % ALIGNMENT
    ):
        raise StoreError(f"An array is of an unknown kind: {dtype}, {order}, {offset}.")
    # NumPy refuses shapes that are none, and more than the file holds.
    values = np.ndarray(shape, stored, mapped, start + offset, order=order)
    if start + offset + values.nbytes > end:
        raise StoreError(f"The file is too short for an array of shape {shape}.")
    return values.astype(dtype, copy=False)
