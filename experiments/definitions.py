"""The parameters that the experiments vary, and the sizes of the runs.

`SCALES` has three sizes: "full" is the paper's, "quick" takes minutes, and "tiny" takes
seconds. The tests run "tiny"; its results mean nothing.
"""

from typing import NamedTuple

SEED = 0
# The difficulty of the pose data was set with seed 0, so methods are compared with
# another seed.
DATA_SEED = 1
# The paper's router, and its weights of predictions. The paper's distance can be read
# with or without a root, which matters for K' > 1; "readings" has both.
PAPER = {"router": "mahalanobis", "combine": "inverse-distance"}
READINGS = ("mahalanobis", "mahalanobis-squared")
MACHINES = ("gp", "tgp")
PARTITIONS = ("ab", "rpc")
CONSULTED = (1, 2, 3)


class Frames(NamedTuple):
    """Training and test rows of the synthetic sets; None is the paper's number."""

    poser: int | None = None
    humaneva: int | None = None
    human36m: int | None = None


class Scale(NamedTuple):
    """Sizes of one run of everything."""

    frames: Frames

    size: int
    """The paper's M, where it does not vary."""

    sizes: tuple[int, ...]
    """M in the experiment on speed."""

    analysed: tuple[int, ...]
    """M in the parameter analysis."""

    overlaps: tuple[float, ...]
    spreads: tuple[float, ...]
    n_test: int
    """Test rows in the parameter analysis."""

    n_seeds: int
    """Partitions of each kind in the parameter analysis, whose errors are averaged."""

    n_scheme: int
    """Test rows that the NN scheme predicts, in milliseconds to seconds each."""

    n_repeats: int
    """Repetitions of every timing."""

    n_points: int
    """Points in the plane for J."""

    n_runs: int
    clusters: tuple[int, ...]
    n_drawn: int
    """Points in the pictures of clusters."""

    human36m_size: int


SCALES = {
    "full": Scale(
        frames=Frames(None, None, 6000),
        size=800,
        sizes=(100, 200, 400, 800),
        analysed=(400, 800),
        overlaps=(0.0, 0.6, 0.9),
        spreads=(1.0, 2.0),
        n_test=1600,
        n_seeds=1,
        n_scheme=60,
        n_repeats=2,
        n_points=10_000,
        n_runs=10,
        clusters=(5, 10, 50),
        n_drawn=300_000,
        human36m_size=1390,
    ),
    "quick": Scale(
        frames=Frames(1200, 2400, 3000),
        size=300,
        sizes=(50, 100, 200, 400),
        analysed=(150, 300),
        overlaps=(0.0, 0.6, 0.9),
        spreads=(1.0, 2.0),
        n_test=500,
        n_seeds=1,
        n_scheme=60,
        n_repeats=1,
        n_points=3000,
        n_runs=3,
        clusters=(5, 10, 50),
        n_drawn=30_000,
        human36m_size=400,
    ),
    "tiny": Scale(
        frames=Frames(60, 96, 168),
        size=30,
        sizes=(10, 20),
        analysed=(20,),
        overlaps=(0.0, 0.5),
        spreads=(1.0, 2.0),
        n_test=20,
        n_seeds=1,
        n_scheme=5,
        n_repeats=1,
        n_points=200,
        n_runs=2,
        clusters=(5, 10),
        n_drawn=1000,
        human36m_size=30,
    ),
}
