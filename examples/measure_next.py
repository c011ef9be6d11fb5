"""
Where to measure next
=====================

Every measurement is expensive: where should the next ones be? Where the function is
least certain, given those that are chosen already. ``predict(..., return_cov=True,
noise=False)`` says how uncertain the function is and how places hang together, noise
left out, since measuring again does not make an instrument better. What to see: chosen
places fill the gaps and look at the edges, and with the same number of measurements
errors are smaller than at random places.
"""

import matplotlib.pyplot as plt
import numpy as np

from overcover import GP


def truth(X):
    """A landscape of hills."""
    return np.sin(2.5 * X[:, 0]) * np.cos(2.0 * X[:, 1]) + 0.5 * np.sin(X.sum(axis=1))


def measured(X, rng):
    """The landscape, with errors of measurement."""
    return truth(X) + 0.05 * rng.normal(size=len(X))


def most_informative(covariance, n_chosen):
    """Places to measure together: each the least certain, once the others are known."""
    C, chosen = covariance.copy(), []
    for _ in range(n_chosen):
        i = int(np.argmax(np.diag(C)))
        chosen.append(i)
        C -= np.outer(C[i], C[i]) / (C[i, i] + 1e-3 * covariance.max())
    return chosen


# %%
# Start with 30 random places, then choose five at a time among 600 candidates; five
# times, and as often at random. The hyperparameters are those of the first rows: chosen
# places keep apart from each other, and tell little about noise.
side = np.linspace(-2, 2, 40)
grid = np.array([[a, b] for a in side for b in side])
START, STEP, END, REPEATS = 30, 5, 70, 5
counts = np.arange(START, END + 1, STEP)
errors = {"chosen": [], "random": []}
for seed in range(REPEATS):
    for way, found in errors.items():
        rng = np.random.default_rng(seed)
        places = rng.uniform(-2, 2, (600, 2))
        X, y = places[:START], measured(places[:START], rng)
        first, curve = GP("rbf", random_state=0).fit(X, y), []
        machine = GP("rbf", first.length_scale_, first.noise_)
        for n_rows in counts:
            model = machine.fit(X, y)
            curve.append(np.sqrt(np.mean((model.predict(grid) - truth(grid)) ** 2)))
            _, covariance = model.predict(places, return_cov=True, noise=False)
            next_places = most_informative(covariance, STEP)
            if way == "random":
                next_places = np.arange(n_rows, n_rows + STEP)
            X = np.vstack([X, places[next_places]])
            y = np.append(y, measured(places[next_places], rng))
        found.append(curve)
        if way == "chosen":
            picture = model, X[:END]  # of the last repetition
errors = {way: np.array(curves) for way, curves in errors.items()}
print("error after  " + "".join(f"{n:7}" for n in counts))
for way, curves in errors.items():
    print(f"{way:13}" + "".join(f"{error:7.3f}" for error in curves.mean(axis=0)))

# %%
# Left: the function's standard deviation, and where it was measured. Middle: three
# functions that could be the true one, along a line. Right: the errors.
model, X = picture
_, std = model.predict(grid, return_std=True, noise=False)
line = np.column_stack([np.linspace(-3, 3, 120), np.full(120, 0.5)])
samples = model.sample_y(line, n_samples=3, noise=False)
figure, panels = plt.subplots(1, 3, figsize=(13, 3.9), layout="constrained")
shade = panels[0].pcolormesh(side, side, std.reshape(40, 40).T, cmap="Blues")
figure.colorbar(shade, ax=panels[0], label="std of the function")
panels[0].scatter(*X[:START].T, s=14, color="0.35", label="first, at random")
panels[0].scatter(*X[START:].T, s=14, color="C3", label="chosen")
panels[0].set(xlabel="x1", ylabel="x2", title="where to look")
panels[0].legend(loc="upper center", bbox_to_anchor=(0.5, -0.15), ncol=2, fontsize=8)
panels[1].plot(line[:, 0], samples, color="C0", lw=0.9, alpha=0.8)
panels[1].plot(line[:, 0], truth(line), color="k", lw=1.2, ls="--", label="truth")
panels[1].axvspan(-2, 2, color="0.93", zorder=0, label="measured")
panels[1].set(xlabel="x1, at x2 = 0.5", title="functions that may be true")
panels[1].legend(loc="lower left", fontsize=8)
for way, colour in (("random", "0.5"), ("chosen", "C3")):
    panels[2].plot(counts, errors[way].T, color=colour, lw=0.5, alpha=0.6)
    panels[2].plot(counts, errors[way].mean(axis=0), color=colour, lw=2, label=way)
panels[2].set(
    xlabel="measurements", ylabel="error", yscale="log", title="what it gains"
)
panels[2].legend()
plt.show()
