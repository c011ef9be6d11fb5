"""
In a scikit-learn pipeline, with a grid search
==============================================

A data frame has a column of words. A pipeline encodes it, and scikit-learn's grid
search varies parameters of the cover and of its machine. What to see: nested names such
as ``cover__machine__noise`` reach every parameter.
"""

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import OneHotEncoder

from overcover import GP, OverlappingCoverRegressor

rng = np.random.default_rng(0)
n_rows = 900
table = pd.DataFrame(
    {
        "load": rng.uniform(0, 1, n_rows),
        "speed": rng.uniform(0, 1, n_rows),
        "oil": rng.choice(["thin", "medium", "thick"], n_rows),
    }
)
friction = table["oil"].map({"thin": 0.5, "medium": 1.0, "thick": 1.6})
heat = np.sin(3 * table["speed"]) * friction + table["load"] ** 2
heat += 0.05 * rng.normal(size=n_rows)
train, test, y, y_test = train_test_split(table, heat, random_state=0)

# %%
# Words become columns of zeros and ones. This works for few categories. With many,
# distances mean little, and trees are better.
pipeline = Pipeline(
    [
        (
            "columns",
            make_column_transformer(
                (OneHotEncoder(sparse_output=False), ["oil"]), remainder="passthrough"
            ),
        ),
        (
            "cover",
            OverlappingCoverRegressor(
                GP(length_scale=1.0), subdomain_size=100, random_state=0
            ),
        ),
    ]
)

# %%
# The default, "auto", learns length scales and noise much faster than a grid; this is
# to show the names. All hyperparameters are fixed here, so no fold tunes any.
search = GridSearchCV(
    pipeline,
    {
        "cover__machine__noise": [1e-4, 1e-2, 1.0],
        "cover__overlap": [0.5, 0.9],
    },
    scoring="neg_root_mean_squared_error",
    cv=3,
).fit(train, y)

ranking = pd.DataFrame(search.cv_results_).sort_values("rank_test_score")
for _, row in ranking.iloc[[0, 1, 2, -1]].iterrows():
    print(f"RMSE {-row['mean_test_score']:.4f}  {row['params']}")

# %%
# The best model of the grid, refitted on all training rows, and "auto".
auto = pipeline.set_params(cover__machine="gp").fit(train, y)
for name, model in (("grid search", search), ("auto", auto)):
    error = np.sqrt(np.mean((model.predict(test) - y_test) ** 2))
    print(f"{name:12} RMSE on test rows {error:.4f}")

# %%
# A pipeline passes standard deviations on.
mean, std = auto.predict(test[:3], return_std=True)
print(np.column_stack([mean, std, y_test[:3]]).round(3))

# %%
# The errors of all candidates. The noise must be about right, and more overlap helps.
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for overlap, trials in ranking.groupby("param_cover__overlap"):
    trials = trials.sort_values("param_cover__machine__noise")
    noises, errors = trials["param_cover__machine__noise"], -trials["mean_test_score"]
    ax.loglog(noises, errors, "o-", label=f"overlap {overlap:g}")
ax.set(
    xlabel="cover__machine__noise", ylabel="RMSE, mean of folds", title="grid search"
)
ax.legend()
plt.show()
