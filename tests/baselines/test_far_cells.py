"""One far cell in a table spoils no prediction of a baseline."""

import numpy as np
import pytest
from sklearn.base import clone

from conftest import wave
from overcover import (
    GP,
    CommitteeGP,
    DomainDecompositionGP,
    LocalProbabilisticRegression,
    MixtureGP,
    NeighborhoodRegressor,
    PatchworkGP,
    SparseGP,
    StructuredNeighbors,
    TreeGP,
)

FIXED = GP(length_scale=1.5, noise=0.01)
BASELINES = [
    CommitteeGP(FIXED, expert_size=60, random_state=0),
    DomainDecompositionGP(FIXED, cell_size=60, random_state=0),
    PatchworkGP(FIXED, cell_size=60, random_state=0),
    NeighborhoodRegressor(FIXED, n_neighbors=40),
    MixtureGP(FIXED, expert_size=60, random_state=0),
    TreeGP(FIXED, leaf_size=60, random_state=0),
    LocalProbabilisticRegression(FIXED, n_neighbors=40),
    SparseGP(FIXED, n_inducing=40, random_state=0),
    SparseGP(FIXED, method="pic", n_inducing=40, random_state=0),
    StructuredNeighbors(n_neighbors=10, random_state=0),
    StructuredNeighbors("hsic", n_neighbors=10, random_state=0),
]


@pytest.mark.parametrize("baseline", BASELINES, ids=repr)
def test_one_far_cell_spoils_no_other_answer(baseline, surface, queries):
    X, y = surface
    errors = []
    for value in (X[7, 1], 1e6, 1e30):
        rows = X.copy()
        rows[7, 1] = value
        answers = clone(baseline).fit(rows, y).predict(queries)
        errors.append(np.sqrt(np.mean((answers - wave(queries)) ** 2)))
    assert max(errors) < 1.5 * errors[0]
