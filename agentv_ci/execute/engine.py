"""The loop: every trial of every case, as many at once as the limits allow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from agentv_ci.contracts.exchange import (
    Ask,
    ChatMessage,
    ErrorKind,
    Grade,
    GradeAnswer,
    JudgeQuestion,
    Log,
    ProviderError,
    Request,
    Response,
    Warn,
    World,
)
from agentv_ci.contracts.plan import Plan, PlanCase, PlanSuite
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import MockTarget, Target
from agentv_ci.errors import TargetUnavailable
from agentv_ci.execute.batches import Batch
from agentv_ci.execute.context import Context
from agentv_ci.execute.costs import cost_of_response
from agentv_ci.execute.journal import Journal
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.prompt import build_request
from agentv_ci.execute.providers import BatchProvider, Provider, open_provider
from agentv_ci.execute.rows import Effort, Trial, failed_row, graded_row, regraded_row, stored_response
from agentv_ci.redaction import Redactor

REPEATED: frozenset[ErrorKind] = frozenset({"timeout", "process"})
"""Failures that another attempt may mend; providers have repeated everything else themselves."""


@dataclass(frozen=True, slots=True)
class RunSettings:
    """How a plan is run; nothing here changes what a case means."""

    root: Path
    """The repository the plan's paths are relative to."""
    logs: Path = Path(".agentv", "logs")
    """Where agents' logs go."""
    workers: int | None = None
    dry_run: bool = False
    include_trace: bool = False


@dataclass(slots=True)
class Progress:
    """How far a run is, in trials."""

    total: int
    done: int = 0
    running: int = 0
    passed: int = 0
    failed: int = 0
    errored: int = 0


@dataclass(frozen=True, slots=True)
class Means:
    """What a run works with."""

    grade: GradeAnswer
    journal: Journal
    """Takes a row the moment its trial ends."""
    materials: Materials
    world: World
    log: Log
    warn: Warn
    progress: Progress
    """Kept up to date for whoever shows it."""
    redactor: Redactor
    """Takes secrets out of answers, errors and log lines, where they enter."""


class Engine:
    """Runs one plan once."""

    def __init__(self, plan: Plan, targets: dict[str, Target], settings: RunSettings, means: Means) -> None:
        self._plan = plan
        self._targets = targets
        self._settings = settings
        self._means = means
        self._suites = {suite.path: suite for suite in plan.suites}
        self._cases = {(case.suite, case.id): case for case in plan.cases}
        self._limits = Limits(settings.workers, targets, (case.target for case in plan.cases))
        self._providers: dict[str, Provider] = {}
        self._batches: dict[str, Batch] = {}
        self._context = Context(
            root=settings.root,
            logs=settings.logs,
            world=means.world,
            log=means.log,
            warn=means.warn,
            redact=means.redactor.text,
        )

    async def run(self, stored: Iterable[ResultRow] | None) -> None:
        """Run every trial, or score stored rows again; rows go to the journal as they come.

        Raises TargetUnavailable before the first one.
        """
        async with AsyncExitStack() as opened:
            await self._open_providers(opened)
            coming = map(self._run, self._trials()) if stored is None else map(self._rescore, stored)
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._limits.width, self._means.progress.total)):
                    workers.create_task(self._work(coming))

    async def _open_providers(self, stack: AsyncExitStack) -> None:
        for key, target in self._targets.items():
            opened = MockTarget(name=target.name, provider="mock") if self._settings.dry_run else target
            provider = open_provider(opened, self._context)
            self._providers[key] = provider
            stack.push_async_callback(provider.close)
            self._tell_limits(opened)
            try:
                await provider.check()
            except ProviderError as error:
                self._means.redactor.clean(error)
                raise TargetUnavailable(f"target '{target.name}' is not available: {error.detail}") from error
            if opened.provider_batching is True:
                self._open_batch(key, provider, stack)

    def _tell_limits(self, target: Target) -> None:
        wanted = self._settings.workers or target.workers
        if target.most_workers is not None and isinstance(wanted, int) and wanted > target.most_workers:
            self._means.warn(
                f"{target.name}: '{target.provider}' takes {target.most_workers} question at once, not {wanted}"
            )

    def _open_batch(self, key: str, provider: Provider, stack: AsyncExitStack) -> None:
        target = self._targets[key]
        if isinstance(provider, BatchProvider):
            trials = [trial for trial in self._trials() if trial.case.target == key]
            requests = {trial.key: self._request(trial.case, trial.seed) for trial in trials}
            slot = self._limits.slot(key)
            batch = Batch(target.name, provider, requests, slot=slot, world=self._means.world, log=self._means.log)
            self._batches[key] = batch
            stack.push_async_callback(batch.close)
        else:
            self._means.log(
                f"{target.name}: provider_batching was requested but not applied: '{target.provider}' cannot"
            )

    def _trials(self) -> Iterator[Trial]:
        for case in self._plan.cases:
            for number in range(1, case.trials + 1):
                yield Trial(
                    case=case,
                    suite=self._suites[case.suite],
                    target=self._targets[case.target],
                    number=number,
                    seed=case.seeds[number - 1] if number <= len(case.seeds) else None,
                    dry_run=self._settings.dry_run,
                )

    async def _work(self, coming: Iterator[Awaitable[ResultRow]]) -> None:
        # All workers draw from one iterator: a free one takes the next trial at once.
        for work in coming:
            self._means.progress.running += 1
            row = await work
            self._means.journal.append(row)
            self._count(row)

    def _count(self, row: ResultRow) -> None:
        progress = self._means.progress
        progress.running -= 1
        progress.done += 1
        progress.passed += row.verdict == "pass"
        progress.failed += row.verdict in ("borderline", "fail")
        progress.errored += row.verdict == "error"

    async def _run(self, trial: Trial) -> ResultRow:
        case = trial.case
        request = self._request(case, trial.seed)
        label = f"{case.id} (trial {trial.number})" if case.trials > 1 else case.id
        requests = 0
        for attempt in range(case.max_retries + 1):
            self._means.log(f"{label}: asks {trial.target.name}" + (f", attempt {attempt + 1}" if attempt else ""))
            begun = self._means.world.monotonic()
            try:
                response = await self._answer(trial, replace(request, attempt=attempt))
            except ProviderError as error:
                requests += error.requests
                effort = Effort(attempt + 1, requests, self._since_ms(begun))
                self._means.log(f"{label}: {error.kind}: {error.detail}")
                if error.kind in REPEATED and attempt < case.max_retries:
                    continue
                return failed_row(trial, effort, error, now=self._means.world.now())
            effort = Effort(attempt + 1, requests + response.requests, response.duration_ms or 0)
            if not response.answer.strip():
                self._means.warn(f"{trial.target.name}: an answer is empty")
            grade = await self._grade(case, request, response, label)
            trace = self._settings.include_trace
            return graded_row(trial, effort, response, grade, now=self._means.world.now(), include_trace=trace)
        raise AssertionError("the last attempt returns a row")

    async def _rescore(self, row: ResultRow) -> ResultRow:
        """Return a row whose stored answer is scored as the plan says; one without an answer stays as it is."""
        row = self._means.redactor.row(row)
        if row.error_kind not in (None, "evaluator"):
            return row
        case = self._cases[row.suite, row.eval_id]
        label = f"{case.id} (trial {row.trial})" if case.trials > 1 else case.id
        response = stored_response(row)
        grade = await self._grade(case, self._request(case, row.seed), response, label)
        now, dry_run = self._means.world.now(), self._settings.dry_run
        return regraded_row(row, case, grade, now=now, dry_run=dry_run)

    async def _grade(self, case: PlanCase, request: Request, response: Response, label: str) -> Grade:
        grade = await self._means.grade(case, request, response, self._judge_of(case))
        self._means.log(f"{label}: {grade.verdict}, score {grade.score:.3f}")
        for each in grade.outcomes:
            found = "; ".join(each.hits if each.verdict == "pass" else each.misses) or each.reasoning
            self._means.log(f"{label}: {each.name} ({each.type}): {each.verdict}, score {each.score:.3f}: {found}")
            if each.status == "error":
                self._means.warn(f"evaluator '{each.name}' could not score: {each.reasoning}")
        return grade

    def _request(self, case: PlanCase, seed: int | None) -> Request:
        return build_request(case, self._plan.files, self._means.materials.locate, cwd=self._folder(case), seed=seed)

    async def _answer(self, trial: Trial, request: Request) -> Response:
        """Return a trial's answer out of its target's batch, else the answer to its own question."""
        key = trial.case.target
        batch = self._batches.get(key)
        answered = await batch.answer(trial.key) if batch is not None and request.attempt == 0 else None
        if answered is not None:
            return self._priced(key, self._means.redactor.response(answered), trial.suite)
        return await self._ask(key, request, trial.suite)

    async def _ask(self, target: str, request: Request, suite: PlanSuite) -> Response:
        async with self._limits.slot(target):
            begun = self._means.world.monotonic()
            try:
                response = self._means.redactor.response(await self._providers[target].ask(request))
            except ProviderError as error:
                self._means.redactor.clean(error)
                raise
            if response.duration_ms is None:
                response = replace(response, duration_ms=self._since_ms(begun))
        return self._priced(target, response, suite)

    def _priced(self, target: str, response: Response, suite: PlanSuite) -> Response:
        """Return a response with its cost; what the mock says in a target's place costs nothing."""
        if self._settings.dry_run:
            return response
        return replace(response, cost_usd=cost_of_response(self._targets[target], response, suite.prices))

    def _judge_of(self, case: PlanCase) -> Ask:
        """A judge is a target like any other; it gets one text or a chat, whichever it takes."""

        async def ask(target: str, question: JudgeQuestion) -> Response:
            request = Request(
                case_id=case.id,
                prompt=f"{question.system}\n\n{question.user}",
                guidelines="",
                chat=(ChatMessage("system", question.system), ChatMessage("user", question.user)),
                timeout_s=case.timeout_seconds,
                cwd=self._folder(case),
                temperature=question.temperature,
                max_output_tokens=question.max_output_tokens,
                sample=question.sample,
            )
            return await self._ask(target, request, self._suites[case.suite])

        return ask

    def _folder(self, case: PlanCase) -> Path:
        return (self._settings.root / case.suite).parent

    def _since_ms(self, begun: float) -> int:
        return round((self._means.world.monotonic() - begun) * 1000)
