"""Every Python block of the pages runs, and prints what the page says it prints."""

import contextlib
import fnmatch
import importlib
import io
import re
from pathlib import Path

import pytest

import overcover

ROOT = Path(__file__).resolve().parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(
    r"```python\n(.*?)```(?:\s*<!-- begin: example -->\n```\n(.*?)```)?", re.S
)


def blocks():
    for page in PAGES:
        for i, match in enumerate(BLOCK.finditer(page.read_text())):
            yield pytest.param(match[1], match[2], id=f"{page.name}-{i}")


@pytest.mark.parametrize(("code", "promised"), list(blocks()))
def test_a_block_of_code_runs_and_prints_what_is_promised(code, promised):
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(code, "block", "exec"), {})
    if promised is not None:
        assert printed.getvalue() == promised


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_names_the_two_commands():
    readme = PAGES[0].read_text()
    assert "make demo" in readme
    assert "make test" in readme


def test_the_table_of_contents_leads_to_every_page():
    index = (ROOT / "docs" / "index.md").read_text()
    trees = re.findall(r"```{toctree}\n(.*?)```", index, re.S)
    entries = [
        line
        for tree in trees
        for line in tree.splitlines()
        if line and not line.startswith(":")
    ]
    for page in PAGES[1:]:
        found = [e for e in entries if fnmatch.fnmatch(page.stem, e)]
        assert len(found) == (page.stem != "index"), f"{page.name}: {found}"


@pytest.mark.parametrize(
    "module",
    [
        "",
        ".baselines",
        ".datasets",
        ".distributed",
        ".metrics",
        ".planning",
        ".plots",
        ".report",
        ".store",
    ],
)
def test_the_reference_has_every_public_name(module):
    reference = (ROOT / "docs" / "api.md").read_text()
    names = importlib.import_module(f"{overcover.__name__}{module}").__all__
    missing = [name for name in names if not re.search(rf"\b{name}\b", reference)]
    assert not missing


def test_drawings_are_small():
    for picture in (ROOT / "docs").glob("stages-*.png"):
        assert picture.stat().st_size < 60_000, picture.name
