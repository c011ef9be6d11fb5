"""Sets from OpenML, checked by their size and by the range of their target.

To pin the contents, pass the `array_checksum` of your first download as ``checksum=``.
"""

from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from ..tables import array_checksum


class Known(NamedTuple):
    """Facts about a set."""

    name: str
    shape: tuple[int, int]
    by_hand: str
    target_range: tuple[float, float] = (-np.inf, np.inf)


KIN8NM = Known("kin8nm", (8192, 8), "kin8nm of the DELVE archive")
PROTEIN = Known(
    "physiochemical_protein",
    (45730, 9),
    "CASP.csv of the UCI repository (target RMSD)",
    (0.0, 21.0),
)


def fetch_kin8nm(*, data_id=44980, data_home=None, checksum=None):
    """Fetch kin8nm: forward kinematics of a robot arm, with some noise.

    Parameters
    ----------
    data_id : int, default=44980
        OpenML's number of the set.
    data_home : str, path-like or None
        Where scikit-learn keeps what it has fetched.
    checksum : str or None
        Refuse contents with another `array_checksum` of data and target.

    Returns
    -------
    Bunch
        data of shape (8192, 8), target (8192,), feature_names, target_names.

    Raises
    ------
    OSError
        Without a connection, or if OpenML does not answer as expected; it says what to
        download by hand and read by `load_table`.
    ValueError
        If what came is not this set.

    Examples
    --------
    >>> from overcover.datasets import fetch_kin8nm
    >>> kin8nm = fetch_kin8nm()  # doctest: +SKIP
    """
    return _fetch(KIN8NM, data_id, data_home, checksum)


def fetch_protein(*, data_id=44963, data_home=None, checksum=None):
    """Fetch the physicochemical properties of protein tertiary structure.

    Parameters
    ----------
    data_id : int, default=44963
        OpenML's number of the set.
    data_home : str, path-like or None
        Where scikit-learn keeps what it has fetched.
    checksum : str or None
        Refuse contents with another `array_checksum` of data and target.

    Returns
    -------
    Bunch
        data of shape (45730, 9), target (45730,), the deviation (RMSD) from 0 to 21,
        feature_names, target_names. Errors are those of `fetch_kin8nm`.

    Examples
    --------
    >>> from overcover.datasets import fetch_protein
    >>> protein = fetch_protein()  # doctest: +SKIP
    """
    return _fetch(PROTEIN, data_id, data_home, checksum)


def _fetch(known, data_id, data_home, checksum):
    # scikit-learn's default parser needs pandas; the other one is slow, but is there.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        got = fetch_openml(
            data_id=data_id, data_home=data_home, as_frame=False, parser=parser
        )
    except (OSError, ValueError) as error:
        raise OSError(
            f"OpenML did not give {known.name} (data_id={data_id}): {error!r}. Check "
            f"the connection and the number, or download {known.by_hand} by hand and "
            "read it by overcover.datasets.load_table(path, target)."
        ) from error
    bunch = Bunch(
        data=np.asarray(got.data, dtype=np.float64),
        target=np.asarray(got.target, dtype=np.float64).ravel(),
        feature_names=list(got.feature_names),
        target_names=list(got.target_names),
    )
    _check(known, bunch, checksum)
    return bunch


def _check(known, bunch, checksum):
    """Refuse what cannot be the set."""
    n_rows, (low, high) = known.shape[0], known.target_range
    X, y = bunch.data, bunch.target
    faults = {
        f"data of shape {X.shape}, not {known.shape}": X.shape != known.shape,
        f"{y.size} targets, not {n_rows}": y.size != n_rows,
        "values that are missing or infinite": not (
            np.isfinite(X).all() and np.isfinite(y).all()
        ),
        "a constant target": y.size > 0 and np.ptp(y) == 0,
        f"a target outside [{low}, {high}]": bool(((y < low) | (y > high)).any()),
    }
    for fault, there in faults.items():
        if there:
            raise ValueError(
                f"What OpenML gave is not {known.name}: it has {fault}. Pass the right "
                f"data_id, or download {known.by_hand} and use load_table."
            )
    if checksum is not None and (sum_ := array_checksum(X, y)) != checksum.lower():
        raise ValueError(
            f"{known.name} has array_checksum {sum_}, not {checksum}: the contents "
            "have changed since that sum was taken."
        )
