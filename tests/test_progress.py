"""Progress: callbacks hear of every stage and subdomain, bars stay on stderr."""

import subprocess
import sys

import pytest

from overcover import GP, OverlappingCoverRegressor

STAGES = ["scales", "tuning", "partition", "cover", "machines"]


def small_cover(**changes):
    options = {"subdomain_size": 60, "overlap": 0.5, "random_state": 0, **changes}
    return OverlappingCoverRegressor(GP(length_scale=1.5, noise=0.1), **options)


class Recorder:
    """A callback that writes down what it hears."""

    def __init__(self):
        self.begun, self.ended, self.events = [], [], []

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        self.begun.append(context)

    def on_fit_task_end(self, estimator, context):
        self.ended.append(context)


def names(contexts, parent=None):
    return [
        context.task_name
        for context in contexts
        if context.parent is not None
        and (parent is None or context.parent.task_name == parent)
    ]


@pytest.fixture
def recorded(surface):
    recorder = Recorder()
    model = small_cover().set_callbacks(recorder).fit(*surface)
    return model, recorder


def test_callbacks_hear_of_one_task_per_stage(recorded):
    _, recorder = recorded
    stages = [c.task_name for c in recorder.begun if c.task_name in STAGES]
    assert stages == STAGES
    assert [c.task_name for c in recorder.ended if c.task_name in STAGES] == STAGES
    assert recorder.events == ["setup", "teardown"]


def test_callbacks_hear_of_one_task_per_subdomain(recorded):
    model, recorder = recorded
    for contexts in (recorder.begun, recorder.ended):
        assert len(names(contexts, "machines")) == model.n_subdomains_ == 10
    [stage] = [c for c in recorder.begun if c.task_name == "machines"]
    assert stage.max_subtasks == model.n_subdomains_


def test_every_task_that_begins_ends(recorded):
    _, recorder = recorded
    assert {id(c) for c in recorder.begun} == {id(c) for c in recorder.ended}
    assert recorder.begun[0] is recorder.ended[-1], "the fit itself is the last to end"


def test_callbacks_are_torn_down_after_an_error(surface):
    recorder = Recorder()
    model = small_cover(overlap=5.0).set_callbacks(recorder)
    with pytest.raises(ValueError, match="overlap=5"):
        model.fit(*surface)
    assert recorder.events in ([], ["setup", "teardown"])


def test_timings_name_the_stages(surface):
    timings = small_cover().fit(*surface).timings_
    assert list(timings) == STAGES
    assert all(seconds >= 0 for seconds in timings.values())


def test_a_quiet_fit_prints_nothing(surface, capfd):
    small_cover().fit(*surface)
    printed = capfd.readouterr()
    assert printed.out == printed.err == ""


def test_a_verbose_fit_prints_to_stderr_only(surface, capfd):
    small_cover(verbose=1).fit(*surface)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert "machines" in printed.err


def test_a_verbose_fit_works_without_rich(surface, capfd, monkeypatch):
    monkeypatch.setitem(sys.modules, "rich", None)
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setitem(sys.modules, "rich.progress", None)
    small_cover(verbose=1).fit(*surface)
    printed = capfd.readouterr()
    assert printed.out == ""
    assert [line.split()[0] for line in printed.err.splitlines()[::2]] == STAGES
    assert "machines done in" in printed.err


def test_an_error_closes_the_bar(surface, capfd):
    X, y = surface
    model = small_cover(verbose=1).set_params(partition="abc")
    with pytest.raises(ValueError, match="partition='abc'"):
        model.fit(X, y)
    model.set_params(partition="rpc").fit(X, y)
    assert "machines" in capfd.readouterr().err


def test_verbose_does_not_change_the_result(surface, queries):
    quiet, loud = (small_cover(verbose=v).fit(*surface) for v in (0, 1))
    assert (quiet.predict(queries) == loud.predict(queries)).all()


def test_importing_the_package_prints_nothing():
    done = subprocess.run(
        [sys.executable, "-c", "import overcover"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_logger_has_a_line_for_every_stage(surface, caplog):
    with caplog.at_level("INFO", logger="overcover"):
        small_cover().fit(*surface)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(" took ")[0] for line in lines] == STAGES
