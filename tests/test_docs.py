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


# What a benchmark measures: times, memory, shares, multiples and errors.
NUMBER = r"(?<![\w.^,-])\d[\d,.]*"
UNITS = r"(?:ns|us|ms|s|h|(?:processor |micro|milli)?(?:seconds?|minutes?|hours?))\b"
UNITS += r"|(?:[kMGT]i?B|bytes)\b|%|times\b"
OF = rf"(?:RMSE|NLPD|R2|error|coverage|a factor) of {NUMBER}"
MEASURE = re.compile(rf"{NUMBER}(?: ?(?:{UNITS})|x\b)|{OF}")
GENERATED = re.compile(r"<!-- begin: ([\w-]+) -->.*?<!-- end: \1 -->", re.S)
CODE = re.compile(r"```.*?```|`[^`\n]*`", re.S)
# Definitions, settings, and what follows from other numbers; nothing that a benchmark
# can find. A measured number belongs into a table that `publish.py` writes.
STATED = {
    "README.md": {"90 processor seconds"},
    "data.md": {"5 %"},  # a cell
    "distributed.md": {"16 MB", "256 MB", "16 bytes", "8 bytes", "4 GiB"},
    "faq.md": {"20 GB", "1.6 GB", "4 GiB"},  # 50,000 rows, by counting
    "how-it-works.md": {"128 MB"},
    "learning-on.md": {"1.5 times", "1.4 times"},
    "methods.md": {"1 %"},
    "numerics.md": {"1 %", "99 %", "90 %", "0.8 %"},
    "peers.md": {"90 processor seconds", "RMSE of 1"},
    "pose.md": {"6.2 GB"},  # 500,000 rows of 3,120 numbers in float32
    "posterior.md": {"2.5 %", "5 %", "2 %"},
    "routing.md": {"1.1 times"},
    # The paper's; rows of a matrix; assumptions of the simulated cluster.
    "scaling.md": {"4.03 hours", "34 MB", "8 GB", "4 GiB", "1 GB", "0.5 GB", "20 GB"}
    | {"20 minutes"},
    "store-format.md": {"4 GiB", "99 %"},
    "tables.md": {"5 %"},  # a cell
}


def prose_of(page):
    return CODE.sub("", GENERATED.sub("", page.read_text()))


# The page on reproduction is generated as a whole.
@pytest.mark.parametrize(
    "page", [p for p in PAGES if p.stem != "reproduction"], ids=lambda page: page.name
)
def test_prose_states_no_measured_number(page):
    stated = {" ".join(match[0].split()) for match in MEASURE.finditer(prose_of(page))}
    # The level of intervals is a setting on every page.
    assert stated - {"95 %"} == STATED.get(page.name, set())


@pytest.mark.parametrize(
    "text", ["took 3.2 s", "28x", "506 MB", "0.1 %", "a factor of 1.5", "RMSE of 0.08"]
)
def test_a_measured_number_is_noticed(text):
    assert MEASURE.search(text)


def rows_by_method(block):
    """The cells of every row of the tables in a block, by data set and method."""
    rows, data = {}, None
    for line in block.splitlines():
        data = line.removeprefix("### ") if line.startswith("### ") else data
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| ") and "method" not in cells:
            rows[tuple([data] * bool(data) + cells)[:2]] = cells[1 if data else 2 :]
    return rows


def test_the_readme_and_the_page_on_peers_have_the_same_numbers():
    blocks = {
        match[1]: rows_by_method(match[0])
        for page in PAGES
        for match in GENERATED.finditer(page.read_text())
        if match[1] in ("peers", "peers-full")
    }
    assert len(blocks["peers"]) > 20
    for key, cells in blocks["peers"].items():
        assert blocks["peers-full"][key][: len(cells)] == cells


def test_no_block_is_on_two_pages():
    names = [
        match[1] for page in PAGES for match in GENERATED.finditer(page.read_text())
    ]
    assert len(names) == len(set(names))


def test_drawings_are_small():
    for picture in (ROOT / "docs").glob("stages-*.png"):
        assert picture.stat().st_size < 60_000, picture.name
