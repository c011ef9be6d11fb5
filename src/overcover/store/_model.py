"""A whole model to and from a store: `save`, `load`, `inspect`, `verify`."""

import warnings
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np

from .._records import NUMBER, positive, whole
from .._validation import check_count
from ..alone import as_cover, is_alone
from ..cover import Cover, CoverShape, check_cover_options
from ..inputs import InputScales
from ..learning import Borders, Promise
from ..machines import Machine
from ..regressor import OverlappingCoverRegressor
from ..routing import ROUTERS
from ..tables import TableEncoder
from ..targets import Scales
from . import _directory as directory
from ._codec import check_storable, decode, encode
from ._directory import file_of
from ._pack import RESTORE, StoreError, refusing
from ._shapes import check_machine, check_value
from ._subdomains import MOST_OPEN, Part, Subdomain, Subdomains, decode_pack, write_tree

# With less noise, relative to the signal, single precision costs digits that matter.
LEAST_NOISE = 1e-3
# Not in the model's file but in those of subdomains.
APART = ("states_", "cover_", "state_")
# Attributes that a fitted machine, and a fitted cover, have at least.
ALONE = ["n_features_in_", "n_outputs_", "_y_ndim"]
SHARED = [*ALONE, "machine_", "router_", "length_scales_", "n_subdomains_"]
SHARED += ["n_lenders_", "timings_"]
# What other attributes of a cover must be, counts at least; old stores lack some.
LEARNED: dict[str, Any] = {"groups_": whole("N"), "borders_": Borders}
LEARNED |= {"length_scales_": positive("d", np.inf), "promise_": Promise}
LEARNED |= {"target_": Scales, "input_scales_": InputScales, "weight_unit_": NUMBER}
COUNTS = {"subdomain_size_": 1, "n_lenders_": 0, "n_samples_tuned_": 1}


def save(model, path, dtype=None, notes=None):
    """Write a fitted model to a directory, whole or not at all.

    Parameters
    ----------
    model : OverlappingCoverRegressor or Machine
        Fitted, with a machine that describes its records, as GP and TwinGP do.
    path : str or path-like
        A directory; made if there is none, replaced if it is a store, refused if it
        is anything else. A model that was loaded from this path then reads the new
        files.
    dtype : {None, "float64", "float32"}, default=None
        None is "float64", which is exact. "float32" halves the factors that are not
        float32 already (see `GP`); they are nearly all of a store. Variances change by
        less than 0.1 % if the noise is 1e-3 of the signal or more (otherwise `save`
        warns), and so does the choice between candidates that are equally certain.
        Models fitted with ``keep_factors=False`` are even smaller; they compute factors
        again when queries need them.
    notes : dict or None, default=None
        Values for JSON, to keep beside the model; `inspect` returns them.

    Examples
    --------
    >>> import tempfile
    >>> from overcover import GP
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = GP(length_scale=1.0, noise=0.01).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save(model, f"{folder}/sine.ocm")
    ...     bool((load(f"{folder}/sine.ocm").predict(X) == model.predict(X)).all())
    True
    """
    dtype, notes = check_dtype(dtype), directory.check_notes(notes)
    if not isinstance(model, OverlappingCoverRegressor | Machine):
        raise StoreError(
            f"{model!r} cannot be saved: only a fitted OverlappingCoverRegressor or a "
            "machine such as GP can. Give the machine to a cover, or fit it alone."
        )
    if not model.__sklearn_is_fitted__():
        raise StoreError(f"{model!r} cannot be saved yet. Fit it first.")
    check_storable(model if isinstance(model, Machine) else model.machine_)
    model = as_cover(model)
    # None for a model in memory.
    source = getattr(model.states_, "subdomains", None)
    with directory.writing(path) as store:
        directory.tidy(store)
        folder = directory.new_data_folder(store)
        try:
            parts = zip(model.cover_.members, model.states_)
            digests = [
                write_tree(folder / file_of(k), Subdomain(*part)._asdict(), dtype)
                for k, part in enumerate(parts)
            ]
            commit(store, folder, model, digests, dtype, notes)
        finally:
            # Deletes the old model or the new one, as the manifest says.
            directory.tidy(store)
    if source is not None and source.folder.parent == Path(path).resolve():
        # Its files are gone: the model goes on with those that it has just written.
        fresh = load(path, max_open=source.max_open, max_bytes=source.max_bytes)
        model.states_, model.cover_ = fresh.states_, fresh.cover_


def check_dtype(dtype):
    """The name of a dtype to store by."""
    name = "float64" if dtype is None else str(np.dtype(dtype))
    if name not in ("float64", "float32"):
        raise ValueError(
            f"dtype={dtype!r} is not known. Choose None or 'float64', which is exact, "
            "or 'float32', which is half as large."
        )
    return name


def commit(store, folder, model, digests, dtype, notes, fingerprint=""):
    """Write what subdomains share, and make all of it the store's model."""
    noises = [f"{name}_" for name in model.machine_.description.noises]
    noise = np.min(getattr(model.machine_, noises[0])) if noises else 1.0
    if dtype == "float32" and noise < LEAST_NOISE:
        warnings.warn(
            f"dtype='float32' leaves few digits of variances where the noise is as "
            f"small as {noise:.1e} of the signal. Save with dtype='float64', or fit "
            "the machine with keep_factors=False: that is smaller, and exact.",
            UserWarning,
            stacklevel=3,
        )
    whole = model.machine_ if is_alone(model) else model
    shared = type(whole)(**whole.get_params(deep=False))
    vars(shared).update({k: v for k, v in vars(whole).items() if k not in APART})
    tree = {"model": shared, "n_owned": model.cover_.n_owned}
    digests = [write_tree(folder / directory.MODEL, tree), *digests]
    names = [directory.MODEL, *map(file_of, range(len(digests) - 1))]
    entries = [[d, (folder / name).stat().st_size] for d, name in zip(digests, names)]
    content = {
        "data": folder.name,
        "dtype": dtype,
        "summary": encode(summary_of(model)).tree,
        "files": {"model": entries[0], "subdomains": entries[1:]},
        "fingerprint": fingerprint,
    }
    content |= {directory.NOTES: notes} if notes else {}
    directory.write_manifest(store, content)


def summary_of(model):
    """What `inspect` tells, as plain values."""
    machine, learned = model.machine_, {}
    for name in machine.description.hyperparameters:
        value = getattr(machine, name, None)
        if value is not None:
            is_number = isinstance(value, np.ndarray | np.generic | float)
            text = np.asarray(value).tolist() if is_number else str(value)
            learned[name.rstrip("_")] = text
    parameters = model.get_params(deep=False)
    # "auto" stands for a number that only the fit knows.
    size, used = model.subdomain_size, getattr(model, "subdomain_size_", 0)
    return {
        "machine": type(machine).__name__,
        "machine_parameters": {k: repr(v) for k, v in machine.get_params().items()},
        "hyperparameters": learned,
        "parameters": {k: repr(v) for k, v in parameters.items()},
        "n_rows": int(np.sum(model.cover_.n_owned)),
        "n_features": len(model.length_scales_),
        "n_outputs": int(model.n_outputs_),
        "n_subdomains": int(model.n_subdomains_),
        "subdomain_size": int(size if isinstance(size, Integral) else used),
        "overlap": float(model.overlap),
        "router": type(model.router_).__name__,
        "target": list(model.target_.names),
        "fit_notes": getattr(model, "notes_", []),
        "alone": is_alone(model),
    }


def load(path, *, max_open=MOST_OPEN, max_bytes=None):
    """Open a model that `save` wrote.

    This unpickles nothing and runs no code from the store. The file of a subdomain is
    opened, checked and mapped when a query first needs it, and closed when too many are
    open.

    Parameters
    ----------
    path : str or path-like
    max_open : int, default=512
        Subdomains to keep open; all models of a process together keep at most half as
        many files open as it may.
    max_bytes : int or None, default=None
        Memory of open subdomains; None for 4 GiB, or a quarter of the computer's
        memory if that is less.

    Returns
    -------
    OverlappingCoverRegressor, or Machine if it was fitted alone
        Fitted; predictions are those of the model that was saved, bit by bit unless
        it was saved with ``dtype="float32"``. A damaged subdomain is a `StoreError` in
        `predict`; `overcover.store.verify` checks all files now.

    Examples
    --------
    >>> import tempfile
    >>> from overcover import GP, load
    >>> X = np.linspace(0, 6, 200)[:, None]
    >>> model = GP(length_scale=1.0, noise=0.01).fit(X, np.sin(X[:, 0]))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     model.save(f"{folder}/sine.ocm")
    ...     bool((load(f"{folder}/sine.ocm").predict(X) == model.predict(X)).all())
    True
    """
    check_count("max_open", max_open, 1, "512 suits most systems.")
    if max_bytes is not None:
        check_count("max_bytes", max_bytes, 0, "None is a quarter of memory.")
    manifest = directory.read_manifest(path)
    file = Path(path) / manifest["data"] / directory.MODEL
    if file.parent.is_symlink() or not file.parent.is_dir():
        # A link could lead out of the store.
        raise StoreError(f"{file.parent} is missing, or a link. {RESTORE}")
    digests = [digest for digest, _ in manifest["files"]["subdomains"]]
    tree, _ = decode_pack(file, manifest["files"]["model"][0])
    with refusing(f"{file} does not hold a model."):
        model, n_owned, sizes = check_model(tree, len(digests))
    alone = isinstance(model, Machine)
    known = file.parent.resolve(), digests, model if alone else model.machine_, sizes
    subdomains = Subdomains(*known, max_open, max_bytes)
    if alone:
        model.state_ = subdomains[0].state
        return model
    if manifest["version"] < 3:
        # The default was "inverse-distance"; where certainty decided which one
        # subdomain answers, any rule acted as "certainty".
        is_ignored = model.router_.certainty_decides and model.n_consulted == 1
        if is_ignored or model.combine == "inverse-distance":
            model.combine = "auto"
    model.states_ = Part(subdomains, "state")
    model.cover_ = Cover(Part(subdomains, "members"), n_owned)
    if not hasattr(model, "subdomain_size_"):  # stores of before it was kept
        model.subdomain_size_ = CoverShape.of(model, sizes["N"], sizes["q"]).size
    return model


def check_model(tree, n_subdomains):
    """The model in a tree, and its sizes, if all of it fits together."""
    if type(tree) is not dict or set(tree) != {"model", "n_owned"}:
        raise StoreError("It has other parts.")
    model, n_owned = tree["model"], tree["n_owned"]
    alone = isinstance(model, Machine)
    if not alone and type(model) is not OverlappingCoverRegressor:
        raise StoreError("It is of another class.")
    needed = ALONE if alone else SHARED
    if missing := [name for name in needed if not hasattr(model, name)]:
        raise StoreError(f"It lacks {', '.join(missing)}.")
    counts = {"d": "n_features_in_", "q": "n_outputs_", "K": "n_subdomains_"}
    sizes = {letter: getattr(model, name, 1) for letter, name in counts.items()}
    if hasattr(model, "encoder_"):
        with refusing("It encodes tables otherwise:"):
            is_encoder = type(model.encoder_) is TableEncoder
            if not is_encoder or len(model.encoder_.columns_) != sizes["d"]:
                raise StoreError("there are other columns.")
            model.encoder_.check(sizes["q"])
            sizes["d"] = len(model.encoder_.inputs)
    if not all(type(n) is int and n > 0 for n in sizes.values()):
        raise StoreError(f"It counts {sizes}.")
    if sizes["K"] != n_subdomains:
        raise StoreError(f"It is not one of {n_subdomains} subdomains.")
    check_value(n_owned, whole("K", 1), sizes, "n_owned")
    sizes["N"] = sum(n_owned.tolist())
    if model._y_ndim not in (1, 2) or (model._y_ndim == 1 and sizes["q"] > 1):
        raise StoreError("Its outputs are of another shape.")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and (
        np.shape(names) != (model.n_features_in_,)
        or not all(isinstance(name, str) for name in names)
    ):
        raise StoreError("The names of its columns are not words, one for each.")
    model.notes_ = check_texts(getattr(model, "notes_", []))  # old stores have none
    if not alone:
        check_cover(model, sizes)
    check_machine(model if alone else model.machine_, sizes, is_calibrated=True)
    return model, n_owned, sizes


def check_cover(model, sizes):
    """Refuse parameters and attributes that only a cover has, if they do not fit."""
    learned = vars(model)
    for name in LEARNED.keys() & learned:
        check_value(learned[name], LEARNED[name], dict(sizes), name)
    check_value(model.router_, tuple(ROUTERS.values()), dict(sizes), "router_")
    with refusing("It makes no sense:"):
        model._check_options()  # a partition is checked when it is fitted again
        check_count("n_jobs", abs(1 if model.n_jobs is None else model.n_jobs))
        counts = COUNTS | {"n_samples_seen_": sizes["N"]}
        for name in counts.keys() & learned:
            check_count(name, learned[name], counts[name])
        if "budget_choice_" in learned:
            check_cover_options(*model.budget_choice_)
        if not np.isfinite([float(value) for value in model.timings_.values()]).all():
            raise ValueError("its stages took no number of seconds.")


def check_texts(notes):
    """Notes of a fit, if they are a list of texts."""
    if type(notes) is not list or not all(isinstance(text, str) for text in notes):
        raise StoreError(f"{notes!r} are not the notes of a fit.")
    return notes


def inspect(path):
    """What is in a store, from its manifest alone: no array is touched.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        machine, machine_parameters, hyperparameters, parameters (as text), n_rows,
        n_features, n_outputs, n_subdomains, subdomain_size, overlap, router, target
        (the scale of each output; empty if nothing was changed), dtype, bytes, format,
        versions, notes (of `save`), fit_notes (what the fit warned of).
    """
    manifest = directory.read_manifest(path)
    with refusing(f"{path}: its manifest has no summary."):
        summary = dict(decode(manifest["summary"], []))
    files = [manifest["files"]["model"], *manifest["files"]["subdomains"]]
    facts = {
        "dtype": manifest["dtype"],
        "bytes": sum(n_bytes for _, n_bytes in files),
        "format": manifest["version"],
        "versions": dict(manifest["written_by"]),
        "notes": manifest.get(directory.NOTES, {}),
    }
    return {"fit_notes": [], "target": []} | summary | facts


def verify(path):
    """Check every file of a store; a `StoreError` names the first that is damaged.

    Parameters
    ----------
    path : str or path-like
    """
    states = getattr(load(path, max_open=1), "states_", [])
    for k in range(len(states)):
        states[k]
