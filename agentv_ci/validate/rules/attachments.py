"""Images and documents in messages."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from agentv_ci.base.text import listed
from agentv_ci.contracts.api_targets import AzureOpenAITarget, OpenAITarget
from agentv_ci.contracts.attachments import (
    FORMATS,
    MAX_BYTES,
    NAMES,
    TEXT,
    AttachmentType,
    is_url,
    media_type_of_name,
    url_media_type,
    url_problem,
)
from agentv_ci.contracts.cli_target import CliTarget
from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import ReferencedFile
from agentv_ci.contracts.evals import (
    ContentBlock,
    EvalCase,
    EvalDocument,
    ExpectedMessage,
    InputMessage,
)
from agentv_ci.contracts.source import Pointer, Source
from agentv_ci.contracts.targets import Target, refused_attachment
from agentv_ci.validate.findings import Finder
from agentv_ci.validate.rules.file_references import file_problem

PHRASES: Mapping[AttachmentType, str] = {"image": "an image", "document": "a document"}


class Attached(NamedTuple):
    """An image or a document in a message."""

    pointer: Pointer
    """To the block."""
    role: str
    """Of the message."""
    kind: AttachmentType
    value: str


def check(document: EvalDocument, indexes: Iterable[int], find: Finder) -> Iterator[Diagnostic]:
    """AV355 and AV356 for images and documents of these cases.

    AV105, AV302 and AV318 for their files.
    """
    for index in indexes:
        case = document.evalcases[index]
        inputs = attached(("evalcases", index, "input_messages"), case.inputs)
        for pointer, role, kind, value in inputs:
            if role != "user":
                message = f"{PHRASES[kind]} may only be in a message of role 'user', not '{role}'"
                yield find.at("AV356", message, (*pointer, "type"))
            elif (problem := _problem(kind, value, find)) is not None:
                rule, message, hint = problem
                yield find.at(rule, message, (*pointer, "value"), hint=hint)
        expected = attached(("evalcases", index, "expected_messages"), case.expectations)
        for pointer, _, kind, _ in expected:
            message = f"{PHRASES[kind]} may only be in input_messages, not in expected_messages"
            hint = "describe what the answer must say about it"
            yield find.at("AV356", message, (*pointer, "type"), hint=hint)


def check_target(
    document: EvalDocument, index: int, target: Target, find: Finder
) -> Iterator[Diagnostic]:
    """AV357 for the images and documents of a case that its target does not take."""
    messages = document.evalcases[index].inputs
    for pointer, role, kind, value in attached(("evalcases", index, "input_messages"), messages):
        if role != "user":
            continue
        by_url = is_url(value)
        media_type = url_media_type(value) if by_url else find.file(value)[1].media_type
        reason = refused_attachment(target, kind, media_type, by_url=by_url)
        if reason is not None:
            hint = _hint(target, media_type, by_url=by_url)
            yield find.at("AV357", reason, (*pointer, "type"), hint=hint)


def attached(
    pointer: Pointer, messages: Iterable[InputMessage | ExpectedMessage]
) -> Iterator[Attached]:
    """Yield the images and documents of messages."""
    for number, message in enumerate(messages):
        if not isinstance(message.content, tuple):
            continue
        for part, block in enumerate(message.content):
            if isinstance(block, ContentBlock) and block.type in ("image", "document"):
                way = (*pointer, number, "content", part)
                yield Attached(way, message.role, block.type, block.value)


def with_attachments(document: EvalDocument, source: Source) -> Collection[int]:
    """Return the indexes of the cases that have any."""
    # Most files do not have the words; with a backslash, they may be there as escapes.
    if source.text and not (
        "image" in source.text or "document" in source.text or "\\" in source.text
    ):
        return ()
    return {index for index, case in enumerate(document.evalcases) if _has_attachments(case)}


def _has_attachments(case: EvalCase) -> bool:
    for messages in (case.input_messages, case.expected_messages):
        if isinstance(messages, tuple) and any(attached((), messages)):
            return True
    return False


def _problem(kind: AttachmentType, value: str, find: Finder) -> tuple[str, str, str | None] | None:
    """Return a rule, its message and a hint."""
    if is_url(value):
        reason = url_problem(value)
        if reason is None:
            return None
        return "AV355", reason, "write the path of a file, or its http or https URL"
    path, file = find.file(value)
    problem = file_problem(value, path, file, find)
    if problem is not None and file.state not in ("blank", "not UTF-8"):
        return (*problem, None)
    return _format_problem(kind, value, path, file)


def _format_problem(
    kind: AttachmentType, value: str, path: Path, file: ReferencedFile
) -> tuple[str, str, str | None] | None:
    found, suffix = file.media_type, media_type_of_name(value)
    formats = listed(name for media_type, name in NAMES.items() if media_type in FORMATS[kind])
    supported = f"supported: {formats}"
    if file.state == "blank":
        return "AV355", f"file '{value}' is empty: {path}", None
    if found is None:
        return (
            "AV355",
            f"file '{value}' is not {PHRASES[kind]} of a known format; {supported}",
            None,
        )
    if suffix not in (None, found):
        return (
            "AV355",
            f"file '{value}' is not {NAMES[suffix]} but {NAMES[found]}, by its first bytes",
            "rename it",
        )
    if found not in FORMATS[kind]:
        other = next(other for other in FORMATS if found in FORMATS[other])
        return (
            "AV355",
            f"file '{value}' is {NAMES[found]}, not {PHRASES[kind]}; {supported}",
            f"write type: {other}",
        )
    if file.size_bytes > MAX_BYTES:
        return (
            "AV355",
            f"file '{value}' is larger than {MAX_BYTES // 1024 // 1024} MiB: {path}",
            None,
        )
    return None


def _hint(target: Target, media_type: str | None, *, by_url: bool) -> str | None:
    """Return how the target could take it."""
    if media_type == TEXT and not by_url:
        return "write type: file, which puts its text into the message"
    match target:
        case CliTarget() if not by_url:
            return "add {ATTACHMENTS} to its command, which gets the paths of files"
        case OpenAITarget() | AzureOpenAITarget():
            return "use a file, or set api_format: responses on the target"
        case _:
            return None
