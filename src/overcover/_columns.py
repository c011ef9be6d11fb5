"""Which columns a fitted model can do without, measured on rows held out.

A few subdomains are fitted with and without the columns; these can be left out if no
output's squared error grows by more than `TOLERANCE` and twice its standard error.
"""

import numpy as np

# Subdomains that are tried, rows of each, and the share of them held out.
N_SUBDOMAINS, MOST_ROWS, HELD_OUT = 8, 400, 0.25
# With fewer rows held out than this, nothing is measured.
LEAST_ROWS = 40
# How much squared errors may grow, and standard errors that are allowed for.
TOLERANCE, STANDARD_ERRORS = 0.02, 2.0
# Squared errors below this share of an output's variance are rounding.
ROUNDING = 1e-12


def _trials_of(model):
    """(X, Y, n_fitted) of some subdomains, fitted rows first; empty without rows."""
    rng, machine, trials = np.random.default_rng(0), model.machine_, []
    n_tried = min(N_SUBDOMAINS, model.n_subdomains_)
    for k in np.linspace(0, model.n_subdomains_ - 1, n_tried).astype(int):
        recalled = machine.recall(model.states_[k])
        if recalled is None:
            return []
        rows = rng.permutation(len(recalled.X))[:MOST_ROWS]
        n_held = int(HELD_OUT * len(rows))
        if n_held:
            trial = recalled.X[rows], recalled.outputs(rows), len(rows) - n_held
            trials.append(trial)
    return trials


def _errors_without(machine, trials, columns):
    """Squared errors of the rows held out, shape (n_held, n_outputs)."""
    errors = []
    for X, Y, n_fitted in trials:
        X = X.copy()
        X[:, columns] = 0.0
        answer = machine.answer_once(X[:n_fitted], Y[:n_fitted], None, X[n_fitted:])
        errors.append((answer.mean - Y[n_fitted:]) ** 2)
    return np.concatenate(errors)


def find_needless(model, columns):
    """Columns to leave out together, least promising first; number of held-out rows."""
    trials, machine = _trials_of(model), model.machine_
    n_held = sum(len(Y) - n_fitted for _, Y, n_fitted in trials)
    if n_held < LEAST_ROWS:
        return [], n_held
    before = _errors_without(machine, trials, [])
    variance = np.concatenate([Y for _, Y, _ in trials]).var(axis=0)
    allowed = TOLERANCE * before.mean(axis=0) + ROUNDING * variance

    def is_needless(some):
        growth = _errors_without(machine, trials, some) - before
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
