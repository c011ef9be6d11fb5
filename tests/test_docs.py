"""Every Python block of the pages runs, and prints what the page says it prints."""

import contextlib
import io
import re
from pathlib import Path

import pytest

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
