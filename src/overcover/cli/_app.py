"""The commands: what can be asked, and how answers are shown. Imports typer."""

import json
from enum import StrEnum
from typing import Annotated

import typer

from .. import __version__
from .._markup import number, percent
from ._compare import compare as compare_methods
from ._compare import methods
from ._tables import Mistake, read_table

app = typer.Typer(
    help="Kernel regression at scale on an overlapping domain cover.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)


class Missing(StrEnum):
    """What to do where values are missing."""

    refuse = "refuse"
    drop = "drop"
    median = "median"


Data = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet, .npy or .npz file; - for stdin.")
]
Target = Annotated[
    list[str] | None, typer.Option("--target", "-t", help="Column to predict; again.")
]
Drop = Annotated[list[str] | None, typer.Option(help="Column not to use; again.")]
OneHot = Annotated[
    list[str] | None, typer.Option(help="Column of words to use as 0 and 1; again.")
]


def show_version(wanted: bool):
    """Print the version and end."""
    if wanted:
        typer.echo(f"overcover {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True)
    ] = False,
):
    """Kernel regression at scale on an overlapping domain cover."""


@app.command()
def compare(
    data: Data,
    target: Target = None,
    drop: Drop = None,
    one_hot: OneHot = None,
    missing: Annotated[Missing, typer.Option(help="Missing values.")] = Missing.refuse,
    method: Annotated[
        list[str] | None, typer.Option(help="Only this method; again.")
    ] = None,
    folds: Annotated[int, typer.Option(min=2, help="Of cross-validation.")] = 3,
    subdomain_size: Annotated[int, typer.Option(min=1, help="Rows per machine.")] = 800,
    overlap: Annotated[float, typer.Option(min=0, max=0.99)] = 0.9,
    jobs: Annotated[int, typer.Option(help="Threads; -1 for all.")] = 1,
    seed: Annotated[int, typer.Option(help="Of folds and fits.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
):
    """Compare methods on a table by cross-validation.

    The cover with GPs (odc-gp) and Twin GPs (odc-tgp), nearest neighbours (knn), ridge
    and gradient boosting (boosting), with their defaults.
    """
    known = list(methods({}))
    for name in method or []:
        if name not in known:
            raise Mistake(f"there is no method {name!r}. There are {', '.join(known)}.")
    X, Y, _ = read_table(data, target or [], drop or [], one_hot or [], missing.value)
    if len(X) < 10 * folds:
        raise Mistake(f"{len(X)} rows are too few for {folds} folds of 10 at least.")
    cover = {
        "subdomain_size": subdomain_size,
        "overlap": overlap,
        "n_jobs": jobs,
        "random_state": seed,
    }
    chosen = [name for name in known if name in (method or known)]
    scores = run(X, Y, chosen, folds, cover)
    if as_json:
        answer = {
            "rows": len(X),
            "features": list(X.columns),
            "targets": list(Y.columns),
            "folds": folds,
            "seed": seed,
            "scores": [score._asdict() for score in scores],
        }
        typer.echo(json.dumps(answer, indent=2))
        return
    show(scores, f"{number(len(X))} rows, {X.shape[1]} inputs, {folds} folds")


def run(X, Y, chosen, folds, cover):
    """Scores, with a progress bar beside the output."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("comparing", total=len(chosen) * folds)
        return compare_methods(
            X.to_numpy(),
            Y.to_numpy(),
            chosen,
            folds,
            cover,
            done=lambda: progress.advance(task),
        )


def show(scores, title):
    """A table for people."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=title, caption="RMSE in deviations of the outputs")
    table.add_column("method")
    for heading in ("RMSE", "R2", "95 % hold", "fit, s", "us per row"):
        table.add_column(heading, justify="right")
    for score in scores:
        table.add_row(
            score.method,
            number(score.rmse),
            number(score.r2),
            "-" if score.held is None else percent(score.held),
            f"{score.fit_seconds:.2f}",
            number(score.microseconds, 3),
        )
    Console().print(table)
