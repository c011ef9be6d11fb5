"""The public surface: what the API page lists is what the package exports."""

import importlib
import re
import warnings
from pathlib import Path

import pytest

import overcover

ROOT = Path(overcover.__file__).parent
PAGE = Path(__file__).resolve().parent.parent / "docs" / "api.md"
TEXT = PAGE.read_text(encoding="utf-8")


def listed():
    """Names in the lists of the page, by module."""
    names, module = {}, None
    for block in re.findall(r"```{eval-rst}\n(.*?)```", TEXT, re.S):
        for line in block.splitlines():
            if line.startswith(".. currentmodule::"):
                module = line.split()[-1]
            elif re.fullmatch(r"   \w+", line):
                names.setdefault(module, set()).add(line.strip())
    return names


LISTED = listed()
# Names that are no functions or classes stand in a sentence of the page.
IN_WORDS = set(re.findall(r"`(\w+)`", TEXT))
# Modules with a heading of their own.
NAMED = [
    f"overcover.{name}" for name in re.findall(r"^## `overcover\.(\w+)`", TEXT, re.M)
]


@pytest.mark.parametrize("module", sorted(LISTED))
def test_what_the_page_lists_is_there(module):
    found = importlib.import_module(module)
    for name in LISTED[module]:
        assert hasattr(found, name), name
        assert name in found.__all__, f"{module}.__all__ lacks {name}"


@pytest.mark.parametrize("module", ["overcover", *NAMED])
def test_what_is_exported_is_on_the_page(module):
    everywhere = set().union(*LISTED.values()) | IN_WORDS
    everywhere |= {name.partition(".")[2] for name in NAMED}
    assert set(importlib.import_module(module).__all__) <= everywhere


def test_every_module_without_an_underscore_is_on_the_page():
    for file in ROOT.iterdir():
        is_module = file.suffix == ".py" or (file / "__init__.py").exists()
        if is_module and not file.name.startswith("_"):
            assert f"overcover.{file.stem}" in NAMED or file.stem in IN_WORDS, file.stem


def test_the_package_exports_what_it_names():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in overcover.__all__:
            assert hasattr(overcover, name)
