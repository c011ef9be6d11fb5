"""Planning: what a fit will take, before it starts.

The stages declare how many operations they do and how many bytes they hold; `measure`
finds in one small run what an operation costs on this computer; `plan` multiplies, and
chooses M and p for a budget. `auto_size`, the rule behind ``subdomain_size="auto"``,
measures nothing.
"""

from .._validation import DataWarning, FewRowsWarning
from ..cover import auto_size
from .choice import plan
from .findings import Finding, PoorCoverWarning
from .rates import Line, Rates, measure
from .result import Budget, Plan

__all__ = ["Budget", "DataWarning", "FewRowsWarning", "Finding", "Line", "Plan"]
__all__ += ["PoorCoverWarning", "Rates", "auto_size", "measure", "plan"]
