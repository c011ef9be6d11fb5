"""What the options of machines may be; errors say what is allowed."""

from numbers import Integral, Real

import numpy as np

from .. import kernels
from .._validation import are_scales, check_choice
from ..tuning import is_auto
from ..tuning.twin import METRICS


def check_scales(machine, name, n_columns):
    """Refuse what is no length scale of so many columns."""
    value = getattr(machine, name)
    if not is_auto(value) and not are_scales(value, n_columns):
        raise ValueError(
            f"{name}={value!r} must be 'auto', a positive number, or one for each of "
            f"the {n_columns} columns."
        )


def check_flags(machine, *names):
    """Refuse anything but "auto", True and False."""
    for name in names:
        value = getattr(machine, name)
        if value not in ("auto", True, False):
            raise ValueError(f"{name}={value!r} must be 'auto', True or False.")


def check_gp_options(machine, n_features):
    """Refuse options that no GP knows."""
    if not kernels.is_object(machine.kernel):
        names = ("auto", *kernels.NAMES)
        check_choice("kernel", machine.kernel, names, " or a kernel object")
    check_scales(machine, "length_scale", n_features)
    check_flags(machine, "per_output", "keep_factors", "robust")
    check_choice("factor_dtype", machine.factor_dtype, ("auto", "float64", "float32"))
    noise = machine.noise
    is_noise = isinstance(noise, Real) and 0 <= float(noise) < np.inf
    if not is_auto(noise) and not is_noise:
        raise ValueError(
            f"noise={noise!r} must be 'auto' or a number >= 0: the variance of the "
            "noise relative to that of the signal, such as 0.1."
        )


def check_gp_groups(machine, n_outputs):
    """Refuse groups that are not those of the outputs: a file may say anything."""
    n_groups = np.shape(machine.theta_)[0]
    # An older store has one group, or one for each output.
    default = np.zeros(n_outputs, np.intp) if n_groups == 1 else np.arange(n_groups)
    groups = getattr(machine, "output_groups_", default)
    if not isinstance(groups, np.ndarray) or groups.shape != (n_outputs,):
        raise ValueError(f"output_groups_ should have shape ({n_outputs},).")
    if groups.dtype.kind != "i" or not 0 <= groups.min() <= groups.max() < n_groups:
        raise ValueError(f"output_groups_ should be numbers below {n_groups}.")
    used = getattr(machine, "used_kernel_", machine.kernel)
    if isinstance(used, tuple) and len(used) != n_groups:
        raise ValueError(f"used_kernel_ should hold {n_groups} kernels.")
    for kernel in used if isinstance(used, tuple) else (used,):
        if not kernels.is_object(kernel) and kernel not in kernels.NAMES:
            raise ValueError(f"used_kernel_={kernel!r} is not known.")
        if kernels.is_object(kernel) != kernels.is_object(machine.kernel):
            raise ValueError("used_kernel_ and kernel are of different kinds.")
    for name in ("run_length_", "n_learned_"):
        value = getattr(machine, name)
        if not isinstance(value, int) or not 0 <= value < 2**62:
            raise ValueError(f"{name} should be a whole number.")


def check_twin_options(machine, n_features, n_outputs):
    """Refuse options that no Twin GP knows."""
    check_scales(machine, "input_length_scale", n_features)
    check_scales(machine, "output_length_scale", n_outputs)
    check_flags(machine, "keep_factors")
    for name in ("input_noise", "output_noise"):
        value = getattr(machine, name)
        is_noise = isinstance(value, Real) and 0 < float(value) < np.inf
        if not is_auto(value) and not is_noise:
            raise ValueError(
                f"{name}={value!r} must be 'auto' or a positive number: the noise "
                "variance relative to a similarity of one. 1e-3 is moderate."
            )
    n_starts, rank = machine.n_starts, machine.rank
    if not isinstance(n_starts, Integral) or n_starts not in (1, 2):
        raise ValueError(
            f"n_starts={n_starts!r} must be 1 (from the answer of a GP) or 2 (from the "
            "most similar row's output too)."
        )
    is_rank = isinstance(rank, Integral) and int(rank) >= 1
    if rank not in ("auto", "full") and not is_rank:
        raise ValueError(
            f"rank={rank!r} must be 'auto', 'full' or a positive whole number."
        )
    if not callable(machine.metric):
        check_choice("metric", machine.metric, METRICS)
    if machine.metric == "joint" and n_outputs % 3:
        raise ValueError(
            f"metric='joint' needs outputs in threes, x, y, z of each joint; there "
            f"are {n_outputs}. Choose 'rmse' or 'angle'."
        )
