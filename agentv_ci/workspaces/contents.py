"""What of a workspace can change a result."""

from __future__ import annotations

from agentv_ci.base.canonical import canonical, digest_of
from agentv_ci.contracts.base import JsonObject
from agentv_ci.contracts.plan_parts import PlanWorkspace


def key_of(workspace: PlanWorkspace) -> str:
    """Return a digest of all that is in a workspace and all that confines it.

    Where it comes from does not count.
    """
    return digest_of(canonical(content_of(workspace)))


def content_of(workspace: PlanWorkspace) -> JsonObject:
    """Return what counts of a workspace.

    That is the digest of a folder and not its path, and a commit and not its repository.
    """
    content: JsonObject = workspace.model_dump(
        mode="json",
        by_alias=True,
        exclude_none=True,
        exclude_defaults=True,
        exclude={"folder", "commit", "include", "exclude", "files", "patch", "visible"},
    )
    if workspace.folder is not None:
        content["folder"] = workspace.folder.sha256
    if workspace.commit is not None:
        content["commit"] = workspace.commit.commit
    if workspace.patch is not None:
        content["patch"] = workspace.patch.sha256
    if workspace.files:
        content["files"] = {path: file.sha256 for path, file in workspace.files.items()}
    return content
