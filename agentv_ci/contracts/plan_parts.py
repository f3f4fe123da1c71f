"""Parts of a plan: its files, messages and workspaces.

Paths are relative to the repository and use `/`.
"""

import json
from base64 import b64decode
from collections.abc import Callable, Iterator
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypeAliasType

from agentv_ci.contracts.attachments import AttachmentType
from agentv_ci.contracts.base import Compiled, Items, JsonObject, JsonValue, Name
from agentv_ci.contracts.evals import Role
from agentv_ci.contracts.workspaces import Argv, Globs, Isolation, RelativePath, WorkspaceLimits

Sha256 = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


class FileText(Compiled):
    """The content of a referenced file."""

    path: str = Field(description="Path relative to the repository.")
    text: str = Field(description="Content of the file.")

    @property
    def content(self) -> bytes:
        """The content as bytes."""
        return self.text.encode("utf-8")


class FileBytes(Compiled):
    """The content of a referenced file that is not UTF-8."""

    path: str = Field(description="Path relative to the repository.")
    base64: Annotated[str, Field(pattern=r"^[A-Za-z0-9+/]*={0,2}$")] = Field(
        description="Content of the file in Base64 (RFC 4648)."
    )

    @property
    def content(self) -> bytes:
        """The content as bytes."""
        return b64decode(self.base64)

    @property
    def text(self) -> str:
        """The content as text, for plans that use it as a text."""
        return self.content.decode("utf-8", "replace")


PlanFile = FileText | FileBytes


class FileReference(Compiled):
    """A reference to a file in `files`."""

    path: str = Field(description="Path relative to the repository.")
    sha256: Sha256 = Field(description="Key in `files`.")


class TextPart(Compiled):
    """A text in a message, or an inline prompt."""

    type: Literal["text"] = "text"
    text: str = Field(description="The text.")


class FilePart(Compiled):
    """A file in a message; a guideline is replaced by its path, and its text comes first."""

    type: Literal["file", "guideline"] = Field(
        description="Whether the file is content or a guideline."
    )
    path: str = Field(description="Path relative to the repository.")
    sha256: Sha256 = Field(description="Key in `files`.")


class AttachmentPart(Compiled):
    """An image or a document in a message: a file, with `path`, `sha256` and `mediaType`, or a `url`."""

    type: AttachmentType = Field(description="Whether it is an image or a document.")
    path: str | None = Field(None, description="Path relative to the repository.")
    sha256: Sha256 | None = Field(None, description="Key in `files`.")
    media_type: str | None = Field(
        None, description="Media type of the file, or what the suffix of the URL suggests."
    )
    url: str | None = Field(None, description="URL of the file, which only the target reads.")

    @property
    def name(self) -> str:
        """The path or the URL."""
        return self.path or self.url or ""

    @property
    def file(self) -> FileReference | None:
        """The file; None for a URL."""
        if self.path is None or self.sha256 is None:
            return None
        return FileReference(path=self.path, sha256=self.sha256)


Prompt = TypeAliasType("Prompt", Annotated[TextPart | FilePart, Field(discriminator="type")])
Part = TypeAliasType(
    "Part", Annotated[TextPart | FilePart | AttachmentPart, Field(discriminator="type")]
)


class PlanToolCall(Compiled):
    """A tool call of an expected message."""

    tool: Name = Field(description="Name of the tool.")
    input: JsonValue = Field(None, description="Arguments of the call.")
    output: JsonValue = Field(None, description="Result of the call.")


def json_text(value: JsonValue) -> str:
    """Return a structured value as text for agents and judges.

    Keys are sorted, so that their order in a plan does not matter.
    """
    return json.dumps(value, ensure_ascii=False, indent=2, sort_keys=True)


class PlanMessage(Compiled):
    """A message of the conversation."""

    role: Role = Field(description="Role of the speaker.")
    name: Name | None = Field(None, description="Name of the speaker.")
    content: Items[Part] = Field((), description="Content of the message.")
    value: JsonObject | None = Field(None, description="Structured answer instead of `content`.")
    tool_calls: Items[PlanToolCall] = Field((), description="Tool calls the assistant should make.")

    def text(self, part_text: Callable[[Part], str]) -> str:
        """Return the content as text, each part rendered by `part_text`."""
        if self.value is not None:
            return json_text(self.value)
        return "\n\n".join(text for part in self.content if (text := part_text(part)))

    @property
    def outline(self) -> str:
        """The content as text, with paths instead of file contents."""
        return self.text(part_outline)


def part_outline(part: Part) -> str:
    """Return a part as text, with the path of a file instead of its content."""
    match part:
        case TextPart():
            return part.text.strip()
        case FilePart(type="guideline"):
            return f"<Attached: {part.path}>"
        case FilePart():
            return f'<file: path="{part.path}">'
        case AttachmentPart():
            return f"<{part.type}: {part.name}>"


class PlanFolder(Compiled):
    """A folder that is copied into a workspace; the plan has only the digest of its files."""

    path: str = Field(description="Path relative to the repository.")
    sha256: Sha256 = Field(
        description="Digest of the paths, executable bits and contents of its files."
    )


class PlanCommit(Compiled):
    """A commit that is checked out into a workspace."""

    git: str = Field(description="Path of the Git repository, relative to this one, or its URL.")
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40,64}$")] = Field(
        description="Id of the commit."
    )


class PlanWorkspace(Compiled):
    """A folder that each trial gets fresh, and in which the agent works."""

    folder: PlanFolder | None = Field(None, description="The folder that is copied.")
    commit: PlanCommit | None = Field(
        None, description="The commit that is checked out; without either it is empty."
    )
    include: Globs = Field((), description="Globs of the files to copy; default: all.")
    exclude: Globs = Field((), description="Globs of files that are not copied.")
    patch: FileReference | None = Field(None, description="Patch that is applied.")
    files: dict[RelativePath, FileReference] = Field(
        default_factory=dict, description="Further files."
    )
    setup: Items[Argv] = Field((), description="Commands that complete it.")
    submit: Globs = Field(
        (), description="Globs of the changed paths that graders get; default: all."
    )
    submit_guarded: Globs = Field((), description="Globs of guarded paths that graders get, too.")
    isolation: Isolation = Field(
        "none", description="What separates agent and graders from the machine."
    )
    network: Literal["on", "off"] = Field("on", description="Whether the agent has a network.")
    image: Name | None = Field(None, description="Image of the container.")
    visible: Items[Name] = Field(
        (), description="Further files and folders of the machine that it may read."
    )
    limits: WorkspaceLimits | None = Field(None, description="What a trial may use.")

    @property
    def references(self) -> Iterator[FileReference]:
        """The files of the plan that it needs."""
        yield from self.files.values()
        if self.patch is not None:
            yield self.patch
