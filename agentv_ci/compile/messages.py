"""Messages in their long form: files taken in, guidelines split off."""

from __future__ import annotations

from collections.abc import Sequence

from agentv_ci.compile.files import Files
from agentv_ci.contracts.evals import Content, ContentBlock, ExpectedMessage, InputMessage
from agentv_ci.contracts.plan import FilePart, FileReference, PlanMessage, PlanToolCall, TextPart, json_text
from agentv_ci.contracts.source import Source


class MessageCompiler:
    """Compiles the messages of one eval file."""

    def __init__(self, source: Source, files: Files, guideline_patterns: Sequence[str]) -> None:
        self._source = source
        self._files = files
        self._patterns = list(guideline_patterns)

    def compile_input(self, message: InputMessage) -> PlanMessage:
        """Return a message to the agent."""
        return PlanMessage(role=message.role, name=message.name, content=self._parts(message.content))

    def compile_expected(self, message: ExpectedMessage) -> PlanMessage:
        """Return a message of a good answer; in it every file is content, also one that looks like a guideline."""
        content = message.content
        calls = tuple(
            PlanToolCall(tool=call.tool, input=call.input, output=call.output) for call in message.tool_calls or ()
        )
        if isinstance(content, dict):
            return PlanMessage(role=message.role, name=message.name, value=content, tool_calls=calls)
        parts = self._parts(content, guidelines=False) if content is not None else ()
        return PlanMessage(role=message.role, name=message.name, content=parts, tool_calls=calls)

    def _parts(self, content: Content, *, guidelines: bool = True) -> tuple[TextPart | FilePart, ...]:
        if isinstance(content, str):
            return (TextPart(text=content),)
        return tuple(self._part(block, guidelines=guidelines) for block in content)

    def _part(self, block: str | ContentBlock, *, guidelines: bool) -> TextPart | FilePart:
        if isinstance(block, str):
            return TextPart(text=block)
        if block.type == "text":
            return TextPart(text=block.value)
        file = self._files.add(self._source, block.value)
        is_guideline = guidelines and _matches(file.path, self._patterns)
        return FilePart(type="guideline" if is_guideline else "file", path=file.path, sha256=file.sha256)


def guidelines(messages: Sequence[PlanMessage]) -> tuple[FileReference, ...]:
    """Return the guideline files of a conversation, each once, in order."""
    parts = (part for message in messages for part in message.content)
    found = {
        part.path: FileReference(path=part.path, sha256=part.sha256)
        for part in parts
        if isinstance(part, FilePart) and part.type == "guideline"
    }
    return tuple(found.values())


def reference_answer(messages: Sequence[PlanMessage], files: Files) -> str:
    """Return the last expected assistant message that says something, as text."""
    for message in reversed(messages):
        if message.role != "assistant":
            continue
        if message.value is not None:
            return json_text(message.value)
        if message.content:
            return "\n\n".join(_text(part, files) for part in message.content)
    return ""


def _text(part: TextPart | FilePart, files: Files) -> str:
    if isinstance(part, TextPart):
        return part.text
    return files.text(FileReference(path=part.path, sha256=part.sha256))


def _matches(path: str, patterns: list[str]) -> bool:
    from wcmatch import glob  # only files need it

    return glob.globmatch(path, patterns, flags=glob.GLOBSTAR | glob.DOTGLOB | glob.FORCEUNIX)
