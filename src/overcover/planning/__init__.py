"""Planning: what a fit will take, before it starts.

Beside the path. `plan` times the pieces of a fit on made-up rows and multiplies them;
`auto_size` is the rule behind ``subdomain_size="auto"``, which times nothing. The model
of seconds is in `overcover.planning._rates`, that of bytes in `_costs`.
"""

from .._validation import FewRowsWarning
from ._findings import Finding, PoorCoverWarning
from ._plan import plan
from ._rates import Rates, measure
from ._result import Budget, Plan
from ._sizes import auto_size
from ._timing import Curve

__all__ = [
    "Budget",
    "Curve",
    "FewRowsWarning",
    "Finding",
    "Plan",
    "PoorCoverWarning",
    "Rates",
    "auto_size",
    "measure",
    "plan",
]
