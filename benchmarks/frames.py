"""A table as it is: words of 3, 30 and 3,000 levels, dates and gaps, straight into fit.

    python benchmarks/frames.py [--quick]

Prints a table and writes benchmarks/results/frames_table.json. The cover encodes the
table itself, or stands at the end of a pipeline of scikit-learn's encoders and imputer;
LightGBM and CatBoost take words as categories and gaps as they are, with the number of
trees chosen on a tenth of the training rows. Simulated tables, two seeds, one thread;
errors are in standard deviations of the test outputs.
"""

from typing import NamedTuple

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, TargetEncoder

import _common
from _common import note, print_table, timed
from overcover import OverlappingCoverRegressor

WORDS, NUMBERS = ["kind", "shop", "customer"], ["size", "heat", "age"]


class Settings(NamedTuple):
    """Sizes of a run."""

    n_train: int
    n_test: int
    size: int
    """Rows of a subdomain."""
    seeds: tuple[int, ...]


FULL = Settings(3000, 2000, 800, (0, 1))
QUICK = Settings(150, 60, 60, (0,))


def make_table(n_rows, seed):
    """A messy table, and its outputs.

    Kinds change the slope of a number, shops add and tilt, customers add; the year has
    a season; one number is missing at random, another mostly where it is large.
    """
    rng = np.random.default_rng(seed)
    kind, shop = rng.integers(0, 3, n_rows), rng.integers(0, 30, n_rows)
    often = 1.0 / np.arange(1, 3001) ** 0.7
    customer = rng.choice(3000, n_rows, p=often / often.sum())
    size, heat, age = rng.normal(size=(3, n_rows))
    day = rng.uniform(0, 900, n_rows)
    slope, add, tilt = (
        np.array([1.0, 0.0, -0.8]),
        rng.normal(size=30),
        rng.normal(size=30),
    )
    y = slope[kind] * size + np.sin(2 * heat) + 0.5 * heat * age
    y += (
        0.8 * add[shop]
        + 0.3 * tilt[shop] * heat
        + 0.7 * rng.normal(size=3000)[customer]
    )
    y += 0.6 * np.sin(2 * np.pi * day / 365.25) + 0.3 * rng.normal(size=n_rows)
    table = pd.DataFrame(
        {
            "kind": np.array(["bulk", "box", "bag"], dtype=object)[kind],
            "shop": pd.Categorical([f"shop {s}" for s in shop]),
            "customer": np.array([f"C{c:04}" for c in customer], dtype=object),
            "when": pd.Timestamp("2023-01-01") + pd.to_timedelta(day.round(), unit="D"),
            "size": np.where(rng.random(n_rows) < 0.1, np.nan, size),
            "heat": heat,
            "age": np.where((age > 0.8) & (rng.random(n_rows) < 0.6), np.nan, age),
        }
    )
    return table, y


def days(frame):
    """Dates as days since 1970."""
    return (frame - pd.Timestamp(0)) / pd.Timedelta(days=1)


def pipeline(model, one_hot, target):
    """The model behind scikit-learn's encoders of some columns."""
    one = OneHotEncoder(
        max_categories=31, handle_unknown="infrequent_if_exist", sparse_output=False
    )
    folds = KFold(5, shuffle=True, random_state=_common.SEED)
    encoders = make_column_transformer(
        (one, one_hot),
        (TargetEncoder(cv=folds), target),
        (FunctionTransformer(days), ["when"]),
        (SimpleImputer(strategy="median", add_indicator=True), NUMBERS),
    )
    return make_pipeline(encoders, model)


class Boosting:
    """LightGBM with its own categories and gaps."""

    def fit(self, table, y):
        """Choose the number of trees on a tenth of the rows."""
        from lightgbm import LGBMRegressor, early_stopping

        self.kinds = {name: pd.CategoricalDtype(table[name].unique()) for name in WORDS}
        X, n_held = self.numbers(table), len(table) // 10
        trees = {"n_estimators": 2000, "learning_rate": 0.03, "num_leaves": 15}
        options = {"n_jobs": 1, "random_state": _common.SEED, "verbose": -1}
        stop = early_stopping(50, verbose=False)
        self.model = LGBMRegressor(**trees, **options).fit(
            X[n_held:],
            y[n_held:],
            eval_X=X[:n_held],
            eval_y=y[:n_held],
            callbacks=[stop],
        )
        n_trees = max(self.model.best_iteration_, 1)
        trees["n_estimators"] = n_trees
        self.model = LGBMRegressor(**trees, **options).fit(X, y)
        return self

    def numbers(self, table):
        """Words as categories, dates as days."""
        words = table[WORDS].astype(object)
        known = {
            name: words[name].where(words[name].isin(kind.categories)).astype(kind)
            for name, kind in self.kinds.items()
        }
        return table.assign(when=days(table["when"]), **known)

    def predict(self, table):
        """Answers of all trees."""
        return self.model.predict(self.numbers(table))


class SymmetricBoosting:
    """CatBoost with its own codes of categories, and gaps as they are."""

    def fit(self, table, y):
        """Choose the number of trees on a tenth of the rows."""
        from catboost import CatBoostRegressor

        X, n_held = self.readable(table), len(table) // 10
        options = {"thread_count": 1, "random_seed": _common.SEED, "verbose": False}
        options |= {"cat_features": WORDS, "allow_writing_files": False}
        decide = X[:n_held], y[:n_held]
        chosen = CatBoostRegressor(iterations=2000, **options).fit(
            X[n_held:], y[n_held:], eval_set=decide, early_stopping_rounds=50
        )
        n_trees = max(chosen.tree_count_, 1)
        # The rate that its default chose for so many trees.
        rate = chosen.get_all_params()["learning_rate"]
        self.model = CatBoostRegressor(n_trees, learning_rate=rate, **options).fit(X, y)
        return self

    def readable(self, table):
        """Words as text, dates as days."""
        return table.assign(when=days(table["when"]), **table[WORDS].astype(str))

    def predict(self, table):
        """Answers of all trees."""
        return self.model.predict(self.readable(table))


def contenders(size):
    """Functions that make a model, by name."""

    def cover():
        options = {"subdomain_size": size, "n_jobs": 1, "random_state": _common.SEED}
        return OverlappingCoverRegressor(**options)

    return {
        "cover, table as it is": cover,
        "cover, one-hot (31 at most)": lambda: pipeline(cover(), WORDS, []),
        "cover, target codes": lambda: pipeline(cover(), [], WORDS),
        "LightGBM": Boosting,
        "CatBoost": SymmetricBoosting,
    }


def compare(settings):
    """Errors of all contenders, one row for each and its seeds."""
    rows = []
    for name, make in contenders(settings.size).items():
        errors, held, seconds = [], [], []
        for seed in settings.seeds:
            note(f"{name}, seed {seed}")
            table, y = make_table(settings.n_train + settings.n_test, seed)
            train, test = slice(settings.n_train), slice(settings.n_train, None)
            model, took = timed(make().fit, table[train], y[train])
            X, Y = table[test], y[test]
            error = float(np.sqrt(np.mean((Y - model.predict(X)) ** 2)) / Y.std())
            errors.append(error)
            seconds.append(took)
            last = model[-1] if hasattr(model, "steps") else model
            if hasattr(last, "predict_interval"):
                inputs = X if last is model else model[:-1].transform(X)
                low, high = last.predict_interval(inputs)
                held.append(float(np.mean((low <= Y) & (high >= Y))))
        rows.append(
            {
                "method": name,
                "rmse": float(np.mean(errors)),
                "rmse_of_seeds": errors,
                "coverage_95": float(np.mean(held)) if held else None,
                "fit_seconds": float(np.mean(seconds)),
                "n_train": settings.n_train,
                "n_test": settings.n_test,
            }
        )
    print_table("A table as it is", rows)
    return rows


SECTIONS = {"table": compare}


def main(arguments=None):
    """Run the comparison."""
    summary = __doc__.splitlines()[0]
    _common.run_sections(summary, "frames", SECTIONS, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
