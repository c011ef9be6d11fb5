"""What the experiments vary, and how much of everything: no machinery here.

`SCALES` has three sizes of all of it: "full" is the paper's, "quick" takes minutes,
"tiny" seconds (it is what the tests run, and shows nothing).
"""

from typing import NamedTuple

SEED = 0
# How hard the pose data are was settled on those of seed 0: methods are compared on
# others.
DATA_SEED = 1
# The paper's way to answer: distances by covariance, answers weighted by them.
PAPER = {"router": "mahalanobis", "combine": "inverse-distance"}
MACHINES = ("gp", "tgp")
PARTITIONS = ("ab", "rpc")
CONSULTED = (1, 2, 3)


class Frames(NamedTuple):
    """Rows of the generated sets, to train and to test; None is the paper's number."""

    poser: int | None = None
    humaneva: int | None = None
    human36m: int | None = None


class Scale(NamedTuple):
    """Sizes of one run of everything."""

    frames: Frames

    size: int
    """The paper's M, where it does not vary."""

    sizes: tuple[int, ...]
    """Where it varies."""

    analysed: tuple[int, ...]
    """Where p, t and K' vary with it."""

    overlaps: tuple[float, ...]
    spreads: tuple[float, ...]
    n_test: int
    """Test rows where p, t and K' vary."""

    n_seeds: int
    """Partitions of each kind there, whose errors are averaged."""

    n_scheme: int
    """Test rows that the NN scheme answers: milliseconds to seconds each."""

    n_repeats: int
    """Of what is timed."""

    n_points: int
    """Of the points in the plane that are clustered for J."""

    n_runs: int
    clusters: tuple[int, ...]
    n_drawn: int
    """Of the points whose clusters are drawn."""

    human36m_size: int


SCALES = {
    "full": Scale(
        frames=Frames(None, None, 24_000),
        size=800,
        sizes=(100, 200, 400, 800, 1600),
        analysed=(400, 800),
        overlaps=(0.0, 0.3, 0.6, 0.9),
        spreads=(1.0, 2.0),
        n_test=1600,
        n_seeds=3,
        n_scheme=1000,
        n_repeats=3,
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
        frames=Frames(80, 120, 168),
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
        human36m_size=40,
    ),
}
