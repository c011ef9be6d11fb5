"""Where candidates come from: the prediction loss, and the marginal likelihood."""

import numpy as np

from .. import kernels
from .._neighbors import nearest_rows
from .._parallel import run_tasks
from .._weights import judged_first
from ._problem import MOST_SCALES, Problem, descend
from .likelihood import negative_log_likelihood
from .prediction_loss import prediction_loss

N_ANCHORS, N_NEIGHBORS = 1000, 50
ANCHORS_PER_TASK = 50


def by_prediction(problem: Problem, theta, rows, random_state, n_anchors=N_ANCHORS):
    """Minimise the prediction loss of anchors, isotropic first.

    Neighbours are found anew in each round, in the metric of the last.

    Parameters
    ----------
    problem : Problem
    theta : ndarray of shape (n_hyperparameters,)
    rows : ndarray of int
        The rows that may be looked at.
    random_state : RandomState
    n_anchors : int

    Returns
    -------
    dict of candidates
    """
    rows, n_judged = judged_first(rows, problem.weights)
    n_anchors = min(problem.affordable(n_anchors), n_judged)
    anchors = random_state.choice(n_judged, n_anchors, replace=False)
    found = {"isotropic": _prediction_round(problem, theta, rows, anchors, True, 10)}
    theta = found["isotropic"]
    if 1 < problem.free[:-1].sum() <= MOST_SCALES:
        for _ in range(3):
            theta = _prediction_round(problem, theta, rows, anchors, False, 12)
        found["prediction"] = theta
    return found


def _prediction_round(problem, theta, rows, anchors, tied, max_iter):
    near = nearest_to_anchors(problem, theta, rows, anchors, N_NEIGHBORS)
    sets = list(anchor_sets(problem, near))

    def objective(moved):
        return prediction_loss(moved, problem.kernel, sets, problem.n_jobs)

    return descend(problem, theta, objective, tied, max_iter)


def nearest_to_anchors(problem, theta, rows, anchors, n_neighbors):
    """Anchors and their nearest rows in the metric of `theta`, anchor first.

    Parameters
    ----------
    problem : Problem
    theta : ndarray of shape (n_hyperparameters,)
    rows : ndarray of int
    anchors : ndarray of int
        Positions in `rows`.
    n_neighbors : int

    Returns
    -------
    ndarray of shape (n_anchors, n_neighbors + 1)
        Rows of the problem.
    """
    near = nearest_rows(
        problem.X,
        problem.X[rows[anchors]],
        min(n_neighbors + 1, len(rows)),
        problem.n_jobs,
        rows,
        metric_of(problem, theta),
    )
    return rows[_anchor_first(near, anchors)]


def anchor_sets(problem, near):
    """Data of anchors and neighbours, a few anchors at a time.

    Parameters
    ----------
    problem : Problem
    near : ndarray of shape (n_anchors, n_neighbors + 1)

    Yields
    ------
    X, Y, weights
        Of shapes (n, n_neighbors + 1, n_features), (n, n_neighbors + 1, n_outputs)
        and (n, n_neighbors + 1).
    """
    for start in range(0, len(near), ANCHORS_PER_TASK):
        part = near[start : start + ANCHORS_PER_TASK]
        weights = np.ones(part.shape)
        if problem.weights is not None:
            weights = problem.weights[part]
        yield problem.X[part], problem.Y[part], weights


def _anchor_first(near, anchors):
    """Put each anchor at the head of its own neighbours (duplicates may tie)."""
    ordered = np.empty_like(near)
    ordered[:, 0] = anchors
    is_anchor = near == anchors[:, None]
    # Where a pile of duplicates crowded the anchor out, its farthest neighbour goes.
    is_anchor[~is_anchor.any(axis=1), -1] = True
    ordered[:, 1:] = near[~is_anchor].reshape(len(near), -1)
    return ordered


def by_likelihood(problem: Problem, theta, sets, max_iter, tied=False):
    """Climb the summed marginal likelihood of several sets of rows.

    Parameters
    ----------
    problem : Problem
    theta : ndarray of shape (n_hyperparameters,)
    sets : list of ndarray of int
    max_iter : int
    tied : bool

    Returns
    -------
    ndarray of shape (n_hyperparameters,)
    """
    data = [_centred(problem, rows) for rows in sets]
    shares = np.array([len(X) for X, _, _ in data], float)
    shares /= shares.sum()

    def objective(moved):
        tasks = ((moved, problem.kernel, *parts) for parts in data)
        results = list(run_tasks(_safe_likelihood, tasks, problem.n_jobs))
        value = sum(share * f for share, (f, _) in zip(shares, results))
        return value, sum(share * g for share, (_, g) in zip(shares, results))

    tied = tied or problem.free[:-1].sum() > MOST_SCALES
    return descend(problem, theta, objective, tied, max_iter)


def _safe_likelihood(theta, kernel, X, Y, weights):
    """The likelihood, or a wall where the kernel matrix cannot be factorised."""
    try:
        return negative_log_likelihood(theta, kernel, X, Y, weights)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros(len(theta))


def _centred(problem, rows):
    """Rows for the likelihood: X, centred Y without flat columns, weights."""
    X, Y = problem.X[rows], problem.Y[rows]
    weights = None if problem.weights is None else problem.weights[rows]
    Y = Y - np.average(Y, axis=0, weights=weights)
    Y = Y[:, np.einsum("ij,ij->j", Y, Y) > 1e-12 * len(Y)]
    if Y.shape[1] == 0:
        # Flat here although not everywhere: nothing to learn from, nothing to break.
        Y = np.linspace(-1.0, 1.0, len(X))[:, None]
    return X, Y, weights


def metric_of(problem, theta):
    """What to divide rows by before measuring distances."""
    return 1.0 if kernels.is_object(problem.kernel) else np.exp(theta[:-1])
