"""All methods side by side; agreement with GPy; sparse GPs with their own tuning.

    python benchmarks/systems.py [--section table,agreement,learned,special] [--quick]

Prints a table per section and writes benchmarks/results/systems_SECTION.json. In the
table all methods have the same hyperparameters and the same number of rows M. Errors
are in standardised units.
"""

import warnings
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np

import _common
from _common import note, print_table
from overcover import (
    GP,
    CommitteeGP,
    LocalProbabilisticRegression,
    MixtureGP,
    NeighborhoodRegressor,
    OverlappingCoverRegressor,
    SparseGP,
    StructuredNeighbors,
    TreeGP,
    TwinGP,
)
from overcover.baselines.committee import RULES
from overcover.metrics import interval_coverage


class Settings(NamedTuple):
    """Sizes of a run."""

    size: int
    n_test: int
    """Test rows, at random, that all systems predict."""

    n_train: int | None
    names: tuple[str, ...]
    """Data sets."""

    n_lines: int
    """Lines along which `boundaries` measures jumps."""

    n_points: int
    """Points of each line."""

    plane_size: int
    """Rows of a subdomain in the plane of `boundaries`."""


FULL = Settings(400, 1000, 4000, ("kin40k", "protein", "poserlike"), 10, 2001, 200)
QUICK = Settings(80, 30, 400, ("kin40k",), 2, 801, 20)


def contenders(machine, size, n_jobs=2):
    """Every system by name, with one kernel and the same budget."""
    options = {"n_jobs": n_jobs, "random_state": _common.SEED}
    cover = {"subdomain_size": size, **options}
    systems = {
        "full GP": GP(machine.kernel, machine.length_scale, machine.noise),
        "cover, p=.9": OverlappingCoverRegressor(machine, **cover),
        "cover, p=0, RPC (Local-RPC)": OverlappingCoverRegressor(
            machine, overlap=0.0, partition="rpc", router="euclidean", **cover
        ),
        "NN scheme": NeighborhoodRegressor(machine, size, **options),
        "weighted kNN": StructuredNeighbors(
            "knn", input_length_scale=machine.length_scale, n_jobs=n_jobs
        ),
    }
    for method in ("fic", "dtc", "sor", "nystrom", "pic"):
        systems[method.upper()] = SparseGP(
            machine, method=method, n_inducing=size, **options
        )
    for rule in RULES:
        systems[rule] = CommitteeGP(machine, rule=rule, expert_size=size, **options)
    systems["mixture of GPs"] = MixtureGP(machine, expert_size=size, **options)
    systems["tree of GPs"] = TreeGP(machine, leaf_size=size, **options)
    for method in ("hsic", "kta"):
        systems[method.upper()] = StructuredNeighbors(
            method, input_length_scale=machine.length_scale, n_jobs=n_jobs
        )
    systems["LPR"] = LocalProbabilisticRegression(machine, size, **options)
    return systems


# -- one table -------------------------------------------------------------------------


def table(settings):
    """Error, log density, coverage and seconds of all systems."""
    rows = []
    for name in settings.names:
        data = _common.load(name).first(settings.n_train, None)
        note(f"table: {name}, hyperparameters")
        machine = GP(per_output=False)
        rng = np.random.RandomState(_common.SEED)
        X, Y = _common.distinct_rows(data.X_train, data.Y_train)
        machine.tune(X, Y, None, settings.size, rng, 2)
        machine = GP(machine.used_kernel_, machine.length_scale_, float(machine.noise_))
        for label, model in contenders(machine, settings.size).items():
            note(f"table: {name}, {label}")
            rows.append(table_row(data, label, model, settings))
    print_table(f"All systems, M = {settings.size}", rows)
    return rows


def table_row(data, label, model, settings):
    """One system on one data set."""
    _, fit_s = _common.timed(model.fit, data.X_train, data.Y_train)
    asked = data.some_test_rows(settings.n_test)
    X, Y = data.X_test[asked], data.Y_test[asked]
    row = {"data": data.name, "method": label, "n_train": len(data.X_train)}
    row |= {"n_test": len(X), "fit_s": fit_s}
    if isinstance(model, StructuredNeighbors):
        mean, seconds = _common.timed(model.predict, X)
        row["rmse"] = float(_common.rmse(Y, mean.reshape(Y.shape)).mean())
        return row | {"us_query": 1e6 * seconds / len(X)}
    (mean, std), seconds = _common.timed(said_of, model, X)
    half = 1.96 * std
    return row | {
        "rmse": float(_common.rmse(Y, mean.reshape(Y.shape)).mean()),
        "nlpd": _common.nlpd(Y, mean, std),
        "coverage_95": interval_coverage(Y, mean - half, mean + half),
        "us_query": 1e6 * seconds / len(X),
        "n_negative": negative_variances(model, X),
    }


def said_of(model, X):
    """Mean and std, without the warning of negative variances."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.predict(X, return_std=True)


def negative_variances(model, X):
    """The number of negative predictive variances; only Nystrom has them."""
    if not isinstance(model, SparseGP):
        return 0
    return int(np.sum(model.predict_variance(X) < 0))


# -- agreement with an independent implementation --------------------------------------


def agreement(settings):
    """FITC and DTC of GPy at the same hyperparameters and inducing points."""
    if find_spec("GPy") is None:
        note("GPy is not installed: pip install GPy")
        return []
    import GPy
    from GPy.inference.latent_function_inference import DTC, FITC

    rng = np.random.default_rng(_common.SEED)
    X, X_query = rng.uniform(-3, 3, (400, 2)), rng.uniform(-3, 3, (100, 2))
    y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=400)
    y -= y.mean()
    noise, Z = 0.02, X[:30].copy()
    rows = []
    for method, inference in (("fic", FITC()), ("dtc", DTC())):
        # GPy adds 1e-6 to the inducing points' matrix, overcover 1e-10: make them
        # equal.
        inference.const_jitter = 1e-10
        ours = SparseGP(
            GP(kernel="rbf", length_scale=1.2, noise=noise), method=method, inducing=Z
        ).fit(X, y)
        kernel = GPy.kern.RBF(2, variance=1.0, lengthscale=1.2)
        theirs = GPy.core.SparseGP(
            X,
            y[:, None],
            Z.copy(),
            kernel,
            GPy.likelihoods.Gaussian(variance=noise),
            inference_method=inference,
        )
        mean, variance = theirs.predict(X_query)
        # Our noise is relative to the signal's amplitude, which is one in GPy here.
        own = ours.predict_variance(X_query).ravel() / ours.amplitude_sq_[0]
        rows.append(
            {
                "method": method,
                "mean_difference": float(
                    np.abs(ours.predict(X_query) - mean[:, 0]).max()
                ),
                "variance_difference": float(np.abs(own - variance[:, 0]).max()),
                "gpy": GPy.__version__,
            }
        )
    print_table("Largest difference from GPy", rows)
    return rows


# -- hyperparameters of one's own ------------------------------------------------------

N_INDUCING = 200


def learned(settings):
    """Sparse GPs with the cover's hyperparameters, and with those of their bound."""
    rows = []
    for name in settings.names[:1]:
        data = _common.load(name).first(settings.n_train, None)
        for method in ("fic", "dtc"):
            for tuning in ("local", "bound"):
                note(f"learned: {name}, {method}, {tuning}")
                model = SparseGP(
                    method=method,
                    n_inducing=min(N_INDUCING, settings.size),
                    tuning=tuning,
                    n_jobs=2,
                    random_state=_common.SEED,
                )
                row = table_row(data, method.upper(), model, settings)
                rows.append(
                    row | {"tuning": tuning, "noise": float(model.machine_.noise_)}
                )
    print_table("Sparse GPs: hyperparameters of the cover and their own", rows)
    return rows


# -- where a stationary GP is wrong ----------------------------------------------------

N_ROWS, SEEDS = 300, (0, 1, 2)


def jump(x):
    """A smooth function, and a step."""
    return np.sin(3.0 * x) + 3.0 * (x > 0.3)


def s_curve(y):
    """The input of an output; three outputs share every input in the middle."""
    return y + 0.3 * np.sin(2 * np.pi * y)


def specialists(length_scale, noise, seed):
    """Methods of one input with the same kernel."""
    machine = GP("rbf", length_scale, noise)
    options = {"random_state": seed}
    return {
        "full GP": machine,
        "cover, p=.9": OverlappingCoverRegressor(machine, subdomain_size=50, **options),
        "mixture of GPs": MixtureGP(machine, expert_size=100, **options),
        "tree of GPs": TreeGP(machine, **options),
        "LPR": LocalProbabilisticRegression(machine, 50, **options),
        "TwinGP": TwinGP(2 * length_scale, 0.1, 0.01, 0.01, n_starts=2, **options),
    }


def special(settings):
    """Errors at a jump, and shares of predictions on a curve; means of all seeds."""
    by_method: dict[str, list] = {}
    for seed in SEEDS:
        errors, shares = errors_at_jump(seed), shares_on_curve(seed)
        for method, error in errors.items():
            by_method.setdefault(method, []).append((error, shares[method]))
    rows = []
    for method, pairs in by_method.items():
        error, share = np.mean(pairs, axis=0)
        rows.append({"method": method, "rmse_at_jump": error, "on_curve": share})
    print_table("A jump, and a curve of several outputs", rows)
    return rows


def errors_at_jump(seed):
    """RMSE of every method; the noise is 0.1."""
    rng = np.random.default_rng(seed)
    x, queries = rng.uniform(-2, 2, N_ROWS), rng.uniform(-2, 2, 500)
    y = jump(x) + 0.1 * rng.normal(size=N_ROWS)
    return {
        method: float(_common.rmse(jump(queries), mean))
        for method, mean in means(specialists(0.7, 0.003, seed), x, y, queries).items()
    }


def means(models, x, y, queries):
    """The predictions of all models, by name."""
    return {
        name: model.fit(x[:, None], y).predict(queries[:, None])
        for name, model in models.items()
    }


def shares_on_curve(seed):
    """Shares of predictions near the curve, where it has three outputs."""
    rng = np.random.default_rng(seed)
    y, queries = rng.uniform(0, 1, N_ROWS), np.linspace(0.35, 0.65, 100)
    x = s_curve(y) + 0.01 * rng.normal(size=N_ROWS)
    return {
        method: float(np.mean(np.abs(s_curve(mean) - queries) < 0.06))
        for method, mean in means(specialists(0.1, 0.05, seed), x, y, queries).items()
    }


# -- the command -----------------------------------------------------------------------

SECTIONS = {"table": table, "agreement": agreement, "learned": learned}
SECTIONS["special"] = special


def main(arguments=None):
    """Run the chosen sections."""
    summary = __doc__.splitlines()[0]
    _common.run_sections(summary, "systems", SECTIONS, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
