"""
Extrapolation: predictions far from all rows
============================================

The training rows lie in two intervals, with a gap between them. One model learns
outputs without noise, the other outputs with noise. What to see: near the rows, the
prediction follows them, and its standard deviation is that of the noise. In the gap and
outside, within a few length scales, the mean returns to the mean of the subdomain's
outputs, and the standard deviation grows to that of all outputs. The model does not
continue a trend: to extrapolate one, fit the difference from a straight line.
"""

import matplotlib.pyplot as plt
import numpy as np

from overcover import GP, OverlappingCoverRegressor

rng = np.random.default_rng(0)
x = np.concatenate([rng.uniform(0, 4, 300), rng.uniform(7, 11, 300)])
grid = np.linspace(-8, 19, 541)
is_far = (grid < -6) | (grid > 17)
is_gap = (grid > 5) & (grid < 6)
is_near = (grid > 1) & (grid < 3)

# %%
# The same rows with and without noise, and a model of each. The length scale is fixed
# at one, so x is in length scales. The fit learns the noise.
answers = {}
for name, noise in (("no noise", 0.0), ("noise of deviation 0.3", 0.3)):
    y = np.sin(2 * x) + 0.2 * x + noise * rng.normal(size=len(x))
    model = OverlappingCoverRegressor(
        GP(length_scale=1.0), subdomain_size=150, random_state=0
    ).fit(x[:, None], y)
    mean, std = model.predict(grid[:, None], return_std=True)
    answers[name] = y, mean, std

# %%
# Standard deviations near the rows, in the gap and far away, beside that of all
# outputs.
print(f"{'standard deviation':24}{'near':>8}{'gap':>8}{'far':>8}{'of y':>8}")
for name, (y, _, std) in answers.items():
    places = [std[where].mean() for where in (is_near, is_gap, is_far)]
    print(f"{name:24}" + "".join(f"{value:8.3f}" for value in (*places, y.std())))
print("outside the cover:", [model.explain([at]).outside for at in (2.0, 5.5, 17.0)])

# %%
# The mean with a band of two standard deviations. There are no rows in the grey parts.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, (y, mean, std)) in zip(axes, answers.items()):
    for start, end in ((-8, 0), (4, 7), (11, 19)):
        ax.axvspan(start, end, color="0.93", lw=0)
    ax.fill_between(grid, mean - 2 * std, mean + 2 * std, alpha=0.3, lw=0)
    ax.plot(grid, mean, color="C0", label="mean, two standard deviations")
    ax.plot(x, y, ".", ms=2, color="k", label="training rows")
    ax.set(title=name, xlabel="x", xlim=(-8, 19))
axes[0].set_ylabel("y")
axes[0].legend(loc="upper left")
plt.show()
