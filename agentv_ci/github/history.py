"""The ledger of the repository that a workflow runs in.

It is read and written through a clone of its own.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from agentv_ci.analysis.cases.on_base import BaseBranch, in_history
from agentv_ci.app.results.history import Added, add_results
from agentv_ci.contracts.exchange import Environment
from agentv_ci.github.clone import empty_clone
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow
from agentv_ci.ledger.place import LedgerPlace, read_ledger
from agentv_ci.report.job import Job


async def with_history(
    job: Job, workflow: Workflow, token: str | None, environment: Environment
) -> Job:
    """Return the job of a change with what its cases did in the ledger.

    Raises NotPublished if that is unknown.
    """
    reported = job.reported
    if reported is None or reported.report.dry_run or not workflow.is_of_pull_request:
        return job
    if not (red := [*reported.errors, *reported.failures]):
        return job
    base, branches = reported.base, workflow.base_branches
    if base is not None and branches[0] != branches[-1]:
        # The ledger is of the default branch.
        return job
    async with _clone(workflow, token, environment, "contents: read") as (place, variables):
        ledger = await read_ledger(place, variables)
    if not ledger.runs:
        raise NotPublished(f"no run is in {ledger.source}")
    name = branches[-1] if branches else ledger.source
    cases = in_history(red, ledger)
    if base is not None:
        cases = {**base.cases, **cases}
    return replace(job, reported=replace(reported, base=BaseBranch(name, cases)))


async def add_to_history(
    results: Path, workflow: Workflow, token: str | None, environment: Environment
) -> Added:
    """Add the results of a run of the default branch to the ledger; raises NotPublished."""
    async with _clone(workflow, token, environment, "contents: write") as (place, variables):
        return await add_results([results], place, variables, run_url=workflow.run_url)


@asynccontextmanager
async def _clone(
    workflow: Workflow, token: str | None, environment: Environment, permission: str
) -> AsyncIterator[tuple[LedgerPlace, Environment]]:
    with tempfile.TemporaryDirectory(prefix="agentv-history-") as folder:
        async with empty_clone(Path(folder), workflow, token, environment, permission) as variables:
            yield LedgerPlace(Path(folder)), variables
