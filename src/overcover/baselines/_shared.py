"""Functions of the GP baselines: one kernel for all rows, tuned as for a cover."""

import numpy as np

from ..machines import GP, make_machine


def shared_gp(machine) -> GP:
    """A new GP with the same hyperparameters everywhere.

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
    gp = make_machine(machine)
    if not isinstance(gp, GP) or gp.per_output is True or gp.per_subdomain:
        raise ValueError(
            f"machine={machine!r} must be a GP whose hyperparameters all rows and "
            "outputs share: GP(), GP(kernel='rbf'), GP(length_scale=2.0, noise=0.1), "
            "or None."
        )
    return gp.set_params(per_output=False)


def row_noises(noise, n_samples, weights):
    """Noise of each row, shape (n_samples,): a row of weight w is w equal rows."""
    return np.full(n_samples, noise) if weights is None else noise / weights
