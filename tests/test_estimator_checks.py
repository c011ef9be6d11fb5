"""Every public estimator keeps scikit-learn's contract, with no expected failures."""

import inspect

import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import BayesianRidge
from sklearn.utils.estimator_checks import parametrize_with_checks

import overcover
from overcover import (
    GP,
    AnyRegressor,
    CommitteeGP,
    EqualSizeKMeans,
    ImportanceWeightedTwinGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    RecursiveProjection,
    SharmaMittalTwinGP,
    SparseGP,
    StructuredNeighbors,
    TwinGP,
    TwoLevelKMeans,
)

TWIN = (2.0, 2.0, 0.01, 0.01)
FIXED = {"length_scale": 2.0, "noise": 0.01}
# The checks fit 1 to 200 rows: with 40 to a subdomain there are 1 to 50 subdomains.
# (Fewer would split the rows on which weights must equal repetitions, and a subdomain
# counts rows, whatever they weigh.)
SMALL = {"subdomain_size": 40, "random_state": 0}

ESTIMATORS = [
    EqualSizeKMeans(),
    RecursiveProjection(),
    TwoLevelKMeans(),
    GP(),
    GP(per_output=True),
    GP(per_subdomain=True),
    GP(kernel=ConstantKernel(1.0) * RBF(1.0)),
    AnyRegressor(),
    AnyRegressor(BayesianRidge()),
    OverlappingCoverRegressor(),
    OverlappingCoverRegressor(GP(**FIXED), **SMALL),
    OverlappingCoverRegressor(GP(**FIXED), subdomain_size="auto", random_state=0),
    OverlappingCoverRegressor(GP(**FIXED), overlap=0.0, **SMALL),
    OverlappingCoverRegressor(GP(**FIXED), router="mahalanobis", **SMALL),
    OverlappingCoverRegressor(GP(**FIXED), router="density", **SMALL),
    OverlappingCoverRegressor(GP(**FIXED), router="neighbors", **SMALL),
    OverlappingCoverRegressor(GP(per_subdomain=True, **FIXED), **SMALL),
    OverlappingCoverRegressor(AnyRegressor(KernelRidge()), **SMALL),
    OverlappingCoverRegressor(AnyRegressor(), partition="rpc", **SMALL),
    TwinGP(),
    TwinGP(*TWIN, rank="full", n_starts=2),
    ImportanceWeightedTwinGP(),
    SharmaMittalTwinGP(),
    OverlappingCoverRegressor(TwinGP(*TWIN), **SMALL),
    OverlappingCoverRegressor(SharmaMittalTwinGP(*TWIN), **SMALL),
    NeighborhoodRegressor(GP(**FIXED), n_neighbors=40),
    NeighborhoodRegressor(AnyRegressor(), n_neighbors=40),
    NeighborhoodRegressor(TwinGP(*TWIN), n_neighbors=40),
    CommitteeGP(),
    CommitteeGP(GP(**FIXED), rule="grbcm", expert_size=40, random_state=0),
    SparseGP(),
    StructuredNeighbors(),
    StructuredNeighbors("hsic", random_state=0),
    StructuredNeighbors("kta", random_state=0),
]
# The second argument of one is no target but a second sample; the other refuses inputs
# of more than two features, which most checks have.
UNCHECKED = {"RelativeDensityRatio", "DomainDecompositionGP"}


@parametrize_with_checks(ESTIMATORS)
def test_the_contract_of_scikit_learn_is_kept(estimator, check):
    check(estimator)


CLASSES = {n for n in overcover.__all__ if inspect.isclass(getattr(overcover, n))}


@pytest.mark.parametrize("name", sorted(CLASSES - UNCHECKED))
def test_every_public_estimator_is_checked(name):
    assert getattr(overcover, name) in {type(estimator) for estimator in ESTIMATORS}
