"""The command line as a process: signals, pipes, tracebacks."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest

from overcover import GP, OverlappingCoverRegressor

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
    pd.DataFrame(X, columns=["a", "b"]).to_csv(folder / "few.csv", index=False)
    return folder


def test_an_interruption_leaves_no_file(folder, tmp_path):
    out = tmp_path / "answers.csv"
    arguments = ["predict", str(folder / "model.ocm"), str(folder / "many.npy")]
    process = subprocess.Popen(
        [*COMMAND, *arguments, "--std", "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Started in the background, the tests themselves may ignore it.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not os.listdir(tmp_path) and time.monotonic() < deadline:
        time.sleep(0.02)
    (unfinished,) = os.listdir(tmp_path)
    assert unfinished != out.name
    process.send_signal(signal.SIGINT)
    said, told = process.communicate(timeout=60)
    assert process.returncode == 130
    assert (said, told) == ("", "interrupted\n")
    assert not os.listdir(tmp_path)


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


def test_a_traceback_only_if_asked_for(folder):
    wrong = ["predict", str(folder / "model.ocm"), "nothing.csv"]
    plain = subprocess.run([*COMMAND, *wrong], capture_output=True, text=True)
    assert plain.returncode == 2
    assert plain.stderr == "error: there is no file nothing.csv.\n"
    asked = subprocess.run(
        [*COMMAND, *wrong],
        capture_output=True,
        text=True,
        env={**os.environ, "OVERCOVER_DEBUG": "1"},
    )
    assert asked.returncode == 2
    assert "Traceback" in asked.stderr
    assert asked.stderr.endswith(plain.stderr)


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
