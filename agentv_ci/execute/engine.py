"""The loop: every trial of every case, as many at once as the limits allow."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterator, Mapping
from contextlib import AsyncExitStack, suppress

from agentv_ci.contracts.exchange import ProviderError, Request
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.attempts import TrialRunner
from agentv_ci.execute.budget import Budget
from agentv_ci.execute.limits import Limits
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.run import GradeAnswer, Progress, RunOptions, RunServices, StoredAnswers
from agentv_ci.execute.targets import OpenTargets
from agentv_ci.execute.trials import TrialSchedule, still_asked
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import NOTHING_FINISHED, FinishedTrials
from agentv_ci.results.rows import Trial


class Engine:
    """Runs one plan once: every trial becomes a row, and goes to the journal the moment it ends."""

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
        finished: FinishedTrials = NOTHING_FINISHED,
    ) -> None:
        """`targets` are the plan's, resolved; what is `finished` is left out."""
        self._options = options
        self._services = services
        self._journal = journal
        answering = (case.target for case in plan.cases)
        self._limits = Limits(options.workers, targets, answering, services.environment, services.log)
        suites = {suite.path: suite for suite in plan.suites}
        self._budget = Budget(options.max_cost_usd, suites, options.shards, services.warn)
        self._budget.add_earlier(finished)
        self._trials = TrialSchedule(
            plan,
            targets,
            finished,
            dry_run=options.dry_run,
            fail_fast=options.fail_fast,
            limits=self._limits,
            budget=self._budget,
        )
        self._asked = still_asked(plan, finished.results)
        self.progress = Progress(total=self._trials.number)
        self._targets = OpenTargets(
            plan, targets, options, services, limits=self._limits, budget=self._budget, progress=self.progress
        )
        folders = {path: (options.root / path).parent for path in suites}
        self._runner = TrialRunner(plan, options, services, self._targets, grade, materials, self.progress, folders)

    def ending(self) -> Ending:
        """Return how the run ended, besides its rows."""
        return Ending(
            dry_run=self._options.dry_run,
            write_error=self._journal.write_error or self._targets.stores.write_error,
            unrecorded=self._targets.unrecorded,
            stopped=self._trials.stopped,
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
            # One whose files cannot be laid out fails when its turn comes, not with all others.
            with suppress(ProviderError):
                yield trial, self._runner.request(trial)

    async def _answer_all(self) -> None:
        """What one worker does."""
        while (trial := await self._trials.next()) is not None:
            row = await self._record(self._runner.run(trial))
            self._targets.forget(trial)
            self.progress.total -= self._trials.finish(trial, row)
            # What answers without waiting must not keep signals and progress from being heard.
            await asyncio.sleep(0)

    async def _rescore_all(self, rows: Iterator[ResultRow]) -> None:
        for row in rows:
            await self._record(self._runner.rescore(self._trials.of_row(row), row))

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
