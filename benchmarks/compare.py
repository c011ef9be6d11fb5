"""The results of ``overcover compare`` on two data sets.

    python benchmarks/compare.py [--section kin40k,poserlike] [--quick]

Prints a table per data set and writes benchmarks/results/compare_DATA.json. The methods
are the cover with GPs and with Twin GPs, the mean, and nearest neighbours, ridge and
gradient boosting, tuned on the training rows. All use the same three folds and threads.
Errors are in units of the data, or in standard deviations if there are many
outputs.
"""

from typing import NamedTuple

import _common
from _common import note, print_table
from overcover.cli._compare import compare, methods


class Settings(NamedTuple):
    """Sizes of a run."""

    size: int
    """Rows of a subdomain."""

    n_rows: int | None
    """Rows of the data, at most."""

    n_outputs: int | None
    n_folds: int
    n_jobs: int


FULL = Settings(800, 4000, 4, 3, 2)
QUICK = Settings(40, 90, 2, 2, 1)
# Consecutive frames of a motion resemble each other, so a fold keeps them together.
BLOCKS = {"poserlike": 50}


def measure(name, settings):
    """Scores of all methods on the training rows of one data set.

    Test rows are left out: those of poserlike are frames between training rows, so that
    blocks of consecutive rows would not be what they seem.
    """
    X, Y = _common.load_raw(name)
    X, Y = X[: settings.n_rows], Y[: settings.n_rows]
    Y = Y[:, Y.std(axis=0) > 0][:, : settings.n_outputs]
    cover = {"subdomain_size": settings.size, "n_jobs": settings.n_jobs}
    cover["random_state"] = _common.SEED
    block = BLOCKS.get(name, 1)
    scores = []
    for method in methods(cover):
        note(f"{name}: {method}")
        scores += compare(X, Y, [method], settings.n_folds, cover, block)
    shape = {"data": name, "n_rows": len(X), "n_inputs": X.shape[1]}
    shape |= {"n_outputs": Y.shape[1], "n_folds": settings.n_folds, "block": block}
    shape["n_jobs"] = settings.n_jobs
    scores.sort(key=lambda score: score.rmse)
    rows = [shape | score._asdict() for score in scores]
    print_table(f"Methods on {name}", rows)
    return rows


SECTIONS = {
    "kin40k": lambda settings: measure("kin40k", settings),
    "poserlike": lambda settings: measure("poserlike", settings),
}


def main(arguments=None):
    """Run the chosen sections."""
    summary = __doc__.splitlines()[0]
    _common.run_sections(summary, "compare", SECTIONS, (FULL, QUICK), arguments)


if __name__ == "__main__":
    main()
