"""The tables and figures of the paper, on data that everybody can make.

    python -m experiments NAME[,NAME...] | all [--quick]
    python -m experiments page

`definitions` says what is varied and how much of it, `paper` what the paper found, one
module per experiment does it, `claims` and `page` write docs/reproduction.md from the
JSON files in experiments/results.
"""

import sys
from pathlib import Path

# How runs are timed, described and recorded is the benchmarks' business.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "benchmarks"))
