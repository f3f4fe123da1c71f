"""What an agent left behind in its workspace, in the row of its trial."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from agentv_ci.contracts.base import Items, Recorded
from agentv_ci.contracts.workspaces import Isolation, RelativePath


class Change(Recorded):
    """A file of a workspace that an agent has added, modified or deleted."""

    path: RelativePath = Field(description="Its path.")
    kind: Literal["added", "modified", "deleted"] = Field(description="What has become of it.")
    mode: int = Field(0, description="Permission bits; of a deleted file 0.")
    base64: str | None = Field(None, description="Content of a file; null for a link and for a deleted file.")
    link: str | None = Field(None, description="Target of a symbolic link.")


class WorkspaceRecord(Recorded):
    """What an agent left behind in its workspace."""

    isolation: Isolation = Field(description="What separated the agent from the machine.")
    network: Literal["on", "off"] = Field(description="Whether it had a network.")
    changed: Items[str] = Field((), description="Paths that changed, sorted; at most 1,000.")
    withheld: Items[str] = Field((), description="Changed paths that graders did not get, each with the reason.")
    diff: str | None = Field(None, description="The changes as a unified diff, shortened.")
    changes: Items[Change] | None = Field(
        None, description="The changes themselves, for `rescore`; null where they are large or contain a secret."
    )
    kept: str | None = Field(None, description="Folder in which the workspace was kept.")
