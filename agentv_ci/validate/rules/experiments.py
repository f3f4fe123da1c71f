"""Experiments: their arms, metrics and files."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from agentv_ci.base.text import did_you_mean, listed
from agentv_ci.contracts.agent_targets import AgentTarget, VsCodeTarget
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.experiment import MEASURES, Arm, ExperimentDocument
from agentv_ci.contracts.source import Pointer
from agentv_ci.contracts.targets import Target
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.file_references import check_reference
from agentv_ci.validate.rules.targets import authored_names, unknown_name
from agentv_ci.workspaces.git_refs import commit_of

MAGIC = frozenset("*?[")
NO_COMMIT_HINT = (
    "name a branch, a tag, origin/BRANCH or a whole commit id; in CI, check out with fetch-depth: 0"
)


def check(document: ExperimentDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV301, AV302, AV304 and AV381 to AV384 for what the document says alone."""
    names = [arm.name for arm in document.arms]
    yield from find.duplicates("arm", names, ("arms",), "name")
    for index, arm in enumerate(document.arms):
        yield from _check_arm(index, arm, find)
    yield from _check_equal(document, find)
    yield from _check_evaluators(document, find)
    if document.base is not None:
        yield from unknown_name(find, ("base",), "arm", document.base, [*dict.fromkeys(names)])
    for number, path in enumerate(document.evals):
        place = find.source.resolve(path)
        if MAGIC.isdisjoint(path) and not find.context.path_exists(str(place)):
            yield find.at("AV302", f"'{path}' does not exist: {place}", ("evals", number))
    yield from _check_metrics("margin", document.margin or {}, document.all_metrics, find)
    yield from _check_metrics("detect", document.detect or {}, document.all_metrics, find)


def _check_metrics(
    field: str, changes: Iterable[str], compared: Sequence[str], find: Finder
) -> Iterator[Diagnostic]:
    """AV381 for changes of metrics that are not compared."""
    for metric in changes:
        if metric not in compared:
            close = did_you_mean(metric, compared)
            message = f"'{metric}' is not compared{close}; compared: {listed(compared)}"
            yield find.at("AV381", message, (field, metric), key=True, hint="add it to 'metrics'")


def _check_arm(index: int, arm: Arm, find: Finder) -> Iterator[Diagnostic]:
    place: Pointer = ("arms", index)
    for pointer, path in arm.references:
        yield from check_reference((*place, *pointer), path, find)
    if arm.ref is not None and commit_of(find.source.root, arm.ref) is None:
        message = f"no branch, tag or commit '{arm.ref}' in {find.source.root}"
        yield find.at("AV382", message, (*place, "ref"), hint=NO_COMMIT_HINT)
    targets = find.context.targets
    # At another commit, the targets file may be another one.
    if arm.target is None or arm.ref is not None or targets is None or targets.document is None:
        return
    yield from unknown_name(
        find, (*place, "target"), "target", arm.target, authored_names(targets.source)
    )
    target = next((each for each in find.context.target_list if each.name == arm.target), None)
    if arm.env and target is not None and not takes_variables(target):
        yield find.at("AV384", useless_variables(target), (*place, "env"), key=True)


def _check_evaluators(document: ExperimentDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV301 and AV304 for the names of evaluators and their judges."""
    evaluators = document.evaluators or ()
    targets = find.context.targets
    names = authored_names(targets.source) if targets is not None else None
    own = (evaluator.name for evaluator in evaluators)
    yield from find.duplicates("evaluator", own, ("evaluators",), "name")
    for index, evaluator in enumerate(evaluators):
        place: Pointer = ("evaluators", index)
        if evaluator.name in MEASURES:
            yield find.at(
                "AV301",
                f"'{evaluator.name}' is the name of a metric of every run",
                (*place, "name"),
            )
        yield from unknown_name(
            find, (*place, "judge_target"), "judge target", evaluator.judge_target, names
        )


def _check_equal(document: ExperimentDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV383 for an arm that has the settings of an earlier one."""
    known: dict[str, str] = {}
    for index, arm in enumerate(document.arms):
        settings = arm.model_dump_json(exclude={"name"}, exclude_none=True)
        if settings in known:
            yield find.at("AV383", equal_arms(known[settings], arm.name), ("arms", index))
        known.setdefault(settings, arm.name)


def check_metrics(
    document: ExperimentDocument, evaluators: Collection[str], find: Finder
) -> Iterator[Diagnostic]:
    """AV381 for metrics that are neither measured nor an evaluator.

    AV301 for evaluators with the name of one of the cases, which are `evaluators`.
    """
    for number, evaluator in enumerate(document.evaluators or ()):
        if evaluator.name in evaluators:
            message = f"evaluator '{evaluator.name}' has the name of an evaluator of the cases"
            yield find.at("AV301", message, ("evaluators", number, "name"))
    known = [*MEASURES, *sorted({*evaluators, *document.preferences})]
    for pointer, metric in _metrics(document):
        if metric not in known:
            close = did_you_mean(metric, known)
            message = f"unknown metric '{metric}'{close}; available: {listed(known)}"
            yield find.at("AV381", message, pointer)


def _metrics(document: ExperimentDocument) -> Iterator[tuple[Pointer, str]]:
    for number, metric in enumerate(document.metrics or ()):
        yield ("metrics", number), metric
    if document.primary is not None:
        yield ("primary",), document.primary


def check_settings(
    index: int, arm: Arm, targets: Iterable[Target], unused: Iterable[str], find: Finder
) -> Iterator[Diagnostic]:
    """AV384 for settings of an arm that its targets do not take, and files that no case uses."""
    place: Pointer = ("arms", index)
    for target in targets:
        if arm.env and not takes_variables(target):
            yield find.at("AV384", useless_variables(target), (*place, "env"), key=True)
        if arm.system_prompt is not None and isinstance(
            target, (CliTarget, AgentTarget, VsCodeTarget)
        ):
            message = f"target '{target.name}' (provider {target.provider}) takes no system prompt"
            hint = "use 'guidelines' or 'files'"
            yield find.at("AV384", message, (*place, "system_prompt"), key=True, hint=hint)
    for path in unused:
        message = f"no case uses '{path}': {find.source.resolve(path)}"
        hint = "name a file that messages, prompts or workspaces of the cases have"
        yield find.at("AV384", message, (*place, "files", path), key=True, hint=hint)


def equal_arms(first: str, second: str) -> str:
    """Return what is wrong with two arms that do not differ."""
    return f"arms '{first}' and '{second}' do not differ: every case is the same in both"


def takes_variables(target: Target) -> bool:
    """Whether a target gives environment variables to a program."""
    return isinstance(target, (CliTarget, AgentTarget))


def useless_variables(target: Target) -> str:
    """Return what is wrong with environment variables for a target that takes none."""
    return f"target '{target.name}' (provider {target.provider}) takes no environment variables"
