"""Report: one HTML file about a fitted model, without scripts or network."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .._validation import check_observed, check_queries
from ..advice import Assessment, Finding, assess, findings, names_of_outputs, with_notes
from ..alone import as_cover
from ..explain import names_of_features
from ..regressor import OverlappingCoverRegressor
from ..tables import require
from . import _answers, _model
from ._page import page

__all__ = ["write_report"]


class Subject(NamedTuple):
    """The subject of a report: a model, its training rows and names, and findings."""

    model: OverlappingCoverRegressor
    X: np.ndarray
    Y: np.ndarray
    features: list[str]
    outputs: list[str]
    assessment: Assessment | None
    findings: list[Finding]
    dates: set[str]  # features that are days since 1970


def write_report(
    model,
    path,
    X=None,
    y=None,
    X_test=None,
    y_test=None,
    title="Report on a fitted model",
    dates=(),
):
    """Write a report on a fitted model as one HTML file.

    Parameters
    ----------
    model : OverlappingCoverRegressor or Machine
        Fitted.
    path : str or Path
        The file; an existing one is replaced when the new one is whole.
    X, y : array-like, default=None
        The rows it was fitted on; None takes them from the model, which holds them, up
        to rounding. Then findings do not cover rows that repeat, or columns that make
        no difference.
    X_test, y_test : array-like, default=None
        Rows it was not fitted on. Without them the report has no errors: errors on
        training rows are too small.
    title : str
    dates : collection of str, default=()
        Names of inputs that are days since 1970, which the report shows as dates.

    Returns
    -------
    Path

    Examples
    --------
    >>> import numpy as np, tempfile
    >>> from overcover import GP, OverlappingCoverRegressor
    >>> from overcover.report import write_report
    >>> X = np.random.default_rng(0).uniform(size=(300, 2))
    >>> model = OverlappingCoverRegressor(GP("rbf", 1.0, 0.1), subdomain_size=50)
    >>> model = model.fit(X[:200], X[:200, 0])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     rows = {"X_test": X[200:], "y_test": X[200:, 0]}
    ...     path = write_report(model, f"{folder}/report.html", **rows)
    ...     path.read_text(encoding="utf-8")[:15]
    '<!DOCTYPE html>'
    """
    require("matplotlib", "plot", "write_report")
    subject = make_subject(model, X, y, X_test, y_test, dates)
    sections = [
        ("summary", "Summary", _model.summary(subject)),
        ("data", "Data", _model.data(subject)),
        ("cover", "The cover", _model.cover(subject)),
        *_answers.sections(subject),
        ("settings", "Settings and timings", _model.settings(subject)),
    ]
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        unfinished.write_text(page(title, sections), encoding="utf-8")
        os.replace(unfinished, path)
    finally:
        unfinished.unlink(missing_ok=True)
    return path


def make_subject(model, X, y, X_test, y_test, dates) -> Subject:
    """Check the data, predict for the test rows, collect findings."""
    model = as_cover(model, X)
    assessment = assess(model, X_test, y_test)
    if (X is None) != (y is None):
        raise ValueError("Give both X and y, or neither.")
    if X is None:
        X, Y = recalled_rows(model)
        outputs = names_of_outputs(Y, Y) if assessment is None else assessment.names
        remarks = findings(model, None, None, assessment)
    else:
        X = check_queries(model, X).astype(np.float64)
        Y = check_observed(y, np.empty((len(X), model.n_outputs_)))
        rows = model.cover_.among(len(X))
        X, Y, outputs = X[rows], Y[rows], names_of_outputs(y, Y)
        remarks = findings(model, X, Y, assessment)
    if assessment is not None:  # names of test outputs may be missing
        assessment = assessment._replace(names=outputs)
    inputs, remarks = names_of_features(model), with_notes(model, remarks)
    encoded = model.encoder_.dates if hasattr(model, "encoder_") else ()
    dates = {*dates, *encoded}
    return Subject(model, X, Y, inputs, outputs, assessment, remarks, dates)


def recalled_rows(model):
    """The rows a model was fitted on: those that subdomains own are all rows, once."""
    # By ascending number; numbers of unused rows are missing.
    rows = model.cover_.rows()
    X = np.empty((len(rows), len(model.length_scales_)))
    Y = np.empty((len(rows), model.n_outputs_))
    for state, members, n_owned in zip(
        model.states_, model.cover_.members, model.cover_.n_owned
    ):
        recalled = model.machine_.recall(state)
        if recalled is None:
            raise ValueError(
                f"{model.machine_!r} keeps no rows. Give X and y, the rows the model "
                "was fitted on."
            )
        owned = np.searchsorted(rows, members[:n_owned])
        X[owned] = recalled.X[:n_owned]
        Y[owned] = recalled.outputs(np.arange(n_owned))
    return X, model.target_.inverse(Y)
