"""Messages: what a schema cannot say of their roles and contents."""

from __future__ import annotations

from collections.abc import Iterator

from agentv_ci.contracts.diagnostics import Diagnostic
from agentv_ci.contracts.documents import ROLE_MARKER
from agentv_ci.contracts.evals import ContentBlock, EvalDocument, ExpectedMessage, InputMessage
from agentv_ci.contracts.source import Pointer
from agentv_ci.validate.findings import Finder


def check(document: EvalDocument, find: Finder) -> Iterator[Diagnostic]:
    """AV201, AV206, AV308 and AV321."""
    for index, case in enumerate(document.evalcases):
        for number, message in enumerate(case.input_messages):
            yield from _check_markers(("evalcases", index, "input_messages", number, "content"), message, find)
        if case.input_messages[-1].role == "assistant":
            yield find.at(
                "AV321",
                "the last input message is the assistant's, so nobody asks anything",
                ("evalcases", index, "input_messages", len(case.input_messages) - 1, "role"),
                hint="end with a message of role 'user' or 'tool'; a good answer belongs in expected_messages",
            )
        for number, expected in enumerate(case.expected_messages):
            yield from _check_expected(("evalcases", index, "expected_messages", number), expected, find)


def _check_expected(pointer: Pointer, message: ExpectedMessage, find: Finder) -> Iterator[Diagnostic]:
    if message.content is None and not (message.role == "assistant" and message.tool_calls):
        if not find.lost_something(pointer, deep=True):
            yield find.at("AV201", "missing field 'content'", (*pointer, "content"))
    elif isinstance(message.content, dict) and message.role != "assistant":
        said = f"only an assistant's content may be a mapping, not that of role '{message.role}'"
        yield find.at("AV206", said, (*pointer, "content"))


def _check_markers(pointer: Pointer, message: InputMessage, find: Finder) -> Iterator[Diagnostic]:
    content = message.content
    for place, text in [(pointer, content)] if isinstance(content, str) else _texts(pointer, content):
        # Nearly no text has one; looking for its beginning is much faster.
        if "@[" in text and (found := ROLE_MARKER.search(text)):
            yield find.at("AV308", f"the text holds the role marker '{found[0]}'", place, hint=MARKER_HINT)


MARKER_HINT = "agents that get the conversation as one text take it for a turn; write each turn as a message of its own"


def _texts(pointer: Pointer, content: tuple[str | ContentBlock, ...]) -> Iterator[tuple[Pointer, str]]:
    for part, block in enumerate(content):
        if isinstance(block, str):
            yield (*pointer, part), block
        elif block.type == "text":
            yield (*pointer, part, "value"), block.value
