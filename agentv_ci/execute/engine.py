"""The loop: every trial of every case, as many at once as the limits allow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import count

from agentv_ci.contracts.base import ErrorKind
from agentv_ci.contracts.exchange import Ask, ChatMessage, Grade, JudgeQuestion, ProviderError, Request, Response
from agentv_ci.contracts.plan import Plan, PlanCase, case_key, seed_of, targets_of
from agentv_ci.contracts.report import Ending, Stop
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.prompt import build_request
from agentv_ci.execute.run import GradeAnswer, Progress, RunOptions, RunServices, StoredAnswers
from agentv_ci.execute.services import unwritable
from agentv_ci.execute.targets import OpenTargets
from agentv_ci.execute.trials import Failures, Lane, Queue, TrialSchedule, first_trials, trials_left
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import NOTHING_FINISHED, FinishedTrials
from agentv_ci.results.rows import Effort, Trial, failed_row, graded_row, regraded_row, stored_response
from agentv_ci.text import shortened

MAX_WARNING = 300
REPEATED: frozenset[ErrorKind] = frozenset({"timeout", "process"})
"""Failures that another attempt may mend; providers have repeated everything else themselves."""


class Engine:
    """Runs one plan once: every trial becomes a row, and goes to the journal the moment it ends."""

    def __init__(
        self,
        plan: Plan,
        targets: dict[str, Target],
        options: RunOptions,
        services: RunServices,
        *,
        grade: GradeAnswer,
        journal: Journal,
        materials: Materials,
        finished: FinishedTrials = NOTHING_FINISHED,
    ) -> None:
        """`targets` are the plan's, resolved; what is `finished` is left out."""
        self.progress = Progress(total=trials_left(plan, finished.results))
        self._plan = plan
        self._targets = targets
        self._options = options
        self._services = services
        self._grade_answer = grade
        self._journal = journal
        self._materials = materials
        self._finished = finished
        self._stopped: Stop | None = None
        self._cases = {case_key(case): case for case in plan.cases}
        self._places = {case_key(case): place for place, case in enumerate(plan.cases)}
        self._suites = {suite.path: suite for suite in plan.suites}
        self._folders = {path: (options.root / path).parent for path in self._suites}
        answering = (case.target for case in plan.cases)
        self._limits = Limits(options.workers, targets, answering, services.environment, services.log)
        self._budget = Budget(options.max_cost_usd, self._suites, options.shards, services.warn)
        self._budget.add_earlier(finished)
        self._failures = Failures()
        self._schedule = TrialSchedule(finished.results)
        self._queue = Queue(self._lanes(), self._limits, self._is_wanted)
        self._open = OpenTargets(
            plan, targets, options, services, limits=self._limits, budget=self._budget, progress=self.progress
        )

    def ending(self) -> Ending:
        """Return how the run ended, besides its rows."""
        return Ending(
            dry_run=self._options.dry_run,
            write_error=self._journal.write_error or self._open.stores.write_error,
            unrecorded=self._open.unrecorded,
            stopped=self._stopped,
            max_cost_usd=self._options.max_cost_usd,
            unpriced_models=tuple(self._budget.unpriced),
            concurrency=tuple(self._limits.changes),
        )

    async def run(self, stored: StoredAnswers | None = None) -> None:
        """Run every trial, or score stored answers, for which only judges are asked.

        Raises TargetUnavailable before the first one when a target cannot be asked at all; a trial that fails is a
        row like any other.
        """
        if stored is not None:
            self.progress.total = stored.number
        self._services.watch(self.progress)
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._limits.close)
            for key in sorted(still_asked(self._plan, self._finished) if stored is None else self._targets):
                await self._open.open(key, stack)
                if self._targets[key].provider_batching is True and stored is None:
                    self._open.open_batch(key, self._questions(key), stack)
            if self._options.fail_fast and self._has_failed_already():
                self._fail_fast()
            rows = stored.read() if stored is not None else None
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._limits.width, self.progress.total)):
                    # All workers draw from one queue, or from one iterator.
                    workers.create_task(self._rescore_all(rows) if rows is not None else self._answer_all())

    def _has_failed_already(self) -> bool:
        """Whether what an earlier run left has a case that cannot pass any more."""
        has_failed = False
        for (suite, case_id, _), result in self._finished.results.items():
            has_failed |= self._failures.add(self._cases[suite, case_id], result.verdict)
        return has_failed

    def _lanes(self) -> Iterator[Lane]:
        places: dict[str, list[int]] = {}
        for place, case in enumerate(self._plan.cases):
            places.setdefault(case.target, []).append(place)
        for target, own in places.items():
            yield Lane(target, ((place, trial) for place in own for trial in self._first_trials(place)))

    def _first_trials(self, place: int) -> Iterator[Trial]:
        case = self._plan.cases[place]
        return (self._trial(case, number, seed_of(case, number)) for number in self._schedule.begin(case))

    def _trial(self, case: PlanCase, number: int, seed: int | None) -> Trial:
        return Trial(
            case=case,
            suite=self._suites[case.suite],
            target=self._targets[case.target],
            number=number,
            seed=seed,
            dry_run=self._options.dry_run,
        )

    def _questions(self, target: str) -> Iterator[tuple[Trial, Request]]:
        for case in self._plan.cases:
            if case.target == target:
                for number in first_trials(case, self._finished.results):
                    trial = self._trial(case, number, seed_of(case, number))
                    # One whose files cannot be laid out fails when its turn comes, not with all others.
                    with suppress(ProviderError):
                        yield trial, self._request(case, trial.seed)

    def _is_wanted(self, trial: Trial) -> bool:
        """Whether a trial whose turn it is runs; a suite without money left does not hold up the others."""
        if self._budget.is_exhausted(trial.case.suite):
            self._stopped = "budget"
            return False
        return True

    async def _answer_all(self) -> None:
        """What one worker does."""
        while (trial := await self._queue.next()) is not None:
            with self._queue.running(trial):
                row = await self._record(self._run(trial))
            self._open.forget(trial)
            self._continue(trial.case, row)
            if self._options.fail_fast and self._failures.add(trial.case, row.verdict):
                self._fail_fast()
            # What answers without waiting must not keep signals and progress from being heard.
            await asyncio.sleep(0)

    def _continue(self, case: PlanCase, row: ResultRow) -> None:
        """Have further trials of a case run while its verdict is open."""
        for number in self._schedule.next_trials(case, row):
            trial = self._trial(case, number, seed_of(case, number))
            if not self._queue.add(self._places[case_key(case)], trial):
                self._stopped = self._stopped or "fail-fast"
        self.progress.total -= self._schedule.take_unneeded(case)

    def _fail_fast(self) -> None:
        if self._queue.stop():
            self._stopped = self._stopped or "fail-fast"

    async def _rescore_all(self, rows: Iterator[ResultRow]) -> None:
        for row in rows:
            await self._record(self._rescore(row, self._cases[row.suite, row.eval_id]))

    async def _record(self, work: Awaitable[ResultRow]) -> ResultRow:
        """Await a trial's row, write it, and keep the progress up to date."""
        progress = self.progress
        progress.running += 1
        row = await work
        self._journal.append(row)
        progress.running -= 1
        progress.done += 1
        progress.passed += row.verdict == "pass"
        progress.failed += row.verdict in ("borderline", "fail")
        progress.errored += row.verdict == "error"
        progress.cost_usd = self._budget.spent_usd
        return row

    async def _run(self, trial: Trial) -> ResultRow:
        """Ask until there is an answer, and have it graded."""
        label, now = _label(trial.case, trial.number), self._services.environment.now
        try:
            request = self._request(trial.case, trial.seed)
        except ProviderError as error:
            return failed_row(trial, Effort(attempts=1, requests=0, duration_ms=0), error, now=now())
        response, effort = await self._attempts(trial, request, label)
        if isinstance(response, ProviderError):
            return failed_row(trial, effort, response, now=now())
        if not response.answer.strip():
            self._services.warn(f"{trial.target.name}: an answer is empty")
        grade = await self._grade(trial, request, response, label)
        trace = self._options.include_trace
        return graded_row(trial, effort, response, grade, now=now(), include_trace=trace)

    async def _attempts(self, trial: Trial, request: Request, label: str) -> tuple[Response | ProviderError, Effort]:
        """Return the answer, or the failure of the last attempt, and what it took."""
        monotonic, requests = self._services.environment.monotonic, 0
        for attempt in count():
            self._services.log(f"{label}: asks {trial.target.name}" + (f", attempt {attempt + 1}" if attempt else ""))
            begun = monotonic()
            try:
                response = await self._open.answer(trial, replace(request, attempt=attempt) if attempt else request)
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

    async def _rescore(self, row: ResultRow, case: PlanCase) -> ResultRow:
        """Return a row whose stored answer is scored as the plan says; one without an answer stays as it is."""
        row = self._services.redactor.row(row)
        if row.error_kind not in (None, "evaluator"):
            return row
        trial = self._trial(case, row.trial, row.seed)
        now = self._services.environment.now()
        try:
            request = self._request(case, row.seed)
        except ProviderError as error:
            return failed_row(trial, Effort(row.attempts, row.requests, row.duration_ms), error, now=now)
        grade = await self._grade(trial, request, stored_response(row), _label(case, row.trial))
        return regraded_row(row, case, grade, now=now, dry_run=self._options.dry_run)

    async def _grade(self, trial: Trial, request: Request, response: Response, label: str) -> Grade:
        log = self._services.log
        grade = await self._grade_answer(trial.case, request, response, self._judge_of(trial, label))
        log(f"{label}: {grade.verdict}, score {grade.score:.3f}")
        for each in grade.results:
            found = "; ".join(each.hits if each.verdict == "pass" else each.misses) or each.reasoning
            log(f"{label}: {each.name} ({each.type}): {each.verdict}, score {each.score:.3f}: {found}")
            if each.status == "error":
                reasoning = shortened(each.reasoning, MAX_WARNING)
                self._services.warn(f"evaluator '{each.name}' could not score: {reasoning}")
        return grade

    def _request(self, case: PlanCase, seed: int | None) -> Request:
        """Return a case's question; raises ProviderError where its files cannot be laid out."""
        locate = self._materials.locate
        try:
            return build_request(case, self._plan.files, locate, cwd=self._folders[case.suite], seed=seed)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ProviderError:
        """Such as a full disk, or no free file number: that of one question ends no run."""
        failure = unwritable(error)
        self._services.redactor.clean(failure)
        return failure

    def _judge_of(self, trial: Trial, label: str) -> Ask:
        """A judge is a target like any other; it gets one text or a chat, whichever it takes."""
        case = trial.case

        async def ask(target: str, question: JudgeQuestion) -> Response:
            request = Request(
                case_id=case.id,
                prompt=f"{question.system}\n\n{question.user}",
                guidelines="",
                chat=(ChatMessage("system", question.system), ChatMessage("user", question.user)),
                timeout_s=case.timeout_seconds,
                cwd=self._folders[case.suite],
                temperature=question.temperature,
                max_output_tokens=question.max_output_tokens,
                sample=question.sample,
            )
            self._services.log(f"{label}: asks {self._targets[target].name} to judge")
            response = await self._open.ask(target, request, trial)
            return replace(response, cost_usd=0.0) if response.cached else response

        return ask


def still_asked(plan: Plan, finished: FinishedTrials) -> AbstractSet[str]:
    """Return the keys of the targets that are asked anything yet."""
    left = (case for case in plan.cases if first_trials(case, finished.results))
    return {key for case in left for key in targets_of(case)}


def _label(case: PlanCase, trial: int) -> str:
    return f"{case.id} (trial {trial})" if case.trials > 1 else case.id
