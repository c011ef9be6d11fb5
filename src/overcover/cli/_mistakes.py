"""Errors that users can correct: one line of text, and an exit code."""


class Mistake(Exception):
    """Wrong usage; the text says what to do. Exit code 2."""

    code = 2


class Cannot(Mistake):
    """Right usage, but files or data do not permit it. Exit code 1."""

    code = 1


def first_line(error):
    """The beginning of an error's text.

    Examples
    --------
    >>> first_line(ValueError("no\\nmore")), first_line(KeyboardInterrupt())
    ('no', 'KeyboardInterrupt')
    """
    return str(error).strip().partition("\n")[0] or type(error).__name__
