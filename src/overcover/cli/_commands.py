"""Commands on a model: predict, evaluate, inspect, report."""

import os
from collections import Counter
from typing import Annotated

import numpy as np
import typer

from .. import store
from .._markup import number, percent, size_of, some
from ..advice import assess, findings, with_notes
from ..explain import names_of_features
from ..tables import open_table, writing_table
from . import _app as option
from ._app import app
from ._columns import options_for, split_names
from ._errors import Mistake, check_output
from ._show import bar, count, print_json, print_remarks, print_table, say
from ._stored import (
    ROWS_AT_A_TIME,
    Aside,
    Wanted,
    answers,
    facts_of,
    frames_of,
    match_columns,
    open_model,
    read_observed,
)


@app.command()
def predict(
    model: option.Model,
    data: option.Data,
    out: Annotated[
        str,
        typer.Option("--out", "-o", help=".csv, .tsv, .parquet or .npy; - prints."),
    ] = "-",
    std: Annotated[
        bool, typer.Option("--std", help="Add standard deviations.")
    ] = False,
    interval: Annotated[
        float | None,
        typer.Option(min=0.01, max=0.9999, help="Add intervals of this probability."),
    ] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option(min=0.0001, max=0.9999, help="Add this quantile; repeatable."),
    ] = None,
    noise: Annotated[
        bool,
        typer.Option(help="Standard deviations of observations, or of the function."),
    ] = True,
    keep: Annotated[
        list[str] | None, typer.Option(help="Columns to copy to the output.")
    ] = None,
    missing: option.QueryGaps = option.InQueries.empty,
    decimal: option.Decimal = False,
    dates: option.Dates = None,
    jobs: option.Jobs = 1,
    as_json: option.Json = False,
):
    """Predict for the rows of a table; memory does not grow with the table.

    Columns are matched by name, in any order. Predictions have the names of
    the targets, with _std, _low, _high or _q0.9 (for --quantile 0.9) appended.
    A copied column of the same name has _given appended.
    """
    check_output(out, data)
    if not (noise or std):
        raise Mistake("--no-noise is about standard deviations: add --std.")
    if out == "-" and as_json:
        raise Mistake(
            "--json needs standard output: give --out, a file for predictions."
        )
    stored = open_model(model, jobs)
    spelling = option.spelling(decimal, dates)
    wanted = Wanted(std, noise, interval, tuple(dict.fromkeys(quantile or ())))
    n_rows = done = 0
    aside = Aside(Counter(), [], [])
    with open_table(data) as table:
        match_columns(stored, table)
        kept = split_names(keep, table.columns)
        frames = frames_of(stored, table, ROWS_AT_A_TIME, kept, kept, spelling)
        with (
            writing_table(out) as write,
            bar("predicting", table.total, as_share=True) as advance,
        ):
            options = kept, wanted, missing, aside, spelling
            for frame in answers(stored, frames, *options):
                write(frame)
                n_rows += len(frame)
                advance(table.done - done)
                done = table.done
    if as_json:
        unused = [n for n in table.columns if n not in {*stored.kinds, *kept}]
        answer = {"rows": n_rows, "columns": list(frame.columns), "unused": unused}
        answer |= {"unknown": dict(aside.unknown), "empty": sum(aside.rows)}
        print_json(answer | {"out": out})
        return
    say_aside(aside)
    if out != "-":
        print(f"{number(n_rows)} rows -> {out}")


def say_aside(aside):
    """Tell people which answers are missing, or less certain."""
    if aside.unknown:
        cells = some([f"{name} {number(n)}" for name, n in aside.unknown.items()])
        say(
            f"Some cells are unknown from training ({cells}): predictions for their "
            "rows are less certain."
        )
    if aside.reasons:
        rows = count(sum(aside.rows), "row")
        reasons = some(aside.reasons)
        ways = options_for(reasons)
        advice = f" To have them read, {' and '.join(ways)}." if ways else ""
        say(f"The answers of {rows} are empty: {reasons}.{advice}")


@app.command()
def evaluate(
    model: option.Model,
    data: option.Data,
    target: option.Observed = None,
    missing: option.TestGaps = option.InTest.refuse,
    decimal: option.Decimal = False,
    dates: option.Dates = None,
    jobs: option.Jobs = 1,
    as_json: option.Json = False,
):
    """Measure the errors of a model on rows that it was not fitted on."""
    stored = open_model(model, jobs)
    spelling = option.spelling(decimal, dates)
    X, Y, n_dropped = read_observed(stored, data, target, missing, spelling)
    with bar("predicting"):
        assessment = assess(stored.model, X, Y)
    scores = scores_of(assessment)
    remarks = with_notes(stored.model, findings(stored.model, None, None, assessment))
    if as_json:
        answer = {"rows": len(Y), "dropped": n_dropped, "seconds": assessment.seconds}
        print_json(answer | {"scores": scores, "findings": remarks})
        return
    source = "standard input" if data == "-" else data
    print_table(
        f"{number(len(Y))} rows of {source}",
        ("output", "RMSE", "mean |error|", "R2", "NLPD", "95 % hold"),
        [
            (name, *map(number, values), percent(held))
            for name, *values, held in (score.values() for score in scores)
        ],
    )
    print_remarks(n_dropped, remarks)


def scores_of(assessment):
    """Scores of every output; NaN without a variance, or where it does not vary."""
    error = assessment.Y - assessment.mean
    nlpd = held = np.full(error.shape, np.nan)
    if assessment.std is not None:
        nlpd = -assessment.outcomes.log_density(assessment.Y)
        held = assessment.held()
    rmse, mae = np.sqrt(np.mean(error**2, axis=0)), np.mean(np.abs(error), axis=0)
    columns = rmse, mae, assessment.r2(), nlpd.mean(axis=0), held.mean(axis=0)
    names = "output", "rmse", "mae", "r2", "nlpd", "held"
    rows = zip(assessment.names, *(column.tolist() for column in columns))
    return [dict(zip(names, row)) for row in rows]


@app.command()
def inspect(
    model: option.Model,
    verify: Annotated[
        bool, typer.Option("--verify", help="Read everything and check every checksum.")
    ] = False,
    as_json: option.Json = False,
):
    """Describe a stored model."""
    facts, stored = facts_of(model), open_model(model)
    if verify:
        with bar("verifying"):
            store.verify(model)
    if as_json:
        print_json(facts | {"verified": verify})
        return
    pairs = description_of(facts, stored)
    if verify:
        pairs.append(("verified", "all checksums agree"))
    pairs += [("of the fit", note) for note in with_notes(stored.model, [])]
    width = max(len(name) for name, _ in pairs)
    for name, value in pairs:
        print(f"{name:<{width}}  {value}")


def description_of(facts, stored):
    inputs, hyperparameters = names_of_features(stored.model), facts["hyperparameters"]
    encoding = [] if stored.encoder is None else stored.encoder.describe()
    return [
        ("machine", facts["machine"]),
        ("rows", number(facts["n_rows"])),
        ("inputs", f"{facts['n_features']}: {some(inputs)}"),
        ("outputs", f"{facts['n_outputs']}: {some(stored.targets)}"),
        *((f"column {name}", how) for name, how in encoding if how != "number"),
        ("subdomains", number(facts["n_subdomains"])),
        ("rows of each", number(facts["subdomain_size"])),
        ("overlap", percent(facts["overlap"], 0)),
        ("router", facts["router"]),
        *([("scale of outputs", some(facts["target"]))] if facts["target"] else []),
        *(
            (k.replace("_", " "), in_words(value))
            for k, value in hyperparameters.items()
        ),
        ("size", f"{size_of(facts['bytes'])}, {facts['dtype']}"),
        ("written by", ", ".join(f"{k} {v}" for k, v in facts["versions"].items())),
    ]


def in_words(value):
    """The first values of a list; a value alone as it is."""
    if isinstance(value, list):
        return some([in_words(part) for part in value])
    return number(value) if isinstance(value, float) else str(value)


@app.command()
def report(
    model: option.Model,
    data: Annotated[
        str | None, typer.Argument(help="Rows that the model was not fitted on.")
    ] = None,
    out: Annotated[
        str, typer.Option("--out", "-o", help="The HTML file.")
    ] = "report.html",
    target: option.Observed = None,
    missing: option.TestGaps = option.InTest.refuse,
    decimal: option.Decimal = False,
    dates: option.Dates = None,
    title: Annotated[str | None, typer.Option(help="Title of the report.")] = None,
    jobs: option.Jobs = 1,
    as_json: option.Json = False,
):
    """Write a report as one HTML file: errors, intervals, the cover, advice."""
    from ..report import write_report

    check_output(out, data, (".html", ".htm"))
    stored = open_model(model, jobs)
    X = Y = None
    if data is not None:
        spelling = option.spelling(decimal, dates)
        X, Y, _ = read_observed(stored, data, target, missing, spelling)
    title = title or f"Report on {os.path.basename(os.path.normpath(model))}"
    with bar("report"):
        path = write_report(stored.model, out, None, None, X, Y, title)
    if as_json:
        print_json({"out": str(path), "rows": 0 if Y is None else len(Y)})
    else:
        print(path)
