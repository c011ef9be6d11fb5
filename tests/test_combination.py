"""Combination: weights are shares, and disagreement is uncertainty."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.testing import assert_allclose, assert_array_equal

import reference
from overcover.combination import RULES, mixture, weights_of

each_rule = pytest.mark.parametrize("rule", RULES)
SHAPE = (4, 3, 2)
quick = settings(deadline=None, max_examples=40)
moderate = st.floats(1e-3, 1e3)
magnitudes = st.floats(-200, 200).map(lambda exponent: 10.0**exponent)


def answers(elements=moderate):
    """Distances, means and variances."""
    return st.tuples(
        arrays(float, SHAPE[:2], elements=elements),
        arrays(float, SHAPE, elements=st.floats(-100, 100)),
        arrays(float, SHAPE, elements=elements),
    )


def combine(rule, distances, means, variances=None):
    """Answers as one; distances stand for posterior variances too."""
    weights = weights_of(rule, distances, variances, distances[..., None])
    return mixture(weights, means, variances)


@each_rule
@quick
@given(answers(magnitudes))
def test_weights_are_shares_at_every_scale(rule, example):
    distances, _, variances = example
    weights = weights_of(rule, distances, variances, distances[..., None])
    assert np.isfinite(weights).all()
    assert (weights >= 0).all()
    assert_allclose(weights.sum(axis=1), 1.0)


@quick
@given(answers())
def test_weights_are_positive(example):
    distances, _, variances = example
    for rule in ("inverse-distance", "precision"):
        assert (weights_of(rule, distances, variances) > 0).all()


@quick
@given(answers())
def test_weights_follow_their_rule(example):
    distances, _, variances = example
    by_distance = weights_of("inverse-distance", distances)[..., 0]
    assert_allclose(by_distance, (1 / distances) / np.sum(1 / distances, 1)[:, None])
    by_precision = weights_of("precision", distances, variances)
    assert_allclose(
        by_precision, (1 / variances) / np.sum(1 / variances, axis=1)[:, None]
    )
    assert_array_equal(weights_of("nearest", distances)[:, :, 0], [[1, 0, 0]] * 4)
    by_certainty = weights_of("certainty", distances, None, distances[..., None])
    powers = (distances.min(axis=1, keepdims=True) / distances) ** 16
    assert_allclose(by_certainty[..., 0], powers / powers.sum(axis=1)[:, None])


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_weights_do_not_depend_on_the_unit_of_distance(scale):
    distances = np.array([[1.0, 3.0]]) * scale
    assert_allclose(weights_of("inverse-distance", distances)[0, :, 0], [0.75, 0.25])


def test_a_distance_of_zero_takes_all_the_weight():
    weights = weights_of("inverse-distance", np.array([[0.0, 1e-300, 1.0]]))
    assert_array_equal(weights[0, :, 0], [1, 0, 0])
    shared = weights_of("inverse-distance", np.array([[0.0, 0.0, 1.0]]))
    assert_array_equal(shared[0, :, 0], [0.5, 0.5, 0])


def test_precision_is_weighed_output_by_output():
    variances = np.array([[[1.0, 3.0], [3.0, 1.0]]])
    weights = weights_of("precision", np.ones((1, 2)), variances)
    assert_allclose(weights, [[[0.75, 0.25], [0.25, 0.75]]])


@each_rule
@quick
@given(answers())
def test_the_answer_is_the_mixture(rule, example):
    distances, means, variances = example
    prediction = combine(rule, *example)
    weights = weights_of(rule, distances, variances, distances[..., None])
    weights = np.broadcast_to(weights, SHAPE)
    for q, j in np.ndindex(SHAPE[0], SHAPE[2]):
        parts = (a[q, :, j] for a in (weights, means, variances))
        mean, variance = reference.mixture(*parts)
        assert_allclose(prediction.mean[q, j], mean, rtol=1e-9, atol=1e-9)
        assert_allclose(prediction.std[q, j] ** 2, variance, rtol=1e-6, atol=1e-6)


@each_rule
@quick
@given(answers())
def test_a_mixture_is_no_surer_than_its_surest_part(rule, example):
    _, means, variances = example
    mean, std = combine(rule, *example)
    assert (std**2 >= variances.min(axis=1) * (1 - 1e-9)).all()
    slack = 1e-9 * (1 + np.abs(means).max())
    assert (mean >= means.min(axis=1) - slack).all()
    assert (mean <= means.max(axis=1) + slack).all()


@quick
@given(answers())
def test_a_mixture_is_at_least_as_unsure_as_its_parts_on_average(example):
    distances, _, variances = example
    weights = weights_of("inverse-distance", distances)
    _, std = combine("inverse-distance", *example)
    assert (std**2 >= np.sum(weights * variances, axis=1) * (1 - 1e-9)).all()


@each_rule
def test_one_answer_is_its_own_combination(rule, rng):
    means, variances = rng.normal(size=(5, 1, 2)), rng.uniform(1, 2, (5, 1, 2))
    mean, std = combine(rule, np.zeros((5, 1)), means, variances)
    assert_array_equal(mean, means[:, 0])
    assert_array_equal(std, np.sqrt(variances[:, 0]))


@each_rule
def test_equal_answers_combine_to_the_same(rule):
    means, variances = np.full((2, 3, 1), 7.0), np.full((2, 3, 1), 4.0)
    mean, std = combine(rule, np.full((2, 3), 0.3), means, variances)
    assert_allclose(mean, 7.0)
    assert_allclose(std, 2.0)


def test_disagreement_adds_to_the_variance():
    means, variances = np.array([[[1.0], [-1.0]]]), np.full((1, 2, 1), 0.25)
    _, std = combine("inverse-distance", np.ones((1, 2)), means, variances)
    assert_allclose(std**2, 1.25)


def test_nothing_cancels_for_large_means():
    means, variances = np.full((1, 2, 1), 1e12), np.full((1, 2, 1), 1e-6)
    _, std = combine("inverse-distance", np.ones((1, 2)), means, variances)
    assert_allclose(std, 1e-3)


@pytest.mark.parametrize("rule", ["inverse-distance", "nearest"])
def test_without_variances_there_is_no_std(rule):
    prediction = combine(rule, np.ones((2, 2)), np.ones((2, 2, 1)))
    assert prediction.std is None


# -- certainty -------------------------------------------------------------------------


def by_certainty(variances, means):
    """Weights and mean of one query, from the posterior variances of candidates."""
    distances = np.ones((1, len(means)))
    certainties = np.array(variances, dtype=float).reshape(1, -1, 1)
    weights = weights_of("certainty", distances, None, certainties)
    return weights.ravel(), mixture(weights, np.reshape(means, (1, -1, 1))).mean.item()


def test_a_clear_choice_is_the_most_certain_candidate():
    weights, mean = by_certainty([0.01, 0.1], [1.0, 5.0])
    assert_allclose(weights, [1, 0], atol=1e-15)
    assert_allclose(mean, 1.0)


def test_equally_certain_candidates_share_the_answer():
    weights, mean = by_certainty([0.3, 0.3], [1.0, -1.0])
    assert_array_equal(weights, [0.5, 0.5])
    assert_allclose(mean, 0.0)


def test_no_candidate_has_no_weight():
    weights, mean = by_certainty([0.3, np.inf], [1.0, np.inf])
    assert_array_equal(weights, [1, 0])
    assert mean == 1.0


def test_a_posterior_variance_of_zero_takes_all_the_weight():
    weights, mean = by_certainty([0.0, 0.1, 0.0], [1.0, 5.0, 3.0])
    assert_array_equal(weights, [0.5, 0, 0.5])
    assert_allclose(mean, 2.0)


def test_the_answer_is_continuous_where_a_candidate_overtakes():
    before, after = (by_certainty([1.0, 1.0 + e], [1.0, 2.0]) for e in (-1e-6, 1e-6))
    assert_allclose(before[1], after[1], atol=1e-4)
