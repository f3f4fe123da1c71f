"""The events that agents print: a JSON object a line."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass

from agentv_ci.contracts.base import JsonObject, JsonValue
from agentv_ci.contracts.exchange import ErrorKind, kind_of_status
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.json_access import read_json, text_at


@dataclass(frozen=True, slots=True)
class Heard:
    """What an agent's events say. Without `error` the agent has answered."""

    messages: tuple[OutputMessage, ...] = ()
    answer: str | None = None
    error: str | None = None
    kind: ErrorKind = "process"
    """What kind of failure `error` is."""
    model: str | None = None
    usage: Usage | None = None
    finish_reason: str | None = None
    cost_usd: float | None = None


def kind_of_reported(status: int | None) -> ErrorKind:
    """Return what a status that an agent tells means; what is no status of HTTP tells nothing."""
    return kind_of_status(status) if status is not None and 400 <= status < 600 else "process"


class Turns:
    """The messages of an agent while it speaks: each text takes the tool calls that were made before it."""

    def __init__(self) -> None:
        self._messages: list[OutputMessage] = []
        self._calls: list[ToolCall] = []

    def call(self, tool: str, given: JsonValue = None, returned: JsonValue = None) -> None:
        """Take in a tool call."""
        self._calls.append(ToolCall(tool=tool, input=given, output=returned))

    def say(self, text: str) -> None:
        """Take in a text."""
        self._messages.append(OutputMessage(role="assistant", content=text, tool_calls=tuple(self._calls)))
        self._calls = []

    @property
    def messages(self) -> tuple[OutputMessage, ...]:
        """All messages so far; calls after the last text stand in one without."""
        rest = (OutputMessage(role="assistant", content=None, tool_calls=tuple(self._calls)),) if self._calls else ()
        return (*self._messages, *rest)

    @property
    def last(self) -> str | None:
        """The last text."""
        return next((str(each.content) for each in reversed(self._messages)), None)


class NotEvents(ValueError):
    """A text that is no stream of events."""


def read_events(text: str, known: Container[str]) -> list[JsonObject]:
    """Return the events of a stream; raises NotEvents when it holds none of the known types.

    Lines that are no JSON objects are left out: agents print warnings too.
    """
    events: list[JsonObject] = []
    # Not `splitlines`: JSON may hold all the other characters that separate lines.
    for line in text.split("\n"):
        try:
            value: JsonValue = read_json(line) if line.strip() else None
        except ValueError:
            continue
        if isinstance(value, dict):
            events.append(value)
    if not any(text_at(event, "type") in known for event in events):
        raise NotEvents(text)
    return events


def last_event(events: Sequence[JsonObject], kind: str) -> JsonObject | None:
    """Return the last event of a type."""
    return next((event for event in reversed(events) if event.get("type") == kind), None)
