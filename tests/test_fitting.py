"""Stages: what each needs comes before it, and nothing else decides."""

import itertools

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from overcover import GP, OverlappingCoverRegressor
from overcover._validation import TrainingData
from overcover.cover import CoverShape
from overcover.fitting import STAGES, Fit, InMemory, Recipe
from overcover.routing import Router


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


@pytest.mark.parametrize("name", STAGES)
def test_a_stage_needs_those_before_it_and_nothing_else(name, surface):
    whole, runner, states = make_fit(surface), InMemory(), {}
    for stage in STAGES:
        states[stage] = whole.rng.get_state()
        runner.run(whole, stage)
    alone = make_fit(surface)
    alone.rng.set_state(states[name])
    for stage in itertools.takewhile(lambda stage: stage != name, STAGES):
        setattr(alone, stage, getattr(whole, stage))
    runner.run(alone, name)
    pairs = (arrays_in(getattr(fit, name)) for fit in (alone, whole))
    for array, expected in zip(*pairs, strict=True):
        assert_array_equal(array, expected)
    assert arrays_in(getattr(whole, name))


def test_a_fit_is_its_stages(surface):
    fit, runner = make_fit(surface), InMemory()
    for name in STAGES:
        runner.run(fit, name)
    runner.fit_machines(fit)
    options = {"subdomain_size": 60, "overlap": 0.5, "router": "mahalanobis"}
    model = OverlappingCoverRegressor(GP(noise=0.1), random_state=0, **options)
    model.fit(*surface)
    for state, expected in zip(fit.states, model.states_, strict=True):
        assert_array_equal(state.alpha, expected.alpha)
    assert_array_equal(fit.router.means, model.router_.means)
    calibrations = fit.machine.calibration_, model.machine_.calibration_
    assert_array_equal(*(c.quantiles for c in calibrations))
