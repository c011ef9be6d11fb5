"""The tables and figures of the paper, on data that anyone can generate.

    python -m experiments NAME[,NAME...] | all [--quick]
    python -m experiments page

`definitions` holds the parameters that vary and their sizes, `paper` the results of the
paper. Each experiment has its module. `claims` and `page` write docs/reproduction.md
from the JSON files in experiments/results.
"""

import sys
from pathlib import Path

# The benchmarks have the functions that time, describe and record runs.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
