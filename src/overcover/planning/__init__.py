"""Planning: what a fit will take, before it starts.

Beside the path. The stages declare how many operations they do and how many bytes they
hold; `measure` finds in one small run what an operation costs on this computer; `plan`
multiplies. `auto_size`, the rule behind ``subdomain_size="auto"``, measures nothing.
"""

from .._validation import FewRowsWarning
from ..cover import auto_size
from ._budget import Budget, parse_seconds
from ._findings import (
    Finding,
    PoorCoverWarning,
    about_cover,
    about_variance,
    warn_of_poor_choices,
)
from ._plan import Plan, describe_fit, plan
from ._rates import Line, Rates, measure, state_bytes

__all__ = [
    "Budget",
    "FewRowsWarning",
    "Finding",
    "Line",
    "Plan",
    "PoorCoverWarning",
    "Rates",
    "about_cover",
    "about_variance",
    "auto_size",
    "describe_fit",
    "measure",
    "parse_seconds",
    "plan",
    "state_bytes",
    "warn_of_poor_choices",
]
