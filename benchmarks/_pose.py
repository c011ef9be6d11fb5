"""Synthetic poses: smooth motions, many outputs, ambiguous inputs.

A figure of limbs moves through smooth sequences of a few hidden angles. The inputs are
features of its shadow, which does not distinguish near from far.
"""

import numpy as np

import _common

N_HIDDEN, N_JOINTS = 5, 14
SEQUENCE = 200
# Test rows are runs within the sequences, like missing frames of a film.
RUN, RUNS_PER_SEQUENCE = 20, 2


def make(n_rows, n_features=100, seed=0):
    """Data with runs of each sequence held out for testing.

    Parameters
    ----------
    n_rows : int
    n_features : int
    seed : int

    Returns
    -------
    Data
        In standard units.
    """
    rng = np.random.default_rng(seed)
    limbs = rng.normal(size=(N_JOINTS, 2 * N_HIDDEN)) / np.sqrt(N_HIDDEN)
    bends = rng.normal(size=(N_JOINTS, 2 * N_HIDDEN)) / np.sqrt(N_HIDDEN)
    shades = rng.normal(size=(2 * N_JOINTS, n_features)) / np.sqrt(N_JOINTS)
    phases = rng.uniform(0, 2 * np.pi, n_features)
    hidden = np.concatenate([_sequence(rng) for _ in range(-(-n_rows // SEQUENCE))])[
        :n_rows
    ]
    angles = np.hstack([np.sin(hidden), np.cos(hidden)])
    across, depth = angles @ limbs.T, angles @ bends.T
    height = np.tanh(across * np.roll(depth, 1, axis=1))
    Y = np.stack([across, depth, height], axis=2).reshape(n_rows, -1)
    # The shadow keeps the width and height of joints, and loses their depth.
    shadow = np.hstack([across, height**2])
    X = np.cos(shadow @ shades + phases) + 0.05 * rng.normal(size=(n_rows, n_features))
    Y += 0.02 * rng.normal(size=Y.shape)
    starts = np.arange(0, n_rows, SEQUENCE)[:, None] + rng.integers(
        0, SEQUENCE - RUN, (len(np.arange(0, n_rows, SEQUENCE)), RUNS_PER_SEQUENCE)
    )
    tested = np.zeros(n_rows, bool)
    for start in starts.ravel():
        tested[start : start + RUN] = True
    parts = _common._standardize(X[~tested], X[tested], Y[~tested], Y[tested])
    return _common.Data("pose", *parts)


def _sequence(rng):
    """Hidden angles that move smoothly, each at its own pace."""
    time = np.arange(SEQUENCE)[:, None]
    pace, swing = rng.uniform(0.01, 0.06, N_HIDDEN), rng.uniform(0.2, 1.2, N_HIDDEN)
    start = rng.normal(0, 1.0, N_HIDDEN)
    return start + swing * np.sin(pace * time + rng.uniform(0, 2 * np.pi, N_HIDDEN))
