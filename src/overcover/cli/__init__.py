"""The command line, ``overcover``: fit and use models without a program."""

import sys

from ._errors import code_and_word, orderly_end


def make_app():
    """The application with all its commands, of typer."""
    from . import _fit, _commands, _trials  # noqa: F401, I001, they register
    from ._app import app

    return app


def main(arguments=None):
    """Run the command line; ends with 0, 1 (data), 2 (usage), 130 or 143 (signals)."""
    with orderly_end():
        try:
            app = make_app()
        except ImportError as error:
            code = 2
            text = f"error: the command line needs {error.name}. Install the extra: "
            text += "pip install 'overcover[cli]'."
        except KeyboardInterrupt as error:
            code, text = code_and_word(error)
        else:
            app(args=arguments, prog_name="overcover")
            return
        print(text, file=sys.stderr)
        sys.exit(code)
