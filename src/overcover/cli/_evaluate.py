"""Scores of a stored model on test rows, output by output."""

from typing import Any, NamedTuple

import numpy as np

from ..advice import COVERAGE, Assessment


class Score(NamedTuple):
    """One output."""

    output: str
    rmse: float
    mae: float
    r2: float | None
    """None where the output does not vary."""

    nlpd: float | None
    """Minus the mean log density; None, as the next, without a variance."""

    held: float | None
    """Share of observations in their 95 % interval."""


def scores_of(model, seen: Assessment):
    """Scores of every output of a fitted model."""
    error, r2 = seen.Y - seen.mean, seen.r2()
    nlpd: Any = [None] * len(seen.names)
    held = nlpd
    if seen.std is not None:
        distribution = model.errors_
        nlpd = -distribution.log_density(error, seen.std).mean(axis=0)
        held = seen.held(distribution.half_width(COVERAGE)).mean(axis=0)
    return [
        Score(
            name,
            float(np.sqrt(np.mean(error[:, j] ** 2))),
            float(np.mean(np.abs(error[:, j]))),
            None if np.isnan(r2[j]) else float(r2[j]),
            None if nlpd[j] is None else float(nlpd[j]),
            None if held[j] is None else float(held[j]),
        )
        for j, name in enumerate(seen.names)
    ]
