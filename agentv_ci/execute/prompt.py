"""The question as one text and as a chat.

The rules are those of AgentV: roles are marked (`@[User]:`) only when more than one turn has text;
files are `<file path="…">` blocks; guidelines move to the front and leave `<Attached: …>` in their
place.
"""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, groupby
from pathlib import Path
from typing import TypeGuard

from msgspec.structs import replace

from agentv_ci.contracts.exchange import (
    NO_SYSTEM_PROMPT,
    Attachment,
    ChatMessage,
    InputFile,
    JudgeQuestion,
    Request,
)
from agentv_ci.contracts.plan import PlanCase, attached_files
from agentv_ci.contracts.plan_parts import (
    AttachmentPart,
    FileBytes,
    FilePart,
    FileReference,
    Part,
    PlanFile,
    PlanMessage,
    part_outline,
)
from agentv_ci.contracts.results import ToolCall
from agentv_ci.workspaces.contents import key_of

GUIDELINES_HEADING = "[[ ## Guidelines ## ]]"
PLAIN_TIMEOUT_S = 600.0

Files = Mapping[str, PlanFile]
"""SHA-256 → file of the plan."""
Locate = Callable[[FilePart | FileReference], Path]


def build_request(
    case: PlanCase, files: Files, locate: Locate, *, cwd: Path, seed: int | None
) -> Request:
    """Return the question of a case for its first attempt."""
    guidelines = _guidelines(case, files)
    return Request(
        case_id=case.id,
        prompt=_prompt_text(case.input_messages, lambda part: _part(part, files)),
        task=_task(case.input_messages),
        guidelines=guidelines,
        chat=_chat(case.input_messages, files, guidelines),
        timeout_s=case.timeout_seconds,
        cwd=cwd,
        files=_input_files(case.input_messages, locate),
        seed=seed,
        system_prompt=case.system_prompt,
        workspace=key_of(case.workspace) if case.workspace is not None else None,
        attached=_attached(case.input_messages, files),
    )


def _guidelines(case: PlanCase, files: Files) -> str:
    return "\n\n".join(_block(file.path, files[file.sha256].text) for file in case.guidelines)


def _task(messages: Sequence[PlanMessage]) -> str | None:
    """Return the question with its files named instead of shown; None if it shows none."""
    if any(map(_is_shown, chain.from_iterable(message.content for message in messages))):
        return _prompt_text(messages, part_outline)
    return None


def _attached(messages: Sequence[PlanMessage], files: Files) -> dict[str, str]:
    return {file.sha256: _base64(files[file.sha256]) for file in attached_files(messages)}


def has_reference(case: PlanCase) -> bool:
    """Whether a case has a reference answer, which may consist of tool calls."""
    return bool(case.reference_answer or case.reference_calls)


def with_reference_answer(request: Request, case: PlanCase) -> Request:
    """Return the question of a case for a dry run, in which a mock gives the reference answer."""
    if not has_reference(case):
        return replace(request, sample_calls=())
    calls = (
        ToolCall(tool=call.tool, input=call.input, output=call.output)
        for call in case.reference_calls
    )
    return replace(request, sample=case.reference_answer, sample_calls=tuple(calls))


def judge_request(question: JudgeQuestion, case: PlanCase, *, cwd: Path) -> Request:
    """Return a question to a judge: a chat, and the same as one text."""
    return Request(
        case_id=case.id,
        prompt=f"{question.system}\n\n{question.user}",
        guidelines="",
        chat=(ChatMessage("system", question.system), ChatMessage("user", question.user)),
        timeout_s=case.timeout_seconds,
        cwd=cwd,
        system_prompt=NO_SYSTEM_PROMPT,
        temperature=question.temperature,
        max_output_tokens=question.max_output_tokens,
        sample=question.sample,
    )


def plain_request(messages: Sequence[PlanMessage], *, cwd: Path, seed: int | None) -> Request:
    """Return a conversation without files as a question."""
    return Request(
        case_id="scenario",
        prompt=_prompt_text(messages, lambda part: _part(part, {})),
        guidelines="",
        chat=_chat(messages, {}, ""),
        timeout_s=PLAIN_TIMEOUT_S,
        cwd=cwd,
        seed=seed,
    )


def message_text(message: PlanMessage, files: Files) -> str:
    """Return a message's text, files included."""
    return message.text(lambda part: _part(part, files))


def _base64(file: PlanFile) -> str:
    if isinstance(file, FileBytes):
        return file.base64
    return b64encode(file.content).decode("ascii")


def _part(part: Part, files: Files) -> str:
    if _is_shown(part):
        return _block(part.path, files[part.sha256].text)
    return part_outline(part)


def _is_shown(part: Part) -> TypeGuard[FilePart]:
    """Whether a part is a file whose text is in the prompt."""
    return isinstance(part, FilePart) and part.type != "guideline"


def _block(path: str, text: str) -> str:
    return f'<file path="{path}">\n{text.strip()}\n</file>'


def _prompt_text(messages: Sequence[PlanMessage], say: Callable[[Part], str]) -> str:
    texts = [(message, text) for message in messages if (text := message.text(say))]
    turns = sum(not _only_guidelines(message) for message, _ in texts)
    has_replies = any(message.role in ("assistant", "tool") for message in messages)
    if turns <= 1 and not has_replies:
        return "\n\n".join(text for _, text in texts)
    return "\n\n".join(f"@[{message.role.capitalize()}]:\n{text}" for message, text in texts)


def _only_guidelines(message: PlanMessage) -> bool:
    return all(isinstance(part, FilePart) and part.type == "guideline" for part in message.content)


def _chat(
    messages: Sequence[PlanMessage], files: Files, guidelines: str
) -> tuple[ChatMessage, ...]:
    leading = 0
    while leading < len(messages) and messages[leading].role == "system":
        leading += 1
    system = [f"{GUIDELINES_HEADING}\n\n{guidelines}"] if guidelines else []
    system += [text for message in messages[:leading] if (text := message_text(message, files))]
    turns = [_turn(message, files) for message in messages[leading:]]
    head = [ChatMessage("system", "\n\n".join(system))] if system else []
    return (*head, *turns)


def _turn(message: PlanMessage, files: Files) -> ChatMessage:
    text = message_text(message, files)
    match message.role:
        case "user":
            return ChatMessage("user", text, tuple(_mixed(message, files)))
        case "assistant":
            return ChatMessage("assistant", text)
        case "system" | "tool":
            # Model APIs take one system message, and tool results only for calls they made
            # themselves.
            return ChatMessage(
                "assistant", f"@[{message.name or message.role.capitalize()}]:\n{text}"
            )


def _mixed(message: PlanMessage, files: Files) -> Iterator[str | Attachment]:
    """Yield the texts, images and documents of a message; nothing without images and documents."""
    if not any(isinstance(part, AttachmentPart) for part in message.content):
        return
    for is_attached, parts in groupby(
        message.content, lambda part: isinstance(part, AttachmentPart)
    ):
        if is_attached:
            for part in parts:
                if isinstance(part, AttachmentPart):
                    yield _attachment(part, files)
        elif text := "\n\n".join(text for part in parts if (text := _part(part, files))):
            yield text


def _attachment(part: AttachmentPart, files: Files) -> Attachment:
    size_bytes = None if part.sha256 is None else len(files[part.sha256].content)
    return Attachment(part.type, part.media_type, part.path, part.sha256, part.url, size_bytes)


def _input_files(messages: Sequence[PlanMessage], locate: Locate) -> tuple[InputFile, ...]:
    found: dict[str, InputFile] = {}
    for message in messages:
        for part in (*message.content, *attached_files([message])):
            if isinstance(part, (FilePart, FileReference)) and part.path not in found:
                is_guideline = isinstance(part, FilePart) and part.type == "guideline"
                found[part.path] = InputFile(locate(part), is_guideline, part.sha256)
    return tuple(found.values())
