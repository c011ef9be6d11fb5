"""Many outputs: does one output's error depend on the others? Sections of `trust`."""

import numpy as np

import _trust
from _common import note, print_table
from _trust import smooth_function

N_TEST = 1000


def outputs(settings):
    """A noisy output beside one without noise; mixtures, joint against alone."""
    rows = [pair(settings, seed) for seed in settings.seeds[:2]]
    print_table("A noisy output beside one without noise: R2", rows)
    for seed in settings.mixtures:
        rows += mixture(settings, seed)
        print_table(f"Mixture {seed}: joint over alone", rows[-1:])
    return rows


def pair(settings, seed):
    """R2 of two outputs, one noisy (the best possible R2 is .96) and one free of it."""
    n_rows = 2000 if settings.is_full else 200
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n_rows + N_TEST, 3))
    noisy = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=len(X))
    free = np.cos(X[:, 0]) + np.sin(X[:, 2])
    Y = np.column_stack([noisy, free])
    report = _trust.fit(_trust.default(seed), X[:n_rows], Y[:n_rows])
    truth, mean = Y[n_rows:], report.model.predict(X[n_rows:])
    r2 = 1 - np.mean((truth - mean) ** 2, axis=0) / truth.var(axis=0)
    low, high = report.model.predict_interval(X[n_rows:], 0.95)
    inside = ((low <= truth) & (truth <= high)).mean(axis=0)
    return {
        "case": "pair",
        "seed": seed,
        "r2_noisy": float(r2[0]),
        "r2_free": float(r2[1]),
        "coverage_noisy": float(inside[0]),
        "coverage_free": float(inside[1]),
        "warnings": ", ".join(report.warnings) or "none",
        "fit_s": report.seconds,
    }


def mixture(settings, seed):
    """Random outputs that differ in noise, relevant columns and smoothness."""
    rng = np.random.default_rng([15, seed])
    n_rows = settings.n_rows
    d, q = int(rng.integers(2, 9)), int(rng.integers(2, 6))
    X = rng.uniform(-2, 2, (n_rows + N_TEST, d))
    clean, noises = np.empty((len(X), q)), rng.uniform(0, 1, q)
    noises[rng.random(q) < 0.4] = 0.0
    for j in range(q):
        scales = np.exp(rng.uniform(np.log(0.7), np.log(4), d))
        scales[rng.random(d) < 0.5] = np.inf
        scales[rng.integers(d)] = 1.5
        clean[:, j] = smooth_function(rng, scales)(X)
        clean[:, j] /= clean[:, j].std()
    Y = clean + noises * rng.normal(size=clean.shape)
    X_train, X_test, tested = X[:n_rows], X[n_rows:], Y[n_rows:]
    note(f"mixture {seed}: {n_rows} x {d} -> {q}")
    joint = _trust.fit(_trust.default(seed), X_train, Y[:n_rows])
    mean = joint.model.predict(X_test)
    low, high = joint.model.predict_interval(X_test, 0.95)
    rows = []
    for j in range(q):
        alone = _trust.fit(_trust.default(seed), X_train, Y[:n_rows, j])
        mean_alone = alone.model.predict(X_test)
        true = clean[n_rows:, j]
        rows.append(
            {
                "case": "mixture",
                "seed": seed,
                "output": j,
                "n_features": d,
                "n_outputs": q,
                "noise": float(noises[j]),
                "rmse_joint": _trust.rmse(tested[:, j], mean[:, j]),
                "rmse_alone": _trust.rmse(tested[:, j], mean_alone),
                "coverage_95": float(
                    np.mean((low[:, j] <= tested[:, j]) & (tested[:, j] <= high[:, j]))
                ),
                "coverage_alone": _trust.holds(alone.model, X_test, tested[:, j]),
                "ratio_of_function": _trust.rmse(true, mean[:, j])
                / _trust.rmse(true, mean_alone),
                "kernel_joint": str(joint.model.machine_.used_kernel_),
                "kernel_alone": str(alone.model.machine_.used_kernel_),
                "warnings": ", ".join(joint.warnings) or "none",
                "fit_s": joint.seconds,
                "fit_alone_s": alone.seconds,
            }
        )
        rows[-1]["ratio"] = rows[-1]["rmse_joint"] / rows[-1]["rmse_alone"]
    print_table(f"Mixture {seed}", rows)
    return rows
