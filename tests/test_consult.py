"""Consultation: the router lists, the machines answer, the rule weighs."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from overcover import GP, OverlappingCoverRegressor, TwinGP, routing
from overcover.combination import RULES
from overcover.consult import consult, panel_of, predict, rounds, rule_of

FIXED = GP(length_scale=1.5, noise=0.01)
SMALL = {"subdomain_size": 50, "random_state": 0}


@pytest.fixture(scope="module")
def model(surface):
    return OverlappingCoverRegressor(FIXED, **SMALL).fit(*surface)


@pytest.fixture
def consulting(model):
    """The model with other options, which do not need another fit."""
    options = model.get_params(deep=False)
    yield lambda **changes: model.set_params(**(options | changes))
    model.set_params(**options)


def answers_by_hand(model, query, n_consulted=1):
    """Answers of all candidates of a query, the most certain first."""
    route = model.router_.route(query[None] / model.length_scales_, n_consulted)
    answers = [
        model.machine_.answer(model.states_[k], query[None], variance=True)
        for k in route.subdomains[0]
        if k >= 0
    ]
    return sorted(answers, key=lambda answer: answer.posterior[0])


def mean_and_posterior_variance(answers):
    means = np.array([answer.mean[0, 0] for answer in answers])
    return means, np.array([answer.posterior[0] for answer in answers])


# -- one rule for all machines --------------------------------------------------------


def test_by_default_candidates_about_as_certain_share_the_answer(model, queries):
    for query, mean in zip(queries, model.predict(queries)):
        means, variances = mean_and_posterior_variance(answers_by_hand(model, query))
        weights = (variances.min() / variances) ** 16
        assert_allclose(mean, np.average(means, weights=weights), rtol=1e-9)


def test_the_name_of_the_default_is_certainty(model, consulting, queries):
    expected = model.predict(queries, return_std=True)
    named = consulting(combine="certainty").predict(queries, return_std=True)
    assert_array_equal(named, expected)


@pytest.mark.parametrize("rule", ["nearest", "inverse-distance", "precision"])
def test_by_other_rules_the_most_certain_candidate_answers_alone(
    rule, model, consulting, queries
):
    default = model.predict(queries)
    means = consulting(combine=rule).predict(queries)
    for query, mean in zip(queries, means):
        surest = answers_by_hand(model, query)[0]
        assert_allclose(mean, surest.mean[0, 0], rtol=1e-9)
    assert not np.array_equal(means, default)


def test_several_are_weighed_by_their_posterior_deviations(consulting, queries):
    model = consulting(n_consulted=3, combine="inverse-distance")
    for query, mean in zip(queries, model.predict(queries)):
        answers = answers_by_hand(model, query, 3)[:3]
        means, variances = mean_and_posterior_variance(answers)
        expected = np.average(means, weights=1 / np.sqrt(variances))
        assert_allclose(mean, expected, rtol=1e-9)


def test_by_certainty_all_candidates_answer_however_many_are_consulted(
    consulting, queries
):
    model = consulting(n_consulted=2, combine="certainty")
    for query, mean in zip(queries, model.predict(queries)):
        answers = answers_by_hand(model, query, 2)
        means, variances = mean_and_posterior_variance(answers)
        weights = (variances.min() / variances) ** 16
        assert_allclose(mean, np.average(means, weights=weights), rtol=1e-9)


@pytest.mark.parametrize("n_consulted", [1, 2])
def test_a_machine_with_expensive_answers_gives_as_many_as_are_consulted(
    n_consulted, two_outputs, queries
):
    machine = TwinGP(1.0, 1.0, 0.01, 0.01)
    model = OverlappingCoverRegressor(machine, n_consulted=n_consulted, **SMALL)
    model.fit(*two_outputs).set_params(combine="certainty")
    candidates = model.router_.route(queries / model.length_scales_, n_consulted)
    assert ((candidates.subdomains >= 0).sum(axis=1) > n_consulted).any()
    consultation = consult(panel_of(model), queries, True)
    assert consultation.answers.mean.shape[1] == n_consulted
    variances = consultation.answers.posterior
    powers = (variances.min(axis=1, keepdims=True) / variances) ** 16
    expected = powers / powers.sum(axis=1, keepdims=True)
    assert_allclose(consultation.weights, expected)


@pytest.mark.parametrize("router", ["euclidean", "density"])
def test_certainty_weighs_those_that_any_router_names(router, surface, queries):
    model = OverlappingCoverRegressor(
        FIXED, router=router, n_consulted=3, combine="certainty", **SMALL
    ).fit(*surface)
    route, answers, weights, measure = consult(panel_of(model), queries, False)
    expected = model.router_.route(queries / model.length_scales_, 3)
    assert_array_equal(route.subdomains, expected.subdomains)
    assert measure == model.router_.measure
    powers = (answers.posterior.min(axis=1, keepdims=True) / answers.posterior) ** 16
    assert_allclose(weights, powers / powers.sum(axis=1, keepdims=True))


def test_auto_is_certainty_where_certainty_chooses_one():
    for name, router in routing.ROUTERS.items():
        expected = "certainty" if name == "variance" else "inverse-distance"
        assert rule_of("auto", router, 1) == expected
        assert rule_of("auto", router, 2) == "inverse-distance"
        assert all(rule_of(rule, router, 1) == rule for rule in RULES)


# -- rounds ---------------------------------------------------------------------------


def test_rounds_hold_every_query_once_and_in_order(model, queries, monkeypatch):
    monkeypatch.setattr("overcover.consult.ROUND_BYTES", 2000)
    panel = panel_of(model)
    assert panel.rows_per_round < len(queries)
    rows, consultations = zip(*rounds(panel, queries, True))
    assert_array_equal(np.concatenate([queries[part] for part in rows]), queries)
    mean, std = predict(panel, queries, True)
    parts = [consultation.prediction() for consultation in consultations]
    assert_array_equal(np.concatenate([part.mean for part in parts]), mean)
    assert_array_equal(np.concatenate([part.std for part in parts]), std)


@pytest.mark.parametrize("router", routing.ROUTERS)
def test_a_round_is_smaller_where_more_is_listed_or_asked(router, surface):
    model = OverlappingCoverRegressor(FIXED, router=router, **SMALL).fit(*surface)
    panel = panel_of(model)._replace(states=[None] * 10**6)
    assert panel._replace(n_outputs=50).rows_per_round < panel.rows_per_round
    more = panel._replace(n_consulted=panel.router.n_listed + 100)
    assert more.rows_per_round < panel.rows_per_round


def test_a_standard_deviation_is_given_only_if_it_is_asked_for(model, queries):
    panel = panel_of(model)
    assert predict(panel, queries, False).std is None
    assert_array_equal(
        predict(panel, queries, False).mean, predict(panel, queries, True).mean
    )


def test_more_subdomains_than_there_are_cannot_be_consulted(consulting, queries):
    with pytest.raises(ValueError, match="n_consulted=10000 is more than the number"):
        panel_of(consulting(n_consulted=10_000))


# -- another router -------------------------------------------------------------------


class FirstRouter(routing.EuclideanRouter):
    """Every query consults the subdomains in their order."""

    measure = "distance by number"

    def route(self, X, n_consulted, n_jobs=None):
        subdomains = np.tile(np.arange(n_consulted), (len(X), 1))
        return routing.Route(subdomains, subdomains + 1.0)


def test_a_router_needs_its_class_and_a_name_alone(surface, queries, monkeypatch):
    monkeypatch.setitem(routing.ROUTERS, "first", FirstRouter)
    model = OverlappingCoverRegressor(FIXED, router="first", n_consulted=2, **SMALL)
    page = model.fit(*surface).explain(queries[0])
    assert page.subdomains.tolist() == [0, 1]
    assert_allclose(page.votes[:, 0], [2 / 3, 1 / 3])
    assert page.measure == "distance by number"
    assert_allclose(page.mean, model.predict(queries[:1]), rtol=1e-12)
