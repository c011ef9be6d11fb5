"""Every machine keeps the protocol, alone and in a cover."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, Matern
from sklearn.linear_model import BayesianRidge, SGDRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR
from sklearn.tree import ExtraTreeRegressor

from overcover import (
    GP,
    AnyRegressor,
    ImportanceWeightedTwinGP,
    OverlappingCoverRegressor,
    RecursiveProjection,
    SharmaMittalTwinGP,
    TwinGP,
)
from overcover.advice import advise
from overcover.machines import NAMED, Machine, base, make_machine
from overcover.report import write_report

FIXED = {"length_scale": 1.5, "noise": 0.02}
TWIN = (1.2, 0.8, 0.02, 0.01)
# scikit-learn's own, with its hyperparameters fixed.
THEIR_GP = GaussianProcessRegressor(RBF(1.5, "fixed"), alpha=0.02, normalize_y=True)

# A new machine is one entry here.
MACHINES = [
    GP(**FIXED),
    GP(),
    GP(kernel="rbf", per_output=True, **FIXED),
    GP(kernel=Matern([1.0, 1.0], nu=2.5), noise=0.02),
    GP(per_subdomain=True, **FIXED),
    TwinGP(*TWIN),
    ImportanceWeightedTwinGP(*TWIN, n_starts=2),
    SharmaMittalTwinGP(*TWIN),
    AnyRegressor(),
    AnyRegressor(SVR(C=10.0)),
    AnyRegressor(THEIR_GP),
    AnyRegressor(BayesianRidge()),
    AnyRegressor(make_pipeline(StandardScaler(), SVR(C=10.0))),
]
# Without a Twin GP, which is told the units of its outputs.
CERTAIN = [
    GP(**FIXED),
    GP(per_output=True, **FIXED),
    GP(length_scale=1.5, per_subdomain=True),
    AnyRegressor(THEIR_GP),
    AnyRegressor(
        BayesianRidge(tol=1e-14, alpha_1=0, alpha_2=0, lambda_1=0, lambda_2=0)
    ),
]


def check_machine(machine, X, Y, queries):
    """What the regressor around a machine relies on."""
    machine.tune(X, Y, None, len(X), np.random.RandomState(0), None)
    scales = machine.length_scales(X)
    assert scales.shape == (X.shape[1],) and (scales > 0).all()
    assert isinstance(machine.keeps_factors(10, len(X)), bool)

    states = [machine.fit_state(X[rows], Y[rows], None, 20) for rows in halves(X)]
    machine.calibrate(states)
    for state in states:
        assert isinstance(state, tuple) and hasattr(state, "_fields")
        answer = machine.answer(state, queries)
        assert answer.mean.shape == (len(queries), Y.shape[1])
        assert answer.variance is None and answer.posterior is None
        sure = machine.answer(state, queries, variance=True)
        assert_allclose(sure.mean, answer.mean)
        copied = pickle.loads(pickle.dumps(state))
        assert_array_equal(machine.answer(copied, queries).mean, answer.mean)
        if machine.has_variance:
            assert sure.variance.shape == answer.mean.shape
            assert sure.posterior.shape == (len(queries),)
            assert (sure.variance > 0).all() and (sure.posterior > 0).all()
        else:
            assert sure.variance is None and sure.posterior is None
    wide, narrow = (machine.errors_.ends(share)[1] for share in (0.9, 0.5))
    assert (wide > narrow).all()


def halves(X):
    left = X[:, 0] < np.median(X[:, 0])
    return np.flatnonzero(left), np.flatnonzero(~left)


@pytest.fixture(params=MACHINES, ids=str)
def machine(request):
    return clone(request.param)


def test_every_machine_keeps_the_protocol(machine, two_outputs, queries):
    check_machine(machine, *two_outputs, queries)


def test_every_machine_learns_alone_and_in_a_cover(machine, surface):
    X, y = surface
    least = 0.9
    if isinstance(getattr(machine, "estimator", None), BayesianRidge):
        least = -0.1  # a plane cannot follow this surface
    fitted, left = slice(0, 250), slice(250, None)
    alone = machine.fit(X[fitted], y[fitted])
    cover = OverlappingCoverRegressor(machine, subdomain_size=80, random_state=0)
    cover.fit(X[fitted], y[fitted])
    assert cover.n_subdomains_ > 20
    assert alone.score(X[left], y[left]) > least
    assert cover.score(X[left], y[left]) > least


@pytest.mark.parametrize("n_consulted", [1, 2])
@pytest.mark.parametrize("machine", CERTAIN, ids=str)
def test_the_unit_of_one_output_moves_no_other(
    machine, n_consulted, two_outputs, queries
):
    X, Y = two_outputs
    options = {"overlap": 0.5, "n_consulted": n_consulted, "random_state": 0}
    cover = OverlappingCoverRegressor(machine, subdomain_size=80, **options)
    expected, same = (
        cover.fit(X, Y * [1.0, unit]).predict(queries, return_std=True)
        for unit in (1.0, 1000.0)
    )
    for this, that in zip(same, expected):
        assert_allclose(this / [1.0, 1000.0], that, rtol=1e-6)


def test_asking_for_fewer_queries_changes_no_answer(machine, two_outputs, queries):
    X, Y = two_outputs
    mean = machine.fit(X, Y).predict(queries)
    # A search ends where its gradient has vanished, within its tolerance.
    rtol = 1e-6 if isinstance(machine, TwinGP) else 1e-9
    assert_allclose(machine.predict(queries[5:7]), mean[5:7], rtol=rtol)


@pytest.mark.parametrize("name", NAMED)
def test_machines_are_known_by_name(name):
    assert type(make_machine(name)) is NAMED[name]


@pytest.mark.parametrize("machine", [GP(**FIXED), TwinGP(*TWIN)], ids=str)
def test_factors_are_kept_while_they_fit(machine, two_outputs):
    machine.fit(*two_outputs)
    assert machine.keeps_factors(n_subdomains=50, size=800)
    assert not machine.keeps_factors(n_subdomains=100_000, size=800)
    machine.set_params(keep_factors=True)
    assert machine.keeps_factors(n_subdomains=100_000, size=800)


@pytest.mark.parametrize("machine", [GP(), TwinGP()], ids=str)
def test_a_full_model_that_does_not_fit_is_refused(machine, surface, monkeypatch):
    monkeypatch.setattr(base, "memory_of_computer", lambda: 10**5)
    advice = rf"OverlappingCoverRegressor\({type(machine).__name__}\(\)\)"
    with pytest.raises(MemoryError, match=advice):
        machine.fit(*surface)


def test_every_machine_is_known_by_make_machine(machine):
    made = make_machine(machine)
    assert isinstance(made, Machine) and made is not machine
    assert str(made) == str(machine)


@pytest.mark.parametrize("machine", [GP(**FIXED), TwinGP(*TWIN)], ids=str)
def test_a_machine_alone_is_explained_advised_and_reported(
    machine, two_outputs, queries, tmp_path
):
    X, Y = (array[:80] for array in two_outputs)
    alone = clone(machine).fit(X, Y)
    for page, mean in zip(alone.explain(queries[:3]), alone.predict(queries[:3])):
        assert_allclose(page.mean, mean, rtol=1e-6)
        assert len(page.neighbors) == 5 and page.subdomains.tolist() == [0]
    assert isinstance(advise(alone, X, Y, X, Y), list)
    path = write_report(alone, tmp_path / "report.html", X_test=X, y_test=Y)
    assert "Seconds to fit" not in path.read_text(encoding="utf-8")


class Forgetful(AnyRegressor):
    """A machine that keeps no rows."""

    def recall(self, state):
        return None


def test_a_machine_that_keeps_no_rows_is_advised_and_reported_with_them(
    surface, tmp_path
):
    X, y = (array[:80] for array in surface)
    alone = Forgetful().fit(X, y)
    assert isinstance(advise(alone, X, y), list)
    assert write_report(alone, tmp_path / "report.html", X, y).exists()
    with pytest.raises(ValueError, match="keeps no training rows"):
        alone.explain(X[0])


# -- any regressor --------------------------------------------------------------------


def test_an_estimator_of_one_output_is_cloned_for_each(two_outputs, queries):
    X, Y = two_outputs
    together = AnyRegressor(SVR()).fit(X, Y).predict(queries)
    for j in range(2):
        alone = SVR().fit(X, Y[:, j]).predict(queries)
        assert_array_equal(together[:, j], alone)


def test_an_estimator_with_std_gives_its_own(two_outputs, queries):
    X, Y = two_outputs
    ours = AnyRegressor(THEIR_GP).fit(X, Y).predict(queries, return_std=True)
    theirs = clone(THEIR_GP).fit(X, Y).predict(queries, return_std=True)
    for this, that in zip(ours, theirs):
        assert_allclose(this, that)


def test_an_output_that_never_varies_does_not_decide_who_is_certain(surface, queries):
    X, y = surface
    cover = OverlappingCoverRegressor(
        AnyRegressor(THEIR_GP), subdomain_size=80, overlap=0.5, random_state=0
    )
    alone = cover.fit(X, y).predict(queries)
    both = cover.fit(X, np.column_stack([y, np.full(len(y), 1e6)])).predict(queries)
    assert_allclose(both[:, 0], alone, rtol=1e-9)
    nothing = cover.fit(X, 0.0 * y).predict(queries)
    assert_array_equal(nothing, np.zeros(len(queries)))


def test_their_gp_in_a_cover_answers_as_ours(surface, queries):
    """The same kernel and noise; the metric too, once the columns are scaled alike."""
    X, y = surface
    X, queries = (A / X.std(axis=0) for A in (X, queries))
    theirs = GaussianProcessRegressor(RBF(1.0, "fixed"), alpha=0.02)
    ours = GP(kernel="rbf", length_scale=1.0, noise=0.02)
    options = {
        "subdomain_size": 60,
        "partition": RecursiveProjection(random_state=0),
        "router": "euclidean",
    }
    covers = [
        OverlappingCoverRegressor(machine, **options).fit(X, y - y.mean())
        for machine in (AnyRegressor(theirs), ours)
    ]
    for this, that in zip(*(cover.cover_.members for cover in covers)):
        assert_array_equal(this, that)
    # Theirs has a prior mean of zero, ours that of the subdomain: nearly the same.
    assert_allclose(*(cover.predict(queries) for cover in covers), atol=0.05)


@pytest.mark.parametrize("estimator", [ExtraTreeRegressor(), SGDRegressor()], ids=str)
def test_a_random_estimator_is_seeded_by_the_cover(estimator, surface, queries):
    X, y = surface
    one, two, other = (
        OverlappingCoverRegressor(estimator, subdomain_size=60, random_state=seed)
        .fit(X / 3, y)
        .predict(queries / 3)
        for seed in (0, 0, 1)
    )
    assert_array_equal(one, two)
    assert (one != other).any()


def test_a_seed_given_to_the_estimator_is_kept(surface, queries):
    X, y = surface
    tree = ExtraTreeRegressor(random_state=5)
    ours = AnyRegressor(tree).fit(X, y).predict(queries)
    assert_array_equal(ours, clone(tree).fit(X, y).predict(queries))
