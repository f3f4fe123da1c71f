"""Wire a run: open what answers and grades its trials, on this machine or on a cluster."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from typing import NamedTuple

from agentv_ci.app.run.grading import grader
from agentv_ci.app.run.other_arms import ArmAnswers
from agentv_ci.app.run.prepare import Prepared
from agentv_ci.base.text import counted
from agentv_ci.contracts.results import ResultRow
from agentv_ci.contracts.targets import Target
from agentv_ci.errors import UsageError
from agentv_ci.execute.materials import Materials
from agentv_ci.execute.run_services import ClusterOptions
from agentv_ci.execute.trial_runner import LocalTrials, RunState, TrialRunner
from agentv_ci.results.files import read_rows
from agentv_ci.results.resume import EarlierRun
from agentv_ci.workspaces.places import Workspaces


class Wired(NamedTuple):
    """What answers and grades the trials of a run."""

    runner: Callable[[RunState], TrialRunner]
    targets: Mapping[str, Target]
    """With their limits where they are asked."""


@asynccontextmanager
async def wired(run: Prepared) -> AsyncIterator[Wired]:
    """Open what answers and grades the trials of a run.

    Raises UsageError for an isolation that does not work here.
    """
    cluster = run.options.cluster
    opened = _on_this_machine(run) if cluster is None else _on_cluster(run, cluster)
    async with opened as wired:
        yield wired


@asynccontextmanager
async def _on_this_machine(run: Prepared) -> AsyncIterator[Wired]:
    plan, options, services = run.plan, run.options, run.services
    async with AsyncExitStack() as stack:
        materials = stack.enter_context(Materials(plan.files, options.root))
        variables, keep = services.environment.variables, options.keep_workspaces
        workspaces = stack.enter_context(
            Workspaces(plan.files, options.root, variables, services.log, keep)
        )
        if not options.dry_run:
            needs = run.needs
            await workspaces.require(needs.isolations if run.stored is None else needs.of_graders)
        arms = ArmAnswers(plan, run.needs.bases, options.root, materials, kept_rows(run.earlier))
        grade = grader(plan, options, materials, services, workspaces, arms.others)
        runner = partial(
            LocalTrials,
            plan,
            run.targets,
            options,
            services,
            grade=grade,
            materials=materials,
            workspaces=workspaces,
        )
        yield Wired(runner, run.targets)


@asynccontextmanager
async def _on_cluster(run: Prepared, where: ClusterOptions) -> AsyncIterator[Wired]:
    try:
        from agentv_ci.app.run.cluster import (
            ClusterTrials,
            open_cluster,
            with_workers,
        )  # needs `distributed`
    except ModuleNotFoundError as error:
        raise UsageError(
            f"--engine dask needs the package '{error.name}'",
            hint="python -m pip install distributed",
        ) from error
    services = run.services
    async with open_cluster(where, services.environment.variables, run.options.workers) as cluster:
        threads = cluster.threads
        size = f"{counted(cluster.workers, 'worker')}, {counted(threads, 'thread')}"
        services.note(f"{size} at {cluster.address}")
        runner = partial(ClusterTrials, run.plan, run.options, services, cluster)
        yield Wired(runner, with_workers(run.plan.targets, threads))


def kept_rows(earlier: EarlierRun) -> Iterator[ResultRow]:
    """Yield the rows of an earlier run that do not run again."""
    if earlier.kept is not None:
        rows = read_rows(earlier.kept.path, allow_torn=True)
        yield from (row for row in rows if (row.case_key, row.trial) in earlier.results)
