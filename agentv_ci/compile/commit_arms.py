"""Compile an arm at another commit.

It has today's cases and evaluators, with the questions, targets and code of the commit.
"""

from __future__ import annotations

from collections.abc import Iterator
from posixpath import dirname, join

from agentv_ci.base.mappings import known
from agentv_ci.base.source_files import names_of
from agentv_ci.contracts.agent_targets import AgentTarget
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.plan import Plan, PlanCase
from agentv_ci.contracts.plan_parts import PlanWorkspace
from agentv_ci.contracts.targets import Target


def at_commit(today: Plan, then: Plan, tree: str, key: str) -> Plan:
    """Return today's plan with what agents get at a commit.

    The files of the commit are in the folder `tree` of the repository. `then` is compiled there
    from today's eval files. `key` distinguishes its targets from those of today.
    """
    before = {(case.suite, case.id): case for case in then.cases}
    cases = [_case(case, before[case.suite, case.id], tree, key) for case in today.cases]
    targets = dict(_targets(then, tree, key))
    return today.model_copy(
        update={
            "cases": tuple(cases),
            "targets": {**today.targets, **targets},
            "files": {**then.files, **today.files},
        }
    )


def _case(case: PlanCase, then: PlanCase, tree: str, key: str) -> PlanCase:
    return case.model_copy(
        update={
            "target": _key(then, key),
            "system_prompt": then.system_prompt,
            "input_messages": then.input_messages,
            "guidelines": then.guidelines,
            "workspace": _moved_workspace(then.workspace, tree),
        }
    )


def _key(case: PlanCase, key: str) -> str:
    """Return the key of a target.

    A command without a folder runs in that of the eval file, so each has its own.
    """
    return f"{case.target}@{key}:{dirname(case.suite) or '.'}"


def _targets(then: Plan, tree: str, key: str) -> Iterator[tuple[str, Target]]:
    for case in then.cases:
        yield _key(case, key), _moved_target(then.targets[case.target], tree, dirname(case.suite))


def _moved_target(target: Target, tree: str, folder: str) -> Target:
    """Return a target whose paths lead to the files of the commit."""
    moved: dict[str, object] = {}
    for name in type(target).paths:
        moved[name] = _moved(getattr(target, name), tree)
    for name in type(target).programs:
        program = getattr(target, name) or ""
        if "/" in program:
            moved[name] = _moved(program, tree)
    if isinstance(target, CliTarget) and target.cwd is None:
        moved["cwd"] = join(tree, folder)
    if isinstance(target, (CliTarget, AgentTarget)) and target.sources:
        moved["sources"] = tuple(
            f"{sha256}  {join(tree, name)}" for name, sha256 in names_of(target.sources).items()
        )
    return target.model_copy(update=known(moved))


def _moved_workspace(workspace: PlanWorkspace | None, tree: str) -> PlanWorkspace | None:
    if workspace is None or workspace.folder is None:
        return workspace
    folder = workspace.folder.model_copy(update={"path": _moved(workspace.folder.path, tree)})
    return workspace.model_copy(update={"folder": folder})


def _moved(path: str | None, tree: str) -> str | None:
    if path is None or path.startswith(("/", "~", "$")):
        return path
    return join(tree, path)
