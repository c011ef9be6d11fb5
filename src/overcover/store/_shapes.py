"""What shapes the arrays of a record must have, so that they fit each other.

Compiled loops trust the shapes they are given; a file need not tell the truth. Letters
stand for sizes that must agree within a record and with the model: n rows of the
subdomain, d features, q outputs, r pivots, K subdomains, l rows left out, L ways to
localise, G groups of outputs. "P" is the size of a packed triangle of n rows, "P?" that
or nothing, "r+q" a sum. A tuple names the records that may stand in a field.
"""

from typing import Any

import numpy as np

from .._linalg import packed_size
from ..machines import GP
from ..machines.gp_state import GPState
from ..machines.twin_gp import TwinState
from ._pack import StoreError

WHOLE = ("squarings", "left", "locality", "labels")
"""Fields of whole numbers; all others are floats of 64 bits."""

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
    },
    "TwinState": {
        "rows": ("TwinRows",),
        # None where it is to be made again from the rows.
        "core": ("TwinCore", "MixedCore", "PaperCore", "NoneType"),
        "left": "l",
        "residuals_sq": "l q",
        "residuals_sq_mean": "q",
        "ratios": "L l q",
        "squarings": "L",
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
    "PaperCore": {"pivots": "n q", "C": "n n", "factor": "n n", "readout": "n n+q"},
    "Calibration": {
        "locality": "q",
        "least_scale": "q",
        "factor": "q",
        "quantiles": "v q",
        "tail": "q",
        "width": "q",
    },
    "VarianceRouter": {"means": "K d"},
    "EuclideanRouter": {"means": "K d"},
    "GaussianRouter": {
        "means": "K d",
        "directions": "d s",
        "whiteners": "K s s",
        "log_volumes": "K",
    },
    "NeighborsRouter": {"rows": "N d", "labels": "N", "means": "K d"},
}


def check_record(record, sizes, where="record"):
    """Refuse a record whose arrays do not fit each other.

    Parameters
    ----------
    record : an instance of a class named in `SHAPES`
    sizes : dict
        Sizes that are known; gets those that the record decides.
    where : str
        What to call the record in errors.

    Examples
    --------
    >>> from overcover.routing import EuclideanRouter
    >>> check_record(EuclideanRouter(np.zeros((5, 2))), {"K": 5, "d": 2})
    >>> check_record(EuclideanRouter(np.zeros((5, 2))), {"K": 6})
    Traceback (most recent call last):
    overcover.store._pack.StoreError: record.means should be of shape (K=6, d) and \
float64, and is float64 of shape (5, 2).
    """
    for field, letters in SHAPES[type(record).__name__].items():
        value = getattr(record, field)
        name = f"{where}.{field}"
        if isinstance(letters, str):
            _check_array(value, letters.split(), sizes, name, field in WHOLE)
            continue
        if type(value).__name__ not in letters:
            raise StoreError(f"{name} should be one of {', '.join(letters)}.")
        if value is not None:
            check_record(value, sizes, name)


def _check_array(array, letters, sizes, name, whole):
    kinds = ["int64"] if whole else ["float64"]
    if letters[-1] in NARROW:
        kinds.append("float32")
    fits = isinstance(array, np.ndarray) and array.dtype.name in kinds
    fits = fits and array.ndim == len(letters)
    if fits and all(_agrees(*pair, sizes) for pair in zip(letters, array.shape)):
        return
    wanted = [f"{x}={sizes[x]}" if x in sizes else x for x in letters]
    given = getattr(array, "dtype", type(array).__name__)
    raise StoreError(
        f"{name} should be of shape ({', '.join(wanted)}) and {' or '.join(kinds)}, "
        f"and is {given} "
        f"of shape {getattr(array, 'shape', None)}."
    )


def _agrees(letter, size, sizes):
    if letter in ("P", "P?"):
        packed = packed_size(sizes["n"])
        return size == packed or (letter == "P?" and size == 0)
    if "+" in letter:
        return size == sum(sizes[part] for part in letter.split("+"))
    return sizes.setdefault(letter, size) == size


def check_state(machine, members, state, sizes, where):
    """Refuse the state of a subdomain that this machine could not have made."""
    expected = GPState if isinstance(machine, GP) else TwinState
    if type(state) is not expected:
        raise StoreError(f"{where}.state should be a {expected.__name__}.")
    sizes = dict(sizes)
    check_record(state, sizes, f"{where}.state")
    _check_array(members, ["n"], sizes, f"{where}.members", whole=True)
    left = getattr(state, "left", members[:0])
    if len(left) and not 0 <= left.min() <= left.max() < sizes["n"]:
        raise StoreError(f"{where}.state.left names rows that are not there.")
