"""Fit into a store: whatever is done is on the disk, and is not done again.

A draft is a folder of data in a store that its manifest does not name yet. Stages and
subdomains become files in it as they are done, the stages with the state of the random
numbers after them; a fit that starts again reads what is there, does what is missing,
and so makes the same model. A fingerprint of data and parameters, in the folder and in
each of its files, keeps another fit from taking them up. The model that the store held
before stays until the new one is whole.
"""

import hashlib
import json
import os
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._notes import noted, remember
from .._parallel import run_tasks
from .._streams import blocks_of
from .._validation import check_training_data
from ..cover import Cover
from ..machines import make_machine
from ..partition import Partition
from ..regressor import OverlappingCoverRegressor
from ..routing import ROUTERS
from . import _directory as directory
from ._codec import FITTED, check_storable, encode
from ._model import check_dtype, check_texts, commit, load
from ._pack import (
    SUFFIX,
    StoreError,
    new_file,
    open_pack,
    open_regular,
    parse_json,
    write_pack,
)
from ._rows import mapped_as_float, write_used
from ._shapes import WEIGHTS, check_array, check_machine, check_record
from ._subdomains import (
    StoredStates,
    Subdomains,
    decode_pack,
    write_subdomain,
)

DRAFT, MOST_DRAFT = "draft.json", 2**12
# What stages make, other than the metric, which is a machine and weights.
STAGES = {"partition": (Partition,), "cover": (Cover,)}
# Results do not depend on these.
INDIFFERENT = {"n_jobs": None, "verbose": 0}


class Draft:
    """Where a fit keeps its work: in a folder of a store.

    See `overcover.subdomains.InMemory` for what its methods mean.

    Parameters
    ----------
    folder : Path
    dtype : {"float64", "float32"}
    """

    is_merged, rows = False, None

    def __init__(self, folder, dtype):
        self.folder, self.dtype = Path(folder), dtype
        self.fingerprint = fingerprint_in(folder)
        self.digests: list[str] = []

    def stage(self, name, rng, make, *args):
        """Read a stage, and where its random numbers ended; or make and write it."""
        path = self.folder / f"{name}{SUFFIX}"
        # Numbers that nobody seeded are NumPy's own, and not ours to set back.
        seeded = rng is not check_random_state(None)
        try:
            return self._read_stage(path, rng if seeded else None, args)
        except StoreError:  # not there, damaged, or of another fit: made again
            with noted() as notes:
                value = make(*args)
            remember(notes)
            after = rng.get_state() if seeded else None
            tree = {"value": value, "random_state": after, "notes": notes}
            write_pack(path, *encode(tree, name), self.fingerprint)
            return value

    def _read_stage(self, path, rng, args):
        found, _ = decode_pack(path, draft=self.fingerprint)
        try:
            value, after = found["value"], found["random_state"]
            check_stage(path.stem, value, args)
            notes = check_texts(found.get("notes", []))
            if rng is not None:
                rng.set_state(after)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise StoreError(f"{path} makes no sense: {error}") from error
        remember(notes)
        return value

    def take_used(self, X, y, weight):
        """Mapped rows that the fit uses, which it would otherwise copy to memory."""
        used, self.is_merged = write_used(X, y, weight, self.folder), True
        if used is None:
            return X, y, weight
        X, y, weight, self.rows = (np.load(p, mmap_mode="r") for p in used.values())
        return X, y, weight

    def states(self, local, n_jobs):
        """Digests of the files of all subdomains, see `state`."""
        return run_tasks(partial(self.state, local), local.tasks(), n_jobs)

    def state(self, local, k):
        """The digest of a subdomain's file, which is written unless it is there."""
        try:
            return open_pack(
                self.folder / directory.file_of(k), draft=self.fingerprint
            ).digest
        except StoreError:
            made = local.members(k), local.fit(k), self.dtype, self.fingerprint
            return write_subdomain(self.folder, k, *made)

    def gathered(self, machine, states):
        """States that are read from their files, a few at a time."""
        self.digests = list(states)
        return StoredStates(Subdomains(self.folder, self.digests, machine, {}))


def fit_into(
    model,
    X,
    y,
    path,
    *,
    sample_weight=None,
    X_target=None,
    resume=True,
    dtype=None,
    notes=None,
):
    """Fit a model, writing every machine to a store as soon as it is done.

    Equal to ``model.fit(X, y, ...)`` followed by ``model.save(path)``, but memory holds
    only the machines being worked on, and a fit that was interrupted, by whatever, goes
    on where it stopped when it is called again: the result is the same, bit by bit.
    The model that the path held before stays whole until the new one is.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Is fitted; afterwards its subdomains are those of the store, as in `load`.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        Arrays mapped from files, ``np.load(name, mmap_mode="r")``, will do. Inputs
        are then read in blocks, and as a whole only for the partition: two copies in
        float64, or 64 numbers for each row of more than 1,000 columns, or a shard with
        ``partition="two-level"``. Outputs are held in memory, and so are inputs where a
        router or a weight looks at all of them (``router="neighbors"``, "iwtgp" with
        `X_target`).
    path : str or path-like
        As in `save`.
    sample_weight, X_target : array-like, default=None
        As in ``model.fit``.
    resume : bool, default=True
        Whether to take up an unfinished fit of the same data and parameters, or return
        a finished one. False discards what is unfinished.
    dtype : {None, "float64", "float32"}, default=None
    notes : dict or None, default=None
        As in `save`.

    Returns
    -------
    model

    Raises
    ------
    StoreError
        If the path holds an unfinished fit of other data or parameters (with
        ``resume=True``), is foreign, or cannot be written to.

    Examples
    --------
    >>> import tempfile
    >>> from overcover import GP, OverlappingCoverRegressor
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = OverlappingCoverRegressor(GP(length_scale=1.0, noise=0.01),
    ...     subdomain_size=50, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model = fit_into(model, X, np.sin(X[:, 0]), f"{folder}/sine.ocm")
    ...     bool(abs(model.predict([[1.5]])[0] - np.sin(1.5)) < 0.01)
    True
    """
    check_draftable(model)
    dtype, notes = check_dtype(dtype), directory.check_notes(notes)
    fingerprint = fingerprint_of(model, X, y, sample_weight, X_target, dtype, notes)

    def fit_rows(folder):
        work = Draft(folder, dtype)
        rows = mapped_as_float(X, folder / "rows.npy")
        given = rows, y, sample_weight
        if isinstance(rows, np.memmap) and _is_plain(y) and len(rows) == len(y):
            given = work.take_used(*given)
        model._fit(*given, X_target, work)
        return work.digests

    with directory.writing(path) as store:
        return fit_draft(model, store, fit_rows, fingerprint, resume, dtype, notes)


def check_draftable(model):
    """Refuse early what cannot be fitted into a store."""
    if not isinstance(model, OverlappingCoverRegressor):
        raise StoreError(f"{model!r} is not an OverlappingCoverRegressor.")
    check_storable(make_machine(model.machine))


def fit_draft(model, store, fit_rows, fingerprint, resume, dtype, notes=None, keep=()):
    """Find or make a draft, fit into it, and make it the store's model.

    Parameters
    ----------
    model : OverlappingCoverRegressor
    store : Path
        Which nobody else writes to.
    fit_rows : callable
        Fits the model into a folder, and returns the digests of its subdomains.
    fingerprint : str
    resume : bool
    dtype : {"float64", "float32"}
    notes : dict or None
        As in `save`.
    keep : sequence of str
        Names of folders of data that are needed until the fit is done.

    Returns
    -------
    model
    """
    if resume and _is_finished(store, fingerprint):
        directory.tidy_model(store)
        return adopt(model, load(store))
    found = find_draft(store, fingerprint) if resume else None
    directory.tidy(store, keep=[*keep, found.name] if found else keep)
    folder = found or new_draft(store, fingerprint)
    try:
        digests = fit_rows(folder)
    finally:
        if not is_begun(folder):
            directory.keep_only(folder)
    commit(store, folder, model, digests, dtype, notes, fingerprint)
    directory.tidy(store)
    return adopt(model, load(store))


def adopt(model, loaded):
    """Give a model all that another has learned, and nothing else."""
    for name in [name for name in vars(model) if FITTED.fullmatch(name)]:
        delattr(model, name)
    for name, value in vars(loaded).items():
        if FITTED.fullmatch(name):
            setattr(model, name, value)
    return model


def fingerprint_of(model, X, y, sample_weight, X_target, dtype, notes=None):
    """SHA-256 of all that a fit depends on, as hexadecimal digits."""
    from .. import __version__

    fresh = clone(model).set_params(**INDIFFERENT)
    asked = encode(fresh)
    given = [__version__, directory.VERSION, dtype, asked.tree, notes or {}]
    hashing = hashlib.sha256(json.dumps(given, sort_keys=True).encode())
    if not all(_is_plain(a) for a in (X, y)):  # data frames, lists
        X, Y, _, _ = check_training_data(fresh, X, y, merge=False)
        names = list(getattr(fresh, "feature_names_in_", []))
        hashing.update(json.dumps([names, fresh._y_ndim]).encode())
        y = Y
    few = [None if a is None else np.asarray(a) for a in (sample_weight, X_target)]
    for array in (*asked.arrays, X, y, *few):
        _hash_array(hashing, array)
    return hashing.hexdigest()


def _is_plain(array):
    """Whether an array can be hashed as it is, mapped or not."""
    return isinstance(array, np.ndarray) and array.dtype.kind in "fiub"


def _hash_array(hashing, array):
    if array is None:
        return hashing.update(b"None")
    hashing.update(f"{array.dtype.str}{array.shape}".encode())
    for block in blocks_of(np.atleast_1d(array)):
        hashing.update(np.ascontiguousarray(block).data)


def _is_finished(store, fingerprint):
    if not os.path.lexists(store / directory.MANIFEST):
        return False
    return directory.read_manifest(store)["fingerprint"] == fingerprint


def new_draft(store, fingerprint):
    """A folder for a fit with this fingerprint."""
    folder = directory.new_data_folder(store)
    with new_file(folder / DRAFT) as file:
        file.write(json.dumps({"fingerprint": fingerprint}).encode())
    return folder


def find_draft(store, fingerprint):
    """The folder of an unfinished fit, None if there is none.

    Raises
    ------
    StoreError
        If it is one of other data or parameters.
    """
    for path in Path(store).glob(f"data-*/{DRAFT}"):
        if not is_begun(path.parent):
            continue
        try:
            found = fingerprint_in(path.parent)
        except StoreError:
            found = None
        if found == fingerprint:
            return path.parent
        if not _is_named(store, path.parent.name):
            raise StoreError(
                f"{path.parent} is an unfinished fit of other data, other parameters, "
                "or another version of overcover. Call fit_into with what it was "
                "called with, discard it with resume=False, or choose another path."
            )
    return None


def check_stage(name, value, args):
    """Refuse what a stage could not have made of these arguments.

    Parameters
    ----------
    name : {"metric", "partition", "cover", "router"}
    value : what a file gave
    args : tuple
        Of the function that makes the stage; rows are the first with two axes.

    Raises
    ------
    StoreError
    """
    rows = next(a for a in args if len(getattr(a, "shape", ())) == 2)
    sizes = dict(zip("Nd", rows.shape))
    for known in args:
        if isinstance(known, Cover):
            sizes["K"] = len(known.members)
        if isinstance(known, Partition):
            sizes["K"] = len(known.centers)
    if name == "metric":
        machine, weight = value
        sizes["q"] = args[1].shape[1]
        check_machine(machine, sizes)
        if weight is not None:
            check_array(weight, WEIGHTS, sizes, "weights")
    elif type(value) not in STAGES.get(name, tuple(ROUTERS.values())):
        raise StoreError(f"It holds no {name}.")
    else:
        check_record(value, sizes, name)


def fingerprint_in(folder):
    """Of the fit that a draft is of.

    Raises
    ------
    StoreError
        If the folder is no draft.
    """
    path = Path(folder) / DRAFT
    descriptor, _ = open_regular(path)
    with open(descriptor, "rb") as file:
        data = file.read(MOST_DRAFT)
    try:
        found = parse_json(data)["fingerprint"]
    except (KeyError, ValueError, RecursionError) as error:
        raise StoreError(f"{path} is damaged: {error!r}.") from error
    if not isinstance(found, str) or not directory.DIGEST.fullmatch(found):
        raise StoreError(f"{path} is damaged: {found!r} is no fingerprint.")
    return found


def is_begun(folder):
    """Whether anything is there that would have to be done again."""
    return any(name.endswith(SUFFIX) for name in os.listdir(folder))


def _is_named(store, name):
    """Whether the manifest names a folder: then it is finished, draft or not."""
    exists = os.path.lexists(Path(store) / directory.MANIFEST)
    return exists and directory.read_manifest(store)["data"] == name
