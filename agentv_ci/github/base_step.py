"""What counts for a change instead of its own files.

These are the quarantine, the baseline and the test of its base branch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from agentv_ci.app.documents.quarantine import QUARANTINE
from agentv_ci.base.text import on_one_line, without_commands
from agentv_ci.base.workflow_commands import annotation_command
from agentv_ci.contracts.action import Annotation, Level
from agentv_ci.contracts.exchange import Environment
from agentv_ci.contracts.source import normal, relative
from agentv_ci.github.base_files import fetch_base_file
from agentv_ci.github.base_tree import fetch_base_tree, repository_root
from agentv_ci.github.refusals import NotPublished
from agentv_ci.github.workflow import Workflow

Say = Callable[[str], None]
REFUSED: Mapping[str, tuple[Level, str]] = {
    "quarantine": ("notice", "nothing is in quarantine"),
    "baseline": ("warning", "nothing is compared with a baseline"),
}
"""What a refusal means for each file."""


async def read_base_files(
    folder: Path,
    workflow: Workflow,
    baseline: str | None,
    *,
    cwd: Path,
    environment: Environment,
    say: Say,
) -> Mapping[str, str]:
    """Write the quarantine, the baseline and the tree of the base branch into a new folder.

    Return paths by name.

    A baseline that the base branch does not have, or that is not of this repository, is the one
    given: there is nothing that a change could hide. What GitHub refuses to give is left out;
    `base_problem` is why there is no tree. `say` prints commands to the runner, such as a warning
    about that.
    """
    token = environment.variables.get("GITHUB_TOKEN") or None
    found = {"baseline": baseline} if baseline else {}
    for name, path in [
        ("quarantine", str(QUARANTINE)),
        *await _baseline(workflow, baseline, cwd, environment),
    ]:
        try:
            content = await _fetched(path, workflow, token, environment)
        except NotPublished as reason:
            # The change's own does not count instead.
            found.pop(name, None)
            level, instead = REFUSED[name]
            message = f"the {name} of the base branch cannot be read, so {instead}: {reason}"
            say(annotation_command(Annotation(level, "agentv-ci", message)))
            continue
        if content is not None:
            own = folder / name / path
            own.parent.mkdir(parents=True)
            own.write_bytes(content)
            found[name] = str(own)
            say(without_commands(f"{name}: {path} of {workflow.base_branch}"))
    try:
        tree = await fetch_base_tree(
            folder / "base", workflow, token, cwd=cwd, environment=environment
        )
    except NotPublished as reason:
        found["base_problem"] = on_one_line(str(reason))
        say(without_commands(f"the test is not compared with that of the base branch: {reason}"))
    else:
        found["base_tree"] = str(tree)
    return found


async def _fetched(
    path: str, workflow: Workflow, token: str | None, environment: Environment
) -> bytes | None:
    if token is None:
        raise NotPublished("there is no token")
    return await fetch_base_file(path, workflow, token, environment)


async def _baseline(
    workflow: Workflow, baseline: str | None, cwd: Path, environment: Environment
) -> list[tuple[str, str]]:
    """Return the path of a baseline in the workflow's own repository.

    Files elsewhere are not of the change.
    """
    if not baseline:
        return []
    path = normal(cwd / baseline)
    root = await repository_root(path.parent, workflow, environment.variables)
    if root is None:
        return []
    return [("baseline", relative(path, root))]
