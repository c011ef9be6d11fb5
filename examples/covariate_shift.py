"""
Covariate shift: queries from another distribution
==================================================

Training rows lie around 0 and queries around 1.5, where the function changes faster
than one length scale for all rows allows. What to see: a Twin GP that gives more weight
to rows that resemble the queries is more accurate for the queries, and less accurate
elsewhere.
"""

import matplotlib.pyplot as plt
import numpy as np

from overcover import ImportanceWeightedTwinGP, TwinGP

rng = np.random.default_rng(0)
X, X_target = rng.normal(0, 1, (400, 1)), rng.normal(1.5, 0.4, (200, 1))


def curves(X):
    """Two outputs."""
    return np.hstack([np.sin(X**2), np.cos(1.5 * X)])


Y = curves(X) + 0.03 * rng.normal(size=(400, 2))

# %%
# `fit` needs inputs that resemble future queries, without outputs.
scales = (1.5, 1.5, 0.1, 0.1)  # too wide for the queries, so that weights matter
plain = TwinGP(*scales).fit(X, Y)
weighted = ImportanceWeightedTwinGP(*scales).fit(X, Y, X_target=X_target)
count = weighted.importance_.effective_sample_size_
print(f"effective sample size {count:.0f} of {len(X)}")

queries = rng.normal(1.5, 0.4, (500, 1))
for name, model in (("TwinGP", plain), ("ImportanceWeightedTwinGP", weighted)):
    there = np.sqrt(np.mean((model.predict(queries) - curves(queries)) ** 2))
    here = np.sqrt(np.mean((model.predict(X) - curves(X)) ** 2))
    print(f"{name:26} RMSE of queries {there:.3f}, around the rows {here:.3f}")

# %%
# Top: the first output. Bottom: the weights of the rows.
grid = np.linspace(-1.2, 2.6, 300)[:, None]
figure, (top, bottom) = plt.subplots(
    2, 1, figsize=(8, 5.5), height_ratios=(3, 1), sharex=True, layout="constrained"
)
top.scatter(X, Y[:, 0], s=6, color="0.7", label="training rows")
top.plot(grid, curves(grid)[:, 0], color="black", lw=1, label="truth")
top.plot(grid, plain.predict(grid)[:, 0], ls="--", label="TwinGP")
top.plot(grid, weighted.predict(grid)[:, 0], label="weighted")
top.axvspan(0.7, 2.3, color="0.93", zorder=0, label="range of the queries")
top.set(ylabel="first output", xlim=(-1.6, 2.8))
figure.legend(loc="outside upper center", ncols=3)
bottom.scatter(X, weighted.importance_.weights_, s=6, color="0.3")
bottom.set(xlabel="input", ylabel="weight of a row")
plt.show()
