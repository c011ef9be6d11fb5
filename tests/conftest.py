"""Data that several test files share: small, seeded, smooth enough to be learned."""

import os

# Where as many processes run tests as there are cores, further threads of BLAS only
# wait for one another. To be said before NumPy is imported; it holds in the processes
# that tests start too. Tests about threads ask for more.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import numpy as np
import pytest
from hypothesis import settings

from overcover.tables import open_table

# No test times anything.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")


def wave(X):
    """A smooth surface in the first two columns."""
    return np.sin(X[:, 0]) * np.cos(X[:, 1])


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def surface():
    """300 rows of a smooth surface with a little noise: X, y."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, (300, 2))
    return X, wave(X) + 0.05 * rng.normal(size=300)


@pytest.fixture(scope="session")
def queries():
    """40 rows of the same surface, not among the training rows."""
    return np.random.default_rng(2).uniform(-3, 3, (40, 2))


@pytest.fixture(scope="session")
def two_outputs(surface):
    """The surface and a second output of another scale and offset: X, Y."""
    X, y = surface
    return X, np.column_stack([y, 1000.0 + 50.0 * np.cos(X[:, 0] + X[:, 1])])


def frames_of(path, n_rows=None):
    """Frames of a table, of so many rows."""
    with open_table(path) as table:
        yield from table.frames(n_rows)


def read_frame(path):
    """A whole table as a frame."""
    (frame,) = frames_of(path)
    return frame
