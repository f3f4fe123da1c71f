"""Stage 6: rows become one report."""

from __future__ import annotations

from collections.abc import Iterable

from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending, RunReport
from agentv_ci.contracts.results import ResultRow
from agentv_ci.report.gate import judge_run, settings_of
from agentv_ci.report.outcomes import CaseOutcome, Tally
from agentv_ci.report.statistics import count, describe
from agentv_ci.schemas import schema_id

__all__ = ["report"]


def report(plan: Plan, rows: Iterable[ResultRow], ending: Ending) -> tuple[RunReport, tuple[CaseOutcome, ...]]:
    """Return what a run came to, and every case's outcome in the plan's order.

    The rows may come in any order and are looked at once; the figures do not depend on it.
    """
    tally = Tally.of(plan)
    for row in rows:
        tally.add(row)
    outcomes = tally.outcomes()
    run_report = RunReport(
        schema_=schema_id("report-v1"),
        plan_digest=plan.digest,
        shard=ending.shard,
        stopped=ending.stopped,
        unrecorded=ending.unrecorded,
        dry_run=ending.dry_run,
        counts=count(outcomes, rows=tally.rows),
        statistics=describe(outcomes),
        gate=judge_run(settings_of(plan), outcomes, tally, ending),
        usage=tally.usage,
        cost_usd=tally.cost_usd(suite.path for suite in plan.suites),
        unpriced_models=ending.unpriced_models,
        concurrency=ending.concurrency,
        write_error=ending.write_error,
    )
    return run_report, outcomes
