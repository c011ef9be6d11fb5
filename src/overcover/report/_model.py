"""Sections on the model: findings, data, cover, settings."""

import platform

import numpy as np
import scipy
import sklearn

from .._markup import element, escape, number, numbers, percent, some
from ..explain import extent
from ..plots import CoverDisplay, OverlapDisplay
from ._page import facts, new_axes, paragraph, picture, side_by_side, table

# A picture of more subdomains than this would be grey.
MOST_IN_MATRIX = 1500


def summary(subject):
    model, test = subject.model, subject.assessment
    pairs = {
        "Training rows": number(len(subject.X)),
        "Inputs": number(subject.X.shape[1]),
        "Outputs": number(subject.Y.shape[1]),
        "Subdomains": number(model.n_subdomains_),
    }
    if model.timings_:  # that of a machine fitted alone is not kept
        pairs["Seconds to fit"] = f"{sum(model.timings_.values()):.1f}"
    if test is not None:
        pairs["Test rows"] = number(len(test.Y))
        r2 = test.r2()[~np.isnan(test.r2())]
        words = "R²" if len(test.names) == 1 else "R², median of outputs"
        pairs[words] = number(np.median(r2), 3) if len(r2) else "-"
        if test.std is not None:
            pairs["95 % intervals hold"] = percent(test.held().mean())
    return facts(pairs) + show_findings(subject.findings, test is not None)


def show_findings(findings, is_tested):
    """The findings as a list; the all-clear only where test rows were predicted."""
    text = ""
    if findings:
        items = "".join(
            f'<li class="{escape(finding.severity)}">'
            f"{element('strong', finding.severity)}{escape(finding.text)}</li>"
            for finding in findings
        )
        text = f'<h3>Findings</h3>\n<ul class="findings">{items}</ul>'
    if not is_tested:
        return text + paragraph(
            "Not checked, for lack of test rows: how large errors are, whether "
            "intervals hold what they promise, and whether rows lie outside the cover."
        )
    return text or paragraph("Nothing gives reason for concern.")


def data(subject):
    """Ranges of the columns, and how fast outputs change along them."""
    model, X, scales = subject.model, subject.X, subject.model.length_scales_
    ranges = statistics(X)
    spread = ranges["standard deviation"] / scales
    order = np.argsort(-spread, kind="stable")
    in_days = np.isin(subject.features, list(subject.dates))[order]
    inputs = {
        # The spread stands first: on a phone the rest is out of sight.
        "input": [subject.features[i] for i in order],
        "spread": [number(s, 3) for s in spread[order]],
        "length scale": days(scales[order], in_days),
        **{word: values[order] for word, values in ranges.items()},
    }
    for word in ("least", "mean", "most"):
        inputs[word] = dates(inputs[word], in_days)
    inputs["standard deviation"] = days(inputs["standard deviation"], in_days)
    parts = [
        paragraph(
            "The spread of an input is its standard deviation in units of the "
            "machine's length scale: how often the outputs may turn along it. An input "
            "of small spread can still matter, because outputs can follow it steadily; "
            "findings name inputs that make no difference. The widest stand first."
        ),
        table(inputs, "Inputs", of="input"),
        table(
            {"output": subject.outputs, **statistics(subject.Y)}, "Outputs", of="output"
        ),
    ]
    if hasattr(model, "encoder_"):
        names, texts = zip(*model.encoder_.describe())
        columns = {"column": names, "encoded as": texts}
        parts.insert(0, table(columns, "Columns of the table", True, of="column"))
    return "\n".join(parts)


def statistics(values):
    """Of each column."""
    return {
        "least": values.min(axis=0),
        "mean": values.mean(axis=0),
        "most": values.max(axis=0),
        "standard deviation": values.std(axis=0),
    }


def days(values, in_days):
    return [number(v) + " days" * bool(d) for v, d in zip(values, in_days)]


def dates(values, in_days):
    start = np.datetime64(0, "D")
    return [str(start + int(np.floor(v))) if d else v for v, d in zip(values, in_days)]


def cover(subject):
    """Rows that subdomains own, borrow and share."""
    model, n_subdomains = subject.model, subject.model.n_subdomains_
    sizes = np.array([len(members) for members in model.cover_.members])
    borrowed = 1.0 - model.cover_.n_owned.sum() / sizes.sum()
    holders = number(sizes.sum() / len(subject.X), 3)
    text = paragraph(
        f"Subdomains: {number(n_subdomains)}, of {extent(sizes)} rows; "
        f"{extent(model.cover_.n_owned)} of them owned, the others borrowed from "
        f"neighbours ({percent(borrowed)} in all). A row is held by {holders} on "
        "average."
    )
    rows = CoverDisplay._of_rows(model, subject.X).plot(ax=new_axes())
    rows_picture = picture(
        rows.figure_,
        f"Training rows as points in a plane, a shade for each of {n_subdomains} "
        f"subdomains; the rows that subdomain {rows.subdomain} owns form a cluster, "
        "those it borrows lie around it.",
        "Training rows in the plane where they spread most, in length scales. One "
        "subdomain in the middle is shown with the rows it borrows.",
        is_dense=True,
    )
    if n_subdomains == 1:
        return text + side_by_side(rows_picture)
    kind = "matrix" if n_subdomains <= MOST_IN_MATRIX else "graph"
    overlap = OverlapDisplay.from_estimator(model, kind=kind, ax=new_axes())
    overlap_picture = picture(
        overlap.figure_,
        "Which subdomains share rows, and how many.",
        "Dark: two subdomains share many rows. Neighbours should.",
        is_dense=True,
    )
    sizes_picture = picture(
        overlap.plot("sizes", ax=new_axes(3.4)).figure_,
        "Bars: how many rows are held by one subdomain, by two, and so on; "
        f"{holders} on average.",
        "Rows in the middle of the data are held by many subdomains, rows at its edge "
        "by few.",
    )
    return text + side_by_side(rows_picture, overlap_picture, sizes_picture)


def settings(subject):
    from .. import __version__

    model, machine = subject.model, subject.model.machine_
    options = model.get_params(deep=False)
    results = {"machine": repr(machine)}
    for name, words in machine.description.hyperparameters.items():
        if words and hasattr(machine, name):
            results[words] = numbers(np.ravel(getattr(machine, name)), 8)
    if model.target_.names:
        results["scale of the outputs"] = some(list(model.target_.names))
    if hasattr(model, "input_scales_"):
        changed = zip(subject.features, model.input_scales_.is_changed)
        results["inputs with long tails, on the scale of asinh"] = some(
            [name.removeprefix("asinh ") for name, is_changed in changed if is_changed]
        )
    results["neighbours that lend to a subdomain"] = number(model.n_lenders_)
    seconds = {name: f"{s:.2f}" for name, s in model.timings_.items()}
    if seconds:
        seconds["all of it"] = f"{sum(model.timings_.values()):.2f}"
    test = subject.assessment
    if test is not None:
        micro = 1e6 * test.seconds / len(test.Y)
        seconds["predicting the test rows"] = f"{test.seconds:.2f}"
        seconds["the same per row, in microseconds"] = number(micro, 3)
    versions = {"overcover": __version__, "Python": platform.python_version()}
    versions |= {"NumPy": np.__version__, "SciPy": scipy.__version__}
    versions["scikit-learn"] = sklearn.__version__
    return "\n".join(
        table({first: pairs, second: map(str, pairs.values())}, caption, words)
        for first, second, pairs, caption, words in (
            ("option", "value", options, "Options", True),
            ("what", "value", results, "Found in training", True),
            ("stage", "seconds", seconds, "Timings", False),
            ("package", "version", versions, "Versions", True),
        )
        if pairs
    )
