"""Prepare a run: check what its plan needs, resolve variables, and collect its secrets."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from msgspec import Struct

from agentv_ci.app.run.other_arms import CaseName, base_of
from agentv_ci.base.checkout import commit_of, credentials
from agentv_ci.base.redaction import Redactor, secrets_of
from agentv_ci.base.source_files import changed_files
from agentv_ci.base.text import listed
from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.packed_cases import heads_of
from agentv_ci.contracts.plan import Plan, PlanCase, outcomes_of, runs_in_suite
from agentv_ci.contracts.report import RunOrigin
from agentv_ci.contracts.targets import Target
from agentv_ci.contracts.workspaces import Isolation
from agentv_ci.errors import UsageError
from agentv_ci.evaluate.evaluators import load_evaluators
from agentv_ci.execute.resolution import resolve_plan
from agentv_ci.execute.run_services import RunOptions, RunServices, StoredAnswers
from agentv_ci.results.resume import EarlierRun
from agentv_ci.version import __version__


class Prepared(Struct, frozen=True):
    """A plan that can run; nothing is open yet."""

    plan: Plan
    options: RunOptions
    services: RunServices
    """They mask the secrets of the run."""
    targets: Mapping[str, Target]
    """The plan's, with the values of variables; on a cluster as they are written, since only its
    workers have the variables.
    """
    needs: Needs
    origin: RunOrigin | None
    earlier: EarlierRun
    stored: StoredAnswers | None
    """Answers to score instead of asking."""


class Needs(Struct, frozen=True):
    """What a plan needs of the machine."""

    suites: Collection[str]
    """Eval files in whose folders commands run."""
    isolations: Collection[Isolation]
    of_graders: Collection[Isolation]
    """Those in which evaluators run."""
    bases: Mapping[CaseName, PlanCase]
    """The base's case, where evaluators compare the answers of arms."""


def load_needs(plan: Plan, *, answering: bool) -> Needs:
    """Load what the evaluators of a plan need, and return what else it needs.

    Raises UsageError for a package or plugin that cannot be used.
    """
    targets, suites = plan.targets if answering else {}, dict[str, None]()
    isolations, of_graders = dict[Isolation, None](), dict[Isolation, None]()
    bases: dict[CaseName, PlanCase] = {}
    for case in plan.cases:
        if case.skip is not None:
            continue
        load_evaluators(case)
        if case.arm is not None and case.arm == base_of(case):
            bases[case.suite, case.id] = case
        if case.suite not in suites and runs_in_suite(case, targets.get(case.target)):
            suites[case.suite] = None
        if case.workspace is not None:
            isolations[case.workspace.isolation] = None
            if outcomes_of(case):
                of_graders[case.workspace.isolation] = None
    return Needs(suites, isolations, of_graders, bases)


async def prepare(
    plan: Plan,
    options: RunOptions,
    services: RunServices,
    earlier: EarlierRun,
    stored: StoredAnswers | None,
) -> Prepared:
    """Return a run that can begin.

    Raises UsageError for what is missing: packages, folders, plugins, environment variables.
    """
    answering = stored is None and not options.dry_run and options.replay is None
    needs = load_needs(plan, answering=answering)
    if options.cluster is not None and needs.bases:
        raise UsageError(
            "--engine dask does not support 'pairwise_judge': "
            "two answers may be on different workers"
        )
    if options.cluster is None:
        require_folders(needs.suites, options.root)
        if answering:
            _require_unchanged(plan, options.root)
    variables = services.environment.variables
    # Warnings may hold secrets: they are said once these can be masked.
    held_warnings: list[str] = []
    targets: Mapping[str, Target] = plan.targets
    if options.cluster is None:
        targets = resolve_plan(
            plan, options, earlier, variables, held_warnings.append, only_judges=stored is not None
        )
    secrets = secrets_of(plan.targets, targets, variables) | await credentials(
        options.root, variables
    )
    clean = services.without_secrets(Redactor(secrets))
    for sentence in held_warnings:
        clean.warn(sentence)
    origin = await _origin(options, clean)
    return Prepared(plan, options, clean, targets, needs, origin, earlier, stored)


def require_folders(suites: Iterable[str], root: Path) -> None:
    """Raise UsageError if the folder of one of these eval files does not exist.

    Commands run in it.
    """
    for suite in suites:
        if not (root / suite).parent.is_dir():
            raise UsageError(
                f"the folder of '{suite}', in which commands run, does not exist in '{root}'",
                hint="run the plan in the repository that it was compiled from",
            )


def _require_unchanged(plan: Plan, root: Path) -> None:
    """Raise UsageError if an agent's own code is not the one that the digests of the plan count."""
    for name in dict.fromkeys(case.target for case in heads_of(plan) if case.skip is None):
        target = plan.targets[name]
        if not isinstance(target, (CliTarget, AgentTarget)):
            continue
        if changed := [*changed_files(target.sources or (), root)]:
            when = "after the plan was compiled"
            raise UsageError(
                f"the code of target '{name}' changed {when}: {listed(changed)}",
                hint="compile the plan again",
            )


def require_recordings(options: RunOptions) -> None:
    """Raise UsageError when answers cannot be recorded."""
    if options.record is not None:
        try:
            options.record.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"--record: cannot create '{options.record}': {error.strerror}"
            ) from error
        if not os.access(options.record, os.W_OK | os.X_OK):
            raise UsageError(f"--record: '{options.record}' is not writable")


async def _origin(options: RunOptions, services: RunServices) -> RunOrigin | None:
    """Return what runs, before agents can change it."""
    if options.command is None:
        return None
    commit = await commit_of(options.root, services.environment.variables)
    return RunOrigin(
        command=services.redactor.text(options.command), version=__version__, commit=commit
    )
