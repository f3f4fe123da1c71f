"""The cases of a plan that did not pass in earlier results (`--failed`)."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from agentv_ci.analysis.cases.tally import Tally
from agentv_ci.app.documents.compile import CompiledPlan
from agentv_ci.app.run.files import read_run_report
from agentv_ci.compile.overrides import narrowed
from agentv_ci.contracts.cases import matching
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import PlanCase
from agentv_ci.errors import UsageError
from agentv_ci.results.files import scan_rows


def only_failed(compiled: CompiledPlan, results: Path) -> tuple[CompiledPlan, set[str]]:
    """Return the plan with only the cases that did not pass in results.

    Also return the targets of failed cases that this plan asks of other targets. Cases that a
    stopped run did not begin did not pass either. Raises UsageError for unreadable results.
    """
    if results.is_dir():
        raise UsageError(
            f"--failed: '{results}' is a directory", hint="put --failed last, or name a file"
        )
    tally = Tally()
    for row in scan_rows(results, allow_torn=True):
        tally.add(row)
    known, plan = tally.outcomes(), compiled.plan
    match = matching((case.key for case in known), map(plan.key_of, heads_of(plan)))
    passed = {match(case.key): case.verdict in ("pass", "skipped") for case in known}
    report = read_run_report(results)
    did_not_begin = report is not None and report.leaves_cases and not report.filtered

    def did_pass(case: PlanCase) -> bool:
        return passed.get(match(plan.key_of(case)), not did_not_begin)

    failed = narrowed(plan, lambda case: not did_pass(case))
    asked = set(map(failed.key_of, heads_of(failed)))
    matched = set(map(match, asked))
    other_targets: set[str] = set()
    for case in known:
        if case.key not in asked and match(case.key) in matched:
            other_targets.add(case.key[2])
    origin = replace(compiled.origin, sources=(*compiled.origin.sources, results))
    return CompiledPlan(failed, origin), other_targets
