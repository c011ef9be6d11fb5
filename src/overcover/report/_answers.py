"""Sections on predictions: which subdomains gave them, errors, intervals, the worst."""

import numpy as np

from .._drawing import FAINT, INK, plain, thinned
from .._markup import number, percent
from ..advice import COVERAGE
from ..plots import CalibrationDisplay
from ._model import MOST_COLUMNS, SIZE, rest_of
from ._page import Section, paragraph, picture, side_by_side, table

PROMISED = (0.5, 0.8, 0.9, 0.95, 0.99)
# The unit in which outputs of different units can be compared.
SCALE = "in standard deviations of the test outputs"
# Lines of the tables of the largest errors.
N_WORST = 10
# Outputs drawn against observations, and points of each.
N_DRAWN, MOST_POINTS = 4, 4000


def sections(subject):
    """The sections on predictions, in order; without test rows one that says so."""
    if subject.assessment is None:
        yield Section(
            "errors",
            "Errors",
            paragraph(
                "Errors need test rows: on the rows a model was fitted on they are too "
                "small. Give X_test and y_test."
            ),
        )
        return
    yield Section("queries", "Test rows and subdomains", queries(subject))
    yield Section("errors", "Errors", errors(subject))
    if subject.assessment.std is not None:
        yield Section("intervals", "Intervals", intervals(subject))
    yield Section("worst", "The worst predictions", worst(subject))


def held_by_intervals(subject):
    """Which observations 95 % intervals hold; None without a variance."""
    seen = subject.assessment
    if seen.std is None:
        return None
    return seen.held(subject.model.errors_.half_width(COVERAGE))


def scaled_errors(seen):
    """Errors in deviations of the test outputs, shape (n_queries, n_outputs)."""
    return (seen.Y - seen.mean) / deviations(seen)


def deviations(seen):
    """Of the test outputs; one for an output that does not vary."""
    std = seen.Y.std(axis=0)
    return np.where(std > 0, std, 1.0)


def queries(subject):
    """How many test rows each subdomain predicted, and how many lie outside."""
    from matplotlib.figure import Figure

    seen, n_subdomains = subject.assessment, subject.model.n_subdomains_
    counts = np.sort(np.bincount(seen.home, minlength=n_subdomains))[::-1]
    outside = np.mean(seen.remoteness > 1)
    text = (
        f"Predictions for {number(len(seen.Y))} test rows came from one subdomain "
        "each, or from several of which one has the largest weight. "
        f"{number(int((counts > 0).sum()))} of {number(n_subdomains)} subdomains had "
        "the largest weight at least once, the busiest "
        f"{number(int(counts[0]))} times. "
    )
    if np.isnan(seen.remoteness).all():
        text += "This machine does not tell whether rows lie outside the cover."
    else:
        text += (
            f"{percent(outside)} of the test rows lie outside the cover: farther from "
            "the rows of their subdomain than any of these is from its nearest."
        )
    if n_subdomains == 1:
        return paragraph(text)
    ax = Figure(figsize=(SIZE[0], 3.2)).subplots()
    ax.fill_between(
        np.arange(1, n_subdomains + 1), counts, step="mid", color="0.8", ec=INK, lw=1.2
    )
    even = len(seen.Y) / n_subdomains
    ax.axhline(even, color=INK, ls="--", lw=1.2, label="if all had the same")
    ax.set(xlabel="subdomains, the busiest first", ylabel="test rows", ylim=(0, None))
    ax.set_xlim(0.5, n_subdomains + 0.5)
    ax.legend(frameon=False)
    drawn = picture(
        ax.figure,
        f"Test rows per subdomain, from {int(counts[0])} down to {int(counts[-1])}; "
        f"{even:.1f} on average.",
        "How evenly the test rows spread over the subdomains.",
    )
    return paragraph(text) + side_by_side(drawn)


def errors(subject):
    """By output and by subdomain, and observed against predicted."""
    return "\n".join(
        filter(
            None,
            [
                by_output(subject),
                rest_of(len(subject.outputs), "output"),
                observed_against_predicted(subject),
                by_subdomain(subject),
            ],
        )
    )


def by_output(subject):
    """Root mean squared error and its relatives, the worst output first."""
    seen, held = subject.assessment, held_by_intervals(subject)
    error, r2 = seen.Y - seen.mean, seen.r2()
    rmse, mae = np.sqrt(np.mean(error**2, axis=0)), np.mean(np.abs(error), axis=0)
    header = ["output", "RMSE", "mean |error|", "bias", "R²"]
    columns = [rmse, mae, -error.mean(axis=0), r2]
    if held is not None:
        header.append("95 % intervals hold")
    rows = []
    for j in np.argsort(r2, kind="stable")[:MOST_COLUMNS]:
        row = [subject.outputs[j], *(number(column[j]) for column in columns)]
        rows.append(row if held is None else [*row, percent(held[:, j].mean())])
    return table(header, rows, "Errors by output, the worst first")


def observed_against_predicted(subject):
    """The outputs with the smallest R², drawn."""
    from matplotlib.figure import Figure

    seen = subject.assessment
    worst_first = np.argsort(-np.mean(scaled_errors(seen) ** 2, axis=0), kind="stable")
    drawn = []
    for j in worst_first[:N_DRAWN]:
        y, mean = (thinned(part[:, j], MOST_POINTS) for part in (seen.Y, seen.mean))
        ax = Figure(figsize=(SIZE[0], 4.2)).subplots()
        ax.scatter(y, mean, s=6, color=INK, alpha=0.35, lw=0)
        ends = [min(y.min(), mean.min()), max(y.max(), mean.max())]
        ax.plot(ends, ends, color=FAINT, ls="--", lw=1.3)
        name = plain(subject.outputs[j])
        ax.set(xlabel=f"{name}, observed", ylabel="predicted")
        drawn.append(
            picture(
                ax.figure,
                f"Predicted against observed values of {subject.outputs[j]}, as "
                f"points; correlation {correlation(y, mean)}.",
                f"{subject.outputs[j]}: on the dashed line predictions are right.",
                "png",
            )
        )
    return side_by_side(*drawn)


def correlation(a, b):
    """Of two arrays, in words; a dash where one is constant."""
    if np.ptp(a) == 0 or np.ptp(b) == 0:
        return "-"
    return f"{np.corrcoef(a, b)[0, 1]:.3f}"


def by_subdomain(subject):
    """Where errors are largest."""
    seen, held = subject.assessment, held_by_intervals(subject)
    error_sq = np.mean(scaled_errors(seen) ** 2, axis=1)
    counts = np.bincount(seen.home)
    used = np.flatnonzero(counts)
    rmse = np.sqrt(np.bincount(seen.home, weights=error_sq)[used] / counts[used])
    header = ["subdomain", "test rows", f"RMSE, {SCALE}", "outside the cover"]
    if held is not None:
        header.append("95 % intervals hold")
    rows = []
    for i in np.argsort(-rmse, kind="stable")[:N_WORST]:
        here = seen.home == used[i]
        outside = percent(np.mean(seen.remoteness[here] > 1))
        row = [str(used[i]), number(int(counts[used[i]])), number(rmse[i]), outside]
        rows.append(row if held is None else [*row, percent(held[here].mean())])
    return paragraph(
        "By the subdomain with the largest weight, in standard deviations of the test "
        "outputs (predicting their mean would give 1)."
    ) + table(header, rows, "The subdomains with the largest errors")


def intervals(subject):
    """Promised and observed coverage of intervals."""
    from matplotlib.figure import Figure

    seen, distribution = subject.assessment, subject.model.errors_
    rows = []
    for level in PROMISED:
        half = distribution.half_width(level)
        width = np.mean(2 * half * seen.std / deviations(seen))
        rows.append(
            [percent(level, 0), percent(seen.held(half).mean()), number(width, 3)]
        )
    ax = Figure(figsize=(SIZE[0], 4.8)).subplots()
    levels = np.append(np.linspace(0.05, 0.95, 19), 0.99)
    observed = np.array(
        [seen.held(distribution.half_width(level)).mean(axis=0) for level in levels]
    )
    display = CalibrationDisplay(levels, observed, len(seen.Y))
    display.plot(per_output=observed.shape[1] <= 20, ax=ax)
    drawn = picture(
        display.figure_,
        "Observed against promised coverage of central intervals, with a band of "
        "sampling error around the diagonal; numbers in the table beside it.",
        "On the dashed line intervals hold what they promise; below it they are too "
        "narrow.",
    )
    header = ["promised", "held", f"mean width, {SCALE}"]
    return side_by_side(drawn, table(header, rows, "Coverage of central intervals"))


def worst(subject):
    """The test rows with the largest errors, one line each."""
    seen = subject.assessment
    scaled = np.abs(scaled_errors(seen))
    output = np.argmax(scaled, axis=1)
    largest = scaled[np.arange(len(scaled)), output]
    header = ["test row", "output", "observed", "predicted", "error"]
    header += [] if seen.std is None else ["standard deviation, predicted"]
    header += [f"error, {SCALE}", "subdomain", "outside the cover"]
    rows = []
    for i in np.argsort(-largest, kind="stable")[:N_WORST]:
        j = output[i]
        row = [
            str(i),
            subject.outputs[j],
            number(seen.Y[i, j]),
            number(seen.mean[i, j]),
            number(seen.mean[i, j] - seen.Y[i, j]),
        ]
        row += [] if seen.std is None else [number(seen.std[i, j])]
        outside = "yes" if seen.remoteness[i] > 1 else "no"
        rows.append([*row, number(largest[i], 3), str(seen.home[i]), outside])
    return paragraph(
        "Rows are counted from 0; of each only its worst output. Values, errors and "
        "predicted standard deviations are in units of the output; the order is that "
        f"of errors {SCALE}, which can be compared between outputs. model.explain(row) "
        "explains such a prediction."
    ) + table(header, rows, "The largest errors")
