"""Stage 6: rows become one report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agentv_ci.analysis.gate import gate_settings
from agentv_ci.analysis.outcomes import CaseOutcome, Tally
from agentv_ci.analysis.summing import sum_up
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending, RunReport, ScenarioReport
from agentv_ci.contracts.results import ResultRow

if TYPE_CHECKING:
    from agentv_ci.analysis.comparison import Yardstick

__all__ = ["report"]


def report(
    plan: Plan,
    rows: Iterable[ResultRow],
    ending: Ending,
    *,
    scenarios: Sequence[ScenarioReport] = (),
    yardstick: Yardstick | None = None,
) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
    """Return what a run came to, and every case's outcome in the plan's order.

    The rows may come in any order and are looked at once; the figures do not depend on it. `scenarios` is what
    validators say, `yardstick` what the run is compared with.
    """
    tally = Tally.of(plan)
    for row in rows:
        tally.add(row)
    outcomes = tally.outcomes()
    comparison = None
    if yardstick is not None and not ending.dry_run:
        from agentv_ci.analysis.comparison import compare  # most runs are compared with nothing

        comparison = compare(yardstick, outcomes)
    run_report = sum_up(
        tally,
        outcomes,
        gate_settings(plan),
        ending,
        plan_digest=plan.digest,
        scenarios=scenarios,
        comparison=comparison,
    )
    return run_report, outcomes
