"""Separated values: every row has as many cells as the first line, or is refused.

Parsers shift or leave out cells without an error, so cells are counted here before.
"""

import csv
from array import array
from itertools import chain

from .._validation import check_names
from ._cells import TableError, column_names, is_word

QUOTE = '"'
MARK = "\ufeff"  # of the encoding, which some editors put first


class Rows:
    """Text of a table, row by row, without empty lines; pandas can read it."""

    def __init__(self, file, separator="auto", otherwise=None, header=True):
        self.lines, self.n_lines = self._numbered(file), 0
        self.separator = separator
        first_line, first_row, cells = self._first_row(otherwise)
        if not cells:
            raise TableError("it does not begin with a line of columns.")
        self.names = column_names(len(cells))
        is_header = any(map(is_word, cells)) if header == "auto" else header
        if is_header:
            named = zip(cells, self.names)
            self.names = [cell.strip() or name for cell, name in named]
        try:
            check_names(self.names, "it")
        except ValueError as error:
            raise TableError(str(error)) from None
        # Where rows begin that have been read, but not asked for by `next_lines`.
        self._begins = array("q", [] if is_header else [first_line])
        self._rest = chain([] if is_header else [first_row], self._counted())

    def _numbered(self, file):
        for line in file:
            self.n_lines += 1
            if not line.isascii():
                try:
                    line.encode()
                except UnicodeEncodeError:  # bytes that could not be decoded
                    raise TableError(
                        f"it is no text in UTF-8, first in line {self.n_lines}. Save "
                        "it in that encoding, or convert it, for instance from "
                        "Latin-1: iconv -f LATIN1 -t UTF-8."
                    ) from None
            yield line

    def _first_row(self, otherwise):
        for line in self.lines:
            line = line.removeprefix(MARK)
            if not line.strip():
                continue
            if self.separator == "auto":
                most = max(",;\t", key=line.count)
                self.separator = most if most in line else otherwise
            return self.n_lines, *self._row(line)
        return 0, "", []

    def _row(self, line):
        """Text and cells of the row that begins with a line; quotes may hold more."""
        if self.separator is None:
            return line, line.split()
        taken: list[str] = []

        def lines():
            for part in chain([line], self.lines):
                taken.append(part)
                yield part

        options = {"delimiter": self.separator, "skipinitialspace": True}
        try:
            cells = next(csv.reader(lines(), **options))
        except csv.Error as error:
            raise TableError(f"line {self.n_lines}: {error}.") from error
        return "".join(taken), cells

    def _counted(self):
        separator, n_cells = self.separator, len(self.names)
        n_between = n_cells - 1 if n_cells > 1 and separator is not None else -1
        for line in self.lines:
            first_line = self.n_lines
            if line.count(separator or " ") != n_between or QUOTE in line:
                if not line.strip(" \r\n" if separator == "\t" else None):
                    continue
                line, cells = self._row(line)
                if len(cells) != n_cells:
                    raise TableError(
                        f"line {first_line} has {len(cells)} cells, and the first line "
                        f"has {n_cells}. Correct one of them."
                    )
            self._begins.append(first_line)
            yield line

    def __iter__(self):  # pandas asks for it, but calls `read`
        return self._rest

    def read(self, n=-1):
        """The next rows, of about n characters; all that are left if n is negative."""
        taken, size = [], 0
        for row in self._rest:
            taken.append(row)
            size += len(row)
            if 0 <= n <= size:
                break
        return "".join(taken)

    def next_lines(self, n):
        """Lines in the file, counted from 1, where the next n rows begin."""
        lines = self._begins[:n]
        del self._begins[:n]
        return lines
