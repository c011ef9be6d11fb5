"""Machines: one file each; the protocol is in `base`.

A machine that is registered here is known by its name, to the store and to the command
line.
"""

from sklearn.base import clone

from .._parameters import NestedPart
from .any_regressor import AnyRegressor
from .base import Answer, Description, Machine, Recalled, check_covariance_fits
from .gp import GP
from .predictor import FullModel, Prediction, Predictor
from .sharma_mittal import SharmaMittalTwinGP
from .twin_gp import TwinGP
from .weighted_twin_gp import ImportanceWeightedTwinGP

__all__ = [
    "GP",
    "Answer",
    "AnyRegressor",
    "Description",
    "FullModel",
    "ImportanceWeightedTwinGP",
    "Machine",
    "Prediction",
    "Predictor",
    "Recalled",
    "SharmaMittalTwinGP",
    "TakesMachine",
    "TwinGP",
    "check_covariance_fits",
    "make_machine",
    "register",
]

NAMED: dict[str, type[Machine]] = {}


def register(kind: type[Machine]) -> type[Machine]:
    """Make a class of machines known by the name in its `description`; a decorator."""
    name = kind.description.name
    if not name or NAMED.get(name, kind) is not kind:
        raise ValueError(
            f"{kind.__name__} needs a description with a name of its own, other than "
            f"{', '.join(map(repr, NAMED))}; it has {name!r}."
        )
    NAMED[name] = kind
    return kind


for _kind in (GP, TwinGP, ImportanceWeightedTwinGP, SharmaMittalTwinGP):
    register(_kind)


def make_machine(machine) -> Machine:
    """A fresh machine from an instance, a name, any regressor, or None for a GP.

    Examples
    --------
    >>> make_machine("gp")
    GP()
    """
    if machine is None:
        return GP()
    if isinstance(machine, str) and machine in NAMED:
        return NAMED[machine]()
    if isinstance(machine, Machine):
        return clone(machine)
    if hasattr(machine, "fit") and hasattr(machine, "predict"):
        return AnyRegressor(clone(machine))
    raise ValueError(
        f"machine={machine!r} is not known. Choose one of "
        f"{', '.join(map(repr, NAMED))}, give a machine such as GP(), any "
        "scikit-learn regressor, or None."
    )


class TakesMachine(NestedPart):
    """An estimator with a parameter `machine`, as `make_machine` takes it."""

    def _part_from(self, value):
        is_name = isinstance(value, str) and value in NAMED
        return make_machine(value) if value is None or is_name else None
