"""Machines: one file each; the protocol is in `base`."""

from sklearn.base import clone

from .any_regressor import AnyRegressor
from .base import Answer, Machine, Prediction
from .gp import GP

__all__ = ["GP", "Answer", "AnyRegressor", "Machine", "Prediction", "make_machine"]

NAMED = {"gp": GP}


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
