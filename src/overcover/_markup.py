"""Numbers and tables for people: as plain text, and as HTML that is safe to show."""

from html import escape
from numbers import Integral


def number(value, digits=4):
    """A number with as many digits as a reader needs; a dash where there is none.

    Examples
    --------
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


def numbers(values, most=3):
    """The first few of some numbers, and how many more there are.

    Examples
    --------
    >>> numbers([1.0, 2.5]), numbers(range(60))
    ('1, 2.5', '0, 1, 2, ... (57 more)')
    """
    shown = ", ".join(number(value) for value in values[:most])
    rest = len(values) - most
    return f"{shown}, ... ({rest} more)" if rest > 0 else shown


def percent(share, digits=1):
    """A share in per cent.

    Examples
    --------
    >>> percent(0.1234), percent(1.0, 0)
    ('12.3 %', '100 %')
    """
    return "-" if share is None or share != share else f"{100 * share:.{digits}f} %"


def duration(seconds):
    """Seconds in words.

    Examples
    --------
    >>> duration(4.21), duration(75), duration(7260)
    ('4.2 s', '1 min 15 s', '2 h 1 min')
    """
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def size_of(n_bytes):
    """Bytes in words.

    Examples
    --------
    >>> size_of(1234), size_of(5_600_000)
    ('1.2 kB', '5.6 MB')
    """
    for unit in ("bytes", "kB", "MB", "GB"):
        if n_bytes < 1000:
            return f"{n_bytes} bytes" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1000
    return f"{n_bytes:.1f} TB"


def text_table(header, rows):
    """Lines of a table, columns to the right, two blanks between.

    Examples
    --------
    >>> print(text_table(["row", "target"], [["7", "0.5"]]))
    row  target
      7     0.5
    """
    cells = [list(header), *map(list, rows)]
    widths = [max(len(cell) for cell in column) for column in zip(*cells)]
    return "\n".join(
        "  ".join(cell.rjust(width) for cell, width in zip(line, widths)).rstrip()
        for line in cells
    )


def element(tag, text="", **attributes):
    """An HTML element around text that is escaped; ``class_`` for the class.

    Examples
    --------
    >>> element("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    words = "".join(
        f' {name.rstrip("_").replace("_", "-")}="{escape(str(value))}"'
        for name, value in attributes.items()
    )
    return f"<{tag}{words}>{escape(str(text))}</{tag}>"


def html_table(header, rows, caption=None):
    """A table whose cells are escaped; the first cell of a row names it.

    Parameters
    ----------
    header : sequence of str
    rows : sequence of sequences of str
    caption : str or None

    Returns
    -------
    str

    Examples
    --------
    >>> html_table(["row"], [["<7>"]]).count("&lt;7&gt;")
    1
    """
    parts = ["<table>", element("caption", caption) if caption else ""]
    head = "".join(element("th", name, scope="col") for name in header)
    parts.append(f"<thead><tr>{head}</tr></thead>\n<tbody>")
    for first, *others in rows:
        cells = "".join(element("td", cell) for cell in others)
        parts.append(f"<tr>{element('th', first, scope='row')}{cells}</tr>")
    return "\n".join([*filter(None, parts), "</tbody></table>"])
