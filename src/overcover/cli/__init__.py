"""The command line: ``overcover``, for those who have a table and no program.

Beside the path. Commands are in `_app`, one file each for what they do; tables are read
in `_tables`. Needs the extra ``cli``.
"""

import sys


def main(arguments=None):
    """Run the command line; ends the process with its exit code.

    0 when all went well, 2 for a mistake in what was asked or given, 130 when
    interrupted. A mistake is told in a line or two, without a traceback.

    Parameters
    ----------
    arguments : list of str or None
        None for those of the process.
    """
    try:
        from ._app import app
    except ImportError as error:
        print(
            f"error: the command line needs {error.name}. Install the extra: "
            "pip install 'overcover[cli]'.",
            file=sys.stderr,
        )
        sys.exit(2)
    from ._tables import Mistake

    try:
        app(args=arguments, prog_name="overcover")
    except Mistake as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        sys.exit(130)
