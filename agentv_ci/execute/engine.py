"""The main loop: ask every trial of every case, then grade the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import count
from pathlib import Path

from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.case_key import in_matrix
from agentv_ci.contracts.exchange import (
    NO_SYSTEM_PROMPT,
    Ask,
    ChatMessage,
    Grade,
    JudgeQuestion,
    ProviderError,
    Request,
    Response,
    about_case,
)
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import NO_REFERENCE_ANSWER, ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.prompt import build_request, has_reference, with_reference_answer
from agentv_ci.execute.provider_services import unwritable
from agentv_ci.execute.run_services import GradeAnswer, Progress, RunOptions, RunServices, StoredAnswers
from agentv_ci.execute.targets import OpenTargets
from agentv_ci.execute.trials import TrialSchedule, still_asked
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import NO_EARLIER_RUN, EarlierRun, unpriced_answer
from agentv_ci.results.rows import Effort, Trial, failed_row, graded_row, regraded_row, skipped_row, stored_response
from agentv_ci.text import shortened

MAX_WARNING = 300
REPEATED: frozenset[ErrorKind] = frozenset({"timeout", "process"})
"""Failures worth another attempt; providers have already retried everything else."""


class Engine:
    """Runs one plan once: every trial becomes a row, which is written to the journal as soon as it ends."""

    def __init__(
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        options: RunOptions,
        services: RunServices,
        *,
        grade: GradeAnswer,
        journal: Journal,
        materials: Materials,
        finished: EarlierRun = NO_EARLIER_RUN,
    ) -> None:
        """`targets` are the plan's, resolved; trials in `finished` are skipped."""
        self._begun = services.environment.now()
        self._plan = plan
        self._options = options
        self._services = services
        self._grader = grade
        self._journal = journal
        self._materials = materials
        answering = (case.target for case in plan.cases)
        self._limits = Limits(options.workers, targets, answering, services.environment, services.log)
        suites = {suite.path: suite for suite in plan.suites}
        self._folders = {path: (options.root / path).parent for path in suites}
        self._budget = Budget(options.max_cost_usd, suites, options.shards, services.warn)
        self._budget.add_earlier(finished)
        self._trials = TrialSchedule(plan, targets, options, finished, self._limits, self._budget)
        self._asked = still_asked(plan, finished.results)
        self.progress = Progress(total=self._trials.number, matrix=in_matrix(map(plan.key_of, plan.cases)))
        self._targets = OpenTargets(
            plan, targets, options, services, limits=self._limits, budget=self._budget, progress=self.progress
        )

    def ending(self) -> Ending:
        """Return how the run ended."""
        return Ending(
            dry_run=self._options.dry_run,
            write_error=self._journal.write_error or self._targets.stores.write_error,
            unrecorded=self._targets.unrecorded,
            replayed=self._options.replay is not None,
            again=tuple(map(self._services.redactor.text, self._options.again)),
            filtered=self._options.is_filtered,
            stopped=self._trials.stopped,
            max_cost_usd=self._options.max_cost_usd,
            unpriced_models=tuple(self._budget.unpriced),
            concurrency=tuple(self._limits.changes),
            duration_s=max(0.0, round((self._services.environment.now() - self._begun).total_seconds(), 1)),
        )

    async def run(self, stored: StoredAnswers | None = None) -> None:
        """Run every trial, or score stored answers, for which only judges are asked.

        Raises TargetUnavailable before the first trial when a target cannot be asked at all; a failed trial is a row
        like any other.
        """
        if stored is not None:
            self.progress.total = stored.number
        self._services.watch(self.progress)
        if stored is None:
            for trial in self._trials.skipped():
                self._journal.append(skipped_row(trial, now=self._services.environment.now()))
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._limits.close)
            await self._open_targets(stack, answering=stored is None)
            rows = stored.read() if stored is not None else None
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._limits.width, self.progress.total)):
                    # All workers draw from one queue, or from one iterator.
                    workers.create_task(self._rescore_all(rows) if rows is not None else self._answer_all())

    async def _open_targets(self, stack: AsyncExitStack, *, answering: bool) -> None:
        for key in sorted(self._asked if answering else self._targets.keys):
            await self._targets.open(key, stack)
        if answering:
            self._trials.stop_if_failed()
            for key in sorted(self._asked):
                await self._targets.ask_together(key, self._questions(key))

    def _questions(self, target: str) -> Iterator[tuple[Trial, Request]]:
        for trial in self._trials.first(target):
            # A trial whose files cannot be written fails when its turn comes, not with all others.
            with suppress(ProviderError):
                yield trial, self._request(trial)

    async def _answer_all(self) -> None:
        """Run trials until there are no more: one worker."""
        while (trial := await self._trials.next()) is not None:
            row = await self._record(trial, self._run_trial(trial))
            self._targets.forget(trial)
            self.progress.total -= self._trials.finish(trial, row)
            # Targets that answer without waiting must not block signals and progress.
            await asyncio.sleep(0)

    async def _rescore_all(self, rows: Iterator[ResultRow]) -> None:
        for row in rows:
            trial = self._trials.of_row(row)
            await self._record(trial, self._rescore(trial, row))

    async def _record(self, trial: Trial, work: Awaitable[ResultRow]) -> ResultRow:
        """Await a trial's row, write it, and keep the progress up to date."""
        progress = self.progress
        progress.now[trial.key] = self._label(trial)
        row = await work
        self._journal.append(row)
        if self._journal.write_error is not None:
            self._services.warn(f"results cannot be written: {self._journal.write_error}")
        del progress.now[trial.key]
        progress.done += 1
        progress.passed += row.verdict == "pass"
        progress.failed += row.verdict in ("borderline", "fail")
        progress.errored += row.verdict == "error" and not row.is_unknown
        progress.cost_usd = self._budget.spent_usd
        self._services.tell(row)
        return row

    async def _run_trial(self, trial: Trial) -> ResultRow:
        """Ask until there is an answer, and grade it."""
        label, now = self._label(trial), self._services.environment.now
        try:
            request = self._request(trial)
        except ProviderError as error:
            return failed_row(trial, Effort(attempts=1, requests=0, duration_ms=0), error, now=now())
        response, effort = await self._attempts(trial, request, label)
        if isinstance(response, ProviderError):
            return failed_row(trial, effort, response, now=now())
        if not (response.answer.strip() or self._options.dry_run):
            self._services.warn(about_case(f"{trial.target.name}: an answer is empty", trial.case.id))
        # Also in a dry run without a reference answer, to see whether its scripts run.
        grade = await self._grade(trial, request, response, label)
        if self._options.dry_run and not has_reference(trial.case):
            return failed_row(trial, effort, ProviderError("request", NO_REFERENCE_ANSWER), now=now())
        trace = self._options.include_trace
        return graded_row(trial, effort, response, grade, now=now(), include_trace=trace)

    async def _attempts(self, trial: Trial, request: Request, label: str) -> tuple[Response | ProviderError, Effort]:
        """Return the answer, or the failure of the last attempt, and the effort."""
        monotonic, requests = self._services.environment.monotonic, 0
        for attempt in count():
            self._services.log(f"{label}: asking {trial.target.name}" + (f", attempt {attempt + 1}" if attempt else ""))
            begun = monotonic()
            try:
                response = await self._targets.answer(trial, replace(request, attempt=attempt) if attempt else request)
            except (ProviderError, OSError) as failure:
                error = failure if isinstance(failure, ProviderError) else self._unwritable(failure)
                requests += error.requests
                took_ms = round((monotonic() - begun) * 1000)
                self._services.log(f"{label}: {error.kind}: {error.detail}")
                if error.kind not in REPEATED or attempt == trial.case.max_retries:
                    return error, Effort(attempt + 1, requests, took_ms)
                self.progress.retries += 1
            else:
                return response, Effort(attempt + 1, requests + response.requests, response.duration_ms or 0)
        raise AssertionError("the last attempt ends the loop")

    async def _rescore(self, trial: Trial, row: ResultRow) -> ResultRow:
        """Return a row with its stored answer scored again; a row without an answer is returned unchanged."""
        if trial.case.skip is not None:
            return skipped_row(trial, now=self._services.environment.now())
        row = self._services.redactor.row(row)
        if row.error_kind not in (None, "evaluator") or row.verdict == "skipped":
            return row
        if not self._options.dry_run and not row.dry_run:
            # The stored answer's cost is part of the run.
            self._budget.unpriced |= dict.fromkeys(unpriced_answer(row, self._plan.targets[trial.case.target]))
        now = self._services.environment.now()
        try:
            request = self._request(trial)
        except ProviderError as error:
            return failed_row(trial, Effort(row.attempts, row.requests, row.duration_ms), error, now=now)
        grade = await self._grade(trial, request, stored_response(row), self._label(trial))
        return regraded_row(row, trial.case, grade, now=now, dry_run=self._options.dry_run)

    def _label(self, trial: Trial) -> str:
        return self.progress.name(trial.key[0], trial.number, trials=trial.case.trials)

    async def _grade(self, trial: Trial, request: Request, response: Response, label: str) -> Grade:
        log = self._services.log
        grade = await self._grader(trial.case, request, response, self._judge_of(trial, label))
        log(f"{label}: {grade.verdict}, score {grade.score:.3f}")
        for each in grade.results:
            found = "; ".join(each.hits if each.verdict == "pass" else each.misses) or each.reasoning
            log(f"{label}: {each.name} ({each.type}): {each.verdict}, score {each.score:.3f}: {found}")
            if each.status == "error":
                reasoning = shortened(each.reasoning, MAX_WARNING)
                self._services.warn(about_case(f"evaluator '{each.name}' could not score: {reasoning}", trial.case.id))
        return grade

    def _request(self, trial: Trial) -> Request:
        """Return a trial's question; raises ProviderError when its files cannot be written."""
        case, locate = trial.case, self._materials.locate
        try:
            request = build_request(case, self._plan.files, locate, cwd=self._folder(case), seed=trial.seed)
        except OSError as error:
            raise self._unwritable(error) from error
        return with_reference_answer(request, case) if self._options.dry_run else request

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
            request = Request(
                case_id=case.id,
                prompt=f"{question.system}\n\n{question.user}",
                guidelines="",
                chat=(ChatMessage("system", question.system), ChatMessage("user", question.user)),
                timeout_s=case.timeout_seconds,
                cwd=self._folder(case),
                system_prompt=NO_SYSTEM_PROMPT,
                temperature=question.temperature,
                max_output_tokens=question.max_output_tokens,
                sample=question.sample,
            )
            self._services.log(f"{label}: asking judge {self._plan.targets[target].name}")
            response = await self._targets.ask(target, request, trial)
            return replace(response, cost_usd=0.0) if response.cached else response

        return ask
