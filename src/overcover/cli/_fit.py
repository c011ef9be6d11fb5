"""Fit a model on a table, into a store, with notes on what the columns were."""

import os
import time
from pathlib import Path
from typing import Any, NamedTuple

from .. import OverlappingCoverRegressor, store
from ..advice import Finding, findings, with_notes
from ..cover import DEFAULT_OVERLAP
from ..store import MANIFEST, check_target, fingerprint_of, read_manifest
from ._budget import describe, plan_within
from ._mistakes import Cannot
from ._stored import notes_of

# The note in a store that holds the fingerprint of a request with a budget.
ASKED = "asked"


class Fit(NamedTuple):
    """What came of a fit."""

    model: OverlappingCoverRegressor
    findings: list[Finding]
    seconds: float
    """All of it, with writing."""

    is_new: bool = True
    """False if the store held this very fit before, and nothing was done."""


def check_store(out):
    """Refuse, before any work is done, a folder that no model can be written to."""
    check_target(out)
    folder = Path(out).absolute()
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise Cannot(f"{out} cannot be written: {folder} may not be written to.")


def is_fitted(out, asked, replace=False):
    """Whether a store holds the model that is asked for.

    Parameters
    ----------
    out : str
    asked : str
        Fingerprint of what is asked for.
    replace : bool
        Whether a model of anything else may be replaced; else it is refused.
    """
    if not (Path(out) / MANIFEST).exists():
        return False
    manifest = read_manifest(out)
    if asked in (manifest["fingerprint"], manifest.get("notes", {}).get(ASKED)):
        return True
    if not replace:
        raise Cannot(
            f"{out} holds a model of other data, other options or another version of "
            "overcover. Give --replace to replace it, or another --out."
        )
    return False


def fit_table(
    X,
    Y,
    recipe,
    out,
    options: dict[str, Any],
    budget=None,
    resume=True,
    replace=False,
    say=print,
):
    """Fit, store, and look for what there is to say.

    Parameters
    ----------
    X : pandas.DataFrame of shape (n_samples, n_features), float64
    Y : pandas.DataFrame of shape (n_samples, n_outputs), float64
    recipe : Recipe
        How X was made.
    out : str
        The store.
    options : dict
        Of `OverlappingCoverRegressor`.
    budget : float or None
        Seconds; decides the size of subdomains.
    resume : bool
        Whether to go on with an unfinished fit.
    replace : bool
        Whether a finished model of other data or options may be replaced.
    say : callable
        Told, in words, what the budget decided, and what an interruption leaves.

    Returns
    -------
    Fit
    """
    started = time.perf_counter()
    model = OverlappingCoverRegressor(**options)
    # One output is a column of its own right, as in Python.
    y = Y.iloc[:, 0].to_numpy() if Y.shape[1] == 1 else Y.to_numpy()
    notes = notes_of(recipe, Y.columns)
    told = notes if budget is None else notes | {"budget": budget}
    asked = fingerprint_of(model, X, y, None, None, "float64", told)
    if is_fitted(out, asked, replace) and not (replace and not resume):
        seconds = time.perf_counter() - started
        model = store.load(out)
        found = with_notes(model, findings(model, X, Y))
        return Fit(model, found, seconds, is_new=False)
    if budget is not None:
        # The default may fall where nothing else helps; another overlap was chosen.
        given = None if model.overlap == DEFAULT_OVERLAP else model.overlap
        shape = (*X.shape, Y.shape[1])
        choice = plan_within(shape, budget, model.machine, given, model.n_jobs)
        say(describe(choice, budget))
        model.set_params(subdomain_size=choice.subdomain_size, overlap=choice.overlap)
        # What a budget decides depends on the computer: the request is remembered.
        notes |= {ASKED: asked}
    try:
        store.fit_into(model, X, y, out, resume=resume, notes=notes)
    except KeyboardInterrupt:
        if os.path.isdir(out):
            say(f"What is done is kept in {out}: the same command goes on from there.")
        raise
    except store.StoreError as error:
        if "unfinished fit" in str(error):
            raise Cannot(
                f"{out} holds an unfinished fit of other data or options. Give those "
                "again to go on with it, --restart to discard it, or another --out."
            ) from error
        raise
    seconds = time.perf_counter() - started
    return Fit(model, with_notes(model, findings(model, X, Y)), seconds)
