"""What renderers are given."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from agentv_ci.analysis.outcomes import CaseOutcome
from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.links import NO_LINKS, Links


@dataclass(frozen=True, slots=True)
class ReportedRun:
    """A finished run: what it came to, and its rows."""

    report: RunReport
    outcomes: Sequence[CaseOutcome]
    """Every case, in the plan's order, else in that of the eval files."""
    rows: Callable[[], Iterable[ResultRow]]
    """Reads the rows anew, in any order: of a long run they are more than should be held at once."""
    links: Links = NO_LINKS
