"""The application: options that commands share, and errors as messages."""

import contextlib
import os
import sys
import traceback
from enum import StrEnum
from typing import Annotated

import typer
from typer.core import TyperGroup

from .. import __version__, store
from .._interrupts import as_exceptions
from ..cover import DEFAULT_SIZE
from ..tables import Spelling, UnknownForm
from ..targets import CHOICES, check_target
from ._errors import Cannot, Mistake, code_and_word
from ._show import say, warnings_as_notes

# Errors of the package whose messages explain themselves.
REFUSALS = (store.StoreError, ValueError, ImportError, MemoryError)


class Commands(TyperGroup):
    """Runs a command; an error is a line of text and an exit code."""

    def invoke(self, ctx):
        """As typer does, but for errors."""
        try:
            with as_exceptions(), warnings_as_notes():
                if sys.stdout is None:
                    raise Cannot(
                        "standard output is closed: nothing can be printed. Send it to "
                        "a file, or to /dev/null."
                    )
                result = super().invoke(ctx)
                sys.stdout.flush()
                return result
        except (Mistake, KeyboardInterrupt, OSError, *REFUSALS) as error:
            if ctx.params.get("debug"):
                traceback.print_exc()
            code, text = code_and_text(error)
        if text:
            say(text)
        raise typer.Exit(code)


def code_and_text(error):
    if isinstance(error, KeyboardInterrupt):
        return code_and_word(error)
    if isinstance(error, BrokenPipeError):
        # The reader has left, as `| head` does: fine. Python must not try again when it
        # ends.
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0, ""
    if isinstance(error, Mistake):
        return error.code, f"error: {error}"
    text = str(error).strip().partition("\n")[0] or type(error).__name__
    if isinstance(error, OSError):
        file = f"{error.filename}: " if error.filename else ""
        text = f"{file}{error.strerror or text}"
    if isinstance(error, MemoryError):
        text = f"not enough memory. {text}"
    # No error of the system: the argument names no file that can be one.
    is_usage = isinstance(error, OSError) and error.errno is None
    return 2 if is_usage or isinstance(error, UnknownForm) else 1, f"error: {text}"


app = typer.Typer(
    cls=Commands,
    help="Gaussian-process regression for large tables.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


def size_named(text):
    if text == "auto":
        return text
    if not text.isdigit() or int(text) < 1:
        raise typer.BadParameter(f"{text!r} is neither auto nor a number of rows.")
    return int(text)


# What to do with rows that lack values: in training, to predict, to score a model on.
InFit = StrEnum("InFit", ["fill", "drop", "refuse"])
InQueries = StrEnum("InQueries", ["refuse", "empty"])
InTest = StrEnum("InTest", ["refuse", "drop"])
Order = StrEnum("Order", ["dmy", "mdy"])

Model = Annotated[str, typer.Argument(help="Folder of a fitted model.")]
Data = Annotated[
    str, typer.Argument(help="CSV, TSV, Parquet, .npy or .npz; - reads standard input.")
]
Target = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", help="Columns to predict, such as a,b; repeatable."),
]
Observed = Annotated[
    list[str] | None,
    typer.Option("--target", "-t", help="Columns of the outputs, if named otherwise."),
]
Drop = Annotated[list[str] | None, typer.Option(help="Columns to ignore.")]
Words = Annotated[
    list[str] | None,
    typer.Option("--words", "--one-hot", help="Columns of numbers that are names."),
]
Gaps = typer.Option(help="What to do with missing values.")
FitGaps = Annotated[InFit, Gaps]
QueryGaps = Annotated[InQueries, Gaps]
TestGaps = Annotated[InTest, Gaps]
Decimal = Annotated[
    bool,
    typer.Option("--decimal-comma", help="Read numbers like 1,5 in text files."),
]
Dates = Annotated[
    Order | None,
    typer.Option(help="Read dates like 31/12/2024, or 12/31/2024, in text files."),
]
Size = typer.Option(
    parser=size_named, metavar="N|auto", help=f"Rows of a subdomain; {DEFAULT_SIZE}."
)
Overlap = Annotated[
    float,
    typer.Option(min=0, max=0.99, help="Share of rows that a subdomain borrows."),
]
Jobs = Annotated[int, typer.Option(help="Number of threads; -1 uses all cores.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]


def spelling(decimal_comma, order):
    return Spelling("," if decimal_comma else ".", order)


def scale_named(text):
    """A value of `target`: a word, or the bounds of a logit."""
    name, *bounds = text.split(":")
    try:
        target = (name, *map(float, bounds)) if bounds else name
        check_target(target)
    except ValueError as error:
        raise typer.BadParameter(
            f"{text!r} is none of {', '.join(CHOICES)}, nor like logit:0:100."
        ) from error
    return target


def show_version(wanted: bool):
    if wanted:
        print(f"overcover {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=show_version, is_eager=True, help="Print the version."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", hidden=True, envvar="OVERCOVER_DEBUG")
    ] = False,
):
    """Gaussian-process regression for large tables."""
