"""Run more trials of cases that may have got worse by chance (`--confirm`)."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv_ci.app.run.conclude import conclude_resumed
from agentv_ci.app.run.files import RunFiles, RunOutcome
from agentv_ci.app.run.trials import run_trials
from agentv_ci.base.text import counted
from agentv_ci.compile.overrides import with_trials
from agentv_ci.contracts.cases import CaseKey
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending
from agentv_ci.execute.run_services import RunOptions, RunServices
from agentv_ci.results.resume import ResumedResults

if TYPE_CHECKING:
    from agentv_ci.analysis.comparison.comparison import BaselineComparison


def suspects_of(outcome: RunOutcome) -> frozenset[CaseKey]:
    """Return the suspects of an undecided comparison: their losses may be chance."""
    comparison = outcome.report.comparison
    if comparison is None or comparison.statement is None:
        return frozenset()
    return frozenset(case.key for case in comparison.statement.maybe_worse_cases)


def announce(outcome: RunOutcome, suspects: int, more: int, services: RunServices) -> None:
    """Say how many more trials run, and if they cannot show that a suspect is worse."""
    from agentv_ci.analysis.comparison.comparison import too_few_to_confirm  # few runs are compared

    services.note(f"{counted(suspects, 'case')} undecided; {counted(more, 'more trial')} of each")
    comparison = outcome.report.comparison
    if comparison is not None and (few := too_few_to_confirm(comparison, more)) is not None:
        services.warn(few)


async def confirm(
    plan: Plan,
    suspects: Collection[CaseKey],
    options: RunOptions,
    files: RunFiles,
    services: RunServices,
    against: BaselineComparison | None,
    first: Ending,
) -> RunOutcome:
    """Run more trials of some cases, and conclude again with all trials.

    `first` is how the run before ended.
    """
    more = options.confirm or 0
    trials: dict[CaseKey, int] = {}
    for case in plan.cases:
        key = plan.key_of(case)
        trials[key] = case.trials + (more if key in suspects else 0)
    plan = with_trials(plan, trials)
    results = ResumedResults(
        files.results,
        files.form,
        plan,
        options.root,
        dry_run=options.dry_run,
        # Crashes of the agent count as failed trials: asked again, they would be erased.
        keeps_crashes=True,
    )
    earlier = results.read_earlier(files.results, is_part=options.is_part)
    ending = await run_trials(plan, options, files, services, earlier=earlier)
    seconds = (ending.duration_s or 0.0) + (first.duration_s or 0.0)
    ending = replace(
        ending,
        shard=first.shard,
        quarantine=first.quarantine,
        against_base=first.against_base,
        duration_s=seconds,
    )
    return conclude_resumed(plan, files, ending, results, against)
