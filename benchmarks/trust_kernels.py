"""kernel="auto" against every fixed kernel; a section of `trust`."""

import numpy as np
from sklearn.datasets import (
    load_diabetes,
    load_linnerud,
    make_friedman1,
    make_friedman2,
    make_friedman3,
)

import _common
import _trust
from _common import note, print_table
from overcover import GP

FIXED = ("rbf", "matern52", "matern32", "matern12")
FILES = ("kin40k", "protein", "bike", "sarcos_small", "rf1", "poserlike")
# Corrupted values of a test set, in deviations, would hide all differences.
LARGEST = 20.0
N_OUTPUTS = 1  # of a data file, at most


def kernels(settings):
    """Errors of all kernels, as ratios to the best fixed one."""
    rows = []
    for name in _trust.cases(settings, SETS):
        for seed in settings.seeds[:1]:
            note(f"kernels: {name}, seed {seed}")
            rows.append(kernel_row(name, SETS[name](settings, seed), seed))
            print_table("Kernels", rows[-1:])
    print_table("Kernels", rows)
    return rows


def kernel_row(name, problems, seed):
    """Mean error over problems and outputs, in deviations of the training rows."""
    row = {"case": name, "seed": seed, "n_rows": len(problems[0].X_train)}
    chosen, errors = [], {}
    for kernel in (*FIXED, "auto"):
        scores, seconds, inside = [], 0.0, []
        for problem in problems:
            model = _trust.default(seed, GP(kernel=kernel))
            report = _trust.fit(model, problem.X_train, problem.Y_train)
            scores.append(standard_error(problem, model.predict(problem.X_test)))
            inside.append(_trust.holds(model, problem.X_test, problem.Y_test))
            seconds += report.seconds
            if kernel == "auto":
                chosen.append(str(model.machine_.used_kernel_))
        errors[kernel] = float(np.mean(scores))
        row[f"{kernel}_s"] = seconds
    best = min(FIXED, key=errors.__getitem__)
    row |= {"chosen": " ".join(sorted(set(chosen))), "best": best}
    row |= {"rmse": errors["auto"], "coverage_95": float(np.mean(inside))}
    row |= {kernel: error / errors[best] for kernel, error in errors.items()}
    return row


def standard_error(problem, mean):
    """Mean over outputs of the RMSE in deviations of the training rows."""
    n_rows = len(problem.Y_test)
    train = problem.Y_train.reshape(len(problem.Y_train), -1)
    deviation = np.where(train.std(axis=0) > 0, train.std(axis=0), 1.0)
    truth = problem.Y_test.reshape(n_rows, -1)
    kept = (np.abs(truth - train.mean(axis=0)) <= LARGEST * deviation).all(axis=1)
    errors = _common.rmse(truth[kept], mean.reshape(n_rows, -1)[kept])
    return float(np.mean(errors / deviation))


# -- data sets -------------------------------------------------------------------------


def bundled(load):
    """Two thirds of the rows of a set that comes with scikit-learn, twice or more."""

    def make(settings, seed):
        X, Y = load(return_X_y=True)
        n_splits = 5 if len(X) < 100 else 2
        n_train = 2 * len(X) // 3 if settings.is_full else min(2 * len(X) // 3, 60)
        return [
            _trust.split(load.__name__, X, Y, n_train, 10 * seed + i)
            for i in range(n_splits)
        ]

    return make


def generated(make_rows, noise):
    """One of Friedman's functions."""

    def make(settings, seed):
        n_rows = settings.n_rows
        X, y = make_rows(n_rows + 1000, noise=noise, random_state=seed)
        return [_trust.split(make_rows.__name__, X, y, n_rows, seed)]

    return make


def stored(name):
    """Random rows of a data file."""

    def make(settings, seed):
        n_train = settings.n_kernel_rows
        problem = _trust.from_file(name, n_train, 1500, seed)
        if problem.Y_train.ndim == 1:
            return [problem]
        varied = np.flatnonzero(problem.Y_train.std(axis=0) > 0)[:N_OUTPUTS]
        Y, Y_test = problem.Y_train[:, varied], problem.Y_test[:, varied]
        return [problem._replace(Y_train=Y, Y_test=Y_test)]

    return make


SMALL = {
    "diabetes": bundled(load_diabetes),
    "linnerud": bundled(load_linnerud),
    "friedman1": generated(make_friedman1, 1.0),
    "friedman2": generated(make_friedman2, 50.0),
    "friedman3": generated(make_friedman3, 0.1),
}
SETS = SMALL | {name: stored(name) for name in FILES}
