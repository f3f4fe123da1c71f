"""Plan → execute ⇄ evaluate → results → report."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agentv_ci.errors import UsageError
from agentv_ci.outside import inert, shortened
from agentv_ci.pipeline.checking import read_yaml
from agentv_ci.pipeline.compiling import Compiled, Origin

if TYPE_CHECKING:
    from agentv_ci.compile.overrides import Overrides
    from agentv_ci.contracts.exchange import Ask, Grade, Log, Request, Response, Warn, World
    from agentv_ci.contracts.plan import Plan, PlanCase
    from agentv_ci.contracts.report import RunReport
    from agentv_ci.contracts.results import ResultRow
    from agentv_ci.contracts.targets import Target
    from agentv_ci.execute.engine import Progress, RunSettings
    from agentv_ci.execute.materials import Materials
    from agentv_ci.redaction import Redactor
    from agentv_ci.report.outcomes import CaseOutcome
    from agentv_ci.report.reporters import ResultsFormat

MAX_LOG_LINE = 4_000


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Where a run leaves what it found."""

    results: Path
    form: ResultsFormat
    junit: Path | None = None

    @property
    def report(self) -> Path:
        """The run report lies beside the results."""
        return self.results.with_suffix(".report.json")

    def refuse_to_overwrite(self, origin: Origin) -> None:
        """Raise UsageError when what a run leaves would lie where something else does."""
        origin.refuse_to_overwrite([self.results, self.report, *([self.junit] if self.junit else [])])
        if self.results.name == "-":
            raise UsageError("rows go into a file that later commands read; name one with --out")
        if self.results.exists() and not self.results.is_file():
            raise UsageError(f"results go into a file, and '{self.results}' is none")


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run came to."""

    report: RunReport
    cases: tuple[CaseOutcome, ...]


@dataclass(frozen=True, slots=True)
class Outside:
    """The world of a run, and whoever watches it."""

    world: World
    log: Log | None
    """None: nobody listens."""
    warn: Warn
    watch: Callable[[Progress], None]
    """Is given the progress once, before the first case, and may look at it at any time."""


@dataclass(frozen=True, slots=True)
class Stored:
    """Rows of an earlier run, read when they are needed."""

    read: Callable[[], Iterator[ResultRow]]
    number: int


async def run_plan(
    compiled: Compiled, overrides: Overrides, settings: RunSettings, files: RunFiles, outside: Outside
) -> Outcome:
    """Run a plan, write its results and its reports.

    Raises UsageError for missing environment variables, TargetUnavailable before the first case, OSError when no
    result can be written.
    """
    from agentv_ci.compile.overrides import override

    files.refuse_to_overwrite(compiled.origin)
    plan = override(compiled.plan, overrides)
    write_error = await carry_out(plan, settings, files, outside)
    return conclude(plan, files, dry_run=settings.dry_run, write_error=write_error)


async def carry_out(
    plan: Plan, settings: RunSettings, files: RunFiles, outside: Outside, stored: Stored | None = None
) -> str | None:
    """Run a plan as it is and write its rows; with `stored` rows, score their answers again and ask only judges.

    Returns why rows are missing from the file, if they are. Raises what `run_plan` raises.
    """
    from agentv_ci.evaluate.requirements import require_packages
    from agentv_ci.execute import execute
    from agentv_ci.execute.engine import Means, Progress
    from agentv_ci.execute.journal import Journal
    from agentv_ci.execute.materials import Materials
    from agentv_ci.execute.settings import resolve_targets
    from agentv_ci.execute.unsupported import refuse_unsupported
    from agentv_ci.redaction import Redactor, secrets_of
    from agentv_ci.report.reporters import encode

    refuse_unsupported(plan)
    require_packages(plan)
    _require_folders(plan, settings, answering=stored is None and not settings.dry_run)
    world = outside.world
    asked = _asked(plan) if stored is None else _judging(plan)
    left_out: list[str] = []
    targets = dict(asked) if settings.dry_run else resolve_targets(asked, world.environ, left_out.append)
    progress = Progress(total=sum(case.trials for case in plan.cases) if stored is None else stored.number)
    redactor = Redactor(secrets_of(plan.targets, targets, world.environ))

    voice = _Voice(outside, redactor)
    for sentence in left_out:
        voice.warn(sentence)
    with (
        Materials(plan.files, settings.root) as materials,
        Journal(files.results, lambda row: encode(row, files.form)) as journal,
    ):
        outside.watch(progress)
        grade = _grader(plan, settings.root, materials, world, voice)
        means = Means(grade, journal, materials, world, voice.log, voice.warn, progress, redactor)
        await execute(plan, targets, settings, means, stored.read() if stored is not None else None)
    return journal.write_error


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
        if (line := self._clean(sentence)) not in self._warned:
            self._warned.add(line)
            self._outside.warn(line)

    def _clean(self, line: str) -> str:
        # One line: what an answer says must not begin one of its own, which the runner of a workflow may obey.
        text = self.redactor.text(inert(line)).replace("\n", "\\n")
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
    plan: Plan, root: Path, materials: Materials, world: World, voice: _Voice
) -> Callable[[PlanCase, Request, Response, Ask], Awaitable[Grade]]:
    from agentv_ci.evaluate import evaluate
    from agentv_ci.evaluate.evaluators import Tools
    from agentv_ci.evaluate.submission import Submission

    async def grade(case: PlanCase, request: Request, response: Response, ask: Ask) -> Grade:
        tools = Tools(
            ask=ask,
            locate=materials.locate,
            locate_together=materials.locate_together,
            read_yaml=read_yaml,
            environ=world.environ,
            root=root,
            log=voice.log,
            warn=voice.warn,
            clean=voice.redactor.outcome,
        )
        folder = (root / case.suite).parent
        return await evaluate(case, Submission(case, request, response, plan.files, folder), tools)

    return grade


def conclude(plan: Plan, files: RunFiles, *, dry_run: bool, write_error: str | None) -> Outcome:
    """Write the reports of a run whose rows are written; raises OSError."""
    from agentv_ci.report import report
    from agentv_ci.report.reporters import read

    def rows() -> Iterator[ResultRow]:
        return read(files.results, files.form)

    run_report, outcomes = report(plan, rows(), dry_run=dry_run, write_error=write_error)
    text = json.dumps(run_report.model_dump(by_alias=True), indent=2) + "\n"
    files.report.write_text(text, encoding="utf-8")
    if files.junit is not None:
        from agentv_ci.report.reporters import junit

        files.junit.parent.mkdir(parents=True, exist_ok=True)
        files.junit.write_bytes(junit.render(rows()))
    return Outcome(run_report, outcomes)
