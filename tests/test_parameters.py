"""Parameters nest in whatever form an estimator is given its machine."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.kernel_ridge import KernelRidge
from sklearn.model_selection import GridSearchCV

from overcover import (
    GP,
    AnyRegressor,
    CommitteeGP,
    DomainDecompositionGP,
    LocalProbabilisticRegression,
    MixtureGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    PatchworkGP,
    SparseGP,
    TreeGP,
    TwinGP,
)

TAKERS = [
    OverlappingCoverRegressor,
    NeighborhoodRegressor,
    CommitteeGP,
    SparseGP,
    DomainDecompositionGP,
    PatchworkGP,
    MixtureGP,
    TreeGP,
    LocalProbabilisticRegression,
]
each_taker = pytest.mark.parametrize("taker", TAKERS)
each_form = pytest.mark.parametrize("form", [None, "gp", GP()], ids=repr)


@each_taker
@each_form
def test_nested_parameters_are_those_of_the_machine_that_is_used(taker, form):
    params = taker(form).get_params()
    nested = {k: v for k, v in params.items() if k.startswith("machine__")}
    assert nested == {f"machine__{k}": v for k, v in GP().get_params().items()}
    assert params["machine"] is form
    assert not any("__" in name for name in taker(form).get_params(deep=False))


@each_taker
@each_form
def test_a_nested_parameter_can_be_set_in_any_form(taker, form):
    model = taker(clone(form, safe=False)).set_params(machine__noise=0.5)
    assert isinstance(model.machine, GP) and model.machine.noise == 0.5
    assert clone(model).get_params()["machine__noise"] == 0.5
    assert "noise=0.5" in repr(model)


def test_a_name_and_a_parameter_can_be_set_together():
    model = OverlappingCoverRegressor().set_params(
        machine__input_noise=0.5, machine="tgp", overlap=0.5
    )
    assert isinstance(model.machine, TwinGP) and model.machine.input_noise == 0.5
    assert model.overlap == 0.5
    assert OverlappingCoverRegressor("tgp").set_params(overlap=0.5).machine == "tgp"


def test_parameters_of_the_estimator_inside_any_regressor_nest_too():
    machine = AnyRegressor().set_params(estimator__alpha=0.5)
    assert isinstance(machine.estimator, KernelRidge) and machine.estimator.alpha == 0.5
    assert AnyRegressor().get_params()["estimator__kernel"] == "rbf"
    model = OverlappingCoverRegressor(KernelRidge()).set_params(machine__alpha=0.5)
    assert model.machine.alpha == 0.5


@pytest.mark.parametrize("form", [None, "gp"])
def test_an_unknown_nested_parameter_is_refused_and_changes_nothing(form):
    model = OverlappingCoverRegressor(form)
    with pytest.raises(ValueError, match=r"Invalid parameter 'colour' for .* GP"):
        model.set_params(machine__colour="red")
    assert model.machine is form


def test_a_machine_without_parameters_is_named():
    with pytest.raises(ValueError, match="machine='oracle' has no parameters"):
        OverlappingCoverRegressor("oracle").set_params(machine__noise=0.1)


@pytest.mark.parametrize("form", [None, "gp", GP()], ids=repr)
def test_a_grid_search_sees_the_machine(form, surface):
    X, y = surface
    search = GridSearchCV(
        OverlappingCoverRegressor(form, subdomain_size=60, random_state=0),
        {"machine__noise": [0.01, 100.0], "machine__length_scale": [1.5]},
        cv=2,
        error_score="raise",
    ).fit(X, y)
    assert search.best_params_["machine__noise"] == 0.01
    assert np.isfinite(search.predict(X)).all()
