"""Contenders of `rivals.py`, one file each; see `contender.py`."""

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
