"""
In a scikit-learn pipeline, with a grid search
==============================================

A data frame with a column of words, preprocessing, and a search over settings of the
cover and of the machine in it. What to see: nested names such as
``cover__machine__noise`` reach every setting, and the search is scikit-learn's own.
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
# Words become columns of zeros and ones. Few categories are fine; with many, distances
# mean little, and trees do better.
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
# "auto" finds length scales and noise far quicker than a grid; this shows how a setting
# is reached. Here every candidate is given, so nothing is tuned in the folds.
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
# The best of them, refitted on all training rows, against "auto".
auto = pipeline.set_params(cover__machine="gp").fit(train, y)
for name, model in (("grid search", search), ("auto", auto)):
    error = np.sqrt(np.mean((model.predict(test) - y_test) ** 2))
    print(f"{name:12} RMSE on test rows {error:.4f}")

# %%
# Standard deviations come through a pipeline too.
mean, std = auto.predict(test[:3], return_std=True)
print(np.column_stack([mean, std, y_test[:3]]).round(3))

# %%
# Errors of all candidates: the noise must be about right, and more overlap helps.
figure, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for overlap, tried in ranking.groupby("param_cover__overlap"):
    tried = tried.sort_values("param_cover__machine__noise")
    noises, errors = tried["param_cover__machine__noise"], -tried["mean_test_score"]
    ax.loglog(noises, errors, "o-", label=f"overlap {overlap:g}")
ax.set(xlabel="cover__machine__noise", ylabel="RMSE of the folds", title="grid search")
ax.legend()
plt.show()
