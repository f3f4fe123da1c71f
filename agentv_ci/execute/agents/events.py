"""The events that agents print: a JSON object a line."""

from __future__ import annotations

from collections.abc import Container, Sequence

from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import Response, kind_of_status
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.json_access import json_or_none, text_at


class AgentFailed(Exception):
    """An agent that reports a failure, or stops before it has answered."""

    def __init__(self, sentence: str | None, kind: ErrorKind = "process") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.kind = kind


class NotEvents(ValueError):
    """A text that is no stream of events."""


def kind_of_reported(status: int | None) -> ErrorKind:
    """Return what a status in an agent's report means; what is no status of HTTP means nothing."""
    return kind_of_status(status) if status is not None and 400 <= status < 600 else "process"


class Turns:
    """The messages of an agent while it speaks: each text takes the tool calls that were made before it."""

    def __init__(self) -> None:
        self._parts: list[str | tuple[ToolCall, str | None]] = []
        self._outputs: dict[str, JsonValue] = {}

    def call(
        self, tool: str | None, given: JsonValue, returned: JsonValue = None, *, call_id: str | None = None
    ) -> None:
        """Take in a tool call; what it returns may come apart, under its id."""
        self._parts.append((ToolCall(tool=tool or "", input=given, output=returned), call_id))

    def output(self, call_id: str | None, returned: JsonValue) -> None:
        """Take in what a tool call returned."""
        if call_id is not None:
            self._outputs[call_id] = returned

    def say(self, text: str) -> None:
        """Take in a text."""
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
        """Return the response with an answer; None without one."""
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
        """All messages; calls after the last text stand in one without."""
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
    """Return the events of a stream; raises NotEvents when it holds none of the known types.

    Lines that are no JSON objects are left out: agents print warnings too.
    """
    # Not `splitlines`: JSON may hold all the other characters that separate lines.
    values = map(json_or_none, text.split("\n"))
    events = [value for value in values if isinstance(value, dict)]
    if not any(text_at(event, "type") in known for event in events):
        raise NotEvents(text)
    return events


def last_event(events: Sequence[JsonObject], kind: str) -> JsonObject | None:
    """Return the last event of a type."""
    return next((event for event in reversed(events) if event.get("type") == kind), None)


def result_event(events: Sequence[JsonObject]) -> JsonObject:
    """Return the event with the result, which comes last; raises AgentFailed when there is none."""
    result = last_event(events, "result")
    if result is None:
        raise AgentFailed("its events end before the result")
    return result
