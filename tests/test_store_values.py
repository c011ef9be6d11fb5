"""Hostile values with fitting checksums are refused, or answered: no loop, no crash."""

import warnings
from copy import copy

import numpy as np
import pytest
from sklearn.gaussian_process.kernels import RBF, ConstantKernel

import overcover
from overcover import (
    GP,
    ImportanceWeightedTwinGP,
    OverlappingCoverRegressor,
    SharmaMittalTwinGP,
    TwinGP,
    store,
)
from overcover._records import record_of
from overcover.cover import Cover
from overcover.store._fit import check_result
from overcover.store._model import check_model
from overcover.store._shapes import check_state

TWIN = (0.9, 0.9, 0.02, 0.02)
MACHINES = {
    "gp": GP(length_scale=1.0, noise=0.01),
    "gp, per output": GP(length_scale=1.0, noise=0.01, per_output=True),
    "gp, without factors": GP(length_scale=1.0, noise=0.01, keep_factors=False),
    "gp, kernel object": GP(ConstantKernel(2.0) * RBF([1.0, 2.0]), noise=0.01),
    "tgp": TwinGP(*TWIN),
    "tgp, without factors": TwinGP(*TWIN, keep_factors=False),
    "iwtgp": ImportanceWeightedTwinGP(*TWIN),
    "smtgp": SharmaMittalTwinGP(*TWIN),
}
FLOATS = (np.nan, np.inf, -np.inf, 0.0, -1.0, 1e308, -1e308, 1e-320, 800.0, -800.0)
WHOLES = (-(2**63), -2, -1, 0, 1, 4, 31, 2**31, 2**62, 2**63 - 1)


def make_model(machine, router="variance"):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, (40, 2))
    Y = np.column_stack([np.sin(X[:, 0]), X[:, 1]])
    options = {"subdomain_size": 12, "overlap": 0.5, "random_state": 0}
    model = OverlappingCoverRegressor(MACHINES[machine], router=router, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the printed formula
        return model.fit(X, Y)


each_machine = pytest.mark.parametrize("machine", MACHINES)
quietly = pytest.mark.filterwarnings("ignore::RuntimeWarning")


def hostile_arrays(array):
    """An array with one bad value, all bad values, another type, or another shape."""
    for value in FLOATS if array.dtype.kind == "f" else WHOLES:
        with np.errstate(over="ignore"):
            yield np.full_like(array, value)
            if array.size:
                one = array.copy()
                one.flat[-1] = value
                yield one
    yield array[:0]
    yield array[..., :0]
    yield array[None]
    yield array.astype(np.float32 if array.dtype != np.float32 else np.int8)
    yield array.astype(object)
    yield None


def hostile_records(record):
    """The same record with one field that is not what it was."""
    for field in record_of(type(record)):
        value = getattr(record, field)
        if isinstance(value, np.ndarray):
            changed = hostile_arrays(value)
        elif value is None or isinstance(value, list):
            changed = iter([7, [], [None]])
        else:
            changed = hostile_records(value)
        yield from (record._replace(**{field: item}) for item in changed)


def check_answer(machine, state, X):
    machine.posterior_variance(state, X)
    answer = machine.answer(state, X, variance=True)
    assert answer.mean.shape == answer.variance.shape == (len(X), 2)
    machine.recall(state).outputs(np.arange(2))


@quietly
@each_machine
def test_every_value_of_a_state_is_refused_or_answered(machine):
    model = make_model(machine)
    X = np.zeros((3, 2))
    _, _, sizes = check_model(tree_of(model), model.n_subdomains_)
    asked, members, state = model.machine_, model.cover_.members[0], model.states_[0]
    check_state(asked, members, state, sizes, "it")
    check_answer(asked, state, X)
    n_refused = 0
    for changed in hostile_records(state):
        try:
            check_state(asked, members, changed, sizes, "it")
        except store.StoreError:
            n_refused += 1
        else:
            check_answer(asked, changed, X)
    assert n_refused > 50
    for changed in hostile_arrays(members):
        try:
            check_state(asked, changed, state, sizes, "it")
        except store.StoreError:
            continue
        assert changed.min() >= 0


def tree_of(model):
    shared = copy(model)
    del shared.states_, shared.cover_
    return {"model": shared, "n_owned": model.cover_.n_owned}


@quietly
@pytest.mark.parametrize("router", overcover.routing.ROUTERS)
def test_every_value_of_a_router_is_refused_or_answered(router):
    model = make_model("gp", router)
    X, record = np.zeros((3, 2)), model.router_
    for field in record_of(type(record)):
        for changed in hostile_arrays(getattr(record, field)):
            shared = copy(model)
            shared.router_ = copy(record)
            vars(shared.router_)[field] = changed
            try:
                check_model(tree_of(shared), model.n_subdomains_)
            except store.StoreError:
                continue
            shared.predict(X, return_std=True)


@quietly
@pytest.mark.parametrize("machine", ["gp", "tgp", "smtgp"])
def test_every_value_that_subdomains_share_is_refused_or_answered(machine):
    model = make_model(machine)
    learned = ("theta_", "input_length_scale_", "output_length_scale_")
    numbers = ("input_noise_", "output_noise_", "variance_inflation_")

    def changes():
        for calibration in hostile_records(model.machine_.calibration_):
            yield "machine_", "calibration_", calibration
        for name in set(learned) & set(vars(model.machine_)):
            for value in hostile_arrays(getattr(model.machine_, name)):
                yield "machine_", name, value
        for name in set(numbers) & set(vars(model.machine_)):
            yield from (("machine_", name, value) for value in (*FLOATS, None, "a"))
        for name in ("n_features_in_", "n_outputs_", "n_subdomains_", "_y_ndim"):
            yield from ((None, name, value) for value in (*WHOLES, None, "a", 2.0))
        for name in ("n_lenders_", "subdomain_size_", "n_jobs", "n_consulted"):
            yield from ((None, name, value) for value in (-3, 0, None, "a", 0.5, [1]))
        for name in ("timings_", "feature_names_in_", "length_scales_", "machine"):
            yield from (
                (None, name, value) for value in (0, None, "a", [1], {"a": "b"})
            )
        for value in hostile_arrays(model.length_scales_):
            yield None, "length_scales_", value

    n_refused = 0
    for part, name, value in changes():
        shared = copy(model)
        if part:
            setattr(shared, part, copy(getattr(model, part)))
        setattr(getattr(shared, part) if part else shared, name, value)
        try:
            _, _, sizes = check_model(tree_of(shared), model.n_subdomains_)
            for members, state in zip(model.cover_.members, model.states_):
                check_state(shared.machine_, members, state, sizes, "it")
        except store.StoreError:
            n_refused += 1
            continue
        shared.predict(np.zeros((3, 2)), return_std=True)
        shared.predict_interval(np.zeros((3, 2)))
        shared.log_density(np.zeros((3, 2)), np.zeros((3, 2)))
    assert n_refused > 50


def test_odd_counts_of_rows_are_refused():
    model = make_model("gp")
    for n_owned in hostile_arrays(np.array([20, 20])):
        with pytest.raises(store.StoreError):
            check_model(tree_of(model) | {"n_owned": n_owned}, model.n_subdomains_)


def test_a_state_that_would_loop_for_ever_is_refused_where_it_is_read(tmp_path):
    model = make_model("gp")
    forged = copy(model)
    for squarings in (2**62, 31, -2):
        bad = np.full_like(model.states_[0].squarings, squarings)
        forged.states_ = [state._replace(squarings=bad) for state in model.states_]
        forged.save(tmp_path / "model.ocm")
        loaded = overcover.load(tmp_path / "model.ocm")
        with pytest.raises(store.StoreError, match=r"pack\.state\.squarings.*-1 to 30"):
            loaded.predict(np.zeros((1, 2)), return_std=True)
        with pytest.raises(store.StoreError, match="squarings"):
            store.verify(tmp_path / "model.ocm")


def test_members_that_no_row_has_are_refused_where_they_are_read(tmp_path):
    forged = copy(make_model("gp"))
    members = [rows - 35 for rows in forged.cover_.members]
    forged.cover_ = Cover(members, forged.cover_.n_owned)
    forged.save(tmp_path / "model.ocm")
    with pytest.raises(store.StoreError, match=r"members.*0 to"):
        store.verify(tmp_path / "model.ocm")


def test_hostile_stages_are_refused():
    model = make_model("gp")
    machine, cover, router = model.machine_, model.cover_, model.router_
    labels = np.empty(40, dtype=np.int64)
    for k, rows in enumerate(cover.members):
        labels[rows[: cover.n_owned[k]]] = k
    partition = overcover.partition.Partition(labels, router.means)
    sizes = {"N": 40, "d": 2, "q": 2}
    all_sizes = sizes | {"K": len(cover.members)}
    results = {
        "tune": ((machine, np.ones(40)), sizes),
        "partition": (partition, sizes),
        "cover": (cover, all_sizes),
        "router": (router, all_sizes),
    }
    for name, (value, known) in results.items():
        check_result(name, value, known)
        hostile = [7, None, (), (machine,), [value]]
        if name == "tune":
            hostile += [(machine, weight) for weight in (np.ones(3), -np.ones(40))]
        else:
            hostile += [
                value._replace(**{field: bad})
                for field in ("labels", "n_owned")
                if hasattr(value, field)
                for bad in (np.full(40, -1), np.full(40, 2**40), None)
            ]
        for changed in hostile:
            with pytest.raises((store.StoreError, TypeError, ValueError)):
                check_result(name, changed, known)
    for members in ([], [None] * all_sizes["K"], [rows - 1 for rows in cover.members]):
        with pytest.raises(store.StoreError):
            check_result("cover", cover._replace(members=members), all_sizes)
