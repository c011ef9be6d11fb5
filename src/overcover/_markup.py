"""Numbers and tables for people: as plain text, and as HTML that is safe to show."""

from html import escape
from math import log10
from numbers import Integral


def number(value, digits=4):
    """A number with as many digits as a reader needs; a dash where there is none.

    >>> number(0.123456), number(1234567), number(12345.678), number(float("nan"))
    ('0.1235', '1,234,567', '12,346', '-')
    >>> number(1.5e-9), number(2.0), number(float("inf"))
    ('1.5e-09', '2', 'infinite')
    """
    if value is None or value != value:
        return "-"
    if isinstance(value, Integral):
        return f"{int(value):,}"
    if value in (float("inf"), float("-inf")):
        return "infinite" if value > 0 else "-infinite"
    if 10.0 ** (digits - 1) <= abs(value) < 1e9:
        return f"{value:,.0f}"
    return f"{value:.{digits}g}"


def some(texts, most=8):
    """The first few of some texts, and how many more there are."""
    rest = len(texts) - most
    return ", ".join(texts[:most]) + (f", ... ({rest} more)" if rest > 0 else "")


def numbers(values, most=3):
    """The first few of some numbers, and how many more there are."""
    return some([number(value) for value in values], most)


def percent(share, digits=1):
    """A share in per cent, such as "12.3 %"; a dash where there is none."""
    return "-" if share is None or share != share else f"{100 * share:.{digits}f} %"


def duration(seconds):
    """Seconds in words: "4.2 s", "1 min 15 s", "2 h 1 min"."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size_of(n_bytes):
    """Bytes in words: "12 bytes", "1.2 kB", "5.6 MB"."""
    if n_bytes < 1000:
        return f"{n_bytes} bytes"
    power = min(int(log10(n_bytes)) // 3, 4)
    return f"{n_bytes / 1000**power:.1f} {('kB', 'MB', 'GB', 'TB')[power - 1]}"


def text_table(header, rows):
    """Lines of a table, columns to the right, two blanks between."""
    cells = [list(header), *map(list, rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*cells)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip()
        for line in cells
    )


def element(tag, text="", **attributes):
    """An HTML element around text that is escaped."""
    words = "".join(f' {k}="{escape(str(value))}"' for k, value in attributes.items())
    return f"<{tag}{words}>{escape(str(text))}</{tag}>"


def html_table(header, rows, caption):
    """A table whose cells are escaped; the first cell of a row names it."""
    head = "".join(element("th", name, scope="col") for name in header)
    lines = ["<table>", element("caption", caption), f"<thead><tr>{head}</tr></thead>"]
    lines.append("<tbody>")
    for first, *others in rows:
        cells = "".join(element("td", cell) for cell in others)
        lines.append(f"<tr>{element('th', first, scope='row')}{cells}</tr>")
    return "\n".join([*lines, "</tbody></table>"])
