"""Values that come from a file must fit each other, the model and its machine."""

from numbers import Real

import numpy as np

from .. import machines
from .._linalg import packed_size
from .._records import MOST, NUMBER, PART, PART_OR_NONE, Array, record_of, whole
from ._pack import StoreError, refusing

# Letters of sizes that are at least one.
NOT_EMPTY = "NnrKLGh"


def check_value(value, spec, sizes, name, values=True, parts=None):
    """Refuse what is not as declared: an `Array`, a list of one, `NUMBER`, a record.

    A record is declared by its class, or by several; `parts` has those of its parts.
    Sizes must agree with `sizes`, which gets those that it lacks.
    """
    if isinstance(spec, Array):
        _check_array(value, spec, sizes, name, values)
    elif isinstance(spec, list):
        if type(value) is not list or not _agrees("K", len(value), sizes):
            raise StoreError(f"{name} should be a list, one for each subdomain.")
        for array in value:
            _check_array(array, spec[0], dict(sizes), name)
    elif spec == NUMBER:
        if not isinstance(value, Real) or not 0 < float(value) < np.inf:
            raise StoreError(f"{name} should be a positive number.")
    else:
        kinds = spec if isinstance(spec, tuple) else (spec,)
        if type(value) not in kinds:
            names = " or ".join(kind.__name__ for kind in kinds)
            raise StoreError(f"{name} should be a {names}.")
        for field, declared in record_of(type(value)).items():
            item = getattr(value, field)
            if declared in (PART, PART_OR_NONE):
                if declared == PART_OR_NONE and item is None:
                    continue
                declared = parts[field]
            check_value(item, declared, sizes, f"{name}.{field}", values, parts)
        if values and hasattr(value, "check"):
            with refusing(f"{name} makes no sense."):
                value.check()


def _check_array(array, spec, sizes, name, values=True):
    letters, kinds = spec.shape.split(), spec.kinds
    fits = isinstance(array, np.ndarray) and array.dtype.name in kinds
    fits = fits and array.ndim == len(letters)
    if not fits or not all(_agrees(*pair, sizes) for pair in zip(letters, array.shape)):
        needed = [f"{x}={sizes[x]}" if x in sizes else x for x in letters]
        kind = getattr(array, "dtype", type(array).__name__)
        raise StoreError(
            f"{name} should be of shape ({', '.join(needed)}) and "
            f"{' or '.join(kinds)}, and is {kind} of shape "
            f"{getattr(array, 'shape', None)}."
        )
    if not values or not array.size:
        return
    least, most, low, high = spec.least, spec.most, array.min(), array.max()
    if isinstance(most, str):
        most = sizes.get(most, MOST) - 1
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
        return size == packed_size(sizes["n"]) or (letter == "P?" and size == 0)
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
        check_value(getattr(machine, name, None), spec, sizes, f"machine.{name}")
    for name, kind in about.calibrated.items() if is_calibrated else ():
        record = getattr(machine, name, None)
        check_value(record, kind, dict(sizes), f"machine.{name}")


def check_state(machine, members, state, sizes, where, values=True):
    """Refuse the state of a subdomain that is not of this machine."""
    about, name, sizes = machine.description, f"{where}.state", dict(sizes)
    check_value(state, about.state, sizes, name, values, about.parts)
    check_value(members, whole("n"), sizes, f"{where}.members")
    calibration = getattr(machine, "calibration_", None)
    n_ways = sizes.get("L", np.inf)
    if calibration is not None and calibration.locality.max() >= n_ways:
        raise StoreError(f"{name}.squarings are fewer than the model needs.")
