"""The tool that runs cases, within a budget that its client cannot raise."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from typing import Annotated

from anyio import CancelScope
from mcp.server.mcpserver import Context
from pydantic import Field

from agentv_ci.app.documents.compile import CompiledPlan
from agentv_ci.app.documents.previews import estimate_run
from agentv_ci.app.run.environment import system_environment
from agentv_ci.app.run.files import RunFiles, RunOutcome
from agentv_ci.app.run.latest import new_results
from agentv_ci.app.run.run import run_plan
from agentv_ci.base.text import listed
from agentv_ci.compile.overrides import Overrides, override
from agentv_ci.contracts.command_output import Estimate
from agentv_ci.contracts.source import relative
from agentv_ci.errors import TargetUnavailable, UsageError
from agentv_ci.execute.run_services import Progress, RunOptions, RunServices
from agentv_ci.load.files import with_dotenv
from agentv_ci.mcp_server.answers import Answer
from agentv_ci.mcp_server.calls import Calls
from agentv_ci.mcp_server.documents import ALL_CASES, Cases, DocumentTools
from agentv_ci.mcp_server.repository import Repository
from agentv_ci.mcp_server.results import outcome_answer

MAX_TRIALS = 1_000
"""Of all runs of a server. What a command spends by itself is unknown, so the budget alone does not
bound it.
"""
PROGRESS_S = 1.0

Dollars = Annotated[
    float,
    Field(ge=0, allow_inf_nan=False, description="The most that this run may cost, in dollars."),
]
Trials = Annotated[int, Field(ge=1, le=100, description="Trials of every case.")]


Watch = Callable[[Progress], None]


class Allowance:
    """What the runs of a server may still cost, one run after another."""

    def __init__(self, most_usd: float, *, trials: int = MAX_TRIALS) -> None:
        self._left_usd = most_usd
        self._trials = trials
        self._is_running = False

    @property
    def left_usd(self) -> float:
        """What is left; the questions under way at the end of a budget may exceed it."""
        return max(self._left_usd, 0.0)

    def take(self, wanted_usd: float, estimate: Estimate, *, is_free: bool = False) -> None:
        """Take the budget of a run; `is_free`: it asks nothing.

        Raises UsageError for a run that is refused.
        """
        self._require_trials(estimate.trials)
        if not is_free:
            self._require_dollars(wanted_usd, estimate)
        self._is_running = True
        self._left_usd -= wanted_usd
        self._trials -= estimate.trials

    def end(self, unspent_usd: float) -> None:
        """End a run, and give back what it did not spend; negative if it spent more."""
        self._left_usd += unspent_usd
        self._is_running = False

    def _require_trials(self, trials: int) -> None:
        if self._is_running:
            raise UsageError("a run is under way", hint="wait for its result")
        if trials > self._trials:
            raise UsageError(
                f"the run has {trials} trials, and {self._trials} are left to this server",
                hint="select fewer cases, or restart the server",
            )

    def _require_dollars(self, wanted_usd: float, estimate: Estimate) -> None:
        if estimate.unpriced:
            raise UsageError(
                f"the budget cannot be kept: the price of {listed(estimate.unpriced)} is unknown",
                hint="set the model of the target, and `prices` in .agentv/config.yaml",
            )
        if wanted_usd > self.left_usd:
            left = f"{self.left_usd:g} dollars are left to this server"
            raise UsageError(f"max_cost_usd is {wanted_usd:g}, and {left}")
        if estimate.cost_usd and not wanted_usd:
            raise UsageError(
                f"max_cost_usd is 0, and the run costs about {estimate.cost_usd:g} dollars"
            )


class RunTools:
    """The tool, which answers with JSON; raises CannotGoOn."""

    def __init__(
        self, repository: Repository, documents: DocumentTools, calls: Calls, budget_usd: float
    ) -> None:
        self._repository = repository
        self._documents = documents
        self._calls = calls
        self._allowance = Allowance(budget_usd)

    async def run(
        self,
        context: Context,
        max_cost_usd: Dollars,
        cases: Cases = ALL_CASES,
        repeat: Trials | None = None,
        dry_run: bool = False,  # noqa: FBT002  # a tool's schema
    ) -> Answer:
        """Run cases: ask their targets, score the answers, apply the gate, and write results that `report` reads.

        A dry run scores the reference answers instead of asking, and costs nothing.
        """
        compiled = await self._calls.work(partial(self._planned, cases, repeat))
        estimate = await self._calls.work(partial(estimate_run, compiled, workers=None))
        self._allowance.take(max_cost_usd, estimate, is_free=dry_run)
        unspent_usd = 0.0  # unless all costs are known, which they are not of an interrupted run
        try:
            options = RunOptions(
                compiled.origin.root,
                dry_run=dry_run,
                max_cost_usd=max_cost_usd,
                is_filtered=bool(cases.only) or compiled.origin.left_out > 0,
            )
            async with _progress(context) as watch:
                name, outcome = await self._outcome(compiled, options, watch)
            if not outcome.report.unpriced_models:
                unspent_usd = max_cost_usd - (outcome.report.cost_usd or 0.0)
        except (UsageError, TargetUnavailable):
            unspent_usd = max_cost_usd  # nothing was asked
            raise
        finally:
            self._allowance.end(unspent_usd)
        return {
            "results": name,
            **outcome_answer(outcome),
            "left_usd": round(self._allowance.left_usd, 6),
        }

    def _planned(self, cases: Cases, repeat: int | None) -> CompiledPlan:
        compiled = self._documents.compiled(cases)
        return CompiledPlan(override(compiled.plan, Overrides(repeat)), compiled.origin)

    async def _outcome(
        self, compiled: CompiledPlan, options: RunOptions, watch: Watch
    ) -> tuple[str, RunOutcome]:
        """Run a plan, and return the name of its results and the outcome.

        Raises what `run_plan` raises.
        """
        results = new_results(options.root, datetime.now(UTC))
        self._repository.require_inside([results])
        files = RunFiles(results, "jsonl", is_latest=not options.dry_run)
        environment = system_environment(
            with_dotenv(self._repository.environ, compiled.origin.dotenv_files)
        )
        services = RunServices(environment, watch=watch)
        running = asyncio.create_task(run_plan(compiled, Overrides(), options, files, services))
        try:
            return relative(results, self._repository.root), await asyncio.shield(running)
        except asyncio.CancelledError:
            # The server cancels a call again and again, but a run needs time to end its processes.
            running.cancel()
            with CancelScope(shield=True):
                await asyncio.gather(running, return_exceptions=True)
            raise


@asynccontextmanager
async def _progress(context: Context) -> AsyncIterator[Watch]:
    """Tell the client how far a run is: clients give up calls of which they hear nothing."""
    watched: list[Progress] = []

    async def tell() -> None:
        while True:
            await asyncio.sleep(PROGRESS_S)
            for each in watched:
                await context.report_progress(
                    each.done, each.total, f"{each.passed} passed, {each.failed} failed"
                )

    telling = asyncio.create_task(tell())
    try:
        yield watched.append
    finally:
        telling.cancel()
