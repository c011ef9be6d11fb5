"""Trees of named tuples, estimators, arrays and plain values, as JSON and arrays.

Only the classes in the tables below, and those of registered machines and routers, can
be made: nothing is imported or unpickled. What JSON does not know has the key "@".
"""

import inspect
import math
import re
from typing import Any, NamedTuple

import numpy as np
import sklearn.cluster
from sklearn.base import BaseEstimator
from sklearn.gaussian_process import kernels as sklearn_kernels

from .. import learning, machines, routing
from .._records import record_of
from ..cover import Cover
from ..density_ratio import RelativeDensityRatio
from ..inputs import InputScales
from ..partition import EqualSizeKMeans, Partition, RecursiveProjection, TwoLevelKMeans
from ..regressor import OverlappingCoverRegressor
from ..tables import TableEncoder
from ..targets import CHOICES, Scales, Transformed
from ._pack import DTYPES, StoreError


def record_classes() -> dict[str, type]:
    """Classes that declare their fields (see `overcover._records`), by name."""
    kinds: list[Any] = [Partition, Cover, Scales, InputScales]
    kinds += [learning.Borders, learning.Promise, *routing.ROUTERS.values()]
    for machine in machines.NAMED.values():
        about = machine.description
        kinds += [about.state, *about.parts.values(), *about.calibrated.values()]
    return {kind.__name__: kind for kind in kinds if kind is not None}


def estimator_classes() -> dict[str, type]:
    """Estimators that are stored with what they learned, by name."""
    kinds: list[type] = [OverlappingCoverRegressor, RelativeDensityRatio, TableEncoder]
    kinds += [EqualSizeKMeans, RecursiveProjection, TwoLevelKMeans]
    kinds += machines.NAMED.values()
    return {kind.__name__: kind for kind in kinds}


# Stored unfitted, as the parameter `partition`.
CLUSTERERS: dict[str, type] = {
    name: getattr(sklearn.cluster, name)
    for name in sklearn.cluster.__all__
    if hasattr(getattr(sklearn.cluster, name), "fit_predict")
    and name != "FeatureAgglomeration"  # clusters columns, and wants a function
}
KERNELS: dict[str, type] = {
    name: kind
    for name, kind in vars(sklearn_kernels).items()
    if inspect.isclass(kind)
    and issubclass(kind, sklearn_kernels.Kernel)
    and not inspect.isabstract(kind)
}
FOREIGN = (*CLUSTERERS.values(), *KERNELS.values())
# Parameters of these that may hold a word, each a choice among a few.
# No other may: a word may also name a file, and `memory` names a folder of pickles.
WORDS = {"affinity", "algorithm", "assign_labels", "bisecting_strategy"}
WORDS |= {"cluster_method", "cluster_selection_method", "compute_full_tree"}
WORDS |= {"eigen_solver", "eigen_tol", "init", "linkage", "metric", "n_init"}
WORDS |= {"store_centers"}
BOUNDS = "_bounds"  # of a kernel's hyperparameter, or "fixed"
# What an estimator learned ends in an underscore, or is one of these.
FITTED = re.compile(r"[a-z][A-Za-z0-9_]*_|_y_ndim|_center|_scale")
DEEPEST = 200


class Encoded(NamedTuple):
    """A tree, its arrays, and the type of each array on disk."""

    tree: Any
    arrays: list[np.ndarray]
    stored: list[str]


def encode(value, where="model", dtype="float64") -> Encoded:
    """A tree as plain values and arrays; "float32" narrows factors alone."""
    coder = _Encoder(dtype)
    return Encoded(coder.tree_of(value, where), coder.arrays, coder.stored)


class _Encoder:
    def __init__(self, dtype):
        self.narrow = dtype == "float32"
        self.arrays: list[np.ndarray] = []
        self.stored: list[str] = []
        self.numbers: dict[tuple[int, bool], int] = {}
        self.records, self.estimators = record_classes(), estimator_classes()

    def tree_of(self, value, where, narrow=False):
        if value is None or type(value) in (bool, int):
            return value
        if isinstance(value, str):
            return str(value)
        if type(value) is float:
            is_plain = math.isfinite(value)
            return value if is_plain else {"@": "float", "value": repr(value)}
        if isinstance(value, np.generic):
            return self.array(np.asarray(value), where) | {"@": "scalar"}
        if isinstance(value, np.ndarray):
            return self.array(value, where, narrow)
        if type(value) in (list, tuple):
            items = [self.tree_of(v, f"{where}[{i}]") for i, v in enumerate(value)]
            return items if type(value) is list else {"@": "tuple", "items": items}
        if type(value) is dict:
            if odd := [key for key in value if type(key) is not str]:
                text = f"{where} has the key {odd[0]!r}: only words can be stored."
                raise StoreError(text)
            trees = self.trees(value, where, "[{!r}]")
            return {"@": "dict", "items": [list(pair) for pair in trees.items()]}
        if isinstance(value, np.random.RandomState):
            state = self.tree_of(value.get_state(), where)
            return {"@": "random_state", "state": state}
        return self.instance(value, where)

    def trees(self, values, where, place=".{}"):
        return {k: self.tree_of(v, where + place.format(k)) for k, v in values.items()}

    def array(self, value, where, narrow=False):
        words = value.dtype == object and value.ndim == 1
        if words and all(isinstance(item, str) for item in value):
            return {"@": "strings", "items": [str(item) for item in value]}
        if value.dtype.str not in DTYPES:
            raise StoreError(
                f"{where} is an array of {value.dtype}, which cannot be stored: only "
                "booleans, integers and floats of up to 64 bits can."
            )
        narrow = narrow and self.narrow and value.dtype == np.float64
        key = id(value), narrow
        if key not in self.numbers:
            self.numbers[key] = len(self.arrays)
            self.arrays.append(value)
            self.stored.append("<f4" if narrow else value.dtype.str)
        return {"@": "array", "index": self.numbers[key]}

    def instance(self, value, where):
        kind, name = type(value), type(value).__name__
        if self.records.get(name) is kind:
            fields = {}
            for field, spec in record_of(kind).items():
                narrow, item = getattr(spec, "is_factor", False), getattr(value, field)
                fields[field] = self.tree_of(item, f"{where}.{field}", narrow)
            return {"@": name, "fields": fields}
        is_learned = self.estimators.get(name) is kind
        if not is_learned and kind not in FOREIGN:
            raise StoreError(refusal(value, where))
        params = value.get_params(deep=False)
        learned = {
            name: item
            for name, item in vars(value).items()
            if is_learned and name not in params and FITTED.fullmatch(name)
        }
        for key, item in params.items():
            if isinstance(item, BaseEstimator):  # without what it has learned
                params[key] = type(item)(**item.get_params(deep=False))
        trees = self.trees(params, where)
        check_harmless(kind, params, where)
        if KERNELS.get(name) is kind:
            return {"@": "kernel", "class": name, "params": trees}
        tree = {"@": "estimator", "class": name, "params": trees}
        return tree | {"fitted": self.trees(learned, where)}


def check_harmless(kind, params, where):
    """Refuse parameters by which a scikit-learn object could reach files or code."""
    if kind not in FOREIGN:
        return
    defaults = inspect.signature(kind).parameters
    for name, value in params.items():
        is_default = isinstance(value, str) and value == defaults[name].default
        may_be_word = is_default or name in WORDS or name.endswith(BOUNDS)
        if not _is_harmless(value, may_be_word):
            raise StoreError(
                f"{where}.{name} is {value!r}. A stored {kind.__name__} may hold "
                "numbers, and words that are choices, but nothing that could name a "
                f"file or a function. Leave {name} at its default, "
                f"{defaults[name].default!r}, and save again."
            )


def _is_harmless(value, may_be_word=False):
    if isinstance(value, str):
        return may_be_word
    if isinstance(value, list | tuple | dict):
        items = value.values() if isinstance(value, dict) else value
        return all(map(_is_harmless, items))
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str in DTYPES
    harmless = (bool, int, float, np.random.RandomState, *FOREIGN)
    return value is None or type(value) in harmless


def refusal(value, where):
    """Why a value cannot be stored, and what to do."""
    if hasattr(value, "predict"):
        return (
            f"{where} is {value!r}, and a foreign estimator can only be stored by "
            "pickling it, which a store never does. Save a model of GP(), TwinGP() or "
            "their relatives; keep this one with joblib.dump(model, path), and load "
            "such files only from sources you trust. (A machine that describes its "
            "records is stored once overcover.machines.register knows it.)"
        )
    if hasattr(value, "inverse_transform") or isinstance(value, Transformed):
        return (
            f"{where} is {value!r}, and a foreign transformer can only be stored by "
            "pickling it, which a store never does. Choose one of the named scales: "
            f"target={' or '.join(map(repr, CHOICES))}."
        )
    if callable(value):
        return (
            f"{where} is {value!r}: a function cannot be stored without code. Replace "
            "it in the fitted model first; a metric, for example, matters in fit alone:"
            " model.set_params(machine__metric='rmse') and "
            "model.machine_.set_params(metric='rmse')."
        )
    return f"{where} is {value!r}, of a class that cannot be stored: {type(value)}."


def check_storable(machine, where="machine"):
    """Refuse a machine whose states a store cannot make again."""
    about = machine.description
    if about.state is None or machines.NAMED.get(about.name) is not type(machine):
        raise StoreError(refusal(machine, where))


def decode(tree, arrays):
    """Plain values and arrays back as a tree; may raise any error of `refusing`."""
    return _Decoder(arrays).value_of(tree, 0)


class _Decoder:
    def __init__(self, arrays):
        self.arrays = arrays
        self.records, self.estimators = record_classes(), estimator_classes()

    def value_of(self, tree, depth):
        if depth > DEEPEST:
            raise StoreError(f"Records are nested more than {DEEPEST} deep.")
        if isinstance(tree, list):
            return [self.value_of(item, depth + 1) for item in tree]
        if not isinstance(tree, dict):
            return tree
        value: Any
        match tree:
            case {"@": "array", "index": int(i), **more} if i >= 0:
                value = self.arrays[i]
            case {"@": "scalar", "index": int(i), **more} if i >= 0:
                value = self.arrays[i][()]
            case {"@": "float", "value": "inf" | "-inf" | "nan" as word, **more}:
                value = float(word)
            case {"@": "strings", "items": [*words], **more} if all(
                isinstance(word, str) for word in words
            ):
                value = np.array(words, dtype=object)
            case {"@": "tuple", "items": [*items], **more}:
                value = tuple(self.value_of(items, depth))
            case {"@": "dict", "items": [*items], **more}:
                value = self.values(items, depth)
            case {"@": "random_state", "state": state, **more}:
                value = np.random.RandomState(0)
                value.set_state(self.value_of(state, depth + 1))
            case {"@": "kernel", "class": kind, "params": params, **more}:
                value = self.instance(KERNELS, kind, params, depth)
            case {"@": "estimator", "class": kind, "fitted": learned, **more}:
                table = self.estimators | CLUSTERERS
                value = self.instance(table, kind, more.pop("params"), depth)
                self.give(value, self.values(learned.items(), depth))
            case {"@": str(kind), "fields": fields, **more} if kind in self.records:
                value = self.record(self.records[kind], fields, depth)
            case _:
                raise StoreError(f"A record is of the unknown kind {tree.get('@')!r}.")
        if more:
            raise StoreError(f"A record has more than it should: {sorted(more)}.")
        return value

    def values(self, trees, depth):
        return {str(key): self.value_of(tree, depth + 1) for key, tree in trees}

    def record(self, kind, fields, depth):
        names, values = record_of(kind), self.values(fields.items(), depth)
        if set(values) < set(names) and hasattr(kind, "older"):
            values = kind.older(**values) | values
        if set(values) != set(names):
            raise StoreError(
                f"{kind.__name__} should have the fields {', '.join(names)}, and has "
                f"{', '.join(map(str, fields))}."
            )
        return kind(**values)

    def give(self, estimator, learned):
        kind = type(estimator)
        if learned and kind in FOREIGN:
            raise StoreError(f"{kind.__name__} is stored unfitted.")
        for name, value in learned.items():
            if not FITTED.fullmatch(name):
                raise StoreError(f"{kind.__name__} does not learn {name!r}.")
            setattr(estimator, name, value)

    def instance(self, table, name, params, depth):
        if name not in table:
            raise StoreError(f"A record is of the unknown class {name!r}.")
        kind = table[name]
        about = getattr(kind, "description", machines.Description())
        # A parameter that is newer than the store has its default.
        known = {k: v for k, v in params.items() if k not in about.removed}
        unknown = set(known) - set(inspect.signature(kind).parameters)
        if unknown:
            raise StoreError(f"{name} does not take {', '.join(sorted(unknown))}.")
        values = self.values(known.items(), depth)
        check_harmless(kind, values, name)
        return kind(**values)
