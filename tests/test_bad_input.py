"""Bad input: finite answers, or an error that says what to do next."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import BaseEstimator, ClusterMixin, clone
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import BayesianRidge
from sklearn.neighbors import KNeighborsRegressor

from conftest import wave
from overcover import GP, AnyRegressor, OverlappingCoverRegressor

FIXED = {"length_scale": 1.5, "noise": 0.05}
SMALL = {"subdomain_size": 40, "overlap": 0.75, "random_state": 0}
ROUTERS = ("variance", "mahalanobis", "mahalanobis-squared", "euclidean")
ROUTERS += ("neighbors", "density")
each_router = pytest.mark.parametrize("router", ROUTERS)


class Thirds(ClusterMixin, BaseEstimator):
    """A clusterer that always makes three clusters."""

    def fit(self, X, y=None):
        self.labels_ = np.arange(len(X)) % 3
        return self


def small_cover(machine=None, **changes):
    machine = GP(**FIXED) if machine is None else machine
    return OverlappingCoverRegressor(machine, **{**SMALL, **changes})


MODELS = {
    "full GP": GP(**FIXED),
    "tuned full GP": GP(),
    "cover": small_cover(),
    "tuned cover": small_cover(GP()),
    "cover of any regressor": small_cover(AnyRegressor()),
    "two consulted": small_cover(
        router="mahalanobis", n_consulted=2, combine="precision"
    ),
}


@pytest.fixture
def surface(surface):
    """120 rows of it will do here."""
    X, y = surface
    return X[:120], y[:120]


@pytest.fixture(params=MODELS.values(), ids=MODELS.keys())
def model(request):
    return clone(request.param)


def is_gp(model):
    return isinstance(getattr(model, "machine", model), GP)


def check_finite(model, X, Y, queries=None):
    """Fitting and asking give finite answers; returns the means."""
    model.fit(X, Y)
    queries = X if queries is None else queries
    mean = model.predict(queries)
    assert mean.shape == (len(queries), *np.shape(Y)[1:])
    assert np.isfinite(mean).all()
    if getattr(model, "machine_", model).has_variance:
        again, std = model.predict(queries, return_std=True)
        assert_allclose(again, mean)
        assert std.shape == mean.shape
        assert np.isfinite(std).all() and (std >= 0).all()
        low, high = model.predict_interval(queries, 0.9)
        assert (low <= mean).all() and (mean <= high).all()
    return mean


# -- values that no one can learn from ------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused(model, value, surface):
    X, y = surface
    broken = X.copy()
    broken[3, 1] = value
    with pytest.raises(ValueError, match="Input X contains"):
        model.fit(broken, y)
    broken_y = y.copy()
    broken_y[3] = value
    with pytest.raises(ValueError, match="Input y contains"):
        model.fit(X, broken_y)
    model.fit(X, y)
    with pytest.raises(ValueError, match="Input X contains"):
        model.predict(broken)


def test_wrong_widths_are_refused(model, surface):
    X, y = surface
    model.fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 features, but .* expecting 2"):
        model.predict(np.column_stack([X, y]))
    with pytest.raises(ValueError, match=r"inconsistent numbers of samples"):
        model.fit(X, y[:-1])
    with pytest.raises(ValueError, match=r"Reshape your data"):
        model.predict(X[0])


def test_nothing_to_fit_and_nothing_to_predict_are_refused(model, surface):
    X, y = surface
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(X[:0], y[:0])
    with pytest.raises(ValueError, match=r"0 feature\(s\)"):
        model.fit(X[:, :0], y)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.fit(X, y).predict(X[:0])


def test_words_are_not_numbers(model, surface):
    X, _ = surface
    with pytest.raises(ValueError, match="could not convert string to float"):
        model.fit(np.full(X.shape, "a"), X[:, 0])


@pytest.mark.parametrize("model", [GP(**FIXED), small_cover()], ids=str)
def test_a_model_that_was_never_fitted_says_so(model, surface):
    with pytest.raises(NotFittedError):
        model.predict(surface[0])


@pytest.mark.parametrize(
    "model",
    [
        small_cover(overlap=2.0),
        small_cover(router="psychic"),
        small_cover(GP(noise=-1.0)),
        small_cover(KernelRidge(alpha=-1.0)),
        GP(noise=-1.0),
    ],
    ids=["overlap", "router", "machine", "estimator", "full GP"],
)
def test_a_fit_that_failed_leaves_nothing_half_fitted(model, surface):
    X, y = surface
    with pytest.raises(ValueError, match=r"must be|is not known"):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_refit_that_failed_leaves_the_old_model_whole(surface):
    X, y = surface
    model = small_cover().fit(X, y)
    expected = model.predict(X)
    with pytest.raises(ValueError, match="noise=-1"):
        model.set_params(machine__noise=-1.0).fit(X[:, :1], np.column_stack([y, y]))
    assert_array_equal(model.predict(X), expected)


# -- few rows, equal rows, equal values -----------------------------------------------


@pytest.mark.parametrize("n_samples", [1, 2, 3])
def test_a_handful_of_rows_gives_finite_answers(model, n_samples, surface, queries):
    X, y = surface
    if getattr(model, "n_consulted", 1) > 1:
        model.set_params(n_consulted=1)  # there will be no second subdomain
    check_finite(model, X[:n_samples], y[:n_samples], queries)


@each_router
def test_one_row_per_subdomain_gives_finite_answers(router, surface, queries):
    X, y = surface
    model = small_cover(subdomain_size=1, router=router)
    check_finite(model, X[:50], y[:50], queries)
    assert model.n_subdomains_ == 50


def test_constant_columns_change_nothing(model, surface, queries):
    X, y = surface
    expected = check_finite(model, X, y, queries)

    def with_sevens(A):
        return np.column_stack([A, np.full(len(A), 7.0)])

    mean = check_finite(model, with_sevens(X), y, with_sevens(queries))
    # A shrunk covariance knows how many columns there are, used or not.
    if is_gp(model) and getattr(model, "router", "variance") == "variance":
        assert_allclose(mean, expected, rtol=1e-6)


@pytest.mark.filterwarnings("ignore:The inputs explain almost nothing")
def test_only_constant_columns_give_the_mean(model, surface):
    _, y = surface
    mean = check_finite(model, np.full((len(y), 2), 7.0), y)
    # A posterior shrinks towards its prior, which is the mean too.
    assert_allclose(mean, mean[0])
    if isinstance(model, GP):
        assert_allclose(mean, y.mean())


@pytest.mark.parametrize("value", [0.0, 0.1, -1e9])
def test_constant_outputs_are_predicted_exactly(model, value, surface):
    X, _ = surface
    mean = check_finite(model, X, np.full(len(X), value))
    if is_gp(model):
        assert_allclose(mean, value, rtol=1e-12)


def test_a_constant_output_beside_a_real_one_changes_nothing(model, surface, queries):
    X, y = surface
    alone = check_finite(model, X, y, queries)
    both = check_finite(model, X, np.column_stack([y, np.full(len(y), 3.0)]), queries)
    assert_allclose(both[:, 0], alone, rtol=1e-6, atol=1e-9)


@pytest.mark.filterwarnings("ignore:The inputs explain almost nothing")
def test_duplicate_rows_give_finite_answers(model, surface):
    X, y = surface
    check_finite(model, np.repeat(X[:60], 5, axis=0), np.repeat(y[:60], 5))
    # The same input with different outputs is noise.
    check_finite(model, np.repeat(X[:24], 5, axis=0), y)


@each_router
@pytest.mark.parametrize("n_values", [1, 2])
def test_coincident_rows_give_finite_answers(router, n_values, surface):
    _, y = surface
    X = np.repeat([[1.0, 2.0], [3.0, 4.0]][:n_values], len(y) // n_values, axis=0)
    check_finite(small_cover(router=router), X, y)
    check_finite(small_cover(router=router, n_consulted=3), X, y)


def test_duplicate_rows_without_noise_are_handled_by_jitter(surface):
    X, y = surface
    X, y = np.repeat(X[:40], 3, axis=0), np.repeat(y[:40], 3)
    mean = check_finite(GP(length_scale=1.5, noise=0), X, y)
    assert_allclose(mean, y, atol=1e-3)


def test_fewer_rows_than_a_subdomain_make_one_subdomain(surface):
    model = small_cover(subdomain_size=10_000)
    check_finite(model, *surface)
    assert model.n_subdomains_ == 1
    assert len(model.cover_.members[0]) == len(surface[0])


# -- scales and types -----------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("model", [GP(), small_cover(GP())], ids=str)
def test_the_units_of_the_inputs_do_not_matter(model, scale, surface, queries):
    X, y = surface
    expected = check_finite(model, X, y, queries)
    scaled = check_finite(model, scale * X, y, scale * queries)
    # Length scales are found to three decimals, and so may the clusters differ.
    assert_allclose(scaled, expected, atol=0.02)


@pytest.mark.parametrize("scale", [1e-12, 1e12])
@pytest.mark.parametrize("model", [GP(**FIXED), GP(), small_cover(GP())], ids=str)
def test_the_units_of_the_outputs_do_not_matter(model, scale, surface, queries):
    X, y = surface
    expected = check_finite(model, X, y, queries)
    _, std = model.predict(queries, return_std=True)
    scaled = check_finite(model, X, scale * y, queries)
    _, scaled_std = model.predict(queries, return_std=True)
    assert_allclose(scaled / scale, expected, rtol=1e-6, atol=1e-6)
    assert_allclose(scaled_std / scale, std, rtol=1e-6)


@each_router
@pytest.mark.parametrize("scale", [1e-12, 1e12])
def test_inputs_of_a_scale_far_from_the_length_scale_give_finite_answers(
    router, scale, surface
):
    X, y = surface
    check_finite(small_cover(router=router, n_consulted=2), scale * X, y)


@each_router
def test_columns_of_very_different_scales_give_finite_answers(router, surface):
    X, y = surface
    check_finite(small_cover(GP(), router=router), X * [1e-12, 1e12], y)


@each_router
def test_inputs_far_from_the_origin_answer_as_near_it(router, surface, queries):
    X, y = surface
    model = small_cover(router=router, partition="rpc")
    expected = check_finite(model, X, y, queries)
    assert_allclose(check_finite(model, X + 1e6, y, queries + 1e6), expected, atol=1e-4)


def test_outputs_far_from_the_origin_answer_as_near_it(surface, queries):
    X, y = surface
    expected = check_finite(small_cover(), X, y, queries)
    shifted = check_finite(small_cover(), X, y + 1e6, queries)
    assert_allclose(shifted - 1e6, expected, atol=1e-6)


def test_queries_far_from_the_data_give_finite_answers(model, surface):
    X, y = surface
    check_finite(model, X, y, np.array([[1e9, -1e9], [1e15, 0.0]]))


@pytest.mark.parametrize("value", [1e6, 1e9])
@pytest.mark.parametrize("name", ["full GP", "tuned full GP", "cover", "tuned cover"])
def test_one_far_cell_spoils_no_other_answer(name, value, surface, queries):
    """It is a row that is similar to no other: the model without it."""
    X, y = surface
    far = X.copy()
    far[7, 1] = value
    truth, model = wave(queries), clone(MODELS[name])
    without = check_finite(model, np.delete(X, 7, 0), np.delete(y, 7), queries)
    answers = check_finite(model, far, y, queries)
    error, least = (np.sqrt(np.mean((a - truth) ** 2)) for a in (answers, without))
    assert error < 1.1 * least


def test_integers_are_taken_as_numbers(model, surface):
    X, y = surface
    X, y = np.round(10 * X).astype(int), np.round(100 * y).astype(int)
    mean = check_finite(model, X, y)
    assert_array_equal(mean, check_finite(model, X.astype(float), y.astype(float)))


def test_single_precision_is_taken(model, surface):
    X, y = surface
    assert check_finite(model, np.float32(X), np.float32(y)).dtype == np.float64


def test_the_layout_of_arrays_in_memory_does_not_matter(model, surface):
    X, y = surface
    expected = check_finite(model, X, y)
    strided = np.repeat(np.repeat(X, 2, axis=0), 3, axis=1)[::2, ::3]
    for other in (np.asfortranarray(X), strided, X[::-1][::-1]):
        assert_array_equal(check_finite(model, other, y), expected)
    assert_array_equal(check_finite(model, X, np.repeat(y, 2)[::2]), expected)


def test_lists_are_taken_and_inputs_are_left_alone(model, surface):
    X, y = surface
    X_before, y_before = X.copy(), y.copy()
    expected = check_finite(model, X, y)
    assert_array_equal(X, X_before)
    assert_array_equal(y, y_before)
    assert_array_equal(check_finite(model, X.tolist(), y.tolist(), X), expected)


def test_more_columns_than_rows_give_finite_answers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 120))
    for router in ROUTERS:
        machine = GP(length_scale=15.0, noise=0.1)
        check_finite(small_cover(machine, router=router), X, X[:, 0])


# -- options --------------------------------------------------------------------------

WRONG_OPTIONS = [
    ({"overlap": 1.0}, r"overlap=1.0 must be at least 0 and below 1"),
    ({"overlap": -0.1}, r"overlap=-0.1 must be at least 0 and below 1"),
    ({"overlap": np.nan}, r"overlap=nan must be at least 0 and below 1"),
    ({"overlap": "much"}, r"overlap='much' must be at least 0 and below 1"),
    ({"spread": 0.5}, r"spread=0.5 must be a number >= 1"),
    ({"spread": np.inf}, r"spread=inf must be a number >= 1"),
    ({"spread": "wide"}, r"spread='wide' must be a number >= 1"),
    ({"subdomain_size": 0}, r"subdomain_size=0 must be an integer >= 1"),
    ({"subdomain_size": 10.5}, r"subdomain_size=10.5 must be an integer >= 1"),
    ({"subdomain_size": True}, r"subdomain_size=True must be an integer >= 1"),
    ({"n_consulted": 0}, r"n_consulted=0 must be an integer >= 1"),
    ({"n_consulted": 1.5}, r"n_consulted=1.5 must be an integer >= 1"),
    ({"router": "psychic"}, r"router='psychic' is not known. Choose one of 'variance'"),
    ({"router": None}, r"router=None is not known. Choose one of 'variance'"),
    ({"combine": "vote"}, r"combine='vote' is not known. Choose one of 'auto', 'cert"),
    ({"partition": "abc"}, r"partition='abc' is not known. Choose one of 'kmeans'"),
    ({"partition": 5}, r"partition=5 is not known. Choose one of 'kmeans'"),
    ({"machine": "svm"}, r"machine='svm' is not known. Choose one of 'gp'"),
    ({"machine": 5}, r"machine=5 is not known. Choose one of 'gp'"),
    ({"machine": GP(kernel="cubic")}, r"kernel='cubic' is not known.*'rbf'"),
    ({"machine": GP(kernel=5)}, r"kernel=5 is not known.*'rbf'"),
    ({"machine": GP(noise=-0.1)}, r"noise=-0.1 must be 'auto' or a number >= 0"),
    ({"machine": GP(noise=np.nan)}, r"noise=nan must be 'auto' or a number >= 0"),
    ({"machine": GP(noise=np.inf)}, r"noise=inf must be"),
    ({"machine": GP(noise="loud")}, r"noise='loud' must be 'auto' or a number >= 0"),
    ({"machine": GP(noise=[0.1, 0.2])}, r"noise=.* must be 'auto' or a number >= 0"),
    ({"machine": GP(length_scale=0)}, r"length_scale=0 must be.*one for each of the 2"),
    ({"machine": GP(length_scale=np.nan)}, r"length_scale=nan must be 'auto', a pos"),
    ({"machine": GP(length_scale=[1.0] * 3)}, r"number, or one for each of the 2"),
    ({"machine": GP(length_scale=[1.0, -1.0])}, r"number, or one for each of the 2"),
    ({"machine": GP(length_scale="long")}, r"length_scale='long' must be 'auto'"),
    ({"machine": GP(keep_factors="maybe")}, r"keep_factors='maybe'"),
]


@pytest.mark.parametrize(("options", "message"), WRONG_OPTIONS, ids=str)
def test_wrong_options_are_refused_with_what_is_allowed(options, message, surface):
    with pytest.raises(ValueError, match=message):
        small_cover(**options).fit(*surface)


def test_something_that_is_not_a_regressor_is_refused(surface):
    with pytest.raises(TypeError, match=r"is not a scikit-learn regressor. Give one"):
        AnyRegressor(KMeans(2)).fit(*surface)


@pytest.mark.parametrize("router", ["variance", "euclidean"])
def test_consulting_more_subdomains_than_there_are_is_refused(router, surface):
    X, y = surface
    model = small_cover(overlap=0.0, n_consulted=4, router=router)
    message = r"n_consulted=4 is more than the number of subdomains, 3. Give n_consul"
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
    model.set_params(n_consulted=3).fit(X, y).set_params(n_consulted=4)
    with pytest.raises(ValueError, match=message):
        model.predict(X)


def test_a_clusterer_decides_how_many_can_be_consulted(surface):
    X, y = surface
    model = small_cover(subdomain_size=120, partition=Thirds(), n_consulted=3)
    assert model.fit(X, y).n_subdomains_ == 3  # where one was asked for
    with pytest.raises(ValueError, match="n_consulted=4 is more than"):
        model.set_params(n_consulted=4).fit(X, y)


@pytest.mark.parametrize("coverage", [0, 1, -0.5, 95, np.nan, "most"])
@pytest.mark.parametrize("model", [GP(**FIXED), small_cover()], ids=str)
def test_a_coverage_that_is_no_probability_is_refused(model, coverage, surface):
    X, y = surface
    with pytest.raises(ValueError, match=r"coverage=.* must be a probability between"):
        model.fit(X, y).predict_interval(X, coverage)


# -- weights --------------------------------------------------------------------------


def test_weights_that_make_no_sense_are_refused(model, surface):
    X, y = surface
    with pytest.raises(ValueError, match="at least one"):
        model.fit(X, y, sample_weight=np.zeros(len(X)))
    with pytest.raises(ValueError, match=r"[Nn]egative"):
        model.fit(X, y, sample_weight=-np.ones(len(X)))
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="contains NaN"):
        model.fit(X, y, sample_weight=np.full(len(X), np.nan))


def test_rows_of_weight_zero_are_not_there(model, surface, queries):
    X, y = surface
    used = np.arange(len(X)) % 3 > 0
    broken = np.where(used, y, 1e6)
    weighted = model.fit(X, broken, sample_weight=used.astype(float)).predict(queries)
    without = model.fit(X[used], y[used], sample_weight=np.ones(used.sum()))
    assert_array_equal(weighted, without.predict(queries))


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_tiny_and_huge_weights_give_finite_answers(scale, surface):
    X, y = surface
    model = small_cover().fit(X, y, sample_weight=np.full(len(X), scale))
    assert np.isfinite(model.predict(X, return_std=True)).all()


def test_an_estimator_that_takes_no_weights_says_so(surface):
    X, y = surface
    model = small_cover(KNeighborsRegressor())
    with pytest.raises(ValueError, match=r"does not take sample_weight. Fit"):
        model.fit(X, y, sample_weight=1.0 + np.arange(len(X)))


def test_an_estimator_that_takes_no_weights_takes_equal_rows(surface):
    X, y = (np.repeat(part, 2, axis=0)[:-1] for part in surface)
    small_cover(KNeighborsRegressor()).fit(X, y)
    alone = AnyRegressor(KNeighborsRegressor()).fit(X, y)
    assert_allclose(alone.predict(X), KNeighborsRegressor().fit(X, y).predict(X))


# -- machines without a variance ------------------------------------------------------


@pytest.mark.parametrize(
    "model", [AnyRegressor(KernelRidge()), small_cover(KernelRidge())], ids=str
)
def test_a_machine_without_variance_gives_neither_std_nor_intervals(model, surface):
    X, y = surface
    model.fit(X, y)
    assert np.isfinite(model.predict(X)).all()
    with pytest.raises(ValueError, match=r"has no predictive variance.* use GP\(\)"):
        model.predict(X, return_std=True)
    with pytest.raises(ValueError, match=r"has no predictive variance.* use GP\(\)"):
        model.predict_interval(X)


@pytest.mark.parametrize("rule", ["certainty", "precision"])
def test_answers_without_variance_cannot_be_weighed_by_it(rule, surface):
    X, y = surface
    model = small_cover(KernelRidge(), combine=rule, n_consulted=2)
    with pytest.raises(ValueError, match=f"combine='{rule}' weighs .* Choose 'auto'"):
        model.fit(X, y)
    model.set_params(combine="auto").fit(X, y).set_params(combine=rule)
    with pytest.raises(ValueError, match="weighs answers by their variance"):
        model.predict(X)


def test_a_machine_that_has_a_variance_gives_it(surface):
    check_finite(small_cover(BayesianRidge(), n_consulted=2), *surface)
