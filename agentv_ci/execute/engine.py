"""The main loop: which trial runs next, and what becomes of its row."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AsyncExitStack

from agentv_ci.contracts.cases import in_matrix
from agentv_ci.contracts.exchange import about_case
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, suites_by_path
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices, StoredAnswers
from agentv_ci.execute.trial_runner import RunState, TrialRunner
from agentv_ci.execute.trials import TrialSchedule, still_asked
from agentv_ci.results.caps import not_started
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import NO_EARLIER_RUN, EarlierRun
from agentv_ci.results.rows import Effort, Trial, failed_row, skipped_row

IsDecided = Callable[[ResultRow | None], bool]
"""Gets every new row, and None before the first one; returns whether no more are needed."""


def never(_: ResultRow | None) -> bool:
    """Return that more rows are needed."""
    return False


class Engine:
    """Runs one plan once.

    Every trial becomes a row, which is written to the journal as soon as it ends.
    """

    def __init__(
        self,
        plan: Plan,
        targets: Mapping[str, Target],
        options: RunOptions,
        services: RunServices,
        *,
        runner: Callable[[RunState], TrialRunner],
        journal: Journal,
        finished: EarlierRun = NO_EARLIER_RUN,
    ) -> None:
        """`targets` are the plan's, resolved; trials in `finished` are skipped."""
        self._begun = services.environment.now()
        self._plan = plan
        self._options = options
        self._services = services
        self._journal = journal
        self._targets = targets
        answering = (case.target for case in heads_of(plan))
        self._limits = Limits(
            options.workers, targets, answering, services.environment, services.log
        )
        suites = suites_by_path(plan)
        self._budget = Budget(options.max_cost_usd, suites, options.shards, services.warn)
        self._budget.add_earlier(finished)
        self._trials = TrialSchedule(plan, targets, options, finished, self._limits, self._budget)
        self._asked = still_asked(plan, finished.results)
        self.progress = Progress(
            total=self._trials.number, matrix=in_matrix(map(plan.key_of, heads_of(plan)))
        )
        self.is_decided: IsDecided = never
        self._workers: asyncio.TaskGroup
        self._runner = runner(
            RunState(self._limits, self._budget, self.progress, self._add_workers)
        )

    def ending(self) -> Ending:
        """Return how the run ended."""
        return Ending(
            dry_run=self._options.dry_run,
            write_error=self._journal.write_error or self._runner.write_error,
            unrecorded=self._runner.unrecorded,
            replayed=self._options.replay is not None,
            again=tuple(map(self._services.redactor.text, self._options.again)),
            filtered=self._options.is_filtered,
            stopped=self._trials.stopped,
            max_cost_usd=self._options.max_cost_usd,
            unpriced_models=tuple(self._budget.unpriced),
            concurrency=tuple(self._limits.changes),
            duration_s=max(
                0.0, round((self._services.environment.now() - self._begun).total_seconds(), 1)
            ),
        )

    async def run(self, stored: StoredAnswers | None = None) -> None:
        """Run every trial, or score stored answers, for which only judges are asked.

        Raises TargetUnavailable before the first trial when a target cannot be asked at all; a
        failed trial is a row like any other.
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
                self._workers = workers
                for _ in range(min(self._runner.most or self._limits.width, self.progress.total)):
                    # All workers draw from one queue, or from one iterator.
                    workers.create_task(
                        self._rescore_all(rows) if rows is not None else self._answer_all()
                    )

    async def _open_targets(self, stack: AsyncExitStack, *, answering: bool) -> None:
        await self._runner.open(sorted(self._asked if answering else self._targets), stack)
        if answering:
            self._trials.stop_if_failed()
            if self.is_decided(None):
                self._trials.stop("decided")
            for key in sorted(self._asked):
                await self._runner.ask_together(key, self._trials.first(key))

    def _add_workers(self, number: int) -> None:
        # Otherwise there is nothing left to run.
        for _ in range(number if self.progress.running else 0):
            self._workers.create_task(self._answer_all())

    async def _answer_all(self) -> None:
        """Run trials until there are no more: one worker."""
        while (trial := await self._trials.next()) is not None:
            row = await self._record(trial, self._row(trial))
            self.progress.total -= self._trials.finish(trial, row)
            if self.is_decided(row):
                self._trials.stop("decided")
            # Targets that answer without waiting must not block signals and progress.
            await asyncio.sleep(0)

    async def _row(self, trial: Trial) -> ResultRow:
        """Return the row of a trial, which does not start once its case has used what it may."""
        error = not_started(trial.case, trial.used)
        if error is not None and not trial.dry_run:
            effort = Effort(attempts=0, requests=0, duration_ms=0)
            return failed_row(trial, effort, error, now=self._services.environment.now())
        row = await self._runner.run(trial)
        is_unpriced = row.status != "error" and row.cost_usd is None and trial.target.charges
        if trial.case.max_cost_usd is not None and is_unpriced and not trial.dry_run:
            unpriced = (
                "the cost of an answer is unknown, so max_cost_usd cannot be enforced; "
                "set its price in 'prices'"
            )
            self._services.warn(about_case(unpriced, trial.case.id))
        return row

    async def _rescore_all(self, rows: Iterator[ResultRow]) -> None:
        for row in rows:
            trial = self._trials.of_row(row)
            await self._record(trial, self._runner.rescore(trial, row))

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

    def _label(self, trial: Trial) -> str:
        return self.progress.name(trial.key[0], trial.number, trials=trial.case.trials)
