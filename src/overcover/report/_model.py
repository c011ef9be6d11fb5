"""Sections on the model: findings, data, cover, settings."""

import platform

import numpy as np
import scipy
import sklearn

from .._markup import element, escape, number, numbers, percent
from ..advice import COVERAGE, unchecked
from ..explain import extent
from ..plots import CoverDisplay, OverlapDisplay
from ._page import Section, facts, paragraph, picture, side_by_side, table

# Lines of a table of columns; more are summed up in a sentence.
MOST_COLUMNS = 20
DEVIATION = "standard deviation"
# A picture of more subdomains than this would be grey.
MOST_IN_MATRIX = 1500
SIZE = (5.2, 4.6)


def sections(subject):
    """The sections on the model, but for its settings."""
    yield Section("summary", "Summary", summary(subject))
    yield Section("data", "Data", data(subject))
    yield Section("cover", "The cover", cover(subject))


def summary(subject):
    """A few numbers, and the findings."""
    model, seen = subject.model, subject.assessment
    pairs = [
        ("Training rows", number(len(subject.X))),
        ("Inputs", number(subject.X.shape[1])),
        ("Outputs", number(subject.Y.shape[1])),
        ("Subdomains", number(model.n_subdomains_)),
    ]
    if model.timings_:  # that of a machine fitted alone is not kept
        pairs.append(("Seconds to fit", f"{sum(model.timings_.values()):.1f}"))
    if seen is not None:
        words = "R²" if len(seen.names) == 1 else "R², median of outputs"
        r2 = seen.r2()[~np.isnan(seen.r2())]
        pairs += [
            ("Test rows", number(len(seen.Y))),
            (words, number(np.median(r2), 3) if len(r2) else "-"),
        ]
        if seen.std is not None:
            held = seen.held(model.errors_.half_width(COVERAGE)).mean()
            pairs.append(("95 % intervals hold", percent(held)))
    return facts(pairs) + told(subject.findings, unchecked(seen))


def told(findings, not_checked=""):
    """The findings as a list, a sentence where there are none, and open questions.

    `not_checked` is a sentence on checks that were not possible: then there is no
    all-clear.
    """
    rest = paragraph(not_checked) if not_checked else ""
    if not findings and not_checked:
        return rest
    if not findings:
        return paragraph("Nothing gives reason for concern.")
    items = "".join(
        f'<li class="{escape(finding.severity)}">'
        f"{element('strong', finding.severity)}{escape(finding.text)}</li>"
        for finding in findings
    )
    return f'<h3>Findings</h3>\n<ul class="findings">{items}</ul>{rest}'


def data(subject):
    """Ranges of the columns, and how fast outputs change along them."""
    X, Y, model = subject.X, subject.Y, subject.model
    std = X.std(axis=0)
    spread = std / model.length_scales_
    # The widest stand first: on a phone the rest is out of sight.
    header = ["input", "spread", "length scale", "least", "mean", "most", DEVIATION]
    lines = [
        [name, number(wide, 3), *in_words(scale, x, name in subject.dates)]
        for name, x, scale, wide in zip(
            subject.features, X.T, model.length_scales_, spread
        )
    ]
    order = np.argsort(-spread, kind="stable")[:MOST_COLUMNS]
    parts = [
        paragraph(
            "The spread of an input is its standard deviation in units of the "
            "machine's length scale: how often the outputs may turn along it. An input "
            "of small spread can still matter, because outputs can follow it steadily; "
            "findings name inputs that make no difference. The widest stand first."
        ),
        table(header, [lines[i] for i in order], "Inputs"),
        rest_of(len(lines), "input"),
        table(
            ["output", "least", "mean", "most", DEVIATION],
            [
                [name, *map(number, described(y))]
                for name, y in list(zip(subject.outputs, Y.T))[:MOST_COLUMNS]
            ],
            "Outputs",
        ),
        rest_of(len(subject.outputs), "output"),
    ]
    return "\n".join(filter(None, parts))


def described(values):
    """Least, mean, most, standard deviation."""
    return values.min(), values.mean(), values.max(), values.std()


def in_words(scale, values, is_date=False):
    """Length scale, least, mean, most and standard deviation of an input.

    Examples
    --------
    >>> in_words(30.0, np.array([17531.0, 17533.0]), is_date=True)
    ['30 days', '2017-12-31', '2018-01-01', '2018-01-02', '1 days']
    """
    *places, deviation = described(values)
    if not is_date:
        return [number(value) for value in (scale, *places, deviation)]
    dates = [str(np.datetime64(0, "D") + int(np.floor(day))) for day in places]
    return [f"{number(scale)} days", *dates, f"{number(deviation)} days"]


def rest_of(count, word):
    """A sentence on the rows that a table leaves out; empty where there are none."""
    rest = count - MOST_COLUMNS
    if rest <= 0:
        return ""
    return paragraph(f"Not shown: {number(rest)} more {word}{'s' if rest > 1 else ''}.")


def cover(subject):
    """Rows that subdomains own, borrow and share."""
    from matplotlib.figure import Figure

    model = subject.model
    sizes = np.array([len(members) for members in model.cover_.members])
    borrowed = 1.0 - model.cover_.n_owned.sum() / sizes.sum()
    holders = sizes.sum() / len(subject.X)
    n_subdomains = model.n_subdomains_
    text = paragraph(
        f"Subdomains: {number(n_subdomains)}, of {extent(sizes)} rows; "
        f"{extent(model.cover_.n_owned)} of them owned, the others borrowed from "
        f"neighbours ({percent(borrowed)} in all). A row is held by "
        f"{number(holders, 3)} on average."
    )
    ax = Figure(figsize=SIZE).subplots()
    shown = CoverDisplay._of_rows(model, subject.X).plot(ax=ax)
    pictures = [
        picture(
            shown.figure_,
            f"Training rows as points in a plane, a shade for each of "
            f"{n_subdomains} subdomains; the rows that subdomain {shown.subdomain} "
            "owns form a cluster, those it borrows lie around it.",
            "Training rows in the plane where they spread most, in length scales. One "
            "subdomain in the middle is shown with the rows it borrows.",
            "png",
        )
    ]
    if n_subdomains > 1:
        kind = "matrix" if n_subdomains <= MOST_IN_MATRIX else "graph"
        ax = Figure(figsize=SIZE).subplots()
        overlap = OverlapDisplay.from_estimator(model, kind=kind, ax=ax)
        pictures.append(
            picture(
                overlap.figure_,
                "Which subdomains share rows, and how many.",
                "Dark: two subdomains share many rows. Neighbours should.",
                "png",
            )
        )
        ax = Figure(figsize=(SIZE[0], 3.4)).subplots()
        pictures.append(
            picture(
                overlap.plot("sizes", ax=ax).figure_,
                "Bars: how many rows are held by one subdomain, by two, and so on; "
                f"{number(holders, 3)} on average.",
                "Rows in the middle of the data are held by many subdomains, rows at "
                "its edge by few.",
            )
        )
    return text + side_by_side(*pictures)


def settings(subject):
    """Options, results of training, seconds, versions."""
    from .. import __version__

    model, machine = subject.model, subject.model.machine_
    options = [
        [name, str(value)] for name, value in model.get_params(deep=False).items()
    ]
    found = [["machine", repr(machine)]]
    for name, words in machine.description.hyperparameters.items():
        if words and hasattr(machine, name):
            found.append([words, numbers(np.ravel(getattr(machine, name)), 8)])
    found.append(["neighbours that lend to a subdomain", number(model.n_lenders_)])
    seconds = [[name, f"{s:.2f}"] for name, s in model.timings_.items()]
    if seconds:
        seconds.append(["all of it", f"{sum(model.timings_.values()):.2f}"])
    seen = subject.assessment
    if seen is not None:
        micro = 1e6 * seen.seconds / len(seen.Y)
        seconds.append(["predicting the test rows", f"{seen.seconds:.2f}"])
        seconds.append(["the same per row, in microseconds", number(micro, 3)])
    versions = [
        ["overcover", __version__],
        ["Python", platform.python_version()],
        ["NumPy", np.__version__],
        ["SciPy", scipy.__version__],
        ["scikit-learn", sklearn.__version__],
    ]
    return "\n".join(
        [
            table(["option", "value"], options, "Options", words=True),
            table(["what", "value"], found, "Found in training", words=True),
            table(["stage", "seconds"], seconds, "Timings") if seconds else "",
            table(["package", "version"], versions, "Versions", words=True),
        ]
    )
