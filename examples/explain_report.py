"""
Why this answer? Explanations, advice, a report
===============================================

For people who did not fit the model. What to see: an answer is taken apart into votes
of subdomains and near training rows, a query outside the cover says so, and findings
come in plain words.
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
    """A noisy surface; the third column is of no use."""
    X = rng.uniform(-reach, reach, (n_rows, 3))
    return X, np.sin(X[:, 0]) * np.cos(X[:, 1]) + 0.1 * rng.normal(size=n_rows)


X, y = sample(1000)
X_test, y_test = sample(500)
model = OverlappingCoverRegressor(subdomain_size=200, random_state=0).fit(X, y)

# %%
# One query inside, one outside. Every number is an attribute as well (``votes``,
# ``means``, ``neighbors``, ``remoteness``).
print(model.explain([0.5, 0.5, 0.0]))
print(model.explain([4.5, 4.5, 0.0]))

# %%
# What should I worry about? Test rows that come from farther out, to have something.
for finding in advise(model, X, y, *sample(500, reach=4)):
    print(finding)

# %%
# The cover, over the two columns that matter.
display = CoverDisplay.from_estimator(model, X, features=(0, 1))
display.figure_.set_size_inches(6, 5)
plt.show()

# %%
# All of it in one HTML file, to be handed on.
path = Path(tempfile.mkdtemp()) / "report.html"
write_report(model, path, X, y, X_test, y_test, title="A surface")
print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB, nothing loaded from elsewhere")
