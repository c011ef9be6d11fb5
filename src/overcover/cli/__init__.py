"""The command line: ``overcover``, for those who have a table and no program.

Beside the path. Commands are in `_commands` and `_trials`; what each does has a file of
its own. Tables are read in `_files` and become numbers in `_tables`; `_stored` is a
model with what it knows of its columns, `_output` writes. Needs the extra ``cli``.
"""

import sys

from ._signals import orderly_end, told_of_end


def make_app():
    """The application with all its commands, of typer."""
    from . import _commands, _trials  # noqa: F401, they register
    from ._app import app

    return app


def main(arguments=None):
    """Run the command line; ends the process with its exit code.

    0 when all went well, 1 where it cannot be done, 2 for a mistake in what was asked,
    130 when interrupted, 143 when terminated, both after cleaning up. What goes wrong
    is told in a line or two; the hidden option ``--debug`` before the command, or
    ``OVERCOVER_DEBUG=1``, adds the traceback.

    Parameters
    ----------
    arguments : list of str or None
        None for those of the process.
    """
    with orderly_end():
        try:
            app = make_app()
        except ImportError as error:
            print(
                f"error: the command line needs {error.name}. Install the extra: "
                "pip install 'overcover[cli]'.",
                file=sys.stderr,
            )
            sys.exit(2)
        except KeyboardInterrupt as error:
            code, text = told_of_end(error)
            print(text, file=sys.stderr)
            sys.exit(code)
        app(args=arguments, prog_name="overcover")
