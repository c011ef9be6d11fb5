"""Records that come from a file must fit each other, the model and its machine."""

from numbers import Real
from types import NoneType

import numpy as np

from .. import machines
from .._linalg import packed_size
from .._records import MOST, NUMBER, PART_OR_NONE, Array, positive, record_of, whole
from ._pack import StoreError, refusing

# Letters of sizes that are at least one.
NOT_EMPTY = "NnrKLGh"
# Arrays beside the records.
MEMBERS, N_OWNED, WEIGHTS = whole("n"), whole("K", 1), positive("N")
LENGTH_SCALES, GROUPS = positive("d", np.inf), whole("N")


def check_record(record, sizes, where="record", values=True, parts=None):
    """Refuse a record whose arrays do not fit each other or `sizes`; adds theirs."""
    for field, spec in record_of(type(record)).items():
        value, name = getattr(record, field), f"{where}.{field}"
        if isinstance(spec, Array):
            check_array(value, spec, sizes, name, values)
        elif isinstance(spec, list):
            if type(value) is not list or not _agrees("K", len(value), sizes):
                raise StoreError(f"{name} should be a list, one for each subdomain.")
            for array in value:
                check_array(array, spec[0], dict(sizes), name)
        else:
            kind = (parts or {})[field]
            allowed = (kind, NoneType) if spec == PART_OR_NONE else (kind,)
            if type(value) not in allowed:
                raise StoreError(f"{name} should be a {kind.__name__}.")
            if value is not None:
                check_record(value, sizes, name, values, parts)


def check_array(array, spec: Array, sizes, name, values=True):
    """Refuse what is not an array as declared; see `check_record`."""
    letters, kinds = spec.shape.split(), spec.kinds
    fits = isinstance(array, np.ndarray) and array.dtype.name in kinds
    fits = fits and array.ndim == len(letters)
    if fits and all(_agrees(*pair, sizes) for pair in zip(letters, array.shape)):
        if values and array.size:
            _check_values(array, spec, sizes, name)
        return
    needed = [f"{x}={sizes[x]}" if x in sizes else x for x in letters]
    kind = getattr(array, "dtype", type(array).__name__)
    raise StoreError(
        f"{name} should be of shape ({', '.join(needed)}) and {' or '.join(kinds)}, "
        f"and is {kind} of shape {getattr(array, 'shape', None)}."
    )


def _check_values(array, spec, sizes, name):
    least, most = spec.least, spec.most
    if isinstance(most, str):
        most = sizes.get(most, MOST) - 1
    low, high = array.min(), array.max()
    if not (least <= low and high <= most):  # nor is NaN
        raise StoreError(
            f"{name} should hold numbers from {least} to {most}, and holds {low} to "
            f"{high}."
        )
    if spec.rule is not None and not spec.rule(array):
        raise StoreError(f"{name} holds numbers that make no sense together.")


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


def check_machine(machine, sizes, is_calibrated=False):
    """Refuse a machine that is not tuned, or calibrated; adds to `sizes`."""
    if type(machine) not in machines.NAMED.values():
        raise StoreError("Its machine is of another class.")
    about = machine.description
    with refusing("Its machine's parameters make no sense:"):
        sizes |= machine.check_options(sizes["d"], sizes.get("q", 1))
    for name, spec in about.tuned.items():
        value = getattr(machine, name, None)
        if spec != NUMBER:
            check_array(value, spec, sizes, f"machine.{name}")
        elif not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise StoreError(f"machine.{name} should be a positive number.")
    for name, kind in about.calibrated.items() if is_calibrated else ():
        record = getattr(machine, name, None)
        if type(record) is not kind:
            raise StoreError(f"machine.{name} should be a {kind.__name__}.")
        check_record(record, dict(sizes), f"machine.{name}")


def check_state(machine, members, state, sizes, where, values=True):
    """Refuse the state of a subdomain that is not of this machine."""
    about, name = machine.description, f"{where}.state"
    if type(state) is not about.state:
        raise StoreError(f"{name} should be a {about.state.__name__}.")
    sizes = dict(sizes)
    check_record(state, sizes, name, values, about.parts)
    check_array(members, MEMBERS, sizes, f"{where}.members")
    calibration = getattr(machine, "calibration_", None)
    n_ways = sizes.get("L", np.inf)
    if calibration is not None and calibration.locality.max() >= n_ways:
        raise StoreError(f"{name}.squarings are fewer than the model needs.")
    if values and hasattr(state, "check"):
        with refusing(f"{name} makes no sense."):
            state.check()
