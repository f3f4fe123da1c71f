"""Plan → execute ⇄ evaluate → results → report."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.app.compile import Compiled
from agentv_ci.app.concluding import RunFiles, conclude
from agentv_ci.app.report_files import Outcome, why
from agentv_ci.app.workspace import read_yaml
from agentv_ci.errors import Interrupted, UsageError
from agentv_ci.text import shortened, without_commands

if TYPE_CHECKING:
    from agentv_ci.compile.overrides import Overrides
    from agentv_ci.contracts.exchange import Ask, Environment, Grade, Log, Request, Response, Warn
    from agentv_ci.contracts.plan import Plan, PlanCase
    from agentv_ci.contracts.report import Ending, ShardRecord
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.contracts.targets import Target
    from agentv_ci.execute.materials import Materials
    from agentv_ci.execute.run import Progress, RunSettings
    from agentv_ci.execute.shard import Shard
    from agentv_ci.redaction import Redactor
    from agentv_ci.results.resume import EarlierRun

MAX_LOG_LINE = 4_000
MAX_WARNED = 1_000
"""More different ones nobody reads, and to remember them all would take ever more memory."""


@dataclass(frozen=True, slots=True)
class Outside:
    """What a run is given from outside."""

    environment: Environment
    log: Log | None
    """None: nobody listens."""
    warn: Warn
    note: Callable[[str], None]
    """Takes a sentence that people always see, and that is nothing to worry about."""
    watch: Callable[[Progress], None]
    """Is given the progress once, before the first case, and may look at it at any time."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows of an earlier run, read when they are needed."""

    read: Callable[[], Iterator[ResultRow]]
    number: int


@dataclass(frozen=True, slots=True)
class Scope:
    """How much of a plan runs."""

    shard: Shard | None = None
    balance: Path | None = None
    """Results whose durations balance the shards."""
    resume: Path | None = None
    """Results of an earlier run whose answers still hold."""
    baseline: Path | None = None
    """What the run is compared with."""
    is_filtered: bool = False
    """Whether the plan has only some of its documents' cases."""


EVERYTHING = Scope()


@dataclass(frozen=True, slots=True)
class Prior:
    """What a run begins with: rows of an earlier one that stay in the results, or answers to be scored."""

    kept: EarlierRun | None = None
    stored: Stored | None = None


async def run_plan(
    compiled: Compiled,
    overrides: Overrides,
    settings: RunSettings,
    files: RunFiles,
    outside: Outside,
    scope: Scope = EVERYTHING,
) -> Outcome:
    """Run a plan, write its results and its reports.

    Raises UsageError for missing environment variables, TargetUnavailable before the first case, OSError when no
    result can be written.
    """
    from agentv_ci.compile.overrides import override
    from agentv_ci.results.resume import ResumedResults

    resumed = scope.resume if scope.resume != files.results else None
    read = tuple(path for path in (scope.balance, scope.baseline, resumed) if path is not None)
    files.require_writable((*compiled.origin.sources, *read))
    if scope.shard is not None:
        settings = replace(settings, shards=scope.shard.total)
    whole = override(compiled.plan, overrides)
    plan, shard = _part(whole, scope)
    _require_recordings(settings)
    is_part = scope.is_filtered or scope.shard is not None
    yardstick = None
    if scope.baseline is not None:
        from agentv_ci.app.compare import yardstick_of

        now = outside.environment.now()
        yardstick = yardstick_of(scope.baseline, head=files.results.name, now=now, is_part=is_part)
    resumable = ResumedResults(files.results, files.form, plan, settings.root, dry_run=settings.dry_run)
    prior = Prior()
    if scope.resume is not None:
        prior = Prior(kept=resumable.read_earlier(scope.resume, is_part=is_part))
    ending = await carry_out(plan, settings, files, outside, prior)
    ending = replace(ending, shard=shard)
    if scope.resume is None:
        return conclude(plan, files, ending, yardstick=yardstick)
    if ending.stopped == "interrupted":
        # Whoever ends a run may have seen that it is not the one that was meant.
        return conclude(plan, files, ending, resumable.rows, yardstick)
    try:
        resumable.remove_other_rows()
    except (OSError, UsageError) as error:
        ending = replace(ending, write_error=ending.write_error or why(error, files.results))
    return conclude(plan, files, ending, resumable.rows, yardstick)


def _require_recordings(settings: RunSettings) -> None:
    """Raise UsageError when answers cannot be recorded."""
    if settings.record is not None:
        try:
            settings.record.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"--record: cannot make '{settings.record}': {error.strerror}") from error
        if not os.access(settings.record, os.W_OK | os.X_OK):
            raise UsageError(f"--record: nothing can be written into '{settings.record}'")


def _part(plan: Plan, scope: Scope) -> tuple[Plan, ShardRecord | None]:
    """Return what of a plan this run is about, and which part that is; its digest stays that of the whole."""
    if scope.shard is None:
        return plan, None
    from agentv_ci.contracts.report import ShardRecord
    from agentv_ci.execute.shard import part_of
    from agentv_ci.results.files import UnreadableResults, read_rows

    durations: dict[tuple[str, str], list[int]] = {}
    if scope.balance is not None:
        try:
            for row in read_rows(scope.balance, allow_torn=True):
                if row.status == "ok":
                    durations.setdefault((row.suite, row.eval_id), []).append(row.duration_ms)
        except UnreadableResults as error:
            raise UsageError(f"--balance: {error}") from error
    part = part_of(plan, scope.shard, {key: sum(each) / len(each) / 1000 for key, each in durations.items()})
    return part, ShardRecord(index=scope.shard.index, total=scope.shard.total, cases=len(plan.cases))


async def carry_out(plan: Plan, settings: RunSettings, files: RunFiles, outside: Outside, prior: Prior) -> Ending:
    """Run a plan as it is and write its rows; of stored answers, ask only the judges.

    Returns how it ended, also when somebody ended it. Raises what `run_plan` raises.
    """
    from agentv_ci.contracts.report import Ending
    from agentv_ci.evaluate.requirements import require_packages
    from agentv_ci.execute import execute
    from agentv_ci.execute.deciding import trials_left
    from agentv_ci.execute.engine import still_asked
    from agentv_ci.execute.materials import Materials
    from agentv_ci.execute.run import Account, Means, Progress
    from agentv_ci.redaction import Redactor, secrets_of
    from agentv_ci.results.files import form
    from agentv_ci.results.journal import Journal
    from agentv_ci.results.resume import NOTHING_FINISHED

    stored, kept = prior.stored, prior.kept
    require_packages(plan)
    answering = stored is None and not settings.dry_run and settings.replay is None
    _require_folders(plan, settings, answering=answering)
    environment = outside.environment
    finished = kept.finished if kept is not None else NOTHING_FINISHED
    asked = _asked(plan) if stored is None else _judging(plan)
    needed = still_asked(plan, finished) if stored is None else asked.keys()
    left_out: list[str] = []
    targets = asked | _resolved({key: asked[key] for key in needed}, settings, environment.variables, left_out.append)
    trials = trials_left(plan, finished.results)
    progress = Progress(total=trials if stored is None else stored.number)
    redactor = Redactor(secrets_of(plan.targets, targets, environment.variables))

    voice = _Voice(outside, redactor)
    for sentence in left_out:
        voice.warn(sentence)
    if kept is not None:
        outside.note(kept.sentence)
    account = Account()
    encode = form(files.form).encode
    with (
        Materials(plan.files, settings.root) as materials,
        Journal(
            files.results,
            encode,
            keeps=kept.kept if kept is not None else None,
            outdates=files.report,
        ) as journal,
    ):
        outside.watch(progress)
        grade = _grader(plan, settings.root, materials, environment, voice)
        means = Means(grade, journal, materials, environment, voice.log, voice.warn, progress, redactor, account)
        rows = stored.read() if stored is not None else None
        try:
            await execute(plan, targets, settings, means, rows, finished)
        except asyncio.CancelledError:
            # Somebody ends the run: what there is by now is told like the end of any other.
            if kept is None and not journal.has_begun:
                raise Interrupted("interrupted before the first row; nothing was written") from None
            account.stopped = "interrupted"
        journal.finish()
    return Ending(
        dry_run=settings.dry_run,
        write_error=journal.write_error or account.write_error,
        unrecorded=account.unrecorded,
        stopped=account.stopped,
        max_cost_usd=settings.max_cost_usd,
        unpriced_models=account.unpriced_models,
        concurrency=tuple(account.concurrency),
    )


def _resolved(
    asked: Mapping[str, Target], settings: RunSettings, environ: Mapping[str, str], warn: Warn
) -> dict[str, Target]:
    """Return targets ready for use; those that nobody will ask need nothing of the environment."""
    from agentv_ci.contracts.targets import MockTarget
    from agentv_ci.execute.settings import resolve_targets

    if settings.dry_run:
        return dict(asked)
    replayed = {
        key: target
        for key, target in asked.items()
        if settings.replay is not None and not isinstance(target, MockTarget)
    }
    others = {key: target for key, target in asked.items() if key not in replayed}
    return replayed | resolve_targets(others, environ, warn)


class _Voice:
    """What a run says: without secrets, without commands to terminals, and warnings once however often they come."""

    def __init__(self, outside: Outside, redactor: Redactor) -> None:
        self._outside = outside
        self.redactor = redactor
        self._warned: set[str] = set()

    def log(self, line: str) -> None:
        """Tell what only `--verbose` shows."""
        if self._outside.log is not None:
            self._outside.log(self._clean(line))

    def warn(self, sentence: str) -> None:
        """Tell what people always see."""
        if (line := self._clean(sentence)) not in self._warned and len(self._warned) < MAX_WARNED:
            self._warned.add(line)
            self._outside.warn(line)

    def _clean(self, line: str) -> str:
        # One line: what an answer says must not begin one of its own, which the runner of a workflow may obey.
        text = self.redactor.text(without_commands(line)).replace("\n", "\\n")
        return shortened(text, MAX_LOG_LINE)


def _asked(plan: Plan) -> dict[str, Target]:
    """Return the targets that a run asks."""
    from agentv_ci.contracts.plan import targets_of

    return {key: plan.targets[key] for key in sorted({key for case in plan.cases for key in targets_of(case)})}


def _judging(plan: Plan) -> dict[str, Target]:
    """Return the targets that judge and, for those that only answer, a stand-in that is never asked."""
    from agentv_ci.contracts.plan import judges_of
    from agentv_ci.contracts.targets import MockTarget, cases_at_once

    judges = {key for case in plan.cases for key in judges_of(case)}
    width = cases_at_once(None, [plan.targets[key] for key in judges])
    return {
        key: target if key in judges else MockTarget(name=target.name, provider="mock", workers=width)
        for key, target in _asked(plan).items()
    }


def _require_folders(plan: Plan, settings: RunSettings, *, answering: bool) -> None:
    """Raise UsageError where commands would run in an eval file's folder that is not there."""
    from agentv_ci.contracts.plan import runs_in_suite

    targets = plan.targets if answering else {}
    suites = dict.fromkeys(case.suite for case in plan.cases if runs_in_suite(case, targets.get(case.target)))
    for suite in suites:
        if not (settings.root / suite).parent.is_dir():
            raise UsageError(
                f"'{settings.root}' has no folder of '{suite}', where commands of the plan run",
                hint="run the plan in the repository that it was compiled from",
            )


def _grader(
    plan: Plan, root: Path, materials: Materials, environment: Environment, voice: _Voice
) -> Callable[[PlanCase, Request, Response, Ask], Awaitable[Grade]]:
    from agentv_ci.contracts.plan import flat
    from agentv_ci.evaluate import evaluate
    from agentv_ci.evaluate.evaluators import Tools, load_evaluators
    from agentv_ci.evaluate.submission import Submission
    from agentv_ci.prices import load_prices

    # In the middle of a run there may be no free file number for what is loaded when it is needed.
    load_prices()
    load_evaluators(each for case in plan.cases for each in flat(case.evaluators))
    folders = {suite.path: (root / suite.path).parent for suite in plan.suites}

    async def grade(case: PlanCase, request: Request, response: Response, ask: Ask) -> Grade:
        tools = Tools(
            ask=ask,
            locate=materials.locate,
            locate_together=materials.locate_together,
            read_yaml=read_yaml,
            environ=environment.variables,
            root=root,
            log=voice.log,
            warn=voice.warn,
            clean=voice.redactor.result,
        )
        return await evaluate(case, Submission(case, request, response, plan.files, folders[case.suite]), tools)

    return grade
