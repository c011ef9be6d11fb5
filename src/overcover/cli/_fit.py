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
REQUEST = "asked"


class Fit(NamedTuple):
    """The result of a fit."""

    model: OverlappingCoverRegressor
    findings: list[Finding]
    seconds: float
    """With those of writing."""

    is_new: bool = True
    """False if the store held this very fit before."""


def check_store(out):
    """Refuse, before any work is done, a folder that no model can be written to."""
    check_target(out)
    folder = Path(out).absolute()
    while not folder.exists():
        folder = folder.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK):
        raise Cannot(f"{out} cannot be written: {folder} may not be written to.")


def is_fitted(out, request, replace=False):
    """Whether a store holds the model of a request, known by its fingerprint.

    A model of anything else is refused, unless it may be replaced.
    """
    if not (Path(out) / MANIFEST).exists():
        return False
    manifest = read_manifest(out)
    if request in (manifest["fingerprint"], manifest.get("notes", {}).get(REQUEST)):
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
    """Fit on frames X and Y into the store `out`, and look for findings.

    `recipe` describes the columns of X, `options` are `OverlappingCoverRegressor`'s,
    and a `budget` in seconds decides the size of subdomains. `resume` goes on with an
    unfinished fit; `replace` allows to replace a finished model of other data or
    options. `say` takes sentences: what the budget decided, and what an interruption
    leaves.
    """
    started = time.perf_counter()
    model = OverlappingCoverRegressor(**options)
    # One output is a column of its own, as in Python.
    y = Y.iloc[:, 0].to_numpy() if Y.shape[1] == 1 else Y.to_numpy()
    notes = notes_of(recipe, Y.columns)
    wishes = notes if budget is None else notes | {"budget": budget}
    request = fingerprint_of(model, X, y, None, None, "float64", wishes)
    is_new = not is_fitted(out, request, replace) or (replace and not resume)
    if is_new:
        if budget is not None:
            shape = (*X.shape, Y.shape[1])
            say(choose_size(model, shape, budget))
            # A budget decides by the computer it runs on, so the request is kept.
            notes |= {REQUEST: request}
        fit_into_store(model, X, y, out, resume, notes, say)
    seconds = time.perf_counter() - started
    model = model if is_new else store.load(out)
    return Fit(model, with_notes(model, findings(model, X, Y)), seconds, is_new)


def choose_size(model, shape, budget):
    """Set the size of subdomains by a budget; returns a sentence about it."""
    # The default overlap may be lowered; one that the user chose is kept.
    overlap = None if model.overlap == DEFAULT_OVERLAP else model.overlap
    plan = plan_within(shape, budget, model.machine, overlap, model.n_jobs)
    model.set_params(subdomain_size=plan.subdomain_size, overlap=plan.overlap)
    return describe(plan, budget)


def fit_into_store(model, X, y, out, resume, notes, say):
    """`overcover.store.fit_into`, with messages about unfinished fits."""
    try:
        store.fit_into(model, X, y, out, resume=resume, notes=notes)
    except KeyboardInterrupt:
        if os.path.isdir(out):
            say(f"The finished part is kept in {out}: repeat the command to go on.")
        raise
    except store.StoreError as error:
        if "unfinished fit" not in str(error):
            raise
        raise Cannot(
            f"{out} holds an unfinished fit of other data or options. Give those again "
            "to go on with it, --restart to discard it, or another --out."
        ) from error
