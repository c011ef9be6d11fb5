"""Errors that users can correct, and files that are refused before any work is done."""

import os
from pathlib import Path

from ..tables import STDIN, WRITABLE, TableError, check_path, form_of


class Mistake(Exception):
    """Wrong usage; the text says what to do. Exit code 2."""

    code = 2


class Cannot(Mistake):
    """Right usage, but files or data do not permit it. Exit code 1."""

    code = 1


def check_input(source):
    """Refuse a table that is not there, or of an unknown form."""
    if source != STDIN:
        try:
            form_of(check_path(source))
        except (OSError, TableError) as error:
            raise Mistake(str(error)) from error


def check_output(target, source=None, known=WRITABLE):
    """Refuse a file that cannot be written, or is the table to read."""
    if target == STDIN:
        return
    try:
        form_of(target, known)
    except TableError as error:
        raise Mistake(str(error)) from error
    path = Path(target)
    if source not in (None, STDIN) and path.exists() and path.samefile(source):
        raise Mistake(f"{target} is the table to read. Choose another name for --out.")
    if path.is_dir():
        raise Mistake(f"{target} is a folder. Give the name of a file.")
    if not path.parent.is_dir():
        raise Cannot(f"there is no folder {path.parent} to write {path.name} to.")
    if not os.access(path.parent, os.W_OK):
        raise Cannot(f"{path.parent} may not be written to. Choose another folder.")
