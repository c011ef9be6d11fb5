"""Advice about a fitted model, its data and its predictions."""

import time
from typing import NamedTuple

import numpy as np

from ._columns import find_needless
from ._markup import number, percent, some
from ._validation import check_observed, check_queries
from .alone import as_cover, is_alone
from .consult import panel_of, rounds
from .explain import names_of_features, remoteness
from .learning import about_growth, ground_of
from .machines import Prediction
from .planning.findings import SEVERITIES, Finding, about_cover, about_variance
from .targets import Outcomes

__all__ = ["Finding", "advise"]

COVERAGE = 0.95
# Intervals are called dishonest past three standard errors, and two points at least.
STANDARD_ERRORS, LEAST_GAP = 3.0, 0.02
# Shares of queries outside the cover worth a note, a warning, and alarm.
OUTSIDE = {"note": 0.01, "warning": 0.05, "problem": 0.3}
# A column whose spread, in length scales, is below this share of the widest is tried
# without.
HARDLY = 0.01
MANY_DUPLICATES = {"note": 0.1, "warning": 0.5}
# Rows that a finding names at most.
MOST_LISTED = 20
# New rows by which a model is judged, at least.
FEW_LEARNED = 50
# An end of intervals that is so many times as far as the other is worth a note.
SKEWED = 1.5
# With fewer test rows than this, errors are not judged.
FEW_QUERIES = 20


class Assessment(NamedTuple):
    """Rows that a model has not been fitted on, and its predictions."""

    Y: np.ndarray  # observed outputs, shape (n_queries, n_outputs)
    mean: np.ndarray
    std: np.ndarray | None  # None where the machine has no variance
    home: np.ndarray  # the subdomain with the largest weight, shape (n_queries,)
    remoteness: np.ndarray  # above one outside the cover, see `overcover.explain`
    names: list[str]  # of the outputs
    seconds: float  # time that the predictions took
    outcomes: Outcomes  # what may be observed, see `overcover.targets`

    def r2(self):
        """Share of each output's variance that is explained; NaN if it has none."""
        error_sq = np.mean((self.Y - self.mean) ** 2, axis=0)
        spread = self.Y.var(axis=0)
        return 1.0 - error_sq / np.where(spread > 0, spread, np.nan)

    def held(self, coverage=COVERAGE):
        """Which observations lie in their interval; None where there are none."""
        if self.std is None:
            return None
        return ~np.logical_or(*self.outcomes.beyond(self.Y, coverage))


def assess(model, X, y):
    """Predict test rows, in rounds of bounded memory; None where there are none."""
    if (X is None) != (y is None):
        raise ValueError("Give both X_test and y_test, or neither.")
    if X is None:
        return None
    model = as_cover(model)
    X = check_queries(model, X)
    has_variance = model.machine_.has_variance
    start = time.perf_counter()
    all_rounds = rounds(panel_of(model), X, has_variance)
    parts = [(*round_.prediction(), round_.homes()) for _, round_ in all_rounds]
    means, stds, homes = zip(*parts)
    std = np.concatenate(stds) if has_variance else None
    outcomes = model._outcomes(Prediction(np.concatenate(means), std))
    mean, std = outcomes.moments()
    seconds = time.perf_counter() - start
    Y, home = check_observed(y, mean), np.concatenate(homes)
    far, names = remoteness(model, X, home), names_of_outputs(y, Y)
    return Assessment(Y, mean, std, home, far, names, seconds, outcomes)


def advise(model, X=None, y=None, X_test=None, y_test=None):
    """Findings about a fitted model, its data and its predictions.

    After `partial_fit` or `forget`, ``advise(model)`` fits no machines. Until something
    else does, such as a prediction, it says only whether `retune` is due.

    Parameters
    ----------
    model : OverlappingCoverRegressor or Machine
        Fitted. A machine that was fitted alone is taken as one subdomain.
    X, y : array-like, default=None
        The rows it was fitted on; without them there are no findings about data.
    X_test, y_test : array-like, default=None
        Rows it was not fitted on; without them there are none about predictions.

    Returns
    -------
    list of Finding
        The most severe first.

    Examples
    --------
    >>> import numpy as np
    >>> from overcover import GP, OverlappingCoverRegressor
    >>> from overcover.advice import advise
    >>> X = np.linspace(0, 1, 200)[:, None]
    >>> model = OverlappingCoverRegressor(GP(length_scale=0.3, noise=0.1))
    >>> for finding in advise(model.fit(X, X[:, 0])):
    ...     print(finding)
    note: All 200 rows fit into one subdomain, so there is no cover: this is the full \
model. GP alone does the same.
    """
    model = as_cover(model, X)
    has_rows = any(rows is not None for rows in (X, y, X_test, y_test))
    if ground_of(model) is not None and not has_rows:
        return most_severe_first([*about_learning(model), *about_growth(model)])
    X = None if X is None else check_queries(model, X).astype(np.float64)
    return findings(model, X, y, assess(model, X_test, y_test))


def findings(model, X=None, y=None, assessment=None):
    """`advise` for checked rows, and test rows that are predicted already."""
    about_model = about_variance if is_alone(model) else about_cover
    subjects = about_model, about_noise, about_rows, about_learning, about_growth
    texts = [text for about in (*subjects, about_scale) for text in about(model)]
    if X is not None:
        texts += about_inputs(model, X)
    if y is not None:
        texts += about_outputs(y)
    if assessment is not None:
        texts += about_answers(model, assessment)
    return most_severe_first(texts)


def with_notes(model, findings):
    """Findings together with the notes of the fit, each once."""
    notes = getattr(model, "notes_", None) or []
    return most_severe_first(map(str, [*findings, *notes]))


def most_severe_first(texts):
    """Findings from lines such as "note: ...", each text once, problems first."""
    findings: dict[str, Finding] = {}
    for finding in map(Finding.of, texts):
        findings.setdefault(finding.text, finding)
    return sorted(findings.values(), key=lambda f: SEVERITIES.index(f.severity))


def names_of_outputs(y, Y):
    """Names of the outputs: as in the data frame, else y0, y1, ..., or y."""
    columns = getattr(y, "columns", None)
    if columns is not None:
        return [str(name) for name in columns]
    if Y.shape[1] == 1:
        return [str(getattr(y, "name", None) or "y")]
    return [f"y{j}" for j in range(Y.shape[1])]


def about_noise(model):
    """Noise that tuning set to a bound."""
    machine = model.machine_
    for name, (low, high) in machine.description.noises.items():
        option = getattr(machine, name)
        if not (isinstance(option, str) and option == "auto"):
            continue
        noise = np.atleast_1d(getattr(machine, f"{name}_"))
        if np.any(noise >= 0.99 * high):
            yield (
                f"warning: {name} is at its upper bound, {number(high)}: the inputs "
                "explain little of the outputs, or not in a smooth way. Look for "
                "missing features, or for rows whose outputs are mixed up."
            )
        if np.any(noise <= 1.01 * low):
            yield (
                f"note: {name} is at its lower bound, {number(noise.min())}: the "
                "outputs look free of noise. That is right for simulations; for "
                "measurements, look for rows that are nearly copies of each other."
            )


def about_scale(model):
    """Errors that are far from symmetric, where the scale is that of y."""
    if model.target_.names:
        return
    short, long = np.sort(model.errors_.ends(COVERAGE), axis=0)
    if np.any(long > SKEWED * short):
        yield (
            "note: Errors reach much farther on one side than on the other. Try "
            "another scale of the outputs, such as target='log' or "
            "target='yeo-johnson'."
        )


def about_inputs(model, X):
    """Columns that never vary or make no difference, and rows that occur twice."""
    names = names_of_features(model)
    std = X.std(axis=0)
    constant = std <= 1e-12 * np.abs(X).max(axis=0)
    if constant.any():
        dull = listed(names, constant)
        yield f"note: {dull} never varied in training and cannot be used."
    with np.errstate(invalid="ignore"):
        spread = np.where(constant, 0.0, std / model.length_scales_)
    slow = ~constant & (spread < HARDLY * spread.max())
    if slow.any():
        yield from about_columns(model, slow, spread)
    share = 1.0 - len(np.unique(X, axis=0)) / len(X)
    severity = worst_of(share, MANY_DUPLICATES)
    if severity:
        yield (
            f"{severity}: {percent(share, 0)} of the rows repeat the inputs of another "
            "row: a subdomain then holds less than its size suggests."
            + (" Give a larger subdomain_size." if model.n_subdomains_ > 1 else "")
        )


def about_columns(model, slow, spread):
    """Columns with long length scales that the model can do without, if it is so."""
    columns = np.flatnonzero(slow)
    needless, n_held = find_needless(model, columns[np.argsort(spread[columns])])
    names, chosen = whole_columns(model, np.isin(np.arange(len(slow)), needless))
    if not any(chosen):
        return
    make, them = ("makes", "it") if sum(chosen) == 1 else ("make", "them")
    yield (
        f"note: {listed(names, chosen)} {make} no difference: {number(n_held)} rows "
        f"held out were predicted as well without {them}. Left out, a fit is faster."
    )


def whole_columns(model, is_in):
    """Names of the columns of a table, and whether all their inputs are in a set."""
    if not hasattr(model, "encoder_"):
        return names_of_features(model), is_in
    columns = model.encoder_.columns_
    ends = np.cumsum([len(column["inputs"]) for column in columns])[:-1]
    return [c["name"] for c in columns], [x.all() for x in np.split(is_in, ends)]


def about_rows(model):
    """Rows whose outputs all rows around them contradict."""
    if not model.machine_.is_robust_:
        return
    places = map(model.machine_.contradicted, model.states_)
    pairs = zip(model.cover_.members, places)
    rows = np.sort(np.concatenate([members[i] for members, i in pairs]))
    if len(rows):
        yield (
            f"warning: The outputs of {number(len(rows))} rows look like outliers: "
            "they disagree with all rows around them, and have almost no weight. Look "
            f"at row {some(rows.astype(str), MOST_LISTED)} (the first is 0)."
        )


def about_learning(model):
    """New rows that were predicted worse than promised, before they were learned."""
    promise = getattr(model, "promise_", None)
    if promise is None or promise.n_rows < FEW_LEARNED:
        return
    if promise.within < COVERAGE - dishonest_gap(promise.n_rows):
        yield (
            f"warning: Of the last {number(promise.n_rows)} rows that the model has "
            f"learned, 95 % intervals held only {percent(promise.within)} beforehand, "
            f"and squared errors were {number(promise.error_sq, 2)} times the variance "
            "predicted. The process may have changed: call model.retune(), and "
            "model.forget(rows) for rows that are out of date."
        )


def about_outputs(y):
    """Outputs that never vary."""
    Y = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
    constant = np.ptp(Y, axis=0) == 0
    if constant.any():
        names = listed(names_of_outputs(y, Y), constant)
        yield (
            f"warning: {names} never varied in training, so every prediction is the "
            "same."
        )


def about_answers(model, assessment):
    """Where test rows lie, how wrong answers are, and whether intervals hold."""
    n_queries, names = len(assessment.Y), assessment.names
    outside = float(np.mean(assessment.remoteness > 1))
    severity = worst_of(outside, OUTSIDE)
    if severity:
        yield (
            f"{severity}: {percent(outside)} of the test rows lie outside the cover: "
            "farther from every training row than these are from each other. Their "
            "predictions are extrapolations. Collect rows like them, or do not rely on "
            "these predictions (model.explain(X) marks them as outside)."
        )
    if n_queries < FEW_QUERIES:
        yield f"note: {number(n_queries)} test rows are too few to measure errors."
        return
    error_sq = (assessment.Y - assessment.mean) ** 2
    spread = assessment.Y.var(axis=0)
    useless = assessment.r2() <= 0
    if useless.any():
        yield (
            f"problem: For {listed(names, useless)}, the mean of the test outputs "
            "would be more accurate than the predictions."
        )
    one_row = (spread > 0) & (error_sq.max(axis=0) > 0.5 * error_sq.sum(axis=0))
    if one_row.any():
        rows = sorted({int(i) for i in np.argmax(error_sq[:, one_row], axis=0)})
        yield (
            f"warning: More than half of the squared error of {listed(names, one_row)} "
            f"comes from one test row: {', '.join(map(str, rows[:5]))}. Look at it "
            "first: it may be a wrong measurement."
        )
    yield from about_subdomains(model, assessment, error_sq, spread)
    if assessment.std is not None:
        varied = np.flatnonzero(spread > 0)
        observed = assessment.held().mean(axis=0)[varied]
        yield from about_intervals(observed, n_queries, [names[j] for j in varied])


def about_subdomains(model, assessment, error_sq, spread):
    """One subdomain that is much worse than the others."""
    scaled = np.mean(error_sq / np.where(spread > 0, spread, np.inf), axis=1)
    counts = np.bincount(assessment.home)
    often = np.flatnonzero(counts >= FEW_QUERIES)
    if len(often) < 2 or not scaled.any():
        return
    sums = np.bincount(assessment.home, weights=scaled)
    ratios = np.sqrt(sums[often] / counts[often] / scaled.mean())
    if ratios.max() > 3:
        worst = often[np.argmax(ratios)]
        shared = not getattr(model.machine_, "per_subdomain", True)
        or_own_scales = ", or per_subdomain=True," if shared else ""
        yield (
            f"warning: Where subdomain {worst} predicts, errors are "
            f"{number(ratios.max(), 2)} times as large as overall: outputs may change "
            f"faster there, or be noisier. More rows there{or_own_scales} may help."
        )


def about_intervals(observed, n_queries, names):
    """Intervals that hold more or less than they promise."""
    gap = dishonest_gap(n_queries)
    narrow, wide = observed < COVERAGE - gap, observed > COVERAGE + gap
    if narrow.any():
        severity = "problem" if observed.min() < 0.8 else "warning"
        yield (
            f"{severity}: 95 % intervals of {listed(names, narrow)} hold only "
            f"{percent(observed.min())} of the test outputs: the standard deviations "
            "are too small. Test rows may come from other places or later times than "
            "the training rows."
        )
    if wide.any():
        yield (
            f"note: 95 % intervals of {listed(names, wide)} hold "
            f"{percent(observed.max())} of the test outputs: they are too wide."
        )


def dishonest_gap(n_rows):
    """The difference of coverages that chance and small faults do not explain."""
    return max(STANDARD_ERRORS * np.sqrt(COVERAGE * (1 - COVERAGE) / n_rows), LEAST_GAP)


def worst_of(share, thresholds):
    """The worst severity whose threshold a share passes; None if it passes none."""
    return next((s for s in SEVERITIES if share > thresholds.get(s, np.inf)), None)


def listed(names, chosen, most=5):
    """Some of the names, in words."""
    words = [name for name, is_chosen in zip(names, chosen) if is_chosen]
    if len(words) > most:
        words = [*words[:most], f"{len(words) - most} more"]
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
