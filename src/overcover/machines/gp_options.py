"""What the options of a GP may be, and its fitted attributes in a store."""

from numbers import Real

import numpy as np

from .. import kernels
from .._validation import are_scales, check_choice
from ..tuning import is_auto

FACTOR_DTYPES = ("auto", "float64", "float32")


def check_gp_options(machine, n_features):
    """Refuse options that no GP knows, saying what is allowed."""
    if not kernels.is_object(machine.kernel):
        names = ("auto", *kernels.NAMES)
        check_choice("kernel", machine.kernel, names, " or a kernel object")
    scales, noise = machine.length_scale, machine.noise
    if not is_auto(scales) and not are_scales(scales, n_features):
        raise ValueError(
            f"length_scale={scales!r} must be 'auto', a positive number, or "
            f"{n_features} of them, one per column of X."
        )
    for name in ("per_output", "keep_factors", "robust"):
        value = getattr(machine, name)
        if value not in ("auto", True, False):
            raise ValueError(f"{name}={value!r} must be 'auto', True or False.")
    check_choice("factor_dtype", machine.factor_dtype, FACTOR_DTYPES)
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
