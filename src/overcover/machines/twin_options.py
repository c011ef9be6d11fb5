"""What the options of a Twin GP may be."""

from numbers import Integral, Real

import numpy as np

from .._validation import are_scales, check_choice
from ..tuning import is_auto
from ..tuning.twin import METRICS


def check_twin_options(machine, n_features, n_outputs):
    """Refuse options that no Twin GP knows, saying what is allowed."""
    for name, n in (
        ("input_length_scale", n_features),
        ("output_length_scale", n_outputs),
    ):
        value = getattr(machine, name)
        if not is_auto(value) and not are_scales(value, n):
            raise ValueError(
                f"{name}={value!r} must be 'auto', a positive number, or one for "
                f"each of the {n} columns."
            )
    for name in ("input_noise", "output_noise"):
        value = getattr(machine, name)
        if not is_auto(value) and not (
            isinstance(value, Real) and 0 < float(value) < np.inf
        ):
            raise ValueError(
                f"{name}={value!r} must be 'auto' or a positive number: the noise "
                "variance relative to a similarity of one. 1e-3 is moderate."
            )
    if not isinstance(machine.n_starts, Integral) or machine.n_starts not in (1, 2):
        raise ValueError(
            f"n_starts={machine.n_starts!r} must be 1 (from the answer of a GP) or 2 "
            "(from the most similar row's output too)."
        )
    if machine.rank not in ("auto", "full") and not (
        isinstance(machine.rank, Integral) and int(machine.rank) >= 1
    ):
        raise ValueError(
            f"rank={machine.rank!r} must be 'auto', 'full' or a positive whole number."
        )
    if not callable(machine.metric):
        check_choice("metric", machine.metric, METRICS)
    if machine.metric == "joint" and n_outputs % 3:
        raise ValueError(
            f"metric='joint' needs outputs in threes, x, y, z of each joint; there "
            f"are {n_outputs}. Choose 'rmse' or 'angle'."
        )
    if machine.keep_factors != "auto" and not isinstance(
        machine.keep_factors, bool | np.bool_
    ):
        raise ValueError(
            f"keep_factors={machine.keep_factors!r} must be 'auto', True or False."
        )
