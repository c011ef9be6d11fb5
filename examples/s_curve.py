"""
An ambiguous curve
==================

Where three outputs are possible, a GP predicts their mean, and a Twin GP predicts one
of them. Run it with ``python examples/s_curve.py [FILE]``. It writes a picture,
s_curve.png by default.
"""

import sys

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from overcover import GP, TwinGP

rng = np.random.default_rng(0)
y = rng.uniform(0, 1, 300)
x = y + 0.3 * np.sin(2 * np.pi * y) + 0.02 * rng.normal(size=300)
X_query = np.linspace(x.min(), x.max(), 400)[:, None]

# "auto" would minimise the squared error, for which the mean of the branches is best.
twin = TwinGP(0.2, 0.1, 0.01, 0.01, n_starts=2)
answers = {
    "GP: the mean of the branches": GP(random_state=0).fit(x[:, None], y),
    "TwinGP: one of the branches": twin.fit(x[:, None], y),
}

figure, panels = plt.subplots(1, 2, figsize=(9, 3.6), sharey=True, layout="constrained")
for panel, (title, model) in zip(panels, answers.items()):
    mean, std = model.predict(X_query, return_std=True)
    panel.scatter(x, y, s=6, color="0.65", label="training rows")
    # Do not draw a line where the prediction jumps between branches.
    jumps = np.abs(np.diff(mean, append=mean[-1])) > 0.08
    panel.plot(X_query, np.where(jumps, np.nan, mean), color="C3", label="prediction")
    panel.set(title=title, xlabel="input")
    on_curve = np.abs(mean + 0.3 * np.sin(2 * np.pi * mean) - X_query[:, 0]) < 0.06
    print(f"{title}: {np.mean(on_curve):.0%} of the predictions are on the curve")
panels[0].set_ylabel("output")
panels[0].legend(frameon=False)
path = sys.argv[1] if len(sys.argv) > 1 else "s_curve.png"
figure.savefig(path, dpi=110)
print(f"-> {path}")
# sphinx_gallery_thumbnail_path = "s_curve.png"
