"""The GP machine is the textbook Gaussian process, with an honest variance."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    Matern,
    WhiteKernel,
)

import reference
from overcover import GP, OverlappingCoverRegressor
from overcover._weights import in_typical_units
from overcover.consult import consult, panel_of
from overcover.kernels import NAMES
from overcover.machines import base, calibration

LENGTHS, NOISE = np.array([0.7, 1.9]), 0.03
TOLERANCE = 1e-8
EXACT = {"factor_dtype": "float64"}
each_kernel = pytest.mark.parametrize("kernel", NAMES)

KERNEL_OBJECTS = {
    "rbf": RBF(LENGTHS, "fixed"),
    "matern12": Matern(LENGTHS, "fixed", nu=0.5),
    "matern32": Matern(LENGTHS, "fixed", nu=1.5),
    "matern52": Matern(LENGTHS, "fixed", nu=2.5),
}


@pytest.fixture
def few(two_outputs):
    """30 rows with two outputs of different scales."""
    X, Y = two_outputs
    return X[:30], Y[:30]


def posterior_of(model, X):
    return model.answer(model.state_, X, variance=True).posterior


# -- hyperparameters as given ---------------------------------------------------------


def test_hyperparameters_given_are_those_used(few):
    model = GP(length_scale=LENGTHS, noise=NOISE).fit(*few)
    assert_allclose(model.length_scale_, LENGTHS, rtol=1e-12)
    assert_allclose(model.noise_, NOISE, rtol=1e-12)


def test_one_length_scale_serves_every_column(few, queries):
    one = GP(length_scale=1.3, noise=NOISE).fit(*few)
    each = GP(length_scale=[1.3, 1.3], noise=NOISE).fit(*few)
    assert_array_equal(one.length_scale_, each.length_scale_)
    assert_array_equal(one.predict(queries), each.predict(queries))


# -- mean and variance ----------------------------------------------------------------


@each_kernel
def test_mean_and_doubt_match_the_textbook(kernel, few, queries):
    X, Y = few
    model = GP(kernel, LENGTHS, NOISE).fit(X, Y)
    mean, variance = (
        reference.DenseGP(kernel, LENGTHS, NOISE).fit(X, Y).predict(queries)
    )
    assert_allclose(model.predict(queries), mean, rtol=TOLERANCE, atol=TOLERANCE)
    # The square root in Matern-1/2 turns the rounding of distances into 1e-8.
    assert_allclose(posterior_of(model, queries), variance, rtol=1e-6)


@each_kernel
def test_mean_and_doubt_match_scikit_learn(kernel, surface, queries):
    X, y = surface
    model = GP(kernel, LENGTHS, NOISE).fit(X, y)
    theirs = GaussianProcessRegressor(
        KERNEL_OBJECTS[kernel], alpha=NOISE, optimizer=None
    ).fit(X, y - y.mean())
    mean, std = theirs.predict(queries, return_std=True)
    assert_allclose(model.predict(queries), mean + y.mean(), rtol=1e-6, atol=1e-7)
    assert_allclose(posterior_of(model, queries), std**2 + NOISE, rtol=1e-6)


@each_kernel
def test_variance_is_doubt_times_local_scale_times_factor(kernel, few, queries):
    X, Y = few
    model = GP(kernel, LENGTHS, NOISE).fit(X, Y)
    errors, variances = reference.leave_one_out(kernel, LENGTHS, NOISE, X, Y)
    ratios = errors**2 / variances[:, None]
    powers = 2.0 ** model.state_.squarings[0, model.calibration_.locality]

    def scale_at(x, rows):
        near = reference.kernel_matrix(kernel, X[rows], x[None], LENGTHS)
        return np.array(
            [
                # A power below one stands for equal weights.
                reference.local_scale(
                    near**power if power >= 1 else np.ones_like(near),
                    ratios[rows][:, [j]],
                    ratios[rows].mean(axis=0)[[j]],
                    calibration.PRIOR_ROWS,
                )[0, 0]
                for j, power in enumerate(powers)
            ]
        )

    everyone = np.arange(len(X))
    # A row that is left out has no part in its own scale.
    left = [ratios[i] / scale_at(X[i], everyone != i) for i in everyone]
    posterior = reference.DenseGP(kernel, LENGTHS, NOISE).fit(X, Y).predict(queries)[1]
    expected = [np.mean(left, axis=0) * scale_at(x, everyone) for x in queries]
    _, std = model.predict(queries, return_std=True)
    near = posterior <= np.quantile(variances, calibration.REACH)
    assert 0 < near.sum() < len(near)
    assert_allclose(std[near] ** 2, (expected * posterior[:, None])[near], rtol=1e-5)


@each_kernel
def test_far_from_the_rows_the_variance_returns_to_the_prior(kernel):
    """However small the errors are between the rows, which are free of noise."""
    X = np.linspace(-3, 3, 200)[:, None]
    y = np.sin(X[:, 0])
    model = GP(kernel, 1.0, 1e-6).fit(X, y)
    _, near = model.predict(X[:-1] + 0.5 * np.diff(X, axis=0), return_std=True)
    away = np.array([3.0, 3.3, 4.0, 5.0, 6.0, 9.0, 20.0, 1e6])
    mean, std = model.predict(away[:, None], return_std=True)
    assert near.max() < 0.05 < std[-1]
    assert (np.diff(std) > -1e-12).all()
    assert std[-1] >= np.std(y)
    assert (np.abs(mean - np.sin(away)) < 3 * std)[4:].all()


def test_in_a_gap_the_variance_is_that_of_a_gap():
    X = np.linspace(-3, 3, 300)[:, None]
    f = np.sin(3 * X[:, 0])
    gap = np.abs(X[:, 0]) < 0.8
    model = GP("matern32", 0.7, 1e-6).fit(X[~gap], f[~gap])
    mean, std = model.predict(X[gap], return_std=True)
    assert np.sqrt(np.mean((mean - f[gap]) ** 2 / std**2)) < 2.0


def test_far_from_a_local_mean_the_variance_is_that_of_all_outputs():
    """A subdomain knows little of outputs elsewhere, so it may be as wrong as that."""
    X = np.linspace(0, 10, 600)[:, None]
    y = 5.0 * X[:, 0]
    model = OverlappingCoverRegressor(
        GP(length_scale=0.2, noise=1e-3), subdomain_size=60, random_state=0
    ).fit(X, y)
    mean, std = model.predict([[-100.0]], return_std=True)
    assert std[0] ** 2 >= 0.9 * np.mean((y - mean[0]) ** 2)


def test_without_noise_the_mean_interpolates(few):
    X, Y = few
    mean = GP("matern32", LENGTHS, noise=0).fit(X, Y).predict(X)
    assert_allclose(mean, Y, rtol=1e-6, atol=1e-6)


def test_far_from_the_data_the_answer_is_the_prior(few):
    X, Y = few
    model = GP(length_scale=LENGTHS, noise=NOISE).fit(X, Y)
    far = np.array([[1e6, -1e6]])
    assert_allclose(model.predict(far)[0], Y.mean(axis=0))
    assert_allclose(posterior_of(model, far), 1 + NOISE)


def test_doubt_never_falls_below_the_noise_nor_rises_above_the_prior(few, queries):
    X, Y = few
    posterior = posterior_of(
        GP(length_scale=LENGTHS, noise=NOISE).fit(X, Y), np.vstack([X, queries])
    )
    assert (posterior >= NOISE).all()
    assert (posterior <= 1 + NOISE + TOLERANCE).all()


# -- leave one out --------------------------------------------------------------------


@each_kernel
def test_leave_one_out_residuals_equal_refitting_without_the_row(kernel, few):
    X, Y = few
    state = GP(kernel, LENGTHS, NOISE).fit(X, Y).state_
    errors, variances = reference.leave_one_out(kernel, LENGTHS, NOISE, X, Y)
    assert_allclose(state.residuals_sq, errors**2 / variances[:, None], rtol=1e-5)


def test_only_owned_rows_are_calibrated_on(few):
    X, Y = few
    model = GP(length_scale=LENGTHS, noise=NOISE).fit(X, Y)
    all_owned = model.fit_state(X, Y)
    some_owned = model.fit_state(X, Y, n_owned=7)
    assert all_owned.ratios.shape[1:] == (len(X), 2)
    assert some_owned.ratios.shape[1:] == (7, 2)
    # Where all rows count alike, it is the owned part of the same.
    assert_allclose(some_owned.ratios[0], all_owned.ratios[0, :7])
    assert_array_equal(some_owned.alpha, all_owned.alpha)


# -- weights --------------------------------------------------------------------------


def test_a_weight_divides_the_noise_of_its_row(few, queries):
    X, Y = few
    weights = in_typical_units(np.linspace(0.2, 5.0, len(X)))
    model = GP(length_scale=LENGTHS, noise=NOISE).fit(X, Y, sample_weight=weights)
    dense = reference.DenseGP("matern32", LENGTHS, NOISE, weights).fit(X, Y)
    mean, variance = dense.predict(queries)
    assert_allclose(model.predict(queries), mean, rtol=TOLERANCE)
    assert_allclose(posterior_of(model, queries), variance, rtol=1e-6)


def test_an_integer_weight_is_that_many_equal_rows(few, queries):
    X, Y = few
    weights = np.arange(len(X)) % 4
    machine = GP(length_scale=LENGTHS, noise=NOISE)
    weighted = machine.fit(X, Y, sample_weight=weights)
    mean, posterior = weighted.predict(queries), posterior_of(weighted, queries)
    repeated = machine.fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights, axis=0))
    assert_allclose(repeated.predict(queries), mean, rtol=1e-7)
    assert_allclose(posterior_of(repeated, queries), posterior, rtol=1e-6)


def test_equal_weights_of_one_change_nothing(few, queries):
    X, Y = few
    machine = GP(length_scale=LENGTHS, noise=NOISE)
    expected = machine.fit(X, Y).predict(queries, return_std=True)
    weighted = machine.fit(X, Y, sample_weight=np.ones(len(X)))
    for this, that in zip(weighted.predict(queries, return_std=True), expected):
        assert_allclose(this, that, rtol=1e-12)


# -- variants -------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"length_scale": LENGTHS, "noise": NOISE}])
def test_per_output_equals_separate_fits(options, few, queries):
    X, Y = few
    together = GP(per_output=True, **options).fit(X, Y)
    mean, std = together.predict(queries, return_std=True)
    for j in range(2):
        alone = GP(**options).fit(X, Y[:, j])
        assert_allclose(together.length_scale_[j], alone.length_scale_)
        assert_allclose(together.noise_[j], alone.noise_)
        alone_mean, alone_std = alone.predict(queries, return_std=True)
        assert_allclose(mean[:, j], alone_mean, rtol=TOLERANCE)
        assert_allclose(std[:, j], alone_std, rtol=TOLERANCE)


def test_outputs_route_together_and_those_with_little_noise_count_more(few):
    X, Y = few
    model = GP(per_output=True).fit(X, Y)
    shares = 1.0 / (model.noise_ + 1e-3)
    squares = np.average(model.length_scale_**-2.0, axis=0, weights=shares)
    assert_allclose(model.length_scales(X), squares**-0.5)


@pytest.mark.parametrize("per_output", [False, True])
def test_factors_kept_or_made_again_give_the_same_answers(
    per_output, two_outputs, queries
):
    machine = GP(length_scale=LENGTHS, noise=NOISE, per_output=per_output)
    answers = []
    for keep in (True, False):
        model = OverlappingCoverRegressor(
            machine.set_params(keep_factors=keep), subdomain_size=70, random_state=0
        ).fit(*two_outputs)
        assert all(bool(state.factor.size) == keep for state in model.states_)
        answers.append(model.predict(queries, return_std=True))
    for this, that in zip(*answers):
        assert_allclose(this, that, rtol=TOLERANCE)


def overlapping(machine, X, Y, **options):
    """A cover in which rows are in several subdomains."""
    options = {"subdomain_size": 70, "random_state": 0} | options
    return OverlappingCoverRegressor(machine, **options).fit(X, Y)


NOISY = ConstantKernel(9.0, "fixed") * RBF([0.3, 0.3], "fixed")
NOISY = NOISY + WhiteKernel(0.01, "fixed")


def doubts_in_both(machine, X, Y, weights, queries):
    """In float64 and in float32."""
    posteriors = []
    for dtype in ("float64", "float32"):
        machine.factor_dtype = dtype
        state = machine.fit_state(X, Y, weights, n_owned=20)
        assert state.factor.dtype == dtype
        machine.calibrate([state])
        posteriors.append(machine.posterior_variance(state, queries))
    return *posteriors, state.left_out[0, 0]


@pytest.mark.parametrize("least_weight", [1.0, 1e-2, 1e-6, 1e-8])
@pytest.mark.parametrize("kernel", ["matern32", "rbf", NOISY], ids=str)
def test_near_a_row_single_precision_keeps_its_digits(
    kernel, least_weight, two_outputs
):
    """Where one minus what is explained is a millionth of it, too."""
    X, Y = two_outputs
    machine = GP(kernel, length_scale=0.3, noise=1e-6)
    machine.tune(X, Y, None, 70, np.random.RandomState(0), None)
    asked = np.concatenate([X[:9], X[:9] + 1e-6, X[:9] + 1e-3, X[:9] + 0.1])
    for weights in (
        np.where(np.arange(70) % 2, 1.0, least_weight),
        np.full(70, least_weight),
    ):
        exact, single, least = doubts_in_both(machine, X[:70], Y[:70], weights, asked)
        assert exact.min() < least
        assert_allclose(single, exact, rtol=2e-3)


@pytest.mark.parametrize("kernel", ["matern32", "matern52", "rbf"])
@pytest.mark.parametrize("noise", [1e-2, 1e-3, 2e-4, 1e-5])
def test_on_a_grid_where_rounding_adds_up_it_is_noticed(kernel, noise):
    X = np.arange(1200.0)[:, None]
    y = np.sin(X[:, 0] / 150)
    queries, stds = np.arange(-20, 1220, 1.7)[:, None], []
    for dtype in ("auto", "float64"):
        machine = GP(kernel, length_scale=300.0, noise=noise, factor_dtype=dtype)
        model = overlapping(machine, X, y, subdomain_size=400, router="euclidean")
        stds.append(model.predict(queries, return_std=True)[1])
    # A posterior variance that is off by 1 % moves a variance beyond the reach of rows
    # left out by up to 4 %, where it grows as the fourth power.
    assert_allclose(stds[0], stds[1], rtol=0.03)


def test_factors_are_single_where_that_does_no_harm(two_outputs, queries):
    machine = GP(length_scale=LENGTHS, noise=NOISE)
    model = overlapping(machine, *two_outputs)
    assert {state.factor.dtype.name for state in model.states_} == {"float32"}
    exact = overlapping(GP(**machine.get_params() | EXACT), *two_outputs)
    assert {state.factor.dtype.name for state in exact.states_} == {"float64"}
    found, expected = (m.predict(queries, return_std=True)[1] for m in (model, exact))
    assert_allclose(found, expected, rtol=1e-4)
    assert (found != expected).any()


def test_factors_are_double_where_digits_are_needed(two_outputs):
    X, Y = two_outputs
    close = GP("rbf", length_scale=2.0, noise=1e-7)
    for model in (
        overlapping(close, X, Y),
        overlapping(GP(length_scale=1.0, noise=0.1), X, Y, overlap=0.0),
        overlapping(GP(length_scale=1.0, noise=0.1), X, Y, subdomain_size=len(X)),
    ):
        assert {state.factor.dtype.name for state in model.states_} == {"float64"}
    with pytest.raises(ValueError, match=r"factor_dtype='half'.*'float32'"):
        GP(factor_dtype="half").fit(X, Y)


def test_a_full_model_too_can_do_without_its_factor(few, queries):
    machine = GP(length_scale=LENGTHS, noise=NOISE, keep_factors=False)
    model = machine.fit(*few)
    assert model.state_.factor.size == 0
    assert np.isfinite(model.predict(queries, return_std=True)[1]).all()


def test_separate_hyperparameters_take_separate_factors():
    machine = GP()
    for n_groups in (1, 20):
        machine.theta_ = np.zeros((n_groups, 3))
        assert machine.keeps_factors(n_subdomains=100, size=800) == (n_groups == 1)


@each_kernel
def test_a_kernel_object_agrees_with_the_named_kernel(kernel, two_outputs, queries):
    X, Y = two_outputs
    named = GP(kernel, LENGTHS, NOISE).fit(X, Y)
    given = GP(KERNEL_OBJECTS[kernel], noise=NOISE).fit(X, Y)
    expected = named.predict(queries, return_std=True)
    for this, that in zip(given.predict(queries, return_std=True), expected):
        assert_allclose(this, that, rtol=1e-6, atol=1e-6 * np.abs(that).max())


def test_the_amplitude_of_a_kernel_object_is_scaled_away(surface, queries):
    """Noise is relative to the signal: only their ratio matters."""
    X, y = surface
    plain = GP(RBF(1.5, "fixed"), noise=NOISE).fit(X, y)
    kernel = ConstantKernel(50.0, "fixed") * RBF(1.5, "fixed")
    tall = GP(kernel, noise=50.0 * NOISE).fit(X, y)
    expected = plain.predict(queries, return_std=True)
    for this, that in zip(tall.predict(queries, return_std=True), expected):
        assert_allclose(this, that, rtol=1e-6)


def test_a_white_kernel_is_noise(surface, queries):
    X, y = surface
    plain = GP(RBF(1.5, "fixed"), noise=NOISE).fit(X, y)
    white = RBF(1.5, "fixed") + WhiteKernel(0.9 * NOISE, "fixed")
    white = GP(white, noise=0.1 * NOISE).fit(X, y)
    assert_allclose(white.predict(queries), plain.predict(queries), rtol=1e-6)
    assert_allclose(
        posterior_of(white, queries), posterior_of(plain, queries), rtol=1e-6
    )


def test_a_kernel_that_is_not_stationary_sees_the_origin(queries):
    X = np.random.default_rng(0).normal(5.0, 1.0, (80, 2))
    y = X @ [2.0, -1.0]
    model = GP(DotProduct(1.0, "fixed"), noise=1e-6).fit(X, y)
    assert_allclose(model.predict(queries), queries @ [2.0, -1.0], rtol=1e-3, atol=1e-3)


def test_a_kernel_object_is_tuned_within_its_bounds(surface):
    X, y = surface
    kernel = ConstantKernel(1.0, (0.5, 2.0)) * RBF([1.0, 1.0], (0.9, 1.1))
    model = GP(kernel).fit(X, y)
    assert model.kernel_.k2.length_scale == pytest.approx(1.1, rel=1e-3)
    assert 0.5 <= model.kernel_.k1.constant_value <= 2.0 + 1e-9
    assert kernel.k2.length_scale == [1.0, 1.0], "the given kernel is left alone"
    with pytest.raises(AttributeError, match="see kernel_"):
        _ = model.length_scale_


def test_per_subdomain_adapts_where_the_function_changes():
    """One half wiggles, the other is nearly flat; each deserves its own scale."""
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(0, 2, (400, 1)), axis=0)
    y = np.where(X[:, 0] < 1, np.sin(40 * X[:, 0]), np.sin(X[:, 0]))
    y = y + 0.01 * rng.normal(size=400)
    model = OverlappingCoverRegressor(
        GP(per_subdomain=True), subdomain_size=100, overlap=0.5, random_state=0
    ).fit(X, y)
    left, right = [], []
    for members, state in zip(model.cover_.members, model.states_):
        rows = X[members, 0]
        (left if rows.max() < 1 else right).append(np.exp(state.theta[0, 0]))
    assert max(left) < 0.5 * max(right)


class Told(GP):
    """Every subdomain is told its hyperparameters, as if it had learned them."""

    def _theta_for(self, X, Y, sample_weight):
        return self.told

    @property
    def theta_(self):
        return self.told


def test_a_model_written_with_another_amplitude_doubts_as_much(two_outputs, queries):
    """``c k`` with noise ``c nu`` is another name for ``k`` with noise ``nu``."""
    X, Y = two_outputs
    machine = Told(ConstantKernel(1.0) * RBF(1.5), per_subdomain=True)
    states = []
    for amplitude in (1.0, 0.01, 100.0):
        machine.told = np.log([[amplitude, 1.5, 0.02 * amplitude]])
        states.append(machine.fit_state(X, Y))
    machine.calibrate(states)
    expected, *others = (machine.answer(s, queries, variance=True) for s in states)
    for answer in others:
        for this, that in zip(answer, expected):
            assert_allclose(this, that, rtol=1e-6)


def test_subdomains_that_learn_compare_variances_in_common_units():
    """Noise differs a thousandfold, so a share of it means something else."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (400, 1))
    y = np.sin(X[:, 0]) + np.where(X[:, 0] > 0, 0.5, 5e-4) * rng.normal(size=400)
    model = OverlappingCoverRegressor(
        GP(length_scale=1.0, per_subdomain=True),
        subdomain_size=80,
        overlap=0.5,
        random_state=0,
    ).fit(X, y)
    answers = consult(panel_of(model), rng.uniform(-3, 3, (200, 1)), True).answers
    asked = np.isfinite(answers.posterior[..., 0])
    posterior = answers.posterior[asked][:, 0]
    variances = answers.variance[asked][:, 0]
    apart = np.ptp(np.log(variances / posterior))
    assert np.ptp(np.log(variances)) > np.log(1e4)
    assert apart < np.log(10.0), "local scales are all that is left"


# -- intervals ------------------------------------------------------------------------


def heteroscedastic(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.uniform(0, 10, (n, 1))
    deviation = 0.02 + 0.04 * X[:, 0]
    return X, np.sin(X[:, 0]) + deviation * rng.normal(size=n), deviation


@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.95])
def test_intervals_cover_what_they_promise_where_noise_varies(coverage):
    X, y, _ = heteroscedastic(1500, seed=0)
    Xq, yq, _ = heteroscedastic(3000, seed=1)
    model = OverlappingCoverRegressor(
        GP(length_scale=1.5, noise=0.05), subdomain_size=150, random_state=0
    ).fit(X, y)
    low, high = model.predict_interval(Xq, coverage)
    covered = (low <= yq) & (yq <= high)
    assert np.mean(covered) == pytest.approx(coverage, abs=0.04)
    # Not only on average: also where the noise is small, and where it is large.
    for half in (Xq[:, 0] < 5, Xq[:, 0] >= 5):
        assert np.mean(covered[half]) == pytest.approx(coverage, abs=0.08)


def test_the_std_follows_the_noise():
    X, y, _ = heteroscedastic(1500, seed=0)
    Xq = np.array([[1.0], [9.0]])
    model = GP(length_scale=1.5, noise=0.05).fit(X[:600], y[:600])
    _, std = model.predict(Xq, return_std=True)
    assert 2.0 < std[1] / std[0] < 8.0  # the truth is 6.3


def test_a_wrong_noise_is_corrected_by_the_factor(surface):
    """Whatever noise was assumed, leave-one-out residuals have ratio one on average."""
    X, y = surface
    for noise in (1e-4, 0.01, 1.0):
        model = GP(length_scale=1.5, noise=noise).fit(X, y)
        found = model.calibration_
        ratios = model.state_.ratios[found.locality[0], :, 0] / found.factor[0]
        assert_allclose(ratios.mean(), 1.0)


def test_wider_coverage_gives_wider_intervals(surface, queries):
    model = GP(length_scale=1.5, noise=NOISE).fit(*surface)
    widths = [
        np.ptp(model.predict_interval(queries, c), axis=0) for c in (0.5, 0.9, 0.99)
    ]
    assert (widths[0] < widths[1]).all() and (widths[1] < widths[2]).all()


# -- memory ---------------------------------------------------------------------------


def test_a_cover_fits_where_the_full_model_does_not(surface, monkeypatch):
    monkeypatch.setattr(base, "memory_of_computer", lambda: 10**6)
    model = OverlappingCoverRegressor(
        GP(length_scale=1.5, noise=NOISE), subdomain_size=50
    )
    assert np.isfinite(model.fit(*surface).predict(surface[0])).all()
