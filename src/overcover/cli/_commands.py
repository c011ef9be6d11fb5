"""Commands on a model: fit, predict, evaluate, inspect, report."""

import os
from enum import StrEnum
from typing import Annotated

import typer

from .. import store
from .._markup import duration, number, percent, size_of
from ..tables import name_of, writing_table
from ._app import (
    Data,
    Drop,
    Jobs,
    Json,
    Missing,
    MissingValues,
    OneHot,
    Overlap,
    Seed,
    Target,
    app,
)
from ._mistakes import Mistake
from ._recipe import read_table, split_names
from ._show import (
    bar,
    counted,
    is_watched,
    maybe,
    print_dropped,
    print_findings,
    print_json,
    print_pairs,
    print_table,
    say,
)

# Rows of a table that are read and answered together.
ROWS_AT_A_TIME = 2**15


class Gaps(StrEnum):
    """What to do where values are missing, in rows to answer."""

    refuse = "refuse"
    empty = "empty"


class Incomplete(StrEnum):
    """What to do where values are missing, in rows to judge by."""

    refuse = "refuse"
    drop = "drop"


class MachineName(StrEnum):
    """What is fitted on every subdomain."""

    gp = "gp"
    tgp = "tgp"
    iwtgp = "iwtgp"
    smtgp = "smtgp"


Model = Annotated[str, typer.Argument(help="What overcover fit, or model.save, wrote.")]
Observed = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", help="Where outputs are called otherwise here."),
]
IncompleteRows = Annotated[Incomplete, typer.Option(help="Rows that lack values.")]


@app.command()
def fit(
    data: Data,
    out: Annotated[str, typer.Option("--out", "-o", help="Folder for the model.")],
    target: Target = None,
    machine: Annotated[
        MachineName, typer.Option(help="GP, or Twin GP for outputs that hang together.")
    ] = MachineName.gp,
    budget: Annotated[
        str | None, typer.Option(help="Time, as 90s or 2m: chooses --subdomain-size.")
    ] = None,
    subdomain_size: Annotated[
        int | None, typer.Option(min=1, help="Rows per machine; 800.")
    ] = None,
    overlap: Overlap = 0.9,
    drop: Drop = None,
    one_hot: OneHot = None,
    missing: MissingValues = Missing.refuse,
    restart: Annotated[
        bool, typer.Option("--restart", help="Discard an unfinished fit.")
    ] = False,
    replace: Annotated[
        bool, typer.Option("--replace", help="Replace a finished model of other data.")
    ] = False,
    jobs: Jobs = 1,
    seed: Seed = 0,
    as_json: Json = False,
):
    """Fit a model on a table.

    An interrupted fit goes on where it stopped when the same command is given again; a
    finished one is not done again. A model of other data stays, unless --replace.
    """
    from ._budget import parse_seconds
    from ._fit import check_store, fit_table
    from ._stored import told_of

    if budget is not None and subdomain_size is not None:
        raise Mistake("--budget chooses --subdomain-size: give one of them.")
    seconds = None if budget is None else parse_seconds(budget)
    check_store(out)
    X, Y, recipe = read_table(
        data, target or [], drop or [], one_hot or [], missing.value
    )
    options = {
        "machine": machine.value,
        "subdomain_size": subdomain_size or 800,
        "overlap": overlap,
        "n_jobs": jobs,
        "random_state": seed,
        "verbose": int(is_watched()),
    }
    done = fit_table(X, Y, recipe, out, options, seconds, not restart, replace, say)
    found = told_of(out)
    if as_json:
        timings = {k: float(v) for k, v in done.model.timings_.items()}
        print_json(
            {
                "model": out,
                "is_new": done.is_new,
                "rows": found["n_rows"],
                "dropped": X.attrs["dropped"],
                "features": list(X.columns),
                "targets": list(Y.columns),
                "machine": found["machine"],
                "hyperparameters": found["hyperparameters"],
                "subdomains": found["n_subdomains"],
                "subdomain_size": found["subdomain_size"],
                "overlap": found["overlap"],
                "bytes": found["bytes"],
                "timings": timings,
                "seconds": done.seconds,
                "findings": [finding._asdict() for finding in done.findings],
            }
        )
        return
    print(
        f"{counted(found['n_rows'], 'row')}, {counted(X.shape[1], 'input')}, "
        f"{counted(Y.shape[1], 'output')}: {counted(found['n_subdomains'], 'machine')} "
        f"on {number(found['subdomain_size'])} rows"
        f"{' each' if found['n_subdomains'] > 1 else ''} ({found['machine']}), "
        f"{f'in {duration(done.seconds)}' if done.is_new else 'already fitted'}"
    )
    print_dropped(X.attrs["dropped"])
    print_findings(done.findings)
    print(f"{out} ({size_of(found['bytes'])})")


@app.command()
def predict(
    model: Model,
    data: Data,
    out: Annotated[
        str, typer.Option("--out", "-o", help=".csv, .tsv, .parquet, .npy; - stdout.")
    ] = "-",
    std: Annotated[bool, typer.Option("--std", help="Standard deviations.")] = False,
    interval: Annotated[
        float | None, typer.Option(min=0.01, max=0.9999, help="Intervals that hold it.")
    ] = None,
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns to copy, as written.")
    ] = None,
    missing: Annotated[Gaps, typer.Option(help="Rows that lack values.")] = Gaps.refuse,
    jobs: Jobs = 1,
    as_json: Json = False,
):
    """Answer a table, in chunks: memory does not grow with it.

    Columns are found by name, in any order. Answers are called as the targets, with
    _std, _low and _high behind; a kept column of the same name has _given behind.
    """
    from ._checks import check_output
    from ._predict import answers
    from ._stored import open_model, rows_of

    check_output(out, data)
    if out == "-" and as_json:
        raise Mistake("--json says what was done: send the answers to a file, --out.")
    stored = open_model(model, jobs)
    chunks = rows_of(stored, data, ROWS_AT_A_TIME, keep or [], verbatim=True)
    kept = split_names(keep or [], chunks.columns)
    wanted = kept, std, interval, missing.value
    n_rows = done = 0
    with (
        writing_table(out) as write,
        bar("answering", chunks.total, as_share=True) as advance,
    ):
        for frame in answers(stored, chunks, *wanted):
            write(frame)
            n_rows += len(frame)
            advance(chunks.done() - done)
            done = chunks.done()
    if as_json:
        unused = [n for n in chunks.columns if n not in {*stored.recipe.kinds, *kept}]
        columns = list(frame.columns)
        print_json({"rows": n_rows, "columns": columns, "unused": unused, "out": out})
    elif out != "-":
        print(f"{number(n_rows)} rows -> {out}")


@app.command()
def evaluate(
    model: Model,
    data: Data,
    target: Observed = None,
    missing: IncompleteRows = Incomplete.refuse,
    jobs: Jobs = 1,
    as_json: Json = False,
):
    """Score a model on rows it was not fitted on, output by output."""
    from ..advice import assess, findings, with_notes
    from ._evaluate import scores_of
    from ._stored import open_model, read_observed

    stored = open_model(model, jobs)
    X, Y, n_dropped = read_observed(stored, data, target or [], missing.value)
    with bar("answering"):
        seen = assess(stored.model, X, Y)
    scores = scores_of(stored.model, seen)
    found = with_notes(stored.model, findings(stored.model, None, None, seen))
    if as_json:
        print_json(
            {
                "rows": len(Y),
                "dropped": n_dropped,
                "seconds": seen.seconds,
                "scores": [score._asdict() for score in scores],
                "findings": [finding._asdict() for finding in found],
            }
        )
        return
    print_table(
        f"{number(len(Y))} rows of {name_of(data)}",
        ("output", "RMSE", "mean |error|", "R2", "NLPD", "95 % hold"),
        [
            (
                score.output,
                number(score.rmse),
                number(score.mae),
                maybe(score.r2),
                maybe(score.nlpd),
                maybe(score.held, percent),
            )
            for score in scores
        ],
    )
    print_dropped(n_dropped)
    print_findings(found)


@app.command()
def inspect(
    model: Model,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read all of it, check every checksum.")
    ] = False,
    as_json: Json = False,
):
    """Tell what a stored model is."""
    from ..advice import with_notes
    from ..explain import names_of_features
    from ._stored import open_model, told_of

    found, stored = told_of(model), open_model(model)
    if verify:
        with bar("verifying"):
            store.verify(model)
    if as_json:
        print_json(found | {"verified": verify})
        return
    inputs = names_of_features(stored.model)
    versions = ", ".join(f"{k} {v}" for k, v in found["versions"].items())
    pairs = [
        ("machine", found["machine"]),
        ("rows", number(found["n_rows"])),
        ("inputs", f"{found['n_features']}: {some(inputs)}"),
        ("outputs", f"{found['n_outputs']}: {some(stored.targets)}"),
        ("subdomains", number(found["n_subdomains"])),
        ("rows of each", number(found["subdomain_size"])),
        ("overlap", percent(found["overlap"], 0)),
        ("router", found["router"]),
        *((k.replace("_", " "), some(v)) for k, v in found["hyperparameters"].items()),
        ("size", f"{size_of(found['bytes'])}, {found['dtype']}"),
        ("written by", versions),
    ]
    if verify:
        pairs.append(("verified", "all checksums agree"))
    pairs += [("of the fit", note) for note in with_notes(stored.model, [])]
    print_pairs(pairs)


def some(values, most=8):
    """The first values of a list, in words; a value alone as it is."""
    if not isinstance(values, list):
        return number(values) if isinstance(values, float) else str(values)
    more = f" and {len(values) - most} more" if len(values) > most else ""
    return ", ".join(some(value) for value in values[:most]) + more


@app.command()
def report(
    model: Model,
    data: Annotated[
        str | None, typer.Argument(help="Rows to judge it by, not those of the fit.")
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", help="The HTML file.")
    ] = "report.html",
    target: Observed = None,
    missing: IncompleteRows = Incomplete.refuse,
    title: Annotated[str | None, typer.Option(help="Of the report.")] = None,
    jobs: Jobs = 1,
    as_json: Json = False,
):
    """Write a report as one HTML file: errors, intervals, the cover, what to do."""
    from ..report import write_report
    from ._checks import check_output
    from ._stored import open_model, read_observed

    check_output(out, data, (".html", ".htm"))
    stored = open_model(model, jobs)
    X = Y = None
    if data is not None:
        X, Y, _ = read_observed(stored, data, target or [], missing.value)
    title = title or f"Report on {os.path.basename(os.path.normpath(model))}"
    dates = [name for name, kind in stored.recipe.kinds.items() if kind == "date"]
    with bar("report"):
        path = write_report(stored.model, out, None, None, X, Y, title, dates)
    if as_json:
        print_json({"out": str(path), "rows": 0 if Y is None else len(Y)})
    else:
        print(path)
