"""Workspaces, and the evaluators of what agents leave behind in them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from agentv_ci.base.patterns import InvalidPattern, compiled
from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.environment_references import OPENING
from agentv_ci.contracts.evals import EvalDocument
from agentv_ci.contracts.outcome_evaluators import (
    CommandEvaluator,
    DiffEvaluator,
    FileEvaluator,
    JunitEvaluator,
    StateEvaluator,
)
from agentv_ci.contracts.source import Pointer
from agentv_ci.contracts.targets import MockTarget, Target, workspace_settings
from agentv_ci.contracts.workspaces import (
    EMPTY,
    FileSource,
    GitSource,
    TargetWorkspace,
    Workspace,
    for_agent,
)
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.file_references import check_reference
from agentv_ci.validate.walk import Evaluators, evaluators_of
from agentv_ci.workspaces.git_refs import commit_of, git_folder, is_commit, is_url

NO_NAMES = frozenset(("", ".", ".."))
"""Parts of a path that name no file."""
HINT = "add workspace: {from: …} to the execution of the case or of the file"


def check(document: EvalDocument, evaluators: Evaluators, find: Finder) -> Iterator[Diagnostic]:
    """AV361 to AV363 for workspaces and evaluators of outcomes.

    AV302 for the files that they name.
    """
    if document.execution is not None and document.execution.workspace is not None:
        shared = document.execution.workspace
        yield from _check_workspace(("execution", "workspace"), shared, find)
    for index, case in enumerate(document.evalcases):
        if case.execution is not None and case.execution.workspace is not None:
            yield from _check_workspace(
                ("evalcases", index, "execution", "workspace"), case.execution.workspace, find
            )
        if not find.context.target_list:
            yield from _check_confinement(
                document, index, evaluators_of(document, index), None, find
            )
    for pointer, evaluator in evaluators:
        if evaluator.needs_workspace:
            yield from _check_evaluator(pointer, evaluator, find)


def check_target(
    document: EvalDocument, index: int, evaluators: Evaluators, target: Target, find: Finder
) -> Iterator[Diagnostic]:
    """AV361 to AV363 for the workspace in which a target answers a case.

    `evaluators` score the case.
    """
    yield from _check_confinement(document, index, evaluators, target, find)
    place, own = _workspace_of(document, index)
    if own is None:
        return
    if not isinstance(target, (CliTarget, AgentTarget, MockTarget)):
        message = (
            f"target '{target.name}' (provider {target.provider}) does not work in a workspace"
        )
        hint = "use a command (cli) or an agent on the command line"
        yield find.at("AV363", message, place, key=True, hint=hint)
    elif not isinstance(target, MockTarget) and target.cwd is not None:
        message = f"target '{target.name}' has a 'cwd', but works in the workspace"
        yield find.at("AV363", message, place, key=True, hint="remove 'cwd' from the target")


def check_settings(
    pointer: Pointer, workspace: TargetWorkspace, find: Finder
) -> Iterator[Diagnostic]:
    """AV302, AV315 and AV362 for what a target sets for its workspaces."""
    yield from _check_files((*pointer, "files"), workspace.files or {}, find)
    if OPENING in workspace.model_dump_json():
        message = "settings of a workspace are in the plan: they cannot refer to the environment"
        yield find.at(
            "AV315", message, pointer, key=True, hint="write the value, or use 'env' of the target"
        )


def _workspace_of(document: EvalDocument, index: int) -> tuple[Pointer, Workspace | None]:
    """Return the workspace of a case or of the file, and its place.

    Without one, that of the case.
    """
    execution, shared = document.evalcases[index].execution, document.execution
    if execution is not None and execution.workspace is not None:
        return ("evalcases", index, "execution", "workspace"), execution.workspace
    if shared is not None and shared.workspace is not None:
        return ("execution", "workspace"), shared.workspace
    return ("evalcases", index, "id"), None


def _check_confinement(
    document: EvalDocument, index: int, evaluators: Evaluators, target: Target | None, find: Finder
) -> Iterator[Diagnostic]:
    """AV361 for outcomes without a workspace, and AV362 for settings that contradict each other."""
    pointer, own = _workspace_of(document, index)
    workspace = for_agent(own, workspace_settings(target) if target is not None else None)
    if workspace is None:
        yield from _check_missing(index, evaluators, find)
        return
    if own is not None and find.lost_part(pointer):
        return
    whose = ""
    if target is not None and own is None:
        whose = f"target '{target.name}': "
    if workspace.network == "off" and workspace.isolation == "none":
        message = f"{whose}without isolation there is no way to switch the network off"
        hint = "set isolation: namespaces or container"
        yield find.at("AV362", message, _setting(pointer, own, "network"), hint=hint)
    if workspace.isolation == "container" and workspace.image is None:
        message = f"{whose}isolation: container needs an 'image'"
        yield find.at("AV362", message, _setting(pointer, own, "isolation"))
    if workspace.isolation != "container" and workspace.image is not None:
        message = f"{whose}only isolation: container has an 'image'"
        yield find.at("AV362", message, _setting(pointer, own, "image"), key=True)


def _setting(pointer: Pointer, own: Workspace | None, name: str) -> Pointer:
    """Return the pointer of a setting of a workspace, which may be the target's."""
    if own is not None and name in own.model_fields_set:
        return (*pointer, name)
    return pointer


def _check_missing(index: int, evaluators: Evaluators, find: Finder) -> Iterator[Diagnostic]:
    places = [
        (pointer, evaluator.name) for pointer, evaluator in evaluators if evaluator.needs_workspace
    ]
    if (
        not places
        or find.lost_part(("execution",))
        or find.lost_part(("evalcases", index, "execution"))
    ):
        return
    for pointer, name in places:
        message = (
            f"evaluator '{name}' scores what the agent leaves behind, and there is no workspace"
        )
        yield find.at("AV361", message, (*pointer, "type"), hint=HINT)


def _check_workspace(pointer: Pointer, workspace: Workspace, find: Finder) -> Iterator[Diagnostic]:
    origin = workspace.from_
    if isinstance(origin, GitSource):
        yield from _check_git((*pointer, "from"), origin, find)
    elif origin != EMPTY:
        yield from _check_folder((*pointer, "from"), origin, find)
    if workspace.patch is not None:
        yield from check_reference((*pointer, "patch"), workspace.patch, find)
    yield from _check_files((*pointer, "files"), workspace.files or {}, find)
    copies = isinstance(origin, str) and origin != EMPTY
    for name in ("include", "exclude"):
        if getattr(workspace, name) is not None and not copies:
            message = f"'{name}' chooses files of a folder, and 'from' is none"
            yield find.at("AV362", message, (*pointer, name), key=True)


def _check_folder(pointer: Pointer, origin: str, find: Finder) -> Iterator[Diagnostic]:
    path, file = find.file(origin)
    if file.state == "outside":
        yield find.at(
            "AV318", f"'{origin}' is outside the repository {find.source.root}: {path}", pointer
        )
    elif file.state != "folder":
        reason = "does not exist" if file.state == "missing" else "is not a folder"
        hint = f"the workspace without files is called '{EMPTY}'"
        yield find.at("AV302", f"folder '{origin}' {reason}: {path}", pointer, hint=hint)


def _check_git(pointer: Pointer, origin: GitSource, find: Finder) -> Iterator[Diagnostic]:
    if is_url(origin.git):
        if not is_commit(origin.ref):
            message = (
                f"'{origin.ref}' may be another commit tomorrow: "
                "of a URL, the ref is the whole id of a commit"
            )
            yield find.at("AV362", message, (*pointer, "ref"))
        return
    repository = find.source.resolve(origin.git)
    if git_folder(repository) is None:
        yield find.at(
            "AV302", f"'{origin.git}' is not a Git repository: {repository}", (*pointer, "git")
        )
    elif commit_of(repository, origin.ref) is None:
        message = (
            f"'{origin.ref}' is not a branch, a tag or the whole id of a commit of {repository}"
        )
        yield find.at("AV362", message, (*pointer, "ref"))


def _check_files(
    pointer: Pointer, files: Mapping[str, str | FileSource], find: Finder
) -> Iterator[Diagnostic]:
    for path, content in files.items():
        if path.startswith("/") or not NO_NAMES.isdisjoint(path.split("/")):
            message = (
                f"'{path}' is not a path in the workspace: it is relative, without '.' and '..'"
            )
            yield find.at("AV362", message, (*pointer, path), key=True)
        if isinstance(content, FileSource):
            yield from check_reference((*pointer, path, "file"), content.file, find)


def _check_evaluator(pointer: Pointer, evaluator: object, find: Finder) -> Iterator[Diagnostic]:
    match evaluator:
        case DiffEvaluator() if evaluator.golden is not None:
            yield from check_reference((*pointer, "golden"), evaluator.golden, find)
        case CommandEvaluator() | JunitEvaluator():
            yield from _check_files((*pointer, "files"), evaluator.files or {}, find)
        case StateEvaluator():
            yield from _check_state(pointer, evaluator, find)
        case _:
            pass
    if isinstance(evaluator, (FileEvaluator, CommandEvaluator)) and evaluator.regex is not None:
        try:
            compiled(evaluator.regex)
        except InvalidPattern as error:
            yield find.at(
                "AV310",
                f"'{evaluator.regex}' is not a regular expression: {error}",
                (*pointer, "regex"),
            )


def _check_state(pointer: Pointer, evaluator: StateEvaluator, find: Finder) -> Iterator[Diagnostic]:
    """AV320 for a state that is not exactly one of a database with a query, and a document."""
    if find.lost_part(pointer):
        return
    if (evaluator.database is None) is (evaluator.document is None):
        yield find.at("AV320", "set 'database' and 'query', or 'document'", (*pointer, "type"))
    elif (evaluator.database is None) is not (evaluator.query is None):
        yield find.at("AV320", "'database' and 'query' belong together", (*pointer, "type"))
    if evaluator.rows is None:
        yield find.at(
            "AV320", "'rows' is missing: the expected rows, or [] for none", (*pointer, "type")
        )
