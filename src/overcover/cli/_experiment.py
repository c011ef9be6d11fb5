"""The experiments are in the source checkout, not in the package."""

import os
import subprocess
import sys
from pathlib import Path

from ._mistakes import Cannot

PACKAGE = Path(__file__).resolve().parents[1]


def find_checkout():
    """The folder of the source checkout: where the package lies, or where we are.

    Returns
    -------
    Path or None
    """
    for folder in (PACKAGE.parents[1], Path.cwd()):
        is_ours = (folder / "src" / PACKAGE.name / "__init__.py").is_file()
        if is_ours and (folder / "experiments" / "__main__.py").is_file():
            return folder
    return None


def run_experiment(arguments):
    """Run ``python -m experiments`` in the checkout.

    Parameters
    ----------
    arguments : list of str

    Returns
    -------
    int
        Its exit code.
    """
    checkout = find_checkout()
    if checkout is None:
        raise Cannot(
            "the experiments come with the source code, not with the package. Run this "
            "inside a checkout of overcover; its docs/reproduction.md tells more."
        )
    # The package that is running, whatever is installed.
    paths = [str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    command = [sys.executable, "-m", "experiments", *arguments]
    return subprocess.run(command, cwd=checkout, env=environment).returncode
