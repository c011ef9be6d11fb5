"""A store as a directory: its manifest, who may write to it, what may be deleted.

The manifest is replaced in one step when all else is on the disk: there is the old
model, then the new one. No path is read from a store.
"""

import hashlib
import json
import os
import platform
import re
import secrets
import socket
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np
import scipy
import sklearn

from ._pack import (
    NONSENSE,
    RESTORE,
    UNFINISHED,
    StoreError,
    new_file,
    open_regular,
    read_json,
    refusing,
)

SUFFIX = ".pack"
FORMAT, VERSION = "overcover-model", 4
# Versions that can be read. Version 1 says nothing of variances far from the rows;
# before version 3 there was no combine="certainty"; before version 4 errors were taken
# to be symmetric.
READABLE = (1, 2, 3, 4)
MANIFEST, LOCK, MODEL = "manifest.json", "writer.lock", f"model{SUFFIX}"
# Entries of a manifest; notes are optional.
KEYS = {"format": str, "version": int, "written_by": dict, "data": str, "dtype": str}
KEYS |= {"summary": dict, "files": dict, "fingerprint": str, "checksum": str}
NOTES = "notes"
DATA = re.compile(r"data-[0-9a-f]{16}")
DIGEST = re.compile(r"[0-9a-f]{64}")
# Names that a data folder may hold; nothing else is ever deleted.
TOKEN = rf"(\.[0-9a-f]{{8}})?{UNFINISHED}"
DELETABLE = re.compile(rf"([a-z]+|([a-z]+-)?\d{{6,}})({SUFFIX}|\.json|\.npy)({TOKEN})?")
HALF_A_MANIFEST = re.compile(re.escape(MANIFEST) + TOKEN)
# Names in the beginning of a store, which has no manifest yet.
OURS = re.compile(f"{DATA.pattern}|{re.escape(LOCK)}|{HALF_A_MANIFEST.pattern}")
# 125,000 subdomains (10^7 rows) take 10 MB.
MOST_MANIFEST = 2**28


def checksum_of(manifest):
    """SHA-256 of a manifest's content, whatever its layout."""
    content = {k: v for k, v in manifest.items() if k != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_manifest(store, content):
    """Make `content` the store's manifest, in one step."""
    from .. import __version__

    versions = {
        "overcover": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    manifest = {"format": FORMAT, "version": VERSION, "written_by": versions} | content
    manifest["checksum"] = checksum_of(manifest)
    with new_file(Path(store) / MANIFEST) as file:
        file.write(json.dumps(manifest, indent=1, allow_nan=False).encode())


def check_notes(notes):
    """Notes that the manifest can keep: what JSON gives back as it was."""
    notes, reason = notes or {}, "it would be read back as something else"
    try:
        kept = json.loads(json.dumps(notes, allow_nan=False))
        if isinstance(kept, dict) and kept == notes:
            return kept
    except (TypeError, ValueError) as error:
        reason = str(error)
    raise ValueError(
        f"notes={notes!r} cannot be kept: {reason}. Give a dict with words as names, "
        "of words, finite numbers, truth values, None, lists and such dicts."
    )


def read_manifest(store):
    """The checked manifest of a store, or a `StoreError` that says what is wrong."""
    path = Path(store) / MANIFEST
    if not os.path.lexists(store):
        raise StoreError(
            f"{store} does not exist. Give the directory that model.save wrote; "
            f"relative paths start at {os.getcwd()}."
        )
    if not path.parent.is_dir() or not os.path.lexists(path):
        raise StoreError(
            f"{store} is not a store: it has no {MANIFEST}. Give the directory that "
            "model.save wrote; a fit that was interrupted is continued by "
            "overcover.store.fit_into(..., resume=True)."
        )
    with refusing(f"{path} cannot be used:"):
        manifest = read_json(path, MOST_MANIFEST)
        _check_manifest(manifest)
    return manifest


def _check_manifest(manifest):
    if manifest.get("format") != FORMAT:
        raise StoreError("it is not the manifest of an overcover model.")
    version = manifest.get("version")
    if version not in READABLE or type(version) is not int:
        raise StoreError(
            f"it has format version {version!r}, this overcover reads up to {VERSION}. "
            "A newer overcover wrote it: update, or save the model again."
        )
    if set(manifest) - {NOTES} != set(KEYS):
        odd = ", ".join(sorted(set(manifest) - {NOTES} ^ set(KEYS)))
        raise StoreError(f"it lacks entries, or has some that do not belong: {odd}.")
    if manifest["checksum"] != checksum_of(manifest):
        raise StoreError(f"it is damaged, by its checksum. {RESTORE}")
    files = manifest["files"]
    entries = [files["model"], *files["subdomains"]]
    kinds = KEYS | {NOTES: dict}
    if not (
        all(isinstance(manifest.get(name, {}), kind) for name, kind in kinds.items())
        and DATA.fullmatch(manifest["data"])
        and manifest["dtype"] in ("float64", "float32")
        and set(files) == {"model", "subdomains"}
        and type(files["subdomains"]) is list
        and all(DIGEST.fullmatch(digest) for digest, _ in entries)
        and all(type(size) is int and 0 < size < 2**62 for _, size in entries)
    ):
        raise StoreError("it has entries that make no sense.")


def check_target(store):
    """Refuse to write into what exists and is not a store, or the beginning of one."""
    store = Path(store)
    if not os.path.lexists(store):
        return
    if not store.is_dir():
        raise StoreError(f"{store} exists and is not a directory. Choose another path.")
    with suppress(*NONSENSE):  # a StoreError, too
        if read_json(store / MANIFEST, MOST_MANIFEST).get("format") == FORMAT:
            return
    if all(OURS.fullmatch(name) for name in os.listdir(store)):
        return
    raise StoreError(
        f"{store} exists and is not a store of overcover, so it is not overwritten. "
        "Choose another path, or remove it yourself."
    )


@contextmanager
def writing(store):
    """Be the only one that writes to a store; makes the directory if there is none."""
    store = Path(store)
    with disk_errors(store):
        check_target(store)
        is_new = not store.exists()
        store.mkdir(parents=True, exist_ok=True)
        try:
            with locked(store / LOCK):
                yield store
        finally:
            if is_new and not os.listdir(store):
                store.rmdir()


@contextmanager
def disk_errors(store):
    """Turn errors of the disk into a `StoreError`."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{store} could not be written: {error.strerror or error}"
            f"{f' ({error.filename})' if error.filename else ''}. No model that it "
            "held is damaged. Free some space, or choose a path that may be written to."
        ) from error


@contextmanager
def locked(path):
    """Hold the lock of a store, which the system takes from a process that dies."""
    import fcntl  # which only POSIX systems have

    with open(open_regular(path, os.O_RDWR | os.O_CREAT), "r+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            # Its last holder may have deleted it meanwhile.
            is_held = os.path.samestat(os.fstat(file.fileno()), os.stat(path))
        except (BlockingIOError, FileNotFoundError):
            is_held = False
        if not is_held:
            owner = file.read(200).decode(errors="replace") or "another process"
            raise StoreError(
                f"{path.parent} is being written by {owner}. Wait for it to end."
            )
        file.truncate()
        file.write(f"process {os.getpid()} on {socket.gethostname()}".encode())
        file.flush()
        try:
            yield
        finally:
            path.unlink(missing_ok=True)


def file_of(k):
    """The name of a subdomain's file, such as 000012.pack."""
    return f"{k:06d}{SUFFIX}"


def new_data_folder(store):
    """A fresh, empty folder in a store."""
    folder = Path(store) / f"data-{secrets.token_hex(8)}"
    folder.mkdir()  # on the disk when the manifest is: the same folder is flushed
    return folder


def keep_only(folder, names=frozenset()):
    """Delete a store's own files in a folder but those named; an empty folder too."""
    folder = Path(folder)
    if folder.is_symlink() or not folder.is_dir() or not DATA.fullmatch(folder.name):
        return
    for name in os.listdir(folder):
        if DELETABLE.fullmatch(name) and name not in names:
            (folder / name).unlink()
    if not os.listdir(folder):
        folder.rmdir()


def tidy(store, *keep):
    """Delete what interrupted writers left, and what `keep` and the manifest do not."""
    try:
        manifest = read_manifest(store)
    except StoreError:
        if os.path.lexists(store / MANIFEST):
            return  # damaged: leave everything to whoever repairs it
        manifest = {"data": "", "files": {"subdomains": []}}
    files = MODEL, *map(file_of, range(len(manifest["files"]["subdomains"])))
    for entry in store.iterdir():
        if entry.name == manifest["data"]:
            keep_only(entry, files)
        elif entry.name not in keep:
            keep_only(entry)
        if HALF_A_MANIFEST.fullmatch(entry.name):
            entry.unlink()
