"""What a worker of a cluster does in a run: it turns trials into rows, with its own environment."""

from __future__ import annotations

import os
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from agentv_ci import version
from agentv_ci.app.run.environment import system_environment
from agentv_ci.app.run.grading import grader
from agentv_ci.base.mappings import picked
from agentv_ci.base.redaction import Redactor, secrets_of
from agentv_ci.base.source_files import changed_files
from agentv_ci.base.text import listed
from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.plan import Plan, PlanCase, seed_of, suites_by_path
from agentv_ci.contracts.plan_parts import PlanFile
from agentv_ci.contracts.results import Expense, ResultRow
from agentv_ci.contracts.targets import Target, at_most
from agentv_ci.contracts.workspaces import Isolation
from agentv_ci.errors import UsageError
from agentv_ci.evaluate.evaluators import load_evaluators
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.cluster_session import Place
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.resolution import resolve_targets
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices, ignore
from agentv_ci.execute.stores import Store
from agentv_ci.execute.trial_runner import LocalTrials, RunState
from agentv_ci.results.caps import NOTHING_USED, Used
from agentv_ci.results.rows import Trial
from agentv_ci.workspaces.places import Workspaces


class Head(Struct, frozen=True):
    """What all units of a run share."""

    version: str
    """That of agentv-ci on the machine that submits them."""
    plan: Plan
    """Without files, and with one case for each package that evaluators need."""
    asked: tuple[str, ...]
    """Keys of the targets that are asked."""
    isolations: tuple[Isolation, ...]
    """Those of its cases."""
    options: RunOptions
    is_verbose: bool


class Unit(Struct, frozen=True):
    """A trial to run."""

    case: PlanCase
    number: int
    used: Used = NOTHING_USED
    earlier: tuple[Expense, ...] = ()
    """See Trial."""


class Notes(Struct):
    """What happened on a worker since it last reported."""

    lines: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    spent: list[tuple[str, float]] = field(default_factory=list)
    """Suite and dollars."""
    unpriced: list[str] = field(default_factory=list)
    retries: int = 0
    recorded: dict[str, bytes] = field(default_factory=dict)
    """Recordings, by the names of their files."""
    write_error: str | None = None
    """Why answers could not be recorded."""


class Answered(Struct, frozen=True):
    """What units return."""

    rows: tuple[ResultRow, ...]
    seconds: float
    notes: Notes


class WorkerRun:
    """A run, as far as one worker does it."""

    def __init__(
        self, head: Head, place: Place, options: RunOptions, variables: Mapping[str, str]
    ) -> None:
        """`options` are the head's, with the folders of this worker.

        Raises UsageError for missing variables and packages, and for another code of agents.
        """
        self._head = head
        self._place = place
        self._stack = AsyncExitStack()
        self._notes = Notes()
        self._recordings = Store(options.record) if options.record is not None else None
        root, plan = options.root, head.plan.model_copy(update={"files": {}})
        self._plan = plan
        for case in plan.cases:
            load_evaluators(case)
        targets = dict(plan.targets)
        if not head.options.dry_run:
            _require_unchanged(plan, head.asked, root)
            targets |= resolve_targets(picked(plan.targets, head.asked), variables, self._warn)
        self._targets = targets
        for suite in plan.suites:
            (root / suite.path).parent.mkdir(parents=True, exist_ok=True)
        services = RunServices(
            system_environment(variables),
            log=self._log if head.is_verbose else ignore,
            warn=self._warn,
        ).without_secrets(Redactor(secrets_of(plan.targets, targets, variables)))
        self._monotonic = services.environment.monotonic
        self._suites = suites_by_path(plan)
        self._progress = Progress(total=0)
        self._limits = Limits(
            None, with_workers(targets, place.threads), (), services.environment, services.log
        )
        for key in targets:
            limit = self._limits.of(key)
            limit.on_refused = partial(self._report_refusal, key)
            if isinstance(workers := targets[key].workers, int):
                limit.shared = place.slots(key, at_most(targets[key], workers))
        materials = self._stack.enter_context(Materials(plan.files, root))
        self._workspaces = self._stack.enter_context(
            Workspaces(plan.files, root, variables, services.log)
        )
        self._runner = LocalTrials(
            plan,
            targets,
            options,
            services,
            RunState(self._limits, _Spending(self), self._progress),
            grade=grader(plan, options, materials, services, self._workspaces),
            materials=materials,
            workspaces=self._workspaces,
        )

    async def open(self) -> None:
        """Open all targets.

        Raises TargetUnavailable, and UsageError without the isolation that cases ask for.
        """
        self._stack.push_async_callback(self._limits.close)
        if not self._head.options.dry_run:
            await self._workspaces.require(self._head.isolations)
        await self._runner.open(self._head.asked, self._stack)

    async def close(self) -> None:
        """Close the targets, and remove scratch files."""
        await self._stack.aclose()

    async def answer(self, units: Sequence[Unit], files: Mapping[str, PlanFile]) -> Answered:
        """Run trials, one after the other; `files` are those of their cases."""
        self._plan.files.update(files)
        begun = self._monotonic()
        rows = [await self._row(unit) for unit in units]
        return Answered(tuple(rows), self._monotonic() - begun, self._take_notes())

    async def _row(self, unit: Unit) -> ResultRow:
        case, dry_run = unit.case, self._head.options.dry_run
        load_evaluators(case)
        suite, target = self._suites[case.suite], self._targets[case.target]
        trial = Trial(
            case,
            suite,
            target,
            unit.number,
            seed_of(case, unit.number),
            dry_run,
            unit.used,
            unit.earlier,
        )
        row = await self._runner.run(trial)
        return row.model_copy(update={"worker": self._place.name})

    def _take_notes(self) -> Notes:
        notes, self._notes = self._notes, Notes()
        notes.retries, self._progress.retries = self._progress.retries, 0
        if self._recordings is not None:
            notes.write_error = self._runner.write_error
            try:
                notes.recorded = self._recordings.take()
            except OSError as error:
                notes.write_error = f"{error.filename}: {error.strerror}"
        return notes

    def spend(self, cost_usd: float, suite: str) -> None:
        """Note what an answer costs."""
        self._notes.spent.append((suite, cost_usd))

    def miss_price(self, model: str) -> None:
        """Note a model without a known price."""
        self._notes.unpriced.append(model)

    def _report_refusal(self, target: str, held_s: float) -> None:
        self._place.report((self._place.name, target, held_s))

    def hold(self, worker: str, target: str, held_s: float) -> None:
        """Take in that a target has refused a question of a worker for its rate."""
        if worker != self._place.name:
            self._limits.of(target).refused(held_s)

    def _log(self, line: str) -> None:
        self._notes.lines.append(line)

    def _warn(self, sentence: str) -> None:
        self._notes.warnings.append(sentence)


class _Spending(Budget):
    """Notes what is spent; the machine that submits adds it up."""

    def __init__(self, run: WorkerRun) -> None:
        super().__init__(None, {}, 1, ignore)
        self._run = run

    def add(self, cost_usd: float, suite: str) -> None:
        """See Budget."""
        self._run.spend(cost_usd, suite)

    def miss_price(self, model: str) -> None:
        """See Budget."""
        self._run.miss_price(model)


@asynccontextmanager
async def begin(head: Head, place: Place) -> AsyncIterator[WorkerRun]:
    """Begin a run on this worker.

    It runs where the worker was started, if the eval files are there, else in an empty folder.
    """
    if head.version != version.__version__:
        own = f"agentv-ci {version.__version__}"
        raise UsageError(f"it has {own}, and the machine that submits the run {head.version}")
    variables = os.environ  # noqa: TID251  # a worker is a process of its own, like a command
    with tempfile.TemporaryDirectory(prefix="agentv-ci-") as scratch:
        root = Path.cwd()
        if not all((root / suite.path).is_file() for suite in head.plan.suites):
            root = Path(scratch)
        options = replace(head.options, root=root)
        if options.record is not None:
            options = replace(options, record=Path(scratch, "recordings"))
        run = WorkerRun(head, place, options, dict(variables))
        try:
            await run.open()
            yield run
        finally:
            await run.close()


def hold(run: WorkerRun, worker: str, target: str, held_s: float) -> None:
    """See WorkerRun."""
    run.hold(worker, target, held_s)


async def answer(
    run: WorkerRun, units: Sequence[Unit], digests: Sequence[str], files: Sequence[PlanFile]
) -> Answered:
    """Run trials on this worker."""
    return await run.answer(units, dict(zip(digests, files, strict=True)))


def with_workers(targets: Mapping[str, Target], workers: int) -> dict[str, Target]:
    """Return targets of which those that set no `workers` have so many."""
    limited = dict(targets)
    for key, target in targets.items():
        if target.workers is None:
            limited[key] = target.model_copy(update={"workers": workers})
    return limited


def _require_unchanged(plan: Plan, asked: Sequence[str], root: Path) -> None:
    """Raise UsageError if an agent's code on this worker is not that of the plan's digests."""
    for key in asked:
        target = plan.targets[key]
        if not isinstance(target, (CliTarget, AgentTarget)):
            continue
        if changed := [*changed_files(target.sources or (), root)]:
            raise UsageError(
                f"the code of target '{target.name}' is not that of the plan: {listed(changed)}",
                hint="start workers in a checkout of the repository "
                "that the plan was compiled from",
            )
