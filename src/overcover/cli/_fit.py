"""The command fit: a table into a store, with notes on what the columns were."""

import os
import time
import warnings
from pathlib import Path
from typing import Annotated

import typer
from sklearn.base import clone

from .. import OverlappingCoverRegressor, planning, store
from .._markup import duration, number, size_of
from ..advice import advise, with_notes
from ..cover import DEFAULT_OVERLAP, DEFAULT_SIZE
from ..machines import NAMED
from ..planning.choice import plan_within
from ..tables import TableEncoder, encode_training
from ..targets import AUTO, CHOICES
from . import _app as option
from ._app import app
from ._columns import read_table
from ._errors import Cannot, Mistake
from ._show import count, is_watched, print_json, print_remarks, say
from ._stored import NOTES, facts_of

# The note in a store that holds the fingerprint of a request with a budget.
REQUEST = "asked"


def machine_name(text):
    if text not in NAMED:
        raise typer.BadParameter(f"{text!r} is none of {', '.join(NAMED)}.")
    return text


@app.command()
def fit(
    data: option.Data,
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for the model.")],
    target: option.Target = None,
    machine: Annotated[
        str,
        typer.Option(
            parser=machine_name,
            metavar=f"[{'|'.join(NAMED)}]",
            help="; ".join(f"{k}: {m.description.help}" for k, m in NAMED.items()),
        ),
    ] = "gp",
    budget: Annotated[
        str | None, typer.Option(help="Time, such as 2m; chooses --subdomain-size.")
    ] = None,
    subdomain_size: Annotated[str | None, option.Size] = None,
    overlap: option.Overlap = DEFAULT_OVERLAP,
    scale: Annotated[
        str,
        typer.Option(
            parser=option.scale_named,
            metavar=f"[{'|'.join(CHOICES)}|logit:LOW:HIGH]",
            help="Scale of the outputs in the model; predictions are in their units.",
        ),
    ] = AUTO,
    drop: option.Drop = None,
    words: option.Words = None,
    missing: option.FitGaps = option.InFit.fill,
    decimal: option.Decimal = False,
    dates: option.Dates = None,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard an unfinished fit.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a finished model.")
    ] = False,
    jobs: option.Jobs = 1,
    seed: option.Seed = 0,
    as_json: option.Json = False,
):
    """Fit a model on a table.

    To resume an interrupted fit, repeat the command. A finished fit is not
    repeated. Only --replace replaces a model of other data or options.
    """
    if budget is not None and subdomain_size is not None:
        raise Mistake("--budget chooses --subdomain-size: give one of them.")
    try:
        seconds = None if budget is None else planning.Budget.of(budget).seconds
    except ValueError as error:
        raise Mistake(str(error)) from error
    store.check_target(out)
    X, Y, words = read_table(
        data, target, drop, words, missing, option.spelling(decimal, dates)
    )
    model = OverlappingCoverRegressor(
        machine,
        subdomain_size=subdomain_size or DEFAULT_SIZE,
        overlap=overlap,
        target=scale,
        encoder=TableEncoder(words=words) if words else None,
        n_jobs=jobs,
        random_state=seed,
        verbose=int(is_watched()),
    )
    start = time.perf_counter()
    is_new = fit_table(model, X, Y, out, seconds, not restart, replace)
    seconds = time.perf_counter() - start
    model = model if is_new else store.load(out)
    remarks = with_notes(model, advise(model, X, Y))
    facts, n_dropped = facts_of(out), X.attrs["dropped"]
    if as_json:
        answer = {"model": out, "is_new": is_new}
        answer |= {"rows": facts["n_rows"], "dropped": n_dropped}
        answer |= {"features": list(X.columns), "targets": list(Y.columns)}
        names = "machine hyperparameters subdomain_size overlap bytes target"
        answer |= {name: facts[name] for name in names.split()}
        timings = {name: float(value) for name, value in model.timings_.items()}
        answer |= {"subdomains": facts["n_subdomains"], "timings": timings}
        print_json(answer | {"seconds": seconds, "findings": remarks})
        return
    each = " each" if facts["n_subdomains"] > 1 else ""
    print(
        f"{count(facts['n_rows'], 'row')}, {count(facts['n_features'], 'input')}, "
        f"{count(Y.shape[1], 'output')}: {count(facts['n_subdomains'], 'machine')} "
        f"on {number(facts['subdomain_size'])} rows{each} ({facts['machine']}), "
        f"{f'in {duration(seconds)}' if is_new else 'already fitted'}"
    )
    print_remarks(n_dropped, remarks)
    print(f"{out} ({size_of(facts['bytes'])})")


def fit_table(model, X, Y, out, budget, resume, replace):
    """Fit frames into a store, unless it holds this model; whether it is new."""
    # One output is a column of its own, as in Python.
    y = Y.iloc[:, 0].to_numpy() if Y.shape[1] == 1 else Y.to_numpy()
    notes = {NOTES: {"targets": [*Y.columns]}}
    wishes = notes if budget is None else notes | {"budget": budget}
    request = store.fingerprint_of(model, X, y, None, None, "float64", wishes)
    if is_fitted(out, request, replace) and not (replace and not resume):
        return False
    if budget is not None:
        encoded, _ = encode_training(clone(model), X, y)
        shape = *encoded.shape, Y.shape[1]
        plan = plan_within(model, shape, budget, into_store=True)
        say(f"Planned: {plan}")
        model.set_params(subdomain_size=plan.subdomain_size, overlap=plan.overlap)
        # A budget decides by the computer it runs on, so the request is kept.
        notes |= {REQUEST: request}
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
    return True


def is_fitted(out, request, replace):
    """Whether a store holds the model of a request; another model is refused."""
    if not (Path(out) / store.MANIFEST).exists():
        return False
    manifest = store.read_manifest(out)
    if request in (manifest["fingerprint"], manifest.get("notes", {}).get(REQUEST)):
        return True
    if not replace:
        raise Cannot(
            f"{out} holds a model of other data, other options or another version of "
            "overcover. Give --replace to replace it, or another --out."
        )
    return False
