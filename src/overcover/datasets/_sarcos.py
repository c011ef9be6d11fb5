"""SARCOS: inverse dynamics of a robot arm with seven joints."""

import numpy as np
from sklearn.utils import Bunch

from ..tables import check_path
from ._formats import read_mat

KEYS = ("sarcos_inv", "sarcos_inv_test")
N_INPUTS, N_TORQUES = 21, 7


def load_sarcos(path_train, path_test=None, *, sha256=None, sha256_test=None):
    """Read the SARCOS files: 21 positions, velocities, accelerations to 7 torques.

    The files are ``sarcos_inv.mat`` (44484 rows) and ``sarcos_inv_test.mat`` (4449) of
    the book *Gaussian Processes for Machine Learning*. Most rows of the second are rows
    of the first as well (see ``in_train``), so errors on them are too small: split the
    first at random.

    Parameters
    ----------
    path_train : str or path-like
    path_test : str, path-like or None
    sha256, sha256_test : str or None
        Refuse files with other sums; see `file_checksum`.

    Returns
    -------
    Bunch
        data of shape (n, 21), target (n, 7), feature_names, target_names; with
        `path_test` also data_test, target_test, and in_train of shape (n_test,), true
        where the inputs of a test row are those of a training row.

    Examples
    --------
    >>> import tempfile, pathlib, numpy as np
    >>> from scipy.io import savemat
    >>> from overcover.datasets import load_sarcos
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "sarcos_inv.mat"
    ...     savemat(path, {"sarcos_inv": np.ones((5, 28))})
    ...     sarcos = load_sarcos(path)
    >>> sarcos.data.shape, sarcos.target.shape, sarcos.target_names[0]
    ((5, 21), (5, 7), 'torque_1')
    """
    data, target = _read(path_train, sha256)
    joints = range(1, N_TORQUES + 1)
    kinds = ("position", "velocity", "acceleration")
    bunch = Bunch(
        data=data,
        target=target,
        feature_names=[f"{kind}_{j}" for kind in kinds for j in joints],
        target_names=[f"torque_{j}" for j in joints],
    )
    if path_test is not None:
        bunch.data_test, bunch.target_test = _read(path_test, sha256_test)
        known = {row.tobytes() for row in data}
        bunch.in_train = np.array([r.tobytes() in known for r in bunch.data_test])
    return bunch


def _read(path, sha256):
    """Inputs and torques of one file."""
    path = check_path(path, sha256)
    table = read_mat(path, KEYS)
    is_number = table.dtype.kind in "biuf"
    if not is_number or table.ndim != 2 or table.shape[1] != N_INPUTS + N_TORQUES:
        raise ValueError(
            f"{str(path)!r} holds a table of {table.dtype} and shape {table.shape}; "
            f"SARCOS has numbers for {N_INPUTS} inputs and {N_TORQUES} torques, 28 "
            "columns."
        )
    # MATLAB stores columns, and big-endian ones here.
    table = np.ascontiguousarray(table, dtype=np.float64)
    n_bad = np.count_nonzero(~np.isfinite(table))
    if n_bad:
        raise ValueError(
            f"{str(path)!r} holds {n_bad} values that are missing or infinite; the "
            "published file has none. Get it again."
        )
    return table[:, :N_INPUTS].copy(), table[:, N_INPUTS:].copy()
