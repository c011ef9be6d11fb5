"""What the GP baselines share: one kernel for all rows, found as a cover finds it."""

import numpy as np

from ..machines import GP, make_machine


def shared_gp(machine) -> GP:
    """A fresh GP whose hyperparameters hold everywhere.

    Parameters
    ----------
    machine : GP or None

    Returns
    -------
    GP

    Raises
    ------
    ValueError
        If it is no GP, or has hyperparameters per output or per subdomain.
    """
    made = make_machine(machine)
    if not isinstance(made, GP) or made.per_output is True or made.per_subdomain:
        raise ValueError(
            f"machine={machine!r} must be a GP whose hyperparameters all rows and "
            "outputs share: GP(), GP(kernel='rbf'), GP(length_scale=2.0, noise=0.1), "
            "or None."
        )
    return made.set_params(per_output=False)


def row_noises(noise, n_samples, weights):
    """Noise of each row, shape (n_samples,): a row of weight w is w equal rows."""
    return np.full(n_samples, noise) if weights is None else noise / weights
