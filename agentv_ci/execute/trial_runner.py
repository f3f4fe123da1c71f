"""One trial → one row: ask its target, as often as it takes, and grade the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from agentv_ci.base.retry import with_attempts
from agentv_ci.base.text import shortened
from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import (
    Ask,
    Grade,
    JudgeQuestion,
    ProviderError,
    Request,
    Response,
    about_case,
)
from agentv_ci.contracts.plan import Plan, PlanCase, outcomes_of
from agentv_ci.contracts.results import (
    NO_OUTCOME,
    Change,
    EvaluatorResult,
    Expense,
    ResultRow,
    total_cost,
)
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.environment_settings import EnvironmentSettings
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.prompt import build_request, judge_request, with_reference_answer
from agentv_ci.execute.provider_services import unwritable
from agentv_ci.execute.run_services import GradeAnswer, Progress, RunOptions, RunServices, ignore
from agentv_ci.execute.targets import OpenTargets
from agentv_ci.execute.workspace_records import record_of, unopened_record
from agentv_ci.results.caps import Used, reached
from agentv_ci.results.expenses import of_attempt, paid_expenses, with_failures
from agentv_ci.results.resume import unpriced_answer
from agentv_ci.results.rows import (
    Effort,
    Trial,
    failed_row,
    graded_row,
    regraded_row,
    skipped_row,
    stored_response,
)
from agentv_ci.workspaces.bases import UnusableWorkspace
from agentv_ci.workspaces.places import Workspaces

MAX_WARNING = 300
REPEATED: frozenset[ErrorKind] = frozenset({"timeout", "process"})
"""Failures worth another attempt; providers have already retried everything else."""


class RunState(Struct, frozen=True):
    """What all trials of a run share."""

    limits: Limits
    budget: Budget
    progress: Progress
    add_workers: Callable[[int], None] = ignore
    """Lets so many more trials run at once."""


class TrialRunner(Protocol):
    """Runs the trials of an engine."""

    @property
    def unrecorded(self) -> int:
        """How many questions of a replay had no recording."""

    @property
    def write_error(self) -> str | None:
        """Why answers could not be stored."""

    @property
    def most(self) -> int | None:
        """How many trials it can run at once; None: any number."""

    async def open(self, targets: Iterable[str], stack: AsyncExitStack) -> None:
        """Get ready to ask these targets.

        Raises TargetUnavailable when one cannot be asked at all.
        """

    async def ask_together(self, target: str, trials: Iterable[Trial]) -> None:
        """Ask the questions of trials in one session, where the target supports it."""

    async def run(self, trial: Trial) -> ResultRow:
        """Return the row of a trial; a failure is a row like any other."""

    async def rescore(self, trial: Trial, row: ResultRow) -> ResultRow:
        """Return a row with its stored answer scored again."""


def _lacks_outcome(case: PlanCase, grade: Grade) -> bool:
    """Whether a dry run cannot score a case, because it judges what an agent leaves behind."""
    broken = {result.name for result in grade.results if result.status == "error"}
    return bool(broken) and broken <= outcomes_of(case)


class LocalTrials:
    """Runs trials in this process."""

    def __init__(
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        options: RunOptions,
        services: RunServices,
        state: RunState,
        *,
        grade: GradeAnswer,
        materials: Materials,
        workspaces: Workspaces,
    ) -> None:
        """`targets` are the plan's, resolved."""
        self._plan = plan
        self._targets = OpenTargets(
            plan,
            targets,
            options,
            services,
            limits=state.limits,
            budget=state.budget,
            progress=state.progress,
            workspaces=workspaces,
        )
        self._options = options
        self._services = services
        self._state = state
        self._grader = grade
        self._materials = materials
        self._workspaces = workspaces
        reads_environment = not options.dry_run and options.replay is None
        self._settings = (
            EnvironmentSettings(plan, services.environment.variables) if reads_environment else None
        )
        self._folders = {suite.path: (options.root / suite.path).parent for suite in plan.suites}

    @property
    def unrecorded(self) -> int:
        """See TrialRunner."""
        return self._targets.unrecorded

    @property
    def write_error(self) -> str | None:
        """See TrialRunner."""
        return self._targets.stores.write_error

    @property
    def most(self) -> int | None:
        """See TrialRunner."""
        return None

    async def open(self, targets: Iterable[str], stack: AsyncExitStack) -> None:
        """See TrialRunner."""
        for key in targets:
            await self._targets.open(key, stack)

    async def ask_together(self, target: str, trials: Iterable[Trial]) -> None:
        """See TrialRunner."""
        await self._targets.ask_together(target, self._questions(trials))

    def _questions(self, trials: Iterable[Trial]) -> Iterator[tuple[Trial, Request]]:
        for trial in trials:
            # A trial whose files cannot be written fails when its turn comes, not with all others.
            with suppress(ProviderError):
                yield trial, self._request(trial)

    async def run(self, trial: Trial) -> ResultRow:
        """See TrialRunner."""
        row = await self._run(trial)
        if self._settings is not None and (digest := self._settings.digest(trial.case)) is not None:
            row = row.model_copy(update={"settings_digest": digest})
        self._targets.forget(trial)
        if trial.case.workspace is None or trial.dry_run:
            return row
        record = row.workspace or unopened_record(trial.case.workspace)
        kept = await self._workspaces.settle(
            trial.key,
            f"{trial.case.id}-{trial.target.name}-{trial.number}",
            passed=row.verdict == "pass",
        )
        return row.model_copy(update={"workspace": record.model_copy(update={"kept": kept})})

    async def _run(self, trial: Trial) -> ResultRow:
        """Ask until there is an answer, and grade it."""
        label, now = self._label(trial), self._services.environment.now
        try:
            request = self._request(trial)
        except ProviderError as error:
            effort = Effort(attempts=1, requests=0, duration_ms=0)
            return failed_row(trial, effort, error, now=now())
        response, effort = await self._attempts(trial, request, label)
        if isinstance(response, ProviderError):
            return failed_row(trial, effort, response, now=now())
        if not (response.answer.strip() or self._options.dry_run):
            empty = f"{trial.target.name}: an answer is empty"
            self._services.warn(about_case(empty, trial.case.id))
        grade = await self._grade(trial, request, response, label)
        if self._options.dry_run and _lacks_outcome(trial.case, grade):
            return failed_row(trial, effort, ProviderError("request", NO_OUTCOME), now=now())
        trace = self._options.include_trace
        row = graded_row(trial, effort, response, grade, now=now(), include_trace=trace)
        return await self._with_changes(row, trial.case, response.changes)

    async def _with_changes(
        self, row: ResultRow, case: PlanCase, changes: tuple[Change, ...] | None
    ) -> ResultRow:
        if changes is None:
            return row
        assert case.workspace is not None, "only in a workspace is something changed"
        try:
            work = await self._workspaces.work_of(case.workspace, changes)
            record = await record_of(work, self._services.redactor.text)
        except (OSError, UnusableWorkspace) as error:
            self._services.warn(
                about_case(f"the changes of the agent cannot be shown: {error}", case.id)
            )
            return row
        return row.model_copy(update={"workspace": record})

    async def _attempts(
        self, trial: Trial, request: Request, label: str
    ) -> tuple[Response | ProviderError, Effort]:
        """Return the answer, or the failure of the last attempt, and the effort."""
        monotonic = self._services.environment.monotonic
        failures: list[ProviderError] = []
        expenses: list[Expense] = []
        took_ms = 0

        async def ask(attempt: int) -> Response:
            nonlocal took_ms
            self._services.log(
                f"{label}: asking {trial.target.name}"
                + (f", attempt {attempt + 1}" if attempt else "")
            )
            self._state.progress.retries += attempt > 0
            begun = monotonic()
            try:
                return await self._targets.answer(
                    trial, replace(request, attempt=attempt) if attempt else request
                )
            except (ProviderError, OSError) as failure:
                error = failure if isinstance(failure, ProviderError) else self._unwritable(failure)
                took_ms = round((monotonic() - begun) * 1000)
                self._services.log(f"{label}: {error.kind}: {error.detail}")
                failures.append(error)
                expenses.extend(of_attempt(error, attempt + 1))
                raise error from None

        def used() -> Used:
            return trial.used.plus(total_cost(expenses), _requests(failures))

        try:
            response = await with_attempts(
                ask,
                repeats=lambda error: error.kind in REPEATED,
                stops=lambda error: self._is_unaffordable(trial, error, used()),
                max_retries=trial.case.max_retries,
            )
        except ProviderError as error:
            return error, Effort(len(failures), _requests(failures), took_ms, tuple(expenses))
        attempts, requests = len(failures) + 1, _requests(failures) + response.requests
        response = with_failures(response, tuple(expenses), attempts)
        return response, Effort(
            attempts, requests, response.duration_ms or 0, paid_expenses(response)
        )

    def _is_unaffordable(self, trial: Trial, error: ProviderError, used: Used) -> bool:
        """Whether the budget or a cap of the case forbids another attempt.

        The error then says so.
        """
        reason = reached(trial.case, used) if not trial.dry_run else None
        if self._state.budget.is_exhausted(trial.case.suite):
            reason = "the budget is used up"
        if reason is not None:
            error.detail += f"; not repeated: {reason}"
        return reason is not None

    async def rescore(self, trial: Trial, row: ResultRow) -> ResultRow:
        """Return a row with its stored answer scored again; one without an answer, unchanged."""
        if trial.case.skip is not None:
            return skipped_row(trial, now=self._services.environment.now())
        row = self._services.redactor.row(row)
        if row.error_kind not in (None, "evaluator") or row.verdict == "skipped":
            return row
        if not self._options.dry_run and not row.dry_run:
            # The stored answer's cost is part of the run.
            self._state.budget.unpriced |= dict.fromkeys(
                unpriced_answer(row, self._plan.targets[trial.case.target])
            )
        now = self._services.environment.now()
        try:
            request = self._request(trial)
        except ProviderError as error:
            effort = Effort(row.attempts, row.requests, row.duration_ms)
            return failed_row(trial, effort, error, now=now)
        grade = await self._grade(trial, request, stored_response(row), self._label(trial))
        return regraded_row(row, trial.case, grade, now=now, dry_run=self._options.dry_run)

    def _label(self, trial: Trial) -> str:
        return self._state.progress.name(trial.key[0], trial.number, trials=trial.case.trials)

    async def _grade(self, trial: Trial, request: Request, response: Response, label: str) -> Grade:
        grade = await self._grader(trial, request, response, self._judge_of(trial, label))
        self._services.log(f"{label}: {grade.verdict}, score {grade.score:.3f}")
        for result in grade.results:
            self._tell(result, trial.case, label)
        return grade

    def _tell(self, result: EvaluatorResult, case: PlanCase, label: str) -> None:
        """Log the result of an evaluator, and warn if it could not score."""
        found = "; ".join(result.hits if result.verdict == "pass" else result.misses)
        self._services.log(
            f"{label}: {result.name} ({result.type}): {result.verdict}, "
            f"score {result.score:.3f}: {found or result.reasoning}"
        )
        is_expected = self._options.dry_run and result.name in outcomes_of(case)
        if result.status == "error" and not is_expected:
            reasoning = shortened(result.reasoning, MAX_WARNING)
            problem = f"evaluator '{result.name}' could not score: {reasoning}"
            self._services.warn(about_case(problem, case.id))

    def _request(self, trial: Trial) -> Request:
        """Return a trial's question; raises ProviderError when its files cannot be written."""
        case, locate = trial.case, self._materials.locate
        try:
            request = build_request(
                case, self._plan.files, locate, cwd=self._folder(case), seed=trial.seed
            )
        except OSError as error:
            raise self._unwritable(error) from error
        if self._options.dry_run:
            return with_reference_answer(request, case)
        return request

    def _folder(self, case: PlanCase) -> Path:
        """Return the folder of a case's eval file."""
        return self._folders[case.suite]

    def _unwritable(self, error: OSError) -> ProviderError:
        """Return the failure of one question, such as for a full disk: it must not end the run."""
        failure = unwritable(error)
        self._services.redactor.clean(failure)
        return failure

    def _judge_of(self, trial: Trial, label: str) -> Ask:
        """Return how judges are asked: like any other target, with one text or a chat."""
        case = trial.case

        async def ask(target: str, question: JudgeQuestion) -> Response:
            request = judge_request(question, case, cwd=self._folder(case))
            self._services.log(f"{label}: asking judge {self._plan.targets[target].name}")
            response = await self._targets.ask(target, request, trial)
            if response.cached:
                return replace(response, cost_usd=0.0)
            return response

        return ask


def _requests(failures: Iterable[ProviderError]) -> int:
    return sum(failure.requests for failure in failures)
