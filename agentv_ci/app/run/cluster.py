"""A run whose trials are answered by the workers of a cluster; all else happens here."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack, suppress
from functools import partial
from itertools import chain, count
from uuid import uuid4

from agentv_ci.app.run import cluster_worker
from agentv_ci.app.run.cluster_worker import Answered, Head, Notes, Unit, with_workers
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, files_of
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.workspaces import Isolation
from agentv_ci.evaluate.evaluators import needing_packages
from agentv_ci.execute.cluster import Cluster, open_cluster
from agentv_ci.execute.run_services import RunOptions, RunServices, ignore
from agentv_ci.execute.stores import Store
from agentv_ci.execute.trial_runner import RunState
from agentv_ci.results.rows import Effort, Trial, failed_row
from agentv_ci.version import __version__

MOST_TOGETHER = 50
MOST_UNDER_WAY = 1_000
"""Trials that wait for workers, unless there are more threads."""
UNIT_S = 0.1
"""How long a unit of several short trials takes: round trips to the scheduler count less, and rows
still come soon.
"""
GATHERING_S = 0.002
FOLLOW_S = 2.0
"""How often the workers of the cluster are counted."""

Waiting = tuple[Trial, "asyncio.Future[ResultRow]"]
"""A trial, and its row once there is one."""

__all__ = ["ClusterTrials", "open_cluster", "with_workers"]


class ClusterTrials:
    """Runs trials on a cluster."""

    unrecorded = 0
    """Nothing is replayed."""
    write_error: str | None = None
    """Why recordings could not be written."""

    def __init__(
        self,
        plan: Plan,
        options: RunOptions,
        services: RunServices,
        cluster: Cluster,
        state: RunState,
    ) -> None:
        self._plan = plan
        self._options = options
        self._services = services
        self._cluster = cluster
        self._state = state
        self._recordings = Store(options.record) if options.record is not None else None
        self._name = f"agentv-ci-{uuid4().hex}"
        self._numbers = count(1)
        is_exact = options.workers is not None or options.fail_fast or _has_budget(plan, options)
        self._most_together = 1 if is_exact else MOST_TOGETHER
        """How many short trials may be submitted at once."""
        self._together = dict.fromkeys(plan.targets, 1)
        """By target, how many trials are submitted at once."""
        self._alone: set[str] = set()
        """Targets whose trials are submitted one by one."""
        self._waiting: dict[str, list[Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def most(self) -> int | None:
        """See TrialRunner."""
        return self._at_once

    @property
    def _at_once(self) -> int:
        threads = self._options.workers or max(1, self._cluster.threads)
        return max(threads, min(threads * self._most_together, MOST_UNDER_WAY))

    async def open(self, targets: Iterable[str], stack: AsyncExitStack) -> None:
        """See TrialRunner.

        Raises UsageError for a worker without variables, and without a worker for a target.
        """
        asked = tuple(targets)
        for key in sorted({case.target for case in heads_of(self._plan)}.intersection(asked)):
            target = self._plan.targets[key]
            if target.resources:
                await self._cluster.require_resources(f"target '{target.name}'", target.resources)
        isolations: set[Isolation] = set()
        for case in self._plan.cases:
            if case.workspace is not None:
                isolations.add(case.workspace.isolation)
        head = Head(
            __version__,
            needing_packages(self._plan).model_copy(update={"files": {}}),
            asked,
            tuple(isolations),
            RunOptions(
                root=self._options.root,
                dry_run=self._options.dry_run,
                include_trace=self._options.include_trace,
                cache=self._options.cache,
                record=self._options.record,
            ),
            is_verbose=self._services.log is not ignore,
        )
        begin = partial(cluster_worker.begin, head)
        limited = [key for key in asked if self._plan.targets[key].workers is not None]
        session = self._cluster.session(
            self._name, begin, on_event=self._take_refusal, shared=limited
        )
        await stack.enter_async_context(session)
        stack.push_async_callback(self._cancel)
        self._begin(self._follow_cluster())

    def _begin(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _cancel(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _follow_cluster(self) -> None:
        """Follow the number of workers.

        More trials run at once when workers join; when workers are lost, no more are submitted
        than the others take.
        """
        at_once, threads = self._at_once, self._cluster.threads
        while True:
            await self._services.environment.sleep(FOLLOW_S)
            with suppress(OSError):
                await self._cluster.count_threads()
            if self._cluster.threads != threads:
                threads = self._cluster.threads
                for target in self._plan.targets:
                    self._allow(target)
            if self._at_once > at_once:
                self._state.add_workers(self._at_once - at_once)
                at_once = self._at_once

    async def ask_together(self, target: str, trials: Iterable[Trial]) -> None:
        """See TrialRunner; questions are spread over the workers instead."""

    async def run(self, trial: Trial) -> ResultRow:
        """See TrialRunner; raises TargetUnavailable when the scheduler is gone."""
        target, loop = trial.case.target, asyncio.get_running_loop()
        row: asyncio.Future[ResultRow] = loop.create_future()
        async with self._state.limits.of(target).slot():
            waiting = self._waiting.setdefault(target, [])
            waiting.append((trial, row))
            if len(waiting) >= self._together[target]:
                self._submit(target)
            elif len(waiting) == 1:
                # Others end within moments.
                loop.call_later(GATHERING_S, self._submit, target)
            return await row

    def _submit(self, target: str) -> None:
        # The run may have ended meanwhile.
        waiting = [trial for trial in self._waiting.pop(target, []) if not trial[1].done()]
        if waiting:
            self._begin(self._answer(waiting))

    async def _answer(self, waiting: Sequence[Waiting]) -> None:
        """Let a worker run trials of one target, one after the other, and hand out their rows."""
        try:
            answered = await self._on_worker([trial for trial, _ in waiting])
        except ProviderError as error:
            if len(waiting) > 1:
                # One of them is to blame.
                await asyncio.gather(*(self._answer([trial]) for trial in waiting))
                return
            ((trial, row),) = waiting
            now = self._services.environment.now()
            _hand(
                row,
                failed_row(trial, Effort(attempts=1, requests=0, duration_ms=0), error, now=now),
            )
        except Exception as error:  # noqa: BLE001  # those who wait for the rows raise it
            for _, row in waiting:
                if not row.done():
                    row.set_exception(error)
        else:
            self._take(answered.notes)
            for (_, row), answer in zip(waiting, answered.rows, strict=True):
                _hand(row, answer)
            self._gather_more(waiting[0][0].case.target, answered.seconds / len(waiting))

    async def _on_worker(self, trials: Sequence[Trial]) -> Answered:
        needed = chain.from_iterable(files_of(trial.case) for trial in trials)
        digests = sorted({file.sha256 for file in needed})
        keep, contents = self._cluster.keep, self._plan.files
        files = [keep(f"file-{digest}", contents[digest]) for digest in digests]
        units = [Unit(trial.case, trial.number, trial.used, trial.earlier) for trial in trials]
        name = f"{self._name}-{next(self._numbers)}"
        resources = self._plan.targets[trials[0].case.target].resources
        work = cluster_worker.answer, units, digests, files
        answered: Answered = await self._cluster.result(
            name, self._name, *work, resources=resources
        )
        return answered

    def _gather_more(self, target: str, seconds: float) -> None:
        """Submit as many trials at once as take UNIT_S; `seconds` is what one took."""
        if self._plan.targets[target].workers is None and target not in self._alone:
            self._set_together(
                target, max(1, min(self._most_together, int(UNIT_S / max(seconds, 1e-6))))
            )

    def _set_together(self, target: str, number: int) -> None:
        if number != self._together[target]:
            self._together[target] = number
            self._allow(target)

    def _allow(self, target: str) -> None:
        """Let as many trials of a target wait for workers as all threads take."""
        if self._options.workers is None and self._plan.targets[target].workers is None:
            self._state.limits.of(target).allow(
                max(1, self._cluster.threads) * self._together[target]
            )

    def _take_refusal(self, event: Sequence[str | float]) -> None:
        """Take in that a target refused a question for its rate, and let all workers know."""
        worker, target, held_s = str(event[0]), str(event[1]), float(event[2])
        # From now on a slot is one question.
        self._set_together(target, 1)
        self._alone.add(target)
        if self._state.limits.of(target).refused(held_s):
            self._begin(self._cluster.tell(self._name, cluster_worker.hold, worker, target, held_s))

    def _take(self, notes: Notes) -> None:
        """Take in what happened on a worker."""
        budget = self._state.budget
        for suite, cost_usd in notes.spent:
            budget.add(cost_usd, suite)
        for model in notes.unpriced:
            budget.miss_price(model)
        for sentence in notes.warnings:
            self._services.warn(sentence)
        for line in notes.lines:
            self._services.log(line)
        self._state.progress.retries += notes.retries
        self.write_error = self.write_error or notes.write_error
        if self._recordings is not None:
            self._keep(self._recordings, notes.recorded)

    def _keep(self, recordings: Store, files: Mapping[str, bytes]) -> None:
        try:
            for key, content in files.items():
                recordings.put(key, content)
        except OSError as error:
            self.write_error = self.write_error or f"{recordings.folder}: {error.strerror}"
            self._services.warn(
                f"cannot write an answer to '{recordings.folder}': {error.strerror}"
            )

    async def rescore(self, trial: Trial, row: ResultRow) -> ResultRow:
        """See TrialRunner."""
        raise NotImplementedError(
            f"{trial.key}: a cluster does not score the stored answer of {row.timestamp}"
        )


def _has_budget(plan: Plan, options: RunOptions) -> bool:
    if options.max_cost_usd is not None:
        return True
    return any(suite.gate.max_cost_usd is not None for suite in plan.suites)


def _hand(row: asyncio.Future[ResultRow], found: ResultRow) -> None:
    """Hand out a row, unless the run has been interrupted."""
    if not row.done():
        row.set_result(found)
