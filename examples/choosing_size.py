"""
Choosing M, p and K'
====================

Three parameters shape a cover: the size M of a subdomain, the overlap p, and the number
K' of subdomains that predict a query. What to see: the error decreases with M and with
p, and soon levels off. The fit takes longer with more overlap. Consulting more
subdomains than the most certain one (K' > 1) increases the error, because the others
have fewer rows near the query. The hyperparameters are fixed, so that only the cover
differs.
"""

import time

import matplotlib.pyplot as plt
import numpy as np

from overcover import GP, OverlappingCoverRegressor

rng = np.random.default_rng(0)
X = rng.uniform(-1, 1, (4000, 3))
y = np.sin(4 * X[:, 0] + 2 * X[:, 1] ** 2) * np.cos(3 * X[:, 2])
y += 0.02 * rng.normal(size=4000)
X, X_test, y, y_test = X[:3000], X[3000:], y[:3000], y[3000:]

# The result of "auto" for these rows, written here to save the search.
machine = GP(length_scale=[2.1, 2.3, 3.5], noise=2.2e-4)


def measure(**options):
    """Error on test rows, and seconds of the fit."""
    model = OverlappingCoverRegressor(machine, random_state=0, **options)
    started = time.perf_counter()
    model.fit(X, y)
    seconds = time.perf_counter() - started
    return np.sqrt(np.mean((model.predict(X_test) - y_test) ** 2)), seconds


# %%
# Vary one parameter at a time; the others keep their values in ``start``.
start = {"subdomain_size": 150, "overlap": 0.8, "n_consulted": 1}
sweeps = {
    "subdomain_size": (75, 150, 300),
    "overlap": (0.0, 0.4, 0.7, 0.9),
    "n_consulted": (1, 2, 4),
}
measured = {}
measure(**start)  # the first fit also loads compiled code, so ignore its time
for name, values in sweeps.items():
    measured[name] = [measure(**{**start, name: value}) for value in values]
    for value, (error, seconds) in zip(values, measured[name]):
        print(f"{name:>15} = {value:<5} RMSE {error:.4f}, fit {seconds:5.2f} s")

# %%
# Start with the defaults. If the fit takes too long, lower p. If queries do, lower M.
figure, panels = plt.subplots(
    1, 3, figsize=(11, 3.6), sharey=True, layout="constrained"
)
letters = ("M", "p", "K'")
for panel, (name, values), letter in zip(panels, sweeps.items(), letters):
    errors, seconds = np.transpose(measured[name])
    panel.plot(values, errors, "o-", label="error on test rows")
    panel.axhline(0.02, color="0.5", ls=":", label="noise in the outputs")
    for value, error, second in zip(values, errors, seconds):
        place = {"xytext": (3, 6), "textcoords": "offset points"}
        panel.annotate(f"{second:.1f} s", (value, error), **place)
    panel.set(xlabel=f"{name} ({letter})")
    panel.margins(x=0.2)
panels[0].set(ylabel="RMSE (with the time of the fit)")
panels[0].margins(y=0.2)
panels[2].legend(loc="upper left")
plt.show()
