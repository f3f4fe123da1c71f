"""Workspaces: the folder in which an agent works, how it is made, and what confines the agent."""

from typing import Annotated, Literal

from pydantic import Field

from agentv_ci.contracts.base import AtLeastOne, Authored, Items, Maybe, Name, Positive, meanings

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


class GitSource(Authored):
    """A commit of a Git repository."""

    git: Name = Field(description="Path of a repository, relative to this file, or its URL.")
    ref: Name = Field(
        "HEAD",
        description="Branch, tag or commit; of a URL, the 40 hexadecimal digits of a commit.",
    )


class FileSource(Authored):
    """The content of a file."""

    file: Name = Field(description="Path of the file, relative to this file.")


Contents = dict[Name, str | FileSource]
"""Path in a workspace → its content."""


class WorkspaceLimits(Authored):
    """What all processes of a trial may use together."""

    cpu_s: Maybe[Positive] = Field(None, description="Seconds of processor time.", examples=[300])
    memory_mb: Maybe[Positive] = Field(None, description="Memory, in MiB.", examples=[2048])
    disk_mb: Maybe[Positive] = Field(
        None,
        description="Files in the workspace, HOME, TMPDIR and, in namespaces, /tmp and /dev/shm, "
        "in MiB.",
    )
    processes: Maybe[AtLeastOne] = Field(
        None, description="Processes at the same time.", examples=[100]
    )


class Tree(Authored):
    """What is in a workspace, and what graders get of it."""

    from_: Name | GitSource = Field(
        EMPTY,
        alias="from",
        description="A folder, a commit of a Git repository (`git`, `ref`), or `empty`.",
    )
    include: Maybe[Globs] = Field(
        None, description="Globs of the files to copy from the folder; default: all."
    )
    exclude: Maybe[Globs] = Field(
        None, description="Globs of files that are not copied from the folder."
    )
    patch: Maybe[Name] = Field(
        None, description="Path of a patch that is applied to it, as `git diff` writes it."
    )
    setup: Maybe[Items[Argv]] = Field(
        None,
        description="Commands that complete it, each a list of arguments; they run once, before "
        "the first trial.",
    )
    submit: Maybe[Globs] = Field(
        None,
        description="Globs of the changed paths that graders get; default: all that are not "
        "guarded.",
    )
    submit_guarded: Maybe[Globs] = Field(
        None,
        description="Globs of guarded paths, such as `conftest.py` or `Makefile`, that graders "
        "get, too.",
    )


class TargetWorkspace(Authored):
    """What an agent needs in every workspace in which it works."""

    files: Maybe[Contents] = Field(
        None, description="Further files: path → text, or `{file: path}`."
    )
    isolation: Isolation = Field(
        "none",
        description="What separates the agent and the graders from the rest of the machine.",
        json_schema_extra=meanings(
            none="Nothing but a folder, a HOME and an environment of its own.",
            namespaces="Linux namespaces: other files, processes and, without a network, other "
            "hosts are not there.",
            container="A container of docker or podman.",
        ),
    )
    network: Literal["on", "off"] = Field(
        "on",
        description="Whether the agent has a network; graders have none under isolation.",
        json_schema_extra=meanings(on="It has that of the machine.", off="It has none."),
    )
    image: Maybe[Name] = Field(None, description="Image of the container.")
    visible: Maybe[Items[Name]] = Field(
        None,
        description="Further files and folders of this machine that it may read, such as a "
        "toolchain.",
    )
    limits: Maybe[WorkspaceLimits] = Field(None, description="What a trial may use.")


class Workspace(TargetWorkspace, Tree):
    """A folder that each trial gets fresh, and in which the agent works."""


def for_agent(workspace: Workspace | None, agent: TargetWorkspace | None) -> Workspace | None:
    """Return the workspace of a case with what confines its agent.

    These are the case's settings, else those of the target; each limit counts for itself. `files`
    and `visible` are the case's own: their paths are relative to its document.
    """
    if agent is None:
        return workspace
    own = workspace or Workspace()
    given = {
        name: getattr(agent, name)
        for name in ("isolation", "network")
        if name not in own.model_fields_set
    }
    if own.limits is not None and agent.limits is not None:
        given["limits"] = agent.limits.model_copy(update=own.limits.model_dump(exclude_none=True))
    elif own.limits is None:
        given["limits"] = agent.limits
    found = own.model_copy(update=given)
    # The image belongs to the kind of isolation.
    has_image = own.image is not None or found.isolation != "container"
    return found if has_image else found.model_copy(update={"image": agent.image})
