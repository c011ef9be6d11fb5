"""
Outputs that depend on each other: GP and Twin GP
=================================================

The task is to predict the position of the elbow from that of the hand. An arm with two
links has two possible elbows. What to see: a GP predicts their mean, which is too near
to the shoulder. A Twin GP predicts one of the two, so the upper arm keeps its length of
one.
"""

import matplotlib.pyplot as plt
import numpy as np

from overcover import GP, OverlappingCoverRegressor, TwinGP


def arms(n_rows, rng):
    """Hands, and the elbows that belong to them; links of length one."""
    shoulder = rng.uniform(0, np.pi, n_rows)
    bend = rng.choice([-1, 1], n_rows) * rng.uniform(0.6, 2.2, n_rows)
    elbow = np.column_stack([np.cos(shoulder), np.sin(shoulder)])
    forearm = np.column_stack([np.cos(shoulder + bend), np.sin(shoulder + bend)])
    return elbow + forearm + 0.02 * rng.normal(size=(n_rows, 2)), elbow


rng = np.random.default_rng(0)
hands, elbows = arms(1500, rng)
hands_test, elbows_test = arms(300, rng)

# %%
# The hyperparameters are fixed: those of the GP to be quick, those of the Twin GP
# because "auto" minimises the error of the mean, for which the average is best.
options = {"subdomain_size": 300, "random_state": 0}
models = {
    "GP": OverlappingCoverRegressor(GP("matern32", 0.5, 1.0), **options),
    "Twin GP": OverlappingCoverRegressor(
        TwinGP(0.2, 0.3, 0.01, 0.01, n_starts=2), **options
    ),
}
predictions = {
    name: model.fit(hands, elbows).predict(hands_test) for name, model in models.items()
}

# The other possible elbow is the mirror image of the true one in the line to the hand.
along = np.sum(elbows_test * hands_test, axis=1) / np.sum(hands_test**2, axis=1)
other = 2 * along[:, None] * hands_test - elbows_test
for name, elbow in predictions.items():
    length = np.linalg.norm(elbow, axis=1)
    to_either = [np.linalg.norm(elbow - e, axis=1) for e in (elbows_test, other)]
    print(
        f"{name:8} upper arm within 10 % of its length: "
        f"{np.mean(np.abs(length - 1) < 0.1):4.0%}; "
        f"distance to the nearer possible elbow: {np.minimum(*to_either).mean():.3f}"
    )

# %%
# Five test arms: both possible arms are dashed, the predicted one is solid.
drawn = np.flatnonzero(other[:, 1] > 0.1)[:5]
figure, panels = plt.subplots(
    1, 2, figsize=(10, 4.4), sharey=True, layout="constrained"
)
for panel, (name, elbow) in zip(panels, predictions.items()):
    panel.plot(*elbows.T, ".", color="0.85", ms=2, zorder=0)
    for i in drawn:
        hand = hands_test[i]
        for possible in (elbows_test[i], other[i]):
            arm = np.array([[0, 0], possible, hand])
            panel.plot(*arm.T, color="0.6", ls="--", lw=1)
        arm = np.array([[0, 0], elbow[i], hand])
        panel.plot(*arm.T, color="C3", lw=2)
        panel.plot(*hand, "o", color="black", ms=5)
    panel.set(title=name, aspect="equal", xlabel="hands are black dots")
plt.show()
