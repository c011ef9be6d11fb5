"""How Sphinx builds the site: `make docs`, from the pages here and examples/.

Nothing is fetched while it is built, and the pages load nothing from elsewhere: no
inventories of other projects, no fonts, no scripts; formulas become MathML.
"""

import os
import re
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for gallery.py
os.environ.setdefault("MPLBACKEND", "Agg")

import overcover  # noqa: E402

project = "overcover"
author = "The overcover developers"
copyright = author
version = release = overcover.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
    "mathml",
]
exclude_patterns = ["_build", "sg_execution_times.rst"]
templates_path = ["_templates"]
myst_heading_anchors = 3

# Docstrings name things in single backticks.
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
numpydoc_show_class_members = False
add_module_names = False

sphinx_gallery_conf = {
    "examples_dirs": str(HERE.parent / "examples"),
    "gallery_dirs": "auto_examples",
    # All are run but pose.py, which takes minutes (`make demo`), and stages.py, whose
    # pictures are in "How it works".
    "filename_pattern": r"/(?!pose|stages)\w+\.py$",
    "within_subsection_order": "gallery.story_key",
    "reset_argv": "gallery.arguments",
    "reset_modules": (),
    "download_all_examples": False,
    "show_memory": False,
    "show_signature": False,
    "remove_config_comments": True,
    "min_reported_time": 10_000,
    "write_computation_times": False,
}

html_theme = "furo"
html_title = f"overcover {version}"
html_copy_source = False
html_show_sourcelink = False


def escape_shapes(app, what, name, obj, options, lines):
    """A shape such as (n_features_in_,) is no link, whatever its last underscore."""
    for i, line in enumerate(lines):
        if " : " in line or line.lstrip().startswith("n_"):
            lines[i] = re.sub(r"(?<![`\w])(n_\w+)_(?=[,)])", r"\1\\_", line)


def setup(app):
    """Before numpydoc reads the docstrings."""
    app.connect("autodoc-process-docstring", escape_shapes, priority=400)
