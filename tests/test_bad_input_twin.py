"""Bad input to Twin GPs: finite answers, or an error that says what to do next."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from overcover import (
    GP,
    AnyRegressor,
    ImportanceWeightedTwinGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    SharmaMittalTwinGP,
    TwinGP,
)
from test_bad_input import check_finite

FIXED = (1.2, 0.8, 0.02, 0.01)


def small_cover(machine):
    return OverlappingCoverRegressor(
        machine, subdomain_size=30, overlap=0.7, random_state=0
    )


MODELS = {
    "full": TwinGP(*FIXED),
    "exact, two starts": TwinGP(*FIXED, rank="full", n_starts=2),
    "printed form": TwinGP(*FIXED, self_noise=False),
    "transductive": ImportanceWeightedTwinGP(*FIXED, transductive=True),
    "mixture": SharmaMittalTwinGP(*FIXED),
    "cover": small_cover(TwinGP(*FIXED)),
    "neighbourhood": NeighborhoodRegressor(TwinGP(*FIXED), n_neighbors=20),
}


@pytest.fixture
def surface(surface):
    """60 rows of it will do here."""
    X, y = surface
    return X[:60], y[:60]


@pytest.fixture
def queries(queries):
    return queries[:15]


@pytest.fixture(params=MODELS.values(), ids=MODELS.keys())
def model(request):
    return clone(request.param)


def machine_of(model):
    return getattr(model, "machine", model)


def with_output_scale(model, scale):
    """The same model for outputs in other units."""
    model = clone(model)
    machine_of(model).set_params(output_length_scale=scale)
    return model


# -- few rows, equal rows, equal values -----------------------------------------------


@pytest.mark.parametrize("n_samples", [1, 2, 3])
def test_a_handful_of_rows_gives_finite_answers(model, n_samples, surface, queries):
    X, y = surface
    mean = check_finite(model, X[:n_samples], y[:n_samples], queries)
    if n_samples == 1:
        assert_allclose(mean, y[0], rtol=1e-12)


@pytest.mark.parametrize("n_samples", [1, 2, 3, 4])
def test_a_handful_of_rows_can_be_tuned_on(n_samples, surface, queries):
    X, y = surface
    check_finite(TwinGP(random_state=0), X[:n_samples], y[:n_samples], queries)


@pytest.mark.parametrize("value", [0.1, -1e9])
def test_constant_outputs_are_predicted_exactly(model, value, surface):
    X, _ = surface
    mean = check_finite(model, X, np.full(len(X), value))
    assert_allclose(mean, value, rtol=1e-12)


@pytest.mark.parametrize("value", [3.0, -1e9])
def test_a_constant_output_beside_a_real_one_changes_nothing(
    model, value, surface, queries
):
    X, y = surface
    alone = check_finite(model, X, y, queries)
    both = check_finite(model, X, np.column_stack([y, np.full(len(y), value)]), queries)
    assert_allclose(both[:, 0], alone, rtol=1e-6, atol=1e-6)
    assert_allclose(both[:, 1], value, rtol=1e-12)


def test_constant_inputs_give_the_mean(model, surface):
    """Any output fits an input that says nothing; none is outside the data."""
    _, y = surface
    mean = check_finite(model, np.full((len(y), 2), 7.0), y)
    assert_allclose(mean, mean[0], atol=1e-5)
    assert y.min() <= mean[0] <= y.max()


def test_duplicate_rows_give_finite_answers(model, surface):
    X, y = surface
    check_finite(model, np.repeat(X[:12], 5, axis=0), np.repeat(y[:12], 5))
    # The same input with different outputs is noise.
    check_finite(model, np.repeat(X[:12], 5, axis=0), y)
    # And the same output for different inputs no news.
    check_finite(model, X, np.repeat(y[:12], 5))


def test_almost_no_noise_is_survived(surface, queries):
    X, y = surface
    X, y = np.repeat(X[:20], 3, axis=0), np.repeat(y[:20], 3)
    for rank in ("full", "auto"):
        machine = TwinGP(1.2, 0.8, 1e-14, 1e-14, rank=rank)
        check_finite(machine, X, y, queries)


# -- scales and types -----------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_outputs_and_their_length_scale_scale_together(model, scale, surface, queries):
    X, y = surface
    mean, std = model.fit(X, y).predict(queries, return_std=True)
    other = with_output_scale(model, scale * FIXED[1]).fit(X, scale * y)
    scaled_mean, scaled_std = other.predict(queries, return_std=True)
    assert_allclose(scaled_mean / scale, mean, rtol=1e-6, atol=1e-6)
    # The printed form has flat places, where rounding has a say.
    assert_allclose(scaled_std / scale, std, rtol=1e-5)


@pytest.mark.parametrize("shift", [1e3, -1e6])
def test_outputs_far_from_the_origin_answer_as_near_it(model, shift, surface, queries):
    X, y = surface
    expected = check_finite(model, X, y, queries)
    shifted = check_finite(model, X, y + shift, queries)
    assert_allclose(shifted - shift, expected, atol=1e-6 + 1e-9 * abs(shift))


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_outputs_of_a_scale_far_from_the_length_scale_give_finite_answers(
    model, scale, surface, queries
):
    X, y = surface
    mean = check_finite(model, X, scale * y, queries)
    # A kernel too wide to tell outputs apart may say anything within its width.
    assert np.abs(mean).max() <= 3 * max(np.abs(scale * y).max(), FIXED[1])


@pytest.mark.parametrize("scale", [1e-9, 1e9])
def test_inputs_of_a_scale_far_from_the_length_scale_give_finite_answers(
    model, scale, surface, queries
):
    X, y = surface
    check_finite(model, scale * X, y, scale * queries)


def test_inputs_and_their_length_scale_scale_together(surface, queries):
    X, y = surface
    factors = np.array([1e-6, 1e6])
    expected = TwinGP(*FIXED).fit(X, y).predict(queries, return_std=True)
    scaled = TwinGP(FIXED[0] * factors, *FIXED[1:]).fit(X * factors, y)
    for this, that in zip(scaled.predict(queries * factors, return_std=True), expected):
        assert_allclose(this, that, rtol=1e-6, atol=1e-6)


def test_queries_far_from_the_data_are_given_the_mean(model, surface):
    X, y = surface
    far = np.array([[1e4, -1e4], [1e9, -1e9], [1e15, 0.0]])
    mean = check_finite(model, X, y, far)
    if not hasattr(model, "machine"):
        assert_allclose(mean, y.mean())
    assert (np.abs(mean) < np.abs(y).max()).all()


def test_single_precision_answers_nearly_the_same(model, surface, queries):
    X, y = surface
    single = check_finite(model, np.float32(X), np.float32(y), np.float32(queries))
    assert single.dtype == np.float64
    rounded = np.float64(np.float32(X)), np.float64(np.float32(y))
    exact = check_finite(model, *rounded, np.float64(np.float32(queries)))
    assert_allclose(single, exact, rtol=1e-9, atol=1e-9)


def test_the_data_are_left_alone(model, surface):
    X, y = surface
    X_before, y_before = X.copy(), y.copy()
    check_finite(model, X, y)
    assert_array_equal(X, X_before)
    assert_array_equal(y, y_before)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_tiny_and_huge_weights_give_finite_answers(model, scale, surface):
    X, y = surface
    weights = np.full(len(X), scale)
    weights[::7] = 1.0
    model.fit(X, y, sample_weight=weights)
    assert np.isfinite(model.predict(X, return_std=True)).all()


# -- options --------------------------------------------------------------------------

WRONG_OPTIONS = [
    ({"input_length_scale": 0}, r"input_length_scale=0 must be.*2 columns"),
    ({"input_length_scale": [1.0] * 3}, r"input_length_scale=.* each of the 2 columns"),
    ({"input_length_scale": np.nan}, r"input_length_scale=nan must be 'auto', a pos"),
    ({"input_length_scale": "long"}, r"input_length_scale='long' must be 'auto'"),
    ({"output_length_scale": -1.0}, r"output_length_scale=-1.0 must be.*1 columns"),
    ({"output_length_scale": [1, 2]}, r"output_length_scale=\[1, 2\].*the 1 columns"),
    ({"output_length_scale": None}, r"output_length_scale=None must be 'auto'"),
    ({"input_noise": 0.0}, r"input_noise=0.0 must be 'auto' or a positive number"),
    ({"input_noise": "loud"}, r"input_noise='loud' must be 'auto' or a positive"),
    ({"output_noise": -0.1}, r"output_noise=-0.1 must be 'auto' or a positive number"),
    ({"output_noise": np.nan}, r"output_noise=nan must be 'auto' or a positive"),
    ({"output_noise": [0.1]}, r"output_noise=\[0.1\] must be 'auto' or a positive"),
    ({"n_starts": 0}, r"n_starts=0 must be 1 .* or 2"),
    ({"n_starts": 3}, r"n_starts=3 must be 1 .* or 2"),
    ({"n_starts": "many"}, r"n_starts='many' must be 1"),
    ({"rank": 0}, r"rank=0 must be 'auto', 'full' or a positive whole number"),
    ({"rank": 2.5}, r"rank=2.5 must be 'auto', 'full' or a positive whole number"),
    ({"rank": "solve"}, r"rank='solve' must be 'auto', 'full'"),
    ({"metric": "mm"}, r"metric='mm' is not known. Choose one of 'rmse', 'joint'"),
    ({"metric": "joint"}, r"needs outputs in threes.*there are 1"),
    ({"keep_factors": "maybe"}, r"keep_factors='maybe' must be 'auto', True or False"),
]
WRONG_RELATIVES = [
    (ImportanceWeightedTwinGP, {"alpha": -0.1}, r"alpha=-0.1 must be between 0 and 1"),
    (ImportanceWeightedTwinGP, {"alpha": 1.5}, r"alpha=1.5 must be between 0 and 1"),
    (ImportanceWeightedTwinGP, {"alpha": np.nan}, r"alpha=nan must be between 0 and 1"),
    (SharmaMittalTwinGP, {"alpha": 0.0}, r"alpha=0.0 must be above 0 and below 1"),
    (SharmaMittalTwinGP, {"alpha": 1.0}, r"alpha=1.0 must be above 0 and below 1"),
    (SharmaMittalTwinGP, {"alpha": np.nan}, r"alpha=nan must be above 0 and below 1"),
]


def check_refused(machine, message, X, y):
    """Alone and in a cover, and nothing is half fitted."""
    for model in (machine, small_cover(machine)):
        with pytest.raises(ValueError, match=message):
            model.fit(X, y)
        with pytest.raises(NotFittedError):
            model.predict(X)


@pytest.mark.parametrize(("options", "message"), WRONG_OPTIONS, ids=str)
def test_wrong_options_are_refused_with_what_is_allowed(options, message, surface):
    check_refused(TwinGP(*FIXED).set_params(**options), message, *surface)


@pytest.mark.parametrize(("kind", "options", "message"), WRONG_RELATIVES, ids=str)
def test_wrong_options_of_relatives_are_refused(kind, options, message, surface):
    check_refused(kind(*FIXED, **options), message, *surface)


def test_options_of_the_family_are_those_of_the_twin_gp(surface):
    for kind in (ImportanceWeightedTwinGP, SharmaMittalTwinGP):
        check_refused(kind(1.0, 1.0, -1.0, 1.0), "input_noise=-1.0 must be", *surface)


@pytest.mark.parametrize("n_outputs", [1, 2, 4])
def test_joints_come_in_threes(n_outputs, surface):
    X, _ = surface
    machine = TwinGP(*FIXED, metric="joint")
    with pytest.raises(ValueError, match=rf"in threes.*there are {n_outputs}"):
        machine.fit(X, np.zeros((len(X), n_outputs)))
    machine.fit(X, np.column_stack([X, X[:, 0]]))


# -- targets --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "machine",
    [GP(), TwinGP(*FIXED), SharmaMittalTwinGP(*FIXED), AnyRegressor()],
    ids=str,
)
def test_targets_are_refused_by_machines_that_do_not_weigh(machine, surface):
    X, y = surface
    for model in (small_cover(machine), NeighborhoodRegressor(machine)):
        with pytest.raises(ValueError, match=r"does not weigh rows by X_target.*iwtgp"):
            model.fit(X, y, X_target=X)


BAD_TARGETS = [
    (np.zeros((5, 3)), r"X_target has 3 columns, but X_train has 2"),
    (np.zeros((0, 2)), r"X_target has no rows"),
    (np.full((5, 2), np.nan), r"Input X_target contains NaN"),
    (np.zeros(5), r"Expected 2D array"),
]


@pytest.mark.parametrize(("X_target", "message"), BAD_TARGETS)
def test_targets_that_make_no_sense_are_refused(X_target, message, surface):
    machine = ImportanceWeightedTwinGP(*FIXED)
    for model in (machine, small_cover(machine), NeighborhoodRegressor(machine)):
        with pytest.raises(ValueError, match=message):
            model.fit(*surface, X_target=X_target)
        with pytest.raises(NotFittedError):
            model.predict(surface[0])


@pytest.mark.parametrize("n_targets", [1, 2])
def test_a_handful_of_targets_is_enough(n_targets, surface, queries):
    model = ImportanceWeightedTwinGP(*FIXED, random_state=0)
    model.fit(*surface, X_target=queries[:n_targets])
    assert np.isfinite(model.predict(queries, return_std=True)).all()
