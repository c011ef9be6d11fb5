"""A store as a directory: its manifest, who may write to it, what may be deleted.

    pose.ocm/
        manifest.json             what belongs to the model, and its checksums
        data-3f9c0a1b22d4e5f6/    model.pack, 000000.pack, 000001.pack, ...

The manifest is what makes a directory a store. It is replaced in one step when all
else is on the disk, so there is the old model, then the new one, and nothing between.
Files of data are named by number, never by the manifest: no path is read from a store.
"""

import hashlib
import json
import os
import platform
import re
import secrets
import socket
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy
import sklearn

from ._pack import (
    SUFFIX,
    UNFINISHED,
    StoreError,
    new_file,
    open_regular,
    parse_json,
)

FORMAT, VERSION = "overcover-model", 3
# Versions that can be read. Version 1 says nothing of variances far from the rows;
# before version 3 there was no combine="certainty".
READABLE = (1, 2, 3)
MANIFEST, LOCK, MODEL = "manifest.json", "writer.lock", f"model{SUFFIX}"
KEYS = {"format", "version", "written_by", "data", "dtype", "summary", "files"}
KEYS |= {"fingerprint", "checksum"}
# Only where whoever saved the model left some.
NOTES = "notes"
FILE_KEYS = {"model", "subdomains"}
DATA = re.compile(r"data-[0-9a-f]{16}")
DIGEST = re.compile(r"[0-9a-f]{64}")
# Names that a data folder may hold; nothing else is ever deleted.
TOKEN = rf"(\.[0-9a-f]{{8}})?{UNFINISHED}"
DELETABLE = re.compile(rf"([a-z]+|([a-z]+-)?\d{{6,}})({SUFFIX}|\.json|\.npy)({TOKEN})?")
HALF_A_MANIFEST = re.compile(re.escape(MANIFEST) + TOKEN)
# 125,000 subdomains (10^7 rows) take 10 MB.
MOST_MANIFEST = 2**28
MOST_LOCK = 2**12


def versions():
    """Of what a store is written with."""
    from .. import __version__

    return {
        "overcover": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }


# -- the manifest ------------------------------------------------------------------


def checksum_of(manifest):
    """SHA-256 of a manifest's content, whatever its layout."""
    content = {k: v for k, v in manifest.items() if k != "checksum"}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_manifest(store, content):
    """Make `content` the store's manifest, in one step."""
    manifest = {"format": FORMAT, "version": VERSION, "written_by": versions()}
    manifest |= content
    manifest["checksum"] = checksum_of(manifest)
    with new_file(Path(store) / MANIFEST) as file:
        file.write(json.dumps(manifest, indent=1, allow_nan=False).encode())


def check_notes(notes):
    """Notes that the manifest can keep, as they will be read back.

    Raises
    ------
    ValueError
        If they are not what JSON can hold.
    """
    try:
        text = json.dumps(notes or {}, allow_nan=False)
        if isinstance(kept := json.loads(text), dict) and kept == (notes or {}):
            return kept
        reason = "it would be read back as something else"
    except (TypeError, ValueError) as error:
        reason = str(error)
    raise ValueError(
        f"notes={notes!r} cannot be kept: {reason}. Give a dict with words as names, "
        "of words, finite numbers, truth values, None, lists and such dicts."
    )


def read_manifest(store):
    """The checked manifest of a store.

    Raises
    ------
    StoreError
        If there is none, or it is damaged, foreign, or of another version.
    """
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
    descriptor, found = open_regular(path)
    with open(descriptor, "rb") as file:
        if found.st_size > MOST_MANIFEST:
            raise StoreError(f"{path} is too large to be a manifest.")
        data = file.read()
    try:
        manifest = parse_json(data)
        _check_manifest(manifest)
    except StoreError as error:
        raise StoreError(f"{path}: {error}") from error
    except (KeyError, TypeError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged: {error}.") from error
    return manifest


def _check_manifest(manifest):
    if manifest.get("format") != FORMAT:
        raise StoreError("is not the manifest of an overcover model.")
    version = manifest.get("version")
    if version not in READABLE or type(version) is not int:
        raise StoreError(
            f"has format version {version!r}, and this overcover reads up to {VERSION}."
            " A newer overcover wrote it: update, or save the model again."
        )
    if set(manifest) - {NOTES} != KEYS:
        odd = ", ".join(sorted(set(manifest) - {NOTES} ^ KEYS))
        raise StoreError(f"lacks entries, or has some that do not belong: {odd}.")
    if manifest["checksum"] != checksum_of(manifest):
        raise StoreError(
            "is damaged: its content does not fit its checksum. Restore it from a "
            "copy, or save the model again."
        )
    files, digests = manifest["files"], []
    if not isinstance(files, dict) or set(files) != FILE_KEYS:
        raise StoreError(f"should list files under {sorted(FILE_KEYS)}.")
    if not isinstance(files["subdomains"], list):
        raise StoreError("should hold a list of subdomains.")
    for digest, n_bytes in [files["model"], *files["subdomains"]]:
        digests.append(digest)
        if type(n_bytes) is not int or not 0 < n_bytes < 2**62:
            raise StoreError(f"names a file of {n_bytes!r} bytes.")
    if not all(isinstance(d, str) and DIGEST.fullmatch(d) for d in digests):
        raise StoreError("holds a checksum that is none.")
    name = manifest["data"]
    if not isinstance(name, str) or not DATA.fullmatch(name):
        raise StoreError(f"names {name!r} as its data, which must be data-<16 digits>.")
    if manifest["dtype"] not in ("float64", "float32"):
        raise StoreError(f"has the unknown dtype {manifest['dtype']!r}.")
    if not isinstance(manifest["written_by"], dict):
        raise StoreError("should hold the versions it was written by.")
    if not isinstance(manifest["fingerprint"], str):
        raise StoreError("should hold a fingerprint, or an empty one.")
    if not isinstance(manifest["summary"], dict):
        raise StoreError("should hold a summary.")
    if not isinstance(manifest.get(NOTES, {}), dict):
        raise StoreError("should hold notes by name.")


def data_folder(store, manifest):
    """Where a model's files are; a link would lead out of the store, and is refused."""
    folder = Path(store) / manifest["data"]
    if folder.is_symlink() or not folder.is_dir():
        raise StoreError(
            f"{folder} is missing, or a link: the store is not whole. Restore it from "
            "a copy, or save the model again."
        )
    return folder


# -- writing -----------------------------------------------------------------------


def check_target(store):
    """Refuse to write into what exists and is not a store, or the beginning of one."""
    store = Path(store)
    if not os.path.lexists(store):
        return
    if not store.is_dir():
        raise StoreError(f"{store} exists and is not a directory. Choose another path.")
    if (store / MANIFEST).is_file():
        try:
            content = parse_json((store / MANIFEST).read_bytes())
        except ValueError:
            content = {}
        if content.get("format") == FORMAT:
            return
    elif all(DATA.fullmatch(e) or _is_ours(e) for e in os.listdir(store)):
        return
    raise StoreError(
        f"{store} exists and is not a store of overcover, so it is not overwritten. "
        "Choose another path, or remove it yourself."
    )


def _is_ours(name):
    return name == LOCK or HALF_A_MANIFEST.fullmatch(name)


@contextmanager
def writing(store):
    """Be the only one that writes to a store; makes the directory if there is none.

    Raises
    ------
    StoreError
        If the directory is foreign, another process writes to it, or the disk is full
        or may not be written to.
    """
    store = Path(store)
    with disk_errors(store):
        check_target(store)
        made = not store.exists()
        store.mkdir(parents=True, exist_ok=True)
        acquire(store)
        try:
            yield store
        finally:
            (store / LOCK).unlink(missing_ok=True)
            if made and not os.listdir(store):
                store.rmdir()


@contextmanager
def disk_errors(store):
    """Say what the disk's refusals mean for the store."""
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"{store} could not be written: {error.strerror or error}"
            f"{f' ({error.filename})' if error.filename else ''}. No model that it "
            "held is damaged. Free some space, or choose a path that may be written to."
        ) from error


def acquire(store):
    """Take the lock of a store; one whose owner is dead counts for nothing.

    Looking at the lock and replacing it happens under an advisory lock of the folder,
    so that of two processes that find a dead one's only one takes it.
    """
    import fcntl  # which only POSIX systems have

    path = store / LOCK
    descriptor = os.open(store, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        owner = _owner_of(path)
        if owner is not None:
            raise StoreError(
                f"{store} is being written by process {owner['pid']} on "
                f"{owner['host']}. Wait for it to end; if there is no such process, "
                f"remove {path}."
            )
        path.unlink(missing_ok=True)
        new = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        with open(new, "w") as file:
            mine = {"pid": os.getpid(), "host": socket.gethostname()}
            json.dump(mine | {"started": _started(os.getpid())}, file)
    finally:
        os.close(descriptor)


def _owner_of(path):
    """Who holds the lock, None if no process that lives.

    Raises
    ------
    StoreError
        If it is not a file, or names something else than a process.
    """
    if not os.path.lexists(path):
        return None
    descriptor, _ = open_regular(path)
    with open(descriptor, "rb") as file:
        data = file.read(MOST_LOCK)
    try:
        owner = parse_json(data)
        pid, host, started = owner["pid"], owner["host"], owner["started"]
    except (KeyError, ValueError, RecursionError):
        return None  # a lock that was never finished is nobody's
    if type(pid) is not int or not 0 < pid < 2**31:
        raise StoreError(f"{path} names {pid!r} as a process. Remove it.")
    if host != socket.gethostname():
        return owner
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass  # it lives, under another user
    # Numbers of processes are used again.
    return owner if started == _started(pid) else None


def _started(pid):
    """When a process was started, in ticks; None where the system does not tell."""
    try:
        after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2]
    except OSError:
        return None
    return after_name.split()[19]


def file_of(k):
    """The name of a subdomain's file.

    Examples
    --------
    >>> file_of(12)
    '000012.pack'
    """
    return f"{k:06d}{SUFFIX}"


def new_data_folder(store):
    """A fresh, empty folder in a store."""
    folder = Path(store) / f"data-{secrets.token_hex(8)}"
    folder.mkdir()  # on the disk when the manifest is: the same folder is flushed
    return folder


def keep_only(folder, names=frozenset()):
    """Delete all files of a store in a folder of data, but those named.

    Files that are not a store's stay; an empty folder goes.
    """
    folder = Path(folder)
    if folder.is_symlink() or not DATA.fullmatch(folder.name):
        return
    for name in os.listdir(folder):
        if DELETABLE.fullmatch(name) and name not in names:
            (folder / name).unlink()
    if not os.listdir(folder):
        folder.rmdir()


def tidy_model(store):
    """Delete what the fit of a store's model left beside it, if it was ended too early.

    Returns
    -------
    str
        The name of the model's folder.
    """
    manifest = read_manifest(store)
    folder = Path(store) / manifest["data"]
    n_subdomains = len(manifest["files"]["subdomains"])
    if folder.is_dir():
        keep_only(folder, {MODEL, *map(file_of, range(n_subdomains))})
    return folder.name


def tidy(store, keep=()):
    """Delete what interrupted writers left, and what `keep` and the manifest do not."""
    try:
        keep = {*keep, tidy_model(store)}
    except StoreError:
        if os.path.lexists(Path(store) / MANIFEST):
            return  # damaged: leave everything to whoever repairs it
    for entry in Path(store).iterdir():
        if DATA.fullmatch(entry.name) and entry.name not in keep and entry.is_dir():
            keep_only(entry)
        elif HALF_A_MANIFEST.fullmatch(entry.name):
            entry.unlink()
