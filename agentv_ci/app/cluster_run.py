"""A run whose trials are answered by the workers of a cluster; all else happens here."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AsyncExitStack
from functools import partial
from itertools import count
from uuid import uuid4

from agentv_ci import __version__
from agentv_ci.app import cluster_worker
from agentv_ci.app.cluster_worker import Answered, Head, Notes, Unit, with_workers
from agentv_ci.contracts.exchange import ProviderError
from agentv_ci.contracts.plan import Plan, files_of
from agentv_ci.contracts.results import ResultRow
from agentv_ci.execute.cluster import Cluster, open_cluster
from agentv_ci.execute.run_services import RunOptions, RunServices, ignore
from agentv_ci.execute.trial_runner import RunState
from agentv_ci.results.rows import Effort, Trial, failed_row

__all__ = ["ClusterTrials", "open_cluster", "with_workers"]


class ClusterTrials:
    """Runs trials on a cluster."""

    unrecorded = 0
    """Nothing is replayed."""
    write_error: str | None = None
    """Answers are stored by workers."""

    def __init__(
        self, plan: Plan, options: RunOptions, services: RunServices, cluster: Cluster, state: RunState
    ) -> None:
        self._plan = plan
        self._options = options
        self._services = services
        self._cluster = cluster
        self._state = state
        self._name = f"agentv-ci-{uuid4().hex}"
        self._numbers = count(1)

    @property
    def most(self) -> int | None:
        """See TrialRunner."""
        return self._options.workers or self._cluster.threads

    async def open(self, targets: Iterable[str], stack: AsyncExitStack) -> None:
        """See TrialRunner; raises UsageError for a worker without the variables of a target."""
        head = Head(
            __version__,
            self._plan.model_copy(update={"cases": (), "files": {}}),
            tuple(targets),
            RunOptions(
                root=self._options.root,
                dry_run=self._options.dry_run,
                include_trace=self._options.include_trace,
                cache=self._options.cache,
            ),
            is_verbose=self._services.log is not ignore,
        )
        await stack.enter_async_context(self._cluster.session(self._name, partial(cluster_worker.begin, head)))

    async def ask_together(self, target: str, trials: Iterable[Trial]) -> None:
        """See TrialRunner; questions are spread over the workers instead."""

    async def run(self, trial: Trial) -> ResultRow:
        """See TrialRunner; raises TargetUnavailable when the scheduler is gone."""
        digests = sorted({file.sha256 for file in files_of(trial.case)})
        files = [self._cluster.keep(f"file-{digest}", self._plan.files[digest]) for digest in digests]
        unit, name = Unit(trial.case, trial.number), f"{self._name}-{next(self._numbers)}"
        limit = self._state.limits.of(trial.case.target)
        try:
            async with limit.slot():
                answered: Answered = await self._cluster.do(
                    name, self._name, cluster_worker.answer, unit, digests, files
                )
        except ProviderError as error:
            now = self._services.environment.now()
            return failed_row(trial, Effort(attempts=1, requests=0, duration_ms=0), error, now=now)
        self._take(answered.notes)
        return answered.row

    def _take(self, notes: Notes) -> None:
        """Take in what happened on a worker."""
        budget = self._state.budget
        for suite, cost_usd in notes.spent:
            budget.add(cost_usd, suite)
        for model in notes.unpriced:
            budget.miss_price(model)
        for target, held_s in notes.refused:
            self._state.limits.of(target).refused(held_s)
        for sentence in notes.warnings:
            self._services.warn(sentence)
        for line in notes.lines:
            self._services.log(line)
        self._state.progress.retries += notes.retries

    async def rescore(self, trial: Trial, row: ResultRow) -> ResultRow:
        """See TrialRunner."""
        raise NotImplementedError(f"{trial.key}: a cluster does not score the stored answer of {row.timestamp}")
