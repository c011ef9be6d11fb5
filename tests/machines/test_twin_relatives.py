"""The relatives of the Twin GP: importance-weighted and Sharma-Mittal."""

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize

import reference_twin
from overcover import (
    ImportanceWeightedTwinGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    RelativeDensityRatio,
    SharmaMittalTwinGP,
    TwinGP,
)
from overcover._weights import in_typical_units
from overcover.machines.weighted_twin_gp import LEAST_WEIGHT

FIXED = (1.2, [0.8, 1.1], 0.02, 0.01)
EXACT = {"rank": "full"}
ROUNDING = 1e-8
# As far as a gradient of 1e-7 and the inverse curvature let points differ.
SEARCH = 1e-6


@pytest.fixture(scope="module")
def rows():
    """120 rows with two outputs of similar scales."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (120, 2))
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1]) + 5.0])
    return X, Y + 0.05 * rng.normal(size=Y.shape)


@pytest.fixture(scope="module")
def targets():
    """Inputs from one corner of the data."""
    return np.random.default_rng(3).normal([1.0, 1.0], 0.6, (50, 2))


def check_equal(these, those, rtol=ROUNDING):
    """Two predictions with standard deviations agree."""
    for this, that in zip(these, those):
        assert_allclose(this, that, rtol=rtol, atol=rtol * np.abs(that).max())


# -- importance weights ---------------------------------------------------------------


def test_without_targets_it_is_the_twin_gp_exactly(rows, queries):
    weighted, plain = (
        kind(*FIXED).fit(*rows) for kind in (ImportanceWeightedTwinGP, TwinGP)
    )
    for this, that in zip(
        weighted.predict(queries, return_std=True),
        plain.predict(queries, return_std=True),
    ):
        assert_array_equal(this, that)
    assert not hasattr(weighted, "importance_")


@pytest.mark.parametrize("kind", [TwinGP, ImportanceWeightedTwinGP, SharmaMittalTwinGP])
def test_weights_of_one_change_nothing(kind, rows, queries):
    X, Y = rows
    plain = kind(*FIXED).fit(X, Y).predict(queries, return_std=True)
    ones = kind(*FIXED).fit(X, Y, sample_weight=np.ones(len(X)))
    check_equal(ones.predict(queries, return_std=True), plain)


@pytest.mark.parametrize("kind", [TwinGP, ImportanceWeightedTwinGP, SharmaMittalTwinGP])
def test_an_integer_weight_is_that_many_equal_rows(kind, rows, queries):
    X, Y = rows
    weights = 1 + np.arange(len(X)) % 3
    machine = kind(*FIXED, **EXACT)
    weighted = machine.fit(X, Y, sample_weight=weights)
    mean, posterior = (
        weighted.predict(queries),
        weighted.posterior_variance(weighted.state_, queries),
    )
    repeated = machine.fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    assert_allclose(repeated.predict(queries), mean, atol=SEARCH)
    assert_allclose(
        repeated.posterior_variance(repeated.state_, queries), posterior, rtol=1e-6
    )


def test_a_weighted_kernel_is_more_noise_for_lighter_rows(rows, queries, targets):
    """``W^1/2`` on both sides of the kernel, as printed, for u and for eta."""
    X, Y = rows
    model = ImportanceWeightedTwinGP(*FIXED, **EXACT, random_state=0)
    model.fit(X, Y, X_target=targets)
    state, noise = model.state_, model.input_noise_
    weights = state.rows.weights
    assert np.ptp(weights) > 0.5 and weights.min() >= LEAST_WEIGHT
    K, K_xq = reference_twin.gram(state.rows.A), state.rows.similarities(queries)
    looks = model.make_search().look(state.core, K_xq, state.rows.Z)
    for q in range(len(queries)):
        u, eta = reference_twin.importance_weighted(K, K_xq[:, q], weights, noise)
        assert_allclose(looks.U[q], u, atol=ROUNDING)
        assert_allclose(looks.unexplained[q] + noise, eta, rtol=ROUNDING)
    compared = model.posterior_variance(state, queries)
    assert_allclose(compared, looks.unexplained + noise, rtol=1e-3)


def test_weights_and_groups_may_be_given_together(rows, targets):
    X, Y = rows
    model = ImportanceWeightedTwinGP(*FIXED, random_state=0)
    model.fit(X, Y, X_target=targets, groups=np.arange(len(X)) // 10)
    plain = ImportanceWeightedTwinGP(*FIXED, random_state=0).fit(X, Y, X_target=targets)
    assert_allclose(model.predict(X), plain.predict(X))
    assert (model.calibration_.factor != plain.calibration_.factor).any()


def test_targets_are_weights_by_density_ratio(rows, queries, targets):
    X, Y = rows
    given = 1.0 + np.arange(len(X)) % 2
    ratio = RelativeDensityRatio(0.3, n_centers=20, random_state=0).fit(X, targets)
    weights = in_typical_units(given) * np.maximum(ratio.weights_, LEAST_WEIGHT)
    expected = TwinGP(*FIXED)
    expected.tune(X, Y, weights, len(X), np.random.RandomState(0), None)
    state = expected.fit_state(X, Y, weights)
    expected.calibrate([state])
    mean, variance = expected.answer(state, queries, variance=True)[:2]
    model = ImportanceWeightedTwinGP(*FIXED, alpha=0.3, n_centers=20, random_state=0)
    model.fit(X, Y, sample_weight=given, X_target=targets)
    check_equal(model.predict(queries, return_std=True), (mean, np.sqrt(variance)))
    assert_array_equal(model.importance_.weights_, ratio.weights_)


@pytest.mark.parametrize(
    ("model", "size"),
    [
        (OverlappingCoverRegressor, {"subdomain_size": 60}),
        (NeighborhoodRegressor, {"n_neighbors": 60}),
    ],
)
def test_covers_and_neighbourhoods_weigh_rows_too(model, size, rows, queries, targets):
    X, Y = rows
    machine = ImportanceWeightedTwinGP(*FIXED)
    weighted = model(machine, random_state=0, **size)
    plain = weighted.fit(X, Y).predict(queries)
    shifted = weighted.fit(X, Y, X_target=targets).predict(queries)
    assert weighted.machine_.importance_.weights_.shape == (len(X),)
    assert np.abs(shifted - plain).max() > 1e-3
    assert np.isfinite(shifted).all()


def shifted_problem(seed):
    """A model too stiff for the whole curve must choose where to be right."""
    rng = np.random.default_rng(seed)

    def curves(X):
        return np.column_stack([np.sinc(X[:, 0]), np.cos(2 * X[:, 0])])

    X, X_target = rng.normal(1, 0.5, (150, 1)), rng.normal(2, 0.25, (60, 1))
    Xq = rng.normal(2, 0.25, (200, 1))
    Y = curves(X) + 0.1 * rng.normal(size=(150, 2))
    return X, Y, X_target, Xq, curves(Xq)


def test_importance_weights_help_a_stiff_model_under_covariate_shift():
    stiff, errors = (3.0, 2.0, 0.3, 0.3), []
    for seed in range(5):
        X, Y, X_target, Xq, truth = shifted_problem(seed)
        plain = TwinGP(*stiff).fit(X, Y)
        weighted = ImportanceWeightedTwinGP(*stiff, random_state=0)
        weighted.fit(X, Y, X_target=X_target)
        errors.append(
            [np.sqrt(np.mean((m.predict(Xq) - truth) ** 2)) for m in (plain, weighted)]
        )
    plain, weighted = np.transpose(errors)
    assert (weighted < plain).all()
    assert weighted.mean() < 0.6 * plain.mean()


def test_targets_beyond_all_data_are_warned_of_and_survived(rows, queries):
    X, Y = rows
    model = ImportanceWeightedTwinGP(*FIXED, random_state=0)
    far = np.random.default_rng(0).normal(500.0, 1.0, (40, 2))
    with pytest.warns(UserWarning, match="hardly overlap"):
        model.fit(X, Y, X_target=far)
    mean, std = model.predict(np.vstack([queries, far]), return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()
    assert (np.abs(mean - Y.mean(axis=0)) < 3 * np.ptp(Y, axis=0)).all()


# -- queries as targets ---------------------------------------------------------------


def test_transductive_weights_come_from_the_queries(rows, queries):
    X, Y = rows
    model = ImportanceWeightedTwinGP(*FIXED, transductive=True).fit(X, Y)
    mean = model.predict(queries)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        scaled = model.state_.rows
        inputs = queries / scaled.input_scales - scaled.center
        ratio = RelativeDensityRatio(0.5, random_state=0).fit(scaled.A, inputs)
    weights = np.maximum(ratio.weights_, LEAST_WEIGHT)
    # The mean output stays that of all rows: shift it there.
    expected = TwinGP(*FIXED).fit(X, Y)
    rows_now = expected.state_.rows._replace(weights=weights)
    expected.state_ = expected.state_._replace(rows=rows_now, core=None)
    assert_allclose(mean, expected.predict(queries), rtol=ROUNDING)


def test_transductive_answers_depend_on_what_else_is_asked(rows, queries):
    model = ImportanceWeightedTwinGP(*FIXED, transductive=True).fit(*rows)
    together = model.predict(queries)
    assert_array_equal(model.predict(queries), together)
    assert np.abs(model.predict(queries[:8]) - together[:8]).max() > 1e-4
    mean, std = model.predict(queries, return_std=True)
    assert_allclose(mean, together, rtol=1e-12)
    assert np.isfinite(std).all() and (std > 0).all()


def test_with_given_targets_answers_do_not_depend_on_what_else_is_asked(
    rows, queries, targets
):
    model = ImportanceWeightedTwinGP(*FIXED, random_state=0)
    model.fit(*rows, X_target=targets)
    together = model.predict(queries)
    assert_allclose(model.predict(queries[:8]), together[:8], rtol=SEARCH)


def test_a_transductive_cover_answers_each_subdomain_by_its_own_queries(rows, queries):
    machine = ImportanceWeightedTwinGP(*FIXED, transductive=True)
    model = OverlappingCoverRegressor(machine, subdomain_size=60, random_state=0)
    mean, std = model.fit(*rows).predict(queries, return_std=True)
    assert np.isfinite(mean).all() and np.isfinite(std).all()


# -- the printed inverse --------------------------------------------------------------


def exact_inverse(K, d, noise):
    D = np.diag(d)
    return D @ np.linalg.inv(D @ K @ D + noise * np.eye(len(K))) @ D


@pytest.mark.parametrize("noise", [1e-3, 0.01, 0.1])
def test_the_printed_inverse_is_wrong_on_a_real_kernel(noise, rows, rng):
    K, d = reference_twin.gram(rows[0]), np.sqrt(rng.uniform(0.2, 2.0, 120))
    right = exact_inverse(K, d, noise)
    off = np.linalg.norm(
        reference_twin.printed_inverse(K, d, noise) - right
    ) / np.linalg.norm(right)
    assert off > 0.1


def test_the_printed_inverse_is_right_for_a_single_row():
    """There, and nowhere else, is the noise a matrix of rank one."""
    K, d = np.array([[1.0]]), np.array([0.7])
    for noise in (1e-3, 0.1, 3.0):
        assert_allclose(
            reference_twin.printed_inverse(K, d, noise),
            exact_inverse(K, d, noise),
            rtol=1e-8,
        )
    for size in (2, 3):
        K, d = np.eye(size), np.ones(size)
        right = exact_inverse(K, d, 0.5)
        assert np.abs(reference_twin.printed_inverse(K, d, 0.5) - right).max() > 0.05


# -- Sharma-Mittal --------------------------------------------------------------------


def test_towards_alpha_zero_it_tends_to_the_twin_gp(rows, queries):
    expected = TwinGP(*FIXED, **EXACT).fit(*rows).predict(queries)
    apart = [
        np.abs(
            SharmaMittalTwinGP(*FIXED, **EXACT, alpha=alpha).fit(*rows).predict(queries)
            - expected
        ).max()
        for alpha in (1e-1, 1e-2, 1e-3, 1e-5)
    ]
    assert apart[0] > apart[1] > apart[2] > apart[3]
    assert apart[0] > 1e-3 and apart[3] < 1e-4


@pytest.mark.parametrize("alpha", [0.1, 0.5, 0.9])
def test_answers_are_minima_and_seldom_above_those_of_scipy(alpha, rows, queries):
    model = SharmaMittalTwinGP(*FIXED, **EXACT, alpha=alpha).fit(*rows)
    scaled, found = model.state_.rows, model.search(model.state_, queries)
    slow = reference_twin.DenseMixture(scaled.A, scaled.Z, *FIXED[2:], alpha)
    turns = np.linspace(0, 2 * np.pi, 12)
    circle = 1e-2 * np.column_stack([np.cos(turns), np.sin(turns)])
    assert found.converged.all()
    above = []
    for x, z in zip(queries[:15], found.points):
        a = x / scaled.input_scales - scaled.center
        value = slow.objective(z, a)
        assert min(slow.objective(z + step, a) for step in circle) > value
        theirs = minimize(slow.objective, slow.mean(a), args=(a,), method="L-BFGS-B")
        above.append(value > theirs.fun + 1e-6)
    # From one start two searches may end in different valleys, but hardly ever do.
    assert np.sum(above) <= 1


def test_pivots_change_a_mixture_little(rows, queries):
    exact, quick = (
        SharmaMittalTwinGP(1.2, 1.5, 1e-3, 1e-3, rank=rank).fit(*rows).predict(queries)
        for rank in ("full", "auto")
    )
    assert_allclose(quick, exact, atol=2e-3)
