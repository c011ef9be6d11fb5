"""Fit into a store: results of stages stay on the disk and are not computed again.

A draft is a folder that the manifest does not name yet. Each result of a stage or a
subdomain is a file there. The folder has the first digits of a fingerprint of data and
parameters as its name, which every file repeats: so other fits are told apart.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from .._notes import noted, remember
from .._records import positive
from .._streams import blocks_of
from .._validation import check_groups, check_training_data
from ..cover import Cover
from ..fitting import STAGES, InMemory, fit_machine
from ..machines import make_machine
from ..partition import Partition
from ..regressor import OverlappingCoverRegressor
from ..routing import ROUTERS
from ..tables import encode_training
from . import _directory as directory
from ._codec import FITTED, check_storable, encode
from ._model import check_dtype, check_texts, commit, load
from ._pack import StoreError, open_pack, refusing
from ._rows import as_floats, mapped_used
from ._shapes import check_machine, check_value
from ._subdomains import Part, Subdomain, Subdomains, decode_pack, write_tree

# What a fit writes first of all, and no other writer.
FIRST = f"{next(iter(STAGES))}{directory.SUFFIX}"


class Draft(InMemory):
    """Runs the stages of a fit in a folder: reads what is there, makes what is not."""

    in_memory = False

    def __init__(self, folder, dtype="float64"):
        self.folder, self.dtype = Path(folder), dtype

    def file(self, name, number=None):
        """The path of a part of the draft."""
        name = name if number is None else f"{name}-{number:06d}"
        return self.folder / f"{name}{directory.SUFFIX}"

    def write(self, tree, *part):
        """Write a part, whole or not at all."""
        write_tree(self.file(*part), tree, draft=self.folder.name)

    def read(self, *part):
        """A part with mapped arrays."""
        return decode_pack(self.file(*part), draft=self.folder.name)[0]

    def result_of(self, name, fit):
        try:
            return self.read_result(name, fit)
        except StoreError:  # not there, damaged, or of another fit
            with noted() as notes:
                value = super().result_of(name, fit)
            remember(notes)
            self.write(result_record(value, fit, notes), name)
            return value

    def read_result(self, name, fit):
        """The result of a stage of this fit; sets random numbers as they were after."""
        tree = self.read(name)
        with refusing(f"{self.file(name)} makes no sense."):
            value, after = tree["value"], tree["random_state"]
            sizes = dict(zip("Nd", fit.data.X.shape)) | {"q": fit.data.Y.shape[1]}
            if hasattr(fit, "partition"):  # as many subdomains as clusters
                sizes["K"] = len(fit.partition.centers)
            check_result(name, value, sizes)
            notes = check_texts(tree.get("notes", []))
            if is_seeded(fit):
                fit.rng.set_state(after)
        remember(notes)
        return value

    def states_of(self, fit, track):
        return self.stored(fit, super().states_of(fit, track))

    def keep_machine(self, fit, k):
        """The digest of a subdomain's file, which is written unless it is there."""
        path, of_fit = self.folder / directory.file_of(k), self.folder.name
        try:
            return open_pack(path, draft=of_fit).digest
        except StoreError:
            subdomain = Subdomain(fit.members(k), fit_machine(fit, k))
            return write_tree(path, subdomain._asdict(), self.dtype, of_fit)

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


def check_result(name, value, sizes):
    """Refuse what a stage could not have made of rows of these sizes."""
    if name == "tune":
        machine, weight = value
        check_machine(machine, sizes)
        if weight is not None:
            check_value(weight, positive("N"), sizes, "weights")
        return
    kinds = {"partition": Partition, "cover": Cover}
    check_value(value, kinds.get(name, tuple(ROUTERS.values())), dict(sizes), name)


# Results do not depend on these.
INDIFFERENT = {"n_jobs": None, "verbose": 0}


def fit_into(
    model,
    X,
    y,
    path,
    *,
    sample_weight=None,
    X_target=None,
    groups=None,
    resume=True,
    dtype=None,
    notes=None,
):
    """Fit a model, and write every machine to a store as soon as it is complete.

    Equal to ``model.fit(X, y, ...)`` followed by ``model.save(path)``, bit by bit, but
    memory holds only the machines that are being fitted. To resume an interrupted fit,
    repeat the call. A model that is already at the path stays until the new one is
    complete; an unfinished fit of other data or parameters is a `StoreError`.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        It is fitted; afterwards its subdomains are those of the store, as in `load`.
    X : array-like of shape (n_samples, n_features)
    y : array-like of shape (n_samples,) or (n_samples, n_outputs)
        They may be mapped from files, ``np.load(name, mmap_mode="r")``. Then all stages
        read inputs in blocks, except the partition, which holds two copies in float64,
        or 64 numbers for each row of more than 1,000 columns, or a shard with
        ``partition="two-level"``. Memory holds the outputs. It also holds the inputs
        with ``router="neighbors"``, and with "iwtgp" and `X_target`.
    path : str or path-like
        As in `save`.
    sample_weight, X_target, groups : array-like, default=None
        As in ``model.fit``.
    resume : bool, default=True
        Whether to resume an unfinished fit of the same data and parameters, or return a
        finished one. False discards an unfinished fit.
    dtype : {None, "float64", "float32"}, default=None
    notes : dict or None, default=None
        As in `save`.

    Returns
    -------
    model

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

    def begin(scratch, dtype):
        numbers = check_groups(groups, X)
        known = sample_weight, X_target, dtype, notes, numbers

        def fit_rows(folder):
            is_mapped = isinstance(X, np.memmap) and X.ndim == 2 and _is_plain(X)
            rows = as_floats(X, scratch / "rows.npy") if is_mapped else X
            runner, used = Draft(folder, dtype), (rows, y, sample_weight, numbers)
            if is_mapped and _is_plain(y) and len(rows) == len(y):
                # Else the fit would copy the rows that it uses to memory.
                runner.is_merged, runner.n_given = True, len(rows)
                used, runner.rows = mapped_used(*used, scratch)
            model._fit(*used[:3], X_target, runner, used[3])
            if runner.rows is not None and sample_weight is not None:
                # Those of merged rows are relative to the largest.
                model.weight_unit_ *= float(np.max(sample_weight))

        return fingerprint_of(model, X, y, *known), fit_rows

    return fit_draft(model, path, begin, resume, dtype, notes)


def fit_draft(
    model, path, begin, resume=True, dtype=None, notes=None, is_idle=lambda: True
):
    """Find or make a draft, let ``begin(folder, dtype)`` fit into it, commit it."""
    if not isinstance(model, OverlappingCoverRegressor):
        raise StoreError(f"{model!r} is not an OverlappingCoverRegressor.")
    model._check_options()
    check_storable(make_machine(model.machine))
    encode(clone(model).set_params(**INDIFFERENT))
    dtype, notes = check_dtype(dtype), directory.check_notes(notes)
    with directory.writing(path) as store:
        scratch = directory.new_data_folder(store)
        try:
            fingerprint, fit_rows = begin(scratch, dtype)
            is_new = not os.path.lexists(store / directory.MANIFEST)
            old = {} if is_new else directory.read_manifest(store)
            drafts = {file.parent.name for file in store.glob(f"data-*/{FIRST}")}
            if resume and old.get("fingerprint") == fingerprint:
                directory.tidy(store, scratch.name, *drafts)
                return adopt(model, load(store))
            folder = store / f"data-{fingerprint[:16]}"
            if resume and (others := drafts - {folder.name, old.get("data")}):
                raise StoreError(
                    f"{store / min(others)} is an unfinished fit of other data, other "
                    "parameters, or another version of overcover. Call fit_into with "
                    "what it was called with, discard it with resume=False, or choose "
                    "another path."
                )
            directory.tidy(store, scratch.name, folder.name if resume else "")
            if folder.name == old.get("data"):
                folder = directory.new_data_folder(store)
            folder.mkdir(exist_ok=True)
            try:
                fit_rows(folder)
            finally:
                if not (folder / FIRST).exists():
                    directory.keep_only(folder)
            digests = model.states_.subdomains.digests
            commit(store, folder, model, digests, dtype, notes, fingerprint)
            directory.tidy(store)
            return adopt(model, load(store))
        finally:
            if is_idle():
                directory.keep_only(scratch)


def adopt(model, loaded):
    """Give a model all that another has learned, and nothing else."""
    kept = {k: v for k, v in vars(model).items() if not FITTED.fullmatch(k)}
    vars(model).clear()
    vars(model).update(vars(loaded) | kept)
    return model


def fingerprint_of(
    model, X, y, sample_weight, X_target, dtype, notes=None, groups=None
):
    """SHA-256 of all that a fit depends on, as hexadecimal digits."""
    from .. import __version__

    fresh = clone(model).set_params(**INDIFFERENT)
    recipe = encode(fresh)
    words = [__version__, directory.VERSION, dtype, recipe.tree, notes or {}]
    hashing = hashlib.sha256(json.dumps(words, sort_keys=True).encode())
    if not all(_is_plain(a) for a in (X, y)):  # data frames, lists
        columns = [str(name) for name in getattr(X, "columns", [])]
        X, X_target = encode_training(fresh, X, y, sample_weight, X_target, groups)
        X, Y, *_ = check_training_data(fresh, X, y, merge=False)
        names = list(getattr(fresh, "feature_names_in_", []))
        if hasattr(fresh, "encoder_"):
            learned = encode(fresh.encoder_)
            hashing.update(json.dumps([columns, learned.tree]).encode())
            recipe = recipe._replace(arrays=[*recipe.arrays, *learned.arrays])
        hashing.update(json.dumps([names, fresh._y_ndim]).encode())
        y = Y
    for array in (*recipe.arrays, X, y, sample_weight, X_target, groups):
        if array is None:
            hashing.update(b"None")
            continue
        array = np.asarray(array)
        hashing.update(f"{array.dtype.str}{array.shape}".encode())
        for block in blocks_of(np.atleast_1d(array)):
            hashing.update(np.ascontiguousarray(block).data)
    return hashing.hexdigest()


def _is_plain(array):
    """Whether an array can be hashed as it is, mapped or not."""
    return isinstance(array, np.ndarray) and array.dtype.kind in "fiub"
