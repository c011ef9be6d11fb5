"""Sets from OpenML, checked by their size and by the range of their target."""

from importlib.util import find_spec

import numpy as np
from sklearn.datasets import fetch_openml
from sklearn.utils import Bunch

from ..tables import array_checksum


def fetch_kin8nm(*, data_id=44980, data_home=None, checksum=None):
    """Fetch kin8nm: forward kinematics of a robot arm, with some noise.

    Parameters
    ----------
    data_id : int, default=44980
        OpenML's number of the set.
    data_home : str, path-like or None
        Where scikit-learn keeps what it has fetched.
    checksum : str or None
        Refuse contents with another `array_checksum` of data and target, such as that
        of your first download.

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
        If the contents are not this set.

    Examples
    --------
    >>> from overcover.datasets import fetch_kin8nm
    >>> kin8nm = fetch_kin8nm()  # doctest: +SKIP
    """
    by_hand, where = "kin8nm of the DELVE archive", (data_id, data_home, checksum)
    return _fetch("kin8nm", (8192, 8), (-np.inf, np.inf), by_hand, *where)


def fetch_protein(*, data_id=44963, data_home=None, checksum=None):
    """Fetch the physicochemical properties of protein tertiary structure.

    Parameters
    ----------
    data_id, data_home, checksum :
        As in `fetch_kin8nm`, and so are the errors.

    Returns
    -------
    Bunch
        data of shape (45730, 9), target (45730,), the deviation (RMSD) from 0 to 21,
        feature_names, target_names.

    Examples
    --------
    >>> from overcover.datasets import fetch_protein
    >>> protein = fetch_protein()  # doctest: +SKIP
    """
    by_hand = "CASP.csv of the UCI repository (target RMSD)"
    name, where = "physiochemical_protein", (data_id, data_home, checksum)
    return _fetch(name, (45730, 9), (0.0, 21.0), by_hand, *where)


def _fetch(name, shape, target_range, by_hand, data_id, data_home, checksum):
    """A set of OpenML, unless it cannot be what it should be."""
    # scikit-learn's default parser needs pandas; the other one is slow.
    parser = "pandas" if find_spec("pandas") else "liac-arff"
    try:
        content = fetch_openml(
            data_id=data_id, data_home=data_home, as_frame=False, parser=parser
        )
    except (OSError, ValueError) as error:
        raise OSError(
            f"OpenML did not give {name} (data_id={data_id}): {error!r}. Check the "
            f"connection and the number, or download {by_hand} by hand and read it by "
            "overcover.datasets.load_table(path, target)."
        ) from error
    X = np.asarray(content.data, dtype=np.float64)
    y = np.asarray(content.target, dtype=np.float64).ravel()
    low, high = target_range
    is_finite = np.isfinite(X).all() and np.isfinite(y).all()
    for fault, is_there in (
        (f"data of shape {X.shape}, not {shape}", X.shape != shape),
        (f"{y.size} targets, not {shape[0]}", y.size != shape[0]),
        ("values that are missing or infinite", not is_finite),
        ("a constant target", y.size and np.ptp(y) == 0),
        (f"a target outside [{low}, {high}]", np.any((y < low) | (y > high))),
    ):
        if is_there:
            raise ValueError(
                f"OpenML's data are not {name}: they have {fault}. Pass the right "
                f"data_id, or download {by_hand} and use load_table."
            )
    if checksum is not None and (sum_ := array_checksum(X, y)) != checksum.lower():
        raise ValueError(
            f"{name} has array_checksum {sum_}, not {checksum}: the contents have "
            "changed since that sum was taken."
        )
    names = list(content.feature_names), list(content.target_names)
    return Bunch(data=X, target=y, feature_names=names[0], target_names=names[1])
