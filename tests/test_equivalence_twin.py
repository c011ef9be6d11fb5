"""Truths across modules for Twin GPs: two ways to the same answer."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from overcover import (
    ImportanceWeightedTwinGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    SharmaMittalTwinGP,
    TwinGP,
)
from test_equivalence import Quadrants, check_equal

# Output scales for the two outputs of `two_outputs`.
FIXED = (1.2, [0.8, 40.0], 0.02, 0.01)
ROUNDING = 1e-8
# As far as a gradient of 1e-7 and the inverse curvature let minima differ.
SEARCH = 1e-6
# A search ends at a step of a thousandth of a deviation. Rounding, which differs with
# the size of a batch, may decide whether it takes one step more.
SETTLED = 1e-4
FAMILY = [
    TwinGP(*FIXED),
    TwinGP(*FIXED, rank="full", n_starts=2),
    TwinGP(*FIXED, self_noise=False),
    ImportanceWeightedTwinGP(*FIXED),
    SharmaMittalTwinGP(*FIXED),
]
each_machine = pytest.mark.parametrize("machine", FAMILY, ids=str)


@pytest.fixture
def two_outputs(two_outputs):
    """150 rows of it will do here."""
    X, Y = two_outputs
    return X[:150], Y[:150]


def small_cover(machine, **changes):
    options = {"subdomain_size": 50, "overlap": 0.7, "random_state": 0}
    return OverlappingCoverRegressor(machine, **{**options, **changes})


@each_machine
def test_one_subdomain_is_the_full_model(machine, two_outputs, queries):
    cover = OverlappingCoverRegressor(machine, random_state=0).fit(*two_outputs)
    full = clone(machine).fit(*two_outputs)
    assert cover.n_subdomains_ == 1
    check_equal(
        cover.predict(queries, return_std=True), full.predict(queries, return_std=True)
    )
    check_equal(
        cover.predict_interval(queries, 0.8), full.predict_interval(queries, 0.8)
    )


@pytest.mark.parametrize("kind", [TwinGP, ImportanceWeightedTwinGP, SharmaMittalTwinGP])
def test_the_neighbourhood_of_all_rows_is_the_full_model(kind, two_outputs, queries):
    machine = kind(*FIXED, rank="full")
    near = NeighborhoodRegressor(machine, n_neighbors=1000).fit(*two_outputs)
    mean, std = near.predict(queries, return_std=True)
    full = clone(machine).fit(*two_outputs)
    check_equal([mean], [full.predict(queries)], rtol=SEARCH)
    assert std.shape == mean.shape and (std > 0).all()


def test_a_neighbourhood_is_the_full_model_of_its_rows(two_outputs, queries):
    X, Y = two_outputs
    near = NeighborhoodRegressor(TwinGP(*FIXED), n_neighbors=40).fit(X, Y)
    for x, said in zip(queries[:10], near.predict(queries[:10])):
        rows = np.argsort(np.sum((X - x) ** 2, axis=1))[:40]
        alone = TwinGP(*FIXED, rank="full").fit(X[rows], Y[rows])
        check_equal([said], [alone.predict(x[None])[0]], rtol=SEARCH)


@each_machine
def test_factors_kept_or_made_again_give_the_same_answers(
    machine, two_outputs, queries
):
    answers = []
    for keep in (True, False):
        model = small_cover(clone(machine).set_params(keep_factors=keep))
        model.fit(*two_outputs)
        assert all((state.core is not None) == keep for state in model.states_)
        answers.append(model.predict(queries, return_std=True))
    check_equal(*answers, rtol=SEARCH)


@each_machine
@pytest.mark.parametrize("options", [{}, {"n_consulted": 2, "combine": "precision"}])
def test_results_do_not_depend_on_the_number_of_workers(
    machine, options, two_outputs, queries
):
    one, two = (
        small_cover(machine, n_jobs=n, **options)
        .fit(*two_outputs)
        .predict(queries, return_std=True)
        for n in (1, 2)
    )
    for this, that in zip(one, two):
        assert_array_equal(this, that)


@each_machine
def test_the_order_of_rows_does_not_matter(machine, two_outputs, queries):
    X, Y = two_outputs
    order = np.random.default_rng(3).permutation(len(X))
    full = clone(machine).set_params(rank="full")
    cover = small_cover(full, partition=Quadrants(), subdomain_size=80)
    for model in (full, cover):
        expected = model.fit(X, Y).predict(queries)
        shuffled = model.fit(X[order], Y[order]).predict(queries)
        check_equal([shuffled], [expected], rtol=SEARCH)
    assert cover.n_subdomains_ == 4


@each_machine
def test_the_order_of_rows_hardly_matters_to_the_choice_of_pivots(
    machine, two_outputs, queries
):
    X, Y = two_outputs
    order = np.random.default_rng(3).permutation(len(X))
    expected = clone(machine).fit(X, Y).predict(queries)
    shuffled = clone(machine).fit(X[order], Y[order]).predict(queries)
    assert (np.abs(shuffled - expected) < 0.01 * Y.std(axis=0)).all()


@each_machine
def test_a_batch_of_queries_is_its_queries_one_by_one(machine, two_outputs, queries):
    for model in (clone(machine), small_cover(machine, n_consulted=2)):
        model.fit(*two_outputs)
        one_by_one = [model.predict(query[None], return_std=True) for query in queries]
        expected = [np.vstack(parts) for parts in zip(*one_by_one)]
        check_equal(model.predict(queries, return_std=True), expected, rtol=SETTLED)


def test_answering_in_blocks_changes_nothing(two_outputs, queries, monkeypatch):
    full = TwinGP(*FIXED).fit(*two_outputs)
    cover = small_cover(TwinGP(*FIXED)).fit(*two_outputs)
    expected = [m.predict(queries, return_std=True) for m in (full, cover)]
    posteriors = full.posterior_variance(full.state_, queries)
    monkeypatch.setattr("overcover.machines.twin_gp.BLOCK_VALUES", 1000)
    monkeypatch.setattr("overcover.consult.ROUND_BYTES", 2000)
    for model, answers in zip((full, cover), expected):
        check_equal(model.predict(queries, return_std=True), answers, rtol=SETTLED)
    assert_allclose(
        full.posterior_variance(full.state_, queries), posteriors, rtol=ROUNDING
    )
    assert len(full.search(full.state_, queries).points) == len(queries)


@each_machine
def test_doubts_route_as_the_answers_would(machine, two_outputs, queries):
    """Each query is answered by the candidate whose posterior variance is least."""
    model = small_cover(machine).fit(*two_outputs)
    route = model.router_.route(queries / model.length_scales_, 1)
    said = model.predict(queries)
    asked = [np.flatnonzero(row >= 0) for row in route.subdomains]
    assert max(map(len, asked)) > 1
    for x, row, candidates, mean in zip(queries, route.subdomains, asked, said):
        states = [model.states_[k] for k in row[candidates]]
        posteriors = [
            model.machine_.posterior_variance(state, x[None])[0] for state in states
        ]
        surest = states[int(np.argmin(posteriors))]
        expected = model.machine_.answer(surest, x[None]).mean[0]
        check_equal([mean], [expected], rtol=SEARCH)
