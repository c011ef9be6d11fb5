"""Every example runs, in a folder of its own, and shows what it tells to see."""

import contextlib
import io
import re
import runpy
import sys
from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
import numpy as np
import pytest

from overcover.metrics import interval_coverage

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
# Those that take a size get a small one.
ARGUMENTS = {"plane": ["demo", "900"], "pose": ["demo", "120"], "s_curve": ["s.png"]}
# What each leaves behind.
FILES = {
    "plane": ["demo/plane.png"],
    "pose": ["demo/pose.png", "demo/report.html"],
    "s_curve": ["s.png"],
    "stages": ["demo/stages-metric.png", "demo/stages-combination.png"],
}


def error(model, X, Y):
    return np.sqrt(np.mean((model.predict(X) - Y) ** 2))


def share_of_arms(elbows):
    return np.mean(np.abs(np.linalg.norm(elbows, axis=1) - 1) < 0.1)


def most_beats_least(measured):
    return measured[-1] < measured[0]  # pairs of error and seconds


# Of the variables that an example ends with: is there what it tells to see?
CLAIMS = {
    "quickstart": lambda end: (
        end["model"].length_scales_[3] / end["X"][:, 3].std() > 100
        and interval_coverage(end["y_test"], end["low"], end["high"]) > 0.91
    ),
    "uncertainty": lambda end: (
        end["inside"][end["left"]].mean() < end["inside_textbook"][end["left"]].mean()
        and end["inside"][~end["left"]].mean()
        > end["inside_textbook"][~end["left"]].mean()
    ),
    "measure_next": lambda end: (
        end["errors"]["chosen"].mean(axis=0)[-1]
        < 0.8 * end["errors"]["random"].mean(axis=0)[-1]
    ),
    "extrapolation": lambda end: all(
        std[end["is_far"]].min() >= 0.5 * y.std()
        for y, _, std in end["answers"].values()
    ),
    "structured": lambda end: (
        share_of_arms(end["predictions"]["GP"])
        < 0.9
        < share_of_arms(end["predictions"]["Twin GP"])
    ),
    "covariate_shift": lambda end: (
        error(end["weighted"], end["queries"], end["curves"](end["queries"]))
        < error(end["plain"], end["queries"], end["curves"](end["queries"]))
    ),
    "choosing_size": lambda end: (
        most_beats_least(end["measured"]["subdomain_size"])
        and most_beats_least(end["measured"]["overlap"])
        and end["measured"]["n_consulted"][0] == min(end["measured"]["n_consulted"])
    ),
    "large_data": lambda end: np.array_equal(
        end["loaded"].predict(end["X"][:100]), end["model"].predict(end["X"][:100])
    ),
    "cluster": lambda end: (
        np.array_equal(end["answers"], end["local"].predict(end["X_here"]))
        and np.allclose(end["lazy"], end["local"].predict(end["rows"]), atol=1e-12)
        and (type(end["X"]), type(end["mean"])) == (end["da"].Array,) * 2
    ),
    "pipeline": lambda end: (
        set(end["search"].best_params_) == {"cover__machine__noise", "cover__overlap"}
    ),
    "explain_report": lambda end: (
        end["model"].explain([4.5, 4.5, 0.0]).outside and end["path"].exists()
    ),
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs_and_shows_what_it_tells_to_see(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path))  # no cache of poses
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", [str(path), *ARGUMENTS.get(path.stem, [])])
    monkeypatch.setattr(plt, "show", lambda: None)
    monkeypatch.setattr(mpl, "use", lambda backend: None)
    printed = io.StringIO()
    with mpl.rc_context({"backend": "agg"}), contextlib.redirect_stdout(printed):
        plt.switch_backend("agg")
        end = runpy.run_path(str(path), run_name="__main__")
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
    plt.close("all")
    assert printed.getvalue()
    assert not re.search(r"\bnan\b", printed.getvalue())
    assert all((tmp_path / name).stat().st_size for name in FILES.get(path.stem, []))
    assert CLAIMS.get(path.stem, bool)(end)


def test_the_gallery_tells_a_story_of_all_examples():
    story = runpy.run_path(str(ROOT / "docs" / "gallery.py"))["STORY"]
    assert sorted(story) == [path.stem for path in EXAMPLES]
    for path in EXAMPLES:
        text = path.read_text()
        assert re.match(r'"""\n(.+)\n=+\n', text), f"{path.name} has no title"


def test_every_example_has_a_thumbnail_of_its_own():
    """A picture it leaves open, or one of the pages that no other example names."""
    named = []
    for path in EXAMPLES:
        text = path.read_text()
        found = re.findall(r'^# sphinx_gallery_thumbnail_path = "(.+)"$', text, re.M)
        assert found or "plt.show()" in text, f"{path.name} has no picture"
        named += found
    assert len(set(named)) == len(named)
    assert all((ROOT / "docs" / name).exists() for name in named)
