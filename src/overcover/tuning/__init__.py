r"""Hyperparameters "auto": several candidates, chosen between on rows kept aside.

    X, Y -> [metric] -> partition -> cover -> machines -> routing -> combination
    -> prediction

No single recipe wins everywhere. The marginal likelihood of a few random rows sees
the data thinned out; that of neighbourhoods drives the noise to zero where rows nearly
repeat. So there are candidates,

- *isotropic*: a common multiple of the column deviations, by the prediction loss of
  `overcover.tuning.prediction_loss`;
- *prediction*: from there, one length scale per column, by the same loss;
- *likelihood*: from there, by the marginal likelihood of a few neighbourhoods;

each judged by what counts: error and log density of local machines on held-out rows.
A last search moves the winner's noise and common length scale by factors, judged the
same way. The cost does not grow with the number of rows, but for finding neighbours.
Small data are tuned by the marginal likelihood of all rows, which is then the right
one; so are scikit-learn kernel objects, on random rows.
"""

from typing import NamedTuple

import numpy as np

from .. import kernels
from ._judge import Judge
from ._problem import NOISE_BOUNDS as NOISE_BOUNDS
from ._problem import standardize
from ._search import by_likelihood, by_prediction

# Up to this many rows the likelihood of all of them is affordable.
FEW_ROWS = 1000
N_LOCAL_SETS, LOCAL_SIZE = 4, 500


class Tuned(NamedTuple):
    """The hyperparameters found, and what else was tried."""

    theta: np.ndarray
    scores: dict[str, float]
    """Held-out score of every candidate, lower is better; empty if there was one."""


def tune(kernel, X, Y, weights, theta, random_state, n_jobs=None):
    """Find length scales and noise.

    Parameters
    ----------
    kernel : str or scikit-learn kernel
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    weights : ndarray of shape (n_samples,) or None
    theta : ndarray of shape (n_hyperparameters,)
        Log hyperparameters, the noise last; NaN where they are to be found. Those of
        a kernel object are where to start.
    random_state : RandomState
    n_jobs : int or None

    Returns
    -------
    Tuned
    """
    problem, start, restore = standardize(kernel, X, Y, weights, theta, n_jobs)
    if not problem.free.any() or problem.Y.shape[1] == 0 or len(X) < 2:
        return Tuned(restore(start), {})
    if len(X) <= FEW_ROWS or kernels.is_object(kernel):
        rows = random_state.permutation(len(X))[:FEW_ROWS]
        found = by_likelihood(problem, start, [np.sort(rows)], 10, tied=True)
        return Tuned(restore(by_likelihood(problem, found, [np.sort(rows)], 60)), {})

    judge = Judge(problem, random_state.permutation(len(X)))
    found = by_prediction(problem, start, judge.rest, random_state)
    start = list(found.values())[-1]
    sets = judge.neighborhoods(start, N_LOCAL_SETS, LOCAL_SIZE, random_state)
    found["likelihood"] = by_likelihood(problem, start, sets, 15)
    scores = {name: judge.score(candidate) for name, candidate in found.items()}
    best = found[min(scores, key=scores.__getitem__)]
    best = _refine(problem, best, judge)
    return Tuned(restore(best), {**scores, "refined": judge.score(best)})


def improve(kernel, X, Y, weights, theta, asked, max_iter=10):
    """A few steps up the likelihood of one set of rows.

    Parameters
    ----------
    kernel : str or scikit-learn kernel
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    weights : ndarray of shape (n_samples,) or None
    theta : ndarray of shape (n_hyperparameters,)
        Where to start.
    asked : ndarray of shape (n_hyperparameters,)
        NaN where it may move, as in `tune`.

    Returns
    -------
    ndarray of shape (n_hyperparameters,)
        A column that is constant among these rows keeps its length scale.
    """
    problem, _, restore = standardize(kernel, X, Y, weights, asked, None)
    if problem.Y.shape[1] == 0 or len(X) < 2:
        return theta
    start = restore.inverse(theta)
    found = restore(by_likelihood(problem, start, [np.arange(len(X))], max_iter))
    return np.where(restore.used, found, theta)


def _refine(problem, theta, judge):
    """Move common length scale and noise by factors while held-out rows gain."""
    lengths = np.append(problem.free[:-1] * np.log(2.0), 0.0)
    noise = np.zeros(len(theta))
    noise[-1] = problem.free[-1] * np.log(4.0)
    low, high = problem.bounds()
    for shrink in (1.0, 0.5):
        for step in (lengths, -lengths, noise, -noise):
            while True:
                moved = np.clip(theta + shrink * step, low, high)
                if judge.score(moved) > judge.score(theta) - 1e-3:
                    break
                theta = moved
    return theta
