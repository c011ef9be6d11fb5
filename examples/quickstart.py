"""
Quickstart: a table
===================

This example goes from a CSV file to predictions with error bars. What to see: the
defaults are enough, the model detects a column without effect, and about 95 % of the
test rows lie inside their 95 % intervals.

The script writes the table itself: the power of wind turbines. The table is small, to
be quick. A cover is useful from a few thousand rows on.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import r2_score
from sklearn.model_selection import train_test_split

from overcover import OverlappingCoverRegressor
from overcover.datasets import load_table
from overcover.metrics import interval_coverage

# %%
# The file has a line of column names. All columns except the target are inputs.
rng = np.random.default_rng(0)
wind, temperature = rng.weibull(2.0, 1400) * 9, rng.normal(10, 8, 1400)
pitch, serial = rng.uniform(0, 15, 1400), rng.uniform(0, 1, 1400)
density = 1.293 * 273 / (273 + temperature)
power = 2.0 * density * np.tanh((wind / 11) ** 3) * np.cos(np.radians(4 * pitch))
power += 0.05 * rng.normal(size=1400)
folder = Path(tempfile.mkdtemp())
np.savetxt(
    folder / "turbines.csv",
    np.column_stack([wind, temperature, pitch, serial, power]),
    delimiter=",",
    header="wind,temperature,pitch,serial,power",
    comments="",
)

table = load_table(folder / "turbines.csv", target="power")
print(table.feature_names, table.data.shape)

# %%
# Fit. The most important parameter is ``subdomain_size``, the number of rows that train
# one machine. More rows are more accurate and slower. The default, 800, suits most
# data.
X, X_test, y, y_test = train_test_split(
    table.data, table.target, train_size=1000, random_state=0
)
model = OverlappingCoverRegressor(subdomain_size=150, random_state=0).fit(X, y)
print(f"{model.n_subdomains_} subdomains of 150 rows each")
for name, scale in zip(table.feature_names, model.length_scales_ / X.std(axis=0)):
    print(f"{name:>12}: length scale {scale:8.1f} standard deviations")

# %%
# Predict. The standard deviation is that of a new observation, with noise.
mean, std = model.predict(X_test, return_std=True)
low, high = model.predict_interval(X_test, coverage=0.95)
print(
    f"R2 {r2_score(y_test, mean):.3f}; mean standard deviation {std.mean():.3f}, "
    "for a noise of 0.05"
)
print(f"coverage of 95 % intervals: {interval_coverage(y_test, low, high):.1%}")

# %%
# Every tenth test row. Most of the observed outputs lie inside the bars.
some = np.argsort(mean)[::10]
bars = np.abs(np.stack([low, high]) - mean)[:, some]
order = np.arange(len(some))
figure, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
ax.errorbar(order, mean[some], bars, fmt="none", color="0.55", label="95 % interval")
ax.plot(order, y_test[some], ".", color="black", label="observed")
ax.set(xlabel="test rows, by prediction", ylabel="power")
ax.legend(loc="upper left")
plt.show()
