"""Stage 4: a plan is run; every trial becomes a row."""

from __future__ import annotations

from collections.abc import Iterable

from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.execute.engine import Engine
from agentv_ci.execute.run import Means, RunSettings
from agentv_ci.results.resume import FinishedTrials

__all__ = ["execute"]


async def execute(
    plan: Plan,
    targets: dict[str, Target],
    settings: RunSettings,
    means: Means,
    stored: Iterable[ResultRow] | None,
    finished: FinishedTrials,
) -> None:
    """Run a plan against resolved targets, but for what is finished; of `stored` rows, ask only the judges.

    Rows go to the journal the moment a trial ends. Raises TargetUnavailable when a target cannot be asked at all; a
    trial that fails is a row like any other.
    """
    await Engine(plan, targets, settings, means, finished).run(stored)
