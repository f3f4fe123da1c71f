"""Compile the arms of an experiment.

An arm says what it changes in its cases; the order in which they run is random.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath

from msgspec import Struct, field

from agentv_ci.analysis.experiment.trials import cluster_of
from agentv_ci.base.canonical import canonical, digest_of
from agentv_ci.base.mappings import picked
from agentv_ci.compile.document import resealed
from agentv_ci.compile.references import Targets, find_target
from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.documents import DocumentContext
from agentv_ci.contracts.experiment import ExperimentDocument
from agentv_ci.contracts.plan import Plan, PlanCase, PlanSuite, named_targets, suites_by_path
from agentv_ci.contracts.plan_evaluators import PlanPairwiseJudgeEvaluator
from agentv_ci.contracts.plan_parts import (
    FilePart,
    FileReference,
    PlanFile,
    PlanMessage,
    PlanWorkspace,
)
from agentv_ci.contracts.targets import Target


class ArmChanges(Struct, frozen=True):
    """What an arm changes in compiled cases."""

    name: str
    system_prompt: str | None = None
    guidelines: Sequence[FileReference] = ()
    replaced: Mapping[str, FileReference] = field(default_factory=dict)
    """Path of a file, relative to the repository → the file in its place."""
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, PlanFile] = field(default_factory=dict)
    """The contents of these files, by SHA-256."""


def changed(plan: Plan, arm: ArmChanges) -> Plan:
    """Return the cases of an arm, without new digests.

    Its target, if changed, has a key of its own.
    """
    cases = [_changed_case(case, arm) for case in plan.cases]
    targets = dict(plan.targets)
    if arm.env:
        for key in dict.fromkeys(case.target for case in cases):
            targets[f"{key}@{arm.name}"] = with_variables(targets[key], arm.env)
        cases = [case.model_copy(update={"target": f"{case.target}@{arm.name}"}) for case in cases]
    return plan.model_copy(
        update={"cases": tuple(cases), "targets": targets, "files": {**plan.files, **arm.files}}
    )


def with_variables(target: Target, env: Mapping[str, str]) -> Target:
    """Return a command or an agent with more environment variables."""
    assert isinstance(target, (CliTarget, AgentTarget)), "checked by the rules"
    return target.model_copy(update={"env": {**(target.env or {}), **env}})


def _changed_case(case: PlanCase, arm: ArmChanges) -> PlanCase:
    # Trials that one arm leaves out would have no partner.
    update: dict[str, object] = {"arm": arm.name, "stop_when": None}
    if arm.system_prompt is not None:
        update["system_prompt"] = arm.system_prompt
    if arm.guidelines:
        update["input_messages"] = (*_guided(case.input_messages, arm.guidelines),)
        guidelines = (*arm.guidelines, *case.guidelines)
        by_content = {guideline.sha256: guideline for guideline in guidelines}
        update["guidelines"] = tuple(by_content.values())
    if case.workspace is not None:
        files = dict(case.workspace.files)
        for path, path_there in _in_workspace(case.workspace, arm.replaced):
            files[path_there] = arm.replaced[path]
        update["workspace"] = case.workspace.model_copy(update={"files": files})
    return case.model_copy(update=update)


def _guided(
    messages: Sequence[PlanMessage], guidelines: Sequence[FileReference]
) -> Iterator[PlanMessage]:
    """Yield the messages, with the guidelines before the first one of the user."""
    parts = tuple(map(_guideline_part, guidelines))
    roles = [message.role for message in messages]
    first = roles.index("user") if "user" in roles else 0
    for number, message in enumerate(messages):
        if number == first:
            yield message.model_copy(update={"content": (*parts, *message.content)})
        else:
            yield message


def _guideline_part(guideline: FileReference) -> FilePart:
    return FilePart(type="guideline", path=guideline.path, sha256=guideline.sha256)


def _in_workspace(workspace: PlanWorkspace, paths: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield which of these paths of the repository a workspace has, each with its path there."""
    origin = workspace.commit.git if workspace.commit else None
    if workspace.folder:
        origin = workspace.folder.path
    for path in map(PurePosixPath, paths if origin is not None else ()):
        if path.is_relative_to(origin or "."):
            yield str(path), str(path.relative_to(origin or "."))


def in_workspaces(plan: Plan, arm: ArmChanges) -> Iterator[str]:
    """Yield the files that an arm replaces in workspaces of cases."""
    for case in plan.cases:
        if case.workspace is not None:
            for own, _ in _in_workspace(case.workspace, arm.replaced):
                yield own


def interleaved(
    plans: Sequence[Plan], document: ExperimentDocument, context: DocumentContext
) -> Plan:
    """Return one plan with the cases of all arms.

    The arms of a case are together. Clusters, cases and arms are in random order: that of digests
    of the seed and the names, so that a case keeps its place among others when some are left out.

    Each case also has the evaluators that compare arms; their judges are among the targets of the
    context.
    """
    suites: dict[str, PlanSuite] = {}
    files: dict[str, PlanFile] = {}
    targets = Targets()
    cases: list[PlanCase] = []
    for plan in plans:
        suites = suites_by_path(plan) | suites
        files = plan.files | files
        targets.compiled |= plan.targets
        cases += plan.cases
    if pairwise := [*_pairwise(document, context, targets)]:
        cases = [
            case.model_copy(update={"evaluators": (*case.evaluators, *pairwise)}) for case in cases
        ]
    used = set(chain.from_iterable(map(named_targets, cases)))
    head = plans[0].model_copy(
        update={
            "suites": tuple(_open(suites[path]) for path in sorted(suites)),
            "targets": picked(targets.compiled, sorted(used)),
            "files": dict(sorted(files.items(), key=lambda file: (file[1].path, file[0]))),
        }
    )
    return resealed(sorted(cases, key=lambda case: _place(case, document)), head)


def _pairwise(
    document: ExperimentDocument, context: DocumentContext, targets: Targets
) -> Iterator[PlanPairwiseJudgeEvaluator]:
    """Yield the evaluators that compare arms, and add their judges to the targets."""
    for evaluator in document.evaluators or ():
        assert context.targets is not None, "the judge is one of its targets"
        judge = find_target(context.target_list, evaluator.judge_target)
        settings = evaluator.model_dump(exclude={"type", "judge_target"})
        target = targets.add(judge, context.targets.source)
        yield PlanPairwiseJudgeEvaluator(**settings, base=document.base_name, target=target)


def _open(suite: PlanSuite) -> PlanSuite:
    """Return a suite whose gate quality cannot fail.

    The verdict of an experiment is that of its comparison.
    """
    gate = suite.gate.model_copy(
        update={"min_pass_rate": 0.0, "min_mean_score": None, "validators": "warn"}
    )
    return suite.model_copy(update={"gate": gate})


def _place(case: PlanCase, document: ExperimentDocument) -> tuple[str, ...]:
    cluster = cluster_of(document.cluster_by, (case.suite, case.id), case.tags or (), case.metadata)
    names = ([cluster], [case.suite, case.id], [case.suite, case.id, case.arm])
    return tuple(digest_of(canonical([document.seed, *parts])) for parts in names)


def equal_arms(plan: Plan) -> Iterable[tuple[str, str]]:
    """Yield each pair of arms whose cases all have the same digests, the earlier one first."""
    digests: dict[str, dict[tuple[str, str], str]] = {}
    for case in plan.cases:
        digests.setdefault(case.arm or "", {})[case.suite, case.id] = case.digest
    known: dict[tuple[str, ...], str] = {}
    for arm in sorted(digests):
        key = tuple(digests[arm][case] for case in sorted(digests[arm]))
        if key in known:
            yield known[key], arm
        known.setdefault(key, arm)
