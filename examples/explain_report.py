"""
Why this prediction? Explanations, advice, a report
===================================================

This example is for people who use a model that someone else fitted. What to see: an
explanation shows the weights of the subdomains and the nearest training rows, and tells
whether the query lies outside the cover. The advice is in plain words.
"""

import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from overcover import OverlappingCoverRegressor
from overcover.advice import advise
from overcover.plots import CoverDisplay
from overcover.report import write_report

rng = np.random.default_rng(0)


def sample(n_rows, reach=3):
    """A noisy surface; the third column has no effect."""
    X = rng.uniform(-reach, reach, (n_rows, 3))
    return X, np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=n_rows)


X, y = sample(1000)
X_test, y_test = sample(500)
model = OverlappingCoverRegressor(subdomain_size=200, random_state=0).fit(X, y)

# %%
# One query inside the cover and one outside. Every number is also an attribute
# (``votes``, ``means``, ``neighbors``, ``remoteness``).
print(model.explain([0.5, 0.5, 0.0]))
print(model.explain([4.5, 4.5, 0.0]))

# %%
# What should I worry about? These test rows reach farther out than the training rows.
for finding in advise(model, X, y, *sample(500, reach=4)):
    print(finding)

# %%
# The cover, over the two columns that matter.
display = CoverDisplay.from_estimator(model, X, features=(0, 1))
display.figure_.set_size_inches(6, 5)
plt.show()

# %%
# All of this in one HTML file.
path = Path(tempfile.mkdtemp()) / "report.html"
write_report(model, path, X, y, X_test, y_test, title="A surface")
print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB, self-contained")
