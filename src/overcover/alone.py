"""A machine that was fitted alone, as a cover of one subdomain.

With `as_cover`, functions that explain, advise, report or store do so for machines too.
"""

import numpy as np
from sklearn.utils.validation import check_is_fitted

from . import routing
from ._validation import check_queries
from .cover import Cover
from .machines import Machine
from .regressor import OverlappingCoverRegressor


def as_cover(model, X=None) -> OverlappingCoverRegressor:
    """A fitted cover as it is, or a fitted machine as a cover whose `machine_` it is.

    X are the rows of the fit, for a machine that keeps none. Without them such a
    machine is a ValueError; any other estimator is a TypeError.
    """
    if not isinstance(model, OverlappingCoverRegressor | Machine):
        raise TypeError(
            "This is about an OverlappingCoverRegressor or a machine such as GP, not "
            f"about a {type(model).__name__}. Of a pipeline, give its last step and "
            "transformed rows."
        )
    check_is_fitted(model)
    if isinstance(model, OverlappingCoverRegressor):
        return model
    recalled = model.recall(model.state_)
    if recalled is not None:
        rows = recalled.X
    elif X is not None:
        rows = check_queries(model, X).astype(np.float64)
    else:
        name = type(model).__name__
        raise ValueError(
            f"{name} keeps no training rows. Give X, the rows it was fitted on, if "
            f"there is such a parameter; else fit OverlappingCoverRegressor({name}())."
        )
    cover = OverlappingCoverRegressor(model, subdomain_size=len(rows), overlap=0.0)
    for name in ("n_features_in_", "feature_names_in_", "n_outputs_", "_y_ndim"):
        if hasattr(model, name):
            setattr(cover, name, getattr(model, name))
    cover.machine_, cover.states_ = model, [model.state_]
    cover.length_scales_ = model.length_scales(rows)
    cover.cover_ = Cover([np.arange(len(rows))], np.array([len(rows)]))
    cover.n_subdomains_, cover.subdomain_size_, cover.n_lenders_ = 1, len(rows), 0
    cover.timings_, cover.notes_ = {}, getattr(model, "notes_", [])
    mean = (rows / cover.length_scales_).mean(axis=0, keepdims=True)
    cover.router_ = routing.EuclideanRouter(mean)
    return cover


def is_alone(model) -> bool:
    """Whether the machine of a cover was fitted alone."""
    return hasattr(model.machine_, "state_")
