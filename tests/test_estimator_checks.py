"""Every public estimator keeps scikit-learn's contract, with no expected failures."""

import inspect

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.gaussian_process.kernels import RBF, ConstantKernel
from sklearn.linear_model import BayesianRidge
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn.utils.validation import has_fit_parameter

import overcover
from overcover import (
    GP,
    AnyRegressor,
    CommitteeGP,
    DomainDecompositionGP,
    EqualSizeKMeans,
    ImportanceWeightedTwinGP,
    LocalProbabilisticRegression,
    MixtureGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    PatchworkGP,
    RecursiveProjection,
    SharmaMittalTwinGP,
    SparseGP,
    StructuredNeighbors,
    TreeGP,
    TwinGP,
    TwoLevelKMeans,
)

# Some checks have outputs that inputs say nothing about, and a fit says so.
pytestmark = pytest.mark.filterwarnings("ignore:The inputs explain almost nothing")

TWIN = (2.0, 2.0, 0.01, 0.01)
FIXED = {"length_scale": 2.0, "noise": 0.01}
# The checks fit 1 to 200 rows: with 40 to a subdomain there are 1 to 50 subdomains.
# (Fewer would split the rows on which weights must equal repetitions, and a subdomain
# counts rows, whatever they weigh.)
SMALL = {"subdomain_size": 40, "random_state": 0}

# One of every class with its defaults (relatives of the Twin GP are tuned as it is, so
# that given hyperparameters will do), and those that validate or fit in another way.
ESTIMATORS = [
    EqualSizeKMeans(),
    EqualSizeKMeans(balance="imda"),
    RecursiveProjection(),
    TwoLevelKMeans(n_shards=3),
    GP(),
    GP(per_output=True, per_subdomain=True),
    GP(kernel=ConstantKernel(1.0) * RBF(1.0)),
    AnyRegressor(),
    AnyRegressor(BayesianRidge()),
    OverlappingCoverRegressor(),
    OverlappingCoverRegressor(GP(**FIXED), **SMALL),
    OverlappingCoverRegressor(GP(**FIXED), subdomain_size="auto", random_state=0),
    OverlappingCoverRegressor(GP(**FIXED), router="neighbors", **SMALL),
    OverlappingCoverRegressor(GP(per_subdomain=True, **FIXED), **SMALL),
    OverlappingCoverRegressor(AnyRegressor(), partition="rpc", **SMALL),
    OverlappingCoverRegressor(GP(**FIXED), target="yeo-johnson", **SMALL),
    TwinGP(),
    TwinGP(*TWIN, rank="full", n_starts=2),
    ImportanceWeightedTwinGP(*TWIN),
    SharmaMittalTwinGP(*TWIN),
    OverlappingCoverRegressor(TwinGP(*TWIN), **SMALL),
    NeighborhoodRegressor(),
    NeighborhoodRegressor(TwinGP(*TWIN), n_neighbors=40),
    CommitteeGP(),
    CommitteeGP(GP(**FIXED), rule="grbcm", expert_size=40, random_state=0),
    SparseGP(),
    SparseGP(GP(**FIXED), n_inducing=20, method="pic"),
    SparseGP(GP(length_scale=8.0), n_inducing=20, tuning="bound"),
    MixtureGP(GP(**FIXED)),
    MixtureGP(GP(**FIXED), expert_size=40, assignment="soft", random_state=0),
    TreeGP(GP(**FIXED), n_trees=1, random_state=0),
    TreeGP(GP(**FIXED), leaf_size=40, splits="projections", n_trees=2, random_state=0),
    LocalProbabilisticRegression(GP(**FIXED), n_neighbors=40),
    StructuredNeighbors(),
    StructuredNeighbors("hsic", random_state=0),
]
# The second argument of one is no target but a second sample; some refuse inputs of
# more than two features, which most checks have; the last encodes frames, not arrays.
PLANE_ONLY = [DomainDecompositionGP(), PatchworkGP()]
UNCHECKED = {"RelativeDensityRatio", "TableEncoder"}
UNCHECKED |= {type(estimator).__name__ for estimator in PLANE_ONLY}


@parametrize_with_checks(ESTIMATORS)
def test_the_contract_of_scikit_learn_is_kept(estimator, check, monkeypatch):
    # Else scikit-learn leaves out the check that its array API changes nothing.
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    check(estimator)


CLASSES = {n for n in overcover.__all__ if inspect.isclass(getattr(overcover, n))}


@pytest.mark.parametrize("name", sorted(CLASSES - UNCHECKED))
def test_every_public_estimator_is_checked(name):
    assert getattr(overcover, name) in {type(estimator) for estimator in ESTIMATORS}


@pytest.mark.parametrize(
    "estimator",
    [e for e in [*ESTIMATORS, *PLANE_ONLY] if hasattr(e, "predict")],
    ids=repr,
)
def test_arrays_that_change_after_fit_change_no_answer(estimator, surface):
    X, y = (part[:80].copy() for part in surface)
    weight = np.linspace(0.5, 2.0, 80)
    is_weighted = has_fit_parameter(estimator, "sample_weight")
    options = {"sample_weight": weight} if is_weighted else {}
    model = clone(estimator).fit(X, y, **options)
    before = model.predict(surface[0][80:100])
    for changed in (X, y, weight):
        changed[:] = changed[::-1].copy() + 7.0
    assert_array_equal(model.predict(surface[0][80:100]), before)
