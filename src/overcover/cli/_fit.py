"""Fit a model on a table, into a store, with notes on what the columns were."""

import os
import time
import warnings
from pathlib import Path

from sklearn.base import clone

from .. import store
from ..advice import advise, with_notes
from ..planning.choice import plan_within
from ..store import MANIFEST, fingerprint_of, read_manifest
from ..tables import encode_training
from ._errors import Cannot
from ._show import say
from ._stored import NOTES

# The note in a store that holds the fingerprint of a request with a budget.
REQUEST = "asked"


def is_fitted(out, request, replace):
    """Whether a store holds the model of a request; another model is refused."""
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


def fit_table(model, X, Y, out, budget=None, resume=True, replace=False):
    """Fit frames into a store: model, findings, seconds, and whether it is new."""
    start = time.perf_counter()
    # One output is a column of its own, as in Python.
    y = Y.iloc[:, 0].to_numpy() if Y.shape[1] == 1 else Y.to_numpy()
    notes = {NOTES: {"targets": [*Y.columns]}}
    wishes = notes if budget is None else notes | {"budget": budget}
    request = fingerprint_of(model, X, y, None, None, "float64", wishes)
    is_new = not is_fitted(out, request, replace) or (replace and not resume)
    if is_new and budget is not None:
        encoded, _ = encode_training(clone(model), X, y)
        shape = *encoded.shape, Y.shape[1]
        plan = plan_within(model, shape, budget, into_store=True)
        say(f"Planned: {plan}")
        model.set_params(subdomain_size=plan.subdomain_size, overlap=plan.overlap)
        # A budget decides by the computer it runs on, so the request is kept.
        notes |= {REQUEST: request}
    if is_new:
        fit_into_store(model, X, y, out, resume, notes)
    seconds = time.perf_counter() - start
    model = model if is_new else store.load(out)
    return model, with_notes(model, advise(model, X, Y)), seconds, is_new


def fit_into_store(model, X, y, out, resume, notes):
    """`overcover.store.fit_into`, with messages about unfinished fits."""
    try:
        with warnings.catch_warnings():  # findings tell the notes of a fit
            warnings.simplefilter("ignore", UserWarning)
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
