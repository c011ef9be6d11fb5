"""What goes wrong and users can mend: told in a line, with an exit code."""


class Mistake(Exception):
    """What was asked cannot be meant so; the text says what to do. Exit code 2."""

    code = 2


class Cannot(Mistake):
    """What was asked is clear, but files or data do not permit it. Exit code 1."""

    code = 1


def first_line(error):
    """The beginning of an error's text.

    Examples
    --------
    >>> first_line(ValueError("no\\nmore")), first_line(KeyboardInterrupt())
    ('no', 'KeyboardInterrupt')
    """
    return str(error).strip().partition("\n")[0] or type(error).__name__
