"""A draft: the folder where a fit into a store keeps what is done.

Each result of a stage or subdomain is a file; a fit that starts again does what is
missing. A fingerprint of data and parameters tells the drafts of other fits.
"""

import json
import os
from pathlib import Path
from typing import Any

from sklearn.utils import check_random_state

from .._notes import noted, remember
from ..cover import Cover
from ..fitting import InMemory, fit_machine
from ..partition import Partition
from ..routing import ROUTERS
from . import _directory as directory
from ._codec import encode
from ._model import check_texts
from ._pack import (
    StoreError,
    identity_of,
    new_file,
    open_pack,
    read_json,
    refusing,
    write_pack,
)
from ._shapes import WEIGHTS, check_array, check_machine, check_record
from ._subdomains import Part, Subdomains, decode_pack, write_subdomain

DRAFT, MOST_DRAFT = "draft.json", 2**12


class Draft(InMemory):
    """Runs the stages of a fit in a folder: reads what is there, makes what is not."""

    in_memory = False

    def __init__(self, folder, dtype="float64"):
        self.folder, self.dtype = Path(folder), dtype
        self.fingerprint = fingerprint_in(folder)

    def file(self, name):
        """The path of a part of the draft."""
        return self.folder / f"{name}{directory.SUFFIX}"

    def holds(self, name):
        """Whether a part is there, and whole, and of this fit."""
        try:
            return bool(open_pack(self.file(name), draft=self.fingerprint))
        except StoreError:
            return False

    def write(self, name, tree):
        """Write a part, whole or not at all."""
        write_pack(self.file(name), *encode(tree, name), self.fingerprint)

    def read(self, name, is_checked=True):
        """A part with mapped arrays; its checksum may be taken for granted."""
        path = self.file(name)
        known = None if is_checked else identity_of(os.stat(path))
        return decode_pack(path, known=known, draft=self.fingerprint)[0]

    def result_of(self, stage, fit):
        try:
            return self.read_result(stage.name, fit)
        except StoreError:  # not there, damaged, or of another fit
            with noted() as notes:
                value = stage.make(fit)
            remember(notes)
            self.write(stage.name, result_record(value, fit, notes))
            return value

    def read_result(self, name, fit):
        """The result of a stage of this fit; sets random numbers as they were after."""
        tree = self.read(name)
        with refusing(f"{self.file(name)} makes no sense."):
            value, after = tree["value"], tree["random_state"]
            check_result(name, value, sizes_of(fit))
            notes = check_texts(tree.get("notes", []))
            if is_seeded(fit):
                fit.rng.set_state(after)
        remember(notes)
        return value

    def states_of(self, fit, track):
        return self.stored(fit, list(track(self.run_each(self.keep_machine, fit))))

    def keep_machine(self, fit, k):
        """The digest of a subdomain's file, which is written unless it is there."""
        try:
            path = self.folder / directory.file_of(k)
            return open_pack(path, draft=self.fingerprint).digest
        except StoreError:
            parts = fit.members(k), fit_machine(fit, k)
            return write_subdomain(self.folder, k, *parts, self.dtype, self.fingerprint)

    def stored(self, fit, digests):
        """States that are read from the files with these digests, a few at a time."""
        return Part(Subdomains(self.folder, digests, fit.machine, {}), "state")


def result_record(value, fit, notes=()):
    """What a file keeps of a stage that is done."""
    after = fit.rng.get_state() if is_seeded(fit) else None
    return {"value": value, "random_state": after, "notes": list(notes)}


def is_seeded(fit):
    """Whether it has random numbers of its own, not NumPy's global ones."""
    return fit.rng is not check_random_state(None)


def sizes_of(fit):
    """Sizes that the result of the next stage must agree with."""
    n_samples, n_features = fit.data.X.shape
    sizes = {"N": n_samples, "d": n_features, "q": fit.data.Y.shape[1]}
    if "cover" in fit.results:
        sizes["K"] = fit.n_subdomains
    elif "partition" in fit.results:
        sizes["K"] = len(fit.partition.centers)
    return sizes


def check_result(name, value, sizes):
    """Refuse what a stage could not have made of rows of these sizes."""
    if name == "tune":
        machine, weight = value
        check_machine(machine, sizes)
        if weight is not None:
            check_array(weight, WEIGHTS, sizes, "weights")
        return
    kinds: dict[str, Any] = {"partition": [Partition], "cover": [Cover]}
    if type(value) not in kinds.get(name, ROUTERS.values()):
        raise StoreError(f"It holds no {name}.")
    check_record(value, dict(sizes), name)


def new_draft(store, fingerprint):
    """A folder for a fit with this fingerprint."""
    folder = directory.new_data_folder(store)
    with new_file(folder / DRAFT) as file:
        file.write(json.dumps({"fingerprint": fingerprint}).encode())
    return folder


def find_draft(store, fingerprint):
    """The folder of an unfinished fit, None if there is none; refuses another's."""
    for path in Path(store).glob(f"data-*/{DRAFT}"):
        if not is_begun(path.parent):
            continue
        try:
            other = fingerprint_in(path.parent)
        except StoreError:
            other = None
        if other == fingerprint:
            return path.parent
        if directory.manifest_or_empty(store).get("data") != path.parent.name:
            raise StoreError(
                f"{path.parent} is an unfinished fit of other data, other parameters, "
                "or another version of overcover. Call fit_into with what it was "
                "called with, discard it with resume=False, or choose another path."
            )
    return None


def fingerprint_in(folder):
    """The fingerprint of the fit that a folder is a draft of."""
    path = Path(folder) / DRAFT
    with refusing(f"{path} is damaged:"):
        fingerprint = read_json(path, MOST_DRAFT)["fingerprint"]
        if not directory.DIGEST.fullmatch(fingerprint):
            raise StoreError(f"{fingerprint!r} is no fingerprint.")
    return fingerprint


def is_begun(folder):
    """Whether it holds any result."""
    return any(name.endswith(directory.SUFFIX) for name in os.listdir(folder))
