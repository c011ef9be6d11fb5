"""The gallery: in which order examples are shown, and what their arguments are."""

import tempfile
from pathlib import Path

# From the first steps to the long runs; what is not named comes last.
STORY = [
    "quickstart",
    "uncertainty",
    "measure_next",
    "extrapolation",
    "choosing_size",
    "pipeline",
    "explain_report",
    "large_data",
    "cluster",
    "structured",
    "s_curve",
    "covariate_shift",
    "plane",
    "pose",
    "stages",
]


def story_key(filename):
    """Where an example stands.

    Examples
    --------
    >>> sorted(["pose.py", "other.py", "quickstart.py"], key=story_key)
    ['quickstart.py', 'pose.py', 'other.py']
    """
    name = Path(filename).stem
    return (STORY.index(name) if name in STORY else len(STORY), name)


def arguments(gallery_conf, script_vars):
    """Arguments of an example: those that write pictures get a folder for them."""
    name = Path(script_vars["src_file"]).stem
    if name not in ("plane", "s_curve"):
        return []
    folder = Path(tempfile.mkdtemp())
    return [str(folder / "s_curve.png" if name == "s_curve" else folder)]
