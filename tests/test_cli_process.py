"""The command line as a process: signals, pipes, tracebacks."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from overcover import GP, OverlappingCoverRegressor
from overcover.cli import main
from overcover.cli._errors import Ended, orderly_end

COMMAND = [sys.executable, "-m", "overcover"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A model, and a table that is answered in many chunks."""
    folder = tmp_path_factory.mktemp("process")
    X = np.random.default_rng(0).uniform(-3, 3, (400, 2))
    OverlappingCoverRegressor(
        GP(length_scale=1.0, noise=0.1), subdomain_size=100, random_state=0
    ).fit(X, X[:, 0]).save(folder / "model.ocm")
    np.save(folder / "many.npy", np.tile(X, (5000, 1)))
    table = pd.DataFrame(X, columns=["a", "b"])
    table.to_csv(folder / "few.csv", index=False)
    table.assign(y=X[:, 0]).to_csv(folder / "fit.csv", index=False)
    return folder


def started(arguments):
    """A command that heeds signals, though the tests themselves may ignore them."""

    def heed():
        for number in ENDINGS:
            signal.signal(number, signal.SIG_DFL)

    return subprocess.Popen(
        [*COMMAND, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed,
    )


def wait_for(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.005)


ENDINGS = {
    signal.SIGINT: (130, "interrupted"),
    signal.SIGTERM: (143, "terminated"),
}


@pytest.mark.parametrize("number", ENDINGS)
def test_an_interruption_leaves_no_file(folder, tmp_path, number):
    out = tmp_path / "answers.csv"
    model, rows = folder / "model.ocm", folder / "many.npy"
    process = started(["predict", model, rows, "--std", "--out", out])
    wait_for(lambda: os.listdir(tmp_path))
    (unfinished,) = os.listdir(tmp_path)
    assert unfinished != out.name
    process.send_signal(number)
    said, told = process.communicate(timeout=60)
    code, word = ENDINGS[number]
    assert process.returncode == code
    assert (said, told) == ("", f"{word}\n")
    assert not os.listdir(tmp_path)


def test_a_terminated_fit_goes_on(folder, tmp_path):
    out = tmp_path / "model.ocm"
    arguments = ["fit", folder / "fit.csv", "-t", "y", "-o", out]
    arguments += ["--subdomain-size", 20, "--json"]  # many machines, time to end
    process = started(arguments)
    wait_for(lambda: any(out.rglob("*.pack")))  # before, there is nothing to keep
    process.send_signal(signal.SIGTERM)
    said, told = process.communicate(timeout=60)
    assert process.returncode == 143
    assert said == ""
    assert told == (
        f"The finished part is kept in {out}: repeat the command to go on.\n"
        "terminated\n"
    )
    process = started(arguments)
    said, told = process.communicate(timeout=60)
    assert process.returncode == 0
    assert told == ""
    assert json.loads(said)["rows"] == 400


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP"])
def test_signals_are_as_before_when_a_command_has_ended(name):
    number = getattr(signal, name)
    before = signal.signal(number, signal.SIG_DFL)
    try:
        with pytest.raises(Ended) as ended, orderly_end():
            signal.raise_signal(number)
        assert ended.value.code == 128 + number
        assert signal.getsignal(number) is signal.SIG_DFL
        signal.signal(number, signal.SIG_IGN)  # as nohup does
        with orderly_end():
            signal.raise_signal(number)
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


def test_a_second_signal_does_not_cut_cleaning_up_short():
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    cleaned = False
    try:
        with pytest.raises(Ended), orderly_end():
            try:
                signal.raise_signal(signal.SIGTERM)
            finally:
                signal.raise_signal(signal.SIGTERM)
                cleaned = True
    finally:
        signal.signal(signal.SIGTERM, before)
    assert cleaned


def test_a_closed_pipe_is_no_error(folder):
    process = subprocess.Popen(
        [*COMMAND, "predict", str(folder / "model.ocm"), str(folder / "many.npy")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "y\n"
    process.stdout.close()
    assert process.stderr.read() == ""
    process.stderr.close()
    assert process.wait(timeout=60) == 0


@pytest.mark.parametrize(
    ("closed", "arguments", "word"),
    [
        (">&-", "predict model.ocm few.csv", "output"),
        ("<&-", "predict model.ocm -", "input"),
        ("2>&-", "predict model.ocm nothing.csv", None),
    ],
)
def test_closed_streams_are_told_in_a_line(folder, closed, arguments, word):
    command = f"{shlex.join(COMMAND)} {arguments} {closed}"
    done = subprocess.run(
        command, shell=True, cwd=folder, capture_output=True, text=True
    )
    assert done.stdout == ""
    if word is None:  # what cannot be told to anyone is not printed among answers
        assert (done.returncode, done.stderr) == (2, "")
        return
    assert done.returncode == 1
    assert done.stderr.startswith(f"error: standard {word} is closed")
    assert done.stderr.count("\n") == 1


SLOW_IMPORT = """
import sys, time
sys.argv, sys.orig_argv = {argv}, {orig_argv}
class Slow:
    def find_spec(self, name, *_):
        if name == "overcover.datasets":
            print("importing", flush=True)
            time.sleep(60)
sys.meta_path.insert(0, Slow())
import overcover
overcover.datasets
"""


@pytest.mark.parametrize(
    ("argv", "orig_argv", "is_ours"),
    [
        (["-m", "inspect"], ["python", "-m", "overcover", "inspect"], True),
        (["/usr/bin/overcover"], ["python", "/usr/bin/overcover"], True),
        (["-m", "-m"], ["python", "-m", "mine", "-m", "overcover"], False),
        (["mine.py"], ["python", "mine.py"], False),
    ],
)
def test_an_interruption_during_imports_ends_in_order(argv, orig_argv, is_ours):
    """Of the command line: programs that import the package decide for themselves."""
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW_IMPORT.format(argv=argv, orig_argv=orig_argv)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=60)
    if is_ours:
        assert (process.returncode, told) == (130, "interrupted\n")
    else:
        assert told.endswith("KeyboardInterrupt\n")


def test_a_traceback_only_if_asked_for(folder, capsys, monkeypatch):
    told = []
    for wanted in ("0", "1"):
        monkeypatch.setenv("OVERCOVER_DEBUG", wanted)
        with pytest.raises(SystemExit) as end:
            main(["predict", str(folder / "model.ocm"), "nothing.csv"])
        assert end.value.code == 2
        told.append(capsys.readouterr().err)
    plain, debug = told
    assert plain == "error: There is no file 'nothing.csv'.\n"
    assert "Traceback" in debug
    assert debug.endswith(plain)


def test_pipes_from_end_to_end(folder):
    done = subprocess.run(
        [*COMMAND, "predict", str(folder / "model.ocm"), "-", "--interval", "0.5"],
        input=(folder / "few.csv").read_text(),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0
    assert done.stderr == ""  # no bars where nobody looks
    header, *lines = done.stdout.splitlines()
    assert header == "y,y_low,y_high"
    assert len(lines) == 400
