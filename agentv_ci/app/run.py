"""Plan → execute ⇄ evaluate → results → report."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci import __version__
from agentv_ci.analysis.gate import gate_settings
from agentv_ci.analysis.run_report import report
from agentv_ci.analysis.tally import Tally
from agentv_ci.app.check import validate_runs
from agentv_ci.app.compile import CompiledPlan, places_of_targets, planned_cases
from agentv_ci.app.grading import grader
from agentv_ci.app.latest import link_latest
from agentv_ci.app.report_files import RunFiles, RunOutcome, read_run_report, why, write_reports
from agentv_ci.app.rivals import ArmAnswers, base_of
from agentv_ci.app.shards import durations_of
from agentv_ci.compile.overrides import Overrides, narrowed, override, with_trials
from agentv_ci.contracts.case_key import CaseKey, matching
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase, outcomes_of, runs_in_suite
from agentv_ci.contracts.report import Ending, RunOrigin, ScenarioReport, ShardRecord, quarantine_of
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.stored_rows import AnyRow
from agentv_ci.contracts.targets import AgentTarget, CliTarget, Target
from agentv_ci.contracts.workspaces import Isolation
from agentv_ci.errors import CannotGoOn, Interrupted, MissingVariables, UsageError
from agentv_ci.evaluate.evaluators import load_evaluators
from agentv_ci.execute.engine import Engine, IsDecided
from agentv_ci.execute.environment_settings import EnvironmentSettings
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.resolution import resolve_plan
from agentv_ci.execute.run_services import ClusterOptions, RunOptions, RunServices, StoredAnswers
from agentv_ci.execute.shard import part_of
from agentv_ci.execute.trial_runner import LocalTrials, RunState, TrialRunner
from agentv_ci.execute.trials import trials_left
from agentv_ci.publish.checkout import commit_of, credentials
from agentv_ci.redaction import Redactor, secrets_of
from agentv_ci.results.files import UnreadableResults, form, read_rows, scan_rows
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import NO_EARLIER_RUN, EarlierRun, ResumedResults
from agentv_ci.source_files import changed_files
from agentv_ci.text import counted, listed
from agentv_ci.workspaces.places import Workspaces

if TYPE_CHECKING:
    from agentv_ci.analysis.comparison import BaselineComparison

    # Few runs need them.
    from agentv_ci.analysis.experiment import Judgement
    from agentv_ci.contracts.experiment_report import ExperimentReport
    from agentv_ci.contracts.plan_summaries import PlannedCases


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

    Raises UsageError for missing environment variables, TargetUnavailable before the first case, OSError when results
    cannot be written.
    """
    resumed = options.resume if options.resume != files.results else None
    read = tuple(path for path in (options.balance, options.baseline, resumed) if path is not None)
    files.require_writable((*compiled.origin.sources, *read))
    whole = override(compiled.plan, overrides)
    plan, shard = _part(whole, options)
    # The verdict of an experiment is on all of its shards.
    judged = experiment(whole) if experiment is not None and shard is None else None
    require_recordings(options)
    against = None
    if options.baseline is not None:
        from agentv_ci.app.compare import baseline_comparison

        against = baseline_comparison(
            options.baseline,
            head=files.results.name,
            now=services.environment.now(),
            is_part=options.is_part,
            allows_changes=options.allows_changes,
            when_undecided=options.when_undecided,
        )
    results = _resumed(plan, files, options, services.environment.variables)
    earlier = results.read_earlier(options.resume, is_part=options.is_part) if options.resume is not None else None
    try:
        watch = judged.watch(_kept_rows(earlier)) if judged is not None else None
        ending = await run_trials(plan, options, files, services, earlier=earlier, is_decided=watch)
    except MissingVariables as error:
        raise error.at(places_of_targets(compiled.origin, error.missing.keys())) from None
    ending = replace(ending, shard=shard, quarantine=() if ending.dry_run else options.quarantine)
    judge = judged.report if judged is not None else None
    if earlier is None:
        outcome = conclude(plan, files, ending, against=against, judge=judge)
    else:
        outcome = _conclude_resumed(plan, files, ending, results, against, judge)
    suspects = _suspects(outcome) if options.confirm is not None and ending.stopped is None else frozenset()
    if not suspects:
        return outcome
    services.note(f"{counted(len(suspects), 'case')} undecided; {counted(options.confirm or 0, 'more trial')} of each")
    return await _confirm(plan, suspects, options, files, services, against, ending)


def _conclude_resumed(
    plan: Plan,
    files: RunFiles,
    ending: Ending,
    results: ResumedResults,
    against: BaselineComparison | None,
    judge: Callable[[Iterable[ResultRow]], ExperimentReport] | None = None,
) -> RunOutcome:
    # An interrupted run may have been started by mistake: keep all earlier rows.
    if ending.stopped != "interrupted":
        try:
            results.remove_other_rows()
        except (OSError, UsageError) as error:
            ending = replace(ending, write_error=ending.write_error or why(error, files.results))
    return conclude(plan, files, ending, results.rows, against, judge=judge)


def _suspects(outcome: RunOutcome) -> frozenset[CaseKey]:
    """Return the cases that passed in all trials of the baseline and pass in none now, which may be chance."""
    comparison = outcome.report.comparison
    statement = comparison.statement if comparison is not None else None
    return frozenset(case.key for case in statement.maybe_worse_cases) if statement is not None else frozenset()


async def _confirm(
    plan: Plan,
    suspects: Collection[CaseKey],
    options: RunOptions,
    files: RunFiles,
    services: RunServices,
    against: BaselineComparison | None,
    ended: Ending,
) -> RunOutcome:
    """Run more trials of some cases, and conclude again with all trials."""
    more = options.confirm or 0
    trials = {plan.key_of(case): case.trials + more * (plan.key_of(case) in suspects) for case in plan.cases}
    plan = with_trials(plan, trials)
    # Crashes of the agent count as failed trials: asked again, they would be erased.
    dry_run = options.dry_run
    results = ResumedResults(files.results, files.form, plan, options.root, dry_run=dry_run, keeps_crashes=True)
    earlier = results.read_earlier(files.results, is_part=options.is_part)
    ending = await run_trials(plan, options, files, services, earlier=earlier)
    seconds = (ending.duration_s or 0.0) + (ended.duration_s or 0.0)
    ending = replace(ending, shard=ended.shard, quarantine=ended.quarantine, duration_s=seconds)
    return _conclude_resumed(plan, files, ending, results, against)


def _kept_rows(earlier: EarlierRun | None) -> Iterator[ResultRow]:
    """Yield the rows of an earlier run that do not run again."""
    if earlier is not None and earlier.kept is not None:
        rows = read_rows(earlier.kept.path, allow_torn=True)
        yield from (row for row in rows if (row.case_key, row.trial) in earlier.results)


def only_failed(compiled: CompiledPlan, results: Path) -> tuple[CompiledPlan, set[str]]:
    """Return the plan with only the cases that did not pass in results, and the targets that failed only there.

    Cases that a stopped run did not begin did not pass either. Raises UsageError for unreadable results.
    """
    if results.is_dir():
        raise UsageError(f"--failed: '{results}' is a directory", hint="put --failed last, or name a file")
    tally = Tally()
    for row in scan_rows(results, allow_torn=True):
        tally.add(row)
    known, plan = tally.outcomes(), compiled.plan
    match = matching((each.key for each in known), map(plan.key_of, heads_of(plan)))
    passed = {match(each.key): each.verdict in ("pass", "skipped") for each in known}
    ran = read_run_report(results)
    otherwise = ran is not None and ran.leaves_cases and not ran.filtered
    plan = narrowed(plan, lambda case: not passed.get(match(plan.key_of(case)), not otherwise))
    asked = set(map(plan.key_of, heads_of(plan)))
    matched = set(map(match, asked))
    elsewhere = {each.key[2] for each in known if each.key not in asked and match(each.key) in matched}
    return CompiledPlan(plan, replace(compiled.origin, sources=(*compiled.origin.sources, results))), elsewhere


def _resumed(plan: Plan, files: RunFiles, options: RunOptions, variables: Mapping[str, str]) -> ResumedResults:
    """Return the results file of a run."""
    results = partial(ResumedResults, files.results, files.form, plan, options.root, dry_run=options.dry_run)
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
    plan, _ = _part(override(compiled.plan, overrides), options)
    finished: EarlierRun = NO_EARLIER_RUN
    if options.resume is not None:
        results = _resumed(plan, files, options, variables)
        finished = results.read_earlier(options.resume, is_part=options.is_part)
    return planned_cases(plan, lambda case: trials_left(plan, case, finished.results))


def require_recordings(options: RunOptions) -> None:
    """Raise UsageError when answers cannot be recorded."""
    if options.record is not None:
        try:
            options.record.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--record: cannot create '{options.record}': {error.strerror}") from error
        if not os.access(options.record, os.W_OK | os.X_OK):
            raise UsageError(f"--record: '{options.record}' is not writable")


def _part(plan: Plan, options: RunOptions) -> tuple[Plan, ShardRecord | None]:
    """Return the shard of a plan that is run, with the digest of the whole plan, and a record of it."""
    shard = options.shard
    if shard is None:
        return plan, None
    part = part_of(plan, shard, durations_of(options.balance) if options.balance is not None else {})
    return part, ShardRecord(index=shard.index, total=shard.total, cases=len(plan.cases))


async def run_trials(
    plan: Plan,
    options: RunOptions,
    files: RunFiles,
    services: RunServices,
    *,
    earlier: EarlierRun | None = None,
    stored: StoredAnswers | None = None,
    is_decided: IsDecided | None = None,
) -> Ending:
    """Run a plan and write its rows, after those of an earlier run; with stored answers, ask only the judges.

    Returns how the run ended, even if it was interrupted. Raises what `run_plan` raises.
    """
    is_skipped = any(case.skip is not None for case in heads_of(plan))
    asked = narrowed(plan, lambda case: case.skip is None) if is_skipped else plan
    answering = stored is None and not options.dry_run and options.replay is None
    needs = prepare(asked, answering=answering)
    if options.cluster is not None and needs.bases:
        raise UsageError("--engine dask does not support 'pairwise_judge': two answers may be on different workers")
    if options.cluster is None:
        require_folders(needs.suites, options.root)
        if answering:
            _require_unchanged(asked, options)
    finished = earlier or NO_EARLIER_RUN
    variables, left_out = services.environment.variables, list[str]()
    targets: Mapping[str, Target] = plan.targets
    if options.cluster is None:
        targets = resolve_plan(plan, options, finished, variables, left_out.append, only_judges=stored is not None)
    secrets = secrets_of(plan.targets, targets, variables) | await credentials(options.root, variables)
    clean = services.without_secrets(Redactor(secrets))
    for sentence in left_out:
        clean.warn(sentence)
    origin = await _origin(options, clean)
    if earlier is not None:
        services.note(earlier.sentence)
    journal = Journal(
        files.results,
        form(files.form).encode,
        keeps=finished.kept,
        outdates=files.report,
        on_begin=partial(link_latest, files.results) if files.is_latest and plan.cases else lambda: None,
    )
    async with AsyncExitStack() as stack:
        runner: Callable[[RunState], TrialRunner]
        if options.cluster is None:
            materials = stack.enter_context(Materials(plan.files, options.root))
            workspaces = stack.enter_context(
                Workspaces(plan.files, options.root, variables, clean.log, options.keep_workspaces)
            )
            if not options.dry_run:
                await workspaces.require(needs.isolations if stored is None else needs.of_graders)
            answers = ArmAnswers(plan, needs.bases, options.root, materials, _kept_rows(earlier))
            grade = grader(asked, options, materials, clean, workspaces, answers.rivals)
            runner = partial(
                LocalTrials,
                plan,
                targets,
                options,
                clean,
                grade=grade,
                materials=materials,
                workspaces=workspaces,
            )
        else:
            runner, targets = await stack.enter_async_context(_on_cluster(plan, options, clean, options.cluster))
        stack.enter_context(journal)
        engine = Engine(plan, targets, options, clean, runner=runner, journal=journal, finished=finished)
        engine.is_decided = is_decided or engine.is_decided
        is_interrupted = await _run_until_interrupted(engine, stored)
        if is_interrupted and earlier is None and not journal.has_begun:
            raise Interrupted("interrupted before the first row; nothing was written")
        journal.finish()
    ending = replace(engine.ending(), origin=origin)
    return replace(ending, stopped="interrupted") if is_interrupted else ending


@asynccontextmanager
async def _on_cluster(
    plan: Plan, options: RunOptions, services: RunServices, where: ClusterOptions
) -> AsyncIterator[tuple[Callable[[RunState], TrialRunner], Mapping[str, Target]]]:
    """Open a cluster, and return how trials run there, and the plan's targets with their limits there."""
    try:
        from agentv_ci.app.cluster_run import ClusterTrials, open_cluster, with_workers
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--engine dask needs the package '{error.name}'", hint="pip install 'agentv-ci[dask]'"
        ) from error
    async with open_cluster(where, services.environment.variables, options.workers) as cluster:
        threads = cluster.threads
        services.note(f"{counted(cluster.workers, 'worker')}, {counted(threads, 'thread')} at {cluster.address}")
        yield partial(ClusterTrials, plan, options, services, cluster), with_workers(plan.targets, threads)


async def _origin(options: RunOptions, services: RunServices) -> RunOrigin | None:
    """Return what runs, before agents can change it."""
    if options.command is None:
        return None
    commit = await commit_of(options.root, services.environment.variables)
    return RunOrigin(command=services.redactor.text(options.command), version=__version__, commit=commit)


async def _run_until_interrupted(engine: Engine, stored: StoredAnswers | None) -> bool:
    """Return whether a run was interrupted; its rows are still reported."""
    try:
        await engine.run(stored)
    except asyncio.CancelledError:
        return True
    except ExceptionGroup as group:
        # All trials of a cluster fail alike when its scheduler is gone.
        if isinstance(first := group.exceptions[0], CannotGoOn):
            raise first from group
        raise
    return False


class Needs(Struct, frozen=True):
    """What a plan needs of the machine."""

    suites: Collection[str]
    """Eval files in whose folders commands run."""
    isolations: Collection[Isolation]
    of_graders: Collection[Isolation]
    """Those in which evaluators run."""
    bases: Mapping[tuple[str, str], PlanCase]
    """Suite and id → the base's case, where evaluators compare the answers of arms."""


def prepare(plan: Plan, *, answering: bool) -> Needs:
    """Load what the evaluators of a plan need, and return what else it needs.

    Raises UsageError for a package or plugin that cannot be used.
    """
    targets, suites = plan.targets if answering else {}, dict[str, None]()
    isolations, of_graders = dict[Isolation, None](), dict[Isolation, None]()
    bases: dict[tuple[str, str], PlanCase] = {}
    for case in plan.cases:
        load_evaluators(case)
        if case.arm is not None and case.arm == base_of(case):
            bases[case.suite, case.id] = case
        if case.suite not in suites and runs_in_suite(case, targets.get(case.target)):
            suites[case.suite] = None
        if case.workspace is not None:
            isolations[case.workspace.isolation] = None
            if outcomes_of(case):
                of_graders[case.workspace.isolation] = None
    return Needs(suites, isolations, of_graders, bases)


def require_folders(suites: Iterable[str], root: Path) -> None:
    """Raise UsageError if the folder of one of these eval files, in which commands run, does not exist."""
    for suite in suites:
        if not (root / suite).parent.is_dir():
            raise UsageError(
                f"the folder of '{suite}', in which commands run, does not exist in '{root}'",
                hint="run the plan in the repository that it was compiled from",
            )


def _require_unchanged(plan: Plan, options: RunOptions) -> None:
    """Raise UsageError if an agent's own code is not the one that the digests of the plan count."""
    for name in dict.fromkeys(case.target for case in heads_of(plan)):
        target = plan.targets[name]
        sources = target.sources if isinstance(target, (CliTarget, AgentTarget)) else None
        if changed := [*changed_files(sources or (), options.root)]:
            raise UsageError(
                f"the code of target '{name}' changed after the plan was compiled: {listed(changed)}",
                hint="compile the plan again",
            )


def conclude(
    plan: Plan,
    files: RunFiles,
    ending: Ending,
    rows: Callable[[], Iterable[ResultRow]] | None = None,
    against: BaselineComparison | None = None,
    judge: Callable[[Iterable[ResultRow]], ExperimentReport] | None = None,
) -> RunOutcome:
    """Write the reports of a run from the rows in its results file, or from `rows`; `judge` is that of an experiment.

    Raises OSError.
    """
    read = rows or (lambda: read_rows(files.results, files.form))
    scan: Callable[[], Iterable[AnyRow]] = rows or (lambda: scan_rows(files.results, files.form))
    scenarios: tuple[ScenarioReport, ...] = ()

    def decide(lost: str | None) -> RunOutcome:
        ended = replace(ending, write_error=ending.write_error or lost)
        if judge is not None:
            ended = replace(ended, experiment=judge(read()))
        return RunOutcome(*report(plan, scan(), ended, scenarios=scenarios, against=against))

    try:
        gates = (row for row in read() if quarantine_of(ending.quarantine, row.case_key) is None)
        scenarios = validate_runs(gate_settings(plan), ((row, plan.digest) for row in gates))
        outcome = decide(None)
    except UnreadableResults as error:
        # Another program changed the file.
        read, scan, against, scenarios = tuple, tuple, None, ()
        outcome = decide(str(error))
    return write_reports(outcome, decide, read, files.report, files.reports)
