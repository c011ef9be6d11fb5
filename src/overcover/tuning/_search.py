"""Where candidates come from: the prediction loss, and the marginal likelihood."""

import numpy as np

from .._parallel import run_tasks
from .._weights import evidence_of
from ._problem import MOST_SCALES, Problem, descend, descend_tied
from ._sets import choose_spots, local_sets
from .likelihood import negative_log_likelihood
from .prediction_loss import measure, predict_held_out, prediction_loss, tied_loss

# Spots that are predicted while searching, and rows to learn from at each.
N_SPOTS, SET_SIZE = 80, 128
# Rows of a small table whose likelihood is climbed first.
FEW_LOOKED_AT = 400
# With more rows than this, the prior of hyperparameters fades.
A_HANDFUL = 40
# Errors count up to so many times their median.
MOST_MEDIANS = 12.0


class PredictionSearch:
    """Descents of the prediction loss at some spots.

    Sets are made anew in each descent, in the metric that it starts from.

    Parameters
    ----------
    problem : Problem
    theta : ndarray of shape (n_hyperparameters,)
        In whose metric spots are chosen.
    random_state : RandomState
    """

    is_local = True
    """Whether it looks at neighbourhoods, not at all rows."""

    def __init__(self, problem: Problem, theta, random_state):
        self.problem = problem
        self.seed = random_state.randint(2**31)
        self._made: tuple = (None, [])
        # Errors are cut alike in all descents, at what the first metric makes of them.
        scale, noise = problem.metric(theta), float(np.exp(theta[-1]))
        measured = [measure(local, scale) for local in self._sets(theta)]
        start = predict_held_out(problem.kernel, 1.0, noise, measured, problem.n_jobs)
        self.limits = limits_of(start.errors)

    def descend(self, theta, tied, max_iter, kernel=None, outputs=None):
        """The hyperparameters after some steps down the loss.

        Parameters
        ----------
        theta : ndarray of shape (n_hyperparameters,)
        tied : bool
            Whether all length scales move by one common factor.
        max_iter : int
        kernel : str or None
            None for that of the problem.
        outputs : ndarray of int or None
            Those that count; None for all.

        Returns
        -------
        ndarray of shape (n_hyperparameters,)
        """
        problem = self.problem
        if outputs is not None:
            problem = problem._replace(Y=problem.Y[:, outputs])
        kernel = problem.kernel if kernel is None else kernel
        sets, scale = self._sets(theta), problem.metric(theta)
        if outputs is not None:
            sets = [one.of_outputs(outputs) for one in sets]
        measured = [measure(local, scale) for local in sets]
        n_jobs = problem.n_jobs
        limits = self.limits if outputs is None else self.limits[outputs]

        def along_columns(moved):
            return _safely(prediction_loss, moved, kernel, sets, limits, n_jobs)

        def along_all(moved):
            value, slopes = _safely(
                tied_loss, moved[0], moved[1], kernel, measured, limits, n_jobs
            )
            return value, slopes

        if tied and problem.free[:-1].any():
            return descend_tied(problem, theta, along_all, max_iter)
        return descend(problem, theta, along_columns, tied, max_iter)

    def _sets(self, theta):
        # A common factor on all length scales does not change who is near.
        key = np.round(theta[:-1] - theta[:1], 6).tobytes()
        if self._made[0] != key:
            # The same spots however often this metric comes back.
            random_state = np.random.RandomState(self.seed)
            spots = choose_spots(self.problem, theta, N_SPOTS, random_state)
            self._made = key, local_sets(self.problem, theta, spots, SET_SIZE)
        return self._made[1]

    def descend_columns(self, theta, kernel):
        """One length scale per column: the results of a few rounds.

        Each round has its sets in the metric of the last. Few rows are looked at, so
        the last round need not be the best.
        """
        rounds = []
        for _ in range(3):
            theta = self.descend(theta, False, 12, kernel)
            rounds.append(theta)
        return rounds


class LikelihoodSearch:
    """Climbs of the marginal likelihood of a small table; as `PredictionSearch`."""

    is_local = False

    def __init__(self, problem: Problem, theta, random_state):
        self.problem = problem
        self.rows = np.arange(len(problem.X))
        some = random_state.permutation(len(problem.X))[:FEW_LOOKED_AT]
        self.some = np.sort(some)

    def descend(self, theta, tied, max_iter, kernel=None, outputs=None):
        """The hyperparameters after some steps up the likelihood of some rows."""
        return by_likelihood(
            self._problem(kernel, outputs), theta, [self.some], max_iter, tied
        )

    def descend_columns(self, theta, kernel):
        """One length scale per column, from all rows in the end."""
        theta = self.descend(theta, False, 30, kernel)
        return [by_likelihood(self._problem(kernel, None), theta, [self.rows], 60)]

    def _problem(self, kernel, outputs):
        problem = self.problem
        if kernel is not None:
            problem = problem._replace(kernel=kernel)
        return problem if outputs is None else problem._replace(Y=problem.Y[:, outputs])


def limits_of(errors):
    """What errors are cut at, so that a few corrupted outputs do not decide.

    Parameters
    ----------
    errors : ndarray of shape (n, n_outputs)

    Returns
    -------
    ndarray of shape (n_outputs,)
    """
    typical = np.median(np.abs(errors), axis=0)
    # Most errors may be nil, as of a count that is mostly zero.
    typical = np.maximum(typical, 0.1 * np.sqrt(np.mean(errors**2, axis=0)))
    return MOST_MEDIANS * typical


def by_prediction(problem: Problem, theta, random_state):
    """Minimise the prediction loss, isotropic first, then column by column.

    Parameters
    ----------
    problem : Problem
    theta : ndarray of shape (n_hyperparameters,)
    random_state : RandomState

    Returns
    -------
    ndarray of shape (n_hyperparameters,)
    """
    search = PredictionSearch(problem, theta, random_state)
    theta = search.descend(theta, True, 10)
    if 1 < problem.free[:-1].sum() <= MOST_SCALES:
        theta = search.descend_columns(theta, problem.kernel)[-1]
    return theta


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

    def likelihood(moved, *parts):
        return _safely(negative_log_likelihood, moved, problem.kernel, *parts)

    # A prior for a handful of rows, which many hyperparameters explain.
    counts = [len(X) if w is None else evidence_of(w).sum() for X, _, w in data]
    n_numbers = sum(n * Y.shape[1] for n, (_, Y, _) in zip(counts, data))
    prior = min(1.0, A_HANDFUL / sum(counts)) / n_numbers

    def objective(moved):
        tasks = ((moved, *parts) for parts in data)
        results = list(run_tasks(likelihood, tasks, problem.n_jobs))
        value = sum(share * f for share, (f, _) in zip(shares, results))
        gradient = sum(share * g for share, (_, g) in zip(shares, results))
        penalty, slope = problem.log_prior(moved)
        return value + prior * penalty, gradient + prior * slope

    tied = tied or problem.free[:-1].sum() > MOST_SCALES
    return descend(problem, theta, objective, tied, max_iter)


def _safely(objective, theta, *args):
    """The objective, or a wall where the kernel matrix cannot be factorised."""
    try:
        return objective(theta, *args)
    except np.linalg.LinAlgError:
        return 1e10, np.zeros(np.size(theta) if np.ndim(theta) else 2)


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
