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


def test_callbacks_hear_of_every_stage_and_subdomain(surface):
    recorder = Recorder()
    model = small_cover().set_callbacks(recorder).fit(*surface)
    for contexts in (recorder.begun, recorder.ended):
        assert [c.task_name for c in contexts if c.task_name in STAGES] == STAGES
        assert len(names(contexts, "machines")) == model.n_subdomains_ == 10
    [stage] = [c for c in recorder.begun if c.task_name == "machines"]
    assert stage.max_subtasks == model.n_subdomains_
    assert recorder.events == ["setup", "teardown"]
    assert {id(c) for c in recorder.begun} == {id(c) for c in recorder.ended}
    assert recorder.begun[0] is recorder.ended[-1], "the fit itself is the last to end"


def test_callbacks_are_torn_down_after_an_error(surface):
    recorder = Recorder()
    model = small_cover(overlap=5.0).set_callbacks(recorder)
    with pytest.raises(ValueError, match="overlap=5"):
        model.fit(*surface)
    assert recorder.events in ([], ["setup", "teardown"])


def test_a_verbose_fit_is_the_quiet_one_and_prints_to_stderr(
    surface, queries, capfd, caplog
):
    with caplog.at_level("INFO", logger="overcover"):
        quiet = small_cover().fit(*surface)
    lines = [record.getMessage() for record in caplog.records]
    assert [line.split(" took ")[0] for line in lines] == STAGES
    assert list(quiet.timings_) == STAGES and min(quiet.timings_.values()) >= 0
    printed = capfd.readouterr()
    assert printed.out == printed.err == ""
    loud = small_cover(verbose=1).fit(*surface)
    printed = capfd.readouterr()
    assert printed.out == "" and "machines" in printed.err
    assert (quiet.predict(queries) == loud.predict(queries)).all()


def test_a_verbose_fit_works_without_rich(surface, capfd, monkeypatch):
    for name in ("rich", "rich.console", "rich.progress"):
        monkeypatch.setitem(sys.modules, name, None)
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


def test_importing_the_package_prints_nothing():
    done = subprocess.run(
        [sys.executable, "-c", "import overcover"], capture_output=True, text=True
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
