"""The page around the sections: looks, pictures inside the file, safe text."""

import base64
import io
from importlib import resources
from string import Template

from .._markup import element, escape, html_table, number

# Lines of a table of columns; more are summed up in a sentence.
MOST_LINES = 20


def page(title, sections):
    """The whole document; sections have an address, a title and a body of HTML."""
    from .. import __version__

    links = "".join(
        f"<li>{element('a', heading, href=f'#{name}')}</li>"
        for name, heading, _ in sections
    )
    parts = "\n".join(
        f'<section aria-labelledby="{name}">\n'
        f"{element('h2', heading, id=name)}\n{body}\n</section>"
        for name, heading, body in sections
    )
    files = resources.files(__package__)
    return Template((files / "page.html").read_text(encoding="utf-8")).substitute(
        title=escape(title),
        style=(files / "page.css").read_text(encoding="utf-8"),
        version=escape(__version__),
        links=links,
        sections=parts,
    )


def paragraph(text):
    return element("p", text)


def table(columns, caption, words=False, of=None):
    """A table that scrolls, from columns by heading: texts, or numbers.

    Of a table `of` inputs or the like, only the first lines are shown.
    """
    lines = list(zip(*columns.values()))
    rest = max(0, len(lines) - MOST_LINES) if of else 0
    cells = (
        [cell if isinstance(cell, str) else number(cell) for cell in line]
        for line in lines[: len(lines) - rest]
    )
    text = html_table(columns, cells, caption)
    if words:
        text = text.replace("<table>", '<table class="words">', 1)
    # What scrolls must be reachable by keyboard, and have a name.
    label = f'role="region" tabindex="0" aria-label="{escape(caption)}"'
    text = f'<div class="table" {label}>\n{text}\n</div>'
    if rest:
        plural = "s" if rest > 1 else ""
        text += "\n" + paragraph(f"Not shown: {number(rest)} more {of}{plural}.")
    return text


def facts(pairs):
    """A few numbers by their names, large."""
    cells = "".join(
        f"<div>{element('dt', name)}{element('dd', value)}</div>"
        for name, value in pairs.items()
    )
    return f'<dl class="facts">{cells}</dl>'


def new_axes(height=4.6):
    """Axes of a new figure, which pyplot does not know."""
    from matplotlib.figure import Figure

    return Figure(figsize=(5.2, height)).subplots()


def picture(figure, alt, caption, is_dense=False):
    """A drawn figure, inside the page; `alt` is for people who do not see it."""
    file = io.BytesIO()
    # Many points take less space as a bitmap.
    options = {"dpi": 150} if is_dense else {"metadata": {"Date": None}}
    kind = "png" if is_dense else "svg"
    figure.savefig(file, format=kind, bbox_inches="tight", **options)
    data = base64.b64encode(file.getvalue()).decode("ascii")
    media = {"png": "image/png", "svg": "image/svg+xml"}[kind]
    return (
        f'<figure><img src="data:{media};base64,{data}" alt="{escape(alt)}">'
        f"{element('figcaption', caption)}</figure>"
    )


def side_by_side(*pictures):
    """Pictures in a row, one below the other where the screen is narrow."""
    return f'<div class="pictures">{"".join(pictures)}</div>'
