"""Outputs on another scale: answers are in units of y, and true to the model's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import trapezoid
from scipy.spatial.distance import pdist
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.preprocessing import FunctionTransformer, StandardScaler

import overcover
from overcover import (
    GP,
    AnyRegressor,
    OverlappingCoverRegressor,
    _outcomes,
    store,
    targets,
)
from overcover._scales import SCALES
from overcover._validation import TrainingData
from overcover.advice import advise, assess
from overcover.machines.errors import Gaussian
from overcover.plots import CalibrationDisplay
from overcover.targets import Outcomes, Scales, choose, fit_target, joined

FIXED = GP("matern32", 1.5, 0.2)
FREE = GP("matern32", noise=0.2)  # "auto" is for machines that learn a metric
LOG = FunctionTransformer(np.log, np.exp, check_inverse=False)
PLACES = np.array([[0.5, 0.5], [-1.0, 1.5], [1.9, -1.9]])


def model_with(target, machine=FIXED, **options):
    options = {"subdomain_size": 60, "random_state": 0} | options
    return OverlappingCoverRegressor(machine, target=target, **options)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (240, 2))
    f = np.sin(2 * X[:, 0]) * np.cos(X[:, 1])
    return X, np.exp(f + 0.5 * rng.normal(size=len(X)))


@pytest.fixture(scope="module")
def models(rows):
    """On the scale of the logarithm, and on the logarithms."""
    X, y = rows
    return model_with("log").fit(X, y), model_with("identity").fit(X, np.log(y))


def answers_of(model, X, y):
    mean, std = model.predict(X, return_std=True)
    quantiles = model.predict_quantile(X, [0.1, 0.5, 0.99])
    density = model.log_density(X, y)
    return mean, std, *model.predict_interval(X, 0.9), *quantiles.T, density


# -- scales ----------------------------------------------------------------------------


def outputs_for(name, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.lognormal(0, 1, 60)
    return y / (1 + y) if name == "logit" else y


@pytest.mark.parametrize("name", SCALES)
def test_a_scale_comes_back_and_its_slope_is_its_derivative(name):
    scale, y = SCALES[name], outputs_for(name)
    numbers = np.resize([*scale.learn(y, None), 0, 0, 0, 0], 4)
    assert_allclose(scale.inverse(scale.forward(y, numbers), numbers), y, rtol=1e-10)
    step = 1e-5 * y * (1 - y if name == "logit" else 1)
    rise = scale.forward(y + step, numbers) - scale.forward(y - step, numbers)
    slope = np.log(rise / (2 * step))
    assert_allclose(scale.log_slope(y, numbers), slope, atol=1e-6)


@settings(max_examples=60, deadline=None)
@given(
    power=st.floats(0, 2),
    z=st.lists(st.floats(-50, 50), min_size=2, max_size=20),
)
def test_every_number_has_an_inverse_and_order_is_kept(power, z):
    z = np.sort(z)
    for scale in SCALES.values():
        numbers = np.array([0.2, 1.3, power, -1e300])
        y = scale.inverse(z, numbers)
        assert np.isfinite(y).all() and (np.diff(y) >= 0).all()


def test_the_likeliest_power_makes_lognormal_outputs_logarithms():
    rng = np.random.default_rng(0)
    y = np.expm1(np.abs(rng.normal(2, 0.5, 5000)))
    y[0] = 0.0  # so that the center is zero, as of counts
    center, _, power, floor = SCALES["yeo-johnson"].learn(y, None)
    assert center == floor == 0 and power < 0.3
    flat = SCALES["yeo-johnson"].learn(rng.normal(size=5000), None)
    assert abs(flat[2] - 1) < 0.1


# -- answers ---------------------------------------------------------------------------


def test_identity_is_no_target_bit_by_bit(rows):
    X, y = rows
    plain = OverlappingCoverRegressor(FIXED, subdomain_size=60, random_state=0)
    expected = answers_of(plain.fit(X, y), PLACES, y[:3])
    few = slice(0, 29)  # "auto" leaves so few rows as they are
    for these, those in zip(
        answers_of(model_with("identity").fit(X, y), PLACES, y[:3]), expected
    ):
        assert_array_equal(these, those)
    kept = model_with("auto", FREE).fit(X[few], y[few])
    assert kept.target_.names == ()
    alone = model_with("identity", FREE).fit(X[few], y[few])
    assert_array_equal(kept.predict(PLACES), alone.predict(PLACES))
    assert_array_equal(
        kept.predict(PLACES, return_cov=True)[1],
        alone.predict(PLACES, return_cov=True)[1],
    )


def test_quantiles_and_intervals_are_those_of_the_logarithms(models):
    model, logs = models
    levels = [0.025, 0.3, 0.5, 0.975]
    expected = np.exp(logs.predict_quantile(PLACES, levels))
    assert_allclose(model.predict_quantile(PLACES, levels), expected, rtol=1e-12)
    ends = np.exp(logs.predict_interval(PLACES, 0.8))
    assert_allclose(model.predict_interval(PLACES, 0.8), ends, rtol=1e-12)


def test_mean_and_std_are_those_of_what_may_be_observed(models, monkeypatch):
    model, _ = models
    mean, std = model.predict(PLACES, return_std=True)
    assert_array_equal(model.predict(PLACES), mean)
    assert (mean > model.predict_quantile(PLACES, 0.5)).all()
    levels = (np.arange(2000) + 0.5) / 2000
    drawn = model.predict_quantile(PLACES, levels)
    assert_allclose(mean, drawn.mean(axis=1), rtol=0.01)
    # Tails beyond two deviations count as Gaussian where they are heavier.
    assert (std < 1.02 * drawn.std(axis=1)).all()
    nodes = np.arange(0.02, 6.01, 0.02)
    density = np.exp(-0.5 * nodes**2)
    monkeypatch.setattr(_outcomes, "NODES", nodes)
    monkeypatch.setattr(_outcomes, "WEIGHTS", density / (1 + 2 * density.sum()))
    slow = model.predict(PLACES, return_std=True)
    assert_allclose((mean, std), slow, rtol=0.01)


def test_gaussian_errors_have_the_moments_of_the_lognormal():
    m, s = np.array([[0.3], [-2.0], [5.0]]), np.array([[0.1], [0.5], [1.0]])
    mean, std = Outcomes(m, s, Gaussian(), joined([("log", ())])).moments()
    expected = np.exp(m + s**2 / 2)
    assert_allclose(mean, expected, rtol=1e-6)
    assert_allclose(std, expected * np.sqrt(np.expm1(s**2)), rtol=1e-4)


@pytest.mark.parametrize("target", ["log", "yeo-johnson", "logit", LOG])
def test_densities_integrate_to_one(rows, target):
    X, y = rows
    y = y / (1 + y) if target == "logit" else y
    model = model_with(target).fit(X, y)
    # Dense where the density is, and far out in the tails.
    levels = np.linspace(1e-9, 1 - 1e-9, 2001)
    outcomes = model._outcomes_at(PLACES[:1])
    z = outcomes.mean + 60 * outcomes.std * np.sinh(6 * (2 * levels[:, None] - 1)) / 200
    grid = np.unique(model.target_.inverse(z))
    density = np.exp(model.log_density(np.repeat(PLACES[:1], len(grid), axis=0), grid))
    assert abs(trapezoid(density, grid) - 1) < 0.01


def test_densities_are_zero_beyond_a_bound(models):
    density = models[0].log_density(PLACES, [-1.0, 0.0, 1.0])
    assert (density[:2] == -np.inf).all() and np.isfinite(density[2])


def test_units_of_y_scale_answers_on_the_logarithm(rows, models):
    X, y = rows
    scaled = model_with("log").fit(X, 1e6 * y)
    for theirs, ours in zip(
        scaled.predict(PLACES, return_std=True),
        models[0].predict(PLACES, return_std=True),
    ):
        assert_allclose(theirs, 1e6 * ours, rtol=1e-8)


def test_a_transformer_does_what_the_named_scale_does(rows, models):
    X, y = rows
    own = model_with(LOG).fit(X, y)
    for these, those in zip(
        answers_of(own, PLACES, y[:3]), answers_of(models[0], PLACES, y[:3])
    ):
        assert_allclose(these, those, rtol=1e-6, atol=1e-6)
    same, plain = (model_with(t).fit(X, y) for t in (StandardScaler(), "identity"))
    expected = plain.predict_quantile(X, [0.1, 0.9])
    assert_allclose(same.predict_quantile(X, [0.1, 0.9]), expected, rtol=1e-6)
    assert_allclose(same.log_density(X, y), plain.log_density(X, y), atol=1e-5)
    # Quantiles of errors have a mean that is not quite zero.
    assert_allclose(same.predict(X), plain.predict(X), rtol=0.01)
    assert (own.log_density(PLACES, [-1.0, 0.0, -2.0]) == -np.inf).all()


def test_samples_and_the_function_are_in_units_of_y(models):
    model, logs = models
    for noise in (True, False):
        drawn = model.sample_y(PLACES, 4000, random_state=1, noise=noise)
        expected = np.exp(logs.sample_y(PLACES, 4000, random_state=1, noise=noise))
        assert_allclose(drawn, expected, rtol=1e-10)
    mean, std = model.predict(PLACES, return_std=True, noise=False)
    assert_allclose(mean, drawn.mean(axis=1), rtol=0.05)
    assert_allclose(std, drawn.std(axis=1), rtol=0.1)


def test_covariances_have_the_variances_of_y_and_the_correlations_of_the_scale(models):
    model, logs = models
    mean, cov = model.predict(PLACES, return_cov=True)
    expected, std = model.predict(PLACES, return_std=True)
    assert_allclose(mean, expected, rtol=1e-12)
    assert_allclose(np.sqrt(np.diag(cov)), std, rtol=1e-10)
    of_logs = logs.predict(PLACES, return_cov=True)[1]
    deviations = np.sqrt(np.diag(of_logs))
    correlations = of_logs / np.outer(deviations, deviations)
    assert_allclose(cov / np.outer(std, std), correlations, rtol=1e-10)


def test_slopes_are_those_of_the_mean_where_its_variance_hardly_changes():
    X = np.linspace(0, 6, 120)[:, None]
    model = model_with("log", GP("rbf", 1.0, 1e-4), subdomain_size=120)
    model.fit(X, np.exp(np.sin(X[:, 0])))
    x, step = np.array([[1.0], [2.5], [4.0]]), 1e-4
    rise = model.predict(x + step) - model.predict(x - step)
    assert_allclose(model.gradient(x)[:, 0], rise / (2 * step), rtol=1e-3)


def test_a_machine_without_a_variance_answers_with_what_its_mean_leads_to(rows):
    X, y = rows
    model = model_with("log", AnyRegressor()).fit(X, y)
    logs = model_with("identity", AnyRegressor()).fit(X, np.log(y))
    assert_allclose(model.predict(PLACES), np.exp(logs.predict(PLACES)), rtol=1e-10)


def test_counts_and_shares_stay_within_their_bounds(rows):
    X, y = rows
    counts = np.random.default_rng(1).poisson(y).astype(float)
    model = model_with("yeo-johnson").fit(X, counts)
    assert model.predict_interval(X, 0.99)[0].min() == 0
    assert model.predict(X).min() > 0
    percents = model_with(("logit", 0, 100)).fit(X, 100 * y / (1 + y))
    low, high = percents.predict_interval(4 * X, 0.99)
    assert low.min() >= 0 and high.max() <= 100


# -- auto ------------------------------------------------------------------------------


def test_auto_chooses_for_each_output_on_its_own(rows):
    X, y = rows
    rng = np.random.default_rng(2)
    f = np.sin(2 * X[:, 0])
    Y = np.column_stack([f + 0.3 * rng.normal(size=len(X)), y, np.ones(len(X))])
    model = model_with("auto", FREE).fit(X, Y)
    assert model.target_.names == ("identity", "log", "identity")
    assert model_with("auto", FIXED).fit(X, Y).target_.names == ()
    low, _ = model.predict_interval(X)
    assert low[:, 0].min() < 0 < low[:, 1].min()
    data = TrainingData(X, Y, None, None)
    assert fit_target("log", data._replace(Y=Y[:, 1:]), None).names == ("log", "log")


@pytest.mark.parametrize(
    ("low", "factor", "names"),
    [
        (1.0, 1.0, ()),  # means are no better
        (1.0, 0.5, ("log",)),
        (-1.0, 1.0, ("log",)),  # intervals cross zero
        (-1.0, 1.5, ()),  # but means are worse
    ],
)
def test_a_scale_is_for_better_means_or_for_bounds(monkeypatch, low, factor, names):
    density, squares, high, low = np.full((4, 100, 1), [[[1]], [[1]], [[9]], [[low]]])
    first = targets.HeldOut(density, squares, low, high, None)
    other = targets.HeldOut(density + 1.0, factor * squares, abs(low), high, None)
    results = iter([first, other, other])
    monkeypatch.setattr(targets, "held_out", lambda *_: next(results))
    y = 1.0 + np.random.default_rng(0).lognormal(size=100)
    data = TrainingData(y[:, None], y[:, None], None, None)
    assert choose(data, None, None).names == names


def test_intervals_of_positive_outputs_end_at_zero_and_nothing_else_changes(tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(-2, 2, (240, 2))
    y = (1 + np.sin(2 * X[:, 0])) ** 2 + 0.3 * rng.random(len(X))
    plain = model_with("identity", FREE).fit(X, y)
    model = model_with("auto", FREE).fit(X, y)
    queries = rng.uniform(-2, 2, (200, 2))
    expected = [*plain.predict(queries, return_std=True), plain.log_density(X, y)]
    observed = [*model.predict(queries, return_std=True), model.log_density(X, y)]
    assert model.target_.names == ()
    assert_array_equal(np.concatenate(observed), np.concatenate(expected))
    ends = np.maximum(plain.predict_interval(queries, 0.99), 0.0)
    assert ends[0].min() == 0
    assert_array_equal(model.predict_interval(queries, 0.99), ends)
    model.save(tmp_path / "model.ocm")
    stored = overcover.load(tmp_path / "model.ocm")
    assert_array_equal(stored.predict_interval(queries, 0.99), ends)
    # Until a negative output is learned.
    assert (
        stored.partial_fit(X[:1], [0.1]).predict_interval(queries, 0.99)[0].min() == 0
    )
    assert (
        stored.partial_fit(X[:1], [-0.1]).predict_interval(queries, 0.99)[0].min() < 0
    )


def test_outputs_without_a_long_tail_cost_nothing():
    # They are not even held out: there is no judge.
    Y = np.random.default_rng(0).normal(size=(300, 2))
    assert choose(TrainingData(Y, Y, None, None), None, None).names == ()


def test_the_choice_looks_at_a_bounded_number_of_rows():
    seen = []

    class Counting(GP):
        def tune(self, X, *others):
            seen.append(len(X))
            super().tune(X[:60], others[0][:60], None, 60, *others[3:5])

    X = np.linspace(0, 1, 5000)[:, None]
    choose(TrainingData(X, np.exp(X), None, None), None, Counting("rbf", 0.3, 0.1))
    assert seen and max(seen) <= 1000


# -- everywhere else -------------------------------------------------------------------


def test_loaded_is_saved_bit_by_bit(rows, tmp_path):
    X, y = rows
    Y = np.column_stack([y, np.log(y)])
    model = model_with("auto", FREE).fit(X, Y)
    model.save(tmp_path / "m")
    loaded = overcover.load(tmp_path / "m")
    assert isinstance(loaded.target_, Scales) and loaded.target == "auto"
    for these, those in zip(
        answers_of(loaded, PLACES, Y[:3]), answers_of(model, PLACES, Y[:3])
    ):
        assert_array_equal(these, those)
    into = store.fit_into(clone(model), X, Y, tmp_path / "into")
    assert_array_equal(into.predict(PLACES), model.predict(PLACES))
    assert store.inspect(tmp_path / "m")["target"] == list(model.target_.names)
    # A fit with no target leaves none behind.
    again = model.set_params(target="identity").fit(X, Y)
    assert again.target_.names == ()


def test_a_foreign_transformer_is_not_stored(rows, tmp_path):
    with pytest.raises(store.StoreError, match="named scales"):
        model_with(LOG).fit(*rows).save(tmp_path / "m")
    with pytest.raises(store.StoreError, match="named scales"):
        store.fit_into(model_with(LOG), *rows, tmp_path / "into")


def test_scales_that_make_no_sense_are_refused():
    for scale, numbers in (("logit", [1, 0]), ("yeo-johnson", [0, 1, 3, 0])):
        with pytest.raises(ValueError, match=scale):
            joined([(scale, numbers)]).check()


def test_what_people_see_is_in_units_of_y(rows, models):
    (X, y), (model, _) = rows, models
    mean, std = model.predict(X, return_std=True)
    low, high = model.predict_interval(X)
    test = assess(model, X, y)
    assert_allclose(test.mean[:, 0], mean)
    assert_allclose(test.std[:, 0], std)
    assert_array_equal(test.held()[:, 0], (low <= y) & (y <= high))
    page = model.explain(X[0])
    assert_allclose([page.mean[0], page.std[0]], [mean[0], std[0]])
    assert_allclose(page.neighbor_targets[0, 0], y[page.neighbors[0]], rtol=1e-6)
    assert (page.means > 0).all()
    display = CalibrationDisplay.from_estimator(model, X, y, levels=[0.95])
    assert_allclose(display.observed[0], np.mean((low <= y) & (y <= high)))
    from overcover.report import recalled_rows

    assert_allclose(recalled_rows(model)[1][:, 0], y, rtol=1e-6)


def test_the_best_scale_can_be_searched_for(rows):
    search = GridSearchCV(model_with("log"), {"target": ["identity", "log"]}, cv=2)
    assert search.fit(*rows).best_estimator_.target in ("identity", "log")


def test_effects_of_words_are_learned_on_the_scale_of_the_model(rows):
    pd = pytest.importorskip("pandas")
    X, y = rows
    table = pd.DataFrame({"a": X[:, 0], "b": np.where(X[:, 1] > 0, "up", "down")})
    model = OverlappingCoverRegressor(target="log", random_state=0).fit(table, y)
    logs = OverlappingCoverRegressor(random_state=0).fit(table, np.log(y))
    asked = pd.DataFrame({"a": [0.5, 0.5], "b": ["up", "never seen"]})
    expected = np.exp(logs.predict_quantile(asked, 0.9))
    assert_allclose(model.predict_quantile(asked, 0.9), expected, rtol=1e-10)


def test_advice_is_to_try_a_scale_where_errors_are_skewed(rows, models):
    X, y = rows

    def says(model):
        return any("target='log'" in finding.text for finding in advise(model))

    assert says(model_with("identity").fit(X, y**2))
    assert not any(map(says, models))


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target", ["logs", None, ("log", 0, 1), ("logit", 1, 0), ("logit", 0, np.inf), 3]
)
def test_unknown_targets_are_refused(rows, target):
    with pytest.raises(ValueError, match=r"target=.*Choose one of 'identity'"):
        model_with(target).fit(*rows)


def test_outputs_that_a_scale_cannot_take_are_named(rows):
    X, y = rows
    y = y.copy()
    y[17] = 0.0
    with pytest.raises(ValueError, match=r"y = 0 in row 17 .*yeo-johnson"):
        model_with("log").fit(X, y)
    with pytest.raises(ValueError, match=r"row 17, column 1 "):
        model_with("log").fit(X, np.column_stack([y + 1, y]))
    with pytest.raises(ValueError, match=r"between 0 and 1, both excluded"):
        model_with("logit").fit(X, y)
    # A row that counts for nothing may be anything.
    weight = np.ones(len(y))
    weight[17] = 0.0
    assert model_with("log").fit(X, y, sample_weight=weight).predict(PLACES).min() > 0


@pytest.mark.parametrize(
    "function",
    [(np.negative, np.negative), (np.abs, np.abs), (np.exp, np.exp)],
)
def test_transformers_that_are_not_increasing_or_do_not_come_back_are_refused(
    rows, function
):
    X, y = rows
    wrong = FunctionTransformer(*function, check_inverse=False)
    with pytest.raises(ValueError, match=r"increasing|come back"):
        model_with(wrong).fit(X, np.log(y))


def test_fewer_inputs_keep_the_distances_that_matter():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 20)) @ rng.normal(size=(20, targets.MOST_INPUTS + 1))
    Z = targets.fewer_inputs(X)
    assert Z.shape == (200, targets.N_COMPONENTS)
    assert_allclose(pdist(Z), pdist(X), rtol=1e-6)
