"""Run a plan to its end: every trial becomes a row in the results."""

from __future__ import annotations

import asyncio
import contextlib

from msgspec.structs import replace

from agentv_ci.app.run.files import RunFiles
from agentv_ci.app.run.latest import RESULTS, link_latest
from agentv_ci.app.run.prepare import Prepared, prepare
from agentv_ci.app.run.wire import wired
from agentv_ci.base.atomic import keep_out_of_git
from agentv_ci.contracts.plan import Plan
from agentv_ci.contracts.report import Ending
from agentv_ci.errors import CannotGoOn, Interrupted
from agentv_ci.execute.engine import Engine, IsDecided, never
from agentv_ci.execute.run_services import RunOptions, RunServices, StoredAnswers
from agentv_ci.results.files import form
from agentv_ci.results.journal import Journal
from agentv_ci.results.resume import NO_EARLIER_RUN, EarlierRun


async def run_trials(
    plan: Plan,
    options: RunOptions,
    files: RunFiles,
    services: RunServices,
    *,
    earlier: EarlierRun | None = None,
    stored: StoredAnswers | None = None,
    is_decided: IsDecided = never,
) -> Ending:
    """Run a plan and write its rows, after those of an earlier run.

    With stored answers, ask only the judges.

    Returns how the run ended, even if it was interrupted. Raises what `run_plan` raises.
    """
    run = await prepare(plan, options, services, earlier or NO_EARLIER_RUN, stored)
    if earlier is not None:
        services.note(earlier.sentence)
    journal = _journal(run, files)
    async with wired(run) as (runner, targets):
        with journal:
            engine = Engine(
                plan,
                targets,
                options,
                run.services,
                runner=runner,
                journal=journal,
                finished=run.earlier,
            )
            engine.is_decided = is_decided
            is_interrupted = await _run_until_interrupted(engine, stored)
            if is_interrupted and earlier is None and not journal.has_begun:
                raise Interrupted("interrupted before the first row; nothing was written")
            journal.finish()
    ending = replace(engine.ending(), origin=run.origin)
    return replace(ending, stopped="interrupted") if is_interrupted else ending


def _journal(run: Prepared, files: RunFiles) -> Journal:
    def begin() -> None:
        if files.results.parent == run.options.root / RESULTS:
            with contextlib.suppress(OSError):
                keep_out_of_git(files.results.parent)
        if files.is_latest and run.plan.cases:
            link_latest(files.results)

    return Journal(
        files.results,
        form(files.form).encode,
        keeps=run.earlier.kept,
        outdates=files.report,
        on_begin=begin,
    )


async def _run_until_interrupted(engine: Engine, stored: StoredAnswers | None) -> bool:
    """Return whether a run was interrupted; its rows are still reported."""
    try:
        await engine.run(stored)
    except asyncio.CancelledError:
        return True
    except ExceptionGroup as group:
        # All trials of a cluster fail alike when its scheduler is gone.
        if isinstance(first := group.exceptions[0], CannotGoOn):
            raise first from group
        raise
    return False
