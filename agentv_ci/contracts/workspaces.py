"""Workspaces: the folder in which an agent works, how it is made, and what confines the agent."""
# ruff: noqa: PLC0414  # exports

from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, Name
from agentv_ci.contracts.later import later

if TYPE_CHECKING:
    from agentv_ci.contracts.workspace_settings import FileSource as FileSource
    from agentv_ci.contracts.workspace_settings import GitSource as GitSource
    from agentv_ci.contracts.workspace_settings import TargetWorkspace as TargetWorkspace
    from agentv_ci.contracts.workspace_settings import Workspace as Workspace
    from agentv_ci.contracts.workspace_settings import WorkspaceLimits as WorkspaceLimits
else:
    TargetWorkspace = later("TargetWorkspace", "workspace_settings")
    Workspace = later("Workspace", "workspace_settings")
    FileSource = later("FileSource", "workspace_settings")
    GitSource = later("GitSource", "workspace_settings")
    WorkspaceLimits = later("WorkspaceLimits", "workspace_settings")

Isolation = Literal["none", "namespaces", "container"]
"""What separates an agent from the rest of the machine."""

EMPTY = "empty"
"""The `from` of a workspace without files."""

_NAME = r"([^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+)"
RELATIVE_PATH = f"^{_NAME}(/{_NAME})*$"
RelativePath = Annotated[str, Field(pattern=RELATIVE_PATH)]
"""The path of a file in a workspace: relative, without `.` and `..`."""

Argv = Annotated[Items[str], Field(min_length=1)]
Globs = Items[Name]

OF_TARGET = "Settings of every workspace in which it works; those of the case or its file win."


def for_agent(workspace: Workspace | None, agent: TargetWorkspace | None) -> Workspace | None:
    """Return the workspace of a case with what confines its agent: the case's settings, else those of the target.

    Each limit counts for itself. `files` and `visible` are the case's own: their paths are relative to its document.
    """
    if agent is None:
        return workspace
    own = workspace or Workspace()
    given = {name: getattr(agent, name) for name in ("isolation", "network") if name not in own.model_fields_set}
    if own.limits is not None and agent.limits is not None:
        given["limits"] = agent.limits.model_copy(update=own.limits.model_dump(exclude_none=True))
    elif own.limits is None:
        given["limits"] = agent.limits
    found = own.model_copy(update=given)
    # The image belongs to the kind of isolation.
    has_image = own.image is not None or found.isolation != "container"
    return found if has_image else found.model_copy(update={"image": agent.image})
