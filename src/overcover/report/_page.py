"""The page around the sections: looks, pictures inside the file, safe text."""

import base64
import io
from typing import NamedTuple

from .._markup import element, escape, html_table

# Readable on a phone, in print, and by those who see little contrast or no colour.
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 62rem; padding: 1rem; color: #1a1a1a;
  background: #fff; font: 1rem/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .5rem 0; }
h2 { font-size: 1.3rem; margin: 2.2rem 0 .6rem; padding-top: .6rem;
  border-top: 2px solid #1a1a1a; }
h3 { font-size: 1.05rem; margin: 1.4rem 0 .4rem; }
p { max-width: 42rem; margin: .5rem 0; }
nav ul { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: 0;
  list-style: none; }
a { color: #0b4f9c; }
dl.facts { display: grid; gap: .6rem; margin: 1rem 0;
  grid-template-columns: repeat(auto-fit, minmax(min(13rem, 45%), 1fr)); }
dl.facts div { border: 1px solid #767676; border-radius: .4rem; padding: .5rem .7rem; }
dl.facts dt { font-size: .85rem; color: #4a4a4a; }
dl.facts dd { margin: 0; font-size: 1.3rem; font-weight: 600; line-height: 1.25; }
ul.findings { padding: 0; list-style: none; }
ul.findings li { border-left: .35rem solid #767676; padding: .3rem .8rem;
  margin: .7rem 0; max-width: 46rem; }
ul.findings li.warning { border-left: .35rem double #8a5a00; }
ul.findings li.problem { border-left: .5rem solid #a01018; }
ul.findings strong { text-transform: uppercase; font-size: .8rem;
  letter-spacing: .04em; display: block; }
/* A shadow at the side where a table goes on. */
.table { overflow-x: auto; margin: .6rem 0 1.2rem; background:
  linear-gradient(to right, #fff 40%, transparent) 0 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to left, #fff 40%, transparent) 100% 0 / 2.5rem 100% no-repeat local,
  linear-gradient(to right, #0004, transparent) 0 0 / .9rem 100% no-repeat scroll,
  linear-gradient(to left, #0004, transparent) 100% 0 / .9rem 100% no-repeat scroll; }
table { border-collapse: collapse; font-size: .92rem;
  font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: .3rem 0; }
th, td { padding: .25rem .7rem; text-align: right; border-bottom: 1px solid #c4c4c4;
  overflow-wrap: normal; }
td { white-space: nowrap; }
th:first-child { text-align: left; padding-left: 0; }
thead th { border-bottom: 2px solid #1a1a1a; vertical-align: bottom; }
tbody th { font-weight: 500; max-width: 12rem; overflow-wrap: break-word; }
table.words th, table.words td { text-align: left; }
table.words td { white-space: normal; overflow-wrap: anywhere; min-width: 8rem; }
.pictures { display: grid; gap: 1rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(22rem, 100%), 1fr)); }
figure { margin: .5rem 0; }
img { display: block; max-width: 100%; height: auto; }
figcaption { font-size: .9rem; color: #4a4a4a; max-width: 42rem; }
footer { margin-top: 2.5rem; font-size: .85rem; color: #4a4a4a; }
@media print {
  body { max-width: none; font-size: 10pt; padding: 0; }
  nav { display: none; }
  h2 { break-after: avoid; }
  figure, tr, ul.findings li, dl.facts div { break-inside: avoid; }
  .table { overflow: visible; background: none; }
  table { font-size: 8pt; }
  th, td { padding: .15rem .4rem; }
}
"""


class Section(NamedTuple):
    """A part of the page with a heading of the second order."""

    name: str
    """Its address within the page, a word."""

    title: str
    body: str
    """HTML."""


def page(title, sections):
    """The whole document.

    Parameters
    ----------
    title : str
    sections : sequence of Section

    Returns
    -------
    str
    """
    from .. import __version__

    links = "".join(
        f"<li>{element('a', section.title, href=f'#{section.name}')}</li>"
        for section in sections
    )
    parts = "\n".join(
        f'<section aria-labelledby="{section.name}">\n'
        f"{element('h2', section.title, id=section.name)}\n{section.body}\n</section>"
        for section in sections
    )
    # Nothing may be loaded and nothing may run, whatever a column is called.
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="generator" content="overcover {escape(__version__)}">
<title>{escape(title)}</title>
<style>{STYLE}</style>
</head>
<body>
<header>
{element("h1", title)}
<nav aria-label="Sections"><ul>{links}</ul></nav>
</header>
<main>
{parts}
</main>
<footer>Written by overcover {escape(__version__)}. Everything is in this file: it loads
nothing and runs nothing.</footer>
</body>
</html>
"""


def paragraph(text):
    """A paragraph of plain text."""
    return element("p", text)


def table(header, rows, caption, words=False):
    """A table that scrolls by itself where the screen is narrow.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequences of str
    caption : str
    words : bool, default=False
        Whether its cells are words, not numbers.

    Returns
    -------
    str
    """
    made = html_table(header, rows, caption)
    if words:
        made = made.replace("<table>", '<table class="words">', 1)
    # What scrolls must be reachable by keyboard, and have a name.
    label = f'role="region" tabindex="0" aria-label="{escape(caption)}"'
    return f'<div class="table" {label}>\n{made}\n</div>'


def facts(pairs):
    """A few numbers with their names, large.

    Parameters
    ----------
    pairs : sequence of (str, str)
        Name and value.

    Returns
    -------
    str
    """
    cells = "".join(
        f"<div>{element('dt', name)}{element('dd', value)}</div>"
        for name, value in pairs
    )
    return f'<dl class="facts">{cells}</dl>'


def picture(figure, alt, caption, kind="svg"):
    """A drawn figure, inside the page.

    Parameters
    ----------
    figure : matplotlib Figure
    alt : str
        What it shows, for those who do not see it.
    caption : str
    kind : {"svg", "png"}
        "png" where there are too many points for lines.

    Returns
    -------
    str
    """
    file = io.BytesIO()
    if kind == "svg":
        figure.savefig(file, format="svg", bbox_inches="tight", metadata={"Date": None})
    else:
        figure.savefig(file, format="png", bbox_inches="tight", dpi=150)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    source = "image/svg+xml" if kind == "svg" else "image/png"
    return (
        f'<figure><img src="data:{source};base64,{data}" alt="{escape(alt)}">'
        f"{element('figcaption', caption)}</figure>"
    )


def side_by_side(*pictures):
    """Pictures in a row, one below the other where the screen is narrow."""
    return f'<div class="pictures">{"".join(pictures)}</div>'
