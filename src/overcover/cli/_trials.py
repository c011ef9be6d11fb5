"""Commands to try things: compare, demo."""

from typing import Annotated

import typer

from .._markup import number, percent
from ..cover import DEFAULT_OVERLAP, DEFAULT_SIZE
from . import _app as option
from ._app import app
from ._columns import read_table
from ._errors import Mistake
from ._show import bar, count, print_json, print_remarks, print_table

# Outputs whose errors are shown to people; programs get all.
MOST_OUTPUTS = 12


@app.command()
def compare(
    data: option.Data,
    target: option.Target = None,
    drop: option.Drop = None,
    words: option.Words = None,
    missing: option.FitGaps = option.InFit.fill,
    decimal: option.Decimal = False,
    dates: option.Dates = None,
    method: Annotated[
        list[str] | None, typer.Option(help="Run only this method; repeatable.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Number of folds.")] = 3,
    block: Annotated[
        int, typer.Option(min=1, help="Consecutive rows that stay together.")
    ] = 1,
    subdomain_size: Annotated[str | None, option.Size] = None,
    overlap: option.Overlap = DEFAULT_OVERLAP,
    jobs: option.Jobs = 1,
    seed: option.Seed = 0,
    as_json: option.Json = False,
):
    """Compare methods on a table by cross-validation.

    The methods are the cover with GPs (odc-gp) and with Twin GPs (odc-tgp),
    nearest neighbours (knn), ridge, gradient boosting (boosting) and the mean.
    All are tuned on the training rows of a fold. Rows of a time series resemble
    their neighbours: keep blocks of them together, such as --block 100, or all
    errors are too small.
    """
    from . import _compare

    known = list(_compare.methods({}))
    for name in method or []:
        if name not in known:
            raise Mistake(f"there is no method {name!r}. There are {', '.join(known)}.")
    methods = [name for name in known if name in (method or known)]
    X, Y, words = read_table(
        data, target, drop, words, missing, option.spelling(decimal, dates)
    )
    if len(X) < 10 * folds:
        raise Mistake(f"{len(X)} rows are too few for {folds} folds of 10 at least.")
    if len(X) <= block * (folds - 1):
        text = f"{len(X)} rows are too few for {folds} folds of --block {block}."
        raise Mistake(text)
    cover = {"subdomain_size": subdomain_size or DEFAULT_SIZE, "overlap": overlap}
    cover |= {"n_jobs": jobs, "random_state": seed}
    tables, options = (X, Y.to_numpy()), (cover, block, words)
    with bar("comparing", len(methods) * folds) as advance:
        scores = _compare.compare(*tables, methods, folds, *options, advance)
    if as_json:
        answer = {"rows": len(X), "dropped": X.attrs["dropped"]}
        answer |= {"features": list(X.columns), "targets": list(Y.columns)}
        answer |= {"folds": folds, "block": block, "seed": seed, "jobs": jobs}
        print_json(answer | {"scores": scores})
        return
    print_scores(X, Y, folds, scores)
    print_remarks(X.attrs["dropped"])


def print_scores(X, Y, folds, scores):
    """A table of all methods; another of all outputs, where there are several."""
    names = list(Y.columns)
    units = f"mean |error| and NLPD in units of {names[0]}"
    if len(names) > 1:
        units = "NLPD in deviations of the outputs, mean |error| in their own units"
    print_table(
        f"{count(len(X), 'row')}, {count(X.shape[1], 'column')}, {folds} folds",
        ("method", "RMSE", "+-", "|error|", "R2", "NLPD", "95 %", "fit, s", "us/row"),
        [
            (
                score.method,
                number(score.rmse, 3),
                number(score.rmse_spread, 2),
                number(score.mae, 3),
                "-" if score.r2 is None else f"{score.r2:.3f}",
                "-" if score.nlpd is None else f"{score.nlpd:.2f}",
                percent(score.held),
                f"{score.fit_seconds:.2f}",
                number(score.microseconds, 2),
            )
            for score in scores
        ],
        f"RMSE, +- between folds, {units}; share that 95 % intervals hold; times of a "
        "fold",
    )
    if len(names) > 1:
        more = f"; the others, {len(names) - MOST_OUTPUTS}, with --json"
        print_table(
            "RMSE of each output, in its units",
            ("output", *(score.method for score in scores)),
            [
                (name, *(number(score.rmse_of_outputs[j]) for score in scores))
                for j, name in enumerate(names[:MOST_OUTPUTS])
            ],
            f"the first {MOST_OUTPUTS}{more}" if len(names) > MOST_OUTPUTS else None,
        )


@app.command()
def demo(
    out: Annotated[str, typer.Option(help="Folder for the report.")] = "demo",
    frames: Annotated[int, typer.Option(min=200, help="Number of images.")] = 1200,
    jobs: option.Jobs = 1,
    as_json: option.Json = False,
):
    """Predict poses of people from silhouettes, and write a report."""
    from ._compare import run_demo

    with bar("demo", 5) as advance:
        data, results, report = run_demo(out, frames, jobs, advance)
    if as_json:
        path = None if report is None else str(report)
        print_json({"data": str(data), "results": results, "report": path})
        return
    print(data)
    print_table(
        "Poses of people from silhouettes",
        ("method", "error, mm", "fit, s", "us per pose"),
        [
            (name, f"{error:.1f}", f"{seconds:.1f}", number(micro))
            for name, error, seconds, micro in (result.values() for result in results)
        ],
    )
    print(report or "No report: pip install 'overcover[plot]' for its pictures.")
