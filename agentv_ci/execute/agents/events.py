"""The events that agents print: one JSON object per line."""

from __future__ import annotations

from collections.abc import Container, Sequence

from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import Response, kind_of_status
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.json_access import json_or_none, text_at


class AgentFailed(Exception):
    """An agent reported a failure, or stopped without an answer."""

    def __init__(
        self,
        sentence: str | None,
        kind: ErrorKind = "process",
        *,
        model: str | None = None,
        usage: Usage | None = None,
        cost_usd: float | None = None,
    ) -> None:
        """`usage` and `cost_usd` are what it has used all the same, if the agent reports that."""
        super().__init__(sentence)
        self.sentence = sentence
        self.kind = kind
        self.model = model
        self.usage = usage
        self.cost_usd = cost_usd


class NotEvents(ValueError):
    """The output has no events."""


def kind_of_reported(status: int | None) -> ErrorKind:
    """Return the kind of a status in an agent's report; `process` unless it is an HTTP error."""
    return kind_of_status(status) if status is not None and 400 <= status < 600 else "process"


class Turns:
    """Collects the messages of an agent; each text gets the tool calls made before it."""

    def __init__(self) -> None:
        self._parts: list[str | tuple[ToolCall, str | None]] = []
        self._outputs: dict[str, JsonValue] = {}

    def call(
        self, tool: str | None, given: JsonValue, returned: JsonValue = None, *, call_id: str | None = None
    ) -> None:
        """Add a tool call; its output may come later, with the same id."""
        self._parts.append((ToolCall(tool=tool or "", input=given, output=returned), call_id))

    def output(self, call_id: str | None, returned: JsonValue) -> None:
        """Add the output of a tool call."""
        if call_id is not None:
            self._outputs[call_id] = returned

    def say(self, text: str) -> None:
        """Add a text."""
        self._parts.append(text)

    def response(
        self,
        answer: str | None,
        *,
        model: str | None = None,
        usage: Usage | None = None,
        finish_reason: str | None = None,
        cost_usd: float | None = None,
    ) -> Response | None:
        """Return the response; None without an answer."""
        if answer is None:
            return None
        return Response(
            answer.strip(),
            self._messages(),
            has_trace=True,
            model=model,
            usage=usage,
            finish_reason=finish_reason,
            cost_usd=cost_usd,
        )

    def _messages(self) -> tuple[OutputMessage, ...]:
        """Return all messages; tool calls after the last text get a message without content."""
        messages: list[OutputMessage] = []
        calls: list[ToolCall] = []
        for part in self._parts:
            if isinstance(part, tuple):
                call, call_id = part
                returned = self._outputs.get(call_id or "", call.output)
                calls.append(call.model_copy(update={"output": returned}))
            else:
                messages.append(OutputMessage(role="assistant", content=part, tool_calls=tuple(calls)))
                calls = []
        if calls:
            messages.append(OutputMessage(role="assistant", content=None, tool_calls=tuple(calls)))
        return tuple(messages)

    @property
    def last(self) -> str | None:
        """The last text."""
        return next((part for part in reversed(self._parts) if isinstance(part, str)), None)


def read_events(text: str, known: Container[str]) -> list[JsonObject]:
    """Return the events of an output; raises NotEvents when it has none of the known types.

    Lines that are not JSON objects are skipped: agents print warnings too.
    """
    # Not `splitlines`: JSON strings may hold other line separators.
    values = map(json_or_none, text.split("\n"))
    events = [value for value in values if isinstance(value, dict)]
    if not any(text_at(event, "type") in known for event in events):
        raise NotEvents(text)
    return events


def last_event(events: Sequence[JsonObject], kind: str) -> JsonObject | None:
    """Return the last event of a type."""
    return next((event for event in reversed(events) if event.get("type") == kind), None)


def result_event(events: Sequence[JsonObject]) -> JsonObject:
    """Return the last event with the result; raises AgentFailed without one."""
    result = last_event(events, "result")
    if result is None:
        raise AgentFailed("the events end before the result")
    return result
