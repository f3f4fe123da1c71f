"""Stage 6: rows become one report."""

from __future__ import annotations

from collections.abc import Iterable

from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.gate import judge_run
from agentv_ci.report.outcomes import CaseOutcome, Tally
from agentv_ci.report.statistics import count, describe
from agentv_ci.schemas import schema_id

__all__ = ["report"]


def report(
    plan: Plan, rows: Iterable[ResultRow], *, dry_run: bool, write_error: str | None
) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
    """Return what a run came to, and every case's outcome in the plan's order.

    The rows may come in any order and are looked at once; the figures do not depend on it.
    """
    tally = Tally(plan)
    for row in rows:
        tally.add(row)
    outcomes = tally.outcomes()
    run_report = RunReport(
        schema_=schema_id("report-v1"),
        plan_digest=plan.digest,
        dry_run=dry_run,
        counts=count(outcomes, rows=tally.rows),
        statistics=describe(outcomes),
        gate=judge_run(plan.suites, outcomes, dry_run=dry_run, write_error=write_error),
        usage=tally.usage,
        write_error=write_error,
    )
    return run_report, outcomes
