"""The loop: every trial of every case, as many at once as the limits allow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from collections.abc import Set as AbstractSet
from contextlib import AsyncExitStack, suppress
from dataclasses import replace
from itertools import count

from agentv_ci.contracts.exchange import (
    Ask,
    ChatMessage,
    ErrorKind,
    Grade,
    JudgeQuestion,
    ProviderError,
    Request,
    Response,
)
from agentv_ci.contracts.plan import Plan, PlanCase, case_key, seed_of, targets_of
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.cache import Store
from agentv_ci.execute.deciding import Deciding, first_trials
from agentv_ci.execute.dumps import Dumps
from agentv_ci.execute.failures import Failures
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.prompt import build_request
from agentv_ci.execute.queue import Lane, Queue
from agentv_ci.execute.run import Means, RunSettings
from agentv_ci.execute.services import ProviderServices, unwritable
from agentv_ci.execute.targets import Desk, OpenTargets, Stores
from agentv_ci.results.resume import FinishedTrials
from agentv_ci.results.rows import Effort, Trial, failed_row, graded_row, regraded_row, stored_response
from agentv_ci.text import shortened

MAX_WARNING = 300
REPEATED: frozenset[ErrorKind] = frozenset({"timeout", "process"})
"""Failures that another attempt may mend; providers have repeated everything else themselves."""


class Engine:
    """Runs one plan once."""

    def __init__(
        self, plan: Plan, targets: dict[str, Target], settings: RunSettings, means: Means, finished: FinishedTrials
    ) -> None:
        self._plan = plan
        self._targets = targets
        self._settings = settings
        self._means = means
        self._finished = finished
        self._suites = {suite.path: suite for suite in plan.suites}
        self._folders = {path: (settings.root / path).parent for path in self._suites}
        self._limits = Limits(
            settings.workers, targets, (case.target for case in plan.cases), means.environment, means.log
        )
        means.account.concurrency = self._limits.changes
        self._budget = Budget(settings.max_cost_usd, self._suites, settings.shards, means.warn)
        for suite, cost_usd in finished.cost_usd.items():
            self._budget.add(cost_usd, suite)
        for model in finished.unpriced_models:
            self._budget.miss_price(model)
        self._failures = Failures()
        self._deciding = Deciding(finished.results, self._leave_out)
        self._places = {case_key(case): place for place, case in enumerate(plan.cases) if case.stop_when is not None}
        self._dumps = Dumps(settings.prompts, settings.traces, means.redactor, means.warn)
        self._queue = Queue(self._lanes(), self._limits, self._is_wanted)
        self._open = OpenTargets(plan.targets, targets, self._services(), self._desk(), dry_run=settings.dry_run)

    def _services(self) -> ProviderServices:
        means = self._means
        return ProviderServices(
            root=self._settings.root,
            logs=self._settings.logs,
            environment=means.environment,
            log=means.log,
            warn=means.warn,
            redact=means.redactor.text,
            pause=lambda _, wait_s: means.environment.sleep(wait_s),
        )

    def _desk(self) -> Desk:
        settings, means = self._settings, self._means
        stores = Stores(
            cache=Store(settings.cache, outside_git=True) if settings.cache is not None else None,
            record=Store(settings.record) if settings.record is not None else None,
            replay=Store(settings.replay) if settings.replay is not None else None,
        )
        return Desk(
            self._limits,
            self._budget,
            stores,
            self._dumps,
            means.redactor,
            self._count_retry,
            self._count_unrecorded,
            self._lose,
        )

    async def run(self, stored: Iterable[ResultRow] | None) -> None:
        """Run every trial, or score stored rows again; rows go to the journal as they come.

        Raises TargetUnavailable before the first one.
        """
        async with AsyncExitStack() as opened:
            opened.push_async_callback(self._limits.close)
            opened.callback(self._settle)
            asked = still_asked(self._plan, self._finished) if stored is None else self._targets.keys()
            for key in sorted(asked):
                target = self._targets[key]
                await self._open.open(key, self._settings.workers, opened)
                if target.provider_batching is True and stored is None:
                    self._open.open_batch(key, self._questions(key), opened)
            work = self._answer_all if stored is None else self._rescorer(iter(stored))
            if self._settings.fail_fast and self._is_lost_already():
                self._fail_fast()
            async with asyncio.TaskGroup() as workers:
                for _ in range(min(self._limits.width, self._means.progress.total)):
                    workers.create_task(work())

    def _is_lost_already(self) -> bool:
        """Whether what an earlier run left has a case that cannot pass any more."""
        cases = {case_key(case): case for case in self._plan.cases}
        is_lost = False
        for (suite, case_id, _), result in self._finished.results.items():
            is_lost |= self._failures.add(cases[suite, case_id], result.verdict)
        return is_lost

    def _settle(self) -> None:
        self._means.account.unpriced_models = tuple(self._budget.unpriced)

    def _lanes(self) -> Iterator[Lane]:
        places: dict[str, list[int]] = {}
        for place, case in enumerate(self._plan.cases):
            places.setdefault(case.target, []).append(place)
        for target, own in places.items():
            yield Lane(target, ((place, trial) for place in own for trial in self._trials(self._plan.cases[place])))

    def _trials(self, case: PlanCase) -> Iterator[Trial]:
        return (self._numbered(case, number) for number in self._deciding.begin(case))

    def _numbered(self, case: PlanCase, number: int) -> Trial:
        return self._trial(case, number, seed_of(case, number))

    def _trial(self, case: PlanCase, number: int, seed: int | None) -> Trial:
        return Trial(
            case=case,
            suite=self._suites[case.suite],
            target=self._targets[case.target],
            number=number,
            seed=seed,
            dry_run=self._settings.dry_run,
        )

    def _questions(self, target: str) -> Iterator[tuple[Trial, Request]]:
        for case in self._plan.cases:
            if case.target == target:
                for number in first_trials(case, self._finished.results):
                    trial = self._numbered(case, number)
                    # One whose files cannot be laid out fails when its turn comes, not with all others.
                    with suppress(ProviderError):
                        yield trial, self._request(case, trial.seed)

    def _is_wanted(self, trial: Trial) -> bool:
        """Whether a trial whose turn it is runs; a suite without money left does not hold up the others."""
        if self._budget.is_exhausted(trial.case.suite):
            self._means.account.stopped = "budget"
            return False
        return True

    async def _answer_all(self) -> None:
        """What one worker does."""
        while (trial := await self._queue.next()) is not None:
            with self._queue.running(trial):
                row = await self._watched(self._run(trial))
            self._open.forget(trial)
            self._go_on(trial.case, row)
            if self._settings.fail_fast and self._failures.add(trial.case, row.verdict):
                self._fail_fast()
            # What answers without waiting must not keep signals and progress from being heard.
            await asyncio.sleep(0)

    def _go_on(self, case: PlanCase, row: ResultRow) -> None:
        """Have further trials of a case run while its verdict is open."""
        for number in self._deciding.go_on(case, row):
            if not self._queue.add(self._places[case_key(case)], self._numbered(case, number)):
                self._means.account.stopped = self._means.account.stopped or "fail-fast"

    def _fail_fast(self) -> None:
        if self._queue.stop():
            self._means.account.stopped = self._means.account.stopped or "fail-fast"

    def _rescorer(self, stored: Iterator[ResultRow]) -> Callable[[], Coroutine[None, None, None]]:
        cases = {case_key(case): case for case in self._plan.cases}

        async def rescore_all() -> None:
            # All workers draw from one iterator.
            for row in stored:
                await self._watched(self._rescore(row, cases[row.suite, row.eval_id]))

        return rescore_all

    async def _watched(self, work: Awaitable[ResultRow]) -> ResultRow:
        progress = self._means.progress
        progress.running += 1
        row = await work
        self._means.journal.append(row)
        progress.running -= 1
        progress.done += 1
        progress.passed += row.verdict == "pass"
        progress.failed += row.verdict in ("borderline", "fail")
        progress.errored += row.verdict == "error"
        progress.cost_usd = self._budget.spent_usd
        return row

    def _count_unrecorded(self) -> None:
        self._means.account.unrecorded += 1

    def _lose(self, reason: str) -> None:
        self._means.account.write_error = self._means.account.write_error or reason

    def _leave_out(self, trials: int) -> None:
        self._means.progress.total -= trials

    def _count_retry(self) -> None:
        self._means.progress.retries += 1

    async def _run(self, trial: Trial) -> ResultRow:
        case = trial.case
        label = _label(case, trial.number)
        try:
            request = self._request(case, trial.seed)
            response, effort = await self._attempts(trial, request, label)
        except ProviderError as error:
            return failed_row(trial, Effort(1, 0, 0), error, now=self._means.environment.now())
        except _GivenUp as given_up:
            return failed_row(trial, given_up.effort, given_up.error, now=self._means.environment.now())
        if not response.answer.strip():
            self._means.warn(f"{trial.target.name}: an answer is empty")
        self._dumps.trace(trial, response)
        grade = await self._grade(trial, request, response, label)
        trace = self._settings.include_trace
        return graded_row(trial, effort, response, grade, now=self._means.environment.now(), include_trace=trace)

    async def _attempts(self, trial: Trial, request: Request, label: str) -> tuple[Response, Effort]:
        """Return the answer, and what it took; raises _GivenUp after the last attempt."""
        requests = 0
        for attempt in count():
            self._means.log(f"{label}: asks {trial.target.name}" + (f", attempt {attempt + 1}" if attempt else ""))
            begun = self._means.environment.monotonic()
            try:
                response = await self._answer(trial, replace(request, attempt=attempt) if attempt else request)
            except ProviderError as error:
                requests += error.requests
                took_ms = round((self._means.environment.monotonic() - begun) * 1000)
                self._means.log(f"{label}: {error.kind}: {error.detail}")
                if error.kind not in REPEATED or attempt == trial.case.max_retries:
                    raise _GivenUp(error, Effort(attempt + 1, requests, took_ms)) from error
                self._count_retry()
            else:
                return response, Effort(attempt + 1, requests + response.requests, response.duration_ms or 0)
        raise AssertionError("the last attempt ends the loop")

    async def _answer(self, trial: Trial, request: Request) -> Response:
        try:
            return await self._open.answer(trial, request)
        except OSError as error:
            raise self._unwritable(error) from error

    async def _rescore(self, row: ResultRow, case: PlanCase) -> ResultRow:
        """Return a row whose stored answer is scored as the plan says; one without an answer stays as it is."""
        row = self._means.redactor.row(row)
        if row.error_kind not in (None, "evaluator"):
            return row
        trial = self._trial(case, row.trial, row.seed)
        response = stored_response(row)
        now, dry_run = self._means.environment.now(), self._settings.dry_run
        try:
            request = self._request(case, row.seed)
        except ProviderError as error:
            return failed_row(trial, Effort(row.attempts, row.requests, row.duration_ms), error, now=now)
        grade = await self._grade(trial, request, response, _label(case, row.trial))
        return regraded_row(row, case, grade, now=now, dry_run=dry_run)

    async def _grade(self, trial: Trial, request: Request, response: Response, label: str) -> Grade:
        grade = await self._means.grade(trial.case, request, response, self._judge_of(trial))
        self._means.log(f"{label}: {grade.verdict}, score {grade.score:.3f}")
        for each in grade.results:
            found = "; ".join(each.hits if each.verdict == "pass" else each.misses) or each.reasoning
            self._means.log(f"{label}: {each.name} ({each.type}): {each.verdict}, score {each.score:.3f}: {found}")
            if each.status == "error":
                self._means.warn(f"evaluator '{each.name}' could not score: {shortened(each.reasoning, MAX_WARNING)}")
        return grade

    def _request(self, case: PlanCase, seed: int | None) -> Request:
        """Return a case's question; raises ProviderError where its files cannot be laid out."""
        locate = self._means.materials.locate
        try:
            return build_request(case, self._plan.files, locate, cwd=self._folders[case.suite], seed=seed)
        except OSError as error:
            raise self._unwritable(error) from error

    def _unwritable(self, error: OSError) -> ProviderError:
        """Such as a full disk, or no free file number: that of one question ends no run."""
        failure = unwritable(error)
        self._means.redactor.clean(failure)
        return failure

    def _judge_of(self, trial: Trial) -> Ask:
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
            self._means.log(f"{_label(case, trial.number)}: asks {self._targets[target].name} to judge")
            response = await self._open.ask(target, request, trial)
            return replace(response, cost_usd=0.0) if response.cached else response

        return ask


def still_asked(plan: Plan, finished: FinishedTrials) -> AbstractSet[str]:
    """Return the keys of the targets that are asked anything yet."""
    left = (case for case in plan.cases if first_trials(case, finished.results))
    return {key for case in left for key in targets_of(case)}


class _GivenUp(Exception):
    """A trial has no answer."""

    def __init__(self, error: ProviderError, effort: Effort) -> None:
        super().__init__(error.detail)
        self.error = error
        self.effort = effort


def _label(case: PlanCase, trial: int) -> str:
    return f"{case.id} (trial {trial})" if case.trials > 1 else case.id
