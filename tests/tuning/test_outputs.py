"""Which outputs share their hyperparameters."""

from types import SimpleNamespace

import numpy as np
import pytest

from overcover.tuning._outputs import _falls_plainly
from overcover.tuning.prediction_loss import HeldOut


@pytest.mark.parametrize(
    "factor, is_plain", [(0.5, True), (1.0, False), (0.9, False), (2.0, False)]
)
def test_a_few_large_errors_do_not_hide_that_all_others_are_smaller(factor, is_plain):
    rng = np.random.default_rng(0)
    sets = np.repeat(np.arange(20), 25)
    errors = rng.standard_cauchy((500, 1))
    after = factor * errors * rng.lognormal(sigma=0.5, size=errors.shape)
    after[:3] = 100.0 * np.abs(errors).max()
    held_out = {"old": errors, "new": after}
    judge = SimpleNamespace(
        n_parts=1,
        held_out=lambda name, part: HeldOut(held_out[name], np.ones(500), sets),
    )
    assert _falls_plainly(judge, "old", "new", 0) == is_plain
