"""What Twin GPs minimise is the printed formula, and its gradient is its gradient."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import reference
import reference_twin
from overcover import SharmaMittalTwinGP, TwinGP
from overcover.machines.twin_objective import lifted_rows, similarities

NOISES = {"input_noise": 0.02, "output_noise": 0.005}
ALPHA = 0.3
MACHINES = {
    "twin": (TwinGP, {}),
    "printed form": (TwinGP, {"self_noise": False}),
    "mixture": (SharmaMittalTwinGP, {"alpha": ALPHA}),
    "mixture, printed form": (
        SharmaMittalTwinGP,
        {"alpha": 0.7, "self_noise": False},
    ),
}
each_machine = pytest.mark.parametrize("name", MACHINES)
each_rank = pytest.mark.parametrize("rank", ["full", "auto", 12])
weighted_or_not = pytest.mark.parametrize("is_weighted", [False, True])
NOBODY = np.empty(0, dtype=np.intp)


@pytest.fixture
def few(two_outputs):
    X, Y = two_outputs
    return X[:40], Y[:40] / [1.0, 50.0]


def make(name, few, is_weighted=False, rank="full", left=NOBODY):
    """A machine, its rows in kernel units, core and looks at rows left out."""
    X, Y = few
    kind, options = MACHINES[name]
    machine = kind(1.1, [0.9, 1.4], rank=rank, **NOISES, **options)
    machine.tune(X, Y, None, len(X), None, None)
    weights = np.linspace(0.3, 3.0, len(X)) if is_weighted else np.ones(len(X))
    rows = machine.make_search().rows(X, Y, weights)
    return machine, rows, *machine.make_search().make_core(rows, left)


def dense(name, rows):
    """The slow version on the same rows."""
    kind, options = MACHINES[name]
    if kind is TwinGP:
        return reference_twin.DenseTwin(
            rows.A, rows.Z, *NOISES.values(), weights=rows.weights, **options
        )
    return reference_twin.DenseMixture(
        rows.A, rows.Z, *NOISES.values(), weights=rows.weights, **options
    )


def printed_value(name, slow, z, a):
    """What the batched objective is, up to what does not depend on the output."""
    if MACHINES[name][0] is TwinGP:
        return slow.objective(z, a) - 1.0
    return slow.eta(a) / slow.alpha * slow.objective(z, a)


def without(rows, i):
    """The same rows in the same units but for one; nothing is centred again."""
    return rows._replace(
        A=np.delete(rows.A, i, axis=0),
        Z=np.delete(rows.Z, i, axis=0),
        weights=np.delete(rows.weights, i),
    )


def test_similarities_are_gaussian():
    rng = np.random.default_rng(0)
    points, Z = rng.normal(size=(7, 3)), rng.normal(size=(5, 3))
    expected = [reference_twin.gaussian(point, Z) for point in points]
    assert_allclose(similarities(points, lifted_rows(Z)), expected, rtol=1e-12)
    itself = similarities(1e3 + Z, lifted_rows(1e3 + Z))
    assert itself.max() <= 1.0


# -- the formula ----------------------------------------------------------------------


@each_machine
@weighted_or_not
def test_values_are_those_of_the_printed_formula(name, is_weighted, few, queries, rng):
    machine, rows, core, _ = make(name, few, is_weighted)
    slow = dense(name, rows)
    looks = machine.make_search().look(core, rows.similarities(queries), rows.Z)
    objective = machine.make_search().objective(core, looks)
    points = looks.means + 0.5 * rng.normal(size=looks.means.shape)
    values, _ = objective(points, np.arange(len(queries)))
    for x, z, value in zip(queries, points, values):
        a = x / rows.input_scales - rows.center
        assert_allclose(value, printed_value(name, slow, z, a), rtol=1e-8, atol=1e-10)


@each_machine
@weighted_or_not
def test_leaving_a_row_out_is_refitting_without_it(name, is_weighted, few, rng):
    """In closed form: u, eta, what a GP says, and every value of the objective."""
    left = np.arange(0, 40, 3)
    machine, rows, core, looks = make(name, few, is_weighted, left=left)
    objective = machine.make_search().objective(core, looks)
    points = rows.Z[left] + 0.4 * rng.normal(size=(len(left), 2))
    values, _ = objective(points, np.arange(len(left)))
    eta = machine.make_search().eta(looks)
    for n, i in enumerate(left):
        slow, a = dense(name, without(rows, i)), rows.A[i]
        assert_allclose(np.delete(looks.U[n], i), slow.weights_of(a), atol=1e-8)
        assert_allclose(looks.U[n, i], 0.0, atol=1e-8)
        assert_allclose(eta[n], slow.eta(a), rtol=1e-8)
        assert_allclose(looks.means[n], slow.mean(a), atol=1e-8)
        expected = printed_value(name, slow, points[n], a)
        assert_allclose(values[n], expected, rtol=1e-8, atol=1e-8)


@each_machine
@weighted_or_not
def test_what_is_said_of_a_row_left_out_is_what_a_refit_says(name, is_weighted, few):
    everyone = np.arange(40)
    machine, rows, *_ = make(name, few, is_weighted)
    machine._precision = (0.0, 200)
    said = rows.back(machine.make_search().leave_out(rows, everyone)[1])
    for i in everyone[::3]:
        rest = without(rows, i)
        core, _ = machine.make_search().make_core(rest, NOBODY)
        looks = machine.make_search().look(core, rest.similarities(few[0][[i]]), rest.Z)
        expected = rest.back(machine.make_search().points(core, looks, rest.Z))[0]
        assert_allclose(said[i], expected, atol=1e-6)


def test_the_most_similar_row_of_one_left_out_is_another(few):
    _, rows, _, looks = make("twin", few, left=np.arange(40))
    for i in range(40):
        rest = without(rows, i)
        nearest = np.argmax(reference_twin.gaussian(rows.A[i], rest.A))
        assert_allclose(looks.nearest[i], rest.Z[nearest])


# -- the gradient ---------------------------------------------------------------------


def check_gradient(objective, points):
    """The gradient of every query agrees with differences of its value."""
    which = np.arange(len(points))
    _, gradients = objective(points, which)
    assert np.abs(gradients).max() > 0.1
    for q, z in enumerate(points):

        def value(at, q=q):
            return objective(at[None], which[[q]])[0][0]

        # Two steps, extrapolated: one alone is either too long or lost in rounding.
        near, far = (reference.numerical_gradient(value, z, h) for h in (2e-4, 4e-4))
        assert_allclose(gradients[q], (4 * near - far) / 3, rtol=1e-6, atol=1e-6)


@each_machine
@each_rank
def test_gradients_of_queries_agree_with_finite_differences(
    name, rank, few, queries, rng
):
    machine, rows, core, _ = make(name, few, rank=rank)
    looks = machine.make_search().look(core, rows.similarities(queries[:15]), rows.Z)
    points = looks.means + 0.5 * rng.normal(size=looks.means.shape)
    check_gradient(machine.make_search().objective(core, looks), points)


@each_machine
@each_rank
def test_gradients_of_rows_left_out_agree_with_finite_differences(name, rank, few, rng):
    left = np.arange(0, 40, 3)
    machine, rows, core, looks = make(name, few, True, rank, left)
    points = rows.Z[left] + 0.5 * rng.normal(size=(len(left), 2))
    check_gradient(machine.make_search().objective(core, looks), points)


def test_the_gradient_is_the_printed_one(few, queries):
    machine, rows, core, _ = make("twin", few)
    looks = machine.make_search().look(core, rows.similarities(queries), rows.Z)
    _, gradients = machine.make_search().objective(core, looks)(
        looks.means, np.arange(len(queries))
    )
    slow = dense("twin", rows)
    for x, z, gradient in zip(queries, looks.means, gradients):
        a = x / rows.input_scales - rows.center
        assert_allclose(gradient, slow.gradient(z, a), atol=1e-8)


def test_a_batch_may_hold_any_queries_in_any_order(few, queries, rng):
    machine, rows, core, _ = make("twin", few)
    looks = machine.make_search().look(core, rows.similarities(queries), rows.Z)
    objective = machine.make_search().objective(core, looks)
    points = rng.normal(size=(len(queries), 2))
    values, gradients = objective(points, np.arange(len(queries)))
    some = rng.permutation(len(queries))[:9]
    for this, that in zip(objective(points[some], some), (values, gradients)):
        assert_allclose(this, that[some], atol=1e-10)
