"""A new machine and a new router work everywhere, once they are registered."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from typer.testing import CliRunner

import overcover
from overcover import OverlappingCoverRegressor, machines, routing, store
from overcover._records import NUMBER, finite, record
from overcover.advice import advise
from overcover.cli import make_app
from overcover.machines import Answer, Description, Machine, Recalled
from overcover.report import write_report


@record(X=finite("n d"), Y=finite("n q"), weights=finite("d q"))
class PlaneState(NamedTuple):
    """Rows, and the plane through their outputs."""

    X: np.ndarray
    Y: np.ndarray
    weights: np.ndarray


class Plane(Machine):
    """A plane through the outputs of a subdomain, with a penalty on its slope."""

    description = Description(
        name="plane",
        help="a plane",
        state=PlaneState,
        tuned={"penalty_": NUMBER},
        hyperparameters={"penalty_": "penalty on slopes"},
        noises={"penalty": (1e-3, 1.0)},
    )

    def __init__(self, penalty="auto"):
        self.penalty = penalty

    def tune(self, X, Y, sample_weight, size, random_state, n_jobs, groups=None):
        self.penalty_ = 1.0 if self.penalty == "auto" else self.penalty

    def fit_state(self, X, Y, weights=None, n_owned=None, keep=True, groups=None):
        ridge = X.T @ X + self.penalty_ * np.eye(X.shape[1])
        return PlaneState(X, Y, np.linalg.solve(ridge, X.T @ Y))

    def answer(self, state, X_query, variance=False):
        mean = X_query @ state.weights
        if not variance:
            return Answer(mean, None, None)
        far = 1.0 + np.square(X_query - state.X.mean(axis=0)).sum(axis=1)
        return Answer(mean, np.repeat(far[:, None], mean.shape[1], axis=1), far)

    def recall(self, state):
        return Recalled(state.X, lambda rows: state.Y[rows])


@dataclass(frozen=True, eq=False)
class FarRouter(routing.Router):
    """To the subdomain whose mean is farthest, for a test."""

    means: np.ndarray

    shapes = {"means": "K d"}

    @classmethod
    def summarize(cls, X, cover, labels, means, n_jobs=None):
        return cls(means)

    def route(self, X, n_consulted, n_jobs=None):
        gaps = np.linalg.norm(np.asarray(X)[:, None] - self.means, axis=2)
        order = np.argsort(-gaps, axis=1, kind="stable")[:, :n_consulted]
        return routing.Route(order, np.take_along_axis(gaps, order, axis=1))


@pytest.fixture
def toys(monkeypatch):
    machines.register(Plane)
    monkeypatch.setitem(routing.ROUTERS, "far", FarRouter)
    yield
    del machines.NAMED["plane"]


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    X = rng.uniform(1, 3, (120, 2))
    return X, X @ [[1.0, 2.0], [0.5, -1.0]]


def check_everywhere(model, X, Y, folder):
    """Fitted, it predicts, explains, advises, reports, and survives a store."""
    mean, std = model.predict(X, return_std=True)
    assert mean.shape == std.shape == Y.shape
    model.save(folder / "model.ocm")
    loaded = overcover.load(folder / "model.ocm")
    assert type(loaded) is type(model)
    assert_array_equal(loaded.predict(X, return_std=True), (mean, std))
    assert_array_equal(loaded.predict_interval(X), model.predict_interval(X))
    store.verify(folder / "model.ocm")
    known = store.inspect(folder / "model.ocm")
    assert known["machine"] == "Plane" and known["hyperparameters"]["penalty"] == 1.0
    page = loaded.explain(X[0])
    assert len(page.neighbors) == 5 and np.isfinite(page.remoteness)
    assert any("penalty" in finding.text for finding in advise(loaded, X, Y))
    path = write_report(loaded, folder / "report.html", X, Y, X, Y)
    assert "penalty on slopes" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize("router", ["variance", "far"])
def test_a_new_machine_and_a_new_router_work_everywhere(toys, router, rows, tmp_path):
    X, Y = rows
    options = {"subdomain_size": 40, "overlap": 0.5, "random_state": 0}
    model = OverlappingCoverRegressor("plane", router=router, **options).fit(X, Y)
    check_everywhere(model, X, Y, tmp_path)
    again = OverlappingCoverRegressor("plane", router=router, **options)
    store.fit_into(again, X, Y, tmp_path / "draft.ocm")
    assert_array_equal(again.predict(X), model.predict(X))


def test_a_new_machine_works_alone(toys, rows, tmp_path):
    check_everywhere(Plane().fit(*rows), *rows, tmp_path)


def test_a_new_machine_works_on_the_command_line(toys, rows, tmp_path):
    X, Y = rows
    table = tmp_path / "rows.csv"
    lines = [",".join(map(repr, row)) for row in np.hstack([X, Y]).tolist()]
    table.write_text("\n".join(["a,b,y,z", *lines]))
    out = str(tmp_path / "model.ocm")
    for arguments in (
        ["fit", str(table), "-t", "y", "-t", "z", "--machine", "plane", "--out", out],
        ["predict", out, str(table), "--std", "--out", str(tmp_path / "answers.csv")],
        ["evaluate", out, str(table)],
        ["inspect", out, "--verify"],
        ["report", out, str(table), "--out", str(tmp_path / "report.html")],
    ):
        done = CliRunner().invoke(make_app(), arguments)
        assert done.exit_code == 0, done.output


def test_a_machine_that_is_not_registered_is_refused_by_a_store(rows, tmp_path):
    model = Plane().fit(*rows)
    with pytest.raises(store.StoreError, match="register"):
        model.save(tmp_path / "model.ocm")


def test_two_machines_have_two_names():
    class Other(Plane):
        description = Plane.description._replace(name="gp")

    with pytest.raises(ValueError, match="a name of its own"):
        machines.register(Other)
    assert machines.NAMED["gp"] is overcover.GP


def test_a_hostile_state_of_a_new_machine_is_refused(toys, rows, tmp_path):
    model = Plane().fit(*rows)
    model.state_ = model.state_._replace(weights=np.full((2, 2), np.nan))
    model.save(tmp_path / "model.ocm")
    with pytest.raises(store.StoreError, match="weights should hold numbers"):
        overcover.load(tmp_path / "model.ocm")
