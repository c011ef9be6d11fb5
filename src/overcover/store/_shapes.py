"""What shapes and values the arrays of a record must have, so that they fit each other.

Compiled loops trust the arrays they are given; a file need not tell the truth. Letters
stand for sizes that must agree within a record and with the model: N rows of the
training data, n of the subdomain, d features, q outputs, r pivots, K subdomains, l rows
left out, L ways to localise, G groups of outputs, h hyperparameters. "P" is the size of
a packed triangle of n rows, "P?" that or nothing, "r+q" a sum. A tuple names the
records that may stand in a field; a list is the shape of each of K arrays.
"""

from numbers import Real
from types import NoneType
from typing import Any

import numpy as np

from .. import kernels
from .._linalg import packed_size
from ..machines import GP, SharmaMittalTwinGP
from ..machines.calibration import MOST_SQUARINGS
from ..machines.gp_state import GPState
from ..machines.sharma_mittal import MixedCore
from ..machines.twin_gp import TwinState
from ..machines.twin_state import TwinCore
from ..routing import ROUTERS
from ._pack import StoreError

WHOLE = ("squarings", "left", "locality", "labels", "members", "n_owned")
"""Fields of whole numbers; all others are floats of 64 bits."""

FINITE = (-np.finfo(float).max, np.finfo(float).max)
POSITIVE = (np.nextafter(0.0, 1.0), np.inf)
NOT_NEGATIVE = (0.0, FINITE[1])
RANGES: dict[str, tuple[Any, Any]] = {
    "squarings": (-1, MOST_SQUARINGS),
    "left": (0, "n"),
    "locality": (0, "L"),
    "labels": (0, "K"),
    "members": (0, 2**62),
    "Cover.members": (0, "N"),
    "n_owned": (1, 2**62),
    "theta": (-np.inf, np.inf),
    "theta_": (-np.inf, np.inf),
    "weights": (POSITIVE[0], FINITE[1]),
    "left_out": POSITIVE,
    "reach": POSITIVE,
    "Y_variance": NOT_NEGATIVE,
    "output_variance": (POSITIVE[0], FINITE[1]),
    "residuals_sq": NOT_NEGATIVE,
    "residuals_sq_mean": NOT_NEGATIVE,
    "ratios": NOT_NEGATIVE,
    "least_scale": NOT_NEGATIVE,
    "Calibration.factor": NOT_NEGATIVE,
    "quantiles": NOT_NEGATIVE,
    "tail": (POSITIVE[0], FINITE[1]),
    "width": NOT_NEGATIVE,
    "input_scales": POSITIVE,
    "output_scales": POSITIVE,
    "input_length_scale_": POSITIVE,
    "output_length_scale_": POSITIVE,
    "length_scales_": POSITIVE,
}
"""Least and most of a field, or of a record's field, no NaN; all others are finite. A
letter is a size that values stay below, if it is known."""

NOT_EMPTY = "NnrKLGh"
"""Sizes that are at least one."""

NARROW = ("P?",)
"""Shapes of arrays that may be floats of 32 bits instead: the factors of a GP."""

SHAPES: dict[str, dict[str, Any]] = {
    "GPState": {
        "X": "n d",
        "center": "d",
        "theta": "G h",
        "weights": "n",
        "Y_mean": "q",
        "alpha": "n q",
        "residuals_sq": "n q",
        "residuals_sq_mean": "q",
        "ratios": "L o q",
        "squarings": "G L",
        "factor": "G P?",
        "Y_variance": "q",
        "amplitude_sq": "q",
        "left_out": "G 2",
    },
    "TwinState": {
        "rows": ("TwinRows",),
        # None where it is to be made again from the rows.
        "core": ("TwinCore", "MixedCore", "NoneType"),
        "left": "l",
        "residuals_sq": "l q",
        "residuals_sq_mean": "q",
        "ratios": "L l q",
        "squarings": "L",
        "reach": "1",
    },
    "TwinRows": {
        "A": "n d",
        "center": "d",
        "Z": "n q",
        "Y_mean": "q",
        "weights": "n",
        "input_scales": "d",
        "output_scales": "q",
    },
    "TwinCore": {"pivots": "r q", "C": "r r", "factor": "P", "readout": "n r+q"},
    "MixedCore": {
        "pivots": "r q",
        "C": "r r",
        "factor": "P",
        "readout": "n r+q",
        "mixed_factor": "P",
        "T": "n r",
        "mixed_C": "r r",
    },
    "Calibration": {
        "locality": "q",
        "least_scale": "q",
        "factor": "q",
        "quantiles": "v q",
        "tail": "q",
        "width": "q",
        "output_mean": "q",
        "output_variance": "q",
    },
    **{kind.__name__: kind.shapes for kind in ROUTERS.values()},
    "Partition": {"centers": "K d", "labels": "N"},
    "Cover": {"members": ["n"], "n_owned": "K"},
}

# What machines learn that answers depend on.
LEARNED = {
    "theta_": "G h",
    "input_length_scale_": "d",
    "output_length_scale_": "q",
}
NUMBERS = ("input_noise_", "output_noise_", "variance_inflation_")
# Rows in kernel units: the squares of their differences are finite.
FARTHEST = 1e150


def check_record(record, sizes, where="record", values=True):
    """Refuse a record whose arrays do not fit each other.

    Parameters
    ----------
    record : an instance of a class named in `SHAPES`
    sizes : dict
        Sizes that are known; gets those that the record decides.
    where : str
        What to call the record in errors.
    values : bool
        Whether to look at the values too, not at types and shapes alone.

    Examples
    --------
    >>> from overcover.routing import EuclideanRouter
    >>> check_record(EuclideanRouter(np.zeros((5, 2))), {"K": 5, "d": 2})
    >>> check_record(EuclideanRouter(np.zeros((5, 2))), {"K": 6})
    Traceback (most recent call last):
    overcover.store._pack.StoreError: record.means should be of shape (K=6, d) and \
float64, and is float64 of shape (5, 2).
    """
    kind = type(record).__name__
    for field, letters in SHAPES[kind].items():
        value = getattr(record, field)
        name = f"{where}.{field}"
        allowed = RANGES.get(f"{kind}.{field}", RANGES.get(field, FINITE))
        if isinstance(letters, str):
            check_array(value, letters, sizes, name, allowed if values else None)
            continue
        if isinstance(letters, list):
            if type(value) is not list or not _agrees("K", len(value), sizes):
                raise StoreError(f"{name} should be a list, one for each subdomain.")
            for array in value:
                check_array(array, letters[0], dict(sizes), name, allowed)
            continue
        if type(value).__name__ not in letters:
            raise StoreError(f"{name} should be one of {', '.join(letters)}.")
        if value is not None:
            check_record(value, sizes, name, values)


def check_array(array, shape, sizes, name, allowed=FINITE):
    """Refuse what is not an array of this shape, or has values outside a range.

    Parameters
    ----------
    array : what a file gave
    shape : str
        Letters, as in `SHAPES`.
    sizes : dict
        As in `check_record`.
    name : str
        What to call it; its last word decides on the type.
    allowed : pair or None
        As in `RANGES`; None does not look at the values.
    """
    letters, field = shape.split(), name.rpartition(".")[2]
    kinds = ["int64"] if field in WHOLE else ["float64"]
    if letters[-1] in NARROW:
        kinds.append("float32")
    fits = isinstance(array, np.ndarray) and array.dtype.name in kinds
    fits = fits and array.ndim == len(letters)
    if fits and all(_agrees(*pair, sizes) for pair in zip(letters, array.shape)):
        if allowed is not None and array.size:
            _check_range(array, allowed, sizes, name)
        return
    wanted = [f"{x}={sizes[x]}" if x in sizes else x for x in letters]
    given = getattr(array, "dtype", type(array).__name__)
    raise StoreError(
        f"{name} should be of shape ({', '.join(wanted)}) and {' or '.join(kinds)}, "
        f"and is {given} "
        f"of shape {getattr(array, 'shape', None)}."
    )


def _check_range(array, allowed, sizes, name):
    least, most = allowed
    if isinstance(most, str):
        most = sizes.get(most, 2**62) - 1
    low, high = array.min(), array.max()
    if not (least <= low and high <= most):  # nor is NaN
        raise StoreError(
            f"{name} should hold numbers from {least} to {most}, and holds {low} to "
            f"{high}."
        )


def _agrees(letter, size, sizes):
    if size == 0 and letter in NOT_EMPTY:
        return False
    if letter in ("P", "P?"):
        packed = packed_size(sizes["n"])
        return size == packed or (letter == "P?" and size == 0)
    if letter.isdigit():
        return size == int(letter)
    if "+" in letter:
        return size == sum(sizes[part] for part in letter.split("+"))
    return sizes.setdefault(letter, size) == size


def check_machine(machine, sizes):
    """Refuse a machine that could not have been tuned; gives G and h to `sizes`.

    Parameters
    ----------
    machine : Machine
    sizes : dict
        With d, and q if it is known.

    Raises
    ------
    StoreError
    """
    n_outputs = sizes.get("q", 1)
    is_gp = isinstance(machine, GP)
    try:
        machine._check_options(*([sizes["d"]] if is_gp else [sizes["d"], n_outputs]))
        per_output = bool(getattr(machine, "per_output", False))
    except (AttributeError, TypeError, ValueError) as error:
        raise StoreError(f"Its machine's parameters make no sense: {error}") from error
    if is_gp:
        sizes["G"] = n_outputs if per_output else 1
        sizes["h"] = sizes["d"] + 1
        if kernels.is_object(machine.kernel):
            sizes["h"] = _count_hyperparameters(machine.kernel, sizes["d"])
    learned = ("theta_",) if is_gp else tuple(LEARNED)[1:]
    for name in learned:
        value = getattr(machine, name, None)
        check_array(value, LEARNED[name], sizes, f"machine.{name}", RANGES[name])
    if is_gp:
        _check_theta(machine.theta_, "machine.theta_")
        return
    for name in NUMBERS:
        value = getattr(machine, name, None)
        if not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise StoreError(f"machine.{name} should be a positive number.")


def _count_hyperparameters(kernel, n_features):
    """Those of a kernel object and the noise, if the kernel can be asked anything."""
    row = np.zeros((1, n_features))
    try:
        n_own = len(kernel.theta)
        values = kernel.clone_with_theta(kernel.theta)(row, row), kernel.diag(row)
    except Exception as error:  # whatever scikit-learn says of what is no kernel
        raise StoreError(f"Its kernel makes no sense: {error!r}.") from error
    if [np.shape(value) for value in values] != [(1, 1), (1,)]:
        raise StoreError("Its kernel makes no sense.")
    return n_own + 1


def _check_theta(theta, name):
    """A length scale is positive, the noise finite; the logarithm of either is not."""
    if (
        not (theta[:, :-1] > -np.inf).all()
        or not np.isfinite(np.exp(theta[:, -1])).all()
    ):
        raise StoreError(f"{name} holds no logarithms of hyperparameters.")


def check_state(machine, members, state, sizes, where, values=True):
    """Refuse the state of a subdomain that this machine could not have made."""
    expected = GPState if isinstance(machine, GP) else TwinState
    if type(state) is not expected:
        raise StoreError(f"{where}.state should be a {expected.__name__}.")
    sizes = dict(sizes)
    check_record(state, sizes, f"{where}.state", values)
    check_array(members, "n", sizes, f"{where}.members", RANGES["members"])
    calibration = getattr(machine, "calibration_", None)
    if calibration is not None and calibration.locality.max() >= sizes["L"]:
        raise StoreError(f"{where}.state.squarings are fewer than the model needs.")
    if isinstance(state, TwinState):
        kind = _core_of(machine)
        if type(state.core) not in (kind, NoneType):
            raise StoreError(f"{where}.state.core should be a {kind.__name__}.")
    if values:
        _check_distances(state, where)


def _core_of(machine):
    """What a Twin GP keeps of its rows."""
    return MixedCore if isinstance(machine, SharmaMittalTwinGP) else TwinCore


def _check_distances(state, where):
    """Refuse rows and scales that no kernel matrix can be made of."""
    with np.errstate(over="ignore"):
        if isinstance(state, TwinState):
            farthest = max(np.abs(part).max() for part in (state.rows.A, state.rows.Z))
            noise = 1.0 / state.rows.weights
        else:
            _check_theta(state.theta, f"{where}.state.theta")
            farthest, noise = np.abs(state.X).max(), np.exp(state.theta[:, -1].max())
            noise = noise / state.weights
            if state.theta.shape[1] == state.X.shape[1] + 1:
                scales = np.exp(state.theta[:, None, :-1])
                farthest = (np.abs(state.X).max(axis=0) / scales).max()
    if not farthest < FARTHEST or not np.isfinite(noise).all():
        raise StoreError(f"{where}.state holds rows too far apart for its scales.")
