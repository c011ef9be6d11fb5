"""
Extrapolation: what is said where there are no rows
===================================================

Two functions of one input, one without noise and one with, are known in two stretches.
Between them is a gap, and beyond them is nothing. What to see: near the rows the
prediction follows them, and its standard deviation is that of their noise. In the gap
and beyond, within a few length scales, the mean returns to the mean of the outputs of
the subdomain that answers, and the standard deviation grows to how much outputs vary
at all. A trend is not continued: if it should be, give the machine the difference from
a straight line.
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
# The same rows with and without noise, and a model of each. The length scale is given,
# so that distances along x are distances in length scales; the noise is found.
answers = {}
for name, noise in (("no noise", 0.0), ("noise of deviation 0.3", 0.3)):
    y = np.sin(2 * x) + 0.2 * x + noise * rng.normal(size=len(x))
    model = OverlappingCoverRegressor(
        GP(length_scale=1.0), subdomain_size=150, random_state=0
    ).fit(x[:, None], y)
    mean, std = model.predict(grid[:, None], return_std=True)
    answers[name] = y, mean, std

# %%
# Standard deviations near the rows, in the gap and far away, beside the deviation of
# all outputs.
print(f"{'standard deviation':24}{'near':>8}{'gap':>8}{'far':>8}{'of y':>8}")
for name, (y, _, std) in answers.items():
    places = [std[where].mean() for where in (is_near, is_gap, is_far)]
    print(f"{name:24}" + "".join(f"{value:8.3f}" for value in (*places, y.std())))
print("outside the cover:", [model.explain([at]).outside for at in (2.0, 5.5, 17.0)])

# %%
# The mean, and two standard deviations either side. Grey stretches hold no rows.
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True, layout="constrained")
for ax, (name, (y, mean, std)) in zip(axes, answers.items()):
    for start, end in ((-8, 0), (4, 7), (11, 19)):
        ax.axvspan(start, end, color="0.93", lw=0)
    ax.fill_between(grid, mean - 2 * std, mean + 2 * std, alpha=0.3, lw=0)
    ax.plot(grid, mean, color="C0", label="mean, two deviations")
    ax.plot(x, y, ".", ms=2, color="k", label="training rows")
    ax.set(title=name, xlabel="x", xlim=(-8, 19))
axes[0].set_ylabel("y")
axes[0].legend(loc="upper left")
plt.show()
