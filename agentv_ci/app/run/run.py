"""Plan → execute ⇄ evaluate → results → report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agentv_ci.app.documents.compile import CompiledPlan, places_of_targets
from agentv_ci.app.run.conclude import conclude, conclude_resumed
from agentv_ci.app.run.confirm import announce, confirm, suspects_of
from agentv_ci.app.run.durations import durations_of
from agentv_ci.app.run.files import RunFiles, RunOutcome
from agentv_ci.app.run.prepare import require_recordings
from agentv_ci.app.run.trials import run_trials
from agentv_ci.app.run.wire import kept_rows
from agentv_ci.base.text import counted, first_few, on_one_line, shortened
from agentv_ci.compile.overrides import Overrides, override
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import ShardRecord
from agentv_ci.errors import MissingVariables
from agentv_ci.execute.engine import never
from agentv_ci.execute.environment_settings import EnvironmentSettings
from agentv_ci.execute.prompt import has_reference
from agentv_ci.execute.run_services import RunOptions, RunServices
from agentv_ci.execute.shard import part_of
from agentv_ci.execute.trials import trials_left
from agentv_ci.results.resume import NO_EARLIER_RUN, EarlierRun, ResumedResults

if TYPE_CHECKING:
    # Few runs need them.
    from agentv_ci.analysis.experiment.experiment import Judgement
    from agentv_ci.contracts.command_output import PlannedCases

MAX_NAME = 80


async def run_plan(
    compiled: CompiledPlan,
    overrides: Overrides,
    options: RunOptions,
    files: RunFiles,
    services: RunServices,
    *,
    experiment: Callable[[Plan], Judgement] | None = None,
) -> RunOutcome:
    """Run a plan and write its results and reports; `experiment` judges the arms of its plan.

    Raises UsageError for missing environment variables, TargetUnavailable before the first case,
    OSError when results cannot be written.
    """
    resumed = options.resume if options.resume != files.results else None
    read = filter(None, (options.balance, options.baseline, resumed))
    files.require_writable((*compiled.origin.sources, *read))
    whole = override(compiled.plan, overrides)
    plan, shard = _part(whole, options)
    # The verdict of an experiment is on all of its shards.
    judgement = experiment(whole) if experiment is not None and shard is None else None
    require_recordings(options)
    against = None
    if options.baseline is not None:
        from agentv_ci.app.run.baseline import baseline_comparison

        against = baseline_comparison(
            options.baseline,
            head=files.results.name,
            rows=files.scan,
            now=services.environment.now(),
            is_part=options.is_part,
            allows_changes=options.allows_changes,
            when_undecided=options.when_undecided,
        )
    results = _resumed(plan, files, options, services.environment.variables)
    earlier = None
    if options.resume is not None:
        earlier = results.read_earlier(options.resume, is_part=options.is_part)
    if options.dry_run:
        _note_predefined_answers(plan, services)
    try:
        watch = None
        if judgement is not None:
            watch = judgement.watch(kept_rows(earlier or NO_EARLIER_RUN))
        ending = await run_trials(
            plan, options, files, services, earlier=earlier, is_decided=watch or never
        )
    except MissingVariables as error:
        raise error.at(places_of_targets(compiled.origin, error.missing.keys())) from None
    quarantine = () if ending.dry_run else options.quarantine
    ending = replace(ending, shard=shard, quarantine=quarantine, against_base=options.against_base)
    judge = judgement.report if judgement is not None else None
    if earlier is None:
        outcome = conclude(plan, files, ending, against=against, judge=judge)
    else:
        outcome = conclude_resumed(plan, files, ending, results, against, judge)
    if options.confirm is None or ending.stopped is not None:
        return outcome
    suspects = suspects_of(outcome)
    if not suspects:
        return outcome
    announce(outcome, len(suspects), options.confirm, services)
    return await confirm(plan, suspects, options, files, services, against, ending)


def _note_predefined_answers(plan: Plan, services: RunServices) -> None:
    """Name the cases of a dry run whose own answer is not known."""
    cases = [case.id for case in plan.cases if case.skip is None and not has_reference(case)]
    if cases:
        names = first_few([shortened(on_one_line(name), MAX_NAME) for name in dict.fromkeys(cases)])
        scored = "the predefined answer of the mock is scored"
        services.note(
            f"{counted(len(cases), 'case')} without a reference answer: {scored} ({names})"
        )


def _resumed(
    plan: Plan, files: RunFiles, options: RunOptions, variables: Mapping[str, str]
) -> ResumedResults:
    """Return the results file of a run."""
    results = partial(
        ResumedResults, files.results, files.form, plan, options.root, dry_run=options.dry_run
    )
    if options.dry_run or options.replay is not None or options.cluster is not None:
        # Nothing is asked, or the workers have the environment.
        return results()
    return results(has_same_settings=EnvironmentSettings(plan, variables).fit)


def list_run(
    compiled: CompiledPlan,
    overrides: Overrides,
    options: RunOptions,
    files: RunFiles,
    variables: Mapping[str, str],
) -> PlannedCases:
    """Return what a run would ask; raises UsageError."""
    from agentv_ci.app.documents.previews import planned_cases  # few runs are listed

    plan, _ = _part(override(compiled.plan, overrides), options)
    finished: EarlierRun = NO_EARLIER_RUN
    if options.resume is not None:
        results = _resumed(plan, files, options, variables)
        finished = results.read_earlier(options.resume, is_part=options.is_part)
    return planned_cases(plan, lambda case: trials_left(plan, case, finished.results))


def _part(plan: Plan, options: RunOptions) -> tuple[Plan, ShardRecord | None]:
    """Return the shard of a plan that is run, and a record of it.

    The shard has the digest of the whole plan.
    """
    shard = options.shard
    if shard is None:
        return plan, None
    durations_s = durations_of(options.balance) if options.balance is not None else {}
    part = part_of(plan, shard, durations_s)
    return part, ShardRecord(index=shard.index, total=shard.total, cases=len(plan.cases))
