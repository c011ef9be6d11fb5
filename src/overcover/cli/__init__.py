"""The command line: ``overcover``, for people who have a table and no program.

Commands are in `_commands` and `_trials`, and their work in the other files.
`overcover.tables` reads, encodes and writes tables; `_columns` parts their columns into
inputs and outputs, `_stored` is a model with the encoder of its columns. Needs the
extra ``cli``.
"""

import sys

from ._errors import code_and_word, orderly_end


def make_app():
    """The application with all its commands, of typer."""
    from . import _commands, _trials  # noqa: F401, they register
    from ._app import app

    return app


def main(arguments=None):
    """Run the command line; ends the process with its exit code.

    0 for success, 1 if files or data do not permit it, 2 for wrong usage, 130 when
    interrupted, 143 when terminated, both after cleaning up. An error is a line or two;
    the hidden option ``--debug`` before the command, or ``OVERCOVER_DEBUG=1``, adds the
    traceback. `arguments` are a list of str, None for those of the process.
    """
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
