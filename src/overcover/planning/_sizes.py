r"""What M and p decide before anything is measured: counts, bytes, and a good M.

With :math:`D = 1 / (1 - p)`, the number of subdomains that a row is in, the machines
take :math:`D N M^2` multiply-adds and hold :math:`D N` rows of inputs and outputs,
whatever M, and :math:`D N M / 2` numbers where factors are kept.
"""

import pickle
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils import check_random_state

from ..machines import make_machine
from ..machines.base import KEPT_BYTES

# What a fit takes unless told otherwise, and so what a plan without a budget plans.
DEFAULT_SIZE, DEFAULT_OVERLAP = 800, 0.9
SIZES = (100, 150, 200, 300, 400, 600, 800, 1200, 1600)
# "auto": multiply-adds of all machines (a minute or two of one core), and the size
# below which a local machine knows too little to be worth the haste.
AUTO_WORK, LEAST_AUTO = 1e12, 400
# Up to this size, times the root of D, the full model takes no more work than a cover.
WHOLE = 800
# Sizes at which the bytes of a state are counted; they are quadratic in the size.
COUNTED = (40, 80, 160)
# What stands for "auto" where only cost matters, in deviations times the root of d.
TYPICAL_LENGTH, TYPICAL_NOISE = 1.0, 0.05


class StateBytes(NamedTuple):
    """Bytes of one subdomain's state as a polynomial in its size."""

    lean: np.ndarray
    """Without what can be made again, highest power first, shape (3,)."""

    kept: np.ndarray
    """What `keep_factors` adds, shape (3,)."""

    def at(self, size, keep) -> float:
        """Bytes of a state of so many rows."""
        lean, kept = (float(np.polyval(c, size)) for c in self)
        return max(lean, 0.0) + (max(kept, 0.0) if keep else 0.0)


def auto_size(n_samples, n_outputs=1, overlap=DEFAULT_OVERLAP, machine=None) -> int:
    r"""The size of subdomains that ``subdomain_size="auto"`` stands for.

    A rule of counts alone, so that it is the same on every computer:

    1. all rows, :math:`M = N`, while the full model takes no more work than a cover of
       subdomains of 800, :math:`N \le 800 / \sqrt{1 - p}`;
    2. else the largest of 400, 600, 800, 1200, 1600 for which the machines take at most
       :math:`10^{12}` multiply-adds, :math:`G N M^2 / (1 - p)`, and their factors at
       most 4 GiB, :math:`4 G N M / (1 - p)` bytes;
    3. 400 where none does; factors that take more than 4 GiB are then not kept (see
       `GP`), unless ``keep_factors=True``, with which M falls to 100 if need be.

    G is one, or the number of outputs with ``GP(per_output=True)``.

    Parameters
    ----------
    n_samples, n_outputs : int
    overlap : float in [0, 1)
    machine : Machine, str or None

    Returns
    -------
    int

    Examples
    --------
    >>> [auto_size(n) for n in (2000, 10_000, 100_000, 1_000_000)]
    [2000, 1600, 800, 400]
    """
    machine = make_machine(machine)
    n_groups = n_outputs if getattr(machine, "per_output", False) else 1
    members = n_groups * n_samples / (1.0 - overlap)
    if n_samples * np.sqrt(1.0 - overlap) <= WHOLE:
        return max(1, int(n_samples))
    must_keep = getattr(machine, "keep_factors", "auto") is True
    allowed = [
        size
        for size in SIZES
        if (members * size**2 <= AUTO_WORK or size <= LEAST_AUTO)
        and (4 * members * size <= KEPT_BYTES or (size <= LEAST_AUTO and not must_keep))
        and 2 * size <= n_samples
    ]
    return max(allowed, default=SIZES[0])


def check_auto(word):
    """Refuse a size that is a word other than "auto"."""
    if word != "auto":
        raise ValueError(
            f"subdomain_size={word!r} must be a number of rows such as 800, or 'auto'."
        )


def candidate_sizes(n_samples):
    """Sizes to choose among: at most half the rows, or all of them if they are few.

    A subdomain of more than half the rows costs more than all of them, and knows less.

    Examples
    --------
    >>> candidate_sizes(500), candidate_sizes(10**6)[-2:], candidate_sizes(50)
    ([100, 150, 200, 500], [1200, 1600], [50])
    """
    sizes = [size for size in SIZES if 2 * size <= n_samples]
    return [*sizes, n_samples] if n_samples <= 2 * SIZES[-1] else sizes


class Asked:
    """A machine as it was asked for, equal to another of the same parameters."""

    def __init__(self, machine):
        self.machine, self.text = machine, repr(machine.get_params())
        self.key = type(machine), self.text

    @classmethod
    def of(cls, machine):
        """From a machine, its name, or None."""
        return cls(make_machine(machine))

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        return isinstance(other, Asked) and self.key == other.key


@lru_cache(maxsize=64)
def typical_machine(asked: Asked, n_features, n_outputs):
    """A machine that is tuned, as far as its cost goes, on rows of `typical_rows`."""
    machine = clone(asked.machine)
    length = TYPICAL_LENGTH * np.sqrt(n_features)
    typical = dict.fromkeys(("noise", "input_noise", "output_noise"), TYPICAL_NOISE)
    typical |= {"length_scale": length, "input_length_scale": length}
    typical["output_length_scale"] = np.sqrt(n_outputs)
    # Data decide on the type; what is larger and slower is planned for.
    given = typical | {"factor_dtype": "float64"}
    params = machine.get_params(deep=False)
    machine.set_params(**{k: v for k, v in given.items() if is_auto(params.get(k))})
    X, Y = typical_rows(COUNTED[0], n_features, n_outputs)
    machine.tune(X, Y, None, len(X), check_random_state(0), None)
    return machine


def is_auto(value):
    """Whether a parameter is to be found."""
    return isinstance(value, str) and value == "auto"


def typical_rows(n_samples, n_features, n_outputs):
    """Rows on a curved sheet, as most data are; outputs follow it with a little noise.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    Y : ndarray of shape (n_samples, n_outputs)
    """
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(n_samples, 5))
    X = np.sin(hidden @ rng.normal(size=(5, n_features)))
    X += 0.3 * rng.normal(size=X.shape)
    Y = np.sin(hidden @ rng.normal(size=(5, n_outputs)))
    return X, Y + 0.1 * rng.normal(size=Y.shape)


@lru_cache(maxsize=256)
def state_bytes(asked: Asked, n_features, n_outputs, overlap) -> StateBytes:
    """Bytes of the states of a machine, from a few small ones that are really made.

    Parameters
    ----------
    asked : Asked
    n_features, n_outputs : int
    overlap : float in [0, 1)

    Returns
    -------
    StateBytes
    """
    machine, counts = typical_machine(asked, n_features, n_outputs), []
    for size in COUNTED:
        X, Y = typical_rows(size, n_features, n_outputs)
        n_owned = max(1, round((1.0 - overlap) * size))
        counts.append(
            [
                bytes_of(machine.fit_state(X, Y, None, n_owned, keep))
                for keep in (False, True)
            ]
        )
    lean, full = np.array(counts, dtype=float).T
    lean, full = np.polyfit(COUNTED, lean, 2), np.polyfit(COUNTED, full, 2)
    return StateBytes(lean, full - lean)


def bytes_of(tree: Any) -> int:
    """Bytes of all arrays in a state, however nested; of anything else as pickled.

    Examples
    --------
    >>> bytes_of((np.zeros(3), [np.zeros(2), None]))
    40
    """
    if isinstance(tree, np.ndarray):
        return tree.nbytes
    if tree is None:
        return 0
    if isinstance(tree, tuple | list):
        return sum(bytes_of(part) for part in tree)
    return len(pickle.dumps(tree))
