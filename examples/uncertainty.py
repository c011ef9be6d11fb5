"""
Uncertainty: intervals with the right coverage
==============================================

The noise of these rows grows from left to right, and there is a gap without rows. What
to see: intervals widen with the noise and in the gap, and about 95 % of the test rows
lie inside 95 % intervals. The intervals of a textbook GP, with one noise for all rows,
are right on average only: too wide on the left, and too narrow on the right.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import Matern, WhiteKernel

from overcover import OverlappingCoverRegressor
from overcover.plots import CalibrationDisplay


def sample(n_rows, rng):
    """Rows of a wave, noisier to the right; none between 5 and 6."""
    x = rng.uniform(0, 10, 2 * n_rows)
    x = x[(x < 5) | (x > 6)][:n_rows]
    return x[:, None], np.sin(2 * x) + (0.05 + 0.06 * x) * rng.normal(size=n_rows)


rng = np.random.default_rng(0)
X, y = sample(1000, rng)
X_test, y_test = sample(2000, rng)
model = OverlappingCoverRegressor(subdomain_size=200, random_state=0).fit(X, y)
textbook = GaussianProcessRegressor(
    Matern(1.0, nu=1.5) + WhiteKernel(0.1), normalize_y=True
).fit(X[:300], y[:300])

# %%
# Coverage on the left and on the right.
mean, std = textbook.predict(X_test, return_std=True)
low, high = model.predict_interval(X_test, coverage=0.95)
inside = (low <= y_test) & (y_test <= high)
inside_textbook = np.abs(y_test - mean) <= 1.96 * std
print(f"{'coverage (95 %)':22}{'x < 5':>8}{'x > 6':>8}")
left = X_test[:, 0] < 5
for name, hits in (("overcover", inside), ("one noise for all", inside_textbook)):
    print(f"{name:22}{hits[left].mean():8.1%}{hits[~left].mean():8.1%}")

# %%
# Left: the intervals. Right: observed coverage over nominal coverage. Deviations inside
# the grey band are not significant for 2,000 rows.
grid = np.linspace(-0.5, 10.5, 600)[:, None]
middle = model.predict(grid)
low, high = model.predict_interval(grid, coverage=0.95)
figure, panels = plt.subplots(1, 2, figsize=(11, 4), layout="constrained")
panels[0].scatter(X, y, s=2, color="0.6", label="training rows")
panels[0].fill_between(grid[:, 0], low, high, alpha=0.25, label="95 % interval")
panels[0].plot(grid, middle, color="C3", label="prediction")
panels[0].axvline(5, color="0.3", lw=0.7, ls=":")
panels[0].axvline(6, color="0.3", lw=0.7, ls=":")
panels[0].set(xlabel="x", ylabel="y", title="wide where noisy, wide in the gap")
panels[0].legend(loc="lower left")
CalibrationDisplay.from_estimator(model, X_test, y_test, ax=panels[1])
plt.show()
