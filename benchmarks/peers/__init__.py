"""Other methods, one file each.

`CONTENDERS` are classes for `rivals.py`, which runs each in a process of its own: see
`contender.py`. `ALL` are modules for `gp.py`, which runs them beside a fitted cover, in
one process. These have four names:

- ``NAME``: what tables call it;
- ``IS_SLOW``: whether it answers only some of the test rows;
- ``skip() -> str | None``: why it cannot run here, or None if it can;
- ``make(machine, n_neighbors, n_trees, n_jobs) -> regressor``: not yet fitted. A peer
  uses what concerns it; `machine` is a GP with hyperparameters found beforehand.
"""

from . import boosted_trees, neighborhood
from .catboost_uncertainty import CatBoost
from .conformal import Conformal
from .cover import Cover
from .gpytorch_sgpr import SGPR
from .gpytorch_svgp import SVGP
from .lightgbm_quantiles import LightGBM
from .linear import Linear
from .muygps import MuyGPs
from .nearest_rows import NearestRows
from .subset_gp import SubsetGP
from .vecchia import Vecchia

ALL = (boosted_trees, neighborhood)

CONTENDERS = {
    contender.name: contender
    for contender in (
        Cover,
        SVGP,
        SGPR,
        Vecchia,
        MuyGPs,
        SubsetGP,
        LightGBM,
        CatBoost,
        Conformal,
        NearestRows,
        Linear,
    )
}
