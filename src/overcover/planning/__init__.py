"""Planning: the time, memory and disk of a fit, before it starts.

The stages declare their numbers of operations and bytes. `measure` times an operation
on this computer, in one small run. `plan` multiplies them, and chooses M and p for a
budget. `auto_size`, the rule of ``subdomain_size="auto"``, measures nothing.
"""

from .._validation import DataWarning, FewRowsWarning
from ..cover import auto_size
from .choice import plan
from .findings import Finding, PoorCoverWarning
from .rates import Line, Rates, measure
from .result import Budget, Plan

__all__ = ["Budget", "DataWarning", "FewRowsWarning", "Finding", "Line", "Plan"]
__all__ += ["PoorCoverWarning", "Rates", "auto_size", "measure", "plan"]
