r"""Which columns a fitted model can do without, measured on rows held out.

A column with a long length scale may still matter: along a steady trend the
scale is long, and the outputs change a lot. So it is measured: in a few subdomains some
rows are held out and predicted by two machines that are fitted on the others, with the
same hyperparameters, one with and one without the columns. With :math:`\epsilon^2` and
:math:`\epsilon_-^2` the squared errors, columns can be left out if for every output

.. math:: \overline{\epsilon_-^2 - \epsilon^2} + 2\,\mathrm{se} \le
    \tau\,\overline{\epsilon^2} .

Nothing is tuned anew without the columns, which can only speak against leaving them
out.
"""

from typing import NamedTuple

import numpy as np

# Subdomains that are tried, rows of each, and the share of them held out.
N_SUBDOMAINS, MOST_ROWS, HELD_OUT = 8, 400, 0.25
# With fewer rows held out than this, nothing is measured.
LEAST_ROWS = 40
# How much squared errors may grow, and standard errors that are allowed for.
TOLERANCE, STANDARD_ERRORS = 0.02, 2.0
# Squared errors below this share of an output's variance are rounding.
ROUNDING = 1e-12


class Trial(NamedTuple):
    """Rows of one subdomain, some of them held out."""

    X: np.ndarray
    Y: np.ndarray
    n_fitted: int
    """The first rows are fitted, the others held out."""


def trials_of(model) -> list[Trial]:
    """Rows out of the states of some subdomains; the same for the same model.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Fitted.

    Returns
    -------
    list of Trial, empty where the machine keeps no rows
    """
    rng, machine, trials = np.random.default_rng(0), model.machine_, []
    n_tried = min(N_SUBDOMAINS, model.n_subdomains_)
    for k in np.linspace(0, model.n_subdomains_ - 1, n_tried).astype(int):
        recalled = machine.recall(model.states_[k])
        if recalled is None:
            return []
        X = recalled.X
        rows = rng.permutation(len(X))[:MOST_ROWS]
        Y = recalled.outputs(rows)
        n_held = int(HELD_OUT * len(rows))
        if n_held:
            trials.append(Trial(X[rows], Y, len(rows) - n_held))
    return trials


def errors_without(machine, trials, columns):
    """Squared errors of the rows held out, shape (n_held, n_outputs)."""
    errors = []
    for X, Y, n_fitted in trials:
        X = X.copy()
        X[:, columns] = 0.0
        answer = machine.answer_once(X[:n_fitted], Y[:n_fitted], None, X[n_fitted:])
        errors.append((answer.mean - Y[n_fitted:]) ** 2)
    return np.concatenate(errors)


def find_needless(model, columns):
    """Those of some columns that can be left out together.

    Parameters
    ----------
    model : OverlappingCoverRegressor
        Fitted.
    columns : sequence of int
        Those to try, the least promising first.

    Returns
    -------
    needless : list of int
        Empty where nothing can be measured.
    n_held : int
        Rows held out.
    """
    trials, machine = trials_of(model), model.machine_
    n_held = sum(len(Y) - n_fitted for _, Y, n_fitted in trials)
    if n_held < LEAST_ROWS:
        return [], n_held
    before = errors_without(machine, trials, [])
    variance = np.concatenate([trial.Y for trial in trials]).var(axis=0)
    allowed = TOLERANCE * before.mean(axis=0) + ROUNDING * variance

    def is_needless(some):
        growth = errors_without(machine, trials, some) - before
        error = growth.std(axis=0) / np.sqrt(n_held)
        return bool(np.all(growth.mean(axis=0) + STANDARD_ERRORS * error <= allowed))

    def extend(needless, others):
        """With as many of the others as halving finds."""
        if is_needless([*needless, *others]):
            return [*needless, *others]
        if len(others) == 1:
            return needless
        half = len(others) // 2
        return extend(extend(needless, others[:half]), others[half:])

    return extend([], list(columns)), n_held
