"""Sections on predictions: which subdomains gave them, errors, intervals, the worst."""

import numpy as np

from .._drawing import FAINT, INK, plain, thinned
from .._markup import number, percent
from ..plots import CalibrationDisplay
from ._page import new_axes, paragraph, picture, side_by_side, table

PROMISED = (0.5, 0.8, 0.9, 0.95, 0.99)
# The unit in which outputs of different units can be compared.
SCALE = "in standard deviations of the test outputs"
HOLD = "95 % intervals hold"
# Lines of the tables of the largest errors.
N_WORST = 10
# Outputs drawn against observations, and points of each.
N_DRAWN, MOST_POINTS = 4, 4000


def sections(subject):
    """The sections on predictions, in order; without test rows one that says so."""
    test = subject.assessment
    if test is None:
        text = (
            "Errors need test rows: on the rows a model was fitted on they are too "
            "small. Give X_test and y_test."
        )
        yield "errors", "Errors", paragraph(text)
        return
    n_subdomains = subject.model.n_subdomains_
    yield "queries", "Test rows and subdomains", queries(test, n_subdomains)
    parts = by_output(test), observed_against_predicted(test), by_subdomain(test)
    yield "errors", "Errors", "\n".join(parts)
    if test.std is not None:
        yield "intervals", "Intervals", intervals(test)
    yield "worst", "The worst predictions", worst(test)


def deviations(test):
    """Of the test outputs; one for an output that does not vary."""
    std = test.Y.std(axis=0)
    return np.where(std > 0, std, 1.0)


def scaled_errors(test):
    """Errors in deviations of the test outputs, shape (n_queries, n_outputs)."""
    return (test.Y - test.mean) / deviations(test)


def queries(test, n_subdomains):
    """How many test rows each subdomain predicted, and how many lie outside."""
    counts = np.sort(np.bincount(test.home, minlength=n_subdomains))[::-1]
    text = (
        f"Predictions for {number(len(test.Y))} test rows came from one subdomain "
        "each, or from several of which one has the largest weight. "
        f"{number(int((counts > 0).sum()))} of {number(n_subdomains)} subdomains had "
        "the largest weight at least once, the busiest "
        f"{number(int(counts[0]))} times. "
    )
    if np.isnan(test.remoteness).all():
        text += "This machine does not tell whether rows lie outside the cover."
    else:
        text += (
            f"{percent(np.mean(test.remoteness > 1))} of the test rows lie outside the "
            "cover: farther from the rows of their subdomain than any of these is from "
            "its nearest."
        )
    if n_subdomains == 1:
        return paragraph(text)
    ax = new_axes(3.2)
    numbers = np.arange(1, n_subdomains + 1)
    ax.fill_between(numbers, counts, step="mid", color="0.8", ec=INK, lw=1.2)
    even = len(test.Y) / n_subdomains
    ax.axhline(even, color=INK, ls="--", lw=1.2, label="if all had the same")
    ax.set(xlabel="subdomains, the busiest first", ylabel="test rows", ylim=(0, None))
    ax.set_xlim(0.5, n_subdomains + 0.5)
    ax.legend(frameon=False)
    drawing = picture(
        ax.figure,
        f"Test rows per subdomain, from {int(counts[0])} down to {int(counts[-1])}; "
        f"{even:.1f} on average.",
        "How evenly the test rows spread over the subdomains.",
    )
    return paragraph(text) + side_by_side(drawing)


def by_output(test):
    """Root mean squared error and its relatives, the worst output first."""
    error, r2, held = test.Y - test.mean, test.r2(), test.held()
    order = np.argsort(r2, kind="stable")
    columns = {
        "output": [test.names[j] for j in order],
        "RMSE": np.sqrt(np.mean(error**2, axis=0))[order],
        "mean |error|": np.mean(np.abs(error), axis=0)[order],
        "bias": -error.mean(axis=0)[order],
        "R²": r2[order],
    }
    if held is not None:
        columns[HOLD] = map(percent, held.mean(axis=0)[order])
    return table(columns, "Errors by output, the worst first", of="output")


def observed_against_predicted(test):
    order = np.argsort(-np.mean(scaled_errors(test) ** 2, axis=0), kind="stable")
    drawings = []
    for j in order[:N_DRAWN]:
        name = test.names[j]
        y, mean = (thinned(part[:, j], MOST_POINTS) for part in (test.Y, test.mean))
        ax = new_axes(4.2)
        ax.scatter(y, mean, s=6, color=INK, alpha=0.35, lw=0)
        ends = [min(y.min(), mean.min()), max(y.max(), mean.max())]
        ax.plot(ends, ends, color=FAINT, ls="--", lw=1.3)
        ax.set(xlabel=f"{plain(name)}, observed", ylabel="predicted")
        varies = np.ptp(y) > 0 and np.ptp(mean) > 0
        correlation = f"{np.corrcoef(y, mean)[0, 1]:.3f}" if varies else "-"
        drawing = picture(
            ax.figure,
            f"Predicted against observed values of {name}, as points; correlation "
            f"{correlation}.",
            f"{name}: on the dashed line predictions are right.",
            is_dense=True,
        )
        drawings.append(drawing)
    return side_by_side(*drawings)


def by_subdomain(test):
    held, home = test.held(), test.home
    error_sq = np.mean(scaled_errors(test) ** 2, axis=1)
    counts = np.bincount(home)
    used = np.flatnonzero(counts)
    rmse = np.sqrt(np.bincount(home, weights=error_sq)[used] / counts[used])
    order = np.argsort(-rmse, kind="stable")[:N_WORST]
    homes = used[order]
    columns = {
        "subdomain": map(str, homes),
        "test rows": counts[homes],
        f"RMSE, {SCALE}": rmse[order],
        "outside the cover": [
            percent(np.mean(test.remoteness[home == k] > 1)) for k in homes
        ],
    }
    if held is not None:
        columns[HOLD] = [percent(held[home == k].mean()) for k in homes]
    return paragraph(
        f"By the subdomain with the largest weight, {SCALE} (predicting their mean "
        "would give 1)."
    ) + table(columns, "The subdomains with the largest errors")


def intervals(test):
    widths = [
        np.mean(np.subtract(*test.outcomes.interval(level)[::-1]) / deviations(test))
        for level in PROMISED
    ]
    beyond = [test.outcomes.beyond(test.Y, level) for level in PROMISED]
    columns = {
        "promised": [percent(level, 0) for level in PROMISED],
        "held": [percent(test.held(level).mean()) for level in PROMISED],
        "below": [percent(below.mean()) for below, _ in beyond],
        "above": [percent(above.mean()) for _, above in beyond],
        f"mean width, {SCALE}": [number(width, 3) for width in widths],
    }
    display = CalibrationDisplay._counted(test.Y, test.outcomes)
    display.plot(per_output=len(test.names) <= 20, ax=new_axes(4.8))
    drawing = picture(
        display.figure_,
        "Observed against promised coverage of central intervals, with a band of "
        "sampling error around the diagonal; numbers in the table beside it.",
        "On the dashed line intervals hold what they promise; below it they are too "
        "narrow.",
    )
    return side_by_side(drawing, table(columns, "Coverage of central intervals"))


def worst(test):
    """The test rows with the largest errors, one line each."""
    scaled = np.abs(scaled_errors(test))
    rows = np.argsort(-scaled.max(axis=1), kind="stable")[:N_WORST]
    outputs = np.argmax(scaled[rows], axis=1)
    observed, predicted = test.Y[rows, outputs], test.mean[rows, outputs]
    columns = {
        "test row": map(str, rows),
        "output": [test.names[j] for j in outputs],
        "observed": observed,
        "predicted": predicted,
        "error": predicted - observed,
    }
    if test.std is not None:
        columns["standard deviation, predicted"] = test.std[rows, outputs]
    columns |= {
        f"error, {SCALE}": [number(error, 3) for error in scaled[rows, outputs]],
        "subdomain": map(str, test.home[rows]),
        "outside the cover": np.where(test.remoteness[rows] > 1, "yes", "no"),
    }
    return paragraph(
        "Rows are counted from 0; of each only its worst output. Values, errors and "
        "predicted standard deviations are in units of the output; the order is that "
        f"of errors {SCALE}, which can be compared between outputs. model.explain(row) "
        "explains such a prediction."
    ) + table(columns, "The largest errors")
