"""Machines: one file each; the protocol is in `base`."""

from sklearn.base import clone

from .._parameters import NestedPart
from .any_regressor import AnyRegressor
from .base import Answer, Machine, Prediction
from .gp import GP
from .sharma_mittal import SharmaMittalTwinGP
from .twin_gp import TwinGP
from .weighted_twin_gp import ImportanceWeightedTwinGP

__all__ = [
    "GP",
    "Answer",
    "AnyRegressor",
    "ImportanceWeightedTwinGP",
    "Machine",
    "Prediction",
    "SharmaMittalTwinGP",
    "TakesMachine",
    "TwinGP",
    "make_machine",
]

NAMED: dict[str, type[Machine]] = {
    "gp": GP,
    "tgp": TwinGP,
    "iwtgp": ImportanceWeightedTwinGP,
    "smtgp": SharmaMittalTwinGP,
}


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

    def _part_from(self, given):
        is_name = isinstance(given, str) and given in NAMED
        return make_machine(given) if given is None or is_name else None
