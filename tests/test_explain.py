"""An explanation is the prediction taken apart, and nothing else."""

import re
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process.kernels import RBF, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import BayesianRidge

from overcover import (
    GP,
    AnyRegressor,
    ImportanceWeightedTwinGP,
    OverlappingCoverRegressor,
    SharmaMittalTwinGP,
    TwinGP,
)
from overcover._markup import number
from overcover.consult import BY_CERTAINTY, consult, panel_of
from overcover.explain import remoteness, summary

SMALL = {"subdomain_size": 60, "random_state": 0}
FIXED = GP(length_scale=[1.0, 2.0], noise=0.01)
TWIN = (1.0, 1.0, 0.01, 0.01)
MODELS = {
    "gp": OverlappingCoverRegressor(FIXED, **SMALL),
    "gp, three consulted": OverlappingCoverRegressor(FIXED, n_consulted=3, **SMALL),
    "gp, precision": OverlappingCoverRegressor(
        FIXED, n_consulted=3, combine="precision", **SMALL
    ),
    "gp, mahalanobis": OverlappingCoverRegressor(
        FIXED, n_consulted=2, router="mahalanobis", **SMALL
    ),
    "gp, neighbors": OverlappingCoverRegressor(FIXED, router="neighbors", **SMALL),
    "gp, per output": OverlappingCoverRegressor(
        GP(length_scale=1.0, noise="auto", per_output=True), **SMALL
    ),
    "gp, kernel object": OverlappingCoverRegressor(
        GP(RBF(1.0) + WhiteKernel(0.1), noise=0.1), **SMALL
    ),
    "gp, one subdomain": OverlappingCoverRegressor(FIXED, subdomain_size=800),
    "twin gp": OverlappingCoverRegressor(TwinGP(*TWIN), n_consulted=2, **SMALL),
    "weighted twin gp": OverlappingCoverRegressor(
        ImportanceWeightedTwinGP(*TWIN), **SMALL
    ),
    "sharma-mittal": OverlappingCoverRegressor(SharmaMittalTwinGP(*TWIN), **SMALL),
    "bayesian ridge": OverlappingCoverRegressor(BayesianRidge(), **SMALL),
    "gp, euclidean": OverlappingCoverRegressor(FIXED, router="euclidean", **SMALL),
}


@pytest.fixture(scope="module", params=MODELS)
def fitted(request, two_outputs):
    return MODELS[request.param].fit(*two_outputs)


@pytest.fixture(scope="module")
def model(surface):
    return OverlappingCoverRegressor(FIXED, **SMALL).fit(*surface)


def test_votes_are_shares_and_give_the_prediction_back_exactly(fitted, queries):
    pages = fitted.explain(queries)
    mean, std = fitted.predict(queries, return_std=True)
    assert_array_equal([page.mean for page in pages], mean)
    assert_array_equal([page.std for page in pages], std)
    for page in pages:
        assert_allclose(page.votes.sum(axis=0), 1.0)
        assert_allclose(np.sum(page.votes * page.means, axis=0), page.mean)
        spread = page.stds**2 + (page.means - page.mean) ** 2
        assert_allclose(np.sqrt(np.sum(page.votes * spread, axis=0)), page.std)


def test_a_distance_by_certainty_is_the_posterior_standard_deviation(fitted, queries):
    """Also of an only candidate, which is compared with no other."""
    for page in fitted.explain(queries):
        if page.measure == BY_CERTAINTY:
            assert_allclose(page.distances**2, page.posterior_variances, rtol=1e-6)


def test_the_measure_is_that_of_the_router_or_certainty(fitted, queries):
    model = fitted
    by_certainty = model.router_.certainty_decides and (
        model.n_consulted > 1 or model.machine_.posterior_first
    )
    expected = BY_CERTAINTY if by_certainty else model.router_.measure
    page = model.explain(queries[0])
    assert page.measure == expected
    assert f"Answers ({expected}):" in str(page)


def test_the_old_name_of_posterior_variances_works_with_a_warning(model, queries):
    page = model.explain(queries[0])
    with pytest.warns(FutureWarning, match="posterior_variances"):
        assert_array_equal(page.doubts, page.posterior_variances)


def test_each_answer_is_that_of_its_machine(model, queries):
    for page, x in zip(model.explain(queries), queries):
        for i, k in enumerate(page.subdomains):
            answer = model.machine_.answer(model.states_[k], x[None], variance=True)
            assert_allclose(page.means[i], answer.mean[0])
            assert_allclose(page.stds[i] ** 2, answer.variance[0])
            assert_allclose(page.posterior_variances[i], answer.posterior[0])


def test_the_nearest_rows_are_those_of_brute_force(fitted, two_outputs, queries):
    X, Y = two_outputs
    pages = fitted.explain(queries, n_neighbors=7)
    if pages[0].neighbors is None:
        assert type(fitted.machine_).__name__ == "AnyRegressor"
        return
    scales = fitted.length_scales_
    for page, x in zip(pages, queries):
        distances = np.linalg.norm((X - x) / scales, axis=1)
        nearest = np.argsort(distances)[:7]
        assert_array_equal(page.neighbors, nearest)
        assert_allclose(page.neighbor_distances, distances[nearest])
        assert_allclose(page.neighbor_targets, Y[nearest], rtol=1e-6)
        holders = [fitted.cover_.members[k] for k in page.subdomains]
        assert_array_equal(
            page.neighbor_seen, np.isin(nearest, np.concatenate(holders))
        )


def test_weights_do_not_change_the_targets_that_are_recalled(surface):
    X, y = surface
    weight = np.random.default_rng(0).uniform(0.5, 3, len(X))
    model = OverlappingCoverRegressor(FIXED, **SMALL).fit(X, y, weight)
    page = model.explain(X[17], n_neighbors=1)
    assert_array_equal(page.neighbors, [17])
    assert_allclose(page.neighbor_targets[0], y[17])


def test_all_rows_can_be_asked_for_and_no_more(model, surface):
    X, _ = surface
    page = model.explain(X[0], n_neighbors=10**6)
    assert_array_equal(np.sort(page.neighbors), np.arange(len(X)))
    assert page.neighbors[0] == 0


def test_a_query_far_away_is_outside_and_a_training_row_is_not(model, surface):
    X, _ = surface
    assert not any(page.outside for page in model.explain(X))
    far = model.explain([30.0, 30.0])
    assert far.outside
    assert "OUTSIDE" in str(far)
    assert "extrapolated" in far.verdict


def test_few_queries_from_where_the_rows_come_from_are_outside(model):
    X = np.random.default_rng(5).uniform(-3, 3, (2000, 2))
    home = consult(panel_of(model), X, True).homes()
    assert np.mean(remoteness(model, X, home) > 1) < 2 / 60


def test_remoteness_is_distance_over_the_widest_gap():
    X = np.array([[0.0], [1.0], [3.0]])
    model = OverlappingCoverRegressor(GP(length_scale=2.0, noise=0.1)).fit(X, X[:, 0])
    # Gaps to the nearest: 1, 1, 2; length scales cancel.
    for x, expected in [(3.0, 0.0), (5.0, 1.0), (-4.0, 2.0), (2.0, 0.5)]:
        assert_allclose(model.explain([x]).remoteness, expected, atol=1e-12)


def test_rows_that_all_coincide_are_not_outside_themselves():
    X = np.full((50, 2), 0.1)
    model = OverlappingCoverRegressor(FIXED, subdomain_size=10, random_state=0)
    model.fit(X, np.arange(50.0))
    assert not model.explain(X[0]).outside
    assert model.explain(X[0] + 1).outside


def test_one_training_row_makes_no_gap():
    model = OverlappingCoverRegressor(FIXED)
    model.fit([[1.0, 2.0]], [3.0])
    page = model.explain([[9.0, 9.0]])[0]
    assert page.remoteness == 0.0
    assert_array_equal(page.neighbors, [0])


class Forgetful(AnyRegressor):
    """A machine that keeps no rows."""

    def recall(self, state):
        return None


def test_a_machine_without_rows_or_variance_explains_what_it_can(queries):
    model = OverlappingCoverRegressor(Forgetful(KernelRidge()), **SMALL)
    model.fit(queries, queries[:, 0])
    page = model.explain(queries[0])
    assert page.std is None
    assert page.posterior_variances is None
    assert page.neighbors is None
    assert np.isnan(page.remoteness)
    assert not page.outside
    assert "not known" in str(page)


def test_one_row_gives_one_explanation_and_several_a_tuple(model, queries):
    assert model.explain(queries[0]).mean == model.explain(queries[:1])[0].mean
    assert len(model.explain(queries[:3])) == 3
    assert str(model.explain(queries[:3])).count("Prediction:") == 3


def test_the_row_of_a_data_frame_keeps_its_names(surface):
    X, y = surface
    frame = pd.DataFrame(X, columns=["<b>width</b>", "height"])
    model = OverlappingCoverRegressor(FIXED, **SMALL).fit(frame, y)
    page = model.explain(frame.iloc[3])
    assert page.names == ["<b>width</b>", "height"]
    assert "height = " in str(page)
    assert "<b>width" not in page._repr_html_()
    assert "&lt;b&gt;width" in page._repr_html_()


class Balanced(HTMLParser):
    """Opens and closes every element in order."""

    def __init__(self):
        super().__init__()
        self.open, self.seen = [], []

    def handle_starttag(self, tag, attributes):
        self.seen.append(tag)
        if tag != "hr":
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_well_formed_and_says_what_the_text_says(model, queries):
    pages = model.explain(queries[:2])
    parser = Balanced()
    parser.feed(pages._repr_html_())
    assert not parser.open
    assert parser.seen.count("table") == 4
    for word in str(pages[0]).split():
        assert word.rstrip(":") in pages[0]._repr_html_().replace("&#x27;", "'")


def test_the_diagram_of_a_fitted_model_sums_up_the_fit(model):
    unfitted = OverlappingCoverRegressor()._repr_html_()
    assert " owned" not in unfitted
    assert summary(model) in model._repr_html_()
    assert f"in {model.n_subdomains_} subdomains of 60 rows" in summary(model)
    assert model._repr_mimebundle_()["text/html"].count("subdomains of") == 1


def test_bad_queries_are_refused_as_in_predict(model):
    with pytest.raises(ValueError, match="3 features"):
        model.explain([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="NaN"):
        model.explain([1.0, np.nan])
    with pytest.raises(ValueError, match="n_neighbors=0"):
        model.explain([1.0, 2.0], n_neighbors=0)


def gap_example(noise, x, length_scale=1.0):
    """A wave with noise, explained at one place."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (200, 1))
    y = np.sin(3 * X[:, 0]) + noise * rng.normal(size=200)
    machine = GP("rbf", length_scale=length_scale, noise=max(noise**2, 1e-6))
    return OverlappingCoverRegressor(machine, **SMALL).fit(X, y).explain([x])


@pytest.mark.parametrize(
    ("place", "words"),
    [
        ((1.0, 0.5), "includes this difference. .* as noise"),
        ((0.0, 0.5), "more than the standard deviation, .* because outputs change"),
        ((0.1, 30.0), "outside the cover, where these rows have little weight"),
        ((0.1, 0.503, 1e-4), "none of them is within a length scale"),
    ],
    ids=["noise", "slope", "outside", "gap"],
)
def test_an_explanation_says_why_near_rows_differ_from_the_answer(place, words):
    page = gap_example(*place)
    off = np.sqrt(np.mean((page.neighbor_targets - page.mean) ** 2))
    assert f"are {number(off)} from the prediction on average" in page.agreement
    assert re.search(words, page.agreement)
    assert f"Neighbours: {page.agreement}" in str(page)


def test_the_output_that_differs_most_is_named(fitted, queries):
    page = fitted.explain(queries[0])
    if page.neighbors is None:
        assert page.agreement is None
        return
    off = np.sqrt(np.mean((page.neighbor_targets - page.mean) ** 2, axis=0))
    assert f"in output {np.argmax(off / page.std)}, where" in page.agreement


def test_relevance_is_the_share_of_squared_distances():
    X = np.random.default_rng(0).normal(size=(600, 3)) * [1.0, 10.0, 1.0]
    scales = np.array([1.0, 20.0, 4.0])  # in deviations: 1, 2, 4
    machine = GP(length_scale=scales, noise=0.1)
    model = OverlappingCoverRegressor(machine, subdomain_size=100, random_state=0)
    with pytest.raises(AttributeError, match="after fit"):
        model.relevance_  # noqa: B018 (the property itself is tested)
    relevance = model.fit(X, np.sin(X[:, 0])).relevance_
    assert_allclose(relevance.sum(), 1.0)
    assert_allclose(relevance, np.array([16.0, 4.0, 1.0]) / 21.0, rtol=0.3)
