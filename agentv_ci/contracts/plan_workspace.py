"""Workspaces in the plan."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import Compiled, Items, Name
from agentv_ci.contracts.plan import FileReference, Sha256
from agentv_ci.contracts.workspaces import Argv, Globs, Isolation, RelativePath, WorkspaceLimits


class PlanFolder(Compiled):
    """A folder that is copied into a workspace; the plan has only the digest of its files."""

    path: str = Field(description="Path relative to the repository.")
    sha256: Sha256 = Field(description="Digest of the paths, executable bits and contents of its files.")


class PlanCommit(Compiled):
    """A commit that is checked out into a workspace."""

    git: str = Field(description="Path of the Git repository, relative to this one, or its URL.")
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")] = Field(description="Id of the commit.")


class PlanWorkspace(Compiled):
    """A folder that each trial gets fresh, and in which the agent works."""

    folder: PlanFolder | None = Field(None, description="The folder that is copied.")
    commit: PlanCommit | None = Field(None, description="The commit that is checked out; without either it is empty.")
    include: Globs = Field((), description="Globs of the files to copy; default: all.")
    exclude: Globs = Field((), description="Globs of files that are not copied.")
    patch: FileReference | None = Field(None, description="Patch that is applied.")
    files: dict[RelativePath, FileReference] = Field(default_factory=dict, description="Further files.")
    setup: Items[Argv] = Field((), description="Commands that complete it.")
    submit: Globs = Field((), description="Globs of the changed paths that graders get; default: all.")
    submit_guarded: Globs = Field((), description="Globs of guarded paths that graders get, too.")
    isolation: Isolation = Field("none", description="What separates agent and graders from the machine.")
    network: Literal["on", "off"] = Field("on", description="Whether the agent has a network.")
    image: Name | None = Field(None, description="Image of the container.")
    visible: Items[Name] = Field((), description="Further files and folders of the machine that it may read.")
    limits: WorkspaceLimits | None = Field(None, description="What a trial may use.")

    @property
    def references(self) -> Iterator[FileReference]:
        """The files of the plan that it needs."""
        yield from self.files.values()
        if self.patch is not None:
            yield self.patch
