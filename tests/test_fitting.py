"""Stages: what each needs is named and comes before it, and nothing else decides."""

from itertools import pairwise

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from overcover import GP, OverlappingCoverRegressor
from overcover._validation import TrainingData
from overcover.cover import CoverShape
from overcover.fitting import STAGES, Fit, InMemory, Recipe
from overcover.routing import Router

KEPT = [stage for stage in STAGES.values() if stage.is_kept]


def make_fit(surface, router="mahalanobis"):
    X, y = surface
    data = TrainingData(X, y.reshape(len(X), -1), None, None)
    shape = CoverShape(len(X), 60, 0.5, 3.0, 10)
    recipe = Recipe(GP(noise=0.1), shape, "kmeans", router, 0, None)
    return Fit(recipe, data)


def arrays_in(value):
    """All arrays of a result, in order."""
    if isinstance(value, np.ndarray):
        return [value]
    if isinstance(value, GP):
        return [value.theta_]
    if isinstance(value, Router):
        return [getattr(value, name) for name in value.shapes]
    parts = value if isinstance(value, list | tuple) else ()
    return [array for part in parts for array in arrays_in(part)]


def test_inputs_are_earlier_stages():
    names = list(STAGES)
    assert names == ["tune", "partition", "cover", "router", "machines", "calibrate"]
    for i, stage in enumerate(STAGES.values()):
        assert set(stage.inputs) <= set(names[:i])


def test_random_numbers_go_on_from_the_last_input():
    """A draft keeps them with each result, so a stage must read the one before it."""
    for before, stage in pairwise(KEPT):
        assert before.name in stage.inputs or stage.is_of_each


@pytest.mark.parametrize("name", [stage.name for stage in KEPT])
def test_a_stage_needs_its_inputs_and_nothing_else(name, surface):
    whole, runner, states = make_fit(surface), InMemory(), {}
    for stage in KEPT:
        states[stage.name] = whole.rng.get_state()
        runner.run(whole, stage.name)
    alone = make_fit(surface)
    alone.rng.set_state(states[name])
    alone.results = {i: whole.results[i] for i in STAGES[name].inputs}
    runner.run(alone, name)
    pairs = (arrays_in(fit.results[name]) for fit in (alone, whole))
    for array, expected in zip(*pairs, strict=True):
        assert_array_equal(array, expected)
    assert arrays_in(whole.results[name])


def test_a_fit_is_its_stages(surface):
    fit, runner = make_fit(surface), InMemory()
    for name in STAGES:
        runner.run(fit, name)
    options = {"subdomain_size": 60, "overlap": 0.5, "router": "mahalanobis"}
    model = OverlappingCoverRegressor(GP(noise=0.1), random_state=0, **options)
    model.fit(*surface)
    for state, expected in zip(fit.results["machines"], model.states_, strict=True):
        assert_array_equal(state.alpha, expected.alpha)
    assert_array_equal(fit.results["router"].means, model.router_.means)
    calibrations = fit.machine.calibration_, model.machine_.calibration_
    assert_array_equal(*(c.quantiles for c in calibrations))
