"""The events that agents print: one JSON object per line."""

from __future__ import annotations

import re
from asyncio import Event
from collections.abc import Callable, Iterator, Sequence
from collections.abc import Set as AbstractSet

from msgspec import Struct

from agentv_ci.base.json_access import json_or_none, object_at_position, text_at
from agentv_ci.base.process import STDOUT
from agentv_ci.base.text import shortened
from agentv_ci.contracts.base import ErrorKind, JsonObject, JsonValue
from agentv_ci.contracts.exchange import Response, kind_of_status
from agentv_ci.contracts.results import OutputMessage, ToolCall, Usage
from agentv_ci.execute.answers import of_type

BEGINNING = re.compile(r'\{\s*"')
"""How a JSON object with a key begins."""
CUT = re.compile(r'\{\s*"type"\s*:\s*"([^"\\]+)"')
"""How an event begins, also one that is not whole."""
MAX_TRIES = 100
"""How often a line is searched for one more object in vain, as each search may read all of it."""
MAX_SHOWN = 200


class Spent(Struct, frozen=True):
    """What an agent has used, with or without an answer; None if it does not report it."""

    model: str | None = None
    usage: Usage | None = None
    cost_usd: float | None = None


NOTHING_REPORTED = Spent()


class Progress:
    """Follows the events of a run, up to the one with which its answer is complete."""

    def __init__(self, final: AbstractSet[str], working: AbstractSet[str]) -> None:
        """`final` are the types of events that complete an answer.

        `working` are those of an agent that works on.
        """
        self._final = final
        self._working = working
        self._is_complete = False

    def is_complete_after(self, event: JsonObject) -> bool:
        """Whether the answer is complete, given one more event."""
        kind = text_at(event, "type")
        if kind in self._final:
            self._is_complete = True
        elif kind in self._working:
            self._is_complete = False
        return self._is_complete


Write = Callable[[int, bytes], None]
"""Writes output as it comes: the file descriptor, 1 or 2, and bytes."""


class FinalEvent:
    """A listener that notices the event with which its answer is complete."""

    def __init__(
        self, known: AbstractSet[str], progress: Progress, monotonic: Callable[[], float]
    ) -> None:
        """`known` are the types of the agent's events."""
        self.done = Event()
        """See Listener."""
        self.log: Write | None = None
        """Gets the output, too."""
        self.at_s: float | None = None
        """When the answer was complete."""
        self._known = known
        self._progress = progress
        self._monotonic = monotonic
        self._rest = b""

    def __call__(self, output: int, data: bytes) -> None:
        """See Listener."""
        if self.log is not None:
            self.log(output, data)
        if output == STDOUT:
            self._hear(data)

    def _hear(self, data: bytes) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._read(line)
        if self._rest.rstrip().endswith(b"}"):
            # It need not end its last line.
            self._read(self._rest)

    def _read(self, line: bytes) -> None:
        for piece in pieces_of(line.decode("utf-8", "replace"), self._known):
            if isinstance(piece, str):
                continue
            if not self._progress.is_complete_after(piece):
                self.done.clear()
            elif not self.done.is_set():
                self.at_s = self._monotonic()
                self.done.set()


class AgentFailed(Exception):
    """An agent reported a failure, or stopped without an answer."""

    def __init__(self, sentence: str | None, kind: ErrorKind = "process") -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.kind = kind


class NotEvents(ValueError):
    """The output has no events."""


def kind_of_reported(status: int | None) -> ErrorKind:
    """Return the kind of a status in an agent's report; `process` unless it is an HTTP error."""
    if status is not None and 400 <= status < 600:
        return kind_of_status(status)
    return "process"


class Turns:
    """Collects the messages of an agent; each text gets the tool calls made before it."""

    def __init__(self) -> None:
        self._parts: list[str | tuple[ToolCall, str | None]] = []
        self._outputs: dict[str, JsonValue] = {}
        self._speaking: str | None = None
        """Id of the message that the last text is of."""

    def call(
        self,
        tool: str | None,
        given: JsonValue,
        returned: JsonValue = None,
        *,
        call_id: str | None = None,
    ) -> None:
        """Add a tool call; its output may come later, with the same id."""
        self._parts.append((ToolCall(tool=tool or "", input=given, output=returned), call_id))
        self._speaking = None

    def output(self, call_id: str | None, returned: JsonValue) -> None:
        """Add the output of a tool call."""
        if call_id is not None:
            self._outputs[call_id] = returned

    def say(self, text: str, message_id: str | None = None) -> None:
        """Add a text; one that follows another of the same message continues it."""
        before = self._parts[-1] if self._parts else None
        if isinstance(before, str) and message_id is not None and message_id == self._speaking:
            self._parts[-1] = before + text
        else:
            self._parts.append(text)
        self._speaking = message_id

    def response(
        self,
        answer: str | None,
        spent: Spent = NOTHING_REPORTED,
        *,
        finish_reason: str | None = None,
    ) -> Response | None:
        """Return the response; None without an answer."""
        if answer is None:
            return None
        return Response(
            answer.strip(),
            self._messages(),
            has_trace=True,
            model=spent.model,
            usage=spent.usage,
            finish_reason=finish_reason,
            cost_usd=spent.cost_usd,
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
                messages.append(
                    OutputMessage(role="assistant", content=part, tool_calls=tuple(calls))
                )
                calls = []
        if calls:
            messages.append(OutputMessage(role="assistant", content=None, tool_calls=tuple(calls)))
        return tuple(messages)

    @property
    def has_calls(self) -> bool:
        """Whether a tool was called."""
        return any(isinstance(part, tuple) for part in self._parts)

    @property
    def last(self) -> str | None:
        """The last text."""
        return next((part for part in reversed(self._parts) if isinstance(part, str)), None)


def read_events(text: str, known: AbstractSet[str]) -> list[JsonObject]:
    """Return the events of an output; raises NotEvents when it has none of the known types.

    Other text is skipped, also before and after an event on the same line: agents print warnings
    too. Raises AgentFailed when a part of the answer may be missing: an event of a known type is
    cut off, and others follow.
    """
    events: list[JsonObject] = []
    cut: str | None = None
    for piece in all_pieces(text, known):
        if isinstance(piece, str):
            cut = cut or piece
            continue
        if cut is not None and text_at(piece, "type") in known:
            raise AgentFailed(f"an event is cut off: {shortened(cut, MAX_SHOWN)}", "malformed")
        events.append(piece)
    if not any(text_at(event, "type") in known for event in events):
        raise NotEvents(text)
    return events


def all_pieces(text: str, known: AbstractSet[str]) -> Iterator[JsonObject | str]:
    """Yield the events of an output, and as text what is left of those that are cut off."""
    # Not `splitlines`: JSON strings may hold other line separators.
    for line in text.split("\n"):
        yield from pieces_of(line, known)


def pieces_of(line: str, known: AbstractSet[str]) -> Iterator[JsonObject | str]:
    """Yield the object that is a whole line, else its events of known types, cut ones as text."""
    line = line.lstrip("\ufeff")
    whole = json_or_none(line)
    if isinstance(whole, dict):
        yield whole
        return
    position, tries = 0, 0
    while tries < MAX_TRIES and (match := BEGINNING.search(line, position)) is not None:
        found = object_at_position(line, match.start())
        if found is not None:
            event, position = found
            if text_at(event, "type") in known:
                yield event
            continue
        position, tries = match.end(), tries + 1
        cut = CUT.match(line, match.start())
        if cut is not None and cut[1] in known:
            yield line[match.start() :]


def last_event(events: Sequence[JsonObject], kind: str) -> JsonObject | None:
    """Return the last event of a type."""
    return next(reversed(of_type(events, kind)), None)


def first_text(events: Sequence[JsonObject], *place: str) -> str | None:
    """Return the first text that an event has at a place."""
    return next(filter(None, (text_at(event, *place) for event in events)), None)


def result_event(events: Sequence[JsonObject]) -> JsonObject:
    """Return the last event with the result; raises AgentFailed without one."""
    result = last_event(events, "result")
    if result is None:
        raise AgentFailed("the events end before the result")
    return result
