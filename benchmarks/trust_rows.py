"""Weights and outliers; sections of `trust`."""

import numpy as np
from sklearn.datasets import load_diabetes, make_friedman1
from sklearn.linear_model import Ridge
from sklearn.utils.validation import has_fit_parameter

import _trust
import overcover
from _common import note, print_table

# -- weights ---------------------------------------------------------------------------

FACTORS = (1e-6, 1.5, 1e6)
WEIGHS = ("ImportanceWeightedTwinGP", "cover of IWTGP")


def estimators(seed):
    """Every public estimator of regressions, with its defaults and a seed."""
    cover = overcover.OverlappingCoverRegressor
    seeded = {"random_state": seed}
    sized = {"subdomain_size": 40} | seeded
    return {
        "GP": overcover.GP(**seeded),
        "TwinGP": overcover.TwinGP(**seeded),
        "ImportanceWeightedTwinGP": overcover.ImportanceWeightedTwinGP(**seeded),
        "SharmaMittalTwinGP": overcover.SharmaMittalTwinGP(**seeded),
        "AnyRegressor(Ridge)": overcover.AnyRegressor(Ridge()),
        "cover of GP": cover(**sized),
        "cover of TwinGP": cover("tgp", **sized),
        "cover of IWTGP": cover("iwtgp", **sized),
        "cover of SMTGP": cover("smtgp", **sized),
        "CommitteeGP": overcover.CommitteeGP(expert_size=40, **seeded),
        "DomainDecompositionGP": overcover.DomainDecompositionGP(
            cell_size=40, **seeded
        ),
        "PatchworkGP": overcover.PatchworkGP(cell_size=40, **seeded),
        "NeighborhoodRegressor": overcover.NeighborhoodRegressor(
            n_neighbors=40, **seeded
        ),
        "LocalProbabilisticRegression": overcover.LocalProbabilisticRegression(
            n_neighbors=40, **seeded
        ),
        "MixtureGP": overcover.MixtureGP(expert_size=40, **seeded),
        "SparseGP": overcover.SparseGP(n_inducing=20, **seeded),
        "SparseGP, pic": overcover.SparseGP(n_inducing=20, method="pic", **seeded),
        "StructuredNeighbors": overcover.StructuredNeighbors(**seeded),
        "TreeGP": overcover.TreeGP(leaf_size=40, **seeded),
    }


def weights(settings):
    """Largest relative change where there should be none."""
    rows = []
    for name in _trust.cases(settings, estimators(0)):
        note(f"weights: {name}")
        rows.append({"estimator": name} | weight_changes(name, settings))
        print_table("Weights", rows)
    return rows


def weight_changes(name, settings):
    """By a common factor, without and with other weights, and by copies."""
    rng = np.random.default_rng(6)
    X = rng.uniform(-2, 2, (settings.n_weighted, 2))
    Y = np.column_stack([np.sin(X[:, 0]), np.cos(X[:, 1])])
    Y += 0.1 * rng.normal(size=Y.shape)
    queries, counts = rng.uniform(-2, 2, (50, 2)), rng.integers(1, 4, len(X))
    if not has_fit_parameter(estimators(0)[name], "sample_weight"):
        return {"note": "takes no weights"}

    def answers(X, Y, weight):
        target = {"X_target": queries} if name in WEIGHS else {}
        model = _trust.fit(
            estimators(0)[name], X, Y, sample_weight=weight, **target
        ).model
        if "Neighbors" in name or "Ridge" in name:  # no variances
            return [model.predict(queries)]
        mean, std = model.predict(queries, return_std=True)
        return [mean, std, *model.predict_interval(queries, 0.95)]

    plain, compared = answers(X, Y, None), answers(X, Y, counts.astype(float))
    copied = np.repeat(X, counts, axis=0), np.repeat(Y, counts, axis=0)
    changes = {"effect of weights": relative(compared, plain)}
    changes["copies"] = relative(answers(*copied, None), compared)
    for factor in FACTORS:
        ones = np.full(len(X), factor)
        changes[f"constant {factor:g}"] = relative(answers(X, Y, ones), plain)
        scaled = answers(X, Y, factor * counts)
        changes[f"times {factor:g}"] = relative(scaled, compared)
    return changes


def relative(results, reference):
    """Largest difference of any array, relative to its spread and size."""
    return max(
        float(np.abs(a - b).max() / np.abs(b).max()) for a, b in zip(results, reference)
    )


# -- outliers --------------------------------------------------------------------------

MAGNITUDES = (3.0, 10.0, 100.0)


def outliers(settings):
    """Error on clean rows with 2 % of the outputs corrupted, over that without."""
    rows = []
    for name in _trust.cases(settings, CLEAN):
        for seed in settings.seeds[:1]:
            rows += outlier_rows(name, CLEAN[name](settings, seed), seed)
            print_table("Outliers: error on clean rows over that without", rows)
    return rows


def outlier_rows(name, problem, seed, share=0.02):
    """One row per magnitude, in deviations of the outputs."""
    clean = _trust.assess(problem, seed)
    spread = problem.Y_train.std(axis=0)
    rows = []
    for magnitude in MAGNITUDES:
        note(f"outliers: {name}, {magnitude:g} deviations, seed {seed}")
        rng = np.random.default_rng([7, seed])
        bad = rng.random(problem.Y_train.shape) < share
        signs = rng.choice([-1.0, 1.0], bad.shape)
        sizes = magnitude * rng.uniform(0.5, 1.5, bad.shape)
        Y = problem.Y_train + bad * signs * sizes * spread
        scores = _trust.assess(problem._replace(Y_train=Y), seed)
        rows.append(
            {
                "case": name,
                "seed": seed,
                "deviations": magnitude,
                "rmse_clean": clean["rmse"],
                "coverage_clean": clean["coverage_95"],
                "ratio": scores["rmse"] / clean["rmse"],
            }
            | scores
        )
    return rows


def waves(settings, seed, noise=0.1):
    """The function of README, with its useless column."""
    rng = np.random.default_rng([8, seed])
    X = rng.uniform(-3, 3, (settings.n_rows + 1000, 3))
    y = np.sin(X[:, 0]) * np.cos(X[:, 1]) + noise * rng.normal(size=len(X))
    return _trust.split("waves", X, y, settings.n_rows, seed)


def friedman1(settings, seed):
    """Friedman's first function with five useless columns."""
    X, y = make_friedman1(settings.n_rows + 1000, 10, noise=1.0, random_state=seed)
    return _trust.split("friedman1", X, y, settings.n_rows, seed)


def diabetes(settings, seed):
    """scikit-learn's diabetes: few rows, much noise."""
    X, y = load_diabetes(return_X_y=True)
    return _trust.split("diabetes", X, y, 300, seed)


CLEAN = {
    "waves with noise .1": waves,
    "waves without noise": lambda settings, seed: waves(settings, seed, 0.0),
    "friedman1": friedman1,
    "diabetes": diabetes,
    "kin40k": lambda settings, seed: _trust.from_file(
        "kin40k", settings.n_rows, 1000, seed
    ),
}
